package kademlia

import (
	"slices"
	"time"
)

// table holds contacts by how many leading bits their id shares with the own
// (section 2.4). Only those are in it that answered a request of this node: who
// merely sent something, or was named by others, is not. All is ordered so that
// the old stay: who has answered for long will answer tomorrow (section 4.1).
type table struct {
	self    ID
	cfg     *Config
	buckets []bucket // by bits shared; as many as there are contacts for
	size    int
	groups  map[Group]int
	// far are the distances of what nearest puts in order; its memory is used
	// again each time.
	far []uint64
}

type bucket struct {
	live  []entry // that which answered longest ago comes first
	spare []entry // answered too, but there was no place; the latest is last
	// looked is when something was last looked up in it, changed when somebody
	// of it came, went or did not answer; both in Unix ms.
	looked, changed int64
}

type entry struct {
	*Contact
	lead uint64 // of its id
	// seen is when it last answered, since from when on it is known without a
	// break; both in Unix seconds, which is half as long as in ms: a table has a
	// hundred of these and more.
	seen, since uint32
	fails       uint8 // requests in a row that it did not answer
}

// second is a time as entries have it.
func second(t time.Time) uint32 { return uint32(t.Unix()) }

// answeredAt is when it last answered.
func (e *entry) answeredAt() time.Time { return time.Unix(int64(e.seen), 0) }

// known is for how long it is known, until it last answered.
func (e *entry) known() time.Duration { return time.Duration(e.seen-e.since) * time.Second }

func newTable(self ID, cfg *Config) *table {
	return &table{self: self, cfg: cfg, groups: make(map[Group]int)}
}

// at returns the bucket of an id, nil if there is none.
func (t *table) at(id ID) *bucket {
	if n := common(t.self, id); n < len(t.buckets) {
		return &t.buckets[n]
	}
	return nil
}

func find(list []entry, id ID) int {
	first := lead(id)
	for i := range list {
		if list[i].lead == first && list[i].ID == id {
			return i
		}
	}
	return -1
}

// get returns what is held of a node, nil if it is not in the table.
func (t *table) get(id ID) *Contact {
	if b := t.at(id); b != nil {
		if i := find(b.live, id); i >= 0 {
			return b.live[i].Contact
		}
	}
	return nil
}

// room reports whether a node that is not in the table would get a place.
func (t *table) room(c *Contact) bool {
	b := t.at(c.ID)
	if b != nil && (!t.fits(b) || find(b.live, c.ID) >= 0) { // of most, the first says no
		return false
	}
	return c.ID != t.self && t.cfg.Admits(c) && t.spread(b, c)
}

// fits reports whether a bucket has a place left. In a network so small that
// two buckets would hold it all, each table does (section 2.4 splits a bucket
// for this; a table that is never larger than that needs no split).
func (t *table) fits(b *bucket) bool { return len(b.live) < t.cfg.K || t.size < 2*t.cfg.K }

// spread reports whether groups leave room for a contact, in the bucket and in
// the table.
func (t *table) spread(b *bucket, c *Contact) bool {
	for _, g := range c.Groups {
		if t.groups[g] >= t.cfg.GroupTable {
			return false
		}
	}
	return b == nil || t.mixed(b.live, c)
}

// mixed reports whether a list of a bucket has room for one more of a contact's
// groups.
func (t *table) mixed(list []entry, c *Contact) bool {
	for _, g := range c.Groups {
		n := 0
		for i := range list {
			if slices.Contains(list[i].Groups, g) {
				n++
			}
		}
		if n >= t.cfg.GroupBucket {
			return false
		}
	}
	return true
}

// answered notes that a node answered, and takes it in if there is a place for
// it. It reports whether it is new in the table.
func (t *table) answered(c *Contact, now time.Time) (taken bool) {
	ms := now.UnixMilli()
	if c.ID == t.self || !t.cfg.Admits(c) {
		return false
	}
	n := common(t.self, c.ID)
	if n >= len(t.buckets) {
		if !t.spread(nil, c) {
			return false
		}
		for len(t.buckets) <= n {
			t.buckets = append(t.buckets, bucket{looked: ms, changed: ms})
		}
	}
	b := &t.buckets[n]
	if i := find(b.live, c.ID); i >= 0 {
		e := b.live[i]
		if c.Version < e.Version {
			c = e.Contact
		}
		t.count(e.Contact, -1)
		t.count(c, 1)
		copy(b.live[i:], b.live[i+1:])
		b.live[len(b.live)-1] = entry{c, e.lead, second(now), e.since, 0}
		return false
	}
	if i := find(b.spare, c.ID); i >= 0 {
		b.spare = slices.Delete(b.spare, i, i+1)
	}
	e := entry{c, lead(c.ID), second(now), second(now), 0}
	if t.spread(b, c) && t.fits(b) {
		t.place(b, e)
		b.changed = ms
		return true
	}
	if !t.mixed(b.spare, c) {
		return false // a few hosts would soon be all that wait
	}
	if len(b.spare) >= spares {
		b.spare = slices.Delete(b.spare, 0, 1)
	}
	b.spare = append(room(b.spare, spares), e)
	return false
}

