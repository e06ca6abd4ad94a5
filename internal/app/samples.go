package app

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"agentsite/internal/federation"
)

// samples is a list of metric values that were read for one request. It implements prometheus.Collector.
type samples []prometheus.Metric

// Describe implements prometheus.Collector. It sends nothing, because the families depend on the settings.
func (s samples) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector. It sends the values that were read before.
func (s samples) Collect(ch chan<- prometheus.Metric) {
	for _, m := range s {
		ch <- m
	}
}

// addGauge adds a metric without labels whose value may rise and fall.
func (s *samples) addGauge(name, help string, value float64) {
	s.addSample(prometheus.GaugeValue, prometheus.NewDesc(name, help, nil, nil), value)
}

// addCounter adds a metric without labels whose value only rises.
func (s *samples) addCounter(name, help string, value float64) {
	s.addSample(prometheus.CounterValue, prometheus.NewDesc(name, help, nil, nil), value)
}

// addGauges adds a metric whose values may rise and fall, one for each value of a label.
func (s *samples) addGauges(name, help, label string, values map[string]int64) {
	desc := prometheus.NewDesc(name, help, []string{label}, nil)
	for of, value := range values {
		s.addSample(prometheus.GaugeValue, desc, float64(value), of)
	}
}

// addCounters adds a metric whose values only rise, one for each value of a label.
func (s *samples) addCounters(name, help, label string, values map[string]int64) {
	desc := prometheus.NewDesc(name, help, []string{label}, nil)
	for of, value := range values {
		s.addSample(prometheus.CounterValue, desc, float64(value), of)
	}
}

func (s *samples) addSample(kind prometheus.ValueType, desc *prometheus.Desc, value float64, labels ...string) {
	*s = append(*s, prometheus.MustNewConstMetric(desc, kind, value, labels...))
}

// addGossip adds the metrics of the gossip pool. A portal that does not take part has none.
func (s *samples) addGossip(g federation.GossipStanding) {
	s.addGauges("agentsite_gossip_members", "Other portals in the pool that gossips, by whether they are there.",
		"state", map[string]int64{"alive": int64(g.Members), "gone": int64(g.Gone)})
	s.addGauge("agentsite_gossip_queue", "Messages that wait to be handed on.", float64(g.Queued))
	s.addCounters("agentsite_gossip_hints_total", "Hints of new heads.", "way",
		map[string]int64{"told": g.Told, "heard": g.Heard})
	s.addCounter("agentsite_gossip_lost_total", "Members that went, or that others missed.", float64(g.Lost))
	s.addCounters("agentsite_gossip_requests_total",
		"Requests of gossip: sent, those of them that failed, and those of others.", "outcome",
		map[string]int64{"sent": g.Sent, "failed": g.Failed, "asked": g.Asked})
	s.addCounters("agentsite_gossip_bytes_total", "Bytes of their bodies.", "way",
		map[string]int64{"in": g.In, "out": g.Out})
	s.addCounters("agentsite_gossip_messages_refused_total",
		"Messages that were not taken in: those no honest member sends, and those there was no room for.", "reason",
		map[string]int64{"unfit": g.Refused, "full": g.Dropped})
}

// addOverlay adds the metrics of the DHT: the table, the entries, lookups and requests.
func (s *samples) addOverlay(d federation.DHTStanding) {
	s.addGauge("agentsite_dht_nodes", "Portals in the table of the DHT.", float64(d.Nodes))
	s.addGauge("agentsite_dht_size", "Portals that take part in the DHT, a guess.", float64(d.Size))
	s.addGauge("agentsite_dht_keys", "Entries that this portal stores in the DHT.", float64(d.Keys))
	s.addGauge("agentsite_dht_round_seconds", "Interval at which these are refreshed.", d.RoundS)
	s.addGauge("agentsite_dht_records", "Records of the DHT that are kept for others.", float64(d.Held))
	s.addGauge("agentsite_dht_records_bytes", "Their size.", float64(d.Bytes))
	s.addCounters("agentsite_dht_lookups_total",
		"Lookups in the DHT by outcome; second_path are those that took another path.", "outcome",
		map[string]int64{"found": d.Found, "missed": d.Missed, "second_path": d.Second})
	s.addCounters("agentsite_dht_requests_total", "Requests to nodes of the DHT: all, those without an answer, and "+
		"those so late that another node was asked too.", "outcome",
		map[string]int64{"all": d.Sent, "failed": d.Failed, "late": d.Late})
	s.addCounters("agentsite_dht_refused_total", "Records and contacts of the DHT that were refused, by reason.",
		"reason", d.Refused)
}

// addPeer adds the metrics of another portal, labelled with its host.
func (s *samples) addPeer(peer federation.PeerStats) {
	// The other portal chose its host, so the text may be invalid.
	host := strings.ToValidUTF8(peer.Host, "�")
	add := func(kind prometheus.ValueType, name, help string, value float64) {
		s.addSample(kind, prometheus.NewDesc(name, help, []string{"portal"}, nil), value, host)
	}
	add(prometheus.GaugeValue, "agentsite_peer_rtt_seconds",
		"Round trip to a portal, smoothed; for at most 64 portals.", peer.RTT.Seconds())
	add(prometheus.GaugeValue, "agentsite_peer_failures", "How often in a row a portal has not answered.",
		float64(peer.Failures))
	add(prometheus.GaugeValue, "agentsite_peer_lag_seconds", "For how long a newer state of a portal has waited.",
		peer.Lag.Seconds())
	add(prometheus.CounterValue, "agentsite_peer_refused_total", "What a portal sent that was refused.",
		float64(peer.Faults))
}
