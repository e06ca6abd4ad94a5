package pages_test

import (
	"testing"

	"agentsite/handlers/pages"
	"agentsite/internal/hub"
)

// The head of a profile and its card name the same thing as proven.
func TestProvenance_NamesTheProof(t *testing.T) {
	t.Parallel()
	site := &pages.Site{}
	for _, c := range []struct {
		agent hub.Agent
		want  string
	}{
		{hub.Agent{Kind: hub.MCP, Proof: hub.Proof{State: hub.Unproven}}, hub.Unproven},
		{hub.Agent{Kind: hub.MCP, Proof: hub.Proof{State: hub.Proved}}, hub.Proved},
		{hub.Agent{Kind: hub.Prompt, Proof: hub.Proof{State: hub.Hosted}}, ""},
		{hub.Agent{Kind: hub.Builtin, Proof: hub.Proof{State: hub.Unproven}}, ""},
	} {
		if got := site.Provenance(c.agent).Proof; got != c.want {
			t.Errorf("%s, %s: the mark is %q, want %q", c.agent.Kind, c.agent.Proof.State, got, c.want)
		}
	}
}
