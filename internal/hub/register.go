package hub

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"agentsite/internal/agentkind"
	"agentsite/internal/agentname"
	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/lookalike"
)

// ApplyDraft applies a draft to a and checks the result, including the rules that need the store: proved
// domain, existing accounts.
func (s *Service) ApplyDraft(ctx context.Context, d Draft, a *Agent) error {
	published := a.Publisher
	err := d.apply(a, s.draftRules())
	// An agent without an owner keeps the domain that published it, and cannot get another.
	kept := a.OwnerID == "" && a.Publisher == published
	if err == nil && a.Publisher != "" && !kept && !s.Proofs.controlsDomain(ctx, a.OwnerID, a.Publisher) {
		err = fault.Field("publisher", "prove first that you control this domain, on your account page")
	}
	if err == nil && d.Limits != nil {
		for _, name := range a.Limits.Listed {
			if strings.Contains(name, "@") {
				continue // An account of another portal cannot be checked here.
			}
			if _, lerr := s.store.Account(ctx, name); fault.Is(lerr, fault.NotFound) {
				text := "there is nobody called " + name + " on this portal"
				err = fault.Field("limits.listed", text)
				break
			}
		}
	}
	if err == nil && d.Icon != nil && a.Icon != "" {
		if _, ierr := s.store.Icon(ctx, a.Icon); ierr != nil {
			err = errIcon("send the picture again")
		}
	}
	return err
}

// Publish registers an agent with the actor as owner. A draft with only the endpoint of an A2A agent is completed from
// its agent card, whose name gets a number if it is taken. An endpoint that does not answer is registered as
// unreachable.
func (s *Service) Publish(ctx context.Context, actor ident.Actor, d Draft) (Agent, error) {
	if err := RequireWriter(actor); err != nil {
		return Agent{}, err
	}
	chosen := d.Name != nil
	typed := d
	d, err := s.consultAddress(ctx, actor, d)
	if err != nil {
		// A form shows the errors of all fields at once: more than that the description is missing.
		other := s.ApplyDraft(ctx, typed, &Agent{})
		if chosen && typed.Kind != nil && other != nil && len(fault.As(other).Fields) > 1 {
			err = other
		}
		return Agent{}, err
	}
	now := clock.Now()
	a := Agent{ID: ident.NewID(), OwnerID: actor.ID, OwnerName: actor.Name, Version: 1, CreatedAt: now, UpdatedAt: now,
		Liveness: Liveness{State: Unknown, Reason: "Not checked yet."}}
	if err := s.ApplyDraft(ctx, d, &a); err != nil {
		return Agent{}, err
	}
	if n, err := s.store.CountAgents(ctx, actor.ID); err != nil {
		return Agent{}, err
	} else if n >= MaxAgentsPerOwner {
		return Agent{}, fault.New(fault.Conflict, "You have %d agents already; remove one first.", MaxAgentsPerOwner)
	}
	var sealed []byte
	if d.Secret != nil && *d.Secret != "" {
		sealed = s.sealer.Seal(*d.Secret, a.ID)
		a.HasSecret = true
	}
	if err := s.mayStore(actor, a); err != nil {
		return Agent{}, err
	}
	err = s.store.CreateAgent(ctx, a, sealed)
	for n, name := 2, a.Name; fault.Is(err, fault.Conflict) && !chosen && n <= ident.MaxNumbered; n++ {
		a.Name = ident.Numbered(name, n)
		err = s.store.CreateAgent(ctx, a, sealed)
	}
	if fault.Is(err, fault.Conflict) {
		return Agent{}, &fault.Error{Kind: fault.Conflict, Safe: "The name " + a.Name + " is taken. Choose another.",
			Fields: map[string]string{"name": "taken; choose another"}, Err: err}
	} else if err != nil {
		return Agent{}, err
	}
	s.indexAgent(a)
	s.cfg.Log.Info("agent registered", "agent", a.ID, "name", a.Name, "kind", string(a.Kind))
	return s.checkNow(ctx, a), nil
}

// consultAddress completes a draft from the description at its address. The description is required if the draft has
// only an endpoint, or none of its own. For an A2A agent it is also used if it arrives in time, because the card names
// the protocol binding.
func (s *Service) consultAddress(ctx context.Context, actor ident.Actor, d Draft) (Draft, error) {
	if d.Endpoint == nil || strings.TrimSpace(*d.Endpoint) == "" {
		return d, nil
	}
	must := d.Name == nil || d.Kind == nil
	if !must {
		// Some kinds need a setting that only the address can supply. Without a description its error is the reason.
		need := agentkind.Of(*d.Kind).Supplied
		if _, stated := d.Config[need]; need == "" || stated {
			return d, nil
		}
		must = d.Description == nil || strings.TrimSpace(*d.Description) == ""
	}
	if !must {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, consultWait)
		defer cancel()
	}
	t := Target{Endpoint: strings.TrimSpace(*d.Endpoint)}
	assign(&t.Kind, d.Kind)
	if d.Secret != nil && t.Kind != "" {
		t.Secret, t.Config = *d.Secret, d.encodeSettings()
	}
	described, at, err := s.readTarget(ctx, actor, t)
	switch {
	case err != nil && must:
		return d, err
	case err == nil && must && d.Kind != nil && described.Kind != *d.Kind:
		text := fmt.Sprintf("there is no agent of kind %s there; it looks like one of kind %s", *d.Kind, described.Kind)
		return d, fault.Field("endpoint", text)
	case err != nil || d.Kind != nil && described.Kind != *d.Kind:
		return d, nil
	}
	d = described.TellApart(&s.Names).fillDraft(d)
	if d.Secret != nil && *d.Secret != "" && originOf(at) != originOf(*d.Endpoint) {
		return d, fault.Field("endpoint", "its card names "+*d.Endpoint+
			" as the address to call; give that one, so that it is clear where the credential goes")
	}
	return d, nil
}

