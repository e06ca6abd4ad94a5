package guard

import (
	"github.com/prometheus/client_golang/prometheus"

	"agentsite/internal/federation"
	"agentsite/internal/meter"
)

type metrics struct {
	// verified counts requests with a valid signature that were admitted; refused counts refusals by Reason,
	// "failed" for requests that could not be decided.
	verified prometheus.Counter
	refused  *prometheus.CounterVec
}

func newMetrics() metrics {
	return metrics{
		verified: prometheus.NewCounter(prometheus.CounterOpts{Name: "agentsite_peer_requests_total",
			Help: "Accepted requests of other portals."}),
		refused: meter.NewCounters("agentsite_peer_requests_refused_total",
			"Requests of other portals that were refused, by reason.", "reason", "failed"),
	}
}

// ListCollectors returns the metrics of the Guard: counts of its decisions, and gauges of requests and
// nonces.
func (g *Guard) ListCollectors() []prometheus.Collector {
	gauge := func(name, help string, value func() int) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help},
			func() float64 { return float64(value()) })
	}
	return []prometheus.Collector{g.metrics.verified, g.metrics.refused,
		gauge("agentsite_peer_requests_busy", "Requests of other portals that are worked on now.", g.places.countBusy),
		gauge("agentsite_nonces", "Nonces that are remembered.", g.used.countNonces),
		gauge("agentsite_nonces_max", "Nonces that there is room for.", func() int { return maxNonces })}
}

// countRefusal counts a refusal by its reason; nil is not counted.
func (m *metrics) countRefusal(err error) {
	if err == nil {
		return
	}
	reason := "failed"
	if why := federation.RefusalOf(err); why != nil && why.Reason != "" {
		reason = string(why.Reason)
	}
	m.refused.WithLabelValues(reason).Inc()
}
