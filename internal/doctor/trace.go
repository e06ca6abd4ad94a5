package doctor

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"agentsite/internal/federation"
	"agentsite/internal/hub"
	"agentsite/internal/record"
	"agentsite/internal/weborigin"
)

// idOf returns the network id of one of this portal's agents.
func (s Subject) idOf(a hub.Agent) string { return record.AgentID(s.ID, strings.ToLower(a.ID)) }

// traceAgent follows an agent of this portal on the way to another portal and stops at the first step
// that fails.
func (s Subject) traceAgent(ctx context.Context, r *Report, q Question) {
	a, ok := s.findOwn(ctx, r, q.Agent)
	if !ok {
		return
	}
	if s.Network == "" {
		r.Add(Agent, Fault, "Start the portal in a network: --network NAME",
			"This portal is in no network, so no other knows its agents.")
		return
	}
	p := s.publishedState(ctx, a)
	switch {
	case a.Kind == hub.Builtin:
		r.Add(Agent, Fault, "People of other portals call it by its address: its name, @ and the host of this portal",
			"It is not published: It is part of this portal. Every portal has its own built-in agents.")
		return
	case p.Why != "":
		r.Add(Agent, Fault, "Make it public, and look at `agentsite peers policy` and its tags (local-only "+
			"keeps it here)", "It is not published: %s", p.Why)
		return
	case !p.Listed:
		r.Add(Agent, Fault, "Wait some seconds and ask again; the portal's log says if it cannot be done",
			"Its record %s is signed, but the portal's newest head does not cover it yet.", formatVersion(p.Version))
		return
	}
	head, _ := s.ownHead(ctx)
	r.Add(Agent, OK, "", "It is published: record %s, covered by the head %s.", formatVersion(p.Version),
		formatVersion(head))
	s.checkEntries(ctx, r, a)
	if q.Portal == "" {
		r.Add(Agent, Skipped, "", "Name another portal to check whether the agent is found there.")
		return
	}
	peer, ok := s.checkOther(ctx, r, q.Portal)
	if peer.ID != "" && peer.State != federation.Silent {
		s.takesPart(ctx, r, peer)
	}
	if ok {
		s.checkRecord(ctx, r, peer, a, p)
	}
}

// findOwn finds one of this portal's agents by name. If ok is false, a finding has the reason.
func (s Subject) findOwn(ctx context.Context, r *Report, name string) (found hub.Agent, ok bool) {
	name = weborigin.ReadName(name)
	u, err := url.Parse(s.URL)
	if err == nil {
		name = strings.TrimSuffix(name, "@"+u.Host)
	}
	if s.Agents == nil {
		return found, false
	}
	err = s.Agents.AllAgents(ctx, func(a hub.Agent) bool {
		if a.Portal == "" && a.Name == name {
			found, ok = a, true
		}
		return !ok && ctx.Err() == nil
	})
	switch {
	case err != nil:
		r.Add(Agent, Fault, "agentsite verify", "The portal's agents cannot be read: %v.", err)
	case !ok:
		r.Add(Agent, Fault, "Check the spelling; ask the portal that the agent is registered at.",
			"There is no agent %.80q on this portal.", name)
	default:
		r.Add(Agent, OK, "", "The agent %s is registered here (%s).", found.Name, found.Visibility)
	}
	return found, ok && err == nil
}

// checkOther finds the other portal by name and checks whether the two portals exchange records.
func (s Subject) checkOther(ctx context.Context, r *Report, name string) (federation.Peer, bool) {
	name = weborigin.ReadName(name)
	host := name
	if u, err := url.Parse(name); err == nil && u.Host != "" {
		host = u.Host
	}
	list, err := s.listPeers(ctx)
	if err != nil {
		r.Add(Agent, Fault, "agentsite verify", "The list of other portals cannot be read: %v.", err)
		return federation.Peer{}, false
	}
	var peer federation.Peer
	for _, p := range list {
		if string(p.ID) == name || p.Host() == strings.ToLower(host) &&
			(peer.URL == "" || p.Proved.After(peer.Proved)) {
			peer = p
		}
	}
	switch {
	case peer.URL == "":
		r.Add(Agent, Fault, "agentsite peers add https://"+host,
			"The portal %.80q is not known here, so it may not know this one either.", name)
		return peer, false
	case peer.State == federation.Denied || peer.State == federation.Quarantined:
		r.Add(Agent, Fault, "agentsite peers list shows the reason; agentsite peers allow or release ends it",
			"%s is %s here, so it gets no records: %s", peer.Host(), peer.State, peer.Reason)
		return peer, false
	case peer.State == federation.Pending:
		r.Add(Agent, Note, "agentsite peers allow "+peer.Host(),
			"%s waits here for a decision: %s It may still store this portal's agents.", peer.Host(), peer.Reason)
	case peer.State == federation.Silent:
		r.Add(Agent, Note, "", "%s is silent, as seen from here.", peer.Host())
	default:
		r.Add(Agent, OK, "", "%s is %s, as seen from here.", peer.Host(), peer.State)
	}
	if s.Web == nil {
		r.Add(Agent, Skipped, "", "No request was made.")
		return peer, false
	}
	got := s.askOne(ctx, peer)
	switch {
	case got.err != nil:
		r.Add(Agent, Fault, "Check whether it runs, and this machine's connection.", "%s does not answer: %v.",
			peer.Host(), got.err)
		return peer, false
	case peer.ID != "" && got.id != string(peer.ID):
		r.Add(Agent, Fault, "Ask its operator. If the portal was set up again: agentsite peers forget "+peer.Host()+
			", and add it again", "The portal at %s (%.60s) is not the one that is known there (%s).", peer.Host(),
			got.id, peer.ID)
		return peer, false
	case got.refused != "":
		r.Add(Agent, Fault, "Ask its operator to allow this portal: agentsite peers allow "+string(s.ID),
			"%s refuses this portal. It says %s", peer.Host(), got.refused)
		return peer, false
	}
	own, _ := s.ownHead(ctx)
	switch {
	case !got.known:
		r.Add(Agent, Skipped, "", "The state of this portal at %s is unknown: only a running portal can ask.",
			peer.Host())
	case got.held == record.Version{}:
		r.Add(Agent, Fault, "Wait a minute. If it persists: ask its operator to run `agentsite doctor`",
			"%s has no state of this portal.", peer.Host())
		return peer, false
	case got.held.Compare(own) < 0:
		r.Add(Agent, Note, "Nothing, if this is recent", "%s has the older head %s of this portal.", peer.Host(),
			formatVersion(got.held))
	default:
		r.Add(Agent, OK, "", "%s has the head %s of this portal.", peer.Host(), formatVersion(got.held))
	}
	return peer, true
}

