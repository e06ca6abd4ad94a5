package link

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/internal/linkwire"
	"agentsite/internal/task"
	"agentsite/internal/testing/agenttest"
)

// bubble runs a test in time of its own, with a driver.
func bubble(t *testing.T, f func(t *testing.T, d *Driver)) {
	synctest.Test(t, func(t *testing.T) {
		d := New(Config{Portal: "portal.example"})
		t.Cleanup(d.Close)
		f(t, d)
	})
}

func TestRun_AgentThatIsNotThere(t *testing.T) {
	bubble(t, func(t *testing.T, d *Driver) {
		// Right after the start agents get time to come back.
		began := time.Now()
		out := &agenttest.Recorder{}
		r := start(d, ask("absent", "hello"), out)
		synctest.Wait()
		if got := out.Statuses(); len(got) != 1 ||
			got[0] != "absent is not connected. The portal waits up to 30s for its program." {
			t.Errorf("the wait is shown as %q", got)
		}
		r.want(t, task.Failed, "")
		if took := time.Since(began); took != 30*time.Second {
			t.Errorf("gave up after %s", took)
		}
		if r.res.Reason != "absent is not connected just now; its owner runs it elsewhere. Try again later." {
			t.Error(r.res.Reason)
		}
		began = time.Now()
		start(d, ask("absent", "hello"), &agenttest.Recorder{}).want(t, task.Failed, "")
		if took := time.Since(began); took != 10*time.Second {
			t.Errorf("gave up after %s", took)
		}
		out = &agenttest.Recorder{}
		r = start(d, ask("absent", "hello"), out)
		time.Sleep(9 * time.Second)
		p := dial(t, d, "absent")
		p.expect("")
		h := p.task()
		p.finish(9, linkwire.Done{Task: h.Task, Lease: h.Lease, State: linkwire.Completed, Text: "here I am"})
		r.want(t, task.Completed, "here I am")
		if got := out.Statuses(); len(got) != 2 || got[1] != "" {
			t.Errorf("after the program connected the status is %q", got)
		}
	})
}

// slow is a connection whose welcome takes its time on the portal's side.
type slow struct {
	*end
	sent, goOn chan struct{}
}

func (s slow) Send(ctx context.Context, m []byte) error {
	err := s.end.Send(ctx, m)
	close(s.sent)
	<-s.goOn
	return err
}

// TestAttach_WhoWasWelcomedLastStays has a connection come in after one that was
// welcomed later: it is the older one all the same.
func TestAttach_WhoWasWelcomedLastStays(t *testing.T) {
	bubble(t, func(t *testing.T, d *Driver) {
		portal, older := pair()
		held := slow{portal, make(chan struct{}), make(chan struct{})}
		over := make(chan error, 1)
		go func() {
			over <- d.Attach(t.Context(), task.Attached{AgentID: "a", Name: "a", Client: "test"}, held)
		}()
		if err := older.Send(t.Context(), linkwire.EncodeRequest(1, linkwire.MethodHello, linkwire.Hello{Protocol: 1, Name: "a"})); err != nil {
			t.Fatal(err)
		}
		<-held.sent
		newer := dial(t, d, "a")
		newer.expect("")
		synctest.Wait() // the newer one is in
		close(held.goOn)
		if err := <-over; !errors.Is(err, task.ErrDetached) || *older.reason != linkwire.ReasonReplaced {
			t.Errorf("the older one ended with %v, %q", err, *older.reason)
		}
		r := start(d, ask("a", "hello"), &agenttest.Recorder{})
		h := newer.task()
		newer.finish(9, linkwire.Done{Task: h.Task, Lease: h.Lease, State: linkwire.Completed, Text: "still here"})
		r.want(t, task.Completed, "still here")
	})
}

func TestRun_LeaseIsStoredBeforeTheAgentHears(t *testing.T) {
	bubble(t, func(t *testing.T, d *Driver) {
		p := dial(t, d, "a")
		p.expect("")
		rec := &agenttest.Recorder{OnCheckpoint: func(json.RawMessage) error { return fmt.Errorf("the disk is full") }}
		r := start(d, ask("a", "hello"), rec)
		<-r.done
		if r.err == nil {
			t.Errorf("%+v", r.res)
		}
		synctest.Wait()
		if len(p.in) != 0 {
			t.Errorf("the agent was told: %s", <-p.in)
		}
	})
}

