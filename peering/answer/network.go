package answer

import (
	"context"
	"strings"

	"agentsite/internal/fault"
	"agentsite/internal/federation"
	"agentsite/internal/hub"
	"agentsite/internal/record"
	"agentsite/peering/catalog"
	"agentsite/peering/search"
)

// NetworkConfig is the configuration of a Network. Every field is required except Searcher.
type NetworkConfig struct {
	// Self is this portal's id, Name the network name in all records.
	Self     record.PortalID
	Name     string
	Replica  federation.Replica
	Registry federation.Registry
	Catalog  *catalog.Catalog
	// Searcher asks portals with agents that are not all held here; nil to ask none.
	Searcher *search.Searcher
}

// Network gives the hub access to agents of other portals: those held here from the Catalog, others by the
// Searcher. It implements hub.Network.
type Network struct {
	*catalog.Catalog
	cfg NetworkConfig
}

var _ hub.Network = (*Network)(nil)

// NewNetwork returns a Network. It sends nothing and starts no goroutines.
func NewNetwork(cfg NetworkConfig) *Network { return &Network{cfg.Catalog, cfg} }

// Find implements hub.Network: it returns an agent by its handle. The policy is checked for each call, so
// that an operator's decision applies at once. An agent that is not held here is requested from its portal,
// for up to some seconds. It returns NotFound if there is none.
func (n *Network) Find(ctx context.Context, name, host string) (hub.Agent, error) {
	host = strings.ToLower(host)
	if a, ok := n.Named(name, host); ok {
		if id, url := n.Owner(a); id == "" || n.cfg.Registry.Decide(ctx, id, url).Show {
			return a, nil
		}
	}
	if n.cfg.Searcher != nil {
		if f, err := n.cfg.Searcher.Open(ctx, name, host); err == nil {
			return f.Agent, nil
		}
	}
	if a, ok := n.Builtin(ctx, name, host); ok {
		return a, nil
	}
	if issued, ok := n.Collapsed(host); ok {
		return hub.Agent{}, fault.New(fault.NotFound,
			"%s has not renewed its word for its agents since %s, so they are left out until it does.", host,
			issued.UTC().Format("2 January 15:04 UTC"))
	}
	return hub.Agent{}, fault.New(fault.NotFound,
		"There is no agent %.80q that is known here. Search for it, or check the spelling.", name+"@"+host)
}
