package publish_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/hub"
	"agentsite/internal/record"
	"agentsite/internal/testing/federationtest"
	"agentsite/internal/testing/racetest"
	"agentsite/internal/testing/recordtest"
	"agentsite/peering/publish"
)

// source is a directory in memory with its outbox.
type source struct {
	mu      sync.Mutex // guards the rest
	agents  map[string]hub.Agent
	waiting map[string]int64 // numbers of changes
	number  int64
	reads   int // of agents
	wake    chan struct{}
}

func newSource() *source {
	return &source{agents: make(map[string]hub.Agent), waiting: make(map[string]int64), wake: make(chan struct{}, 1)}
}

func id(n int) string { return fmt.Sprintf("01JD%022d", n) }

// put stores agent n as it is after change, and notes it.
func (s *source) put(n int, change func(a *hub.Agent)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a, ok := s.agents[id(n)]
	if !ok {
		a = hub.Agent{ID: id(n), Name: fmt.Sprintf("agent-%d", n), Title: fmt.Sprintf("Agent %d", n), Description: "Answers questions about the weather.", Kind: hub.Link, Visibility: hub.Public,
			OwnerName: "ada", Skills: []hub.Skill{{ID: "s", Name: "Forecast", Tags: []string{"weather/forecast"}}}, Languages: []string{"en"},
			Status: hub.Status{State: hub.Active}, Proof: hub.Proof{State: hub.Hosted}, CreatedAt: clock.Now(), UpdatedAt: clock.Now()}
	}
	if change != nil {
		change(&a)
	}
	s.agents[a.ID] = a
	s.note(a.ID)
}

func (s *source) remove(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.agents, id(n))
	s.note(id(n))
}

func (s *source) note(id string) {
	s.number++
	s.waiting[id] = s.number
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *source) Unpublished(_ context.Context, limit int) (numbers []int64, ids []string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id := range s.waiting {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b string) int { return int(s.waiting[a] - s.waiting[b]) })
	ids = ids[:min(len(ids), limit)]
	for _, id := range ids {
		numbers = append(numbers, s.waiting[id])
	}
	return numbers, ids, nil
}

func (s *source) Published(_ context.Context, numbers []int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, n := range s.waiting {
		if slices.Contains(numbers, n) {
			delete(s.waiting, id)
		}
	}
	return nil
}

func (s *source) Publishing() <-chan struct{} { return s.wake }

func (s *source) AgentsByIDs(_ context.Context, ids []string) ([]hub.Agent, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []hub.Agent
	for _, id := range ids {
		if a, ok := s.agents[id]; ok {
			s.reads++
			out = append(out, a)
		}
	}
	return out, nil
}

func (s *source) AllAgents(_ context.Context, yield func(hub.Agent) bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.agents {
		if !yield(a) {
			break
		}
	}
	return nil
}

// keyed is a portal whose keys tests change.
type keyed struct {
	*recordtest.Portal
	mu   sync.Mutex // guards the rest
	card []byte
	key  ed25519.PrivateKey
	ends time.Time
	fail error
}

func (s *keyed) ID() record.PortalID { return s.Portal.ID }
func (s *keyed) Network() string     { return recordtest.Network }
func (s *keyed) Origin() string      { return "https://one.example" }

func (s *keyed) Changed() <-chan struct{} { return nil }

func (s *keyed) Card() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.card
}

func (s *keyed) Key(time.Time) (record.KeyID, ed25519.PrivateKey, time.Time, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return record.KeyIDOf(record.PublicOf(s.key)), s.key, s.ends, s.fail
}

// desk is a portal that publishes, within a synctest bubble.
type desk struct {
	t       *testing.T
	source  *source
	signer  *keyed
	replica *federationtest.Replica
	gate    *record.Gate
	pub     *publish.Publisher
	exports func(tags, languages []string) bool
	newest  func(context.Context) record.Version
	logged  logged
	stop    func()

	mu    sync.Mutex // guards heads
	heads []*record.Record
}

func newDesk(t *testing.T) *desk {
	w := &desk{t: t, source: newSource(), replica: new(federationtest.Replica)}
	w.signer = &keyed{Portal: recordtest.NewPortal("one"), key: recordtest.Key("op 1"), ends: clock.Now().Add(50 * 24 * time.Hour)}
	var err error
	if w.gate, err = record.NewGate(recordtest.Network, w.replica); err != nil {
		t.Fatal(err)
	}
	w.issueCard(w.signer.key)
	return w
}

