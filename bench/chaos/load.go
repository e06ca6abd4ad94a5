package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"
)

// room is one conversation and the results of all requests that clients made in it.
type room struct {
	id, kind string
	people   []*account
	asks     bool // the built-in calculator is a member, so every message is a question
	long     bool // messages are up to longText bytes in this round

	mu       sync.Mutex // guards the fields below
	ops      []*op
	streams  []stream
	verified int64 // last seq that the last check read
	found    []violation
}

func (r *room) blame(kind, format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.blameLocked(kind, format, args...)
}

func (r *room) blameLocked(kind, format string, args ...any) {
	r.found = append(r.found, violation{kind, r.name() + ": " + fmt.Sprintf(format, args...)})
}

func (r *room) name() string { return r.kind + " " + r.id }

// counter returns numbers that make each text unique in the run. It is safe for concurrent use.
type counter struct {
	mu sync.Mutex
	n  int64
}

func (c *counter) next() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
	return c.n
}

// longText is the size of messages in some rounds, in bytes. It is large enough that SQLite's
// write-ahead log fills up and is checkpointed under load.
const longText = 30 << 10

// newOp creates a message with a new text and adds it to the room. In a room with the calculator the
// text is a sum, with addends chosen so that no number in any question is the answer to another
// question.
func (r *room) newOp(who *account, run string, n int64, rng *rand.Rand) *op {
	size := 400
	if r.long {
		size = longText
	}
	o := &op{sender: who.name, clientID: fmt.Sprintf("%s-%d", run, n), text: fmt.Sprintf("note %d of %s%s", n, run, strings.Repeat(".", rng.IntN(size)))}
	if r.asks {
		a, b := 100_000_000+16*n, 1+rng.Int64N(9)
		o.text, o.answer = fmt.Sprintf("%d + %d", a, b), a+b
	}
	r.mu.Lock()
	r.ops = append(r.ops, o)
	r.mu.Unlock()
	return o
}

// post sends o once with the given text, which may differ from o.text, and records the outcome. It
// returns the status, 0 if no answer came.
func (r *room) post(ctx context.Context, who *account, base string, o *op, text string) int {
	var ans postAnswer
	r.mu.Lock()
	known, attemptsBefore := o.outcome == acked, o.attempts
	o.attempts++
	r.mu.Unlock()
	status, err := who.call(ctx, "POST", base+"/api/v1/conversations/"+r.id+"/messages", map[string]string{"client_id": o.clientID, "text": text}, &ans)
	now := time.Now()

	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case errors.Is(err, errNotSent):
		o.attempts--
		if o.outcome == unknown && o.vague == 0 && o.attempts == 0 {
			o.outcome = refused
		}
	case err != nil || status >= 500:
		o.vague++
		if o.outcome == refused {
			o.outcome = unknown
		}
	case status == 201 || status == 200:
		switch {
		case o.outcome == acked && (o.id != ans.ID || o.seq != ans.Seq):
			r.blameLocked(duplicated, "client_id %s was answered with seq %d id %s, and again with seq %d id %s", o.clientID, o.seq, o.id, ans.Seq, ans.ID)
		case status == 201 && known:
			r.blameLocked(duplicated, "client_id %s, acknowledged before, was answered 201 again (seq %d)", o.clientID, ans.Seq)
		case status == 200 && o.outcome == refused:
			r.blameLocked(misbehaved, "client_id %s, of a message that is not there, was answered 200", o.clientID)
		case status == 200 && o.attempts == 1:
			r.blameLocked(misbehaved, "the new client_id %s was answered 200", o.clientID)
		case o.outcome != acked:
			o.outcome, o.id, o.seq, o.ackedAt = acked, ans.ID, ans.Seq, now
		}
		if len(ans.Tasks) == 1 {
			o.task = ans.Tasks[0].ID
		}
		if status == 201 && (len(ans.Tasks) == 1) != r.asks {
			r.blameLocked(misbehaved, "the message %q got %d tasks", o.text, len(ans.Tasks))
		}
	default: // any other status is a refusal
		switch {
		case status != 429 && known:
			r.blameLocked(misbehaved, "sending client_id %s again was answered %d", o.clientID, status)
		case o.outcome == unknown && o.vague == 0 && attemptsBefore == 0:
			o.outcome = refused
		}
	}
	return status
}

// twice sends one new message in two requests at once. Both must get the same answer, one with status
// 201 and one with 200.
func (r *room) twice(ctx context.Context, who *account, base string, o *op) {
	var wg sync.WaitGroup
	var status [2]int
	r.mu.Lock()
	o.attempts++ // so that post accepts status 200 for either request, although it is new
	r.mu.Unlock()
	for i := range status {
		wg.Go(func() { status[i] = r.post(ctx, who, base, o, o.text) })
	}
	wg.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	o.attempts--
	if s := status[0] + status[1]; status[0] >= 200 && status[1] >= 200 && status[0] < 300 && status[1] < 300 && s != 401 {
		r.blameLocked(duplicated, "client_id %s sent twice at once was answered %d and %d", o.clientID, status[0], status[1])
	}
	if status[0] >= 400 && status[0] < 500 && status[1] >= 400 && status[1] < 500 {
		o.outcome = refused
	}
}

// maxText is the portal's limit for the text of a message, in bytes.
const maxText = 64 << 10

