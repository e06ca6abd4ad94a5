package link

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"agentsite/internal/hub"
	"agentsite/internal/linkwire"
	"agentsite/internal/task"
	"agentsite/internal/testing/agenttest"
)

// observed is what the driver said of its agents.
type observed struct {
	mu  sync.Mutex // guards all
	all []string
}

func (o *observed) Observe(_ context.Context, id string, l hub.Liveness) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all = append(o.all, id+" "+string(l.State))
}

func (o *observed) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.Join(o.all, "; ")
}

func TestHostile_BytesEndTheConnectionOnly(t *testing.T) {
	for name, b := range map[string][]byte{
		"not UTF-8":     []byte("{\"jsonrpc\":\"2.0\",\"method\":\"delta\",\"params\":{\"text\":\"\xff\xfe\"}}"),
		"not JSON":      []byte(`{"jsonrpc":"2.0",`),
		"an array":      []byte(`[{"jsonrpc":"2.0","method":"delta"}]`),
		"deep":          []byte(`{"jsonrpc":"2.0","method":"delta","params":` + strings.Repeat(`{"a":`, 500) + "1" + strings.Repeat("}", 501)),
		"too large":     bytes.Repeat([]byte(" "), linkwire.MaxMessage+1),
		"no version":    []byte(`{"method":"delta","params":{}}`),
		"both":          []byte(`{"jsonrpc":"2.0","id":1,"method":"done","result":{}}`),
		"neither":       []byte(`{"jsonrpc":"2.0","id":1}`),
		"id of objects": []byte(`{"jsonrpc":"2.0","id":{},"method":"done"}`),
		"long id":       []byte(`{"jsonrpc":"2.0","id":"` + strings.Repeat("a", 100) + `","method":"done"}`),
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, d *Driver) {
				good := dial(t, d, "good")
				good.expect("")
				p := dial(t, d, "bad")
				p.expect("")
				p.say(b)
				if _, ok := p.hear(); ok {
					t.Error("it was answered")
				}
				<-p.done
				r := start(d, ask("good", "hello"), &agenttest.Recorder{})
				h := good.task()
				good.finish(5, linkwire.Done{Task: h.Task, Lease: h.Lease, State: linkwire.Completed, Text: "fine"})
				r.want(t, task.Completed, "fine")
			})
		})
	}
}

func TestHostile_ForeignTasksAreOutOfReach(t *testing.T) {
	bubble(t, func(t *testing.T, d *Driver) {
		mine, evil := dial(t, d, "mine"), dial(t, d, "evil")
		mine.expect("")
		evil.expect("")
		rec := &agenttest.Recorder{}
		r := start(d, ask("mine", "hello"), rec)
		h := mine.task()
		evil.delta(h, "I am mine")
		evil.say(linkwire.EncodeNotification(linkwire.MethodStatus, linkwire.Status{Task: h.Task, Lease: h.Lease, Text: "evil"}))
		evil.say(linkwire.EncodeNotification(linkwire.MethodArtifact, linkwire.Produced{Task: h.Task, Lease: h.Lease, Artifact: linkwire.Artifact{ID: "x", Parts: []linkwire.Part{{Text: "evil"}}}}))
		evil.finish(5, linkwire.Done{Task: h.Task, Lease: h.Lease, State: linkwire.Completed, Text: "evil"})
		if m := evil.expect(""); m.Error == nil || m.Error.Code != linkwire.ErrLease {
			t.Errorf("%+v", m)
		}
		evil.accept([]byte("2")) // an answer to nothing
		evil.Close("over")
		evil = dial(t, d, "evil", h) // as if it held the lease
		evil.expect("")
		evil.delta(h, "evil")
		evil.finish(6, linkwire.Done{Task: h.Task, Lease: h.Lease, State: linkwire.Completed, Text: "evil"})
		if m := evil.expect(""); m.Error == nil || m.Error.Code != linkwire.ErrNotNow {
			t.Errorf("%+v", m)
		}
		mine.finish(5, linkwire.Done{Task: h.Task, Lease: h.Lease, State: linkwire.Completed, Text: "good"})
		r.want(t, task.Completed, "good")
		if rec.Shown() != "good" || len(rec.Statuses()) > 0 || len(rec.Artifacts()) > 0 {
			t.Errorf("%s", rec)
		}
	})
}

