package liveness_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/index"
	"agentsite/internal/liveness"
	"agentsite/internal/testing/storetest"
)

// far is the other side of every exchange: it says what is set for an address,
// or for its host, after as long as is set.
type far struct {
	mu     sync.Mutex // guards the rest
	states map[string]hub.Live
	takes  map[string]time.Duration
	asked  map[string][]time.Time // by address
	now    map[string]int         // by host, under way
	most   map[string]int
	all    int
	peak   int
}

func newFar() *far {
	return &far{states: make(map[string]hub.Live), takes: make(map[string]time.Duration), asked: make(map[string][]time.Time), now: make(map[string]int), most: make(map[string]int)}
}

// gone is the state of a host that takes no connection.
const gone hub.Live = "gone"

func (f *far) set(where string, state hub.Live) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.states[where] = state
}

// slow sets how long a host takes for an answer.
func (f *far) slow(host string, takes time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.takes[host] = takes
}

// atOnce is the most exchanges there ever were with a host, and with all.
func (f *far) atOnce(host string) (one, all int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.most[host], f.peak
}

func (f *far) contacts(address string) []time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]time.Time(nil), f.asked[address]...)
}

// total counts the exchanges with a host.
func (f *far) total(host string) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for address, list := range f.asked {
		if strings.Contains(address, "//"+host+"/") {
			n += len(list)
		}
	}
	return n
}

// Probe implements liveness.Prober.
func (f *far) Probe(ctx context.Context, t hub.Target) hub.Liveness {
	u, _ := url.Parse(t.Endpoint)
	f.mu.Lock()
	f.asked[t.Endpoint] = append(f.asked[t.Endpoint], time.Now())
	state, takes := f.states[t.Endpoint], f.takes[u.Host]
	if state == "" {
		state = f.states[u.Host]
	}
	f.now[u.Host]++
	f.all++
	f.most[u.Host], f.peak = max(f.most[u.Host], f.now[u.Host]), max(f.peak, f.all)
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		f.now[u.Host]--
		f.all--
		f.mu.Unlock()
	}()
	if state != gone {
		if trace := httptrace.ContextClientTrace(ctx); trace != nil {
			trace.GotConn(httptrace.GotConnInfo{})
		}
	}
	if takes > 0 {
		select {
		case <-time.After(takes):
		case <-ctx.Done():
			return hub.Liveness{State: hub.Unreachable, Reason: "Timed out."}
		}
	}
	switch state {
	case "":
		return hub.Liveness{State: hub.Alive, Latency: 3 * time.Millisecond}
	case gone:
		return hub.Liveness{State: hub.Unreachable, Reason: "Connection refused."}
	}
	return hub.Liveness{State: state, Reason: "It is " + string(state) + "."}
}

// directory lets a bubble embed the directory beside the monitor.
type directory = hub.Service

// bubble is a hub on a real database inside a bubble of synctest, where hours
// pass at once.
type bubble struct {
	*liveness.Service
	*directory
	t       *testing.T
	db      *storetest.DB
	far     *far
	reader  *reader
	witness *site
	ada     ident.Actor
	stop    func()
}

func inBubble(t *testing.T, test func(t *testing.T, b *bubble)) {
	synctest.Test(t, func(t *testing.T) {
		b := &bubble{t: t, far: newFar(), reader: &reader{err: errors.New("nothing there")}, witness: &site{}}
		b.db = storetest.New(t)
		a := storetest.Account(t, b.db, "ada")
		b.ada = ident.Actor{Kind: ident.Person, ID: a.ID, Name: a.Name}
		b.start()
		defer func() { b.stop() }()
		test(t, b)
	})
}

// anyAddress allows every address.
type anyAddress struct{}

func (anyAddress) CheckURL(string) error { return nil }

