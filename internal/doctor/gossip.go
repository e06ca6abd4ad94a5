package doctor

import "context"

// fewPooled is the minimum number of requests before the doctor reports that gossip does not work.
const fewPooled = 20

// checkGossip checks the portal's participation in the gossip pool.
func (s Subject) checkGossip(ctx context.Context, r *Report) {
	if s.Gossip == nil || s.Known == nil {
		return
	}
	g := s.Gossip()
	active, ok := s.countActive(ctx)
	if !ok {
		return
	}
	zone := "the whole network is one zone"
	if g.Zone != "" {
		zone = "its zone is " + g.Zone
	}
	switch {
	case !g.Running && g.Failures == 0:
		r.Add(Gossip, Note, "Ask again in a minute.", "The portal has just begun, and does not gossip yet.")
	case !g.Running:
		r.Add(Gossip, Fault, "Look into the log; with --gossip ADDR another program may use that port.", "Gossip does not run, so this portal hears late of what changes elsewhere.")
	case g.Members == 0 && active == 0:
		r.Add(Gossip, Note, "agentsite peers add https://PORTAL", "The portal has nobody to gossip with.")
	case g.Members == 0 && g.Sent < fewPooled && g.By == "https":
		r.Add(Gossip, Note, "Ask again in a minute.", "The portal has just begun to gossip.")
	case g.Members == 0 && g.Zone == "":
		r.Add(Gossip, Fault, "Look whether they are of an older version or started with --gossip off; one with --gossip ADDR meets those alone that have that too.", "Of the %d portals that answer, none gossips with this one.", active)
	case g.By == "https" && g.Sent >= fewPooled && g.Failed > g.Sent/2:
		r.Add(Gossip, Fault, "Look whether a firewall or a proxy keeps this portal from calling others.", "Of %d requests of gossip %d failed.", g.Sent, g.Failed)
	default:
		r.Add(Gossip, OK, "", "%d portals gossip with this one, %d are gone of late; %s.", g.Members, g.Gone, zone)
	}
}
