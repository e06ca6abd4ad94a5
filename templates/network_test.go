package templates

import (
	"strings"
	"testing"
)

// A portal without registered agents has those that come with every portal, so nothing says that it has none.
func TestPortalRow_CountsAgentsInWords(t *testing.T) {
	for want, r := range map[string]PortalRow{
		"3 agents":             {Agents: "3", HeadAge: "1 min"},
		"1 agent":              {Agents: "1", HeadAge: "1 min"},
		"built-in agents only": {Agents: "0", HeadAge: "1 min"},
		"agents not known yet": {Agents: "0"},
		"0 agents":             {Agents: "0", Self: true},
	} {
		if got := r.agents(); got != want {
			t.Errorf("%+v: %q, want %q", r, got, want)
		}
	}
}

// The operator's list has the words of the public one.
func TestAdminPeers_CountAgentsInWords(t *testing.T) {
	page := string(render(t, adminPeers(AdminPeers{Rows: []PeerRow{
		{PortalRow: PortalRow{Agents: "0", HeadAge: "1 min"}}, {PortalRow: PortalRow{Agents: "0"}},
		{PortalRow: PortalRow{Agents: "3", HeadAge: "1 min"}}}})))
	for _, want := range []string{">built-in only</td>", ">not known yet</td>", ">3</td>"} {
		if !strings.Contains(page, want) {
			t.Errorf("the list lacks %s", want)
		}
	}
}
