package app_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"agentsite/bench/corpus"
	"agentsite/internal/account"
	"agentsite/internal/clock"
	"agentsite/internal/federation"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/record"
	"agentsite/internal/testing/storetest"
	"agentsite/peering/publish"
	"agentsite/store/replica"
)

const publishNetwork = "agentsite-test"

// publishing is what publishes, over real databases and keys.
type publishing struct {
	testing.TB
	db      *storetest.DB
	replica *replica.Replica
	self    *federation.Self
	gate    *record.Gate
	heads   chan *record.Record
	owner   account.Account
}

func newPublishing(t testing.TB) *publishing {
	t.Helper()
	return newPublishingAt(t, "https://one.example")
}

func newPublishingAt(t testing.TB, origin string) *publishing {
	t.Helper()
	dir := t.TempDir()
	keys, err := ident.CreateKeys(dir)
	if err != nil {
		t.Fatal(err)
	}
	op, err := ident.OpenOperational(dir, keys.Public(), clock.Now())
	if err != nil {
		t.Fatal(err)
	}
	p := &publishing{TB: t, db: storetest.Open(t, dir), heads: make(chan *record.Record, 100)}
	log := slog.New(slog.DiscardHandler)
	p.replica = storetest.Replica(t, dir, record.PortalOf(record.Public(keys.Public())), publishNetwork)
	if p.gate, err = record.NewGate(publishNetwork, p.replica); err != nil {
		t.Fatal(err)
	}
	p.self, err = federation.NewSelf(t.Context(), federation.SelfConfig{Network: publishNetwork, Origin: origin, Name: "One", Root: keys.Portal, Public: keys.Public(),
		Keys: op, Cards: p.db, Gate: p.gate, Replica: p.replica, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	p.owner = storetest.Account(t, p.db, "ada")
	return p
}

// agents stores agents that say what those of a real portal do.
func (p *publishing) agents(from, n int) {
	p.Helper()
	for at := from; at < from+n; at += 1000 {
		var list []hub.Agent
		for i := at; i < min(at+1000, from+n); i++ {
			a := corpus.Agent(i)
			now := clock.Now()
			a.ID, a.Name, a.Portal, a.OwnerID, a.OwnerName, a.Visibility, a.Version, a.CreatedAt, a.UpdatedAt = ident.NewID(), fmt.Sprintf("agent-%d", i), "", p.owner.ID, "ada", hub.Public, 1, now, now
			if a.Status.State == "" {
				a.Status.State = hub.Active
			}
			list = append(list, a)
		}
		if err := p.db.CreateAgents(p.Context(), list); err != nil {
			p.Fatal(err)
		}
	}
}

// NewestHead implements publish.Network.
func (p *publishing) NewestHead(context.Context) record.Version { return record.Version{} }

// HeadPublished implements publish.Network.
func (p *publishing) HeadPublished(head []byte) {
	r, err := record.Open(publishNetwork, head)
	if err != nil {
		p.Error(err)
		return
	}
	p.heads <- r
}

// run publishes until stop is called.
func (p *publishing) run() (pub *publish.Publisher, stop func()) {
	pub = publish.New(publish.Config{Source: p.db.Hub, Signer: p.self, Gate: p.gate, Replica: p.replica, Network: p, Log: slog.Default()})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- pub.Run(ctx) }()
	return pub, func() {
		cancel()
		if err := <-done; err != nil {
			p.Error(err)
		}
	}
}

// until waits for a head of so many agents and returns it.
func (p *publishing) until(count int64) *record.Record {
	p.Helper()
	wait := time.After(2 * time.Minute)
	for {
		select {
		case h := <-p.heads:
			if h.Body.(*record.Head).Count == count {
				return h
			}
		case <-wait:
			p.Fatalf("no head of %d agents", count)
		}
	}
}

// drained waits until no change is left to be published: a round on a busy
// machine signs a head before it has come to the last.
func (p *publishing) drained() {
	p.Helper()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for late := time.After(2 * time.Minute); ; {
		numbers, _, err := p.db.Unpublished(p.Context(), 10)
		if err == nil && len(numbers) == 0 {
			return
		}
		if err != nil {
			p.Fatal(err)
		}
		select {
		case <-look.C:
		case <-late:
			p.Fatalf("%d changes wait", len(numbers))
		}
	}
}

// log reads what is published as others do.
func (p *publishing) log(head *record.Record) (live int) {
	p.Helper()
	var tree record.Tree
	lines := record.ReadLog(head.Body.(*record.Head), 0)
	for {
		page, err := p.replica.Log(p.Context(), p.self.ID(), lines.After(), 1000, 1<<20)
		if err != nil {
			p.Fatal(err)
		}
		if len(page) == 0 {
			break
		}
		for _, wire := range page {
			r, err := record.Open(publishNetwork, wire)
			if err == nil {
				err = lines.Next(r)
			}
			if err != nil {
				p.Fatal(err)
			}
			tree.Apply(r)
		}
	}
	if !head.Body.(*record.Head).Describes(&tree) {
		p.Errorf("the log has %d agents, its head %d", tree.Len(), head.Body.(*record.Head).Count)
	}
	return tree.Len()
}

func TestPublish_OverRealDatabases(t *testing.T) {
	t.Parallel()
	p := newPublishing(t)
	p.agents(0, 700)
	_, stop := p.run()
	p.log(p.until(700))
	// What is changed while it runs.
	p.agents(700, 1)
	p.log(p.until(701))
	ids := func() []string {
		t.Helper()
		var ids []string
		if err := p.db.AllAgents(t.Context(), func(a hub.Agent) bool { ids = append(ids, a.ID); return true }); err != nil {
			t.Fatal(err)
		}
		return ids
	}()
	if err := p.db.DeleteAgent(t.Context(), ids[3]); err != nil {
		t.Fatal(err)
	}
	p.log(p.until(700))
	if err := p.db.SetDisabled(t.Context(), p.owner.ID, clock.Now(), ident.Actor{}); err != nil {
		t.Fatal(err)
	}
	p.log(p.until(0))
	stop()
	// What is changed while it does not.
	if err := p.db.SetDisabled(t.Context(), p.owner.ID, time.Time{}, ident.Actor{}); err != nil {
		t.Fatal(err)
	}
	pub, stop := p.run()
	defer stop()
	head := p.until(700)
	p.log(head)
	a, err := p.db.AgentByID(t.Context(), ids[5])
	if err != nil {
		t.Fatal(err)
	}
	if s := pub.Published(a); s.Why != "" || !s.Listed {
		t.Errorf("%+v", s)
	}
	p.drained()
	// All that was kept is what a gate elsewhere takes, too.
	cards := [][]byte{p.self.Card(), head.Wire}
	other := storeOf(t)
	gate, err := record.NewGate(publishNetwork, other)
	if err != nil {
		t.Fatal(err)
	}
	page, err := p.replica.Log(t.Context(), p.self.ID(), 0, 2000, 64<<20)
	if err != nil {
		t.Fatal(err)
	}
	results, err := gate.AdmitAll(t.Context(), slices.Concat(cards, page), clock.Now())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		if r.Err != nil {
			t.Fatal(r.Err)
		}
	}
}