// start begins to run the hub on what the database holds.
func (b *bubble) start() {
	keys, err := ident.LoadKeys(storetest.Dir(b.db))
	if err != nil {
		b.t.Fatal(err)
	}
	queue := liveness.NewQueue(b.db, slog.New(slog.DiscardHandler))
	b.directory = hub.New(hub.Ports{Store: b.db, Index: index.New(), Probes: queue, Reader: b.reader, Witness: b.witness, Sealer: keys, Addresses: anyAddress{}}, hub.Config{
		Kinds: []hub.Kind{hub.A2A, hub.MCP, hub.OpenAI, hub.Link}, Log: slog.New(slog.DiscardHandler)})
	m := liveness.New(liveness.Ports{Queue: queue, Prober: b.far, Directory: b.directory, Notices: b.directory.Notices, Proofs: b.directory.Proofs})
	b.Service = m
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- m.Run(ctx) }()
	b.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			b.t.Error(err)
		}
	})
}

// pass lets time go by.
func (b *bubble) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// skip lets days go by on which the portal runs for a minute each.
func (b *bubble) skip(days int) {
	for range days {
		b.stop()
		b.pass(24*time.Hour - time.Minute)
		b.start()
		b.pass(time.Minute)
	}
}

func (b *bubble) publish(name, address string, edit ...func(*hub.Draft)) hub.Agent {
	b.t.Helper()
	a, err := b.Publish(b.t.Context(), b.ada, draft(name, append(edit, func(d *hub.Draft) { d.Endpoint = &address })...))
	if err != nil {
		b.t.Fatal(err)
	}
	return a
}

// many stores agents without anybody looking at them.
func (b *bubble) many(host string, n int) {
	b.t.Helper()
	var list []hub.Agent
	for i := range n {
		now := clock.Now()
		name := fmt.Sprintf("%s-%d", strings.ReplaceAll(host, ".", "-"), i)
		list = append(list, hub.Agent{ID: ident.NewID(), Name: name, Title: name, Description: "x", Kind: hub.OpenAI, Endpoint: fmt.Sprintf("https://%s/%d", host, i),
			Config: []byte(`{"model":"m"}`), Visibility: hub.Public, OwnerID: b.ada.ID, Version: 1, Status: hub.Status{State: hub.Active},
			Liveness: hub.Liveness{State: hub.Unknown}, CreatedAt: now, UpdatedAt: now})
	}
	if err := b.db.CreateAgents(b.t.Context(), list); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bubble) agent(name string) hub.Agent {
	b.t.Helper()
	a, err := b.db.AgentByName(b.t.Context(), name)
	if err != nil {
		b.t.Fatal(err)
	}
	return a
}

// told are the notices of the kinds, oldest first, as "kind: text".
func (b *bubble) told() (out []string) {
	b.t.Helper()
	list, err := b.db.Notices(b.t.Context(), b.ada.ID, 200)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, n := range list {
		out = append([]string{n.Kind + ": " + n.Text}, out...)
	}
	return out
}

// site is a witness that says what it is set to.
type site struct {
	mu    sync.Mutex // guards the rest
	err   error
	asked int
}

func (w *site) HasToken(context.Context, string, string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked++
	return w.err
}

func (w *site) SignedCard(context.Context, hub.Target) (hub.Described, error) {
	return hub.Described{}, errors.New("no card")
}

func TestPublish_WaitsOnlyAMomentForASlowAgent(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bubble) {
		b.far.slow("slow.example", 5*time.Second)
		start := time.Now()
		a := b.publish("helper", "https://slow.example/v1")
		if took := time.Since(start); a.Liveness.State != hub.Unknown || took != 1500*time.Millisecond {
			t.Fatalf("%v after %v", a.Liveness, took)
		}
		b.pass(5 * time.Second)
		if got := b.agent("helper"); got.Liveness.State != hub.Alive {
			t.Errorf("the verdict was lost: %+v", got.Liveness)
		}
		b.far.slow("dead.example", time.Hour)
		b.publish("other", "https://dead.example/v1")
		b.pass(9 * time.Second)
		if got := b.agent("other"); got.Liveness.State != hub.Unreachable || got.Liveness.Reason != "Timed out." {
			t.Errorf("an exchange may take longer than 10 s: %+v", got.Liveness)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		start = time.Now()
		address := "https://slow.example/v2"
		if _, err := b.Publish(ctx, b.ada, draft("third", func(d *hub.Draft) { d.Endpoint = &address })); err != nil || time.Since(start) > time.Second {
			t.Error("who left is waited for", err)
		}
	})
}

