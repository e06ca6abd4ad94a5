package app_test

import (
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"

	"agentsite/bench/corpus"
	"agentsite/handlers/peer"
	"agentsite/internal/clock"
	"agentsite/internal/egress"
	"agentsite/internal/federation"
	"agentsite/internal/federation/guard"
	"agentsite/internal/hub"
	"agentsite/internal/index"
	"agentsite/internal/record"
	"agentsite/internal/testing/federationtest"
	"agentsite/peering/answer"
	"agentsite/peering/catalog"
	"agentsite/peering/client"
	"agentsite/peering/search"
)

// fanning is a portal over real databases and keys behind a real server.
type fanning struct {
	*publishing
	registry *federationtest.Registry
	client   *client.Client
	hub      *hub.Service
	index    *index.Index
	mute     atomic.Bool // it takes requests and answers none
}

// newFanning starts a portal that publishes agents, and answers.
func newFanning(b *testing.B, agents int) *fanning {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	f := &fanning{publishing: newPublishingAt(b, "http://"+l.Addr().String()), registry: new(federationtest.Registry), index: index.New()}
	log := slog.New(slog.DiscardHandler)
	out := egress.New(egress.Config{AllowCIDR: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, HTTP2: true, Encoded: true, PerHost: 32, FirstByte: time.Minute, Total: time.Minute, MaxBody: 8 << 20})
	f.client = client.New(client.Config{Self: f.self, Gate: f.gate, Replica: f.replica, Registry: f.registry, RoundTripper: out.RoundTripper(), Stream: out.RoundTripper(), Log: log})
	guard, err := guard.New(b.Context(), guard.Config{Self: f.self, Gate: f.gate, Registry: f.registry, Nonces: f.db, Prover: f.client,
		Started: clock.Now().Add(-time.Minute), Log: log})
	if err != nil {
		b.Fatal(err)
	}
	door := peer.New(peer.Config{Self: f.self, Guard: guard, Replica: f.replica, Version: "1", Log: log, Peers: onePortal{}})
	f.hub = hub.New(hub.Ports{Index: f.index}, hub.Config{Portal: l.Addr().String(), URL: "http://" + l.Addr().String()})
	if agents > 0 {
		f.agents(0, agents)
		pub, stop := f.run()
		b.Cleanup(stop)
		f.until(int64(agents))
		err := f.db.Hub.AllAgents(b.Context(), func(a hub.Agent) bool { f.index.Put(a); return true })
		if err != nil {
			b.Fatal(err)
		}
		peer.Search(unlimited{door}, &answer.Answerer{Self: f.self.ID(), Network: publishNetwork, Replica: f.replica, Publisher: pub, Directory: f.hub})
	}
	r := chi.NewRouter()
	r.Use(middleware.ClientIPFromRemoteAddr)
	door.Routes(r)
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if f.mute.Load() {
			<-req.Context().Done()
			return
		}
		r.ServeHTTP(w, req)
	})}
	go srv.Serve(l)
	b.Cleanup(func() { srv.Close() })
	go guard.Run(b.Context())
	return f
}

// unlimited is a door that counts no requests.
type unlimited struct{ *peer.Door }

func (d unlimited) Handle(method, pattern string, h peer.Handler, _ peer.Limits) {
	d.Door.Handle(method, pattern, h, peer.Limits{})
}

// BenchmarkFanOut is a search that asks twelve portals of 300 agents, each with
// its databases, index, keys and server, and verifies what they answer. It tells
// the processor time of all sides for each portal asked. No question comes twice.
func BenchmarkFanOut(b *testing.B) {
	s, _ := fanOut(b, 12)
	found, asked, answered, n := 0, 0, 0, 0
	before := cpuTime(b)
	for b.Loop() {
		n++
		list, c := s.Ask(b.Context(), hub.Query{Text: corpus.Query(n)})
		found += len(list)
		asked += c.Asked
		answered += c.Answered
	}
	b.ReportMetric(float64(cpuTime(b)-before)/float64(time.Microsecond)/float64(asked), "cpu-µs/portal")
	b.ReportMetric(float64(found)/float64(answered), "results/portal")
	b.ReportMetric(float64(answered)/float64(asked), "in-time/portal")
}

// BenchmarkFanOutMute is a search that asks twenty portals of which six take the
// question and say nothing. It tells how much later than the deadline of 800 ms
// it ends, and how many of those six it names; -benchtime 100x says how often.
func BenchmarkFanOutMute(b *testing.B) {
	const portals, mute, deadline = 20, 6, 800 * time.Millisecond
	s, all := fanOut(b, portals)
	silent := make(map[string]bool)
	for _, f := range all[:mute] {
		f.mute.Store(true)
		silent[strings.TrimPrefix(f.self.Origin(), "http://")] = true
	}
	var late []time.Duration
	named, n := 0, 0
	for b.Loop() {
		n++
		began := b.Elapsed()
		_, c := s.Ask(b.Context(), hub.Query{Text: corpus.Query(n)})
		late = append(late, b.Elapsed()-began-deadline)
		if c.Asked != portals || c.Answered != portals-mute {
			b.Errorf("%+v", c)
		}
		for _, host := range c.Silent {
			if silent[host] {
				named++
			}
		}
	}
	slices.Sort(late)
	ms := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	b.ReportMetric(ms(late[len(late)/2]), "p50-late-ms")
	b.ReportMetric(ms(late[(len(late)-1)*99/100]), "p99-late-ms")
	b.ReportMetric(float64(named)/float64(n*mute), "named/mute")
}

// fanOut is a portal that knows so many others, of 300 agents each, and holds
// none of theirs.
func fanOut(b *testing.B, portals int) (*search.Searcher, []*fanning) {
	me := newFanning(b, 0)
	var all []*fanning
	for range portals {
		f := newFanning(b, 300)
		all = append(all, f)
		f.registry.Say(me.self.ID(), federation.Decision{In: true, Show: true, State: federation.Active, PerSecond: 1_000_000})
		w, err := me.client.Handshake(b.Context(), f.self.Origin(), "")
		if err != nil {
			b.Fatal(err)
		}
		r, _, err := me.gate.Admit(b.Context(), w.Head, clock.Now())
		if err != nil {
			b.Fatal(err)
		}
		h := r.Body.(*record.Head)
		me.registry.Learned(w.Card, true)
		me.registry.Synced(h.Portal, federation.HeadRow{Portal: h.Portal, Version: h.Version(), Issued: h.Issued, Expires: h.Expires, Count: h.Count}, 0, true, time.Time{})
	}
	log := slog.New(slog.DiscardHandler)
	remote := catalog.New(catalog.Config{Self: me.self.ID(), Host: "here.example", Network: publishNetwork, Replica: me.replica, Registry: me.registry, Directory: me.hub})
	remote.Reconcile(b.Context())
	s := search.New(search.Config{Network: publishNetwork, Caller: me.client, Gate: me.gate, Replica: me.replica, Registry: me.registry, Catalog: remote,
		Summaries: catalog.NewSummaries(publishNetwork, me.replica, log), Log: log})
	return s, all
}

// cpuTime is the processor time that the process has taken.
func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// onePortal counts one portal with one agent.
type onePortal struct{}

func (onePortal) Counts() (portals, agents int) { return 1, 1 }
