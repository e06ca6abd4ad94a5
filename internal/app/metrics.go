package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"net/netip"
	"runtime"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"

	"agentsite/handlers/respond"
	"agentsite/internal/federation"
	"agentsite/internal/ident"
	"agentsite/internal/weborigin"
	"agentsite/web"
)

// metricsPath is the path of the metrics, on the portal's own address and on the separate one.
const metricsPath = "/metrics"

// answerMetrics serves the metrics on the portal's own address, to operators only.
func (p *Portal) answerMetrics(w http.ResponseWriter, r *http.Request) {
	actor, err := p.callers.Authenticate(r)
	if err == nil {
		err = p.writeMetrics(w, r, actor)
	}
	if err != nil {
		f, code := respond.PrepareError(w, r, p.log, err)
		respond.SetChallenge(w, f)
		http.Error(w, f.Safe, code)
	}
}

// writeMetrics writes the metrics in Prometheus text format. It returns a fault without writing if the
// actor is not the operator or the system.
func (p *Portal) writeMetrics(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	stats, err := p.peers.Stats(r.Context(), actor)
	if err != nil {
		return err
	}
	// A registry for each request, because the samples are of this request. The default registry is not used: it
	// would add families of the runtime and the process.
	registry := prometheus.NewRegistry()
	registry.MustRegister(p.portalSamples())
	registry.MustRegister(p.queue.ListCollectors()...)
	if p.node != nil {
		registry.MustRegister(p.networkSamples(stats), stats.Faults)
		registry.MustRegister(p.node.ListCollectors()...)
		registry.MustRegister(p.portalCalls.ListCollectors()...)
	}
	families, err := registry.Gather()
	if err != nil {
		return fmt.Errorf("collect the metrics: %w", err)
	}
	var b bytes.Buffer
	for _, family := range families {
		if _, err := expfmt.MetricFamilyToText(&b, family); err != nil {
			return fmt.Errorf("write the metric %s: %w", family.GetName(), err)
		}
	}
	w.Header().Set("Content-Type", string(expfmt.NewFormat(expfmt.TypeTextPlain)))
	w.Header().Set("Cache-Control", "no-store")
	w.Write(b.Bytes())
	return nil
}

// portalSamples returns the metrics that every portal has, with or without a network.
func (p *Portal) portalSamples() samples {
	var s samples
	info := prometheus.NewDesc("agentsite_info", "Which portal this is; always 1.", nil,
		prometheus.Labels{"version": Version(), "url": p.URL(), "network": p.set.NetworkName})
	s = append(s, prometheus.MustNewConstMetric(info, prometheus.GaugeValue, 1))
	s.addGauge("agentsite_start_time_seconds", "When the portal started, in seconds since 1970.",
		float64(p.started.UnixMilli())/1000)
	s.addGauge("agentsite_agents", "Listed agents of this portal.", float64(p.hub.Own()))
	s.addGauge("agentsite_database_failed", "1 when the database takes nothing in any more.", gaugeBool(p.db.Err() != nil))
	if p.meanings != nil {
		s.addGauge("agentsite_embeddings_missing",
			"Agents without vectors of the operator's server of embeddings; all before it has answered.",
			float64(p.meanings.Status().Missing))
		s.addGauge("agentsite_embeddings_up", "1 when the server of embeddings answers.",
			gaugeBool(p.meanings.Status().Up))
	}
	scrub := p.scrub.State()
	s.addGauge("agentsite_data_faults", "Damaged parts of the data that the check in the background found.",
		float64(len(scrub.Faults)))
	checked := 0.0
	if !scrub.Completed.IsZero() {
		checked = float64(scrub.Completed.UnixMilli()) / 1000
	}
	s.addGauge("agentsite_data_checked_time_seconds", "When the data was last checked whole, in seconds since 1970; 0 before.",
		checked)
	s.addGauge("agentsite_connections_open", "Open connections of clients.", float64(p.open.Open()))
	s.addGauges("agentsite_connections_held", "Sockets, event streams and calls that wait for an answer.", "kind",
		p.connections.CountOpen())
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	s.addGauge("go_goroutines", "Goroutines.", float64(runtime.NumGoroutine()))
	s.addGauge("go_memstats_heap_alloc_bytes", "Heap in use.", float64(m.HeapAlloc))
	s.addGauge("go_memstats_sys_bytes", "Memory taken from the system.", float64(m.Sys))
	s.addCounter("go_gc_cycles_total", "Garbage collections.", float64(m.NumGC))
	return s
}