// checkRecord checks that the other portal has the agent's record and that its search finds the agent.
func (s Subject) checkRecord(ctx context.Context, r *Report, peer federation.Peer, agent hub.Agent,
	p federation.Published) {
	if s.Caller != nil && peer.ID != "" {
		ask, cancel := context.WithTimeout(ctx, askFor)
		got, err := s.Caller.Do(ask, peer.URL, peer.ID, http.MethodGet, "/peering/v1/agents/"+string(s.ID)+"/"+
			url.PathEscape(strings.ToLower(agent.ID)), nil, maxAnswer)
		cancel()
		switch {
		case err != nil:
			r.Add(Agent, Fault, "Ask again.", "%s does not answer: %v.", peer.Host(), err)
			return
		case got.Status == http.StatusNotFound:
			r.Add(Agent, Fault, "Wait a minute. If it persists, a quota there prevents it: its operator sees "+
				"that on /admin/peers", "%s does not have the agent's record.", peer.Host())
			return
		case got.Status != http.StatusOK:
			r.Add(Agent, Fault, "Ask again.", "For the agent's record %s answers: %s", peer.Host(), refusalText(got))
			return
		}
		var in struct {
			Record json.RawMessage `json:"record"`
		}
		if json.Unmarshal(got.Body, &in) == nil {
			rec, err := record.Open(s.Network, in.Record)
			switch {
			case err != nil || rec.Portal != s.ID:
				r.Add(Agent, Fault, "Ask its operator to run `agentsite verify`",
					"The agent's record at %s is not from this portal.", peer.Host())
				return
			case rec.Version().Compare(p.Version) < 0:
				r.Add(Agent, Note, "Nothing, if this is recent", "%s has an older record of the agent, %s.",
					peer.Host(), formatVersion(rec.Version()))
			default:
				r.Add(Agent, OK, "", "%s has the agent's record.", peer.Host())
			}
		}
	}
	u, err := url.Parse(s.URL)
	if err != nil {
		return
	}
	handle := agent.Name + "@" + u.Host
	got, err := s.getURL(ctx, peer.URL+"/api/v1/search?"+
		url.Values{"q": {strings.ReplaceAll(agent.Name, "-", " ")}, "portal": {u.Host}, "limit": {"50"}}.Encode())
	switch {
	case err != nil:
		r.Add(Agent, Fault, "Ask again.", "The search of %s does not answer: %v.", peer.Host(), err)
		return
	case got.status == http.StatusUnauthorized || got.status == http.StatusForbidden:
		r.Add(Agent, Skipped, "Search there with an account.", "%s allows no searches by visitors.", peer.Host())
		return
	case got.status != http.StatusOK:
		r.Add(Agent, Skipped, "Ask again.", "The search of %s answers %d.", peer.Host(), got.status)
		return
	}
	var page struct {
		Results []struct {
			Agent struct {
				Handle string `json:"handle"`
			} `json:"agent"`
		} `json:"results"`
	}
	if err := json.Unmarshal(got.body, &page); err != nil {
		r.Add(Agent, Fault, "Ask its operator to check its log.", "The answer of the search of %s cannot be read.",
			peer.Host())
		return
	}
	for _, res := range page.Results {
		if res.Agent.Handle == handle {
			r.Add(Agent, OK, "", "The search of %s finds %s.", peer.Host(), handle)
			return
		}
	}
	// Ask for the handle as well, because the search index need not contain the agent's name as a word.
	if got, err := s.getURL(ctx, peer.URL+"/api/v1/agents/"+url.PathEscape(handle)); err == nil &&
		got.status == http.StatusOK {
		r.Add(Agent, Note, "Search for words in its description.",
			"%s has %s, but a search for its name does not find it.", peer.Host(), handle)
		return
	}
	r.Add(Agent, Fault, "Ask its operator whether its import filter (agentsite peers policy) leaves such agents "+
		"out, or a rule hides this portal.", "The search of %s does not find %s.", peer.Host(), handle)
}