// storeOf returns an empty replica of another portal.
func storeOf(t *testing.T) *replica.Replica {
	t.Helper()
	return storetest.Replica(t, t.TempDir(), record.PortalOf(record.Public{9}), publishNetwork)
}

// BenchmarkPublish is the first start of a portal with 10,000 agents: until all
// of them are signed, on disk and covered by a head.
func BenchmarkPublish(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		p := newPublishing(b)
		p.agents(0, 10_000)
		b.StartTimer()
		_, stop := p.run()
		p.until(10_000)
		stop()
	}
	b.ReportMetric(10_000*float64(b.N)/b.Elapsed().Seconds(), "agents/s")
}

// BenchmarkPublish_Again is a later start, at which nothing has changed.
func BenchmarkPublish_Again(b *testing.B) {
	p := newPublishing(b)
	p.agents(0, 10_000)
	_, stop := p.run()
	p.until(10_000)
	stop()
	p.agents(10_000, 1)
	for n := int64(0); b.Loop(); n++ {
		_, stop := p.run()
		p.until(10_001 + n) // the one that is new
		stop()
		b.StopTimer()
		p.agents(10_001+int(n), 1)
		b.StartTimer()
	}
}

// BenchmarkRegister_Published is what an import of 1,000 agents takes, with the
// notes for publishing that it leaves.
func BenchmarkRegister_Published(b *testing.B) {
	p := newPublishing(b)
	at := 0
	for b.Loop() {
		p.agents(at, 1000)
		at += 1000
	}
}
