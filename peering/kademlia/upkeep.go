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

// Source returns the records that this node publishes, see Config.Mine. It must not block.
type Source interface {
	// Next returns at most n records with keys of from or more, in order of key. They must be valid for at
	// least another Period.
	Next(from ID, n int) []Record
}

// upkeep is the state of the regular work of a node: it joins, refreshes its table, sweeps its store and
// stores its own records again.
type upkeep struct {
	next time.Time // time of the next work; zero for at once

	joining int       // number of lookups of the own id since Join
	selfAt  time.Time // time of the next such lookup
	sweepAt time.Time // time of the next store.sweepExpired
	shaken  bool      // buckets were refreshed after the join

	// The round in which all records of Mine are stored: the key at which it continues, its start, and its
	// duration.
	from   ID
	round  time.Time
	period time.Duration
	paced  time.Time // when period was last computed
	region *Put
	hurry  bool // store all regions without pauses, see Publish
}

const (
	maxProbes    = 8 // most pings in flight
	maxRefreshes = 3 // most lookups in flight that refresh buckets
	// maxRegion bounds the records of one putRegion; the next one continues behind them.
	maxRegion = 4096
)

// joins are the times between lookups of the own id after a Join. The first lets the nearest nodes learn of
// this node. The later ones find nodes that joined at the same time.
var joins = [...]time.Duration{0, 5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute}

func (u *upkeep) startJoin() { u.joining, u.selfAt, u.next = 0, time.Time{}, time.Time{} }

// keepUp does the work that is due and sets upkeep.next. It returns at once if nothing is due.
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
		n.store.sweepExpired(now)
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
		if n.table.hasRoom(c) {
			n.probeNode(c, now)
		}
	}
	if len(n.heard) > 0 {
		sooner(now.Add(100 * time.Millisecond))
	}
	for len(n.doubted) > 0 && !n.doubted[0].at.After(now) && len(n.probing) < maxProbes {
		if c := n.doubted[0].Contact; n.table.failedOnce(c.ID) {
			n.probeNode(c, now)
		}
		n.doubted = n.doubted[1:]
	}
	if len(n.doubted) > 0 {
		sooner(laterTime(n.doubted[0].at, now.Add(100*time.Millisecond)))
	}
	sooner(n.refreshBuckets(now))
	sooner(n.publishRegion(now))
	u.next = next
}

func laterTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// jitterDuration returns d changed at random by up to a fifth, so that nodes do not act in step.
func (n *Node) jitterDuration(d time.Duration) time.Duration {
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
	u.selfAt = now.Add(n.jitterDuration(wait))
	n.Find(n.self.ID, now)
}