func TestRun_BelievesWhatStaysTheSame(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bubble) {
		const address = "https://good.example/v1"
		b.publish("helper", address)
		b.pass(4 * time.Minute)
		if n := len(b.far.contacts(address)); n != 1 {
			t.Errorf("%d contacts in four minutes", n)
		}
		b.pass(24*time.Hour - 4*time.Minute)
		// 3 at 5, 3 at 10, 6 at 20, then every 30 minutes: some 55 a day.
		all := b.far.contacts(address)
		if len(all) < 50 || len(all) > 60 {
			t.Errorf("%d contacts in a day", len(all))
		}
		var gaps []time.Duration
		for i := range all[1:] {
			gaps = append(gaps, all[i+1].Sub(all[i]))
		}
		if gaps[0] > 6*time.Minute || gaps[len(gaps)-1] < 27*time.Minute || gaps[len(gaps)-1] > 34*time.Minute {
			t.Errorf("first after %v, last after %v", gaps[0], gaps[len(gaps)-1])
		}
		h, err := b.History(t.Context(), b.ada, "helper")
		if err != nil || len(h) != len(all) || h[0].State != hub.Alive || h[0].Latency != 3*time.Millisecond {
			t.Errorf("%d contacts remembered of %d: %v", len(h), len(all), err)
		}

		b.far.set(address, hub.Unreachable)
		b.pass(24 * time.Hour)
		failed := b.far.contacts(address)[len(all):]
		if confirmed := failed[1].Sub(failed[0]); confirmed < 30*time.Second || confirmed > 60*time.Second {
			t.Errorf("looked at again after %v", confirmed)
		}
		last := failed[len(failed)-1].Sub(failed[len(failed)-2])
		if len(failed) > 14 || last < 3*time.Hour || last > 7*time.Hour {
			t.Errorf("%d contacts in a dead day, the last after %v", len(failed), last)
		}
		// An edit makes everything new.
		moved := "https://good.example/v2"
		a, err := b.Update(t.Context(), b.ada, "helper", hub.Draft{Endpoint: &moved})
		if err != nil || a.Liveness.State != hub.Alive || len(b.far.contacts(moved)) != 1 {
			t.Errorf("%+v %v", a.Liveness, err)
		}
		b.pass(10 * time.Minute)
		if n := len(b.far.contacts(address)) - len(all) - len(failed); n != 0 {
			t.Errorf("the old address was asked %d times", n)
		}
		if n := len(b.far.contacts(moved)); n < 3 {
			t.Errorf("the new one %d times", n)
		}
	})
}

func TestRun_DraftsAndDeprecatedAgentsSlowly(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bubble) {
		b.publish("draft", "https://good.example/1", func(d *hub.Draft) { d.Status = &hub.Status{State: hub.StatusDraft} })
		b.publish("old", "https://good.example/2", func(d *hub.Draft) { d.Status = &hub.Status{State: hub.Deprecated, Message: "Use new."} })
		b.publish("off", "https://good.example/3")
		if _, err := b.Update(t.Context(), b.ada, "off", hub.Draft{Status: &hub.Status{State: hub.Withdrawn}}); err != nil {
			t.Fatal(err)
		}
		b.pass(10 * time.Hour)
		for address, most := range map[string]int{"https://good.example/1": 13, "https://good.example/2": 13, "https://good.example/3": 1} {
			if n := len(b.far.contacts(address)); n > most || n < min(most, 8) {
				t.Errorf("%s: %d contacts in ten hours", address, n)
			}
		}
		b.far.set("good.example", hub.Unreachable)
		b.pass(10 * time.Hour)
		for _, text := range b.told() {
			if !strings.HasPrefix(text, "down: old could not") {
				t.Errorf("told: %s", text)
			}
		}
	})
}

