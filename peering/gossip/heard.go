package gossip

import (
	"encoding/binary"
	"hash/maphash"
	"sync"
	"time"

	"agentsite/internal/limit"
)

const (
	// hintBurst is how many new hints one member may bring at once: of a pool that
	// was parted, or of very many portals that change together.
	hintBurst = 512
	// hintsOf is the least number of portals whose hints, twice as many as they
	// may tell, one member may bring in tellGap.
	hintsOf  = 32
	maxHeard = 8192
)

// heard bounds the hints that are new here by who brings them. serf keeps each
// that differs for as long as its clock stays near, and hands it on: without a
// bound one member that makes some up would fill the memory and the lines of
// all. Hints that are not known yet are counted, as honest members bring each
// some times. It is safe for concurrent use.
type heard struct {
	bring *limit.Keyed
	seed  maphash.Seed

	mu sync.Mutex // guards the rest
	// Two halves: when the young one is full it takes the place of the old one.
	young, old map[uint64]struct{}
}

func newHeard() *heard {
	return &heard{bring: limit.New(tellGap, hintBurst, maxShown), seed: maphash.MakeSeed()}
}

// admit reports whether a hint that a member brings may be handed on. members is
// how many there are.
func (h *heard) admit(from string, e *eventBody, members int) bool {
	b := binary.AppendUvarint(make([]byte, 0, maxHint+binary.MaxVarintLen64), e.LTime)
	sum := maphash.Bytes(h.seed, append(b, e.Payload...))
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, ok := h.young[sum]; ok {
		return true
	}
	if _, ok := h.old[sum]; !ok {
		if _, ok := h.bring.AllowRate(from, tellGap/time.Duration(2*max(members, hintsOf)), hintBurst); !ok {
			return false
		}
	}
	if h.young == nil || len(h.young) >= maxHeard {
		h.young, h.old = make(map[uint64]struct{}), h.young
	}
	h.young[sum] = struct{}{}
	return true
}
