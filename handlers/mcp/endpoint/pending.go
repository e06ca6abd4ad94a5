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

// answerTime is how long a call waits for the client's answer to a request on its stream.
const answerTime = 10 * time.Minute

// Bounds of the unanswered requests to clients in total and per caller, and of the running calls. Each
// holds a connection.
const (
	maxQuestions     = 4096
	maxQuestionsEach = 64
	maxCalls         = 20_000
)

// pending matches messages that clients with a handshake send in HTTP requests of their own: answers to
// requests on a stream, and cancellations. Create it with newPending.
type pending struct {
	mu        sync.Mutex // guards the fields below
	questions map[string]*question
	asked     map[string]int // number of unanswered requests by caller
	calls     map[string]context.CancelCauseFunc
}

// question is a request to a client that waits for its answer.
type question struct {
	caller string
	answer chan message // has capacity 1, so that delivery never blocks
}

func newPending() *pending {
	return &pending{questions: make(map[string]*question), asked: make(map[string]int),
		calls: make(map[string]context.CancelCauseFunc)}
}

// errClientRefused means that the client answered a request with an error.
var errClientRefused = errors.New("the client refused to answer")

// askClient sends a request to the client on the stream of a call and returns the client's result. It
// returns errClientRefused for an error, and ctx's error or a problem if no answer comes.
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

// addQuestion registers an unanswered request, or returns a problem above the bounds. The caller calls
// removeQuestion afterwards.
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

// deliverAnswer passes an answer to the call that waits for it. It returns false if there is none, or if
// another caller's call waits.
func (p *pending) deliverAnswer(caller string, m message) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	q := p.questions[string(m.id)]
	if q == nil || q.caller != caller {
		return false
	}
	delete(p.questions, string(m.id))
	q.answer <- m // does not block: capacity 1
	return true
}

// callKey returns the key of a running call. Clients number their calls within a session, so the key
// contains caller and session.
func callKey(caller, session string, id json.RawMessage) string {
	return strconv.Itoa(len(session)) + session + " " + caller + " " + string(id)
}

// addCall registers a call that its client may cancel. Call forget at the end of the call.
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

// cancelCall cancels a running call. It does nothing if the call has ended already.
func (p *pending) cancelCall(key string) {
	p.mu.Lock()
	cancel := p.calls[key]
	p.mu.Unlock()
	if cancel != nil {
		cancel(errCancelled{})
	}
}