// room returns the list with room for one more. It doubles, but not beyond what
// it mostly holds at most: a table is some twenty lists, most of them full.
func room(list []entry, most int) []entry {
	if len(list) < cap(list) {
		return list
	}
	n := max(4, 2*len(list))
	if len(list) < most {
		n = min(n, most)
	}
	return append(make([]entry, 0, n), list...)
}

func (t *table) place(b *bucket, e entry) {
	b.live = append(room(b.live, t.cfg.K), e)
	t.count(e.Contact, 1)
	t.size++
}

func (t *table) count(c *Contact, by int) {
	for _, g := range c.Groups {
		if t.groups[g] += by; t.groups[g] == 0 {
			delete(t.groups, g)
		}
	}
}

// failed notes that a node did not answer. One that failed too often loses its
// place to the spare that answered last; without a spare it keeps it for some
// tries more, as a network that was cut off would lose all of its table
// otherwise, but is named to nobody.
func (t *table) failed(id ID, now time.Time) (dropped *entry) {
	b := t.at(id)
	if b == nil {
		return nil
	}
	if i := find(b.spare, id); i >= 0 {
		b.spare = slices.Delete(b.spare, i, i+1)
	}
	i := find(b.live, id)
	if i < 0 {
		return nil
	}
	b.changed = now.UnixMilli()
	e := &b.live[i]
	if e.fails < 255 {
		e.fails++
	}
	if e.fails < maxFail || len(b.spare) == 0 && e.fails < 4*maxFail {
		return nil
	}
	gone := *e
	t.remove(id)
	return &gone
}

// doubted reports whether a contact of the table failed once.
func (t *table) doubted(id ID) bool {
	b := t.at(id)
	if b == nil {
		return false
	}
	i := find(b.live, id)
	return i >= 0 && b.live[i].fails == 1
}

// remove takes a node out of the table.
func (t *table) remove(id ID) {
	b := t.at(id)
	if b == nil {
		return
	}
	if i := find(b.spare, id); i >= 0 {
		b.spare = slices.Delete(b.spare, i, i+1)
	}
	i := find(b.live, id)
	if i < 0 {
		return
	}
	t.count(b.live[i].Contact, -1)
	t.size--
	b.live = slices.Delete(b.live, i, i+1)
	for i := len(b.spare) - 1; i >= 0; i-- {
		if e := b.spare[i]; t.spread(b, e.Contact) && t.fits(b) {
			b.spare = slices.Delete(b.spare, i, i+1)
			t.place(b, e)
			for i := len(b.live) - 1; i > 0 && b.live[i].seen < b.live[i-1].seen; i-- {
				b.live[i], b.live[i-1] = b.live[i-1], b.live[i]
			}
			return
		}
	}
}

// nearest returns the n contacts nearest to a target, nearest first, of those
// that keep lets pass; nil is everybody. Those that fail are not among them, but
// those that wait for a place are: they answered last, and are others than the
// old that are in everybody's table, so a walk has fewer steps.
func (t *table) nearest(target ID, n int, keep func(*entry) bool) []*Contact {
	all := make([]*Contact, 0, n+t.cfg.K)
	first, far := lead(target), t.far[:0]
	take := func(from int, list []entry) {
		for i := range list {
			e := &list[i]
			if e.fails >= maxFail || keep != nil && !keep(e) {
				continue
			}
			d := e.lead ^ first
			all, far = append(all, e.Contact), append(far, d)
			at := len(all) - 1
			for ; at > from && (d < far[at-1] || d == far[at-1] && Nearer(target, e.ID, all[at-1].ID)); at-- {
				all[at], far[at] = all[at-1], far[at-1]
			}
			all[at], far[at] = e.Contact, d
		}
	}
	add := func(b *bucket) {
		from := len(all)
		take(from, b.live)
		take(from, b.spare)
	}
	// All of a bucket are nearer to the target than all of another. The id that
	// shares n bits with this one and differs in the next is near the target if
	// the target differs there too, the nearer the fewer bits it shares; else it
	// is far, the farther the fewer.
	for i := range t.buckets {
		if len(all) < n && differ(t.self, target, i) {
			add(&t.buckets[i])
		}
	}
	for i := len(t.buckets) - 1; i >= 0 && len(all) < n; i-- {
		if !differ(t.self, target, i) {
			add(&t.buckets[i])
		}
	}
	t.far = far
	return all[:min(n, len(all))]
}

// each calls yield with every contact of the table.
func (t *table) each(yield func(*entry)) {
	for i := range t.buckets {
		for j := range t.buckets[i].live {
			yield(&t.buckets[i].live[j])
		}
	}
}

// lookedIn notes that something is looked up near a target.
func (t *table) lookedIn(target ID, now time.Time) {
	if len(t.buckets) > 0 {
		t.buckets[min(common(t.self, target), len(t.buckets)-1)].looked = now.UnixMilli()
	}
}
