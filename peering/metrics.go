package peering

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

// Collectors returns the metrics that the parts of the Node count.
func (n *Node) Collectors() []prometheus.Collector {
	return slices.Concat([]prometheus.Collector{n.calls}, n.Gate.Collectors(),
		n.Guard.Collectors(), n.Client.Collectors(), n.Searcher.Collectors(), n.Resolver.Collectors())
}