// maxProposedName is the greatest length of a name that is made for an agent.
const maxProposedName = 40

// TellApart returns the description with the host added to a name or title that people would take for one of names. A
// text that has no room for the whole host stays, and is refused.
func (in Described) TellApart(names *lookalike.Names) Described {
	_, host, _ := strings.Cut(originOf(in.Endpoint), "://")
	add := func(text, host string, most int) string {
		if names.Resembles(text) == "" || utf8.RuneCountInString(text+host) > most {
			return text
		}
		return text + host
	}
	in.Name = add(in.Name, "-"+agentname.Slug(host), maxProposedName)
	in.Title = add(in.Title, " at "+host, maxTitle)
	return in
}

// consultWait is the longest wait for the agent's description if the draft is complete without it.
const consultWait = 3 * time.Second

// fillDraft returns the draft completed with the description; fields that the draft sets win.
func (in Described) fillDraft(d Draft) Draft {
	str := func(p **string, v string) {
		if *p == nil && v != "" {
			*p = &v
		}
	}
	str(&d.Name, in.Name)
	str(&d.Title, in.Title)
	str(&d.Description, in.Description)
	if in.Endpoint != "" {
		d.Endpoint = &in.Endpoint
	}
	if d.Kind == nil {
		d.Kind = &in.Kind
	}
	list := func(p **[]string, v []string) {
		if *p == nil && len(v) > 0 {
			*p = &v
		}
	}
	list(&d.InputModes, in.InputModes)
	list(&d.OutputModes, in.OutputModes)
	// Tools of an MCP server are listed as its skills.
	if d.Skills == nil || in.Kind == MCP && len(*d.Skills) == 0 {
		d.Skills = &in.Skills
	}
	config := make(map[string]json.RawMessage)
	if len(in.Config) > 0 {
		_ = json.Unmarshal(in.Config, &config) // cannot fail: this portal wrote the JSON
	}
	for k, v := range d.Config {
		config[k] = v
	}
	d.Config = config
	return d
}

// EnsureBuiltin registers a built-in agent of the portal, or updates it after an upgrade. It is called
// at each start. Built-in agents are always alive.
func (s *Service) EnsureBuiltin(ctx context.Context, d Draft) error {
	now := clock.Now()
	title := *d.Name
	assign(&title, d.Title)
	s.Names.Protect(*d.Name, title)
	live := Liveness{State: Alive, CheckedAt: now, Reason: "Runs on this portal."}
	have, err := s.store.AgentByName(ctx, *d.Name)
	if fault.Is(err, fault.NotFound) {
		a := Agent{ID: ident.NewID(), Kind: Builtin, Version: 1, CreatedAt: now, UpdatedAt: now, Liveness: live}
		if err := d.apply(&a, rules{kinds: []Kind{Builtin}, addresses: s.addresses}); err != nil {
			return err
		}
		err := s.store.CreateAgent(ctx, a, nil)
		// The name is taken by an account's agent or was used by a deleted one.
		if fault.Is(err, fault.Conflict) {
			s.cfg.Log.Warn("the name of a built-in agent is taken; it stays off", "name", a.Name)
			return nil
		}
		return err
	}
	if err != nil {
		return err
	}
	if have.Kind != Builtin {
		s.cfg.Log.Warn("a registered agent has the name of a built-in one, which stays off", "name", have.Name)
		return nil
	}
	a := have
	if err := d.apply(&a, rules{kinds: []Kind{Builtin}, addresses: s.addresses}); err != nil {
		return err
	}
	if same(a, have) {
		return nil
	}
	a.Version, a.UpdatedAt = have.Version+1, now
	return s.store.UpdateAgent(ctx, a, have.Version, nil, ident.Actor{Kind: ident.System})
}

// RetireBuiltin hides a built-in agent that this release or configuration no longer has. Its name stays
// reserved, so that the agent can return.
func (s *Service) RetireBuiltin(ctx context.Context, name string) error {
	have, err := s.store.AgentByName(ctx, name)
	if fault.Is(err, fault.NotFound) || err == nil && (have.Kind != Builtin || have.Visibility == Private) {
		return nil
	}
	if err != nil {
		return err
	}
	a := have
	a.Visibility, a.Version, a.UpdatedAt = Private, have.Version+1, clock.Now()
	return s.store.UpdateAgent(ctx, a, have.Version, nil, ident.Actor{Kind: ident.System})
}

func same(a, b Agent) bool {
	x, _ := json.Marshal([]any{a.Title, a.Description, a.Skills, a.Visibility})
	y, _ := json.Marshal([]any{b.Title, b.Description, b.Skills, b.Visibility})
	return string(x) == string(y)
}