func TestRun_AckComesAfterTheAnswerIsStored(t *testing.T) {
	bubble(t, func(t *testing.T, d *Driver) {
		p := dial(t, d, "a")
		p.expect("")
		stored := make(chan struct{})
		rec := &agenttest.Recorder{OnCheckpoint: func(b json.RawMessage) error {
			if strings.Contains(string(b), "done") {
				<-stored
			}
			return nil
		}}
		call := ask("a", "hello")
		r := start(d, call, rec)
		h := p.task()
		p.finish(9, linkwire.Done{Task: h.Task, Lease: h.Lease, State: linkwire.Completed, Text: "fine"})
		synctest.Wait()
		if len(p.in) != 0 {
			t.Errorf("it was taken before it was stored: %s", <-p.in)
		}
		close(stored)
		if m := p.expect(""); string(m.ID) != "9" || m.Error != nil {
			t.Errorf("%+v", m)
		}
		r.want(t, task.Completed, "fine")
		// Said again, because the answer was lost: forget it.
		p.finish(10, linkwire.Done{Task: h.Task, Lease: h.Lease, State: linkwire.Completed, Text: "fine"})
		if m := p.expect(""); m.Error == nil || m.Error.Code != linkwire.ErrLease {
			t.Errorf("%+v", m)
		}
		// The portal restarts before the outcome is stored for good.
		call.Attempt, call.Checkpoint = 2, rec.LastCheckpoint()
		start(d, call, &agenttest.Recorder{}).want(t, task.Completed, "fine")
	})
}

func TestRun_ResumesWhereThePortalIs(t *testing.T) {
	bubble(t, func(t *testing.T, d *Driver) {
		p := dial(t, d, "a")
		p.expect("")
		rec := &agenttest.Recorder{}
		r := start(d, ask("a", "hello"), rec)
		h := p.task()
		p.delta(h, "one ")
		synctest.Wait()
		p.Close("broken")
		time.Sleep(59 * time.Second)
		h.Offset = 100 // what the agent has
		q := dial(t, d, "a", h)
		q.expect("")
		// Nothing may be said before it is resumed.
		q.delta(linkwire.Held{Task: h.Task, Lease: h.Lease + 1}, "foreign")
		at, id := get[linkwire.Held](q, linkwire.MethodResume)
		if at.Offset != len("one ") || at.Lease != h.Lease {
			t.Errorf("resumed at %+v", at)
		}
		q.accept(id)
		q.delta(linkwire.Held{Task: h.Task, Lease: h.Lease}, "one two ") // from the beginning again
		q.delta(linkwire.Held{Task: h.Task, Lease: h.Lease, Offset: 4}, "two ")
		q.delta(linkwire.Held{Task: h.Task, Lease: h.Lease, Offset: 8}, "three")
		q.finish(5, linkwire.Done{Task: h.Task, Lease: h.Lease, State: linkwire.Completed})
		r.want(t, task.Completed, "one two three")
		if rec.Shown() != "one two three" {
			t.Errorf("shown %q", rec.Shown())
		}
	})
}

func TestRun_LostLeaseIsHandedOutOnceMore(t *testing.T) {
	bubble(t, func(t *testing.T, d *Driver) {
		p := dial(t, d, "a")
		p.expect("")
		rec := &agenttest.Recorder{}
		r := start(d, ask("a", "hello"), rec)
		first := p.task()
		p.delta(first, "old text")
		synctest.Wait()
		p.Close("crashed")
		p = dial(t, d, "a") // it knows nothing of the task
		p.expect("")
		again, id := get[linkwire.Task](p, linkwire.MethodTask)
		if again.Task != first.Task || again.Lease != first.Lease+1 || again.Attempt != 2 {
			t.Errorf("handed out as %+v after %+v", again, first)
		}
		p.accept(id)
		h := linkwire.Held{Task: again.Task, Lease: again.Lease}
		p.delta(first, "late words of the first")
		p.delta(h, "new text")
		p.finish(5, linkwire.Done{Task: first.Task, Lease: first.Lease, State: linkwire.Completed, Text: "stale"})
		if m := p.expect(""); m.Error == nil || m.Error.Code != linkwire.ErrLease {
			t.Errorf("the stale lease was taken: %+v", m)
		}
		synctest.Wait()
		if rec.Shown() != "new text" {
			t.Errorf("shown %q", rec.Shown())
		}
		p.Close("crashed again")
		p = dial(t, d, "a")
		p.expect("")
		r.want(t, task.Failed, "new text")
		if !strings.Contains(r.res.Reason, "twice") {
			t.Error(r.res.Reason)
		}
	})
}

