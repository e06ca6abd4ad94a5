package notify_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/internal/hub"
	"agentsite/internal/notify"
	"agentsite/internal/task"
)

func ended(id string) notify.Event {
	return notify.Event{ID: id, Type: notify.TaskEnded, Facts: notify.Facts{TaskID: "t1", State: task.Completed, Seq: 1}}
}

// live is an event that every owner may be told.
func live(id string) notify.Event {
	return notify.Event{ID: id, Type: notify.AgentLiveness, Facts: notify.Facts{Agent: "helper", Live: "alive", Was: "unknown"}}
}

func TestRun_SendsInOrderAndTriesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, w := newShelf(hook("h", "x.example")), new(wire)
		fail := 3
		w.answer = func(context.Context, got) (int, http.Header, error) {
			if fail--; fail >= 0 {
				return 503, nil, nil
			}
			return 204, nil, nil
		}
		s.add("h", ended("evt_1"))
		s.add("h", ended("evt_2"))
		stop := run(t, service(s, w, nil))
		defer stop()
		synctest.Wait()
		if n := len(w.all()); n != 1 {
			t.Fatalf("%d sent at once", n)
		}
		if h := s.hook("h"); h.Failures != 1 || h.FailingSince.IsZero() || h.Reason != "it answered with status 503" {
			t.Errorf("%+v", h)
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		var ids []string
		var pauses []time.Duration
		for i, g := range w.all() {
			ids = append(ids, g.Header.Get("Webhook-Id"))
			if i > 0 {
				pauses = append(pauses, g.at.Sub(w.all()[i-1].at))
			}
		}
		if got := strings.Join(ids, " "); got != "evt_1 evt_1 evt_1 evt_1 evt_2" {
			t.Error(got)
		}
		for i, most := range []time.Duration{6, 18, 54, 0} {
			if p := pauses[i]; p > most*time.Second || p < most*time.Second*2/3 {
				t.Errorf("pause %d is %v", i, p)
			}
		}
		if h := s.hook("h"); h.Failures != 0 || !h.FailingSince.IsZero() || h.Reason != "" {
			t.Errorf("%+v", h)
		}
	})
}

func TestRun_IsWokenAndStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, w, wake := newShelf(hook("h", "x.example")), new(wire), make(chan struct{}, 1)
		stop := run(t, service(s, w, wake))
		synctest.Wait()
		s.add("h", ended("evt_1"))
		wake <- struct{}{}
		synctest.Wait()
		if n := len(w.all()); n != 1 {
			t.Errorf("%d sent", n)
		}
		// One that hangs while the portal stops is not settled: it is sent at
		// the next start.
		w.answer = func(ctx context.Context, _ got) (int, http.Header, error) {
			<-ctx.Done()
			return 0, nil, ctx.Err()
		}
		s.add("h", ended("evt_2"))
		wake <- struct{}{}
		synctest.Wait()
		stop()
		if _, e, err := s.NextEvent(t.Context(), "h"); err != nil || e.ID != "evt_2" || s.hook("h").Failures != 0 {
			t.Errorf("%+v %v", e, err)
		}
	})
}

func TestRun_OneSlowHostKeepsNobodyWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := new(wire)
		flying, most := map[string]int{}, map[string]int{}
		w.answer = func(ctx context.Context, g got) (int, http.Header, error) {
			w.mu.Lock()
			flying[g.URL.Host]++
			most[g.URL.Host] = max(most[g.URL.Host], flying[g.URL.Host])
			w.mu.Unlock()
			defer func() { w.mu.Lock(); flying[g.URL.Host]--; w.mu.Unlock() }()
			if g.URL.Host == "slow.example" {
				<-ctx.Done()
				return 0, nil, ctx.Err()
			}
			return 200, nil, nil
		}
		var hooks []notify.Hook
		for i := range 60 {
			hooks = append(hooks, hook(fmt.Sprint("slow", i), "slow.example"))
		}
		for i := range 40 {
			hooks = append(hooks, hook(fmt.Sprint("quick", i), fmt.Sprintf("quick%d.example", i%20)))
		}
		s := newShelf(hooks...)
		for _, h := range hooks {
			s.add(h.ID, ended("evt_"+h.ID))
		}
		begun := time.Now()
		stop := run(t, service(s, w, nil))
		defer stop()
		synctest.Wait()
		quick := 0
		for _, g := range w.all() {
			if g.URL.Host != "slow.example" {
				quick++
			}
		}
		w.mu.Lock()
		slow := most["slow.example"]
		w.mu.Unlock()
		if quick != 40 || slow != 3 {
			t.Errorf("%d of 40 were told while one host was slow, which had %d at a time", quick, slow)
		}
		if took := time.Since(begun); took != 0 {
			t.Errorf("it took %v", took)
		}
		time.Sleep(21 * time.Second)
		synctest.Wait()
		failed := 0
		for i := range 60 {
			failed += s.hook(fmt.Sprint("slow", i)).Failures
		}
		if failed != 3 {
			t.Errorf("%d of the slow ones timed out after 20 s", failed)
		}
	})
}

