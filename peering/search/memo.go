package search

import (
	"context"
	"errors"
	"sync"
	"time"

	"agentsite/internal/record"
)

const (
	// answeredFor is how long an answer is reused for equal queries, unansweredFor how long a failure is.
	answeredFor   = 10 * time.Second
	unansweredFor = 2 * time.Second
	// lateFor is how long a portal may take to answer. A search waits less; a later answer is cached for
	// the next equal search.
	lateFor = 2500 * time.Millisecond
	// maxMemo bounds the cached answers; beyond it arbitrary ones are dropped.
	maxMemo = 512
)

// errSlow is returned for a portal that takes softRTTs times longer than usual; its answer is still
// received.
var errSlow = errors.New("its answer takes longer than usual")

// memo caches answers of portals for some seconds, so that typing and going back in the browser do not
// query the network again. The zero value is ready; it is safe for concurrent use.
type memo struct {
	mu    sync.Mutex // guards the fields below, and asking.until
	list  map[question]*asking
	swept time.Time // time at which makeRoom last removed expired entries
}

// sweepEvery is the minimum time between two removals of all expired entries.
const sweepEvery = time.Second

// question is the key of a cached answer: the portal, the query as JSON, and the versions of the portal's
// head and of the policy. A new head or policy thereby invalidates the answer.
type question struct {
	portal record.PortalID
	head   record.Version
	rules  int64
	body   string
}

// asking is a request to one portal, running or answered.
type asking struct {
	done  chan struct{} // closed once found and err are set; they do not change afterwards
	found []found
	err   error
	until time.Time // expiry, guarded by memo.mu; zero while the request runs
}

// joinRequest returns the running or cached request to a portal, or starts one. ok is false when maxAsks
// requests run already. The request outlives its caller and ends with Searcher.Run or after lateFor.
func (m *memo) joinRequest(s *Searcher, p inquiry) (*asking, bool) {
	q := question{p.ID, p.Head, s.Catalog.PolicyVersion(), string(p.body)}
	now := time.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	if a := m.list[q]; a != nil && (a.until.IsZero() || now.Before(a.until)) {
		return a, true
	}
	select {
	case s.places <- struct{}{}:
	default:
		return nil, false
	}
	if m.list == nil {
		m.list = make(map[question]*asking)
	}
	m.makeRoom(now)
	a := &asking{done: make(chan struct{})}
	m.list[q] = a
	s.under.Go(func() {
		defer func() { <-s.places }()
		// A deadline would count a slow portal as down; a canceled request does not.
		ctx, cancel := context.WithCancel(s.alive)
		defer cancel()
		timer := time.AfterFunc(lateFor, cancel)
		defer timer.Stop()
		a.found, a.err = s.askPortal(ctx, p)
		m.mu.Lock()
		if a.until = time.Now().Add(answeredFor); a.err != nil {
			a.until = time.Now().Add(unansweredFor)
		}
		m.mu.Unlock()
		close(a.done)
	})
	return a, true
}

// makeRoom removes entries until one more fits into maxMemo, expired ones first. The caller holds mu.
func (m *memo) makeRoom(now time.Time) {
	if len(m.list) < maxMemo {
		return
	}
	if now.Sub(m.swept) >= sweepEvery {
		m.swept = now
		for q, a := range m.list {
			if !a.until.IsZero() && !now.Before(a.until) {
				delete(m.list, q)
			}
		}
	}
	for q := range m.list { // remove arbitrary entries: their portals are asked again
		if len(m.list) < maxMemo {
			break
		}
		delete(m.list, q)
	}
}

// wait waits for the answer until ctx ends. rtt is the usual response time of the portal, 0 if unknown;
// wait gives up with errSlow after softRTTs times that, and at least softLeast.
func (a *asking) wait(ctx context.Context, rtt time.Duration) ([]found, error) {
	var soft <-chan time.Time
	if rtt > 0 {
		t := time.NewTimer(max(softLeast, softRTTs*rtt))
		defer t.Stop()
		soft = t.C
	}
	select {
	case <-a.done:
		return a.found, a.err
	case <-soft:
		return nil, errSlow
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