func TestRun_HandOutThatWasNeverAnsweredDoesNotCount(t *testing.T) {
	bubble(t, func(t *testing.T, d *Driver) {
		r := start(d, ask("a", "hello"), &agenttest.Recorder{})
		for range 3 {
			p := dial(t, d, "a")
			p.expect("")
			p.expect(linkwire.MethodTask)
			p.Close("flaky")
		}
		p := dial(t, d, "a")
		p.expect("")
		h := p.task()
		p.finish(5, linkwire.Done{Task: h.Task, Lease: h.Lease, State: linkwire.Completed, Text: "at last"})
		r.want(t, task.Completed, "at last")
		if h.Lease != 4 {
			t.Errorf("lease %d", h.Lease)
		}
	})
}

func TestRun_AgentThatDoesNotComeBack(t *testing.T) {
	bubble(t, func(t *testing.T, d *Driver) {
		p := dial(t, d, "a")
		p.expect("")
		r := start(d, ask("a", "hello"), &agenttest.Recorder{})
		h := p.task()
		p.delta(h, "half an ans")
		time.Sleep(time.Second)
		p.Close("gone")
		began := time.Now()
		r.want(t, task.Failed, "half an ans")
		if took := time.Since(began); took != time.Minute || !strings.Contains(r.res.Reason, "did not come back") {
			t.Errorf("%s %s", took, r.res.Reason)
		}
		// It comes later, with a task that is over: it is told so.
		p = dial(t, d, "a", h)
		p.expect("")
		if c, _ := get[linkwire.Cancel](p, linkwire.MethodCancel); c.Task != h.Task || c.Lease != h.Lease {
			t.Errorf("%+v", c)
		}
	})
}

func TestRun_CanceledWhileTheAgentIsAway(t *testing.T) {
	bubble(t, func(t *testing.T, d *Driver) {
		p := dial(t, d, "a")
		p.expect("")
		r := start(d, ask("a", "hello"), &agenttest.Recorder{})
		h := p.task()
		p.Close("gone")
		synctest.Wait()
		r.stop(context.Canceled)
		<-r.done
		p = dial(t, d, "a", h)
		p.expect("")
		p.expect(linkwire.MethodCancel)
	})
}

func TestRun_ForgottenTaskIsHandedOutAgain(t *testing.T) {
	bubble(t, func(t *testing.T, d *Driver) {
		p := dial(t, d, "a")
		p.expect("")
		r := start(d, ask("a", "hello"), &agenttest.Recorder{})
		h := p.task()
		p.Close("gone")
		p = dial(t, d, "a", h)
		p.expect("")
		m := p.expect(linkwire.MethodResume)
		p.say(linkwire.EncodeFailure(m.ID, &linkwire.Error{Code: linkwire.ErrForgotten, Message: "what?"}))
		h = p.task()
		p.finish(5, linkwire.Done{Task: h.Task, Lease: h.Lease, State: linkwire.Completed, Text: "done"})
		r.want(t, task.Completed, "done")
	})
}

func TestRun_TasksBeyondTheBoundWaitTheirTurn(t *testing.T) {
	bubble(t, func(t *testing.T, d *Driver) {
		p := dialWith(t, d, "a", linkwire.Hello{Protocol: 1, Name: "a", MaxTasks: 2})
		p.expect("")
		var all []*running
		recs := make([]*agenttest.Recorder, 5)
		for i := range 5 {
			recs[i] = &agenttest.Recorder{}
			all = append(all, start(d, ask("a", fmt.Sprint(i)), recs[i]))
			synctest.Wait() // in this order
		}
		if len(p.in) != 2 || len(recs[4].Statuses()) != 1 {
			t.Errorf("%d handed out, the last was told %q", len(p.in), recs[4].Statuses())
		}
		var order []string
		var open []linkwire.Task
		for range 5 {
			for m, ok := p.hear(); ok; m, ok = p.hear() {
				if m.Method == linkwire.MethodTask {
					var k linkwire.Task
					if err := json.Unmarshal(m.Params, &k); err != nil {
						t.Fatal(err)
					}
					p.accept(m.ID)
					open, order = append(open, k), append(order, k.Text)
				}
				if synctest.Wait(); len(p.in) == 0 {
					break
				}
			}
			if len(open) > 2 {
				t.Errorf("%d at once", len(open))
			}
			k := open[0]
			open = open[1:]
			p.finish(5, linkwire.Done{Task: k.Task, Lease: k.Lease, State: linkwire.Completed, Text: k.Text})
			synctest.Wait()
		}
		if !slices.IsSorted(order) {
			t.Errorf("in the order %v", order)
		}
		for i, r := range all {
			r.want(t, task.Completed, fmt.Sprint(i))
		}
	})
}

