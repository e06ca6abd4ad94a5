package kademlia

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math"
	"slices"
	"sort"
	"time"
)

// Source has the records that a node sees to.
type Source interface {
	// Next returns records in order of key, those with a key of from or more, at
	// most n of them. They are valid for another period at least.
	Next(from ID, n int) []Record
}

// upkeep is what a node does without being asked: it joins, keeps its table
// true, and stores its records anew.
type upkeep struct {
	next time.Time // when there is something to do; zero for now

	joining int       // lookups of the own id since Join
	selfAt  time.Time // when the next one is due
	sweepAt time.Time // when the shelf is gone through
	shaken  bool      // the far buckets are still to be looked into after a join

	// The sweep of Mine: the next key from which on records are stored, since
	// when this round goes on, and how long it takes.
	from   ID
	round  time.Time
	period time.Duration
	paced  time.Time // when it was last reckoned how long it takes
	region *Put
	hurry  bool // it does not wait for the time of each region
}

const (
	maxProbes    = 8 // that are in flight
	maxRefreshes = 3 // the same
	// maxRegion is how many records are stored in one go.
	maxRegion = 4096
)

// joins is when the own id is looked up after a Join. A newcomer is known to
// those near it by its first lookup; by the others it learns of whom these
// learned meanwhile.
var joins = [...]time.Duration{0, 5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute}

func (u *upkeep) join() { u.joining, u.selfAt, u.next = 0, time.Time{}, time.Time{} }

// keepUp does what is due.
func (n *Node) keepUp(now time.Time) {
	u := &n.upkeep
	if now.Before(u.next) {
		return
	}
	next := now.Add(time.Minute)
	sooner := func(t time.Time) {
		if t.Before(next) {
			next = t
		}
	}

	if !now.Before(u.sweepAt) {
		n.shelf.sweep(now)
		u.sweepAt = now.Add(slot)
	}
	if n.table.size+len(n.remembered) > 0 {
		if !now.Before(u.selfAt) {
			n.lookAtSelf(now)
		}
		sooner(u.selfAt)
	}
	for len(n.heard) > 0 && len(n.probing) < maxProbes {
		c := n.heard[0]
		n.heard = n.heard[1:]
		if n.table.room(c) {
			n.probe(c, now)
		}
	}
	if len(n.heard) > 0 {
		sooner(now.Add(100 * time.Millisecond))
	}
	for len(n.doubted) > 0 && !n.doubted[0].at.After(now) && len(n.probing) < maxProbes {
		if c := n.doubted[0].Contact; n.table.doubted(c.ID) {
			n.probe(c, now)
		}
		n.doubted = n.doubted[1:]
	}
	if len(n.doubted) > 0 {
		sooner(later(n.doubted[0].at, now.Add(100*time.Millisecond)))
	}
	sooner(n.refresh(now))
	sooner(n.publish(now))
	u.next = next
}

// later returns the later of two times.
func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// jitter returns a time about d: a fifth less to a fifth more.
func (n *Node) jitter(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.8 + 0.4*n.cfg.Rand.Float64()))
}

func (n *Node) lookAtSelf(now time.Time) {
	u := &n.upkeep
	wait := n.cfg.Self
	if u.joining < len(joins)-1 {
		u.joining++
		wait = joins[u.joining]
		if u.joining == 1 || u.joining == len(joins)-1 {
			u.shaken = false
		}
	}
	u.selfAt = now.Add(n.jitter(wait))
	n.Find(n.self.ID, now)
}

