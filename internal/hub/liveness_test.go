package hub_test

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
)

func TestProbe_VerdictIsStoredAndIndexed(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.prober.says = hub.Liveness{State: hub.NeedsAuth, Reason: "It wants\x1b[31m a key.", Latency: 5 * time.Millisecond}
	a := w.publish(w.ada, draft("helper"))
	if a.Liveness.State != hub.NeedsAuth {
		t.Fatalf("%+v", a.Liveness)
	}
	got, err := w.Get(t.Context(), w.bob, "helper")
	if err != nil || got.Liveness.State != hub.NeedsAuth || got.Liveness.Reason != "It wants[31m a key." || got.Liveness.Latency != 5*time.Millisecond || time.Since(got.Liveness.CheckedAt) > time.Minute {
		t.Errorf("%+v %v", got.Liveness, err)
	}
	live := func(state hub.Live) int {
		p, err := w.Search(t.Context(), w.bob, hub.Query{Live: []string{string(state)}})
		if err != nil {
			t.Fatal(err)
		}
		return p.Total
	}
	if live(hub.NeedsAuth) != 1 || live(hub.Alive) != 0 {
		t.Error("the search does not know")
	}
	w.Observe(t.Context(), a.ID, hub.Liveness{State: hub.Unreachable, Reason: strings.Repeat("é", 200), CheckedAt: time.Now()})
	got, err = w.Get(t.Context(), w.bob, "helper")
	if err != nil || len(got.Liveness.Reason) > 300 || !utf8.ValidString(got.Liveness.Reason) || strings.ContainsRune(got.Liveness.Reason, utf8.RuneError) {
		t.Errorf("%q %v", got.Liveness.Reason, err)
	}
	if live(hub.NeedsAuth) != 0 || live(hub.Unreachable) != 1 {
		t.Error("the search does not follow")
	}
	w.prober.mu.Lock()
	w.prober.says = hub.Liveness{State: hub.Alive}
	w.prober.mu.Unlock()
	if a, err := w.Check(t.Context(), w.ada, "helper"); err != nil || a.Liveness.State != hub.Alive || live(hub.Alive) != 1 {
		t.Error(a, err)
	}
	var limited bool
	for range 25 {
		_, err := w.Check(t.Context(), w.ada, "helper")
		limited = limited || fault.Is(err, fault.RateLimited)
	}
	if !limited {
		t.Error("checks are not limited")
	}
}

func TestProbe_OldVerdictDoesNotCountForANewVersion(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.publish(w.ada, draft("helper"))
	started, release := make(chan struct{}), make(chan struct{})
	w.prober.gate = func(_ context.Context, target hub.Target) {
		if strings.HasSuffix(target.Endpoint, "/v1") {
			close(started)
			<-release
		}
	}
	checked := make(chan error)
	go func() {
		_, err := w.Check(t.Context(), w.ada, "helper")
		checked <- err
	}()
	<-started
	w.prober.mu.Lock()
	w.prober.says = hub.Liveness{State: hub.WrongProtocol}
	w.prober.mu.Unlock()
	if a, err := w.Update(t.Context(), w.ada, "helper", hub.Draft{Endpoint: ptr("https://models.example/v2")}); err != nil || a.Liveness.State != hub.WrongProtocol {
		t.Fatal(a, err)
	}
	w.prober.mu.Lock()
	w.prober.says = hub.Liveness{State: hub.Alive}
	w.prober.mu.Unlock()
	close(release)
	if err := <-checked; err != nil {
		t.Error(err)
	}
	if a, err := w.Get(t.Context(), w.bob, "helper"); err != nil || a.Liveness.State != hub.WrongProtocol {
		t.Errorf("what the old address answered counts: %+v %v", a.Liveness, err)
	}
}

// memory is as much of a store as a registration needs, without goroutines of
// its own, so that time can be controlled.
type memory struct {
	hub.Store
	mu     sync.Mutex // guards agents
	agents map[string]hub.Agent
	due    int
}