// issueCard makes a card that lists keys, as the portal's identity does.
func (w *desk) issueCard(keys ...ed25519.PrivateKey) {
	w.t.Helper()
	p := w.signer.Portal
	p.Now, p.Epoch = clock.Milli(clock.Now()), clock.Milli(clock.Now())
	c := p.Card()
	c.Keys = nil
	for _, k := range keys {
		pub := record.PublicOf(k)
		c.Keys = append(c.Keys, record.Key{ID: record.KeyIDOf(pub), Pub: pub, From: p.Now - 35*recordtest.Day, Until: p.Now + 50*recordtest.Day})
	}
	slices.SortFunc(c.Keys, func(a, b record.Key) int { return strings.Compare(string(a.ID), string(b.ID)) })
	r, err := record.Sign(recordtest.Network, c, p.Root)
	if err != nil {
		w.t.Fatal(err)
	}
	if _, _, err := w.gate.Admit(w.t.Context(), r.Wire, clock.Now()); err != nil {
		w.t.Fatal(err)
	}
	w.signer.mu.Lock()
	defer w.signer.mu.Unlock()
	w.signer.card, w.signer.key, w.signer.ends = r.Wire, keys[len(keys)-1], clock.Now().Add(50*24*time.Hour)
}

func (w *desk) start() {
	w.pub = publish.New(publish.Config{Source: w.source, Signer: w.signer, Gate: w.gate, Replica: w.replica,
		Policy: w, Network: w, Log: slog.New(slog.NewTextHandler(&w.logged, nil))})
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan error, 1)
	go func() { done <- w.pub.Run(ctx) }()
	w.stop = func() {
		cancel()
		w.stop = nil
		if err := <-done; err != nil {
			w.t.Error(err)
		}
	}
	synctest.Wait()
}

// logged is a log that is read while it is written.
type logged struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// Exports implements publish.Policy.
func (w *desk) Exports(tags, languages []string) bool {
	return w.exports == nil || w.exports(tags, languages)
}

// NewestHead implements publish.Network.
func (w *desk) NewestHead(ctx context.Context) record.Version {
	if w.newest == nil {
		return record.Version{}
	}
	return w.newest(ctx)
}

// HeadPublished implements publish.Network.
func (w *desk) HeadPublished(wire []byte) {
	r, err := record.Open(recordtest.Network, wire)
	if err != nil {
		w.t.Error(err)
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.heads = append(w.heads, r)
}

// all are the heads that were told of.
func (w *desk) all() []*record.Record {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.heads)
}

// last is the newest head that was told of.
func (w *desk) last() *record.Record {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.heads[len(w.heads)-1]
}

func (w *desk) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.heads)
}

// after lets time pass.
func (w *desk) after(d time.Duration) {
	time.Sleep(d) // the bubble's
	synctest.Wait()
}

// log reads what is published as another portal does, with a gate and a memory
// of its own, and fails unless it adds up.
func (w *desk) log() map[string]*record.Record {
	w.t.Helper()
	ctx, now := w.t.Context(), clock.Now()
	other := new(recordtest.Memory)
	gate, err := record.NewGate(recordtest.Network, other)
	if err != nil {
		w.t.Fatal(err)
	}
	admit := func(wire []byte) *record.Record {
		w.t.Helper()
		r, _, err := gate.Admit(ctx, wire, now)
		if err != nil {
			w.t.Fatal(err)
		}
		return r
	}
	admit(w.signer.Card())
	wire, err := w.replica.Head(ctx, w.signer.ID())
	if err != nil || wire == nil {
		w.t.Fatal("no head ", err)
	}
	head := admit(wire).Body.(*record.Head)
	list, err := w.replica.Log(ctx, w.signer.ID(), 0, 100_000, 1<<30)
	if err != nil {
		w.t.Fatal(err)
	}
	var tree record.Tree
	out := make(map[string]*record.Record)
	lines := record.ReadLog(head, 0)
	for _, wire := range list {
		r := admit(wire)
		if err := lines.Next(r); err != nil {
			w.t.Fatal(err)
		}
		tree.Apply(r)
		out[r.Body.(*record.Agent).ID] = r
	}
	if !head.Describes(&tree) {
		w.t.Errorf("the head has %d agents, the log %d", head.Count, tree.Len())
	}
	return out
}

