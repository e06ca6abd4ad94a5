package doctor

import (
	"context"

	"agentsite/internal/federation"
)

const (
	// fewSent is the minimum number of requests before the doctor reports that too few are answered, or
	// that nothing was published.
	fewSent = 50
	// fewFailed is the minimum number of failures before the doctor reports that no portal answers.
	fewFailed = 3
)

// countActive counts the other known portals that answer. ok is false if they cannot be read, which
// another check reports.
func (s Subject) countActive(ctx context.Context) (n int, ok bool) {
	list, err := s.Known(ctx)
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

// checkDHT checks the portal's participation in the DHT.
func (s Subject) checkDHT(ctx context.Context, r *Report) {
	if s.DHT == nil || s.Known == nil {
		return
	}
	d := s.DHT()
	active, ok := s.countActive(ctx)
	if !ok {
		return
	}
	switch {
	case d.Nodes == 0 && active == 0:
		r.Add(DHT, Note, "agentsite peers add https://PORTAL", "The portal is alone in the DHT: it knows no other that answers.")
	case d.Nodes == 0 && d.Failed < fewFailed || d.Keys == 0 && d.Sent < fewSent:
		r.Add(DHT, Note, "Ask again in a minute.", "The portal has just begun to take part in the DHT.")
	case d.Nodes == 0:
		r.Add(DHT, Fault, "Look whether they are of an older version, and whether they reach this portal: agentsite doctor there.", "Of the %d portals that answer, none of the other portals takes part in the DHT with this one.", active)
	case d.Sent >= fewSent && d.Failed > d.Sent/2:
		r.Add(DHT, Fault, "Look whether a firewall or a proxy keeps this portal from calling others; a second portal elsewhere tells whether it is they.", "Of %d requests of the DHT nobody answered %d.", d.Sent, d.Failed)
	case d.Keys == 0:
		r.Add(DHT, Fault, "agentsite keys list; a portal that may sign nothing publishes nothing.", "The portal has signed nothing yet, so nothing of it is in the DHT.")
	default:
		r.Add(DHT, OK, "", "%d portals in the table of the DHT, about %d take part; %d keys are seen to, %d records kept for others.", d.Nodes, d.Size, d.Keys, d.Held)
	}
}
