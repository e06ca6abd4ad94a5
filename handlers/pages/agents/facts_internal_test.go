package agents

import (
	"strings"
	"testing"

	"agentsite/handlers/address"
	"agentsite/handlers/pages"
	"agentsite/internal/hub"
)

func TestFacts_SpeakOfNoOwnerWhereThereIsNone(t *testing.T) {
	site := pages.NewSite(address.Portal{}, nil, hub.New(hub.Ports{}, hub.Config{Portal: "portal.test"}), nil, nil, nil, nil)
	a := hub.Agent{Kind: hub.MCP, Endpoint: "https://tools.example/mcp", Proof: hub.Proof{State: hub.Unproven}}
	for _, c := range []struct{ owner, publisher, says string }{
		{"ann", "", "ann"}, {"", "example.com", "example.com"}, {"", "", "unknown"},
	} {
		a.OwnerName, a.Publisher = c.owner, c.publisher
		goes, proof := site.TextGoesTo(a), proofText(a)
		if !strings.Contains(goes, "tools.example") || !strings.Contains(goes, c.says) {
			t.Errorf("owner %q, publisher %q: %q", c.owner, c.publisher, goes)
		}
		if strings.Contains(goes+proof, "owner") != (c.owner != "") {
			t.Errorf("owner %q, publisher %q: %q, %q", c.owner, c.publisher, goes, proof)
		}
		if !strings.HasPrefix(proof, "Unproven") {
			t.Errorf("an agent that nothing proves is said to be %q", proof)
		}
	}
}
