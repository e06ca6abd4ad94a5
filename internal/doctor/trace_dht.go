package doctor

import (
	"context"
	"strings"

	"agentsite/internal/federation"
	"agentsite/internal/hub"
)

// checkEntries checks whether portals that do not know this one can find this portal and the agent in
// the DHT: this portal takes part, it published the entries, and other portals store them.
func (s Subject) checkEntries(ctx context.Context, r *Report, a hub.Agent) {
	if s.DHT == nil {
		r.Add(DHT, Skipped, "", "Whether it is found through the DHT can be checked while the portal runs.")
		return
	}
	d := s.DHT.Standing()
	if d.Nodes == 0 {
		r.Add(DHT, Note, "agentsite peers add https://PORTAL",
			"This portal knows no other that takes part in the DHT, so portals that do not know it cannot find "+
				"it there.")
		return
	}
	var unpublished, lost, kept []string
	for _, k := range []struct{ name, what string }{{"the portal by its id", string(s.ID)},
		{"the portal by its host", s.URL}, {"the agent", s.idOf(a)}} {
		got, err := s.DHT.Ask(ctx, k.what)
		switch {
		case err != nil:
			r.Add(DHT, Skipped, "Ask again.", "%s was not looked up: %v.", upperFirst(k.name), err)
		case !got.Own:
			unpublished = append(unpublished, k.name)
		case got.Holders == 0 || !namesPortal(got, s):
			lost = append(lost, k.name)
		default:
			kept = append(kept, k.name)
		}
	}
	young := d.Sent < fewSent
	if len(unpublished) > 0 {
		level, do := Note, "Ask again in a minute. If it persists, the log has the error."
		if d.Keys == 0 && !young {
			level, do = Fault, "agentsite keys list; a portal without a valid key cannot publish."
		}
		r.Add(DHT, level, do, "This portal does not publish in the DHT: %s.", strings.Join(unpublished, ", "))
	}
	if len(lost) > 0 {
		level, do := Fault, "Check whether others reach this portal (agentsite doctor there) and whether nodes "+
			"answer it: agentsite peers dht. The entry is refreshed in each round."
		if young {
			level, do = Note, "Ask again in a minute."
		}
		r.Add(DHT, level, do, "It is published, but no other portal returned it in a DHT lookup: %s.",
			strings.Join(lost, ", "))
	}
	if len(kept) > 0 {
		r.Add(DHT, OK, "", "Found in the DHT at other portals: %s.", strings.Join(kept, ", "))
	}
}

// namesPortal reports whether an answer of the DHT contains this portal's entry.
func namesPortal(a federation.DHTAnswer, s Subject) bool {
	for _, p := range a.Portals {
		if p.ID == s.ID {
			return true
		}
	}
	return false
}

// takesPart checks whether the other portal is in the DHT, because only then can it find unknown agents
// there.
func (s Subject) takesPart(ctx context.Context, r *Report, peer federation.Peer) {
	if s.DHT == nil || s.DHT.Standing().Nodes == 0 {
		return
	}
	got, err := s.DHT.Ask(ctx, string(peer.ID))
	switch {
	case err != nil:
		r.Add(DHT, Skipped, "Ask again.", "%s was not looked up in the DHT: %v.", peer.Host(), err)
	case len(got.Portals) == 0:
		r.Add(DHT, Note, "Ask its operator to run `agentsite doctor`; an older version, or one that has just "+
			"started, does not take part.", "The DHT does not name %s: it may not take part, and then finds no "+
			"portal that it does not know.", peer.Host())
	default:
		r.Add(DHT, OK, "", "%s takes part in the DHT, so it can look there for agents of portals that it does "+
			"not know.", peer.Host())
	}
}

func upperFirst(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
