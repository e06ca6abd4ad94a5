package handlers

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/templates"

	"github.com/go-chi/chi/v5"
)

// profileDone are the sentences a profile says after a form, by ?done=.
var profileDone = map[string]string{
	"published": "It is published: everybody you allow can find it now.",
	"left":      "You no longer share this agent.",
}

// agent shows the profile of an agent.
func (d *Door) agent(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	name := pathName(r)
	a, err := d.hub.Anywhere(r.Context(), actor, name)
	if err != nil {
		return err
	}
	if a.Elsewhere() && !strings.Contains(name, "@") { // its id in the network
		http.Redirect(w, r, "/agents/"+a.Handle(), http.StatusFound)
		return nil
	}
	if a.Elsewhere() {
		return d.showElsewhere(w, r, actor, a, http.StatusOK, handedOver(r), "")
	}
	if anonymous(actor) && r.URL.RawQuery == "" {
		// What it shows to all of them alike is kept for a minute, because it
		// says how long ago something was.
		key := fmt.Sprintf("agent %s %d %d %s %s %s", a.ID, a.Version, a.Liveness.CheckedAt.UnixMilli(), a.OwnerName, a.Proof.State, clock.Now().Format("15:04"))
		if d.renderKept(w, key) {
			return nil
		}
		r = r.WithContext(context.WithValue(r.Context(), keepKey{}, key))
	}
	return d.showAgent(w, r, actor, a, http.StatusOK, handedOver(r), "")
}

// keepKey is under what a profile is kept for visitors.
type keepKey struct{}

// maxHandedOver is how many characters a link may put into the form to talk.
const maxHandedOver = 2000

// handedOver is the text that a link brought along, as the guide's do. It only
// fills the form: the reader sends it, or not.
func handedOver(r *http.Request) string {
	text := []rune(strings.ToValidUTF8(lines(r.URL.Query().Get("text")), ""))
	return string(text[:min(len(text), maxHandedOver)])
}

// showAgent renders a profile with what was typed to the agent and what was
// wrong with it.
func (d *Door) showAgent(w http.ResponseWriter, r *http.Request, actor ident.Actor, a hub.Agent, code int, text, wrong string) error {
	if a.Elsewhere() {
		return d.showElsewhere(w, r, actor, a, code, text, wrong)
	}
	kind := textOf(a.Kind)
	server, err := d.servers.ServerName(r.Context(), a)
	if err != nil {
		return err
	}
	v := templates.AgentView{
		Ref: a.Handle(), Title: a.Title, Handle: d.fullHandle(a.Handle()), Icon: a.Icon, Kind: kind.label, Provenance: d.provenance(a), KindHelp: kind.help,
		Tags: a.Tags(), Examples: examples(a, 3), Owner: a.OwnerName, TextGoesTo: d.textGoesTo(a), Limits: d.limitTexts(a), Uses: d.uses(a, server), TokenHint: d.tokenHint(a),
		Version: whole(int64(a.Version)), VersionsHref: "/agents/" + a.Name + "/versions", Updated: moment(a.UpdatedAt), Created: moment(a.CreatedAt),
		Visibility: string(a.Visibility), Publisher: a.Publisher, Proof: string(a.Proof.State), ProofText: proofText(a),
		Languages: languageNames(a.Languages), Takes: modeTexts(a.InputModes), Gives: modeTexts(a.OutputModes),
		Mine: d.hub.MayEdit(actor, a), Draft: a.Status.State == hub.StatusDraft, Reportable: a.Kind != hub.Builtin && !d.hub.Owns(actor, a), Text: text, Error: wrong,
	}
	v.Tagline, v.Description = d.describe(a.Description)
	if v.Health, err = d.health(r.Context(), actor, a); err != nil {
		return err
	}
	d.voices(&v, a, clock.Now())
	if use, err := d.hub.Usage(r.Context(), a); err == nil {
		v.Used = usedText(use)
	} else if r.Context().Err() == nil {
		d.log.Warn("count calls", "agent", a.ID, "error", err)
	}
	if a.Kind == hub.Builtin {
		v.Owner = "this portal"
	} else if a.OwnerName != "" {
		v.OwnerHandle = d.fullHandle(a.OwnerName)
	}
	if v.Mine {
		v.Endpoint = a.Endpoint
	}
	v.Tools = toolsOf(a)
	if len(v.Tools) == 0 {
		for _, s := range a.Skills {
			left := slices.DeleteFunc(slices.Clone(s.Examples), func(e string) bool { return slices.Contains(v.Examples, e) })
			v.Skills = append(v.Skills, templates.Skill{ID: s.ID, Name: s.Name, Description: s.Description, Tags: s.Tags, Examples: left})
		}
	}
	v.Banners = statusBanners(a, v.Mine)
	v.Offered, v.Next = d.offeredTo(r.Context(), actor, a), d.next(actor, a)
	v.NoTalk, v.LogIn = d.noTalk(actor, a)
	if a.Status.State == hub.Withdrawn {
		v.Uses = nil
	}
	if a.Kind == hub.Link && d.hub.Owns(actor, a) && a.Liveness.State != hub.Alive {
		v.Start = d.startCommand(a)
	}
	if a.Status.State != hub.Withdrawn {
		v.Share = new(d.shareView(a))
	}
	p := d.frame(r, actor, a.Title)
	p.Description, p.Preview = v.Tagline, d.preview(a, v.Tagline)
	p.Flash = profileDone[r.URL.Query().Get("done")]
	if wrong != "" && v.NoTalk != "" {
		p.Flash, p.FlashKind = wrong, "error"
	}
	if key, ok := r.Context().Value(keepKey{}).(string); ok {
		return d.renderShared(w, r, key, templates.Agent(p, v))
	}
	return d.render(w, r, code, templates.Agent(p, v))
}

