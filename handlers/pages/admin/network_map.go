package admin

import (
	"cmp"
	"math"
	"slices"
	"time"

	"agentsite/internal/federation"
	"agentsite/internal/record"
	"agentsite/templates"
)

// The map is mapWidth by mapHeight pixels. This portal is in the middle, the others are on rings around
// it: the fastest on the inner ring, silent ones on the outer ring. On a ring they are spread evenly by
// id, so that labels do not overlap.
const (
	mapWidth, mapHeight = 960, 560
	// mapMost bounds the portals on the map; the table lists all.
	mapMost = 42
	// namedWhole is the largest number of portals for which the map shows full names and details.
	namedWhole = 14
	// maxVouches bounds the lines between portals that vouch for each other, so that the map stays
	// readable.
	maxVouches = 200
)

// near returns the distance of a portal on the map as a rank from 0. Ranks are coarse, so that small
// changes of the answer time do not move the portal.
func near(p federation.Peer) int {
	switch p.State {
	case federation.Active:
		for i, step := range []time.Duration{30 * time.Millisecond, 120 * time.Millisecond, 500 * time.Millisecond} {
			if p.RTT > 0 && p.RTT < step {
				return i
			}
		}
		return 3
	case federation.Silent:
		return 4
	case federation.Stale:
		return 5
	}
	return 6
}

// ringsFor returns the number of portals on each ring for n portals, the inner ring first.
func ringsFor(n int) []int {
	switch {
	case n <= 9:
		return []int{n}
	case n <= 22:
		inner := (n + 1) * 3 / 8
		return []int{inner, n - inner}
	}
	inner, middle := n*7/mapMost, n*14/mapMost
	return []int{inner, middle, n - inner - middle}
}

// mapView returns the map of the network with at most mapMost portals: those that need attention first,
// then the largest.
func (d *Pages) mapView(net federation.Network, self templates.PortalRow) templates.NetworkMap {
	v := templates.NetworkMap{Width: mapWidth, Height: mapHeight, Few: len(net.Portals) <= namedWhole}
	list := slices.Clone(net.Portals)
	if len(list) > mapMost {
		slices.SortStableFunc(list, func(a, b federation.Peer) int {
			return cmp.Or(cmp.Compare(rarity(a.State), rarity(b.State)), cmp.Compare(agentsOf(b), agentsOf(a)))
		})
		// Portals that need attention get a part of the map only, so that they do not displace all
		// others.
		odd := slices.IndexFunc(list, func(p federation.Peer) bool { return p.State == federation.Active })
		if odd < 0 {
			odd = len(list)
		}
		odd = min(odd, max(mapMost/3, mapMost-(len(list)-odd)))
		active := slices.IndexFunc(list, func(p federation.Peer) bool { return p.State == federation.Active })
		shown := slices.Clone(list[:odd])
		if active >= 0 {
			shown = append(shown, list[active:min(active+mapMost-odd, len(list))]...)
		}
		v.Left = len(list) - len(shown)
		list = shown
	}
	slices.SortStableFunc(list, func(a, b federation.Peer) int {
		return cmp.Or(cmp.Compare(near(a), near(b)), cmp.Compare(a.ID, b.ID))
	})
	centre := templates.MapNode{PortalRow: self, X: mapWidth / 2, Y: mapHeight/2 - 8, R: 24,
		Label: shorten(self.Name, 24)}
	at := map[record.PortalID][2]int{net.Self.ID: {centre.X, centre.Y}}
	rings := ringsFor(len(list))
	for ring, places := range rings {
		on := list[:places]
		list = list[places:]
		slices.SortStableFunc(on, func(a, b federation.Peer) int { return cmp.Compare(a.ID, b.ID) })
		for i, p := range on {
			x, y := spot(ring, len(rings), i, places)
			at[p.ID] = [2]int{x, y}
			row := d.portalRow(p)
			node := templates.MapNode{PortalRow: row, X: x, Y: y, R: 7 + int(min(math.Sqrt(float64(agentsOf(p)))/3, 7)),
				Label: shorten(row.Name, 11)}
			if v.Few {
				node.R, node.Label = 8+int(min(math.Sqrt(float64(agentsOf(p)))/2, 11)), shorten(row.Name, 18)
			}
			v.Nodes = append(v.Nodes, node)
			v.Lines = append(v.Lines, templates.MapLine{X1: centre.X, Y1: centre.Y, X2: x, Y2: y,
				State: string(p.State)})
		}
	}
	for _, l := range net.Links[:min(len(net.Links), maxVouches)] {
		a, ok := at[l.From]
		b, also := at[l.To]
		if ok && also {
			v.Lines = append(v.Lines, templates.MapLine{X1: a[0], Y1: a[1], X2: b[0], Y2: b[1], Vouch: true})
		}
	}
	v.Nodes = append(v.Nodes, centre)
	return v
}

// rarity returns the rank of a state for the selection: states that need attention come first.
func rarity(s federation.State) int {
	return slices.Index([]federation.State{federation.Quarantined, federation.Silent, federation.Stale,
		federation.Active}, s)
}

// spot returns the coordinates of place i on a ring. Every second ring is rotated by half a place, so
// that lines to the outer portals pass between the inner ones.
func spot(ring, rings, i, places int) (x, y int) {
	share := float64(ring+1) / float64(rings)
	if rings == 1 {
		share = .75
	}
	angle := 2*math.Pi*(float64(i)+.5*float64((ring+1)%2))/float64(places) - math.Pi/2
	return mapWidth/2 + int(math.Round(share*(mapWidth/2-76)*math.Cos(angle))),
		mapHeight/2 - 8 + int(math.Round(share*(mapHeight/2-52)*math.Sin(angle)))
}