// live returns the names in the log, sorted.
func (w *desk) live() []string {
	w.t.Helper()
	var out []string
	for _, r := range w.log() {
		if !r.Tombstone() {
			out = append(out, r.Body.(*record.Agent).Name)
		}
	}
	slices.Sort(out)
	return out
}

func (w *desk) want(names ...string) {
	w.t.Helper()
	if got := w.live(); !slices.Equal(got, names) {
		w.t.Errorf("published are %q, want %q", got, names)
	}
}

func bubble(t *testing.T, test func(w *desk)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(24 * time.Hour) // nothing is before 2000 then
		w := newDesk(t)
		test(w)
		if w.stop != nil {
			w.stop()
		}
	})
}

func TestPublisher_PublishesWhatIsThereAtStart(t *testing.T) {
	bubble(t, func(w *desk) {
		for i := range 3000 {
			w.source.put(i, nil)
		}
		w.source.put(3000, func(a *hub.Agent) { a.Visibility = hub.Private })
		w.start()
		if n := w.count(); n != 1 {
			w.t.Errorf("%d heads", n)
		}
		if got := w.live(); len(got) != 3000 {
			w.t.Errorf("%d agents", len(got))
		}
		w.after(10 * time.Second) // what waited in the outbox says nothing new
		if n := w.count(); n != 1 {
			w.t.Errorf("%d heads of one state", n)
		}
	})
}

func TestPublisher_FollowsTheDirectory(t *testing.T) {
	bubble(t, func(w *desk) {
		w.start()
		w.want()
		soon := func() { w.t.Helper(); w.after(3 * time.Second) }
		w.source.put(1, nil)
		w.source.put(2, nil)
		soon()
		w.want("agent-1", "agent-2")
		for what, change := range map[string]func(a *hub.Agent){
			"private":   func(a *hub.Agent) { a.Visibility = hub.Private },
			"unlisted":  func(a *hub.Agent) { a.Visibility = hub.Unlisted },
			"draft":     func(a *hub.Agent) { a.Status.State = hub.StatusDraft },
			"withdrawn": func(a *hub.Agent) { a.Status.State = hub.Withdrawn },
			"held":      func(a *hub.Agent) { a.Status.Held = true },
		} {
			w.source.put(1, change)
			soon()
			if got := w.live(); !slices.Equal(got, []string{"agent-2"}) {
				w.t.Errorf("%s: %q", what, got)
			}
			if s := w.pub.Published(w.source.agents[id(1)]); s.Why == "" {
				w.t.Errorf("%s: nobody is told why it is not published", what)
			}
			w.source.put(1, func(a *hub.Agent) { a.Visibility, a.Status = hub.Public, hub.Status{State: hub.Active} })
			soon()
			w.want("agent-1", "agent-2")
		}
		before := w.log()[strings.ToLower(id(2))]
		w.source.put(2, func(a *hub.Agent) { a.Title = "Another" })
		soon()
		now := w.log()[strings.ToLower(id(2))]
		if now.Body.(*record.Agent).Title != "Another" || now.Seq <= before.Seq {
			w.t.Errorf("%+v", now.Body)
		}
		w.source.remove(1)
		soon()
		w.want("agent-2")
		gone := w.log()[strings.ToLower(id(1))]
		if !gone.Tombstone() || time.Duration(gone.Expires-gone.Issued)*time.Millisecond < 36*24*time.Hour {
			w.t.Errorf("its tombstone is %+v", gone)
		}
	})
}

func TestPublisher_LeavesOutWhatTheOperatorFilters(t *testing.T) {
	bubble(t, func(w *desk) {
		strict := false
		w.exports = func(tags, _ []string) bool { return !strict || !slices.Contains(tags, "secret") }
		w.source.put(1, func(a *hub.Agent) { a.Skills[0].Tags = []string{"secret"} })
		w.source.put(2, nil)
		w.start()
		w.want("agent-1", "agent-2")
		strict = true
		w.pub.Recheck()
		w.after(3 * time.Second)
		w.want("agent-2")
	})
}

