package link_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/linkwire"
	"agentsite/internal/task"
)

func TestLink_StreamsAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t)
		a := w.agent("counter", count(5))
		if h := <-a.up; h.Agent != "counter@portal.example" || h.LeaseSeconds != 60 || h.PingSeconds != 5 {
			t.Errorf("welcomed with %+v", h)
		}
		c := w.ask("counter", "count")
		time.Sleep(2500 * time.Millisecond)
		if c.Shown() != counted(2) {
			t.Errorf("after two seconds %q is shown", c.Shown())
		}
		c.want(t, task.Completed, counted(5))
		if l := w.last("counter"); l.State != hub.Alive || l.Reason != "Connected with test 1." {
			t.Errorf("observed %+v", l)
		}
	})
}

func TestLink_BrokenConnectionLeavesNoGapAndNoDouble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t)
		a := w.agent("counter", count(40))
		<-a.up
		c := w.ask("counter", "count")
		for range 3 {
			time.Sleep(4300 * time.Millisecond)
			w.net.cut(false)
			time.Sleep(5 * time.Second)
			w.net.cut(true)
			<-a.up
		}
		c.want(t, task.Completed, counted(40))
	})
}

func TestLink_PortalRestartResumes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t)
		a := w.agent("counter", count(60))
		<-a.up
		k := task.Call{TaskID: ident.NewID(), MessageID: ident.NewID(), Attempt: 1, Agent: task.Target{ID: "counter", Name: "counter"}, Parts: []task.Part{task.TextPart("x")}}
		c := w.run2(k)
		for restart := range 3 {
			time.Sleep(3500 * time.Millisecond)
			c.stop(task.ErrShutdown)
			<-c.done
			w.stop()
			time.Sleep(4 * time.Second)
			w.start()
			k.Attempt, k.Checkpoint = restart+2, c.LastCheckpoint()
			began := time.Now()
			c = w.run2(k)
			<-a.up
			if took := time.Since(began); took > 16*time.Second {
				t.Errorf("it came back after %s", took)
			}
		}
		c.want(t, task.Completed, counted(60))
		// A further restart, after the answer was taken: it is not asked again.
		k.Attempt, k.Checkpoint = 5, c.LastCheckpoint()
		c = w.run2(k)
		<-c.done
		if c.err != nil || task.PlainText(c.res.Parts) != counted(60) {
			t.Errorf("%+v %v", c.res, c.err)
		}
	})
}

func TestLink_SilentDeathIsNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t)
		a := w.agent("quiet", count(1))
		<-a.up
		time.Sleep(12345 * time.Millisecond)
		if l := w.last("quiet"); l.State != hub.Alive {
			t.Fatalf("%+v", l)
		}
		w.net.hush()
		began := time.Now()
		for w.last("quiet").State == hub.Alive {
			time.Sleep(50 * time.Millisecond)
			if time.Since(began) > time.Minute {
				t.Fatal("never noticed")
			}
		}
		took := time.Since(began)
		t.Logf("noticed after %s", took)
		if took > 15*time.Second {
			t.Errorf("noticed after %s", took)
		}
		if l := w.last("quiet"); l.State != hub.Unreachable || !strings.HasPrefix(l.Reason, "Not connected. It was last here on ") {
			t.Errorf("%+v", l)
		}
	})
}

func TestLink_IdleConnectionsStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t)
		a := w.agent("idle", count(2))
		<-a.up
		time.Sleep(3 * time.Hour)
		if len(a.up) != 0 {
			t.Errorf("it connected %d times more", len(a.up))
		}
		w.ask("idle", "x").want(t, task.Completed, counted(2))
	})
}

func TestLink_NewerConnectionReplacesTheOlder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t)
		a := w.agent("twin", count(3))
		<-a.up
		b := w.agent("twin", count(4))
		<-b.up
		<-a.done
		if code, reason := linkwire.CloseReason(a.err); code != linkwire.CodeReplaced || !strings.HasPrefix(reason, "replaced") {
			t.Errorf("the older one ended with %v", a.err)
		}
		w.ask("twin", "x").want(t, task.Completed, counted(4))
		if l := w.last("twin"); l.State != hub.Alive {
			t.Errorf("%+v", l)
		}
	})
}

