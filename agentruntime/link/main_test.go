package link

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/linkwire"
	"agentsite/internal/task"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// end is one end of a connection in memory, bounded like the real one.
type end struct {
	in, out chan []byte
	gone    chan struct{}
	once    *sync.Once
	reason  *string
}

func pair() (portal, agent *end) {
	a, b, gone := make(chan []byte, 16), make(chan []byte, 16), make(chan struct{})
	once, reason := new(sync.Once), new(string)
	return &end{a, b, gone, once, reason}, &end{b, a, gone, once, reason}
}

// Send implements task.Stream.
func (e *end) Send(ctx context.Context, m []byte) error {
	if len(m) > linkwire.MaxMessage {
		e.Close("too large")
	}
	select {
	case <-e.gone:
		return task.ErrDetached
	default:
	}
	select {
	case e.out <- m:
		return nil
	case <-e.gone:
		return task.ErrDetached
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Receive implements task.Stream.
func (e *end) Receive(ctx context.Context) ([]byte, error) {
	select {
	case m := <-e.in:
		return m, nil
	default:
	}
	select {
	case m := <-e.in:
		return m, nil
	case <-e.gone:
		return nil, task.ErrDetached
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Close implements task.Stream.
func (e *end) Close(reason string) { e.once.Do(func() { *e.reason = reason; close(e.gone) }) }

// peer is an agent written by hand: it says exactly what a test wants.
type peer struct {
	*end
	t    testing.TB
	done chan struct{} // closed when Attach has returned
}

// dial attaches an agent and says hello.
func dial(t testing.TB, d *Driver, id string, held ...linkwire.Held) *peer {
	return dialWith(t, d, id, linkwire.Hello{Protocol: 1, Name: id, Resume: held})
}

func dialWith(t testing.TB, d *Driver, id string, h linkwire.Hello) *peer {
	portal, mine := pair()
	p := &peer{mine, t, make(chan struct{})}
	go func() {
		defer close(p.done)
		defer portal.Close("over")
		d.Attach(context.Background(), task.Attached{AgentID: id, Name: id, Client: "test"}, portal)
	}()
	t.Cleanup(func() { p.Close("over"); <-p.done })
	p.say(linkwire.EncodeRequest(1, linkwire.MethodHello, h))
	return p
}

func (p *peer) say(b []byte) {
	if err := p.Send(context.Background(), b); err != nil && !errors.Is(err, task.ErrDetached) {
		p.t.Error(err)
	}
}

// hear returns the next message, or false when the connection is over.
func (p *peer) hear() (linkwire.Message, bool) {
	b, err := p.Receive(context.Background())
	if err != nil {
		return linkwire.Message{}, false
	}
	m, err := linkwire.DecodeMessage(b)
	if err != nil {
		p.t.Errorf("the portal sent %v: %.200s", err, b)
	}
	return m, true
}

// expect returns the next message, which must be of that method; "" is an
// answer.
func (p *peer) expect(method string) linkwire.Message {
	p.t.Helper()
	m, ok := p.hear()
	if !ok || m.Method != method {
		p.t.Fatalf("got %q %s (connected: %v), want %q", m.Method, m.Params, ok, method)
	}
	return m
}

// get is expect with its params.
func get[T any](p *peer, method string) (v T, id json.RawMessage) {
	p.t.Helper()
	m := p.expect(method)
	if err := json.Unmarshal(m.Params, &v); err != nil {
		p.t.Fatal(err)
	}
	return v, m.ID
}

func (p *peer) accept(id json.RawMessage) {
	p.say(linkwire.EncodeResponse(id, linkwire.Accepted{Accepted: true}))
}

func (p *peer) delta(h linkwire.Held, text string) {
	p.say(linkwire.EncodeNotification(linkwire.MethodDelta, linkwire.Delta{Task: h.Task, Lease: h.Lease, Offset: h.Offset, Text: text}))
}

func (p *peer) finish(id int64, d linkwire.Done) {
	p.say(linkwire.EncodeRequest(id, linkwire.MethodDone, d))
}

// task takes the next task and accepts it.
func (p *peer) task() linkwire.Held {
	p.t.Helper()
	t, id := get[linkwire.Task](p, linkwire.MethodTask)
	p.accept(id)
	return linkwire.Held{Task: t.Task, Lease: t.Lease}
}

func ask(agent, text string) task.Call {
	return task.Call{TaskID: ident.NewID(), ConversationID: ident.NewID(), MessageID: ident.NewID(), Attempt: 1,
		Agent:  task.Target{ID: agent, Name: agent, Kind: string(hub.Link)},
		Caller: task.Caller{Kind: "person", Handle: "ada"}, Parts: []task.Part{task.TextPart(text)}}
}

// running is a call of Run under way.
type running struct {
	res  task.Result
	err  error
	done chan struct{}
	stop context.CancelCauseFunc
}

func start(d *Driver, call task.Call, out task.Sink) *running {
	ctx, cancel := context.WithCancelCause(context.Background())
	r := &running{done: make(chan struct{}), stop: cancel}
	go func() {
		defer close(r.done)
		r.res, r.err = d.Run(ctx, call, out)
	}()
	return r
}

func (r *running) want(t testing.TB, state task.State, text string) {
	t.Helper()
	<-r.done
	if r.err != nil || r.res.State != state || task.PlainText(r.res.Parts) != text {
		t.Errorf("ended as %s %q %q %v, want %s %q", r.res.State, fmt.Sprintf("%.200s", task.PlainText(r.res.Parts)), r.res.Reason, r.err, state, text)
	}
}