// refresh looks into buckets in which nothing was looked up for long
// (section 2.3), and asks of each that one which answered longest ago whether it
// is still there. It returns when the next one is due.
func (n *Node) refresh(now time.Time) time.Time {
	running := 0
	for _, o := range n.ops {
		if l, ok := o.(*Lookup); ok && l.mode == forUpkeep {
			running++
		}
	}
	next := now.Add(n.cfg.Refresh)
	// After a join all buckets but the own neighbourhood are looked into.
	fresh := !n.upkeep.shaken && n.upkeep.joining > 0 && n.table.size > 0
	for i := range n.table.buckets {
		b := &n.table.buckets[i]
		every := n.every(b)
		due := time.UnixMilli(b.looked).Add(every)
		if fresh {
			due = now
		}
		if !due.After(now) && running < maxRefreshes {
			running++
			n.look(i, now)
			b.looked = now.Add(n.jitter(every) - every).UnixMilli()
			due = time.UnixMilli(b.looked).Add(every)
			// One that does not answer, and that nobody could replace yet, must not
			// keep the others from being asked.
			if at := slices.IndexFunc(b.live, func(e entry) bool { return e.fails < maxFail }); at >= 0 && now.Sub(b.live[at].answeredAt()) > n.cfg.Refresh {
				n.probe(b.live[at].Contact, now)
			}
		} else if !due.After(now) {
			due = now.Add(time.Second)
			b.looked = min(b.looked, now.Add(-every).UnixMilli())
		}
		if due.Before(next) {
			next = due
		}
	}
	n.upkeep.shaken = n.upkeep.shaken || fresh
	return next
}

// every is how often a bucket is looked into in which nothing else is looked up:
// after Refresh, and twice as long each time that nobody of it came, went or did
// not answer meanwhile, up to RefreshMost.
func (n *Node) every(b *bucket) time.Duration {
	same := time.Duration(b.looked-b.changed) * time.Millisecond
	return min(max(same, n.cfg.Refresh), n.cfg.RefreshMost)
}

// look begins to look for nodes in a bucket, until those nearest to some place
// in it have answered; it need not be all k.
func (n *Node) look(bucket int, now time.Time) {
	target := flip(n.self.ID, n.noise(), bucket)
	l := &Lookup{walk: *n.newWalk(target, n.cfg.Alpha, now), mode: forUpkeep}
	l.request = findNode(target)
	n.begin(l)
}

// publish begins with the next region of Mine if it is due, and returns when
// the next one is.
func (n *Node) publish(now time.Time) time.Time {
	u := &n.upkeep
	never := now.Add(time.Hour)
	if n.cfg.Mine == nil || n.table.size == 0 || u.region != nil && !u.region.Over() {
		return never
	}
	if u.joining < 2 {
		return u.selfAt // who knows next to nobody would store at the wrong ones
	}
	if !u.round.IsZero() && now.Sub(u.paced) >= slot {
		// Who joined lately thought that all live long. What is left of the
		// round goes at the new pace from here.
		u.paced = now
		if p := n.Period(now); !u.hurry && (p < u.period/2 || p > u.period*2) {
			u.period, u.round = p, now.Add(-share(p, u.from))
		}
	}
	if u.round.IsZero() {
		// A first round begins somewhere, as if it had gone on for ever.
		u.period = n.Period(now)
		if !u.hurry {
			u.from = n.noise()
		}
		u.round = now.Add(-share(u.period, u.from))
	}
	next := n.cfg.Mine.Next(u.from, 1)
	if len(next) == 0 {
		u.from, u.round = ID{}, u.round.Add(u.period)
		u.period = n.Period(now)
		if u.hurry || u.round.Before(now.Add(-u.period)) {
			u.hurry, u.round = false, now // it hurried, or slept
		}
		if next = n.cfg.Mine.Next(u.from, 1); len(next) == 0 {
			return never
		}
	}
	if due := u.round.Add(share(u.period, next[0].Key)); due.After(now) && !u.hurry {
		return due
	}
	first := next[0].Key
	if two := n.cfg.Mine.Next(first, 2); len(two) == 1 || apart(first, two[1].Key) > n.region() {
		// It is alone in its region: to ask all around it is for many.
		u.region, u.from = n.Put(next[0], now), after(first)
		if u.from == (ID{}) {
			u.from = first
		}
		return now.Add(time.Second)
	}
	u.region = n.putRegion(first, func(bits int) []Record {
		all := n.cfg.Mine.Next(first, maxRegion)
		for i := range all {
			if common(first, all[i].Key) < bits {
				all = all[:i]
				break
			}
		}
		if len(all) > 0 {
			u.from = after(all[len(all)-1].Key)
			if u.from == (ID{}) {
				u.from = all[len(all)-1].Key // the last of the space, once more
			}
		}
		return all
	}, now)
	return now.Add(time.Second)
}

