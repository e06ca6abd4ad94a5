package live

import (
	"sync"
	"time"

	"agentsite/internal/fault"
	"agentsite/internal/ident"
)

// maxVisits is how many streams guests may hold open from one address. The limit is per address, because
// a guest can start any number of sessions.
const maxVisits = 64

// visits counts the streams of guests by address. The zero value is ready.
type visits struct {
	mu   sync.Mutex // guards open
	open map[string]int
}

// enterVisit counts a stream if the actor is a guest, and fails above maxVisits. Call leave once, when
// the stream ends.
func (v *visits) enterVisit(actor ident.Actor) (leave func(), err error) {
	if actor.Kind != ident.Guest {
		return func() {}, nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.open[actor.Addr] >= maxVisits {
		return nil, fault.Limited(time.Minute,
			"Visitors have too many conversations open from where you are. Close some, or sign up.")
	}
	if v.open == nil {
		v.open = make(map[string]int)
	}
	v.open[actor.Addr]++
	return func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		if v.open[actor.Addr]--; v.open[actor.Addr] <= 0 {
			delete(v.open, actor.Addr)
		}
	}, nil
}
