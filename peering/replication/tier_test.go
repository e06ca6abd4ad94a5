package replication_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/federation"
	"agentsite/internal/federation/archive"
	"agentsite/internal/record"
	"agentsite/internal/testing/federationtest"
	"agentsite/internal/testing/recordtest"
)

// restartAs starts a portal again whose tier follows from a number of agents.
func (n *node) restartAs(agents *atomic.Int64) {
	n.w.t.Helper()
	n.halt()
	n.tiers = federation.NewTiers(federation.TiersConfig{Log: slog.New(slog.DiscardHandler),
		Known: func(context.Context) (int, int64, error) { return int(agents.Load()), 0, nil }})
	n.retier()
	n.start()
}

func (n *node) retier() {
	if err := n.tiers.Look(context.Background()); err != nil {
		n.w.t.Error(err)
	}
}

// summarize makes a summary of some words and a head that names it.
func (n *node) summarize(words ...string) *record.Record {
	n.w.t.Helper()
	n.Now = clock.Now().UnixMilli()
	s := &record.Summary{Header: n.Header(48 * recordtest.Hour), Terms: record.NewBloom(len(words))}
	for _, w := range words {
		s.Terms.Add(w)
	}
	r := n.Sign(n.w.t, s)
	n.admit(r)
	h := n.Head(&n.tree)
	h.Summary = r.Hash
	n.admit(n.Sign(n.w.t, h))
	n.syncer.Published()
	return r
}

func (n *node) summaryOf(o *node) record.Hash {
	wire, _ := n.replica.Held(context.Background(), record.Slot{Type: record.TypeSummary, Portal: o.ID})
	if wire == nil {
		return record.Hash{}
	}
	r, err := record.Open(recordtest.Network, wire)
	if err != nil {
		n.w.t.Error(err)
	}
	return r.Hash
}

func (n *node) agentsOf(o *node) int {
	held, _, _ := n.replica.Holding(context.Background(), o.ID)
	return held
}

// knows reports whether n has the newest head of o.
func (n *node) knows(o *node) bool {
	mine, _ := n.replica.Standing(context.Background(), o.ID)
	theirs, _ := o.replica.Standing(context.Background(), o.ID)
	return mine.Head == theirs.Head
}

func TestSyncer_KeepsSummariesOfTheMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.end()
		a := w.add()
		b, c := w.add(a), w.add(a)
		b.register(names("b", 600)...)
		c.register(names("c", 5)...)
		sum := map[*node]record.Hash{b: b.summarize("bee").Hash, c: c.summarize("sea").Hash}
		w.until(time.Minute, "in step", w.settled)
		if a.directory.size() != 605 || a.summaryOf(b) != (record.Hash{}) {
			t.Fatal(a.directory.size(), a.summaryOf(b))
		}
		var agents atomic.Int64
		agents.Store(3_000_000)
		d := federationtest.In
		d.Follow = true
		a.registry.Say(c.ID, d)
		a.restartAs(&agents)
		w.until(2*time.Minute, "of b the summary alone", func() bool { return a.agentsOf(b) == 0 && a.summaryOf(b) == sum[b] })
		if a.agentsOf(c) != 5 || a.directory.size() != 5 {
			t.Errorf("holds %d of who is followed, shows %d", a.agentsOf(c), a.directory.size())
		}
		for _, p := range a.registry.Portals(t.Context()) {
			if p.ID == b.ID && (p.Truncated || p.Listed != 600 || p.Agents != 0 || p.Lag != 0) {
				t.Errorf("%+v", p)
			}
		}
		// New heads and summaries come, agents do not.
		before := w.times("log")
		b.register("b-new")
		sum[b] = b.summarize("bee", "new").Hash
		w.until(30*time.Minute, "news of b", func() bool { return a.knows(b) && a.summaryOf(b) == sum[b] && c.holds(b) })
		if a.agentsOf(b) != 0 || w.times("log") != before+1 {
			t.Errorf("%d agents, %d logs", a.agentsOf(b), w.times("log")-before)
		}
		asked := w.times("summary")
		for range 20 { // other heads with the same summary
			b.publishWith(sum[b])
			time.Sleep(time.Minute)
		}
		if w.times("summary") != asked {
			t.Errorf("the same summary was asked for %d times more", w.times("summary")-asked)
		}
		// A little below the border nothing changes, far below all comes back.
		agents.Store(1_700_000)
		a.retier()
		time.Sleep(2 * time.Minute)
		if a.agentsOf(b) != 0 {
			t.Error("it flaps")
		}
		agents.Store(1_000_000)
		a.retier()
		w.until(5*time.Minute, "all here again", func() bool { return a.holds(b) && a.directory.size() == 606 })
		agents.Store(2_000_000)
		a.retier()
		w.until(5*time.Minute, "let go again", func() bool { return a.agentsOf(b) == 0 && a.agentsOf(c) == 5 && a.directory.size() == 5 })
	})
}

