package admin

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"agentsite/internal/federation"
	"agentsite/templates"
)

func TestAdvice(t *testing.T) {
	peer := func(n int, s federation.State) federation.Peer {
		return federation.Peer{URL: fmt.Sprintf("https://p%d.example", n), State: s}
	}
	list := func(n int, s federation.State) (out []federation.Peer) {
		for i := range n {
			out = append(out, peer(i, s))
		}
		return out
	}
	full := peer(1, federation.Active)
	full.Truncated = true
	pinned, gone := peer(1, federation.Silent), peer(1, federation.Stale)
	pinned.Rule.Stand, gone.Rule.Stand = federation.Pin, federation.Allow
	bars := func(n int, why federation.Reason) federation.Peer {
		p := peer(n, federation.Active)
		p.Bars, p.BarsWhy = why, "Advertising."
		return p
	}
	both := bars(1, federation.ReasonDenied)
	both.State = federation.Denied
	for _, c := range []struct {
		name    string
		list    []federation.Peer
		summing bool
		want    []string // how each begins
	}{
		{"all is well", list(20, federation.Active), false, nil},
		{"a liar", list(1, federation.Quarantined), false, []string{"p0.example was proved to lie."}},
		{"over its quota", []federation.Peer{full}, false, []string{"p1.example has more agents than its quota"}},
		{"no agents are kept of any", []federation.Peer{full}, true, nil},
		{"pinned and silent", []federation.Peer{pinned, peer(2, federation.Active)}, false, []string{"p1.example is pinned and does not answer."}},
		{"silent", append(list(9, federation.Active), peer(9, federation.Silent)), false, nil},
		{"gone, and allowed", []federation.Peer{gone}, false, []string{"p1.example has not renewed the signature"}},
		{"gone", list(1, federation.Stale), false, nil},
		{"three wait", list(3, federation.Pending), false, []string{"p0.example waits", "p1.example waits", "p2.example waits"}},
		{"more wait", list(4, federation.Pending), false, []string{"p0.example waits", "p1.example waits", "p2.example waits", "4 portals wait"}},
		{"half is silent", append(list(3, federation.Silent), list(3, federation.Active)...), false, []string{"Half of all portals"}},
		{"it refuses this one", []federation.Peer{bars(1, federation.ReasonDenied), bars(2, federation.ReasonPending), bars(3, federation.ReasonQuarantined)}, false,
			[]string{"p1.example shuts this portal out: “Advertising.”", "p2.example has yet to let this portal in: “", "p3.example holds this portal for a liar: “"}},
		{"many do", []federation.Peer{bars(1, federation.ReasonDenied), bars(2, federation.ReasonDenied), bars(3, federation.ReasonDenied), bars(4, federation.ReasonDenied)}, false,
			[]string{"p1.example shuts", "p2.example shuts", "p3.example shuts", "4 portals refuse this one."}},
		{"both refuse each other", []federation.Peer{both}, false, nil},
		{"less than half is silent", append(list(3, federation.Silent), list(4, federation.Active)...), false, nil},
	} {
		got := adviceOf(c.list, c.summing)
		if !slices.EqualFunc(got, c.want, func(a templates.Advice, b string) bool { return strings.HasPrefix(a.Text, b) }) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	if n := len(adviceOf(list(50, federation.Quarantined), false)); n != maxAdvice {
		t.Errorf("%d about 50 liars", n)
	}
}
