package doctor

import "context"

// fewPooled is the minimum number of requests before the doctor reports that gossip does not work.
const fewPooled = 20

// checkGossip checks whether the portal takes part in the gossip pool and its requests are answered.
func (s Subject) checkGossip(ctx context.Context, r *Report) {
	if s.Gossip == nil || !s.knowsPeers() {
		return
	}
	g := s.Gossip.Standing()
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
		r.Add(Gossip, Fault, "Check the log; with --gossip ADDR another program may use that port.",
			"Gossip does not run, so changes of other portals arrive late.")
	case g.Members == 0 && active == 0:
		r.Add(Gossip, Note, "agentsite peers add https://PORTAL", "No other portal gossips with this one.")
	case g.Members == 0 && g.Sent < fewPooled && g.By == "https":
		r.Add(Gossip, Note, "Ask again in a minute.", "The portal has just begun to gossip.")
	case g.Members == 0 && g.Zone == "":
		r.Add(Gossip, Fault, "Check whether they run an older version or with --gossip off; a portal with "+
			"--gossip ADDR gossips only with others that have it too.",
			"No portal gossips with this one, though %s answered.", counted(active, "portal", "portals"))
	case g.By == "https" && g.Sent >= fewPooled && g.Failed > g.Sent/2:
		r.Add(Gossip, Fault, "Check whether a firewall or a proxy keeps this portal from calling others.",
			"%d of %d requests of gossip failed.", g.Failed, g.Sent)
	default:
		r.Add(Gossip, OK, "", "This portal gossips with %s, and %d went away recently; %s.",
			counted(g.Members, "portal", "portals"), g.Gone, zone)
	}
}