func TestRun_ManySlowHostsKeepNobodyWaitingTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, wake := new(wire), make(chan struct{}, 1)
		w.answer = func(ctx context.Context, g got) (int, http.Header, error) {
			if strings.HasPrefix(g.URL.Host, "slow") {
				<-ctx.Done()
				return 0, nil, ctx.Err()
			}
			return 200, nil, nil
		}
		hooks := []notify.Hook{hook("quick", "quick.example")}
		for i := range 60 {
			h := hook(fmt.Sprint("slow", i), fmt.Sprintf("slow%d.example", i))
			h.Failures, h.FailingSince, h.OwnerID = 1, time.Now(), fmt.Sprint("owner", i)
			hooks = append(hooks, h)
		}
		s := newShelf(hooks...)
		for _, h := range hooks[1:] {
			s.add(h.ID, live("evt"))
		}
		stop := run(t, service(s, w, wake))
		defer stop()
		synctest.Wait()
		if n := len(w.all()); n != 16 {
			t.Errorf("%d that failed before are tried at a time", n)
		}
		s.add("quick", ended("evt"))
		wake <- struct{}{}
		begun := time.Now()
		synctest.Wait()
		if all := w.all(); len(all) != 17 || all[16].URL.Host != "quick.example" || time.Since(begun) != 0 {
			t.Errorf("%d sent", len(all))
		}
	})
}

func TestRun_GivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := notify.Hook{ID: "p", Kind: notify.Push, OwnerKind: "person", OwnerID: "ada", TaskID: "t1", Name: "n", Version: "1.0", URL: "https://push.example", Host: "push.example"}
		p.Sealed = plain{}.Seal(`{}`, "push/t1/n https://push.example")
		s, w := newShelf(hook("h", "x.example"), hook("gone", "gone.example"), p), new(wire)
		w.answer = func(_ context.Context, g got) (int, http.Header, error) {
			if g.URL.Host == "gone.example" {
				return http.StatusGone, nil, nil
			}
			return 500, nil, nil
		}
		begun := time.Now()
		for _, id := range []string{"h", "gone", "p"} {
			s.add(id, ended("evt_1"))
		}
		wake := make(chan struct{}, 1)
		stop := run(t, service(s, w, wake))
		defer stop()
		synctest.Wait()
		if h := s.hook("gone"); h.State != notify.Failed || !strings.Contains(h.Reason, "410") {
			t.Errorf("%+v", h)
		}
		time.Sleep(8 * time.Hour)
		synctest.Wait()
		if h := s.hook("p"); h.State != notify.Failed || !strings.Contains(h.Reason, "6 hours") {
			t.Errorf("%+v", h)
		}
		if h := s.hook("h"); h.State != notify.Active {
			t.Errorf("%+v", h)
		}
		s.add("h", ended("evt_2")) // the first is given up after a day
		time.Sleep(20 * time.Hour)
		synctest.Wait()
		if _, e, err := s.NextEvent(t.Context(), "h"); err != nil || e.ID != "evt_2" {
			t.Errorf("%+v %v", e, err)
		}
		for range 3 {
			time.Sleep(20 * time.Hour)
			s.add("h", ended("evt_n"))
			wake <- struct{}{}
		}
		synctest.Wait()
		if h := s.hook("h"); h.State != notify.Failed {
			t.Errorf("after %v: %+v", time.Since(begun), h)
		}
		var notices []string
		for _, o := range s.settled {
			if o.Failed && o.Notice.Kind == hub.NoticeWebhook {
				notices = append(notices, o.Notice.Text)
			}
		}
		if len(notices) != 2 || !strings.Contains(notices[1], "x.example was stopped: it accepted nothing for 3 days") {
			t.Errorf("%q", notices)
		}
		if n := len(w.all()); n > 130 {
			t.Errorf("%d requests in three days", n)
		}
	})
}

func TestRun_WaitsAsLongAsItIsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, w := newShelf(hook("h", "x.example")), new(wire)
		w.answer = func(context.Context, got) (int, http.Header, error) {
			return 429, http.Header{"Retry-After": {"600"}}, nil
		}
		s.add("h", ended("evt_1"))
		stop := run(t, service(s, w, nil))
		defer stop()
		time.Sleep(599 * time.Second)
		synctest.Wait()
		if n := len(w.all()); n != 1 {
			t.Errorf("%d sent before", n)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if n := len(w.all()); n != 2 {
			t.Errorf("%d sent after", n)
		}
	})
}

