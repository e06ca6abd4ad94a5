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

// Source returns the node's own records, which it stores at others.
type Source interface {
	// Next returns at most n records with a key of from or more, in order of key. They are valid
	// for at least another period.
	Next(from ID, n int) []Record
}

// upkeep is the regular work of a node: it joins, keeps its table up to date, and stores its
// records again.
type upkeep struct {
	next time.Time // time of the next work; zero for now

	joining int       // lookups of the own id since Join
	selfAt  time.Time // time of the next one
	sweepAt time.Time // time of the next sweep of the store
	shaken  bool      // the distant buckets were refreshed after the join

	// The sweep of Mine: the key from which records are stored next, the start of this round, and
	// its duration.
	from   ID
	round  time.Time
	period time.Duration
	paced  time.Time // when the duration was last computed
	region *Put
	hurry  bool // do not wait for the turn of each region
}

const (
	maxProbes    = 8 // in flight
	maxRefreshes = 3 // in flight
	// maxRegion is the number of records stored in one go.
	maxRegion = 4096
)

// joins are the times after a Join at which the own id is looked up. The nearest nodes learn of a
// newcomer by the first lookup. The later lookups find nodes that joined at the same time.
var joins = [...]time.Duration{0, 5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute}

func (u *upkeep) startJoin() { u.joining, u.selfAt, u.next = 0, time.Time{}, time.Time{} }

// keepUp does the work that is due.
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

// laterTime returns the later of two times.
func laterTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// jitterDuration returns d changed at random: up to a fifth less or more.
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

// refreshBuckets does a lookup in each bucket without one for a long time (section 2.3), and pings
// the contact of each bucket that answered longest ago. It returns the time of the next refresh.
func (n *Node) refreshBuckets(now time.Time) time.Time {
	running := 0
	for _, o := range n.ops {
		if l, ok := o.(*Lookup); ok && l.mode == forUpkeep {
			running++
		}
	}
	next := now.Add(n.cfg.Refresh)
	// After a join all buckets but the nearest one are refreshed.
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
			// A contact that does not answer and has no replacement must not keep the others from
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

// refreshInterval is the time between refreshes of a bucket without other lookups: Refresh, and
// twice as long each time that no contact of it came, left or failed meanwhile, up to RefreshMost.
func (n *Node) refreshInterval(b *bucket) time.Duration {
	same := time.Duration(b.looked-b.changed) * time.Millisecond
	return min(max(same, n.cfg.Refresh), n.cfg.RefreshMost)
}

// lookupBucket starts a lookup of nodes in a bucket. It ends when the nearest few to a random point
// in the bucket have answered, not all k.
func (n *Node) lookupBucket(bucket int, now time.Time) {
	target := flipBit(n.self.ID, n.randomID(), bucket)
	l := &Lookup{walk: *n.newWalk(target, n.cfg.Alpha, now), mode: forUpkeep}
	l.request = findNode(target)
	n.beginLookup(l)
}

// publishRegion starts to store the next region of Mine if it is due, and returns the time of the
// next one.
func (n *Node) publishRegion(now time.Time) time.Time {
	u := &n.upkeep
	never := now.Add(time.Hour)
	if n.cfg.Mine == nil || n.table.size == 0 || u.region != nil && !u.region.Over() {
		return never
	}
	if u.joining < 2 {
		return u.selfAt // a node with few contacts would store at the wrong nodes
	}
	if !u.round.IsZero() && now.Sub(u.paced) >= slot {
		// A node that joined recently assumed long lives. The rest of the round continues at the
		// new pace.
		u.paced = now
		if p := n.Period(now); !u.hurry && (p < u.period/2 || p > u.period*2) {
			u.period, u.round = p, now.Add(-turnShare(p, u.from))
		}
	}
	if u.round.IsZero() {
		// The first round starts at a random point, as if rounds had always been running.
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
			u.hurry, u.round = false, now // after a hurried round or a long sleep
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
		// The record is alone in its region: asking all nodes around it pays only for many.
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
				u.from = all[len(all)-1].Key // the last key of the space, once more
			}
		}
		return all
	}, now)
	return now.Add(time.Second)
}

// randomID returns a random id.
func (n *Node) randomID() (id ID) {
	for i := 0; i < len(id); i += 8 {
		binary.BigEndian.PutUint64(id[i:], n.cfg.Rand.Uint64())
	}
	return id
}

// turnShare returns the time within a period at which the turn of a key comes.
func turnShare(period time.Duration, key ID) time.Duration {
	return time.Duration(float64(period) * distanceShare(key, ID{}))
}

// nextID returns the following id, zero after the last.
func nextID(id ID) ID {
	for i := len(id) - 1; i >= 0; i-- {
		if id[i]++; id[i] != 0 {
			break
		}
	}
	return id
}

// Period is the time in which all records of Mine are stored again: ln(2)/2, about a third, of the
// observed mean life of nodes, between half an hour and Republish; Republish until three nodes
// died. With k copies, all copies of a record are lost with probability (1-e^(-R/L))^k.
func (n *Node) Period(now time.Time) time.Duration {
	mean, ok := n.lives.meanLife(n.table, now)
	if !ok {
		return n.cfg.Republish
	}
	return min(max(time.Duration(mean*math.Ln2/2), 30*time.Minute), n.cfg.Republish)
}

// lives adds up how long contacts stayed that are gone.
type lives struct {
	total  float64 // ns
	deaths float64
}

func (l *lives) addDeath(e *entry) {
	// Old observations count half.
	if l.deaths >= 64 {
		l.total, l.deaths = l.total/2, l.deaths/2
	}
	l.total += float64(e.knownFor())
	l.deaths++
}

// meanLife is the maximum-likelihood mean of exponential lives of which some continue.
func (l *lives) meanLife(t *table, now time.Time) (float64, bool) {
	if l.deaths < 3 {
		return 0, false
	}
	total := l.total
	t.eachContact(func(e *entry) { total += float64(e.knownFor()) })
	return total / l.deaths, true
}

// probeNode pings a node.
func (n *Node) probeNode(c *Contact, now time.Time) {
	if n.probing[c.ID] || len(n.probing) >= maxProbes {
		return
	}
	n.probing[c.ID] = true
	n.sendRequest(&call{to: c, op: probes{n}}, Request{Kind: Ping}, now)
}

// probes is the operation of all pings: each is one request.
type probes struct{ n *Node }

func (probes) sendReady(time.Time)                              {}
func (probes) Over() bool                                       { return true }
func (p probes) handleAnswer(c *call, _ *Response, _ time.Time) { delete(p.n.probing, c.to.ID) }
func (p probes) handleFailure(c *call, _ time.Time)             { delete(p.n.probing, c.to.ID) }

// handOver gives a node that is new in the table the records that it should hold, if this node is
// the nearest to them that has them. So records survive the nodes that hold them without being
// stored again more often.
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
		sort.Slice(give, func(i, j int) bool { // in the same order each time
			return cmp.Or(compareDistance(c.ID, give[i].Key, give[j].Key),
				bytes.Compare(give[i].Value, give[j].Value)) < 0
		})
		n.giveRecords(c, give[:min(len(give), most)], now)
	}
}

// Publish stores all of Mine now, region after region, without waiting for their turns.
func (n *Node) Publish() {
	n.upkeep.from, n.upkeep.hurry, n.upkeep.next = ID{}, true, time.Time{}
}
