package gossip

import (
	"encoding/binary"
	"hash/maphash"
	"sync"
	"time"

	"agentsite/internal/limit"
)

const (
	// hintBurst is how many new hints one member may bring at once: many arrive when two halves of a pool
	// join, or many portals change together.
	hintBurst = 512
	// hintsOf is the smallest size of a pool that is assumed when the rate of hints from one member is
	// limited. The limit is two hints for each portal of the pool in hintGap, twice the rate of honest
	// portals.
	hintsOf  = 32
	maxHeard = 8192
)

// heard limits the rate of new hints by the member that brings them. serf keeps and passes on each
// different hint, so without a limit one member that invents hints would fill the memory and bandwidth of
// all. Only hints that are new here count, because honest members pass on each one several times. It is
// safe for concurrent use.
type heard struct {
	bring *limit.Keyed
	seed  maphash.Seed

	mu sync.Mutex // guards the fields below
	// Hashes of known hints in two generations: when young is full it becomes old.
	young, old map[uint64]struct{}
}

func newHeard() *heard {
	return &heard{bring: limit.New(hintGap, hintBurst, maxShown), seed: maphash.MakeSeed()}
}

// admitHint reports whether a hint from a member is accepted and passed on: it is known, or the member's
// limit allows a new one. members is the size of the pool.
func (h *heard) admitHint(from string, e *eventBody, members int) bool {
	b := binary.AppendUvarint(make([]byte, 0, maxHint+binary.MaxVarintLen64), e.LTime)
	sum := maphash.Bytes(h.seed, append(b, e.Payload...))
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, ok := h.young[sum]; ok {
		return true
	}
	if _, ok := h.old[sum]; !ok {
		if _, ok := h.bring.AllowRate(from, hintGap/time.Duration(2*max(members, hintsOf)), hintBurst); !ok {
			return false
		}
	}
	if h.young == nil || len(h.young) >= maxHeard {
		h.young, h.old = make(map[uint64]struct{}), h.young
	}
	h.young[sum] = struct{}{}
	return true
}
