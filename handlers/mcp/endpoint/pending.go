package endpoint

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// answerTime bounds the time for a client to answer a question on a stream.
const answerTime = 10 * time.Minute

// Bounds of the open questions, of those to one caller, and of the running calls: each holds a
// connection until it is answered.
const (
	maxQuestions     = 4096
	maxQuestionsEach = 64
	maxCalls         = 20_000
)

// pending matches the messages that versions with a handshake send in requests of their own:
// answers to questions on a stream, and cancellations. Create it with newPending.
type pending struct {
	mu        sync.Mutex // guards the rest
	questions map[string]*question
	asked     map[string]int // number of open questions by caller
	calls     map[string]context.CancelCauseFunc
}

// question is a question that waits for its answer.
type question struct {
	caller string
	answer chan message // capacity 1
}

func newPending() *pending {
	return &pending{questions: make(map[string]*question), asked: make(map[string]int),
		calls: make(map[string]context.CancelCauseFunc)}
}

// errClientRefused is the error of a question that the client answered with an error.
var errClientRefused = errors.New("the client refused to answer")

// askClient sends a question on the stream and returns the client's answer, or errClientRefused.
func (p *pending) askClient(ctx context.Context, out *reply, caller string, q Request) (json.RawMessage, error) {
	id := `"agentsite-` + strings.ToLower(rand.Text()) + `"`
	w := &question{caller, make(chan message, 1)}
	if err := p.addQuestion(id, w); err != nil {
		return nil, err
	}
	defer p.removeQuestion(id, w)
	if !out.sendEvent(encodeNotice(json.RawMessage(id), q.Method, q.Params)) {
		return nil, context.Canceled
	}
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	select {
	case m := <-w.answer:
		if m.err != nil {
			return nil, errClientRefused
		}
		return m.result, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// addQuestion adds an open question; removeQuestion must be called.
func (p *pending) addQuestion(id string, q *question) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.asked[q.caller] >= maxQuestionsEach:
		return &Problem{Code: CodeRefused, Status: http.StatusTooManyRequests,
			Message: "You have " + strconv.Itoa(maxQuestionsEach) + " questions to answer already. Answer some first."}
	case len(p.questions) >= maxQuestions:
		return &Problem{Code: CodeRefused, Status: http.StatusServiceUnavailable,
			Message: "Too many questions are open on this portal. Try again in a while."}
	}
	p.questions[id] = q
	p.asked[q.caller]++
	return nil
}

func (p *pending) removeQuestion(id string, q *question) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.questions, id)
	if p.asked[q.caller]--; p.asked[q.caller] == 0 {
		delete(p.asked, q.caller)
	}
}

// deliverAnswer passes an answer to the waiting question. It returns false if there is none.
func (p *pending) deliverAnswer(caller string, m message) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	q := p.questions[string(m.id)]
	if q == nil || q.caller != caller {
		return false
	}
	delete(p.questions, string(m.id))
	q.answer <- m // never blocks: capacity 1
	return true
}

// callKey returns the key of a running call: a client numbers its calls within a session.
func callKey(caller, session string, id json.RawMessage) string {
	return strconv.Itoa(len(session)) + session + " " + caller + " " + string(id)
}

// addCall adds a call that its client may cancel; forget must be called.
func (p *pending) addCall(key string, cancel context.CancelCauseFunc) (forget func()) {
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

// cancelCall cancels a call. An unknown call has ended already.
func (p *pending) cancelCall(key string) {
	p.mu.Lock()
	cancel := p.calls[key]
	p.mu.Unlock()
	if cancel != nil {
		cancel(errCancelled{})
	}
}