func gaugeBool(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// networkSamples returns the metrics of the federation, except those that its packages register as
// collectors themselves.
func (p *Portal) networkSamples(stats federation.Stats) samples {
	var s samples
	n := p.node
	states := map[string]int64{}
	for _, state := range []federation.State{federation.Joining, federation.Pending, federation.Active,
		federation.Silent, federation.Stale, federation.Denied, federation.Quarantined} {
		states[string(state)] = int64(stats.States[state])
	}
	s.addGauges("agentsite_peers", "Other portals, by how they are.", "state", states)
	s.addGauges("agentsite_peer_heads", "Heads of other portals that are known, by whether they still hold.",
		"state", map[string]int64{"current": int64(stats.CurrentHeads), "stale": int64(stats.StaleHeads)})
	s.addGauge("agentsite_peer_oldest_head_seconds", "Age of the oldest head that holds.", stats.OldestHead.Seconds())
	s.addGauge("agentsite_peer_agents_held", "Agents of other portals that are held.", float64(stats.Held))
	s.addGauge("agentsite_peer_agents_listed", "Agents that other portals list.", float64(stats.Listed))
	s.addGauge("agentsite_peers_truncated", "Portals over their quota.", float64(stats.Truncated))
	s.addGauge("agentsite_peers_lagging", "Portals of which a newer state waits.", float64(stats.Lagging))
	off, wrong := n.Client.ClockOff()
	s.addGauge("agentsite_clock_behind_seconds",
		"By how much this clock is behind the median of others; 0 while fewer than three portals report it.",
		off.Seconds())
	s.addGauge("agentsite_clock_wrong", "1 when it is off by 10 seconds or more.", gaugeBool(wrong))
	s.addOverlay(n.Overlay.Standing())
	if n.Gossip != nil {
		s.addGossip(n.Gossip.Standing())
	}
	for _, peer := range stats.Each {
		s.addPeer(peer)
	}
	return s
}

// maxScrapers bounds the connections to the separate address for metrics: a few scrapers, and profiles.
const maxScrapers = 64

// listenMetrics opens the separate address for metrics, if one is configured.
func (p *Portal) listenMetrics() (err error) {
	if p.set.MetricsListen == "" {
		return nil
	}
	if p.scraped, err = net.Listen("tcp", p.set.MetricsListen); err != nil {
		return fmt.Errorf("listen on %s: %w; choose another address with --metrics-listen", p.set.MetricsListen, err)
	}
	return nil
}

// serveMetrics serves metrics and profiles on the separate address until ctx ends. It needs no login: by
// configuring the address the operator allowed every client that can reach it. It returns nil at once
// without such an address.
func (p *Portal) serveMetrics(ctx context.Context) error {
	if p.scraped == nil {
		return nil
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+metricsPath, func(w http.ResponseWriter, r *http.Request) {
		if err := p.writeMetrics(w, r, ident.Actor{Kind: ident.System}); err != nil {
			p.log.Error("write metrics", "error", err)
			http.Error(w, "The metrics cannot be read; the log says why.", http.StatusInternalServerError)
		}
	})
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	err := web.Serve(ctx, p.scraped, p.knownHost(mux), web.ServerConfig{Penalized: p.shun,
		Connections: web.ConnectionLimits{All: maxScrapers, PerAddress: maxScrapers}, Log: p.log})
	if errors.Is(err, net.ErrClosed) && ctx.Err() != nil {
		return nil
	}
	return err
}

// knownHost refuses requests with a Host header other than an IP address, a loopback name or a
// configured name, because a foreign name that resolves to this address (DNS rebinding) must not read
// the metrics.
func (p *Portal) knownHost(next http.Handler) http.Handler {
	given, _, _ := net.SplitHostPort(p.set.MetricsListen)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := strings.ToLower(r.Host)
		if h, _, err := net.SplitHostPort(host); err == nil {
			host = h
		}
		host = strings.Trim(host, "[]")
		if _, err := netip.ParseAddr(host); err != nil && !weborigin.IsLoopback(host) &&
			host != strings.ToLower(given) && host != p.url.Hostname() {
			http.Error(w, "Ask by the address or by the name in --metrics-listen or --url.",
				http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// MetricsAddr returns the listening address of the metrics, or "" if there is none.
func (p *Portal) MetricsAddr() string {
	if p.scraped == nil {
		return ""
	}
	return p.scraped.Addr().String()
}