func TestLink_CancelReachesTheAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t)
		stopped := make(chan struct{})
		a := w.agent("busy", func(ctx context.Context, _ linkwire.Task, out *linkwire.Answer) linkwire.Done {
			out.Text("I begin")
			<-ctx.Done()
			close(stopped)
			return linkwire.Done{State: linkwire.Failed}
		})
		<-a.up
		c := w.ask("busy", "x")
		time.Sleep(time.Second)
		c.stop(context.Canceled)
		<-c.done
		<-stopped
	})
}

func TestLink_StoppedAgentEndsItsTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t)
		a := w.agent("leaver", count(100))
		<-a.up
		c := w.ask("leaver", "x")
		time.Sleep(2500 * time.Millisecond)
		began := time.Now()
		a.stop()
		<-a.done
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("stopped after %s", took)
		}
		<-c.done
		if c.res.State != task.Failed || c.res.Reason != "stopped." || task.PlainText(c.res.Parts) != counted(2) {
			t.Errorf("%+v", c.res)
		}
	})
}

// refusedHello is what the portal says to a hello.
func refusedHello(t *testing.T, w *world, secret string, first []byte) (*linkwire.Error, error) {
	t.Helper()
	s, err := w.dial(secret)(t.Context())
	if err != nil {
		return nil, err
	}
	defer s.Wait()
	defer s.Close("bye")
	s.Send(t.Context(), first)
	b, err := s.Receive(t.Context())
	if err != nil {
		return nil, err
	}
	m, err := linkwire.DecodeMessage(b)
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Receive(t.Context())
	return m.Error, err
}

func TestDoor_TokenInHello(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t)
		hello := linkwire.Hello{Protocol: 1, Name: "browser", Token: token("ada")}
		s, err := w.dial("")(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		s.Send(t.Context(), linkwire.EncodeRequest(1, "hello", hello))
		if b, err := s.Receive(t.Context()); err != nil || !strings.Contains(string(b), `"agent":"browser@portal.example"`) {
			t.Errorf("%s %v", b, err)
		}
		s.Close("bye")
		s.Wait()
		for name, first := range map[string][]byte{
			"no token":    linkwire.EncodeRequest(1, "hello", linkwire.Hello{Protocol: 1, Name: "browser"}),
			"wrong token": linkwire.EncodeRequest(1, "hello", linkwire.Hello{Protocol: 1, Name: "browser", Token: "ags_"}),
			"a session":   linkwire.EncodeRequest(1, "hello", linkwire.Hello{Protocol: 1, Name: "browser", Token: "agss_ada"}),
		} {
			e, _ := refusedHello(t, w, "", first)
			if e == nil || e.Code != linkwire.ErrRefused || e.Data == nil || e.Data.Kind != "unauthenticated" {
				t.Errorf("%s: %+v", name, e)
			}
		}
	})
}

func TestDoor_RefusesAndSaysWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t)
		for name, c := range map[string]struct {
			first []byte
			kind  fault.Kind
		}{
			"taken":        {linkwire.EncodeRequest(1, "hello", linkwire.Hello{Protocol: 1, Name: "foreign"}), fault.Conflict},
			"version":      {linkwire.EncodeRequest(1, "hello", linkwire.Hello{Protocol: 2, Name: "x"}), fault.Invalid},
			"not hello":    {linkwire.EncodeRequest(1, "done", linkwire.Done{}), fault.Invalid},
			"no json":      {[]byte("hello"), fault.Invalid},
			"not UTF-8":    {[]byte("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"hello\xff\"}"), fault.Invalid},
			"deep":         {[]byte(`{"jsonrpc":"2.0","id":1,"method":"hello","params":` + strings.Repeat("[", 1000) + strings.Repeat("]", 1000) + `}`), fault.Invalid},
			"notification": {linkwire.EncodeNotification("hello", linkwire.Hello{Protocol: 1, Name: "x"}), fault.Invalid},
		} {
			e, after := refusedHello(t, w, token("ada"), c.first)
			if e == nil || e.Data == nil || e.Data.Kind != string(c.kind) || after == nil {
				t.Errorf("%s: %+v, then %v", name, e, after)
			}
		}
		if _, err := refusedHello(t, w, token("ada"), []byte(`{"a":"`+strings.Repeat("a", linkwire.MaxHello)+`"}`)); err == nil {
			t.Error("a huge hello was answered")
		}
	})
}

