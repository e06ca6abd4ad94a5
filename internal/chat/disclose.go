package chat

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
)

func (s Share) isValid() bool { return s == ShareAll || s == ShareOwn || s == ShareNothing }

// discloseTo decides for each addressed agent on another host whether the sender knows that host. shares has, by
// agent id, the part of the conversation that may be sent; told are the disclosures that are new with this draft and
// are to be stored. With MustTell, an agent without a disclosure is a Conflict fault.
func (s *Service) discloseTo(ctx context.Context, actor ident.Actor, d Draft, agents []AgentRef) (shares map[string]Share, told []Disclosure, err error) {
	var ids []string
	for _, a := range agents {
		if a.Remote != "" {
			ids = append(ids, a.ID)
		}
	}
	if len(ids) == 0 {
		return nil, nil, nil
	}
	before, err := s.store.Disclosures(ctx, memberKind(actor), actor.ID, ids)
	if err != nil {
		return nil, nil, err
	}
	shares = make(map[string]Share)
	var untold []AgentRef
	for _, a := range agents {
		if a.Remote == "" {
			continue
		}
		known, ok := before[a.ID]
		ok = ok && !known.ToldAt.IsZero() && known.Host == a.Remote
		now := slices.ContainsFunc(d.Told, func(h string) bool {
			n, _ := ident.ParseHandle(h, s.cfg.Portal)
			return n.String() == a.Handle
		})
		share := d.Share
		// The earlier choice also holds when the agent moved to another host: a restricted share stays restricted.
		if share == "" {
			share = known.Share
		}
		if share == "" {
			share = ShareAll
		}
		shares[a.ID] = share
		switch {
		case now || ok && share != known.Share:
			told = append(told, Disclosure{AgentID: a.ID, Agent: a.Handle, Host: a.Remote, Share: share, ToldAt: clock.Now()})
		case !ok && d.MustTell:
			untold = append(untold, a)
		}
	}
	if len(untold) > 0 {
		return nil, nil, errUntold(untold)
	}
	return shares, told, nil
}

// toldOf returns the disclosures that the draft confirms for agents it does not address. They are stored
// too, so that the sender is asked only once.
func (s *Service) toldOf(ctx context.Context, d Draft, members []Member, known []Disclosure) ([]Disclosure, error) {
	var rest []Member
	for _, h := range d.Told {
		m, err := s.findNamed(members, h)
		same := func(k Disclosure) bool { return k.AgentID == m.ID }
		if err == nil && m.Kind == "agent" && !slices.ContainsFunc(known, same) && !hasMember(rest, m) {
			rest = append(rest, m)
		}
	}
	rest, err := s.withHosts(ctx, rest)
	if err != nil {
		return nil, err
	}
	share := d.Share
	if share == "" {
		share = ShareAll
	}
	var out []Disclosure
	for _, m := range rest {
		if m.Remote != "" {
			out = append(out, Disclosure{AgentID: m.ID, Agent: m.Handle, Host: m.Remote, Share: share, ToldAt: clock.Now()})
		}
	}
	return out, nil
}

// errUntold returns a Conflict fault, field "told", that lists the agents and the hosts that would receive the text.
func errUntold(agents []AgentRef) error {
	var where []string
	for _, a := range agents {
		where = append(where, fmt.Sprintf("%s sends it to %s", a.Handle, a.Remote))
	}
	list := strings.Join(where, ", ")
	return &fault.Error{Kind: fault.Conflict, Safe: "What you say leaves this portal: " + list + ". Say that it may, and send it again.",
		Fields: map[string]string{"told": list}}
}

// storeDisclosures saves the disclosures that the actor has confirmed, for later messages.
func (s *Service) storeDisclosures(ctx context.Context, actor ident.Actor, told []Disclosure) error {
	for _, d := range told {
		if err := s.store.Disclose(ctx, memberKind(actor), actor.ID, d); err != nil {
			return err
		}
	}
	return nil
}

// Disclosures lists the agents of the conversation that receive text outside this portal, in the order
// of the members, with the actor's disclosure for each; ToldAt is zero if there is none.
func (s *Service) Disclosures(ctx context.Context, actor ident.Actor, id string) ([]Disclosure, error) {
	if err := checkRead(actor); err != nil {
		return nil, err
	}
	members, _, err := s.readMembers(ctx, actor, id)
	if err == nil {
		members, err = s.withHosts(ctx, members)
	}
	if err != nil {
		return nil, err
	}
	var out []Disclosure
	var ids []string
	for _, m := range members {
		if m.Kind == "agent" && m.Remote != "" {
			out = append(out, Disclosure{AgentID: m.ID, Agent: m.Handle, Host: m.Remote, Share: ShareAll})
			ids = append(ids, m.ID)
		}
	}
	if len(out) == 0 {
		return out, nil
	}
	known, err := s.store.Disclosures(ctx, memberKind(actor), actor.ID, ids)
	if err != nil {
		return nil, err
	}
	for i, d := range out {
		if k, ok := known[d.AgentID]; ok {
			if k.Share.isValid() {
				out[i].Share = k.Share
			}
			if k.Host == d.Host {
				out[i].ToldAt = k.ToldAt
			}
		}
	}
	return out, nil
}

// Disclose records that the actor has confirmed the host that receives the text for an agent of the
// conversation, with the share of the conversation that may be sent.
func (s *Service) Disclose(ctx context.Context, actor ident.Actor, id, agent string, share Share) error {
	if err := checkWrite(actor); err != nil {
		return err
	}
	if share == "" {
		share = ShareAll
	}
	var c fault.Check
	c.Field(share.isValid(), "share", "use %s, %s or %s", ShareAll, ShareOwn, ShareNothing)
	if err := c.Err(); err != nil {
		return err
	}
	members, _, err := s.readMembers(ctx, actor, id)
	if err != nil {
		return err
	}
	h, _ := ident.ParseHandle(agent, s.cfg.Portal)
	i := slices.IndexFunc(members, func(m Member) bool { return m.Kind == "agent" && m.Handle == h.String() })
	if i < 0 {
		return asField(fault.New(fault.NotFound, "There is no agent %.80q in this conversation.", agent), "agent")
	}
	with, err := s.withHosts(ctx, members[i:i+1])
	if err != nil {
		return err
	}
	m := with[0]
	if m.Remote == "" {
		return fault.New(fault.Conflict, "What is said to %s stays on this portal.", m.Handle)
	}
	return s.storeDisclosures(ctx, actor, []Disclosure{{AgentID: m.ID, Agent: m.Handle, Host: m.Remote, Share: share, ToldAt: clock.Now()}})
}
