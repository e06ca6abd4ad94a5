package admin

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"agentsite/internal/federation"
	"agentsite/internal/record"
	"agentsite/templates"
)

func someNetwork(n int) federation.Network {
	net := federation.Network{Self: federation.Peer{ID: "p1self", Name: "Agora", State: federation.Active}}
	states := []federation.State{federation.Active, federation.Active, federation.Active, federation.Silent, federation.Active, federation.Stale, federation.Active, federation.Quarantined}
	for i := range n {
		net.Portals = append(net.Portals, federation.Peer{ID: record.PortalID(fmt.Sprintf("p1%04d", i*7919%10007)), URL: fmt.Sprintf("https://p%d.example", i), Name: fmt.Sprintf("A portal with the name %d", i),
			State: states[i%len(states)], RTT: time.Duration(1+i*37%900) * time.Millisecond, Agents: i * i % 3000})
	}
	return net
}

func TestMap_NothingCoversAnything(t *testing.T) {
	for _, n := range []int{0, 1, 2, 3, 5, 8, 9, 10, 12, 13, 14, 15, 20, 30, 42, 60, 200, 240, 241, 1000} {
		wide, small := someMaps(n)
		checkMap(t, wide, n)
		checkMap(t, small, n)
	}
}

// someMaps returns the maps of someNetwork.
func someMaps(n int) (wide, small templates.NetworkMap) {
	return new(Pages).mapViews(someNetwork(n), templates.PortalRow{Name: "Agora", State: "active", Self: true}, nil)
}

// checkMap checks a map of n portals besides this one.
func checkMap(t *testing.T, v templates.NetworkMap, n int) {
	t.Helper()
	{
		if len(v.Nodes) != min(n, mapMost)+1 || v.Left != max(n-mapMost, 0) || len(v.Lines) > mapMost+maxVouches {
			t.Errorf("of %d portals: %d nodes, %d left, %d lines", n, len(v.Nodes), v.Left, len(v.Lines))
		}
		named := 0
		for i, a := range v.Nodes {
			boxes := []box{dotBox(a)}
			if a.Label != "" {
				named++
				boxes = append(boxes, labelBox(a))
			}
			if a.R < 7 || v.Small && a.R < 8 {
				t.Errorf("of %d: %s is %d wide", n, a.Name, 2*a.R)
			}
			for _, x := range boxes {
				if x.x1 < 0 || x.y1 < 0 || x.x2 > v.Width || x.y2 > v.Height {
					t.Errorf("of %d: %s is beyond the edge: %v", n, a.Name, x)
				}
				for _, b := range v.Nodes[:i] {
					dx, dy, apart := a.X-b.X, a.Y-b.Y, a.R+b.R
					if x == dotBox(a) && dx*dx+dy*dy < apart*apart || x != dotBox(a) && x.overlaps(dotBox(b)) || b.Label != "" && x.overlaps(labelBox(b)) {
						t.Errorf("of %d: %s at %d,%d covers %s at %d,%d", n, a.Name, a.X, a.Y, b.Name, b.X, b.Y)
					}
				}
			}
		}
		if v.Few && named != len(v.Nodes) || named < min(n, 5) {
			t.Errorf("of %d portals %d have names", n, named)
		}
		// It fits its content: something is near each edge.
		if n > 0 && (v.Width > 300+46*n && v.Width > 1100 || v.Height > 1000) ||
			v.Small && (v.Width > 340 || v.Height > 680) {
			t.Errorf("the map of %d portals is %d by %d", n, v.Width, v.Height)
		}
	}
}

// TestMap_FingersHitDots looks for a free circle of 24 units around each dot of the map for phones.
func TestMap_FingersHitDots(t *testing.T) {
	for _, n := range []int{2, 14, 200, 240} {
		_, v := someMaps(n)
		for i, a := range v.Nodes {
			for _, b := range v.Nodes[:i] {
				if dx, dy := a.X-b.X, a.Y-b.Y; dx*dx+dy*dy < 24*24 {
					t.Errorf("of %d: %s at %d,%d is too near %s at %d,%d", n, a.Name, a.X, a.Y, b.Name, b.X, b.Y)
				}
			}
		}
	}
}

func TestMap_StandsStill(t *testing.T) {
	d := new(Pages)
	self := templates.PortalRow{Name: "Agora", State: "active", Self: true}
	net := someNetwork(30)
	where := func() (out []string) {
		wide, small := d.mapViews(net, self, nil)
		for _, n := range slices.Concat(wide.Nodes, small.Nodes) {
			out = append(out, fmt.Sprint(n.ID, n.X, n.Y))
		}
		slices.Sort(out)
		return out
	}
	was := where()
	slices.Reverse(net.Portals)
	for i := range net.Portals {
		if p := &net.Portals[i]; p.RTT > 40*time.Millisecond && p.RTT < 110*time.Millisecond {
			p.RTT += 5 * time.Millisecond
		}
	}
	if now := where(); !slices.Equal(was, now) {
		t.Errorf("it moved:\n%v\n%v", was, now)
	}
}
