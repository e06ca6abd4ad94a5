package admin

import (
	"cmp"
	"math"
	"slices"

	"agentsite/internal/federation"
	"agentsite/templates"
)

// The map of phones is about 330 units wide, which are nearly pixels there: dots of at least 16, far enough apart for
// fingers.
const (
	smallMargin = 6
	// smallStep is the distance of cells of the honeycomb in a row; rows are rowStep apart. A dot has a radius of at most
	// 11, so that dots do not touch.
	smallStep, rowStep = 25, 22
	// smallReach is how far from the middle dots and labels reach to the sides.
	smallReach = 158
	// smallLabels is the number of the largest portals that are named among many.
	smallLabels = 6
	// sideStep is the distance of portals below each other at the sides of a map of few.
	sideStep = 46
)

// smallMap returns the map for phones without lines, not fitted yet. Few portals stand at both sides below this one,
// with their names outside. Many fill a honeycomb around this portal, the nearest inside; the largest are named, and the
// cells under their names stay free.
func smallMap(list []federation.Peer, rows []templates.PortalRow, self templates.PortalRow) templates.NetworkMap {
	v := templates.NetworkMap{Small: true, Few: len(list) <= namedWhole}
	centre := templates.MapNode{PortalRow: self, R: 17, Label: shortenHost(self.Name, 22), Anchor: labelAbove}
	if v.Few {
		for i, p := range list {
			x, y, anchor := sideSpot(i, len(list))
			room := 12
			if anchor == labelBelow {
				room = 22 // beside it there is nothing
			}
			v.Nodes = append(v.Nodes, templates.MapNode{PortalRow: rows[i], X: x, Y: y, Anchor: anchor,
				R: 9 + int(min(math.Sqrt(float64(agentsOf(p)))/3, 6)), Label: shortenHost(rows[i].Name, room)})
		}
		v.Nodes = append(v.Nodes, centre)
		return v
	}
	centre.R, centre.Label, centre.Anchor = 14, shortenHost(self.Name, 12), labelBelow
	h := honeycomb{taken: []box{dotBox(centre)}, labels: []box{labelBox(centre)}, cells: newCells()}
	named := largest(list, smallLabels)
	for i, p := range list {
		node := templates.MapNode{PortalRow: rows[i], R: 8 + int(min(math.Sqrt(float64(agentsOf(p)))/8, 3))}
		if named[i] {
			node.Label = shortenHost(rows[i].Name, 12)
		}
		v.Nodes = append(v.Nodes, h.place(node))
	}
	v.Nodes = append(v.Nodes, centre)
	return v
}

// largest returns the indexes of the n portals with the most agents.
func largest(list []federation.Peer, n int) map[int]bool {
	order := make([]int, len(list))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(agentsOf(list[b]), agentsOf(list[a])) })
	out := make(map[int]bool)
	for _, i := range order[:min(n, len(order))] {
		out[i] = true
	}
	return out
}

// sideSpot returns the coordinates of place i of n, and the side of its label. They alternate between right and left and
// go down from this portal at 0, bowed outward. A single portal is below this one.
func sideSpot(i, n int) (x, y int, anchor string) {
	if n == 1 {
		return 0, 90, labelBelow
	}
	rows := float64((n + 1) / 2)
	at := float64(i/2) + .25*float64(i%2*2) // the left is half a row lower, so that lines do not meet
	bow := math.Sin(math.Pi * (at + .5) / (rows + .5))
	x, y = 28+int(math.Round(20*bow)), 48+int(math.Round(sideStep*at))
	if i%2 == 1 {
		return -x, y, labelBefore
	}
	return x, y, labelAfter
}

// honeycomb assigns cells around the origin to dots and their labels.
type honeycomb struct {
	taken, labels []box
	cells         [][2]int // free cells, the nearest first
}

// place returns the node at the first free cell; one with a label at the first where that has room too, without its
// label if there is none.
func (h *honeycomb) place(n templates.MapNode) templates.MapNode {
	for i, cell := range h.cells {
		n.X, n.Y = cell[0], cell[1]
		if n.Label != "" && !h.fitsLabel(&n) || slices.ContainsFunc(h.labels, dotBox(n).overlaps) ||
			dotBox(n).overlaps(h.taken[0]) {
			continue
		}
		h.cells = slices.Delete(h.cells, i, i+1)
		h.taken = append(h.taken, dotBox(n))
		if n.Label != "" {
			h.labels = append(h.labels, labelBox(n))
		}
		return n
	}
	n.Label = "" // there are more cells than portals, so only the label can lack room
	return h.place(n)
}

// fitsLabel finds a side for the label of a node, and reports whether there is one.
func (h *honeycomb) fitsLabel(n *templates.MapNode) bool {
	for _, n.Anchor = range []string{labelAfter, labelBefore} {
		l := labelBox(*n)
		if l.x1 >= -smallReach && l.x2 <= smallReach && !slices.ContainsFunc(h.labels, l.overlaps) &&
			!slices.ContainsFunc(h.taken, l.overlaps) {
			return true
		}
	}
	return false
}

// newCells returns the cells of a honeycomb as wide as a phone around 0, the nearest first. Those above and below count
// as nearer, so that many portals make a map that is higher than wide.
func newCells() (cells [][2]int) {
	const rows = 24 // 49 rows of 11 or 12 cells: more than twice of mapMost, for the cells under labels
	for row := -rows; row <= rows; row++ {
		shift := 0
		if row%2 != 0 {
			shift = smallStep / 2
		}
		for x := -smallReach/smallStep*smallStep + shift; x+11 <= smallReach; x += smallStep {
			if x-11 >= -smallReach {
				cells = append(cells, [2]int{x, row * rowStep})
			}
		}
	}
	away := func(c [2]int) float64 { return math.Hypot(float64(c[0]), .85*float64(c[1])) }
	slices.SortStableFunc(cells, func(a, b [2]int) int { return cmp.Compare(away(a), away(b)) })
	return cells
}