// rejects runs one task whose agent says what say makes it say.
func rejects(t *testing.T, say func(p *peer, h linkwire.Held)) task.Result {
	t.Helper()
	var res task.Result
	bubble(t, func(t *testing.T, d *Driver) {
		p := dial(t, d, "a")
		p.expect("")
		r := start(d, ask("a", "hello"), &agenttest.Recorder{})
		h := p.task()
		p.delta(h, "begun ")
		h.Offset = len("begun ")
		go func() { // what the portal says is read all the while
			for {
				if _, ok := p.hear(); !ok {
					return
				}
			}
		}()
		say(p, h)
		<-r.done
		res = r.res
		if r.err != nil || res.State != task.Failed || !strings.HasSuffix(res.Reason, ".") {
			t.Errorf("%+v %v", res, r.err)
		}
	})
	return res
}

func TestHostile_AnswersThatAreNotAsTheyShouldBe(t *testing.T) {
	end := func(d linkwire.Done) func(*peer, linkwire.Held) {
		return func(p *peer, h linkwire.Held) {
			d.Task, d.Lease = h.Task, h.Lease
			p.finish(5, d)
		}
	}
	long := strings.Repeat("a", linkwire.MaxText+1)
	for name, say := range map[string]func(*peer, linkwire.Held){
		"gap":          func(p *peer, h linkwire.Held) { h.Offset += 3; p.delta(h, "x") },
		"negative":     func(p *peer, h linkwire.Held) { h.Offset = -1; p.delta(h, "x") },
		"mid rune":     func(p *peer, h linkwire.Held) { p.delta(h, "☃"); h.Offset++; p.delta(h, "☃☃") },
		"too long":     func(p *peer, h linkwire.Held) { p.delta(h, long) },
		"no such end":  end(linkwire.Done{State: "working"}),
		"no end":       end(linkwire.Done{}),
		"long text":    end(linkwire.Done{State: linkwire.Completed, Text: long}),
		"many parts":   end(linkwire.Done{State: linkwire.Completed, Parts: make([]linkwire.Part, 100)}),
		"empty part":   end(linkwire.Done{State: linkwire.Completed, Parts: []linkwire.Part{{}}}),
		"two in one":   end(linkwire.Done{State: linkwire.Completed, Parts: []linkwire.Part{{Text: "a", URL: "https://x.example/"}}}),
		"script link":  end(linkwire.Done{State: linkwire.Completed, Parts: []linkwire.Part{{URL: "javascript:alert(1)"}}}),
		"no artifact":  func(p *peer, h linkwire.Held) { artifact(p, h, linkwire.Artifact{}) },
		"artifacts":    func(p *peer, h linkwire.Held) { artifacts(p, h, 1000, 10) },
		"big artifact": func(p *peer, h linkwire.Held) { artifacts(p, h, 10, 500<<10) },
		"failed":       end(linkwire.Done{State: linkwire.Failed}),
	} {
		t.Run(name, func(t *testing.T) {
			res := rejects(t, say)
			if text := task.PlainText(res.Parts); !strings.HasPrefix(text, "begun ") || len(text) > 100 {
				t.Errorf("kept %.100q", text)
			}
			t.Log(res.Reason)
		})
	}
}

func artifact(p *peer, h linkwire.Held, a linkwire.Artifact) {
	p.say(linkwire.EncodeNotification(linkwire.MethodArtifact, linkwire.Produced{Task: h.Task, Lease: h.Lease, Artifact: a}))
}

func artifacts(p *peer, h linkwire.Held, n, size int) {
	for range n {
		artifact(p, h, linkwire.Artifact{ID: "same", Parts: []linkwire.Part{{Text: strings.Repeat("a", size)}}})
	}
}

func TestHostile_DoneTwiceCountsOnce(t *testing.T) {
	bubble(t, func(t *testing.T, d *Driver) {
		p := dial(t, d, "a")
		p.expect("")
		r := start(d, ask("a", "hello"), &agenttest.Recorder{})
		h := p.task()
		for id, text := range map[int64]string{5: "first"} {
			p.finish(id, linkwire.Done{Task: h.Task, Lease: h.Lease, State: linkwire.Completed, Text: text})
		}
		p.finish(6, linkwire.Done{Task: h.Task, Lease: h.Lease, State: linkwire.Failed, Reason: "second"})
		p.delta(h, "and more")
		r.want(t, task.Completed, "first")
	})
}

