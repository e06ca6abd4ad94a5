package peering

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

// ListCollectors returns the metrics that the parts of the Node count.
func (n *Node) ListCollectors() []prometheus.Collector {
	return slices.Concat([]prometheus.Collector{n.calls}, n.Gate.ListCollectors(),
		n.Guard.ListCollectors(), n.Client.ListCollectors(), n.Searcher.ListCollectors(), n.Resolver.ListCollectors())
}