// refreshBuckets starts a lookup in each bucket that had none for too long (section 2.3 of the Kademlia
// paper), and pings the contact of that bucket with the oldest last answer. It returns the time of the next
// refresh.
func (n *Node) refreshBuckets(now time.Time) time.Time {
	running := 0
	for _, o := range n.ops {
		if l, ok := o.(*Lookup); ok && l.mode == forUpkeep {
			running++
		}
	}
	next := now.Add(n.cfg.Refresh)
	// After a join all buckets are refreshed at once.
	fresh := !n.upkeep.shaken && n.upkeep.joining > 0 && n.table.size > 0
	for i := range n.table.buckets {
		b := &n.table.buckets[i]
		every := n.refreshInterval(b)
		due := time.UnixMilli(b.looked).Add(every)
		if fresh {
			due = now
		}
		if !due.After(now) && running < maxRefreshes {
			running++
			n.lookupBucket(i, now)
			b.looked = now.Add(n.jitterDuration(every) - every).UnixMilli()
			due = time.UnixMilli(b.looked).Add(every)
			// Failing contacts without a replacement are skipped, because they would keep the others from
			// being pinged.
			if at := slices.IndexFunc(b.live, func(e entry) bool { return e.fails < maxFail }); at >= 0 &&
				now.Sub(b.live[at].answeredAt()) > n.cfg.Refresh {
				n.probeNode(b.live[at].Contact, now)
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

// refreshInterval returns the time between refreshes of a bucket without other lookups: Config.Refresh,
// doubled each time that no contact came, left or failed meanwhile, up to RefreshMost.
func (n *Node) refreshInterval(b *bucket) time.Duration {
	same := time.Duration(b.looked-b.changed) * time.Millisecond
	return min(max(same, n.cfg.Refresh), n.cfg.RefreshMost)
}

// lookupBucket starts a lookup of a random id in a bucket. It ends when the Alpha nearest nodes have
// answered, because it serves only the table.
func (n *Node) lookupBucket(bucket int, now time.Time) {
	target := flipBit(n.self.ID, n.randomID(), bucket)
	l := &Lookup{walk: *n.newWalk(target, n.cfg.Alpha, now), mode: forUpkeep}
	l.request = findNode(target)
	n.beginLookup(l)
}

// publishRegion starts to store the next region of Mine if it is due, and returns the time at which it
// should be called again.
func (n *Node) publishRegion(now time.Time) time.Time {
	u := &n.upkeep
	never := now.Add(time.Hour)
	if n.cfg.Mine == nil || n.table.size == 0 || u.region != nil && !u.region.Over() {
		return never
	}
	if u.joining < 2 {
		return u.selfAt // the table is too small to know the nodes nearest to a key
	}
	if !u.round.IsZero() && now.Sub(u.paced) >= slot {
		// A node that joined recently has overestimated how long nodes stay. The round continues with the
		// new period.
		u.paced = now
		if p := n.Period(now); !u.hurry && (p < u.period/2 || p > u.period*2) {
			u.period, u.round = p, now.Add(-turnShare(p, u.from))
		}
	}
	if u.round.IsZero() {
		// The first round starts at a random key, so that the nodes of a network do not publish in step.
		u.period = n.Period(now)
		if !u.hurry {
			u.from = n.randomID()
		}
		u.round = now.Add(-turnShare(u.period, u.from))
	}
	next := n.cfg.Mine.Next(u.from, 1)
	if len(next) == 0 {
		u.from, u.round = ID{}, u.round.Add(u.period)
		u.period = n.Period(now)
		if u.hurry || u.round.Before(now.Add(-u.period)) {
			u.hurry, u.round = false, now // the round was hurried or the machine slept: do not catch up
		}
		if next = n.cfg.Mine.Next(u.from, 1); len(next) == 0 {
			return never
		}
	}
	if due := u.round.Add(turnShare(u.period, next[0].Key)); due.After(now) && !u.hurry {
		return due
	}
	first := next[0].Key
	if two := n.cfg.Mine.Next(first, 2); len(two) == 1 || distanceShare(first, two[1].Key) > n.regionShare() {
		// For a single record a Put is cheaper than asking all nodes of the region.
		u.region, u.from = n.Put(next[0], now), nextID(first)
		if u.from == (ID{}) {
			u.from = first
		}
		return now.Add(time.Second)
	}
	u.region = n.putRegion(first, func(bits int) []Record {
		all := n.cfg.Mine.Next(first, maxRegion)
		for i := range all {
			if commonBits(first, all[i].Key) < bits {
				all = all[:i]
				break
			}
		}
		if len(all) > 0 {
			u.from = nextID(all[len(all)-1].Key)
			if u.from == (ID{}) {
				u.from = all[len(all)-1].Key // the last key of the space: it is stored twice
			}
		}
		return all
	}, now)
	return now.Add(time.Second)
}

// randomID returns a random id from Config.Rand.
func (n *Node) randomID() (id ID) {
	for i := 0; i < len(id); i += 8 {
		binary.BigEndian.PutUint64(id[i:], n.cfg.Rand.Uint64())
	}
	return id
}

// turnShare returns when in a period of Mine a key is stored: keys are spread evenly over the period.
func turnShare(period time.Duration, key ID) time.Duration {
	return time.Duration(float64(period) * distanceShare(key, ID{}))
}

// nextID returns the id that follows in numeric order, zero after the last one.
func nextID(id ID) ID {
	for i := len(id) - 1; i >= 0; i-- {
		if id[i]++; id[i] != 0 {
			break
		}
	}
	return id
}

// Period returns the interval R at which all records of Mine are stored again: ln(2)/2 (about a third) of
// the observed mean lifetime L of nodes, at least half an hour and at most Republish. It is Republish until
// three nodes have disappeared. With k copies the probability that all copies of a record are lost is
// (1-e^(-R/L))^k.
func (n *Node) Period(now time.Time) time.Duration {
	mean, ok := n.lives.meanLife(n.table, now)
	if !ok {
		return n.cfg.Republish
	}
	return min(max(time.Duration(mean*math.Ln2/2), 30*time.Minute), n.cfg.Republish)
}

// lives sums up how long the contacts that disappeared had been in the table.
type lives struct {
	total  float64 // sum of the lifetimes, in ns
	deaths float64
}

func (l *lives) addDeath(e *entry) {
	// Halving weighs old observations less.
	if l.deaths >= 64 {
		l.total, l.deaths = l.total/2, l.deaths/2
	}
	l.total += float64(e.knownFor())
	l.deaths++
}

// meanLife returns the maximum-likelihood mean in ns of exponentially distributed lifetimes, some of which
// have not ended. ok is false with fewer than three deaths.
func (l *lives) meanLife(t *table, now time.Time) (float64, bool) {
	if l.deaths < 3 {
		return 0, false
	}
	total := l.total
	t.eachContact(func(e *entry) { total += float64(e.knownFor()) })
	return total / l.deaths, true
}

// probeNode pings a node, unless a ping to it is in flight or maxProbes are.
func (n *Node) probeNode(c *Contact, now time.Time) {
	if n.probing[c.ID] || len(n.probing) >= maxProbes {
		return
	}
	n.probing[c.ID] = true
	n.sendRequest(&call{to: c, op: probes{n}}, Request{Kind: Ping}, now)
}

// probes is the op of all pings. Each ping is one request, so there is nothing left to send.
type probes struct{ n *Node }

func (probes) sendReady(time.Time)                              {}
func (probes) Over() bool                                       { return true }
func (p probes) handleAnswer(c *call, _ *Response, _ time.Time) { delete(p.n.probing, c.to.ID) }
func (p probes) handleFailure(c *call, _ time.Time)             { delete(p.n.probing, c.to.ID) }

// handOver sends a node that is new in the table the stored records that belong to it. Of the nodes that
// have a record only the nearest one known sends it. Records thus survive changes of nodes without being
// published more often.
func (n *Node) handOver(c *Contact, now time.Time) {
	if n.store.count == 0 {
		return
	}
	region := n.regionShare()
	if distanceShare(n.self.ID, c.ID) > 2*region {
		return
	}
	const most = 4 * 64
	var give []Record
	for key, values := range n.store.keys {
		if distanceShare(key, n.self.ID) > 2*region || distanceShare(key, c.ID) > region {
			continue
		}
		near := n.table.nearestContacts(key, n.cfg.K, func(e *entry) bool { return e.ID != c.ID })
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
		sort.Slice(give, func(i, j int) bool { // sorted, because the order of a map is random
			return cmp.Or(compareDistance(c.ID, give[i].Key, give[j].Key),
				bytes.Compare(give[i].Value, give[j].Value)) < 0
		})
		n.giveRecords(c, give[:min(len(give), most)], now)
	}
}

// Publish stores all records of Mine now, region after region, instead of spreading them over a Period.
func (n *Node) Publish() {
	n.upkeep.from, n.upkeep.hurry, n.upkeep.next = ID{}, true, time.Time{}
}