// bad posts one of several kinds of invalid messages, which the portal must refuse.
func (r *room) bad(ctx context.Context, who, stranger *account, base, run string, n int64, rng *rand.Rand) {
	text := fmt.Sprintf("refused %d of %s", n, run)
	id := fmt.Sprintf("%s-bad-%d", run, n)
	body := map[string]any{"client_id": id, "text": text}
	switch kind := rng.IntN(6); kind {
	case 0:
		text += strings.Repeat("x", maxText)
		body["text"] = text
	case 1:
		delete(body, "client_id")
	case 2:
		text += "\x00"
		body["text"] = text
	case 3:
		who = stranger // stranger is not a member
	case 4:
		body["parts"] = []map[string]string{{"text": text}}
	case 5:
		body["client_id"] = strings.Repeat("i", 300)
	}
	o := &op{sender: who.name, clientID: id, text: text, outcome: refused}
	r.mu.Lock()
	r.ops = append(r.ops, o)
	r.mu.Unlock()
	status, err := who.call(ctx, "POST", base+"/api/v1/conversations/"+r.id+"/messages", body, nil)
	if err == nil && status < 400 {
		r.blame(misbehaved, "%q, which is not allowed, was answered %d", clip(text), status)
	}
}

// pick returns a random acknowledged message of the sender, or nil if a few tries find none.
func (r *room) pick(who *account, rng *rand.Rand) *op {
	r.mu.Lock()
	defer r.mu.Unlock()
	for range 8 {
		if len(r.ops) == 0 {
			return nil
		}
		if o := r.ops[rng.IntN(len(r.ops))]; o.sender == who.name && o.outcome == acked {
			return o
		}
	}
	return nil
}

// work makes requests in r until ctx ends: mostly new messages, some repeated, doubled or invalid ones.
func (r *room) work(ctx context.Context, who, stranger *account, base, run string, count *counter, rng *rand.Rand) {
	for ctx.Err() == nil {
		switch d := rng.IntN(100); {
		case d < 70:
			o := r.newOp(who, run, count.next(), rng)
			r.post(ctx, who, base, o, o.text)
		case d < 80:
			o := r.newOp(who, run, count.next(), rng)
			if s := r.post(ctx, who, base, o, o.text); s == 200 || s == 201 {
				other := o.text
				if rng.IntN(2) == 0 {
					other = "another text for " + o.clientID
				}
				r.post(ctx, who, base, o, other)
			}
		case d < 86:
			r.twice(ctx, who, base, r.newOp(who, run, count.next(), rng))
		case d < 93:
			r.bad(ctx, who, stranger, base, run, count.next(), rng)
		default:
			if o := r.pick(who, rng); o != nil {
				r.post(ctx, who, base, o, o.text)
			}
		}
		pause := time.Duration(rng.IntN(3000)) * time.Microsecond
		if r.asks {
			pause = time.Duration(3+rng.IntN(15)) * time.Millisecond
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
}

// watch reads r live until ctx ends. At random it disconnects and resumes after the last seq it read.
// The portal closes a WebSocket with code 1012 when it stops; when it is killed the connection breaks
// without a close code. With a server of its own (remote) the database may be away, which the code 1013 means.
func (r *room) watch(ctx context.Context, who *account, base, how string, after int64, rng *rand.Rand, remote bool) {
	for ctx.Err() == nil {
		s := stream{how: how, after: after, began: time.Now()}
		leave := time.Duration(50+rng.IntN(600)) * time.Millisecond
		lctx, cancel := context.WithTimeout(ctx, leave)
		err := who.follow(lctx, base, r.id, how, after, func(m message) bool {
			s.seen = append(s.seen, seen{m.seq, m.id, time.Now()})
			after = m.seq
			return true
		})
		left := lctx.Err() != nil
		cancel()
		r.mu.Lock()
		r.streams = append(r.streams, s)
		if e, ok := errors.AsType[errEnded](err); !left && ok && e.code >= 0 && e.code != 1012 && (e.code != 1013 || !remote) {
			r.blameLocked(misbehaved, "a socket was closed with %d, not 1012 (come back)", e.code)
		} else if f, ok := errors.AsType[failure](err); ok {
			r.found = append(r.found, f.violation)
		}
		r.mu.Unlock()
		if !left {
			return // the portal has ended
		}
	}
}

// agent is an agent that a client tried to register.
type agent struct {
	name    string
	outcome outcome
	at      time.Time
}

// register tries to register an agent. Its endpoint has no server, because the agent is never called.
func register(ctx context.Context, who *account, base, name string) (agent, error) {
	a := agent{name: name}
	var ans refusal
	status, err := who.call(ctx, "POST", base+"/api/v1/agents", map[string]any{
		"name": name, "title": "Chaos " + name, "description": "Registered under load.", "kind": "openai",
		"endpoint": "http://127.0.0.77:8999/v1", "visibility": "public",
		"skills": []map[string]any{{"id": "none", "name": "None", "description": "Answers nothing.", "tags": []string{"chaos"}, "examples": []string{}}},
		"config": map[string]any{"model": "none", "key": "secret of " + name},
	}, &ans)
	a.at = time.Now()
	switch {
	case errors.Is(err, errNotSent):
		a.outcome = refused
	case err != nil || status >= 500:
		a.outcome = unknown
	case status == 201 && ans.Name == name:
		a.outcome = acked
	case status == 201:
		return a, violationf(changed, "agent %s was registered as %q", name, ans.Name)
	default:
		a.outcome = refused
		if status != 429 {
			return a, violationf(misbehaved, "registering agent %s was answered %d: %s", name, status, ans.Error.Message)
		}
	}
	return a, nil
}