func TestPublisher_MakesHeadsSoonThenSeldom(t *testing.T) {
	bubble(t, func(w *desk) {
		w.start()
		w.after(time.Minute)
		n := w.count()
		w.source.put(1, nil)
		w.after(300 * time.Millisecond)
		if w.count() != n+1 {
			w.t.Fatalf("%d heads within 300 ms", w.count()-n)
		}
		w.want("agent-1")
		n = w.count()
		for i := range 20 {
			w.source.put(i, func(a *hub.Agent) { a.Title += "!" })
			w.after(100 * time.Millisecond)
		}
		if got := w.count() - n; got < 1 || got > 2 {
			w.t.Errorf("%d heads in 2 s of changes", got)
		}
		// Changes that go on for an hour.
		begin := time.Now()
		var gaps []time.Duration
		last, seen := time.Now(), w.count()
		for i := 0; time.Since(begin) < time.Hour; i++ {
			w.source.put(i%20, func(a *hub.Agent) { a.Title = fmt.Sprint("Agent ", i) })
			w.after(500 * time.Millisecond)
			if c := w.count(); c > seen {
				gaps, last, seen = append(gaps, time.Since(last)), time.Now(), c
			}
		}
		if first, end := slices.Max(gaps[:20]), slices.Min(gaps[len(gaps)-10:]); first > 4*time.Second || end < 55*time.Second {
			w.t.Errorf("%d heads, the first %v apart, the last %v", len(gaps), gaps[:20], gaps[len(gaps)-10:])
		}
		if most := slices.Max(gaps); most > 62*time.Second {
			w.t.Errorf("a change waited %v", most)
		}
		// After a quiet time one is as quick as at first.
		w.after(5 * time.Minute)
		n = w.count()
		w.source.put(1, func(a *hub.Agent) { a.Title = "Quiet" })
		w.after(300 * time.Millisecond)
		if w.count() != n+1 {
			w.t.Errorf("%d heads after a quiet time", w.count()-n)
		}
	})
}

// TestPublisher_GathersChanges counts heads while agents are imported: none
// until the import ends, or 2 s after its first change.
func TestPublisher_GathersChanges(t *testing.T) {
	bubble(t, func(w *desk) {
		w.start()
		change := func(times int) {
			for i := range times {
				w.source.put(i%20, func(a *hub.Agent) { a.Title += "!" })
				w.after(100 * time.Millisecond)
			}
		}
		w.after(time.Minute)
		n := w.count()
		change(15)
		if got := w.count() - n; got != 0 {
			w.t.Errorf("%d heads during 1.5 s of changes, want none", got)
		}
		w.after(200 * time.Millisecond)
		if got := w.count() - n; got != 1 {
			w.t.Errorf("%d heads after the changes, want one", got)
		}
		w.after(5 * time.Minute)
		n = w.count()
		change(21)
		if got := w.count() - n; got != 1 {
			w.t.Errorf("%d heads in 2.1 s of changes, want one", got)
		}
	})
}

func TestPublisher_RenewsTheLease(t *testing.T) {
	bubble(t, func(w *desk) {
		w.source.put(1, nil)
		w.start()
		w.after(5*time.Hour + time.Minute)
		if n := w.count(); n != 6 {
			w.t.Errorf("%d heads in 5 hours", n)
		}
		for i, h := range w.all()[1:] {
			if before := w.all()[i]; h.Body.(*record.Head).Prev != before.Hash || h.Seq <= before.Seq || h.Epoch != before.Epoch {
				w.t.Errorf("head %d does not follow the one before", i+1)
			}
		}
		w.want("agent-1")
	})
}

func TestPublisher_RenewsRecordsBitByBit(t *testing.T) {
	racetest.Skip(t)
	bubble(t, func(w *desk) {
		for i := range 300 {
			w.source.put(i, nil)
		}
		w.source.put(300, nil)
		w.start()
		w.source.remove(300)
		w.after(15*24*time.Hour - 2*time.Hour)
		old := 0
		for _, r := range w.log() {
			if r.Seq < w.all()[1].Seq {
				old++
			}
		}
		if old != 301 {
			w.t.Errorf("%d of 301 are as they were after almost 15 days", old)
		}
		w.after(3 * time.Hour)
		fresh := 0
		for _, r := range w.log() {
			if r.Issued > clock.Milli(clock.Now().Add(-4*time.Hour)) {
				fresh++
			}
		}
		if fresh == 0 || fresh > 200 {
			w.t.Errorf("%d of 300 were renewed at once", fresh)
		}
		// Two months on everything holds, and the tombstone is gone.
		for range 4 {
			w.after(15 * 24 * time.Hour)
			w.issueCard(w.signer.key)
			if err := w.replica.Sweep(w.t.Context(), clock.Now()); err != nil {
				w.t.Fatal(err)
			}
			if got := w.live(); len(got) != 300 {
				w.t.Fatalf("%d agents", len(got))
			}
		}
		if n := len(w.log()); n != 300 {
			w.t.Errorf("%d entries", n)
		}
		if h := w.last().Body.(*record.Head); h.LogStart < 2 {
			w.t.Error("the log is said to be whole, without the tombstone")
		}
	})
}