// noTalk says why the actor cannot talk to an agent now, empty when they can;
// logIn is true when an account would help.
func (d *Door) noTalk(actor ident.Actor, a hub.Agent) (why string, logIn bool) {
	switch {
	case a.Status.State == hub.Withdrawn:
		return "It was withdrawn and takes no work.", false
	case (a.Visibility == hub.Private || a.Status.State == hub.StatusDraft) && !d.hub.Owns(actor, a):
		return "Only its owners can talk to it.", false
	case !actor.IsPerson() && !d.accounts.Guests():
		return "Log in to talk to it.", true
	case actor.Kind == ident.Guest && a.Visibility != hub.Public:
		return "Visitors cannot talk to it: log in.", true
	}
	if err := a.MayCall(actor); err != nil {
		return fault.As(err).Safe, !actor.IsPerson()
	}
	return "", false
}

// health is what the contacts with an agent showed.
func (d *Door) health(ctx context.Context, actor ident.Actor, a hub.Agent) (templates.Health, error) {
	h := templates.Health{Provenance: d.provenance(a)}
	if a.Kind == hub.Builtin {
		h.Line = "It runs on this portal and is there while the portal is."
		return h, nil
	}
	now := clock.Now()
	h.Checked, h.CheckedAgo = moment(a.Liveness.CheckedAt), agoWords(a.Liveness.CheckedAt, now)
	h.Latency, h.Reason = latency(a.Liveness.Latency), a.Liveness.Reason
	switch a.Liveness.State {
	case hub.Alive:
		h.Reason = ""
	case hub.Unreachable:
		h.Latency = "" // how long the silence was waited for
	}
	list, err := d.hub.HistoryOf(ctx, a)
	if err != nil {
		return h, err
	}
	h.Line, h.Since = sinceText(list, a.Liveness)
	if strings.TrimSuffix(h.Reason, ".") == h.Line {
		h.Reason = "" // once is enough
	}
	if remote := a.Kind != hub.Link && a.Kind != hub.Prompt; remote && a.Liveness.State == hub.Unreachable && d.hub.MayEdit(actor, a) {
		h.Reason = strings.TrimSpace(h.Reason + " Look whether it runs and whether its address is right, then check again.")
	}
	h.Picture = historyPicture(list)
	h.Uptime = uptimeTexts(list, now)
	return h, nil
}

// offeredTo reports whether somebody wants to give the agent to the actor.
func (d *Door) offeredTo(ctx context.Context, actor ident.Actor, a hub.Agent) bool {
	if !actor.IsPerson() || a.OwnerID == actor.ID || a.Kind == hub.Builtin {
		return false
	}
	list, err := d.hub.Offers(ctx, actor)
	return err == nil && slices.ContainsFunc(list, func(o hub.Offer) bool { return o.Agent.ID == a.ID })
}

// describe splits a description into its first sentence and what else there
// is to read.
func (d *Door) describe(text string) (tagline string, rest templates.SafeHTML) {
	text = strings.TrimSpace(text)
	tagline = d.markup.Line(text)
	// What is underlined is a heading, which must keep its line.
	if after, ok := strings.CutPrefix(text, tagline); ok && !strings.HasPrefix(after, "\n=") && !strings.HasPrefix(after, "\n-") {
		text = strings.TrimSpace(after)
	}
	if text == "" {
		return tagline, ""
	}
	return tagline, d.markup.Message(text)
}

func (d *Door) checkAgent(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	a, err := d.hub.Check(r.Context(), actor, pathName(r))
	if err != nil {
		return err
	}
	return see(w, r, "/agents/"+a.Name+"#alive")
}

// declareProfile declares the routes of the pages of one agent that are open to all who may see it.
func (d *Door) declareProfile(r chi.Router) {
	r.Get("/agents/{name}", d.page(d.agent))
	r.Get("/agents/{name}/icon", d.page(d.agentIcon))
	r.Get("/agents/{name}/versions", d.page(d.agentVersions))
	r.Get("/agents/{name}/versions/{version}", d.page(d.agentVersion))
	r.Post("/agents/{name}/rollback", d.page(d.rollbackAgent))
	r.Post("/agents/{name}/check", d.page(d.checkAgent))
	r.Get("/agents/{name}/report", d.page(d.reportForm))
	r.Post("/agents/{name}/report", d.page(d.reportAgent))
	r.Get("/agents/{name}/qr.svg", d.page(d.agentQR))
	r.Get("/chat/new", d.page(d.newChat))
}
