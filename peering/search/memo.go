package search

import (
	"context"
	"errors"
	"sync"
	"time"

	"agentsite/internal/record"
)

const (
	// answeredFor is for how long an answer stands for the next equal question,
	// unansweredFor the same of a portal that gave none.
	answeredFor   = 10 * time.Second
	unansweredFor = 2 * time.Second
	// lateFor is how long a portal may take to answer. A search waits less; later answers serve the next
	// equal search.
	lateFor = 2500 * time.Millisecond
	// maxMemo bounds the answers that are remembered.
	maxMemo = 512
)

// errSlow is of a portal that is not waited for any longer.
var errSlow = errors.New("its answer takes longer than usual")

// memo caches answers of portals for some seconds, so that typing and going back do not query the
// network again. The zero value is ready.
type memo struct {
	mu    sync.Mutex // guards the rest
	list  map[question]*asking
	swept time.Time // when outdated entries were last removed
}

// sweepEvery keeps apart the looks through all answers for those that no longer
// stand.
const sweepEvery = time.Second

// question is the key of a cached answer: portal, query, the portal's head, and the version of the
// rules for shown agents.
type question struct {
	portal record.PortalID
	head   record.Version
	rules  int64
	body   string
}

// asking is a question under way or answered.
type asking struct {
	done  chan struct{} // closed with the answer, which is not changed from then on
	found []found
	err   error
	until time.Time // guarded by memo.mu; zero while it is under way
}

// joinRequest returns the asking of a question, a new one if there is none; false when
// too many are under way.
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
		// Ended by cancel and not by a deadline, so that a slow portal is not counted as down.
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

// makeRoom makes place for one more; the caller holds mu.
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
	for q := range m.list { // any: it is asked again
		if len(m.list) < maxMemo {
			break
		}
		delete(m.list, q)
	}
}

// wait waits for the answer until ctx ends; of a portal that usually answers
// soon, not much longer than that.
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