func TestPublisher_SignsAnewWhatARevokedKeySigned(t *testing.T) {
	bubble(t, func(w *desk) {
		for i := range 100 {
			w.source.put(i, nil)
		}
		w.start()
		w.source.remove(99)
		w.after(3 * time.Second)
		first := w.signer.key
		// A new key in time: the head is signed with it, the rest stays.
		w.issueCard(first, recordtest.Key("op 2"))
		w.after(2 * time.Minute)
		if got := w.last().Key; got != record.KeyIDOf(record.PublicOf(recordtest.Key("op 2"))) {
			w.t.Error("the head is not signed with the new key")
		}
		if got := w.log(); len(got) != 100 {
			w.t.Errorf("%d entries", len(got))
		}
		// The first key is thrown away.
		w.issueCard(recordtest.Key("op 2"))
		w.after(2 * time.Minute)
		got := w.log()
		if len(got) != 100 || !got[strings.ToLower(id(99))].Tombstone() {
			w.t.Errorf("%d entries", len(got))
		}
		if w.all()[0].Epoch != w.last().Epoch {
			w.t.Error("a new epoch, though the count is known")
		}
	})
}

func TestPublisher_GoesOnWhereItStopped(t *testing.T) {
	bubble(t, func(w *desk) {
		for i := range 5 {
			w.source.put(i, nil)
		}
		w.start()
		before := w.log()
		w.stop()
		n := w.count()
		w.after(time.Minute)
		w.start()
		w.after(10 * time.Second)
		if w.count() != n {
			w.t.Errorf("%d heads, though nothing changed", w.count()-n)
		}
		w.stop()
		w.source.put(1, func(a *hub.Agent) { a.Title = "While it was away" })
		w.source.remove(2)
		w.source.waiting = map[string]int64{} // as after a restored backup
		w.start()
		w.want("agent-0", "agent-1", "agent-3", "agent-4")
		after := w.log()
		for local, r := range before {
			changed := local == strings.ToLower(id(1)) || local == strings.ToLower(id(2))
			if changed == (after[local].Hash == r.Hash) || after[local].Epoch != r.Epoch {
				w.t.Errorf("%s: version %+v after %+v", local, after[local].Version(), r.Version())
			}
		}
	})
}

// TestPublisher_WithdrawsBuiltInAgentsOnce starts on a log that an older version left, which published the
// built-in agents too.
func TestPublisher_WithdrawsBuiltInAgentsOnce(t *testing.T) {
	bubble(t, func(w *desk) {
		for i := range 5 {
			w.source.put(i, nil)
		}
		w.start()
		w.stop()
		for _, n := range []int{1, 2} { // as in the directory all along
			a := w.source.agents[id(n)]
			a.Kind = hub.Builtin
			w.source.agents[id(n)] = a
		}
		w.after(time.Minute)
		w.start()
		w.after(10 * time.Second)
		w.want("agent-0", "agent-3", "agent-4")
		withdrawn := w.log()
		for _, n := range []int{1, 2} {
			if r := withdrawn[strings.ToLower(id(n))]; !r.Tombstone() {
				t.Errorf("%+v is not withdrawn", r.Body)
			}
			if s := w.pub.Published(w.source.agents[id(n)]); !strings.Contains(s.Why, "built-in") {
				t.Errorf("the reason is %q", s.Why)
			}
		}
		n := w.count()
		w.stop()
		w.after(time.Minute)
		w.source.put(1, func(a *hub.Agent) { a.Description = "Another version of the portal." })
		w.start()
		w.after(10 * time.Second)
		if w.count() != n {
			t.Errorf("%d heads, though nothing is published", w.count()-n)
		}
		for local, r := range w.log() {
			if r.Hash != withdrawn[local].Hash {
				t.Errorf("%s is signed again: %+v", local, r.Body)
			}
		}
	})
}

