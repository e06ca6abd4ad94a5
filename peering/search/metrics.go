package search

import (
	"github.com/prometheus/client_golang/prometheus"

	"agentsite/internal/federation"
	"agentsite/internal/meter"
)

// metrics counts the results of remote searches, by portals and by searches.
type metrics struct {
	// searches is by outcome: "all" counts searches that asked at least one portal, "late" those of them that ended
	// before all answered, "limited" those that asked fewer portals than they should.
	searches *prometheus.CounterVec
	// portals counts portals by outcome (asked, answered in time), once for each search.
	portals *prometheus.CounterVec
}

func newMetrics() metrics {
	return metrics{
		searches: meter.NewCounters("agentsite_searches_wide_total", "Searches that asked other portals: all, those that "+
			"ended before all had answered, and those that could not ask all.", "outcome", "all", "late", "limited"),
		portals: meter.NewCounters("agentsite_search_portals_total",
			"Portals that searches asked, and those that answered in time.", "outcome", "asked", "answered"),
	}
}

// ListCollectors returns the Prometheus collectors of the Searcher, for registration by the caller.
func (s *Searcher) ListCollectors() []prometheus.Collector {
	return []prometheus.Collector{s.metrics.searches, s.metrics.portals}
}

// ListCollectors returns the Prometheus collectors of the Resolver, for registration by the caller.
func (k *Resolver) ListCollectors() []prometheus.Collector { return []prometheus.Collector{k.outcomes} }

func (m *metrics) countSearch(c federation.Coverage, late bool) {
	m.searches.WithLabelValues("all").Inc()
	m.portals.WithLabelValues("asked").Add(float64(c.Asked))
	m.portals.WithLabelValues("answered").Add(float64(c.Answered))
	if late {
		m.searches.WithLabelValues("late").Inc()
	}
	if c.Limited {
		m.searches.WithLabelValues("limited").Inc()
	}
}
