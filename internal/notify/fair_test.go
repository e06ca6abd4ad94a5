package notify_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/internal/ident"
	"agentsite/internal/notify"
	"agentsite/internal/task"
)

// sluggish takes what it is told, after a while; others at once.
func sluggish(after time.Duration) *wire {
	w := new(wire)
	w.answer = func(ctx context.Context, g got) (int, http.Header, error) {
		if strings.HasPrefix(g.URL.Host, "slow") {
			select {
			case <-time.After(after):
			case <-ctx.Done():
				return 0, nil, ctx.Err()
			}
		}
		return 200, nil, nil
	}
	return w
}

// toldAt is when a host was first told something, after begun.
func toldAt(w *wire, host string, begun time.Time) time.Duration {
	for _, g := range w.all() {
		if g.URL.Host == host {
			return g.at.Sub(begun)
		}
	}
	return -1
}

// Many addresses that are slow and take everything are no failures, and have
// more to be told all the time: they must not have all turns.
func TestRun_TakesTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		hooks := []notify.Hook{hook("quick", "quick.example")}
		for i := range 60 {
			h := hook(fmt.Sprintf("a%d", i), fmt.Sprintf("slow%d.example", i))
			h.OwnerID = fmt.Sprint("owner", i)
			hooks = append(hooks, h)
		}
		s, w, wake := newShelf(hooks...), sluggish(9*time.Second), make(chan struct{}, 1)
		for _, h := range hooks[1:] {
			for range 40 {
				s.add(h.ID, live("evt"))
			}
		}
		stop := run(t, service(s, w, wake))
		defer stop()
		time.Sleep(time.Second)
		s.add("quick", ended("evt"))
		wake <- struct{}{}
		time.Sleep(50 * time.Second)
		synctest.Wait()
		// 60 slow ones had come before, of which 32 have a turn at a time.
		if at := toldAt(w, "quick.example", begun); at < 0 || at > 40*time.Second {
			t.Errorf("told after %v", at)
		}
	})
}

func TestRun_OneOwnerKeepsNobodyWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		var hooks []notify.Hook
		for i := range 40 {
			h := hook(fmt.Sprintf("a%d", i), fmt.Sprintf("slow%d.example", i))
			h.OwnerID = "mallory"
			hooks = append(hooks, h)
		}
		s, w := newShelf(append(hooks, hook("quick", "quick.example"))...), sluggish(19*time.Second)
		for _, h := range hooks {
			s.add(h.ID, live("evt"))
		}
		s.add("quick", ended("evt"))
		stop := run(t, service(s, w, nil))
		defer stop()
		synctest.Wait()
		if at := toldAt(w, "quick.example", begun); at != 0 || len(w.all()) != 9 {
			t.Errorf("told after %v, %d at a time", at, len(w.all()))
		}
		time.Sleep(3 * time.Minute)
		synctest.Wait()
		if n := len(w.all()); n != 41 {
			t.Errorf("%d of 41 were told in the end", n)
		}
	})
}

func TestRun_OutlivesAPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := notify.Hook{ID: "p", Kind: notify.Push, OwnerKind: "person", OwnerID: "ada", TaskID: "t1", Name: "n", Version: "1.0", URL: "https://push.example/x", Host: "push.example"}
		s, w := newShelf(h, hook("h", "x.example")), new(wire)
		s.add("p", notify.Event{ID: "e1", Type: notify.TaskState, Facts: notify.Facts{TaskID: "t1", State: task.Working}})
		s.add("h", ended("evt"))
		svc := service(s, w, nil)
		tries := 0
		svc.Ports.Push = func(context.Context, ident.Actor, task.Task, string) ([]any, error) {
			tries++
			panic("damaged")
		}
		stop := run(t, svc)
		defer stop()
		synctest.Wait()
		if at := toldAt(w, "x.example", time.Now()); at != 0 {
			t.Errorf("the other one was told after %v", at)
		}
		if p := s.hook("p"); tries != 1 || p.Failures != 1 || p.Reason != "this portal had trouble" {
			t.Errorf("%d tries: %+v", tries, p)
		}
	})
}