func TestPublisher_EndsAfterACrashBeforeTheHead(t *testing.T) {
	bubble(t, func(w *desk) {
		w.source.put(1, nil)
		w.start()
		w.stop()
		// A record that no head covers yet.
		r, err := record.Open(recordtest.Network, w.head())
		if err != nil {
			w.t.Fatal(err)
		}
		p := w.signer.Portal
		a := p.Agent("late")
		a.Header = record.Header{Portal: p.ID, Epoch: r.Epoch, Seq: r.Seq + 5, Issued: clock.Milli(clock.Now()), Expires: clock.Milli(clock.Now().Add(time.Hour))}
		late, err := record.Sign(recordtest.Network, a, w.signer.key)
		if err != nil {
			w.t.Fatal(err)
		}
		if _, _, err := w.gate.Admit(w.t.Context(), late.Wire, clock.Now()); err != nil {
			w.t.Fatal(err)
		}
		w.start()
		w.want("agent-1")
		if !w.log()["late"].Tombstone() {
			w.t.Error("what is not in the directory is still listed")
		}
	})
}

func (w *desk) head() []byte {
	w.t.Helper()
	wire, err := w.replica.Head(w.t.Context(), w.signer.ID())
	if err != nil {
		w.t.Fatal(err)
	}
	return wire
}

func TestPublisher_BeginsAnEpochWhenTheReplicaIsLost(t *testing.T) {
	bubble(t, func(w *desk) {
		for i := range 5 {
			w.source.put(i, nil)
		}
		w.start()
		w.stop()
		old := w.all()[0]
		w.after(time.Hour)
		w.replica = new(federationtest.Replica)
		w.gate, _ = record.NewGate(recordtest.Network, w.replica)
		w.issueCard(w.signer.key)
		w.start()
		if got := w.live(); len(got) != 5 {
			w.t.Errorf("%q", got)
		}
		if h := w.last(); h.Epoch <= old.Epoch || h.Body.(*record.Head).Prev != (record.Hash{}) {
			w.t.Errorf("epoch %d after %d", h.Epoch, old.Epoch)
		}
	})
}

// A replica that came back from a copy knows less than what was shown: no
// version of that time may be used again.
func TestPublisher_NeverUsesAVersionTwice(t *testing.T) {
	bubble(t, func(w *desk) {
		used := make(map[record.Version]record.Hash)
		note := func() {
			w.t.Helper()
			list := [][]byte{w.head()}
			log, err := w.replica.Log(w.t.Context(), w.signer.ID(), 0, 1000, 1<<30)
			if err != nil {
				w.t.Fatal(err)
			}
			for _, wire := range append(list, log...) {
				r, err := record.Open(recordtest.Network, wire)
				if err != nil {
					w.t.Fatal(err)
				}
				if h, ok := used[r.Version()]; ok && h != r.Hash {
					w.t.Errorf("version %+v was used twice", r.Version())
				}
				used[r.Version()] = r.Hash
			}
		}
		for i := range 20 {
			w.source.put(i, nil)
		}
		w.start()
		note()
		w.stop()
		copied := w.replica.Clone()
		for round := range 3 {
			w.start()
			for i := range 20 {
				w.source.put(i, func(a *hub.Agent) { a.Title = fmt.Sprint("Agent ", i, " of round ", round) })
				w.after(2500 * time.Millisecond)
				note()
			}
			w.stop()
			w.replica = copied.Clone()
			w.gate, _ = record.NewGate(recordtest.Network, w.replica)
		}
	})
}

// A machine that is set back as it runs goes on with the count it had then.
func TestPublisher_CountFollowsTheClockWhileItRuns(t *testing.T) {
	bubble(t, func(w *desk) {
		w.source.put(1, nil)
		w.start()
		first := w.last()
		w.after(20 * time.Minute)
		w.source.put(1, func(a *hub.Agent) { a.Title = "Another" })
		w.after(5 * time.Second)
		last := w.last()
		if last.Epoch != first.Epoch || last.Seq-first.Seq < (last.Issued-first.Issued) {
			w.t.Errorf("%d numbers in %d ms", last.Seq-first.Seq, last.Issued-first.Issued)
		}
	})
}

