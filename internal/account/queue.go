package account

import (
	"cmp"
	"math"
	"net/netip"
	"slices"
	"time"
)

// rank is the place of a password check in the queue; less comes first. The address is more important
// than the name: the failures of a name say that it is attacked, and its owner comes from another address
// than the attackers.
type rank struct {
	address, prefix, name uint8
}

func (r rank) compare(o rank) int {
	return cmp.Or(cmp.Compare(r.address, o.address), cmp.Compare(r.prefix, o.prefix), cmp.Compare(r.name, o.name))
}

// maxLevel is the level of 16 failures and more. Attackers do not sink further, so that a person who
// mistyped a password a few times stays before them.
const maxLevel = 5

// levelOf returns 0 without failures, then 1, 2 from two, 3 from four and so on.
func levelOf(failures float64) uint8 {
	if failures < 0.5 {
		return 0
	}
	return uint8(min(maxLevel, 1+math.Floor(math.Log2(max(1, failures)))))
}

// ticket is a check that waits in a line.
type ticket struct {
	rank
	arrival int // counts up
	// ended is closed when the check may begin or was refused; refused is set before.
	ended   chan struct{}
	refused bool
}

// line orders the checks that wait. It is not safe for concurrent use.
type line struct {
	most    int // waiting checks, at least 1
	waiting []*ticket
	arrived int
	started int
}

// oldestEvery is how often the check that has waited longest begins, whatever its rank: one in four, so
// that those with failures wait at most four times as long as the line is.
const oldestEvery = 4

// join adds a check. In a full line it or a check of a worse rank has to go: the one with the worst rank
// that arrived last, which join returns.
func (l *line) join(r rank) (t, refused *ticket) {
	l.arrived++
	t = &ticket{rank: r, arrival: l.arrived, ended: make(chan struct{})}
	l.waiting = append(l.waiting, t)
	if len(l.waiting) <= l.most {
		return t, nil
	}
	refused = slices.MaxFunc(l.waiting, func(a, b *ticket) int {
		return cmp.Or(a.compare(b.rank), cmp.Compare(a.arrival, b.arrival))
	})
	l.leave(refused)
	return t, refused
}

// next removes and returns the check that begins next, nil if none waits.
func (l *line) next() *ticket {
	if len(l.waiting) == 0 {
		return nil
	}
	l.started++
	first := slices.MinFunc(l.waiting, func(a, b *ticket) int {
		if l.started%oldestEvery == 0 {
			return cmp.Compare(a.arrival, b.arrival)
		}
		return cmp.Or(a.compare(b.rank), cmp.Compare(a.arrival, b.arrival))
	})
	l.leave(first)
	return first
}

// leave removes a check if it waits. The order of the others does not matter.
func (l *line) leave(t *ticket) bool {
	i := slices.Index(l.waiting, t)
	if i < 0 {
		return false
	}
	last := len(l.waiting) - 1
	l.waiting[i], l.waiting[last] = l.waiting[last], nil
	l.waiting = l.waiting[:last]
	return true
}

// failureHalfLife is the time in which failures count half. After an hour ten of them are forgotten.
const failureHalfLife = 10 * time.Minute

// failures is a count that decays.
type failures struct {
	count float64
	at    time.Time
	// warned is the time of the last notice to the person.
	warned time.Time
}

func (f failures) now(now time.Time) float64 {
	return f.count * math.Exp2(-float64(now.Sub(f.at))/float64(failureHalfLife))
}

// next returns f with one more.
func (f failures) next(now time.Time) failures {
	f.count, f.at = f.now(now)+1, now
	return f
}

// recent keeps the values of the keys used lately, at most 2*maxGeneration of them. Create it with
// newRecent.
type recent[V any] struct {
	young, old map[string]V
}

// maxGeneration bounds the memory of a recent at about 10 MB. A flood of new keys makes it lose those that
// were not used for as many others.
const maxGeneration = 25_000

func newRecent[V any]() *recent[V] { return &recent[V]{young: make(map[string]V)} }

func (r *recent[V]) get(key string) V {
	if v, ok := r.young[key]; ok {
		return v
	}
	return r.old[key]
}

func (r *recent[V]) set(key string, v V) {
	if _, ok := r.young[key]; !ok && len(r.young) >= maxGeneration {
		r.old, r.young = r.young, make(map[string]V)
	}
	r.young[key] = v
}

// networkOf returns the network of a client's address, a /24 or a /48, in which one person may have many
// addresses. Other texts are returned as they are.
func networkOf(addr string) string {
	if p, err := netip.ParsePrefix(addr); err == nil { // the /64 of request.ClientAddr
		if p, err = p.Addr().Prefix(min(48, p.Addr().BitLen())); err == nil {
			return p.String()
		}
	}
	if a, err := netip.ParseAddr(addr); err == nil {
		bits := 24
		if a.Is6() {
			bits = 48
		}
		if p, err := a.Prefix(bits); err == nil {
			return p.String()
		}
	}
	return addr
}
