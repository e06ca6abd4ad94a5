package app

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"sync"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/federation"
	"agentsite/internal/hosting"
	"agentsite/internal/record"
)

// hostingPolicies implements packages.Policies of the handlers: it asks other portals for their hosting policy, and
// keeps the answers for a while, because pages of packages are read often.
type hostingPolicies struct {
	portal *Portal

	mu    sync.Mutex // guards known
	known map[record.PortalID]knownPolicy
}

// knownPolicy is the answer of a portal, empty if it gave none.
type knownPolicy struct {
	policy hosting.Policy
	until  time.Time
}

const (
	policyTime = 2 * time.Second // a page waits so long
	policyTTL  = 10 * time.Minute
	maxPolicy  = 4 << 10
	// maxKnownPolicies bounds the memory; the portals of this network are fewer.
	maxKnownPolicies = 10_000
)

func newHostingPolicies(p *Portal) *hostingPolicies {
	return &hostingPolicies{portal: p, known: make(map[record.PortalID]knownPolicy)}
}

// PoliciesOf implements packages.Policies of the handlers.
func (h *hostingPolicies) PoliciesOf(ctx context.Context, list []federation.Peer) map[string]hosting.Policy {
	// The answers are kept for other readers too, so the end of this request does not end the questions.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), policyTime)
	defer cancel()
	out := make(map[string]hosting.Policy)
	var mu sync.Mutex // guards out
	var asking sync.WaitGroup
	for _, o := range list {
		asking.Go(func() {
			policy := h.policyOf(ctx, o)
			mu.Lock()
			defer mu.Unlock()
			if policy != "" {
				out[o.Host()] = policy
			}
		})
	}
	asking.Wait()
	return out
}

func (h *hostingPolicies) policyOf(ctx context.Context, o federation.Peer) hosting.Policy {
	h.mu.Lock()
	have, ok := h.known[o.ID]
	h.mu.Unlock()
	if ok && clock.Now().Before(have.until) {
		return have.policy
	}
	policy := h.askPolicy(ctx, o)
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.known) >= maxKnownPolicies {
		clear(h.known)
	}
	h.known[o.ID] = knownPolicy{policy, clock.Now().Add(policyTTL)}
	return policy
}

// askPolicy returns the policy of a portal, empty if it gives none that this release knows.
func (h *hostingPolicies) askPolicy(ctx context.Context, o federation.Peer) hosting.Policy {
	if h.portal.node == nil {
		return ""
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, o.URL+"/api/v1/hosting/policy", nil)
	if err != nil {
		return ""
	}
	resp, err := h.portal.node.Client.Transport(o.ID, o.URL).RoundTrip(req)
	if err != nil {
		return ""
	}
	defer resp.Body.Close()
	var in struct {
		Policy hosting.Policy `json:"policy"`
	}
	if resp.StatusCode != http.StatusOK || json.NewDecoder(io.LimitReader(resp.Body, maxPolicy)).Decode(&in) != nil {
		return ""
	}
	switch in.Policy {
	case hosting.Off, hosting.Own, hosting.List, hosting.Any:
		return in.Policy
	}
	return ""
}
