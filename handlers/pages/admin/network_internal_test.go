package admin

import (
	"strings"
	"testing"

	"agentsite/internal/federation"
	"agentsite/templates"
)

func TestPortal_SaysWhichAgentsAreShown(t *testing.T) {
	for _, c := range []struct {
		state           federation.State
		agents, listed  int
		everybody, held string
		asks            bool
	}{
		{federation.Active, 3, 3, "<bdi>3</bdi>", "<bdi>3</bdi>", false},
		{federation.Active, 1, 3, "3, not all stored here", "1 of 3", true},
		{federation.Denied, 0, 3, "none is kept, shown or asked here while it is shut out", "none is kept, shown or asked here while it is shut out", false},
		{federation.Denied, 3, 3, "3 kept here, none shown or asked while it is shut out", "3 kept here, none shown", false},
		{federation.Pending, 0, 3, "none is kept, shown or asked here while it waits", "none is kept", false},
		{federation.Quarantined, 1, 3, "1 kept here, none shown or asked until an operator", "1 kept here, none shown", false},
	} {
		d, p := new(Pages), federation.Peer{ID: "p1beth", URL: "https://beth.example", Name: "Beth", State: c.state, Agents: c.agents, Listed: c.listed}
		var everybody, admin strings.Builder
		if err := templates.Portal(templates.Page{}, templates.PortalView{PortalRow: d.portalRow(p)}).Render(t.Context(), &everybody); err != nil {
			t.Fatal(err)
		}
		if err := templates.Admin(templates.Page{}, templates.AdminView{Tab: "peers", Peer: &templates.AdminPeer{PeerRow: d.peerRow(p)}}).Render(t.Context(), &admin); err != nil {
			t.Fatal(err)
		}
		if s := everybody.String(); !strings.Contains(s, c.everybody) || strings.Contains(s, "Ask <bdi>Beth</bdi>") != c.asks {
			t.Errorf("%s, %d of %d: %s", c.state, c.agents, c.listed, s)
		}
		if s := admin.String(); !strings.Contains(s, c.held) {
			t.Errorf("%s, %d of %d, to the operator: %s", c.state, c.agents, c.listed, s)
		}
	}
}

func TestShortenHost_KeepsThePort(t *testing.T) {
	for name, want := range map[string]string{
		"127.0.0.1:18428": "127.0…:18428", "portal.example:80": "portal.e…:80", "Beth's home": "Beth's home",
		"A portal of many words": "A portal of…", "Notes: all": "Notes: all", "a very long name: all of it": "a very long…",
	} {
		if got := shortenHost(name, 12); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}