func TestPublisher_BeginsAnEpochWhenItWasOvertaken(t *testing.T) {
	bubble(t, func(w *desk) {
		for i := range 5 {
			w.source.put(i, nil)
		}
		w.start()
		old := w.last()
		v := old.Version()
		v.Seq += 1 << 30 // as if the clock had been ahead in the state that is lost
		w.source.remove(4)
		if !w.pub.Overtaken(v) {
			w.t.Fatal("not acted on")
		}
		w.after(5 * time.Second)
		last := w.last()
		if last.Version().Compare(v) <= 0 || last.Epoch == old.Epoch {
			w.t.Errorf("%+v is not newer than %+v", last.Version(), v)
		}
		if got := w.live(); len(got) != 4 {
			w.t.Errorf("%q", got)
		}
		// Old news, and another one that does it too, change nothing.
		w.pub.Overtaken(v)
		v = last.Version()
		v.Seq++
		if w.pub.Overtaken(v) {
			w.t.Error("acted on twice within an hour")
		}
		w.after(time.Minute)
		if again := w.last(); again.Epoch != last.Epoch {
			w.t.Errorf("epoch %d after %d", again.Epoch, last.Epoch)
		}
		w.after(time.Hour)
		w.pub.Overtaken(v)
		w.after(5 * time.Second)
		if again := w.last(); again.Epoch <= last.Epoch {
			w.t.Errorf("epoch %d an hour later", again.Epoch)
		}
	})
}

// A folder that is a copy of an older state: what others were told since has to
// be older than all that is signed from then on, agents that are again what
// they were included.
func TestPublisher_AsksOthersBeforeItsFirstHead(t *testing.T) {
	bubble(t, func(w *desk) {
		w.source.put(1, nil)
		w.start()
		w.stop()
		old := w.all()[0].Version()
		asked := 0
		told := old
		told.Seq += 1000
		w.newest = func(context.Context) record.Version {
			if asked++; w.count() != 1 {
				w.t.Errorf("asked after %d heads", w.count())
			}
			return told
		}
		w.after(time.Hour)
		w.start()
		w.after(time.Hour)
		if asked != 1 {
			w.t.Errorf("asked %d times", asked)
		}
		for _, h := range w.all()[1:] {
			if h.Epoch <= old.Epoch {
				w.t.Errorf("%+v after %+v was told", h.Version(), told)
			}
		}
		for id, r := range w.log() {
			if r.Epoch <= old.Epoch {
				w.t.Errorf("%s is still %+v", id, r.Version())
			}
		}
		w.want("agent-1")
	})
}

func TestPublisher_WaitsForTheClock(t *testing.T) {
	bubble(t, func(w *desk) {
		w.source.put(1, nil)
		// Something of a later epoch was seen: the clock was ahead once.
		p := w.signer.Portal
		ahead := clock.Milli(clock.Now().Add(4 * time.Minute))
		h := &record.Head{Header: record.Header{Portal: p.ID, Epoch: ahead, Seq: 9, Issued: ahead, Expires: ahead + recordtest.Hour}, LogStart: 1, Root: new(record.Tree).Root()}
		r, err := record.Sign(recordtest.Network, h, w.signer.key)
		if err != nil {
			w.t.Fatal(err)
		}
		if _, _, err := w.gate.Admit(w.t.Context(), r.Wire, clock.Now()); err != nil {
			w.t.Fatal(err)
		}
		w.start()
		if w.count() != 0 || !strings.Contains(w.logged.String(), "The clock says") {
			w.t.Errorf("%d heads; log: %s", w.count(), w.logged.String())
		}
		w.after(6 * time.Minute)
		w.want("agent-1")
		if w.all()[0].Epoch != ahead || w.all()[0].Seq <= 9 {
			w.t.Errorf("%+v", w.all()[0].Header)
		}
	})
}

func TestPublisher_TriesAgainWhenItHasNoKey(t *testing.T) {
	bubble(t, func(w *desk) {
		w.signer.fail = errors.New("the key is away")
		w.source.put(1, nil)
		w.start()
		w.after(5 * time.Minute)
		if n := strings.Count(w.logged.String(), "the key is away"); n != 1 || w.count() != 0 {
			w.t.Errorf("said %d times, %d heads", n, w.count())
		}
		w.signer.mu.Lock()
		w.signer.fail = nil
		w.signer.mu.Unlock()
		w.after(time.Minute)
		w.want("agent-1")
	})
}

