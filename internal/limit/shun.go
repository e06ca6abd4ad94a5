package limit

import (
	"net/netip"
	"sync"
	"time"
)

const (
	// strikeEvery is the average interval of refusals that an address may cause without a penalty,
	// after a burst of maxStrikes. A client that waits as long as each refusal demands stays far
	// below it.
	strikeEvery = 200 * time.Millisecond
	maxStrikes  = 30
	// shunFor is the time that an address stays in the penalty box after its last refused request.
	shunFor     = 10 * time.Second
	maxShunned  = 16 << 10
	maxStriking = 16 << 10
)

// PenaltyBox holds the addresses that continue after repeated refusals, so that their requests can be
// refused before any content is read. An IPv6 client counts as its /64. It is safe for concurrent use.
type PenaltyBox struct {
	strikes *Keyed

	mu    sync.RWMutex // guards until
	until map[netip.Prefix]time.Time
}

// NewPenaltyBox returns an empty PenaltyBox. It holds a bounded number of addresses; further ones
// are not penalized.
func NewPenaltyBox() *PenaltyBox {
	return &PenaltyBox{strikes: New(strikeEvery, maxStrikes, maxStriking), until: make(map[netip.Prefix]time.Time)}
}

// clientPrefix returns the network that is counted as one client: a single IPv4 address or an IPv6
// /64. ok is false for loopback and private IPv4 addresses, because a proxy for many clients may
// use them.
func clientPrefix(a netip.Addr) (netip.Prefix, bool) {
	a = a.Unmap().WithZone("")
	if !a.IsValid() || a.IsPrivate() || a == netip.AddrFrom4([4]byte{127, 0, 0, 1}) || a == netip.IPv6Loopback() {
		return netip.Prefix{}, false
	}
	bits := 64
	if a.Is4() {
		bits = 32
	}
	p, err := a.Prefix(bits)
	return p, err == nil
}

// Penalize counts a refused request of an address and puts the address into the penalty box if
// there were too many. Use it only for refusals that the sender could have avoided.
func (s *PenaltyBox) Penalize(a netip.Addr) {
	p, ok := clientPrefix(a)
	if !ok {
		return
	}
	if _, ok := s.strikes.Allow(p.String()); ok {
		return
	}
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, there := s.until[p]; !there && len(s.until) >= maxShunned {
		for p, until := range s.until {
			if until.Before(now) {
				delete(s.until, p)
			}
		}
		if len(s.until) >= maxShunned {
			return
		}
	}
	s.until[p] = now.Add(shunFor)
}

// Contains reports whether an address is in the penalty box now. It costs one read lock and a map
// lookup, so it may run for each connection.
func (s *PenaltyBox) Contains(a netip.Addr) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if len(s.until) == 0 {
		return false
	}
	p, ok := clientPrefix(a)
	return ok && s.until[p].After(time.Now())
}
