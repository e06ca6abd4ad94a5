package client

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"

	"agentsite/internal/egress"
	"agentsite/internal/meter"
)

// metrics counts the results of requests to other portals. Requests by Transport are not included.
type metrics struct {
	// asked counts requests by outcome: ok, absent, refused, limited, broken or cut, see statusOf, or the
	// egress code of a failed connection.
	asked *prometheus.CounterVec
	// received counts the bytes of all answers after decompression.
	received prometheus.Counter
}

func newMetrics() metrics {
	return metrics{
		asked: meter.NewCounters("agentsite_peer_asked_total", "Requests to other portals, by outcome.", "outcome", "ok"),
		received: prometheus.NewCounter(prometheus.CounterOpts{Name: "agentsite_peer_received_bytes_total",
			Help: "Bytes of other portals' answers, decompressed."}),
	}
}

// ListCollectors returns the Prometheus collectors of the Client, for registration by the caller.
func (c *Client) ListCollectors() []prometheus.Collector {
	return []prometheus.Collector{c.metrics.asked, c.metrics.received}
}

func outcomeOf(err error) string {
	if code := egress.CodeOf(err); code != "" {
		return string(code)
	}
	return "failed"
}

func statusOf(status int, err error) string {
	switch {
	case err != nil:
		return "cut"
	case status < 300:
		return "ok"
	case status == http.StatusTooManyRequests, status == http.StatusServiceUnavailable:
		return "limited"
	case status == http.StatusNotFound:
		return "absent"
	case status < 500:
		return "refused"
	}
	return "broken"
}
