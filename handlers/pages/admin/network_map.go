package admin

import (
	"cmp"
	"math"
	"slices"
	"time"
	"unicode/utf8"

	"agentsite/internal/federation"
	"agentsite/internal/record"
	"agentsite/templates"
)

// The map of wide screens is as large as its content. This portal is in the middle. Few portals are on one ring around
// it, each with its name beside it; many are on a spiral, the nearest inside, with the names that have room. Phones have
// a map of their own, see smallMap.
const (
	// mapMost bounds the portals on the map; the table lists all.
	mapMost = 240
	// namedWhole is the largest number of portals on a ring.
	namedWhole = 14
	// maxVouches bounds the lines between portals that vouch for each other, so that the map stays readable.
	maxVouches = 200
	// dotStep is the distance scale of the spiral in units of the map, which are pixels.
	dotStep = 22
	// mapStretch is how much wider than high the spiral is.
	mapStretch = 1.2
	// labelReach is how far from the middle labels reach at most on a spiral, so that it is not drawn smaller.
	labelReach = 385
	// mapMargin is the space around the content.
	mapMargin = 18
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

// mapViews returns the maps of the network for wide screens and for phones. work has the number of the viewer's tasks at
// agents of each portal.
func (d *Pages) mapViews(net federation.Network, self templates.PortalRow,
	work map[string]int) (wide, small templates.NetworkMap) {
	list, left := choosePortals(net.Portals)
	rows := make([]templates.PortalRow, len(list))
	for i, p := range list {
		rows[i] = withWork(d.portalRow(p), work)
	}
	wide, small = wideMap(list, rows, self), smallMap(list, rows, self)
	wide.Left, small.Left = left, left
	for _, v := range []*templates.NetworkMap{&wide, &small} {
		fitMap(v)
		addLines(v, net, list)
	}
	return wide, small
}

// choosePortals returns at most mapMost portals in the order of near: those that need attention and the largest. left is
// the number of the others.
func choosePortals(list []federation.Peer) (shown []federation.Peer, left int) {
	list = slices.Clone(list)
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
		left = len(list) - len(shown)
		list = shown
	}
	slices.SortStableFunc(list, func(a, b federation.Peer) int {
		return cmp.Or(cmp.Compare(near(a), near(b)), cmp.Compare(a.ID, b.ID))
	})
	return list, left
}

// wideMap returns the map for wide screens without lines, not fitted yet. rows describe the portals of list.
func wideMap(list []federation.Peer, rows []templates.PortalRow, self templates.PortalRow) templates.NetworkMap {
	v := templates.NetworkMap{Few: len(list) <= namedWhole}
	centre := templates.MapNode{PortalRow: self, R: 20, Label: shortenHost(self.Name, 24), Anchor: labelBelow}
	if len(list) == 1 {
		centre.Anchor = labelBefore
	}
	for i, p := range list {
		x, y := ringSpot(i, len(list))
		if !v.Few {
			x, y = spiralSpot(i)
		}
		node := templates.MapNode{PortalRow: rows[i], X: x, Y: y, Anchor: labelAfter,
			R: 8 + int(min(math.Sqrt(float64(agentsOf(p)))/3, 7)), Label: shortenHost(rows[i].Name, 14)}
		if v.Few {
			node.R, node.Label = 9+int(min(math.Sqrt(float64(agentsOf(p)))/2, 11)), shortenHost(rows[i].Name, 18)
		}
		if x < 0 {
			node.Anchor = labelBefore
		}
		v.Nodes = append(v.Nodes, node)
	}
	v.Nodes = append(v.Nodes, centre)
	if !v.Few {
		dropLabels(v.Nodes)
	}
	return v
}

// addLines adds the lines from this portal, the last node, to the others, and those between portals that vouch for each
// other. A small map of many portals has only lines with a meaning of their own.
func addLines(v *templates.NetworkMap, net federation.Network, list []federation.Peer) {
	centre := v.Nodes[len(v.Nodes)-1]
	at := map[record.PortalID]templates.MapNode{net.Self.ID: centre}
	for i, p := range list {
		n := v.Nodes[i]
		at[p.ID] = n
		if v.Small && !v.Few && n.Work == "" {
			continue
		}
		v.Lines = append(v.Lines, templates.MapLine{X1: centre.X, Y1: centre.Y, X2: n.X, Y2: n.Y, State: string(p.State),
			Work: n.Work != ""})
	}
	for _, l := range net.Links[:min(len(net.Links), maxVouches)] {
		a, ok := at[l.From]
		b, also := at[l.To]
		if ok && also {
			v.Lines = append(v.Lines, templates.MapLine{X1: a.X, Y1: a.Y, X2: b.X, Y2: b.Y, Vouch: true})
		}
	}
}