func TestRun_InputRequiredGoesOn(t *testing.T) {
	bubble(t, func(t *testing.T, d *Driver) {
		p := dial(t, d, "a")
		p.expect("")
		call := ask("a", "book a table")
		rec := &agenttest.Recorder{}
		r := start(d, call, rec)
		h := p.task()
		p.finish(5, linkwire.Done{Task: h.Task, Lease: h.Lease, State: linkwire.InputRequired, Text: "For how many?"})
		p.expect("")
		r.want(t, task.InputRequired, "For how many?")
		call.MessageID, call.Checkpoint, call.Parts = "another", rec.LastCheckpoint(), []task.Part{task.TextPart("four")}
		rec = &agenttest.Recorder{}
		r = start(d, call, rec)
		k, id := get[linkwire.Task](p, linkwire.MethodTask)
		if !k.Continued || k.Lease != h.Lease+1 || k.Text != "four" || k.Attempt != 1 {
			t.Errorf("%+v", k)
		}
		p.accept(id)
		p.finish(6, linkwire.Done{Task: k.Task, Lease: k.Lease, State: linkwire.Completed, Text: "Booked."})
		r.want(t, task.Completed, "Booked.")
	})
}

func TestRun_RefusedTask(t *testing.T) {
	bubble(t, func(t *testing.T, d *Driver) {
		p := dial(t, d, "a")
		p.expect("")
		r := start(d, ask("a", "hello"), &agenttest.Recorder{})
		m := p.expect(linkwire.MethodTask)
		p.say(linkwire.EncodeFailure(m.ID, &linkwire.Error{Code: linkwire.ErrDeclined, Message: "I only speak\nFrench\u202e"}))
		r.want(t, task.Rejected, "")
		if r.res.Reason != "I only speak French." {
			t.Errorf("%q", r.res.Reason)
		}
	})
}

func TestExpect_AbsentAgentsAreUnreachable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &observed{}
		d := New(Config{Observer: o})
		defer d.Close()
		d.ExpectAgents("here", "absent")
		time.Sleep(5 * time.Second)
		p := dial(t, d, "here")
		p.expect("")
		time.Sleep(10 * time.Second)
		if got := o.String(); got != "here alive; absent unreachable" {
			t.Error(got)
		}
		// Away for a moment is no news.
		p.Close("gone")
		time.Sleep(time.Second)
		p = dial(t, d, "here")
		p.expect("")
		time.Sleep(time.Minute)
		p.Close("gone")
		time.Sleep(3*time.Second + time.Millisecond)
		if got := o.String(); got != "here alive; absent unreachable; here alive; here unreachable" {
			t.Error(got)
		}
	})
}

func TestDrop_EndsTheConnectionAndTheTaskWaits(t *testing.T) {
	bubble(t, func(t *testing.T, d *Driver) {
		d.Drop("nobody") // whom it does not know
		p := dial(t, d, "helper")
		p.expect("")
		r := start(d, ask("helper", "hello"), &agenttest.Recorder{})
		h := p.task()
		d.Drop("helper")
		<-p.done
		if *p.reason != linkwire.ReasonProve {
			t.Errorf("closed with %q", *p.reason)
		}
		// Whoever still may comes back and goes on with what it holds.
		p = dial(t, d, "helper", h)
		p.expect("")
		m := p.expect(linkwire.MethodResume)
		p.accept(m.ID)
		p.finish(9, linkwire.Done{Task: h.Task, Lease: h.Lease, State: linkwire.Completed, Text: "still me"})
		r.want(t, task.Completed, "still me")
	})
}