func TestHostile_FloodIsSlowedNotKept(t *testing.T) {
	bubble(t, func(t *testing.T, d *Driver) {
		p := dial(t, d, "a")
		p.expect("")
		began := time.Now()
		for range 20_000 {
			p.delta(linkwire.Held{Task: "nothing", Lease: 1}, "x")
		}
		if took := time.Since(began); took < 10*time.Second {
			t.Errorf("20,000 messages were taken in %s", took)
		}
	})
}

func TestHostile_TextIsCleaned(t *testing.T) {
	bubble(t, func(t *testing.T, d *Driver) {
		p := dial(t, d, "a")
		p.expect("")
		rec := &agenttest.Recorder{}
		r := start(d, ask("a", "hello"), rec)
		h := p.task()
		p.say(linkwire.EncodeNotification(linkwire.MethodStatus, linkwire.Status{Task: h.Task, Lease: h.Lease, Text: "line\none\u202e \x1b[31m" + strings.Repeat("a", 1000)}))
		p.delta(h, "a\x00b")
		h.Offset = 3 // as the agent counts
		p.delta(h, "c")
		p.finish(5, linkwire.Done{Task: h.Task, Lease: h.Lease, State: linkwire.Completed})
		r.want(t, task.Completed, "abc")
		if s := rec.Statuses(); rec.Shown() != "abc" || len(s) != 1 || len(s[0]) > linkwire.MaxStatus || strings.ContainsAny(s[0], "\n\x1b\u202e") {
			t.Errorf("%s", rec)
		}
	})
}

func TestHostile_ReaderThatDoesNotRead(t *testing.T) {
	bubble(t, func(t *testing.T, d *Driver) {
		dialWith(t, d, "a", linkwire.Hello{Protocol: 1, Name: "a", MaxTasks: 64})
		began := time.Now()
		var all []*running
		for range 40 {
			all = append(all, start(d, ask("a", "hello"), &agenttest.Recorder{}))
		}
		for _, r := range all {
			<-r.done
			if r.res.State != task.Failed {
				t.Errorf("%+v", r.res)
			}
		}
		if took := time.Since(began); took > 2*time.Minute {
			t.Errorf("held for %s", took)
		}
	})
}

func TestRun_FilesBecomeArtifacts(t *testing.T) {
	bubble(t, func(t *testing.T, d *Driver) {
		p := dial(t, d, "a")
		p.expect("")
		rec := &agenttest.Recorder{}
		r := start(d, ask("a", "hello"), rec)
		h := p.task()
		p.finish(5, linkwire.Done{Task: h.Task, Lease: h.Lease, State: linkwire.Completed, Parts: []linkwire.Part{{Text: "Here."}, {Raw: []byte("GIF"), Filename: "a.gif", MediaType: "image/gif"}}})
		r.want(t, task.Completed, "Here.")
		if a := rec.Artifacts(); len(a) != 1 || string(a[0].Parts[0].Raw) != "GIF" {
			t.Errorf("%+v", a)
		}
	})
}

func TestRun_IsTraced(t *testing.T) {
	bubble(t, func(t *testing.T, d *Driver) {
		p := dial(t, d, "a")
		p.expect("")
		var mu sync.Mutex
		var heads []string
		ctx := task.WithTrace(context.Background(), tracerFunc(func(tr task.Traced) {
			mu.Lock()
			defer mu.Unlock()
			way := "<"
			if tr.Out {
				way = ">"
			}
			heads = append(heads, way+tr.Head)
			if len(tr.Body) > task.MaxTraced || tr.Size == 0 {
				t.Errorf("%s: %d of %d", tr.Head, len(tr.Body), tr.Size)
			}
		}))
		done := make(chan struct{})
		go func() {
			defer close(done)
			d.Run(ctx, ask("a", strings.Repeat("long ", 10_000)), &agenttest.Recorder{})
		}()
		h := p.task()
		p.delta(h, "x")
		p.finish(5, linkwire.Done{Task: h.Task, Lease: h.Lease, State: linkwire.Completed})
		<-done
		if got := strings.Join(heads, " "); got != ">task <answer <delta <done >answer" {
			t.Error(got)
		}
	})
}

// tracerFunc is a task.Tracer by a function.
type tracerFunc func(task.Traced)

func (f tracerFunc) AddTrace(t task.Traced) { f(t) }
