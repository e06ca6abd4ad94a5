package hub_test

import (
	"context"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"agentsite/internal/fault"
	"agentsite/internal/hub"
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
	if err != nil || got.Liveness.State != hub.NeedsAuth || got.Liveness.Reason != "It wants[31m a key." || got.Liveness.Latency != 5*time.Millisecond || got.Liveness.CheckedAt.Before(a.CreatedAt) {
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
