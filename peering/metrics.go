package peering

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

// ListCollectors returns the Prometheus collectors of the Node and its parts, for registration by the
// caller.
func (n *Node) ListCollectors() []prometheus.Collector {
	return slices.Concat([]prometheus.Collector{n.calls}, n.Gate.ListCollectors(),
		n.Guard.ListCollectors(), n.Client.ListCollectors(), n.Searcher.ListCollectors(), n.Resolver.ListCollectors())
}
