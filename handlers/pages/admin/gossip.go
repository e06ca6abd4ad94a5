package admin

import (
	"net/http"

	"agentsite/handlers/pages"
	"agentsite/internal/fault"
	"agentsite/internal/federation"
	"agentsite/internal/ident"
)

// gossipView describes the state of this portal in the gossip pool in sentences; none if it does not take
// part.
func (d *Pages) gossipView(r *http.Request, actor ident.Actor) ([]string, error) {
	g, err := d.peers.GossipStanding(r.Context(), actor)
	switch {
	case fault.Is(err, fault.Unavailable):
		return []string{}, nil
	case err != nil:
		return nil, err
	}
	return gossipLines(g), nil
}

// gossipLines describes the state of a portal in the gossip pool in sentences.
func gossipLines(g federation.GossipStanding) []string {
	if !g.Running {
		return []string{"Gossip does not run now; the log states the reason. News of other portals arrives later, but none is lost."}
	}
	first := pages.FormatCounted(g.Members, "portal announces",
		"portals announce") + " to this one which portals are online and which agents changed"
	if g.By != "https" {
		first += ", by UDP and TCP at " + g.By
	}
	if g.Gone > 0 {
		first += "; " + pages.FormatCounted(g.Gone, "other", "others") + " left recently or do not answer"
	}
	if g.Zone != "" {
		first += ". The network is large: the zone of this portal is the portals with ids that begin with the bits " +
			g.Zone
	}
	second := "Since the start it sent news of " + pages.FormatCounted(int(g.Told), "change",
		"changes") + " and received " + pages.FormatNumber(g.Heard) + "; " + pages.FormatCounted(int(g.Sent), "request",
		"requests") + " went to others (" + pages.FormatBytes(g.Out) + "), "
	if g.Failed == 0 {
		second += "and all were answered"
	} else {
		second += "and " + pages.FormatNumber(g.Failed) + " of them failed"
	}
	if g.Refused > 0 {
		second += "; " + pages.FormatCounted(int(g.Refused), "message was", "messages were") + " refused"
	}
	return []string{first + ".", second + "."}
}
