package hub

import (
	"context"
	"slices"
	"strings"

	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/weborigin"
)

// maxEmbedOrigins is the number of sites that may embed the chat with an agent: one response header lists them all.
const maxEmbedOrigins = 20

// Embeddable returns an agent whose chat other sites may embed. Visitors of those sites are guests, so
// the agent must be public; every other agent gives the same NotFound fault as a missing one.
func (s *Service) Embeddable(ctx context.Context, name string) (Agent, error) {
	a, err := s.Get(ctx, ident.Actor{Kind: ident.Guest}, name)
	if fault.Is(err, fault.NotFound) || err == nil &&
		(len(a.EmbedOrigins) == 0 || a.Visibility != Public || a.Status.State == StatusDraft) {
		return Agent{}, fault.New(fault.NotFound,
			"There is no agent %.80q here that other sites may show. Its owner can allow it.", name)
	}
	return a, err
}

// cleanOrigins returns origins in their canonical form, without duplicates. Invalid ones are kept as
// they are, so that checkOrigins can name them in its error.
func cleanOrigins(in []string) []string {
	out := []string{}
	for _, s := range in {
		s = strings.TrimSpace(s)
		if o, ok := weborigin.Parse(s); ok {
			s = o
		}
		if s != "" && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

func checkOrigins(c *fault.Check, list []string) {
	c.Field(len(list) <= maxEmbedOrigins, "embed_origins", "name at most %d sites", maxEmbedOrigins)
	for _, s := range list {
		_, ok := weborigin.Parse(s)
		c.Field(ok, "embed_origins", "%.80q is no origin of a site; write for example https://www.example.org, without a path (http only for localhost and 127.0.0.1)", s)
	}
}