func TestRun_TellsWhatItsOwnerMayStillRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		said := func(seq int64) notify.Event {
			return notify.Event{ID: fmt.Sprint("said", seq), Type: notify.MessageSaid, Facts: notify.Facts{ConversationID: "c1", Seq: seq}}
		}
		reported := notify.Event{ID: "reported", Type: notify.AgentReported, Facts: notify.Facts{Agent: "helper", Reason: "spam"}}
		owned := func(id, owner string) notify.Hook {
			h := hook(id, id+".example")
			h.OwnerID = owner
			return h
		}
		s, w := newShelf(owned("ada", "ada"), owned("bob", "bob"), owned("gone", "gone"), owned("rob", "rob")), new(wire)
		for _, id := range []string{"ada", "bob", "gone", "rob"} {
			for _, e := range []notify.Event{said(1), said(2), said(3), ended("ended"), reported, {ID: "strange", Type: "x"},
				{ID: "live", Type: notify.AgentLiveness, Facts: notify.Facts{Agent: "helper", Live: "alive", Was: "unknown"}}} {
				s.add(id, e)
			}
		}
		stop := run(t, service(s, w, nil))
		defer stop()
		synctest.Wait()
		told := map[string]string{}
		for _, g := range w.all() {
			told[g.URL.Host] += g.Header.Get("Webhook-Id") + " "
			if g.Header.Get("Webhook-Id") == "said1" {
				const want = `{"type":"message.said","timestamp":"` // and when
				var m struct {
					Type string
					Data map[string]any
				}
				if err := json.Unmarshal([]byte(g.body), &m); err != nil || !strings.HasPrefix(g.body, want) || m.Data["text"] != "Hello <you>" || m.Data["seq"] != 1.0 || fmt.Sprint(m.Data["sender"]) != "map[handle:bob kind:person]" || m.Data["url"] != "https://portal.example/chat/c1#m1" {
					t.Errorf("%v in %s", err, g.body)
				}
				if g.Method != http.MethodPost || g.Header.Get("Content-Type") != "application/json" || g.Header.Get("Webhook-Timestamp") == "" || !strings.HasPrefix(g.Header.Get("Webhook-Signature"), "v1,") {
					t.Errorf("%+v", g.Header)
				}
			}
			if g.Header.Get("Webhook-Id") == "said3" && (!strings.Contains(g.body, `"truncated":true`) || len(g.body) > 9000) {
				t.Errorf("%d bytes", len(g.body))
			}
		}
		for host, want := range map[string]string{"ada.example": "said1 said3 ended live ", "bob.example": "live ", "rob.example": "reported live ", "gone.example": ""} {
			if told[host] != want {
				t.Errorf("%s was told %q, want %q", host, told[host], want)
			}
		}
		for _, o := range s.settled {
			if !o.Gone || o.Failures != 0 {
				t.Errorf("%+v", o)
			}
		}
	})
}

func TestRun_PushSaysWhatWasThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := notify.Hook{ID: "p", Kind: notify.Push, OwnerKind: "person", OwnerID: "ada", TaskID: "t1", Name: "n", Version: "0.3", URL: "https://push.example/x", Host: "push.example", Scheme: "Basic"}
		h.Sealed = plain{}.Seal(`{"token":"tok","credentials":"cred"}`, "push/t1/n https://push.example")
		moved := h
		moved.ID, moved.URL, moved.Host = "moved", "https://evil.example/x", "evil.example"
		s, w := newShelf(h, moved), new(wire)
		for _, id := range []string{"p", "moved"} {
			s.add(id, notify.Event{ID: "e1", Type: notify.TaskState, Facts: notify.Facts{TaskID: "t1", State: task.Working}})
		}
		s.add("p", notify.Event{ID: "e2", Type: notify.TaskState, Facts: notify.Facts{TaskID: "t1", State: task.Completed}})
		stop := run(t, service(s, w, nil))
		defer stop()
		synctest.Wait()
		var list []string
		for _, g := range w.all() {
			list = append(list, g.Header.Get("Webhook-Id")+" "+g.body)
			if g.URL.Host != "push.example" {
				t.Errorf("a credential went to %s", g.URL.Host)
			}
			if g.Header.Get("Authorization") != "Basic cred" || g.Header.Get("X-A2A-Notification-Token") != "tok" || g.Header.Get("A2A-Version") != "0.3" {
				t.Errorf("%+v", g.Header)
			}
		}
		want := []string{`e1 {"artifacts":0,"version":"0.3"}`, `e1/2 {"state":"working"}`, `e2 {"artifacts":1,"version":"0.3"}`, `e2/2 {"state":"completed"}`}
		if fmt.Sprint(list) != fmt.Sprint(want) {
			t.Errorf("%q", list)
		}
	})
}