func TestPublisher_LeavesOutNonsense(t *testing.T) {
	bubble(t, func(w *desk) {
		w.source.put(1, nil)
		w.source.put(2, func(a *hub.Agent) { a.Name = "NO NAME" }) // as only a bug could store
		w.start()
		w.want("agent-1")
		if !strings.Contains(w.logged.String(), `name="NO NAME"`) {
			w.t.Error(w.logged.String())
		}
		if s := w.pub.Published(w.source.agents[id(2)]); s.Why == "" {
			w.t.Error("its owner is not told")
		}
		w.source.put(1, func(a *hub.Agent) { a.Name = "NO NAME EITHER" })
		w.after(3 * time.Second)
		w.want() // rather nothing than what it was
	})
}

func TestPublisher_SumsUp(t *testing.T) {
	bubble(t, func(w *desk) {
		for i := range 30 {
			w.source.put(i, func(a *hub.Agent) {
				if i == 7 {
					a.Description, a.Languages = "Zeppelins only.", []string{"de"}
				}
			})
		}
		w.start()
		summary := func() (*record.Record, *record.Summary) {
			w.t.Helper()
			wire, err := w.replica.Held(w.t.Context(), record.Slot{Type: record.TypeSummary, Portal: w.signer.ID()})
			if err != nil || wire == nil {
				w.t.Fatal("no summary ", err)
			}
			r, err := record.Open(recordtest.Network, wire)
			if err != nil {
				w.t.Fatal(err)
			}
			return r, r.Body.(*record.Summary)
		}
		r, s := summary()
		if w.all()[0].Body.(*record.Head).Summary != r.Hash || w.all()[0].Seq <= r.Seq {
			w.t.Error("the head does not name the summary")
		}
		if !slices.Equal(s.Caps, []record.CapCount{{Cap: "weather/forecast", Count: 30}}) || !slices.Equal(s.Languages, []string{"de", "en"}) ||
			!s.Terms.Has("weather") || !s.Terms.Has("zeppelins") || s.Terms.Has("submarines") {
			w.t.Errorf("%+v", s)
		}
		w.source.put(1, func(a *hub.Agent) { a.Title = "Submarines" })
		w.after(3 * time.Second)
		if now, _ := summary(); now.Hash != r.Hash {
			w.t.Error("it was made anew within the hour")
		}
		w.after(time.Hour)
		w.source.put(2, func(a *hub.Agent) { a.Title = "Other" })
		w.after(3 * time.Second)
		if now, s := summary(); now.Hash == r.Hash || !s.Terms.Has("submarines") || w.last().Body.(*record.Head).Summary != now.Hash {
			w.t.Error("an hour later it is still the old one")
		}
	})
}

func TestPublisher_SaysHowAnAgentStands(t *testing.T) {
	bubble(t, func(w *desk) {
		for i := range 10 {
			w.source.put(i, nil)
		}
		w.source.put(3, func(a *hub.Agent) { a.Description = strings.Repeat("Much is said. ", 100) })
		w.start()
		a := w.source.agents[id(3)]
		key := record.AgentKey(record.AgentID(w.signer.ID(), strings.ToLower(a.ID)))
		r := w.log()[strings.ToLower(a.ID)]
		if proof := w.pub.Prove(w.t.Context(), w.signer.ID(), key); proof == nil || !w.all()[0].Body.(*record.Head).Covers(r, proof) {
			w.t.Errorf("%+v", proof)
		}
		if proof := w.pub.Prove(w.t.Context(), w.signer.ID(), record.Hash{1}); proof == nil || !proof.Absent(w.all()[0].Body.(*record.Head).Root) {
			w.t.Errorf("%+v", proof)
		}
		if w.pub.Prove(w.t.Context(), recordtest.NewPortal("two").ID, key) != nil {
			w.t.Error("a proof of another portal's")
		}
		if s := w.pub.Published(a); s.Why != "" || !s.Listed || s.Hash != r.Hash || s.Version != r.Version() || len(s.Cut) != 1 {
			w.t.Errorf("%+v", s)
		}
		if s := w.pub.Published(hub.Agent{ID: id(99), Visibility: hub.Public, Status: hub.Status{State: hub.Active}}); s.Why == "" {
			w.t.Errorf("%+v", s)
		}
	})
}