// A host of 500 agents that takes no connection, one that answers nothing,
// and fifty others that are fine.
func TestRun_BadHostsDelayNobody(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bubble) {
		b.far.set("dead.example", gone)
		b.far.slow("dead.example", 9*time.Second)
		b.far.slow("mute.example", time.Hour)
		b.many("dead.example", 120)
		b.many("mute.example", 60)
		for i := range 20 {
			b.many(fmt.Sprintf("good%d.example", i), 4)
		}
		b.pass(15 * time.Second)
		for i := range 20 {
			if n := b.far.total(fmt.Sprintf("good%d.example", i)); n != 4 {
				t.Errorf("good%d: %d of 4 agents contacted in 15 s", i, n)
			}
		}
		// The dead host was asked a few times for all of them.
		b.pass(75 * time.Second)
		counts := make(map[hub.Live]int)
		for i := range 120 {
			a := b.agent(fmt.Sprintf("dead-example-%d", i))
			if counts[a.Liveness.State]++; a.Liveness.State == hub.Unreachable && !strings.HasPrefix(a.Liveness.Reason, "Connection refused.") {
				t.Fatal(a.Liveness.Reason)
			}
		}
		if counts[hub.Unreachable] != 120 {
			t.Errorf("after 90 s: %v", counts)
		}
		b.pass(20 * time.Minute)
		if n := b.far.total("dead.example"); n > 30 {
			t.Errorf("the dead host was asked %d times in 20 minutes", n)
		}
		dead, all := b.far.atOnce("dead.example")
		mute, _ := b.far.atOnce("mute.example")
		if dead > 2 || mute > 2 || all > 16 {
			t.Errorf("at once: %d and %d of a host, %d of all", dead, mute, all)
		}
		if len(b.far.contacts("https://mute.example/0")) == 0 {
			t.Error("the mute host was forgotten")
		}
		// It comes back, and so do all that were put off, together.
		b.far.set("dead.example", hub.Alive)
		b.far.slow("dead.example", 0)
		b.pass(15 * time.Minute)
		for i := range 120 {
			if a := b.agent(fmt.Sprintf("dead-example-%d", i)); a.Liveness.State != hub.Alive {
				t.Fatalf("%s is still %s: %s", a.Name, a.Liveness.State, a.Liveness.Reason)
			}
		}
	})
}

// Three thousand agents on a hundred hosts that take a fifth of a second.
func TestRun_KeepsUpWithManyAgents(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bubble) {
		const hosts, each = 100, 30
		for i := range hosts {
			host := fmt.Sprintf("h%d.example", i)
			b.far.slow(host, 200*time.Millisecond)
			b.many(host, each)
		}
		start := time.Now()
		left := func() (n int) {
			list, err := b.db.Due(t.Context(), clock.Now(), hosts*each)
			if err != nil {
				t.Fatal(err)
			}
			return len(list)
		}
		for left() > 0 && time.Since(start) < 5*time.Minute {
			b.pass(time.Second)
		}
		if rate := hosts * each / time.Since(start).Seconds(); rate < 50 {
			t.Errorf("%.0f contacts a second", rate)
		}
	})
}

func TestRun_RestartGoesOnFromTheStore(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bubble) {
		b.publish("good", "https://good.example/v1")
		b.far.set("bad.example", gone)
		b.publish("bad", "https://bad.example/v1")
		b.pass(2 * time.Hour)
		b.stop()
		good, bad := len(b.far.contacts("https://good.example/v1")), len(b.far.contacts("https://bad.example/v1"))
		b.start()
		b.pass(time.Minute)
		if n := len(b.far.contacts("https://good.example/v1")) - good; n > 1 {
			t.Errorf("a good agent was asked %d times in the first minute", n)
		}
		if n := len(b.far.contacts("https://bad.example/v1")) - bad; n > 1 {
			t.Errorf("a bad agent was asked %d times in the first minute", n)
		}
		// While it was off, everything has become due.
		b.stop()
		b.pass(8 * time.Hour)
		good, bad = len(b.far.contacts("https://good.example/v1")), len(b.far.contacts("https://bad.example/v1"))
		b.start()
		b.pass(time.Second)
		if b.far.total("good.example")-good != 1 || b.far.total("bad.example")-bad != 1 {
			t.Error("what is due is not asked at once")
		}
	})
}