// publishWith makes a head that names a summary there is.
func (n *node) publishWith(summary record.Hash) {
	n.Now = clock.Now().UnixMilli()
	h := n.Head(&n.tree)
	h.Summary = summary
	n.admit(n.Sign(n.w.t, h))
	n.syncer.Published()
}

func TestSyncer_PassesSummariesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.end()
		a := w.add()
		b, c := w.add(a), w.add(a)
		var agents atomic.Int64
		agents.Store(3_000_000)
		w.until(time.Minute, "in step", w.settled)
		a.restartAs(&agents)
		b.restartAs(&agents)
		w.until(5*time.Minute, "no agents", func() bool { return a.knows(c) && b.knows(c) })
		w.mu.Lock()
		w.cut = func(from, to *node) bool { return from == b && to == c }
		w.mu.Unlock()
		c.register("c1")
		want := c.summarize("sea").Hash
		w.until(30*time.Minute, "at who cannot ask it", func() bool { return b.knows(c) && b.summaryOf(c) == want && a.summaryOf(c) == want })
		if a.agentsOf(c)+b.agentsOf(c) != 0 {
			t.Error("agents were taken")
		}
	})
}

func TestSyncer_TakesNoSummaryButTheHeads(t *testing.T) {
	for name, lie := range map[string]func(b *node, s *archive.Summarized){
		"another of its own": func(b *node, s *archive.Summarized) {
			s.Summary = b.Sign(b.w.t, &record.Summary{Header: b.Header(recordtest.Hour), Languages: []string{"de"}}).Wire
		},
		"altered": func(_ *node, s *archive.Summarized) {
			s.Summary = []byte(strings.Replace(string(s.Summary), `"s":"`, `"s":"A`, 1))
		},
		"no summary": func(b *node, s *archive.Summarized) { s.Summary = s.Head },
		"nothing":    func(b *node, s *archive.Summarized) { s.Summary = nil },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				defer w.end()
				a := w.add()
				b := w.add(a)
				var agents atomic.Int64
				agents.Store(3_000_000)
				a.restartAs(&agents)
				w.until(5*time.Minute, "met", func() bool { return a.knows(b) })
				b.lie = func(rw http.ResponseWriter, r *http.Request, next http.Handler) {
					if !strings.HasSuffix(r.URL.Path, "/summary") {
						next.ServeHTTP(rw, r)
						return
					}
					rec := httptest.NewRecorder()
					next.ServeHTTP(rec, r)
					var s archive.Summarized
					if err := json.Unmarshal(rec.Body.Bytes(), &s); err != nil {
						t.Error(err)
					}
					lie(b, &s)
					json.NewEncoder(rw).Encode(s)
				}
				b.summarize("bee")
				w.until(15*time.Minute, "seen", func() bool { return len(a.faults(b)) > 0 })
				if a.summaryOf(b) != (record.Hash{}) {
					t.Error("it was taken in")
				}
				b.lie = nil
				want := b.summarize("bee", "true").Hash
				w.until(30*time.Minute, "mended", func() bool { return a.summaryOf(b) == want })
			})
		})
	}
}
