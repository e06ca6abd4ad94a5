package record

import (
	"github.com/prometheus/client_golang/prometheus"

	"agentsite/internal/meter"
)

// metrics counts the decisions of a Gate: admitted and known records, and refusals by reason.
type metrics struct{ records, refused *prometheus.CounterVec }

func newMetrics() metrics {
	return metrics{
		meter.NewCounters("agentsite_records_total", "Records that were looked at, by what became of them.", "outcome",
			"admitted", "known"),
		meter.NewCounters("agentsite_records_refused_total", "Records that were refused, by reason.", "reason", "failed"),
	}
}

// ListCollectors returns the metrics of the Gate for registration.
func (g *Gate) ListCollectors() []prometheus.Collector {
	return []prometheus.Collector{g.metrics.records, g.metrics.refused}
}

// countResult counts one decision of Admit. Errors of the memory count as refused for the reason
// "failed".
func (m *metrics) countResult(fresh bool, err error) {
	switch reason := ReasonOf(err); {
	case reason != "":
		m.refused.WithLabelValues(string(reason)).Inc()
	case err != nil:
		m.refused.WithLabelValues("failed").Inc()
	case fresh:
		m.records.WithLabelValues("admitted").Inc()
	default:
		m.records.WithLabelValues("known").Inc()
	}
}
