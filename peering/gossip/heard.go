package gossip

import (
	"encoding/binary"
	"hash/maphash"
	"sync"
	"time"

	"agentsite/internal/limit"
)

const (
	// hintBurst bounds the new hints that one member may bring at once: after two halves of a pool
	// joined again, or when many portals change together.
	hintBurst = 512
	// hintsOf is the smallest number of portals of which one member may bring hints in hintGap, at
	// twice the rate at which these may send them.
	hintsOf  = 32
	maxHeard = 8192
)

// heard bounds the new hints by the member that brings them. serf keeps each different hint while
// its clock stays near, and passes it on: without a bound one member that invents hints would fill
// the memory and the bandwidth of all. Only hints that are new here are counted, because honest
// members pass on each one several times. It is safe for concurrent use.
type heard struct {
	bring *limit.Keyed
	seed  maphash.Seed

	mu sync.Mutex // guards the rest
	// Two halves: when the young one is full it takes the place of the old one.
	young, old map[uint64]struct{}
}

func newHeard() *heard {
	return &heard{bring: limit.New(hintGap, hintBurst, maxShown), seed: maphash.MakeSeed()}
}

// admitHint reports whether a hint from a member may be passed on. members is the number of
// members.
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