// noise is a random id.
func (n *Node) noise() (id ID) {
	for i := 0; i < len(id); i += 8 {
		binary.BigEndian.PutUint64(id[i:], n.cfg.Rand.Uint64())
	}
	return id
}

// share is how far into a period the turn of a key is.
func share(period time.Duration, key ID) time.Duration {
	return time.Duration(float64(period) * apart(key, ID{}))
}

// after returns the id that follows, zero after the last.
func after(id ID) ID {
	for i := len(id) - 1; i >= 0; i-- {
		if id[i]++; id[i] != 0 {
			break
		}
	}
	return id
}

// Period is the time in which all of Mine are stored anew: a third of how long
// nodes live on average, as far as it was seen, within half an hour and
// Republish; that until three died. Of a record with k copies all are lost with (1-e^(-R/L))^k.
func (n *Node) Period(now time.Time) time.Duration {
	mean, ok := n.lives.mean(n.table, now)
	if !ok {
		return n.cfg.Republish
	}
	return min(max(time.Duration(mean*math.Ln2/2), 30*time.Minute), n.cfg.Republish)
}

// lives is how long contacts stayed, of those that went.
type lives struct {
	total  float64 // ns
	deaths float64
}

func (l *lives) ended(e *entry) {
	// What was long ago counts half.
	if l.deaths >= 64 {
		l.total, l.deaths = l.total/2, l.deaths/2
	}
	l.total += float64(e.known())
	l.deaths++
}

// mean is the maximum-likelihood mean of exponential lives of which some go on.
func (l *lives) mean(t *table, now time.Time) (float64, bool) {
	if l.deaths < 3 {
		return 0, false
	}
	total := l.total
	t.each(func(e *entry) { total += float64(e.known()) })
	return total / l.deaths, true
}

// probe asks a node whether it is there.
func (n *Node) probe(c *Contact, now time.Time) {
	if n.probing[c.ID] || len(n.probing) >= maxProbes {
		return
	}
	n.probing[c.ID] = true
	n.send(&call{to: c, op: probes{n}}, Request{Kind: Ping}, now)
}

// probes is the op of pings: each is one request.
type probes struct{ n *Node }

func (probes) step(time.Time)                               {}
func (probes) Over() bool                                   { return true }
func (p probes) answered(c *call, _ *Response, _ time.Time) { delete(p.n.probing, c.to.ID) }
func (p probes) failed(c *call, _ time.Time)                { delete(p.n.probing, c.to.ID) }

// handOver gives a node that is new in the table what it should hold, if this
// one is the nearest that has it: so a record survives the nodes it was stored
// at without being stored anew so often.
func (n *Node) handOver(c *Contact, now time.Time) {
	if n.shelf.count == 0 {
		return
	}
	region := n.region()
	if apart(n.self.ID, c.ID) > 2*region {
		return
	}
	const most = 4 * 64
	var give []Record
	for key, values := range n.shelf.keys {
		if apart(key, n.self.ID) > 2*region || apart(key, c.ID) > region {
			continue
		}
		near := n.table.nearest(key, n.cfg.K, func(e *entry) bool { return e.ID != c.ID })
		if len(near) > 0 && Nearer(key, near[0].ID, n.self.ID) {
			continue
		}
		for _, v := range values {
			if v.Expires.After(now) {
				give = append(give, Record{Key: key, Value: v.Bytes})
			}
		}
	}
	if len(give) > 0 {
		sort.Slice(give, func(i, j int) bool { // in the same order each time
			return cmp.Or(compare(c.ID, give[i].Key, give[j].Key), bytes.Compare(give[i].Value, give[j].Value)) < 0
		})
		n.give(c, give[:min(len(give), most)], now)
	}
}

// Publish stores all of Mine now, region after region, and not only when their
// turn comes.
func (n *Node) Publish() {
	n.upkeep.from, n.upkeep.hurry, n.upkeep.next = ID{}, true, time.Time{}
}
