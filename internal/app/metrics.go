package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"net/netip"
	"runtime"
	"runtime/debug"
	"strings"

	"agentsite/handlers/respond"
	"agentsite/internal/federation"
	"agentsite/internal/ident"
	"agentsite/internal/meter"
	"agentsite/internal/settings"
	"agentsite/peering"
	"agentsite/web"
)

// metricsPath is the path of the metrics, on either address.
const metricsPath = "/metrics"

// answerMetrics answers scrapers on the portal's own address: operators with a token.
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

// writeMetrics answers with the metrics, to actors who may see them.
func (p *Portal) writeMetrics(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	stats, err := p.peers.Stats(r.Context(), actor)
	if err != nil {
		return err
	}
	var t meter.Text
	p.writeGauges(&t)
	if p.node != nil {
		p.networkGauges(&t, stats)
	}
	w.Header().Set("Content-Type", meter.ContentType)
	w.Header().Set("Cache-Control", "no-store")
	w.Write(t.Bytes())
	return nil
}

// writeGauges writes the metrics of every portal.
func (p *Portal) writeGauges(t *meter.Text) {
	t.Gauge("agentsite_info", "Which portal this is; always 1.")
	t.Value("agentsite_info", 1, "version", Version(), "url", p.URL(), "network", p.set.NetworkName)
	t.One(t.Gauge, "agentsite_start_time_seconds", "When the portal started, in seconds since 1970.",
		float64(p.started.UnixMilli())/1000)
	t.One(t.Gauge, "agentsite_agents", "Listed agents of this portal.", float64(p.hub.Own()))
	t.One(t.Gauge, "agentsite_database_failed", "1 when the database takes nothing in any more.",
		gaugeBool(p.db.Err() != nil))
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	t.One(t.Gauge, "go_goroutines", "Goroutines.", float64(runtime.NumGoroutine()))
	t.One(t.Gauge, "go_memstats_heap_alloc_bytes", "Heap in use.", float64(m.HeapAlloc))
	t.One(t.Gauge, "go_memstats_sys_bytes", "Memory taken from the system.", float64(m.Sys))
	var gc debug.GCStats
	debug.ReadGCStats(&gc)
	t.One(t.Counter, "go_gc_cycles_total", "Garbage collections.", float64(gc.NumGC))
}