func (m *memory) AgentsOf(context.Context, string) ([]hub.Agent, error) { return nil, nil }

func (m *memory) CreateAgent(_ context.Context, a hub.Agent, _ []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.agents[a.ID] = a
	return nil
}

func (m *memory) AgentByID(_ context.Context, id string) (hub.Agent, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	a, ok := m.agents[id]
	if !ok {
		return a, fault.New(fault.NotFound, "none")
	}
	return a, nil
}

func (m *memory) SetLiveness(_ context.Context, id string, l hub.Liveness) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	a := m.agents[id]
	a.Liveness = l
	m.agents[id] = a
	return nil
}

func (m *memory) Due(_ context.Context, then time.Time, limit int) (out []hub.Agent, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.due++
	for _, a := range m.agents {
		if a.Liveness.CheckedAt.Before(then) && len(out) < limit {
			out = append(out, a)
		}
	}
	return out, nil
}

// nowhere is an index that finds nothing.
type nowhere struct{}

func (nowhere) Put(hub.Agent)                      {}
func (nowhere) Remove(string)                      {}
func (nowhere) Search(hub.Query) (hub.Page, error) { return hub.Page{}, nil }
func (nowhere) Len() int                           { return 0 }
func (nowhere) State() uint64                      { return 0 }

// inMemory runs a hub inside a bubble.
func inMemory(t *testing.T, p *prober) (*hub.Service, *memory) {
	m := &memory{agents: make(map[string]hub.Agent)}
	s := hub.New(m, nowhere{}, p, &reader{}, nil, hub.Config{Kinds: []hub.Kind{hub.OpenAI}, CheckURL: func(string) error { return nil }, Log: slog.New(slog.DiscardHandler)})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return s, m
}

func TestPublish_WaitsOnlyAMomentForASlowAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var deadline time.Duration
		p := &prober{says: hub.Liveness{State: hub.Alive}, gate: func(ctx context.Context, _ hub.Target) {
			at, _ := ctx.Deadline()
			deadline = time.Until(at)
			select {
			case <-time.After(5 * time.Second):
			case <-ctx.Done():
			}
		}}
		s, m := inMemory(t, p)
		start := time.Now()
		a, err := s.Publish(t.Context(), ident.Actor{Kind: ident.Person, ID: "ada"}, draft("helper"))
		if err != nil || a.Liveness.State != hub.Unknown {
			t.Fatal(a, err)
		}
		if took := time.Since(start); took != 1500*time.Millisecond {
			t.Errorf("waited %v", took)
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if got, _ := m.AgentByID(t.Context(), a.ID); got.Liveness.State != hub.Alive {
			t.Errorf("the verdict was lost: %+v", got.Liveness)
		}
		if deadline != 10*time.Second {
			t.Errorf("an exchange may take %v", deadline)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		start = time.Now()
		if _, err := s.Publish(ctx, ident.Actor{Kind: ident.Person, ID: "ada"}, draft("other")); err != nil || time.Since(start) > time.Second {
			t.Error("who left is waited for", err)
		}
	})
}

func TestRun_ChecksAgainWhenAVerdictGrewOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &prober{says: hub.Liveness{State: hub.Alive}}
		s, m := inMemory(t, p)
		a, err := s.Publish(t.Context(), ident.Actor{Kind: ident.Person, ID: "ada"}, draft("helper"))
		if err != nil || a.Liveness.State != hub.Alive {
			t.Fatal(a, err)
		}
		asked := func() int {
			p.mu.Lock()
			defer p.mu.Unlock()
			return len(p.asked)
		}
		time.Sleep(5*time.Minute - time.Second)
		synctest.Wait()
		m.mu.Lock()
		due := m.due
		m.mu.Unlock()
		if asked() != 1 || due == 0 {
			t.Errorf("asked %d times, looked %d times", asked(), due)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if asked() != 2 {
			t.Errorf("asked %d times", asked())
		}
	})
}
