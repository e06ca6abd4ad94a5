package linkwire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"
)

// Agent is the agent's side of the protocol: it connects to the portal, sends hello, works on the
// tasks that it receives, reconnects after breaks and resumes its tasks. Fill the exported fields,
// then call Run once.
type Agent struct {
	Hello Hello
	Dial  func(ctx context.Context) (*Socket, error)
	// Work does one task and is called in a goroutine of its own. Of its result only State, Text,
	// Parts and Reason are sent. Its ctx ends when the task is canceled or the agent stops; Work
	// must then return.
	Work func(ctx context.Context, t Task, out *Answer) Done
	// Connected is called for each accepted connection, Lost for each break or failed attempt, with
	// the time until the next attempt. Both may be nil.
	Connected func(Welcome)
	Lost      func(err error, wait time.Duration)

	mu       sync.Mutex // guards the fields below
	jobs     map[string]*job
	wake     chan struct{} // signals the sending goroutine: output is waiting, or a job has ended
	stopping bool
	nextID   int64
	wg       sync.WaitGroup
}

const (
	retryMin = 250 * time.Millisecond
	retryMax = 15 * time.Second
	// steadyTime is the lifetime after which a connection counts as a success: the pause before the
	// next attempt then starts at retryMin again.
	steadyTime = 5 * time.Second
	// gatherTime is the pause between two rounds of sending, so that small pieces of text become one
	// message.
	gatherTime = 40 * time.Millisecond
	// maxPiece bounds the text of one delta, in bytes.
	maxPiece = 64 << 10
	// farewellWait is the time that a stopping agent waits for the portal to confirm the ends of
	// its tasks.
	farewellWait = 5 * time.Second
)

