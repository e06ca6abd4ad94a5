package endpoint

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// answerTime is how long a client may take to answer a question on a stream.
const answerTime = 10 * time.Minute

// Most questions and calls that are known at a time, and questions to one
// caller: each holds a connection for as long as nobody answers.
const (
	maxQuestions     = 4096
	maxQuestionsEach = 64
	maxCalls         = 20_000
)

// pending finds what the versions with a handshake say in a request of its
// own: answers to questions that were asked on a stream, and the end of a
// call. Create it with newPending.
type pending struct {
	mu        sync.Mutex // guards the rest
	questions map[string]*question
	asked     map[string]int // of questions, by whose they are
	calls     map[string]context.CancelCauseFunc
}

// question waits for its answer.
type question struct {
	whose  string
	answer chan message // of one
}

func newPending() *pending {
	return &pending{questions: make(map[string]*question), asked: make(map[string]int), calls: make(map[string]context.CancelCauseFunc)}
}

// ask sends a question on the stream and returns what the client answers.
func (p *pending) ask(ctx context.Context, out *reply, whose string, q Request) (json.RawMessage, error) {
	id := `"agentsite-` + strings.ToLower(rand.Text()) + `"`
	w := &question{whose, make(chan message, 1)}
	if err := p.open(id, w); err != nil {
		return nil, err
	}
	defer p.settle(id, w)
	if !out.event(notice(json.RawMessage(id), q.Method, q.Params)) {
		return nil, context.Canceled
	}
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	select {
	case m := <-w.answer:
		if m.err != nil {
			return nil, nil // the client will not
		}
		return m.result, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// open notes a question; settle must be called.
func (p *pending) open(id string, q *question) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.asked[q.whose] >= maxQuestionsEach:
		return &Problem{Code: CodeRefused, Status: http.StatusTooManyRequests, Message: "You have " + strconv.Itoa(maxQuestionsEach) + " questions to answer already. Answer some first."}
	case len(p.questions) >= maxQuestions:
		return &Problem{Code: CodeRefused, Status: http.StatusServiceUnavailable, Message: "Too many questions are open on this portal. Try again in a while."}
	}
	p.questions[id] = q
	p.asked[q.whose]++
	return nil
}

func (p *pending) settle(id string, q *question) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.questions, id)
	if p.asked[q.whose]--; p.asked[q.whose] == 0 {
		delete(p.asked, q.whose)
	}
}

// answered hands an answer to who asked. It reports false when nobody did.
func (p *pending) answered(whose string, m message) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	q := p.questions[string(m.id)]
	if q == nil || q.whose != whose {
		return false
	}
	delete(p.questions, string(m.id))
	q.answer <- m // of its room for one
	return true
}

// callKey tells a running call: a client numbers its calls in a session.
func callKey(whose, session string, id json.RawMessage) string {
	return strconv.Itoa(len(session)) + session + " " + whose + " " + string(id)
}

// began notes a call that its client may cancel; forget must be called.
func (p *pending) began(key string, cancel context.CancelCauseFunc) (forget func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, dup := p.calls[key]; dup || len(p.calls) >= maxCalls {
		return func() {}
	}
	p.calls[key] = cancel
	return func() {
		p.mu.Lock()
		delete(p.calls, key)
		p.mu.Unlock()
	}
}

// cancel ends a call. One that is not known has ended.
func (p *pending) cancel(key string) {
	p.mu.Lock()
	cancel := p.calls[key]
	p.mu.Unlock()
	if cancel != nil {
		cancel(errCancelled{})
	}
}
