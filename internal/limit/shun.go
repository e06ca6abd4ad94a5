package limit

import (
	"net/netip"
	"sync"
	"time"
)

const (
	// strikeEvery is how often an address may be refused on average, beyond
	// maxStrikes: whoever is told to wait and does is far below.
	strikeEvery = 200 * time.Millisecond
	maxStrikes  = 30
	// shunFor is how long an address is shunned.
	shunFor     = 10 * time.Second
	maxShunned  = 16 << 10
	maxStriking = 16 << 10
)

// Shun remembers addresses that go on although they were refused again and
// again, so that they can be sent away before anything of what they say is
// read. An IPv6 client counts as its /64. It is safe for concurrent use.
type Shun struct {
	strikes *Keyed

	mu    sync.RWMutex // guards until
	until map[netip.Prefix]time.Time
}

// NewShun returns a Shun that shuns nobody.
func NewShun() *Shun {
	return &Shun{strikes: New(strikeEvery, maxStrikes, maxStriking), until: make(map[netip.Prefix]time.Time)}
}

// client is what an address is counted as, and whether it is of one client:
// there may be a proxy in between on this machine and in private networks.
func client(a netip.Addr) (netip.Prefix, bool) {
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

// Strike notes that a request from an address was refused for what its sender
// could have known.
func (s *Shun) Strike(a netip.Addr) {
	p, ok := client(a)
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

// Has reports whether an address is shunned now. It is cheap.
func (s *Shun) Has(a netip.Addr) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if len(s.until) == 0 {
		return false
	}
	p, ok := client(a)
	return ok && s.until[p].After(time.Now())
}