// The places of a label: to the right of its dot, to the left, below or above it.
const (
	labelAfter  = "start"
	labelBefore = "end"
	labelBelow  = "middle"
	labelAbove  = "above"
)

// box is the space that a node or its label takes up.
type box struct{ x1, y1, x2, y2 int }

func (b box) overlaps(o box) bool { return b.x1 < o.x2 && o.x1 < b.x2 && b.y1 < o.y2 && o.y1 < b.y2 }

func dotBox(n templates.MapNode) box { return box{n.X - n.R, n.Y - n.R, n.X + n.R, n.Y + n.R} }

// labelBox returns the space of a label and the line below it, by an upper bound of the width of its letters.
func labelBox(n templates.MapNode) box {
	width := 8 * max(utf8.RuneCountInString(n.Label), 12)
	switch n.Anchor {
	case labelBefore:
		return box{n.X - n.R - 6 - width, n.Y - 15, n.X - n.R - 4, n.Y + 17}
	case labelBelow:
		return box{n.X - width/2, n.Y + n.R + 2, n.X + width/2, n.Y + n.R + 34}
	case labelAbove:
		return box{n.X - width/2, n.Y - n.R - 34, n.X + width/2, n.Y - n.R - 2}
	}
	return box{n.X + n.R + 4, n.Y - 15, n.X + n.R + 6 + width, n.Y + 17}
}

// dropLabels leaves out the labels that would cover a dot or a label before them. The label of the last node, this
// portal, comes first, then those of the largest portals.
func dropLabels(nodes []templates.MapNode) {
	order := make([]int, len(nodes))
	for i := range nodes {
		order[i] = len(nodes) - 1 - i
	}
	slices.SortStableFunc(order[1:], func(a, b int) int { return cmp.Compare(nodes[b].R, nodes[a].R) })
	reach := labelReach
	for _, n := range nodes {
		reach = max(reach, n.X+n.R, n.R-n.X)
	}
	var labels []box
	for _, i := range order {
		l := labelBox(nodes[i])
		free := l.x1 >= -reach && l.x2 <= reach && !slices.ContainsFunc(labels, l.overlaps)
		for j := 0; free && j < len(nodes); j++ {
			free = j == i || !l.overlaps(dotBox(nodes[j]))
		}
		if free {
			labels = append(labels, l)
		} else {
			nodes[i].Label = ""
		}
	}
}

// fitMap moves the nodes so that the map begins at 0, and sets its size to that of its content.
func fitMap(v *templates.NetworkMap) {
	var all box
	for i, n := range v.Nodes {
		boxes := []box{dotBox(n)}
		if n.Label != "" {
			boxes = append(boxes, labelBox(n))
		}
		for j, b := range boxes {
			if i == 0 && j == 0 {
				all = b
			}
			all = box{min(all.x1, b.x1), min(all.y1, b.y1), max(all.x2, b.x2), max(all.y2, b.y2)}
		}
	}
	margin := mapMargin
	if v.Small {
		margin = smallMargin
	}
	v.Width, v.Height = all.x2-all.x1+2*margin, all.y2-all.y1+2*margin
	for i := range v.Nodes {
		v.Nodes[i].X += margin - all.x1
		v.Nodes[i].Y += margin - all.y1
	}
}

// rarity returns the rank of a state for the selection: states that need attention come first.
func rarity(s federation.State) int {
	return slices.Index([]federation.State{federation.Quarantined, federation.Silent, federation.Stale,
		federation.Active}, s)
}

// ringSpot returns the coordinates of place i of n on a ring around 0. The ring begins half a place beside the top, so
// that the labels of the two uppermost portals point away from each other. A single portal is on the right.
func ringSpot(i, n int) (x, y int) {
	if n == 1 {
		return 170, 0
	}
	angle := 2*math.Pi*(float64(i)+.5)/float64(n) - math.Pi/2
	return int(math.Round(float64(100+14*n) * math.Cos(angle))), int(math.Round(float64(80+17*n) * math.Sin(angle)))
}

// spiralSpot returns the coordinates of place i on a spiral around 0 with the golden angle, which spreads any number of
// dots evenly.
func spiralSpot(i int) (x, y int) {
	radius, angle := dotStep*math.Sqrt(float64(i)+3), float64(i)*math.Pi*(3-math.Sqrt(5))
	return int(math.Round(mapStretch * radius * math.Cos(angle))), int(math.Round(radius * math.Sin(angle)))
}
