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
}

type bucket struct {
	live  []entry // that which answered longest ago comes first
	spare []entry // answered too, but there was no place; the latest is last
	// looked is when something was last looked up in it, in Unix ms.
	looked int64
}

type entry struct {
	*Contact
	seen  int64 // when it last answered, in Unix ms
	since int64 // since when it is known without a break, in Unix ms
	fails uint8 // requests in a row that it did not answer
}

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
	return slices.IndexFunc(list, func(e entry) bool { return e.ID == id })
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
	if c.ID == t.self || !t.cfg.Admits(c) {
		return false
	}
	b := t.at(c.ID)
	if b != nil && find(b.live, c.ID) >= 0 {
		return false
	}
	return t.spread(b, c) && (b == nil || t.fits(b))
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
		if b == nil {
			continue
		}
		n := 0
		for i := range b.live {
			if slices.Contains(b.live[i].Groups, g) {
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
			t.buckets = append(t.buckets, bucket{looked: ms})
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
		b.live[len(b.live)-1] = entry{c, ms, e.since, 0}
		return false
	}
	if i := find(b.spare, c.ID); i >= 0 {
		b.spare = slices.Delete(b.spare, i, i+1)
	}
	e := entry{c, ms, ms, 0}
	if t.spread(b, c) && t.fits(b) {
		t.place(b, e)
		return true
	}
	if len(b.spare) >= spares {
		b.spare = slices.Delete(b.spare, 0, 1)
	}
	b.spare = append(b.spare, e)
	return false
}

func (t *table) place(b *bucket, e entry) {
	if b.live == nil {
		b.live = make([]entry, 0, 4)
	}
	b.live = append(b.live, e)
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
// that keep lets pass; nil is everybody. Those that fail are not among them.
func (t *table) nearest(target ID, n int, keep func(*entry) bool) []*Contact {
	var all []*Contact
	add := func(b *bucket) {
		for i := range b.live {
			if e := &b.live[i]; e.fails < maxFail && (keep == nil || keep(e)) {
				all = append(all, e.Contact)
			}
		}
	}
	sorted := 0
	order := func() {
		slices.SortFunc(all[sorted:], func(x, y *Contact) int { return compare(target, x.ID, y.ID) })
		sorted = len(all)
	}
	// Nodes that share more bits with the target than this one does are nearest;
	// then come those that share as many, which are all in deeper buckets; then
	// those that share fewer.
	at := common(t.self, target)
	if at < len(t.buckets) {
		all = make([]*Contact, 0, 2*n)
		add(&t.buckets[at])
		order()
	}
	if len(all) < n {
		for i := at + 1; i < len(t.buckets); i++ {
			add(&t.buckets[i])
		}
		order()
	}
	for i := min(at, len(t.buckets)) - 1; i >= 0 && len(all) < n; i-- {
		add(&t.buckets[i])
		order()
	}
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
