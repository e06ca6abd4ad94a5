package admin

import (
	"fmt"
	"slices"
	"testing"
	"time"
	"unicode/utf8"

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

// taken is what a node takes up with what is written below it.
func taken(n templates.MapNode, few bool) (x1, y1, x2, y2 int) {
	half := 7 * utf8.RuneCountInString(n.Label) / 2
	if few {
		half = 8 * utf8.RuneCountInString(n.Label) / 2
	}
	half = max(half, n.R)
	return n.X - half, n.Y - n.R, n.X + half, n.Y + n.R + 17
}

func TestMap_NothingCoversAnything(t *testing.T) {
	d := new(Pages)
	for _, n := range []int{0, 1, 2, 3, 5, 8, 9, 10, 12, 14, 15, 20, 22, 23, 30, 42, 43, 60, 1000} {
		v := d.mapView(someNetwork(n), templates.PortalRow{Name: "Agora", State: "active", Self: true})
		if len(v.Nodes) != min(n, mapMost)+1 || v.Left != max(n-mapMost, 0) || len(v.Lines) > mapMost+maxVouches {
			t.Errorf("of %d portals: %d nodes, %d left, %d lines", n, len(v.Nodes), v.Left, len(v.Lines))
		}
		for i, a := range v.Nodes {
			ax1, ay1, ax2, ay2 := taken(a, v.Few)
			if ax1 < 0 || ay1 < 0 || ax2 > v.Width || ay2 > v.Height {
				t.Errorf("of %d: %s is beyond the edge: %d,%d to %d,%d", n, a.Name, ax1, ay1, ax2, ay2)
			}
			for _, b := range v.Nodes[:i] {
				if bx1, by1, bx2, by2 := taken(b, v.Few); ax1 < bx2 && bx1 < ax2 && ay1 < by2 && by1 < ay2 {
					t.Errorf("of %d: %s at %d,%d covers %s at %d,%d", n, a.Name, a.X, a.Y, b.Name, b.X, b.Y)
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
		for _, n := range d.mapView(net, self).Nodes {
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