func gaugeBool(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// networkGauges writes the metrics of the federation.
func (p *Portal) networkGauges(t *meter.Text, s federation.Stats) {
	n := p.node
	states := map[string]int64{}
	for _, state := range []federation.State{federation.Joining, federation.Pending, federation.Active,
		federation.Silent, federation.Stale, federation.Denied, federation.Quarantined} {
		states[string(state)] = int64(s.States[state])
	}
	t.Each(t.Gauge, "agentsite_peers", "Other portals, by how they are.", "state", states)
	t.Each(t.Gauge, "agentsite_peer_heads", "Heads of other portals that are known, by whether they still hold.",
		"state", map[string]int64{"current": int64(s.CurrentHeads), "stale": int64(s.StaleHeads)})
	t.One(t.Gauge, "agentsite_peer_oldest_head_seconds", "Age of the oldest head that holds.", s.OldestHead.Seconds())
	t.One(t.Gauge, "agentsite_peer_agents_held", "Agents of other portals that are held.", float64(s.Held))
	t.One(t.Gauge, "agentsite_peer_agents_listed", "Agents that other portals list.", float64(s.Listed))
	t.One(t.Gauge, "agentsite_peers_truncated", "Portals over their quota.", float64(s.Truncated))
	t.One(t.Gauge, "agentsite_peers_lagging", "Portals of which a newer state waits.", float64(s.Lagging))
	t.Each(t.Counter, "agentsite_peer_faults_total",
		"What portals sent that was refused, by reason; fork, inconsistent and omitted are lies.", "reason", s.Faults)

	gate := n.Gate.Tally()
	t.Each(t.Counter, "agentsite_records_total", "Records that were looked at, by what became of them.", "outcome",
		map[string]int64{"admitted": gate.Admitted, "known": gate.Known})
	t.Each(t.Counter, "agentsite_records_refused_total", "Records that were refused, by reason.", "reason",
		gate.Refused)

	guard := n.Guard.Tally()
	t.One(t.Counter, "agentsite_peer_requests_total", "Accepted requests of other portals.", float64(guard.Verified))
	t.Each(t.Counter, "agentsite_peer_requests_refused_total",
		"Requests of other portals that were refused, by reason.", "reason", guard.Refused)
	t.One(t.Gauge, "agentsite_peer_requests_busy", "Requests of other portals that are worked on now.",
		float64(guard.Busy))
	t.One(t.Gauge, "agentsite_nonces", "Nonces that are remembered.", float64(guard.Nonces))
	t.One(t.Gauge, "agentsite_nonces_max", "Nonces that there is room for.", float64(guard.MaxNonces))

	client := n.Client.Tally()
	t.Each(t.Counter, "agentsite_peer_asked_total", "Requests to other portals, by outcome.", "outcome", client.Asked)
	t.One(t.Counter, "agentsite_peer_received_bytes_total", "Bytes of other portals' answers, decompressed.",
		float64(client.Received))
	off, wrong := n.Client.ClockOff()
	t.One(t.Gauge, "agentsite_clock_behind_seconds",
		"By how much this clock is behind the median of others; 0 while fewer than three portals report it.",
		off.Seconds())
	t.One(t.Gauge, "agentsite_clock_wrong", "1 when it is off by 10 seconds or more.", gaugeBool(wrong))

	overlayGauges(t, n)
	if n.Gossip != nil {
		poolGauges(t, n.Gossip.Standing())
	}
	wide := n.Searcher.Tally()
	t.Each(t.Counter, "agentsite_search_portals_total", "Portals that searches asked, and those that answered in time.",
		"outcome", map[string]int64{"asked": wide.Asked, "answered": wide.Answered})
	t.Each(t.Counter, "agentsite_searches_wide_total",
		"Searches that asked other portals: all, those that ended before all had answered, and those that could not ask all.", "outcome", map[string]int64{"all": wide.Searches, "late": wide.Late, "limited": wide.Limited})
	allowed, refused := p.portalCalls.Tally()
	t.One(t.Counter, "agentsite_calls_in_total", "Accepted requests about calls of other portals' people.",
		float64(allowed))
	t.Each(t.Counter, "agentsite_calls_in_refused_total", "Those that were refused, by reason.", "reason", refused)
	reached, missed := n.RemoteCalls()
	out := map[string]int64{"reached": reached, "unreachable": missed}
	t.Each(t.Counter, "agentsite_calls_out_total", "Calls of agents of other portals, by whether they were reached.",
		"outcome", out)
	peerGauges(t, s.Each)
}

// poolGauges writes the metrics of the gossip pool.
func poolGauges(t *meter.Text, g federation.GossipStanding) {
	t.Each(t.Gauge, "agentsite_gossip_members", "Other portals in the pool that gossips, by whether they are there.",
		"state", map[string]int64{"alive": int64(g.Members), "gone": int64(g.Gone)})
	t.One(t.Gauge, "agentsite_gossip_queue", "Messages that wait to be handed on.", float64(g.Queued))
	t.Each(t.Counter, "agentsite_gossip_hints_total", "Hints of new heads.", "way",
		map[string]int64{"told": g.Told, "heard": g.Heard})
	t.One(t.Counter, "agentsite_gossip_lost_total", "Members that went, or that others missed.", float64(g.Lost))
	t.Each(t.Counter, "agentsite_gossip_requests_total",
		"Requests of gossip: sent, those of them that failed, and those of others.", "outcome",
		map[string]int64{"sent": g.Sent, "failed": g.Failed, "asked": g.Asked})
	t.Each(t.Counter, "agentsite_gossip_bytes_total", "Bytes of their bodies.", "way",
		map[string]int64{"in": g.In, "out": g.Out})
	t.Each(t.Counter, "agentsite_gossip_messages_refused_total",
		"Messages that were not taken in: those no honest member sends, and those there was no room for.", "reason",
		map[string]int64{"unfit": g.Refused, "full": g.Dropped})
}

// overlayGauges writes the metrics of the DHT.
func overlayGauges(t *meter.Text, n *peering.Node) {
	d := n.Overlay.Standing()
	t.One(t.Gauge, "agentsite_dht_nodes", "Portals in the table of the DHT.", float64(d.Nodes))
	t.One(t.Gauge, "agentsite_dht_size", "Portals that take part in the DHT, a guess.", float64(d.Size))
	t.One(t.Gauge, "agentsite_dht_keys", "Entries that this portal stores in the DHT.", float64(d.Keys))
	t.One(t.Gauge, "agentsite_dht_round_seconds", "Interval at which these are refreshed.", d.RoundS)
	t.One(t.Gauge, "agentsite_dht_records", "Records of the DHT that are kept for others.", float64(d.Held))
	t.One(t.Gauge, "agentsite_dht_records_bytes", "Their size.", float64(d.Bytes))
	t.Each(t.Counter, "agentsite_dht_lookups_total",
		"Lookups in the DHT by outcome; second_path are those that took another path.", "outcome",
		map[string]int64{"found": d.Found, "missed": d.Missed, "second_path": d.Second})
	t.Each(t.Counter, "agentsite_dht_requests_total",
		"Requests to nodes of the DHT: all, those without an answer, and those so late that another node was asked too.", "outcome", map[string]int64{"all": d.Sent, "failed": d.Failed, "late": d.Late})
	t.Each(t.Counter, "agentsite_dht_refused_total", "Records and contacts of the DHT that were refused, by reason.",
		"reason", d.Refused)
	r := n.Resolver.Tally()
	t.Each(t.Counter, "agentsite_agents_sought_total",
		"Agents of unknown portals that were looked for in the DHT, by what came of it; limited are those that were not, because a caller exceeded the limit.", "outcome",
		map[string]int64{"found": r.Found, "absent": r.Absent, "failed": r.Failed, "limited": r.Limited})
}

// peerGauges writes the metrics of some portals, each by its host.
func peerGauges(t *meter.Text, list []federation.PeerStats) {
	for _, m := range []struct {
		kind       func(name, help string)
		name, help string
		of         func(federation.PeerStats) float64
	}{
		{t.Gauge, "agentsite_peer_rtt_seconds", "Round trip to a portal, smoothed; for at most 64 portals.",
			func(s federation.PeerStats) float64 { return s.RTT.Seconds() }},
		{t.Gauge, "agentsite_peer_failures", "How often in a row a portal has not answered.",
			func(s federation.PeerStats) float64 { return float64(s.Failures) }},
		{t.Gauge, "agentsite_peer_lag_seconds", "For how long a newer state of a portal has waited.",
			func(s federation.PeerStats) float64 { return s.Lag.Seconds() }},
		{t.Counter, "agentsite_peer_refused_total", "What a portal sent that was refused.",
			func(s federation.PeerStats) float64 { return float64(s.Faults) }},
	} {
		m.kind(m.name, m.help)
		for _, s := range list {
			t.Value(m.name, m.of(s), "portal", s.Host)
		}
	}
}

// listenMetrics opens the address for scrapers, if there is one.
func (p *Portal) listenMetrics() (err error) {
	if p.set.MetricsListen == "" {
		return nil
	}
	if p.scraped, err = net.Listen("tcp", p.set.MetricsListen); err != nil {
		return fmt.Errorf("listen on %s: %w; choose another address with --metrics-listen", p.set.MetricsListen, err)
	}
	return nil
}

// serveMetrics answers scrapers on a separate address until ctx ends. Every client of that address may read all
// metrics, as the operator decided by opening it.
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
	err := web.Serve(ctx, p.scraped, p.knownHost(mux), p.shun, p.log)
	if errors.Is(err, net.ErrClosed) && ctx.Err() != nil {
		return nil
	}
	return err
}

// knownHost refuses requests with a host name other than the configured one, because a foreign name that resolves
// to this address (DNS rebinding) must reach nothing. IP addresses are accepted.
func (p *Portal) knownHost(next http.Handler) http.Handler {
	given, _, _ := net.SplitHostPort(p.set.MetricsListen)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := strings.ToLower(r.Host)
		if h, _, err := net.SplitHostPort(host); err == nil {
			host = h
		}
		host = strings.Trim(host, "[]")
		if _, err := netip.ParseAddr(host); err != nil && !settings.LoopbackHost(host) &&
			host != strings.ToLower(given) && host != p.url.Hostname() {
			http.Error(w, "Ask by the address or by the name in --metrics-listen or --url.",
				http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// MetricsAddr is the address for scrapers, or empty if there is none.
func (p *Portal) MetricsAddr() string {
	if p.scraped == nil {
		return ""
	}
	return p.scraped.Addr().String()
}