func TestDoor_SilentStrangersAreCutOffAndCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t, func(w *world) { w.cfg.PerAddress = 3 })
		var all []*linkwire.Socket
		for range 3 {
			s, err := w.dial("")(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, s)
		}
		if _, err := w.dial("")(t.Context()); err == nil {
			t.Error("a fourth stranger was let in")
		}
		if s, err := w.dial(token("ada"))(t.Context()); err != nil {
			t.Errorf("somebody known was not let in: %v", err)
		} else {
			s.Close("bye")
			s.Wait()
		}
		began := time.Now()
		for _, s := range all {
			if _, err := s.Receive(t.Context()); err == nil {
				t.Error("a stranger was spoken to")
			}
			s.Close("bye")
			s.Wait()
		}
		if took := time.Since(began); took > linkwire.HelloWait+linkwire.CloseWait {
			t.Errorf("cut off after %s", took)
		}
		synctest.Wait() // the door's side of them is over too
		if s, err := w.dial("")(t.Context()); err != nil {
			t.Error("the places are not free again:", err)
		} else {
			s.Close("bye")
			s.Wait()
		}
	})
}

// Strangers of many addresses leave room for programs that send a token at once.
func TestDoor_StrangersAreHalfAtMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t, func(w *world) { w.cfg.All, w.cfg.PerAddress = 6, 100 })
		var all []*linkwire.Socket
		for range 6 {
			if s, err := w.dial("")(t.Context()); err == nil {
				all = append(all, s)
			}
		}
		if len(all) != 3 {
			t.Errorf("%d strangers were let in", len(all))
		}
		s, err := w.dial(token("ada"))(t.Context())
		if err != nil {
			t.Errorf("a program with a token was not let in: %v", err)
		} else {
			all = append(all, s)
		}
		for _, s := range all {
			s.Close("bye")
			s.Wait()
		}
	})
}

func TestDoor_ConnectionsOfAnAccountAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t, func(w *world) { w.cfg.PerAccount = 2 })
		a, b := w.agent("a", count(1)), w.agent("b", count(1))
		<-a.up
		<-b.up
		if _, err := w.dial(token("ada-2"))(t.Context()); err == nil {
			t.Error("a third was let in")
		}
		a.stop()
		<-a.done
		c := w.agent("c", count(1))
		<-c.up
	})
}

func TestDoor_RevokedTokenEndsTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t)
		a := w.agent("mine", count(1))
		<-a.up
		began := time.Now()
		w.revoke(token("ada"))
		synctest.Wait()
		time.Sleep(time.Second)
		if w.drv.Connected("mine") {
			t.Error("still connected after a second")
		}
		<-a.done
		if r, ok := a.err.(*linkwire.Refused); !ok || r.Status != 401 {
			t.Errorf("it ended with %v after %s", a.err, time.Since(began))
		}
	})
}

// agentsUntil are agents that belong to the actor until the context ends.
type agentsUntil struct {
	lost   context.Context
	agents *world
}

func (a agentsUntil) Claim(ctx context.Context, actor ident.Actor, h linkwire.Hello) (task.Attached, error) {
	if a.lost.Err() != nil {
		return task.Attached{}, errLostAgent
	}
	return a.agents.Claim(ctx, actor, h)
}

func (a agentsUntil) Holds(context.Context, ident.Actor, task.Attached) error {
	if a.lost.Err() != nil {
		return errLostAgent
	}
	return nil
}

var errLostAgent = fault.New(fault.Conflict, "Another account owns it now.")

func TestDoor_LostRightIsNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lost context.Context
		lost, lose := context.WithCancel(context.Background())
		defer lose()
		w := open(t, func(w *world) {
			w.cfg.Agents = agentsUntil{lost, w}
		})
		a := w.agent("given-away", count(1))
		<-a.up
		lose()
		time.Sleep(61 * time.Second)
		if w.drv.Connected("given-away") {
			t.Error("still connected")
		}
		<-a.done
		if e, ok := a.err.(*linkwire.Error); !ok || e.Data.Kind != "conflict" {
			t.Errorf("it ended with %v", a.err)
		}
	})
}