// Run works until ctx ends, then ends its tasks, reports them to the portal and returns nil. It returns
// an error when the portal refuses the agent for good, or another connection replaced this one.
func (a *Agent) Run(ctx context.Context) error {
	a.mu.Lock()
	a.jobs, a.wake, a.nextID = make(map[string]*job), make(chan struct{}, 1), 1
	a.mu.Unlock()
	defer a.wg.Wait()
	defer a.dropAll()
	for tries := 0; ; tries++ {
		began := time.Now()
		err := a.runConnection(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if isFinal(err) {
			return err
		}
		if time.Since(began) >= steadyTime {
			tries = 0
		}
		wait := min(retryMin<<min(tries, 10), retryMax)
		wait = wait/2 + rand.N(wait/2)
		// close code 1012 means that the portal restarts: spread the reconnects of its agents
		if code, _ := CloseReason(err); code == 1012 {
			wait = rand.N(time.Second)
		}
		wait = max(wait, retryAfter(err))
		if a.Lost != nil {
			a.Lost(err, wait)
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil
		}
	}
}

// isFinal reports whether err means that another attempt would fail too: the portal refused the
// agent, or another connection replaced this one.
func isFinal(err error) bool {
	if code, _ := CloseReason(err); code == CodeReplaced {
		return true
	}
	if r, ok := errors.AsType[*Refused](err); ok {
		return r.Status >= 400 && r.Status < 500 && r.Status != http.StatusTooManyRequests &&
			r.Status != http.StatusRequestTimeout
	}
	if e, ok := errors.AsType[*Error](err); ok && e.Code == ErrRefused && e.Data != nil {
		return slices.Contains([]string{"invalid", "unauthenticated", "forbidden", "not_found", "conflict"},
			e.Data.Kind)
	}
	return false
}

func retryAfter(err error) time.Duration {
	if r, ok := errors.AsType[*Refused](err); ok {
		if n, err := strconv.Atoi(r.Header.Get("Retry-After")); err == nil {
			return time.Duration(max(0, min(n, 60))) * time.Second
		}
	}
	return 0
}

// runConnection connects once, sends hello and serves until that connection ends. Its error is
// never nil and says why the connection ended.
func (a *Agent) runConnection(ctx context.Context) error {
	dctx, cancel := context.WithTimeout(ctx, 3*SendWait)
	s, err := a.Dial(dctx)
	cancel()
	if err != nil {
		return err
	}
	defer s.Wait()
	defer s.Close("bye: the agent stops")
	cut := context.AfterFunc(ctx, func() { s.Close("bye: the agent stops") })
	defer cut()
	hello := a.Hello
	hello.Protocol = Version
	hello.Resume = a.listHeld()
	if err := s.Send(ctx, EncodeRequest(1, MethodHello, hello)); err != nil {
		return err
	}
	b, err := s.Receive(ctx)
	if err != nil {
		return err
	}
	m, err := DecodeMessage(b)
	var w Welcome
	switch {
	case err != nil:
		return fmt.Errorf("the portal sent %w", err)
	case m.Error != nil:
		return m.Error
	case json.Unmarshal(m.Result, &w) != nil || w.Agent == "":
		return errors.New("the portal did not answer hello; is it a portal?")
	}
	if a.Connected != nil {
		a.Connected(w)
	}
	return a.serveConnection(ctx, s, cut)
}

// listHeld lists the tasks that have not ended, for the hello message, and makes them inactive: no
// message about one of them may be sent until the portal resumes it.
func (a *Agent) listHeld() []Held {
	a.mu.Lock()
	defer a.mu.Unlock()
	list := []Held{}
	for _, j := range a.jobs {
		j.active, j.doneID = false, 0
		list = append(list, Held{j.task.Task, j.task.Lease, len(j.text)})
	}
	return list
}

// serveConnection sends and receives messages on a connection after hello, until it ends. cut turns
// off the immediate close when ctx ends, so that a stop can report the ends of the tasks first.
func (a *Agent) serveConnection(ctx context.Context, s *Socket, cut func() bool) error {
	over, end := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer end()
	wg.Go(func() { a.pumpMessages(over, s) })
	if cut() { // turned off in time: a stop now reports the ends of tasks first
		stop := context.AfterFunc(ctx, func() { a.stopAndClose(over, s) })
		defer stop()
	}
	for {
		b, err := s.Receive(over)
		if err != nil {
			return err
		}
		m, err := DecodeMessage(b)
		if err != nil {
			return fmt.Errorf("the portal sent %w", err)
		}
		if answer := a.handleMessage(ctx, m); answer != nil {
			if err := s.Send(over, answer); err != nil {
				return err
			}
		}
	}
}

// stopAndClose cancels all tasks and closes the connection once the portal has confirmed their
// ends, after farewellWait at the latest. over ends with the connection.
func (a *Agent) stopAndClose(over context.Context, s *Socket) {
	a.mu.Lock()
	a.stopping = true
	for _, j := range a.jobs {
		j.cancel()
	}
	a.mu.Unlock()
	end := time.NewTimer(farewellWait)
	defer end.Stop()
	tick := time.NewTicker(gatherTime)
	defer tick.Stop()
	for left := true; left; {
		a.mu.Lock()
		left = len(a.jobs) > 0
		a.mu.Unlock()
		select {
		case <-tick.C:
		case <-end.C:
			left = false
		case <-over.Done():
			left = false
		}
	}
	s.Close("bye: the agent stops")
}

// handleMessage handles one message of the portal and returns the answer to send, nil for none.
func (a *Agent) handleMessage(ctx context.Context, m Message) []byte {
	refuse := func(code int, text string) []byte {
		if m.ID == nil {
			return nil
		}
		return EncodeFailure(m.ID, &Error{Code: code, Message: text})
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	switch m.Method {
	case "": // a message without method answers a done request
		for _, j := range a.jobs {
			if j.doneID == 0 || strconv.FormatInt(j.doneID, 10) != string(m.ID) {
				continue
			}
			if m.Error != nil && m.Error.Code == ErrNotNow {
				j.doneID, j.active = 0, false
			} else {
				a.dropJob(j)
			}
			break
		}
		return nil
	case MethodTask:
		var t Task
		if json.Unmarshal(m.Params, &t) != nil || t.Task == "" {
			return refuse(ErrParams, "task: the params are no task")
		}
		if old := a.jobs[t.Task]; old != nil {
			if old.task.Lease == t.Lease {
				return EncodeResponse(m.ID, Accepted{true})
			}
			a.dropJob(old) // the portal gave the task out again: the lease of the old run was lost
		}
		if a.stopping || len(a.jobs) >= MaxTasks {
			return refuse(ErrBusy, "The agent takes no more tasks now.")
		}
		a.startJob(ctx, t)
		return EncodeResponse(m.ID, Accepted{true})
	case MethodResume:
		var h Held
		if json.Unmarshal(m.Params, &h) != nil {
			return refuse(ErrParams, "resume: the params name no task")
		}
		j := a.jobs[h.Task]
		if j == nil || j.task.Lease != h.Lease || !j.resumeFrom(h.Offset) {
			return refuse(ErrForgotten, "The agent does not have this task.")
		}
		a.wakePump()
		return EncodeResponse(m.ID, Accepted{true})
	case MethodCancel:
		var c Cancel
		if json.Unmarshal(m.Params, &c) == nil {
			if j := a.jobs[c.Task]; j != nil && j.task.Lease == c.Lease {
				a.dropJob(j)
			}
		}
		return nil
	}
	return refuse(ErrMethod, fmt.Sprintf("There is no method %.40q.", m.Method))
}

// startJob runs Work on a task in a new goroutine. The caller holds mu.
func (a *Agent) startJob(ctx context.Context, t Task) {
	ctx, cancel := context.WithCancel(ctx)
	j := &job{task: t, cancel: cancel, active: true}
	a.jobs[t.Task] = j
	a.wg.Go(func() {
		defer cancel()
		d := a.Work(ctx, t, &Answer{a, j})
		d.Task, d.Lease = t.Task, t.Lease
		a.mu.Lock()
		defer a.mu.Unlock()
		j.done = &d
		a.wakePump()
	})
}

// dropJob cancels a task and removes it from the jobs, so that nothing more is sent about it. The
// caller holds mu.
func (a *Agent) dropJob(j *job) {
	j.cancel()
	if a.jobs[j.task.Task] == j {
		delete(a.jobs, j.task.Task)
	}
}

func (a *Agent) dropAll() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, j := range a.jobs {
		a.dropJob(j)
	}
}

// wakePump wakes the goroutine that sends output. It never blocks.
func (a *Agent) wakePump() {
	select {
	case a.wake <- struct{}{}:
	default:
	}
}