func TestRun_EditInBetween(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bubble) {
		b.far.slow("slow.example", 8*time.Second)
		b.far.set("slow.example", hub.WrongProtocol)
		b.publish("helper", "https://slow.example/v1")
		// The first exchange is still under way; the new address is asked at once.
		address := "https://good.example/v1"
		a, err := b.Update(t.Context(), b.ada, "helper", hub.Draft{Endpoint: &address})
		if err != nil || a.Liveness.State != hub.Alive {
			t.Fatalf("%+v %v", a.Liveness, err)
		}
		b.pass(10 * time.Second)
		if a := b.agent("helper"); a.Liveness.State != hub.Alive {
			t.Errorf("what the old address said counts: %+v", a.Liveness)
		}
		// So is one whose address was changed while it waited for its turn.
		b.far.slow("busy.example", 9*time.Second)
		b.many("busy.example", 30)
		b.pass(6 * time.Second)
		moved := "https://good.example/v9"
		waiting := ""
		for i := range 30 {
			if len(b.far.contacts(fmt.Sprintf("https://busy.example/%d", i))) == 0 {
				waiting = fmt.Sprintf("busy-example-%d", i)
			}
		}
		if _, err := b.Update(t.Context(), b.ada, waiting, hub.Draft{Endpoint: &moved}); err != nil {
			t.Fatal(err)
		}
		b.pass(3 * time.Minute)
		if a := b.agent(waiting); a.Liveness.State != hub.Alive || len(b.far.contacts(moved)) == 0 {
			t.Errorf("%+v", a.Liveness)
		}
	})
}

func TestCalled_ShowsThatItIsThere(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bubble) {
		const address = "https://good.example/v1"
		a := b.publish("helper", address)
		b.pass(3 * time.Hour)
		before, h := len(b.far.contacts(address)), 0
		remembered := func() int {
			list, err := b.db.History(t.Context(), a.ID)
			if err != nil {
				t.Fatal(err)
			}
			return len(list)
		}
		// Ten calls a minute for a quarter of an hour: contacts of their own.
		h = remembered()
		for range 150 {
			b.Called(t.Context(), a.ID, true, "", time.Minute)
			b.pass(6 * time.Second)
		}
		if n := remembered() - h; n < 13 || n > 17 {
			t.Errorf("%d contacts stored in 15 minutes of calls", n)
		}
		if n := len(b.far.contacts(address)) - before; n > 1 {
			t.Errorf("asked %d times meanwhile", n)
		}
		if l := b.agent("helper").Liveness; l.Latency != 3*time.Millisecond {
			t.Errorf("work counts as latency: %v", l.Latency)
		}
		// Somebody relies on it: it is looked at again within minutes.
		before = len(b.far.contacts(address))
		b.pass(6 * time.Minute)
		if n := len(b.far.contacts(address)) - before; n != 1 {
			t.Errorf("asked %d times in the minutes after", n)
		}
		// A call that did not reach it is no verdict, but a reason to look.
		b.pass(time.Minute)
		before = len(b.far.contacts(address))
		b.Called(t.Context(), a.ID, false, "connection refused", time.Second)
		if got := b.agent("helper").Liveness.State; got != hub.Alive {
			t.Errorf("a call makes it %s", got)
		}
		b.pass(6 * time.Second)
		if n := len(b.far.contacts(address)) - before; n != 1 {
			t.Errorf("asked %d times after a failed call", n)
		}
		// A dead agent that is called all the time is not asked all the time.
		b.far.set(address, gone)
		b.pass(2 * time.Hour)
		before = len(b.far.contacts(address))
		for range 600 {
			b.Called(t.Context(), a.ID, false, "connection refused", time.Second)
			b.pass(time.Second)
		}
		if n := len(b.far.contacts(address)) - before; n > 22 {
			t.Errorf("asked %d times in ten minutes of failing calls", n)
		}
		b.far.set(address, hub.Alive)
		b.Called(t.Context(), a.ID, true, "", time.Second)
		b.pass(time.Minute)
		if got := b.agent("helper").Liveness.State; got != hub.Alive {
			t.Errorf("it answered a call and is %s", got)
		}
		b.Called(t.Context(), "01JNOSUCHAGENT0000000000000", true, "", 0)
	})
}
