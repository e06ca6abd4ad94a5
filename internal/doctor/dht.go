package doctor

import (
	"context"

	"agentsite/internal/federation"
)

const (
	// fewSent is the minimum number of requests before the doctor reports that too few are answered, or
	// that nothing was published.
	fewSent = 50
	// fewFailed is the minimum number of failed requests before the doctor reports that no portal
	// answers.
	fewFailed = 3
)

// countActive returns the number of other known portals that answer. ok is false if the portals cannot
// be read; checkPeers reports that.
func (s Subject) countActive(ctx context.Context) (n int, ok bool) {
	list, err := s.listPeers(ctx)
	if err != nil {
		return 0, false
	}
	for _, p := range list {
		if p.State == federation.Active {
			n++
		}
	}
	return n, true
}

// checkDHT checks whether the portal takes part in the DHT, gets answers and publishes its entries.
func (s Subject) checkDHT(ctx context.Context, r *Report) {
	if s.DHT == nil || !s.knowsPeers() {
		return
	}
	d := s.DHT.Standing()
	active, ok := s.countActive(ctx)
	if !ok {
		return
	}
	switch {
	case d.Nodes == 0 && active == 0:
		r.Add(DHT, Note, "agentsite peers add https://PORTAL",
			"The portal is alone in the DHT: no other portal that it knows answers.")
	case d.Nodes == 0 && d.Failed < fewFailed || d.Keys == 0 && d.Sent < fewSent:
		r.Add(DHT, Note, "Ask again in a minute.", "The portal has just begun to take part in the DHT.")
	case d.Nodes == 0:
		r.Add(DHT, Fault, "Check whether they run an older version, and whether they reach this portal: "+
			"agentsite doctor there.", "No portal takes part in the DHT with this one, though %s answered.",
			counted(active, "portal", "portals"))
	case d.Sent >= fewSent && d.Failed > d.Sent/2:
		r.Add(DHT, Fault, "Check whether a firewall or a proxy keeps this portal from calling others; compare "+
			"with a portal in another network.", "Of %d requests of the DHT %d got no answer.", d.Sent, d.Failed)
	case d.Keys == 0:
		r.Add(DHT, Fault, "agentsite keys list; a portal without a valid key cannot publish.",
			"The portal has signed nothing yet, so it has no entries in the DHT.")
	default:
		r.Add(DHT, OK, "", "%s in the table of the DHT, about %d in all; %s, %s stored for others.",
			counted(d.Nodes, "portal", "portals"), d.Size, counted(d.Keys, "own entry", "own entries"),
			counted(d.Held, "record", "records"))
	}
}
