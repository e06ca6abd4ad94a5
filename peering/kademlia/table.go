package kademlia

import (
	"slices"
	"time"
)

// table is the routing table: contacts by the number of leading bits that their id shares with this node's
// id (section 2.4 of the Kademlia paper). A contact enters only by answering a request of this node;
// sending a request or being named by others is not enough. Old contacts keep their places, because a node
// that has answered for long will probably answer tomorrow (section 4.1).
type table struct {
	self    ID
	cfg     *Config
	buckets []bucket // bucket i: contacts that share i leading bits with self
	size    int
	groups  map[Group]int
	// far is a buffer of nearestContacts, reused by each call.
	far []uint64
}

type bucket struct {
	live  []entry // least recent answer first
	spare []entry // contacts that answered but found no place; most recent answer last
	// looked is the time of the last lookup in the bucket. changed is when a contact last came, left or
	// failed. Both are in Unix ms.
	looked, changed int64
}

type entry struct {
	*Contact
	lead uint64 // first 64 bits of the id, for quick comparison
	// seen is the time of the last answer, since the time at which the contact entered the table. Both are
	// in Unix seconds to save memory, because a table has more than a hundred entries.
	seen, since uint32
	fails       uint8 // consecutive requests without an answer
}

// unixSeconds converts a time to the form of entry.seen and entry.since.
func unixSeconds(t time.Time) uint32 { return uint32(t.Unix()) }

// answeredAt returns the time of the last answer, to the second.
func (e *entry) answeredAt() time.Time { return time.Unix(int64(e.seen), 0) }

// knownFor returns how long the contact was in the table at its last answer.
func (e *entry) knownFor() time.Duration { return time.Duration(e.seen-e.since) * time.Second }

func newTable(self ID, cfg *Config) *table {
	return &table{self: self, cfg: cfg, groups: make(map[Group]int)}
}

// bucketOf returns the bucket of an id, nil if the table has none for it yet.
func (t *table) bucketOf(id ID) *bucket {
	if n := commonBits(t.self, id); n < len(t.buckets) {
		return &t.buckets[n]
	}
	return nil
}

func findEntry(list []entry, id ID) int {
	first := leadingBits(id)
	for i := range list {
		if list[i].lead == first && list[i].ID == id {
			return i
		}
	}
	return -1
}

// getContact returns the contact of a node, nil if it is not in the table. Spares are not searched.
func (t *table) getContact(id ID) *Contact {
	if b := t.bucketOf(id); b != nil {
		if i := findEntry(b.live, id); i >= 0 {
			return b.live[i].Contact
		}
	}
	return nil
}

// hasRoom reports whether a node would enter the table if it answered now. It is false for contacts of the
// table.
func (t *table) hasRoom(c *Contact) bool {
	b := t.bucketOf(c.ID)
	if b != nil && (!t.hasPlace(b) || findEntry(b.live, c.ID) >= 0) { // hasPlace first, because it decides most calls
		return false
	}
	return c.ID != t.self && t.cfg.Admits(c) && t.groupsAllow(b, c)
}

// hasPlace reports whether a bucket has a free place. A table with fewer than 2k contacts takes any
// contact, whatever its bucket: section 2.4 of the Kademlia paper splits buckets for this purpose.
func (t *table) hasPlace(b *bucket) bool { return len(b.live) < t.cfg.K || t.size < 2*t.cfg.K }

// groupsAllow reports whether the limits of groups leave room for a contact, in the bucket and in
// the table.
func (t *table) groupsAllow(b *bucket, c *Contact) bool {
	for _, g := range c.Groups {
		if t.groups[g] >= t.cfg.GroupTable {
			return false
		}
	}
	return b == nil || t.bucketAllows(b.live, c)
}

// bucketAllows reports whether the limit GroupBucket leaves room for c in a list of a bucket.
func (t *table) bucketAllows(list []entry, c *Contact) bool {
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

// noteAnswer records that a node answered and adds its contact if there is a place. It returns true if the
// contact is new in the table.
func (t *table) noteAnswer(c *Contact, now time.Time) (taken bool) {
	ms := now.UnixMilli()
	if c.ID == t.self || !t.cfg.Admits(c) {
		return false
	}
	n := commonBits(t.self, c.ID)
	if n >= len(t.buckets) {
		if !t.groupsAllow(nil, c) {
			return false
		}
		for len(t.buckets) <= n {
			t.buckets = append(t.buckets, bucket{looked: ms, changed: ms})
		}
	}
	b := &t.buckets[n]
	if i := findEntry(b.live, c.ID); i >= 0 {
		e := b.live[i]
		if c.Version < e.Version {
			c = e.Contact
		}
		t.countGroups(e.Contact, -1)
		t.countGroups(c, 1)
		copy(b.live[i:], b.live[i+1:])
		b.live[len(b.live)-1] = entry{c, e.lead, unixSeconds(now), e.since, 0}
		return false
	}
	if i := findEntry(b.spare, c.ID); i >= 0 {
		b.spare = slices.Delete(b.spare, i, i+1)
	}
	e := entry{c, leadingBits(c.ID), unixSeconds(now), unixSeconds(now), 0}
	if t.groupsAllow(b, c) && t.hasPlace(b) {
		t.addEntry(b, e)
		b.changed = ms
		return true
	}
	if !t.bucketAllows(b.spare, c) {
		return false // without this limit a few hosts would fill the waiting list
	}
	if len(b.spare) >= spares {
		b.spare = slices.Delete(b.spare, 0, 1)
	}
	b.spare = append(growEntries(b.spare, spares), e)
	return false
}

// growEntries returns the list with room for one more entry. The capacity doubles, but not beyond most, the
// usual size of a list, because most lists of a table become full and memory would be wasted.
func growEntries(list []entry, most int) []entry {
	if len(list) < cap(list) {
		return list
	}
	n := max(4, 2*len(list))
	if len(list) < most {
		n = min(n, most)
	}
	return append(make([]entry, 0, n), list...)
}

func (t *table) addEntry(b *bucket, e entry) {
	b.live = append(growEntries(b.live, t.cfg.K), e)
	t.countGroups(e.Contact, 1)
	t.size++
}

func (t *table) countGroups(c *Contact, by int) {
	for _, g := range c.Groups {
		if t.groups[g] += by; t.groups[g] == 0 {
			delete(t.groups, g)
		}
	}
}

// noteFailure records that a node did not answer. A contact that failed maxFail times is replaced by the
// spare that answered last, and returned as dropped. Without a spare it stays for some more failures,
// because a portal that is offline for a while would otherwise lose its whole table; meanwhile it is not
// named in answers.
func (t *table) noteFailure(id ID, now time.Time) (dropped *entry) {
	b := t.bucketOf(id)
	if b == nil {
		return nil
	}
	if i := findEntry(b.spare, id); i >= 0 {
		b.spare = slices.Delete(b.spare, i, i+1)
	}
	i := findEntry(b.live, id)
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
	t.removeNode(id)
	return &gone
}

// failedOnce reports whether a contact of the table failed exactly once since its last answer.
func (t *table) failedOnce(id ID) bool {
	b := t.bucketOf(id)
	if b == nil {
		return false
	}
	i := findEntry(b.live, id)
	return i >= 0 && b.live[i].fails == 1
}

// removeNode removes a node from the table and moves the most recent admissible spare to its place.
func (t *table) removeNode(id ID) {
	b := t.bucketOf(id)
	if b == nil {
		return
	}
	if i := findEntry(b.spare, id); i >= 0 {
		b.spare = slices.Delete(b.spare, i, i+1)
	}
	i := findEntry(b.live, id)
	if i < 0 {
		return
	}
	t.countGroups(b.live[i].Contact, -1)
	t.size--
	b.live = slices.Delete(b.live, i, i+1)
	for i := len(b.spare) - 1; i >= 0; i-- {
		if e := b.spare[i]; t.groupsAllow(b, e.Contact) && t.hasPlace(b) {
			b.spare = slices.Delete(b.spare, i, i+1)
			t.addEntry(b, e)
			for i := len(b.live) - 1; i > 0 && b.live[i].seen < b.live[i-1].seen; i-- {
				b.live[i], b.live[i-1] = b.live[i-1], b.live[i]
			}
			return
		}
	}
}

// nearestContacts returns at most n contacts nearest to a target, nearest first, of those that pass keep
// (nil: all). Contacts that failed maxFail times are left out. Spares are included: they answered recently
// and differ from the old contacts that most tables have, so lookups need fewer steps.
func (t *table) nearestContacts(target ID, n int, keep func(*entry) bool) []*Contact {
	all := make([]*Contact, 0, n+t.cfg.K)
	first, far := leadingBits(target), t.far[:0]
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
	// The buckets can be visited in order of distance: all contacts of one bucket are nearer to the target
	// than all of another. Take a bucket of contacts that share n bits with this node and differ in the
	// next one. If the target differs from this node there too, they are near, nearer the smaller n is.
	// Otherwise they are far, farther the smaller n is.
	for i := range t.buckets {
		if len(all) < n && differAfter(t.self, target, i) {
			add(&t.buckets[i])
		}
	}
	for i := len(t.buckets) - 1; i >= 0 && len(all) < n; i-- {
		if !differAfter(t.self, target, i) {
			add(&t.buckets[i])
		}
	}
	t.far = far
	return all[:min(n, len(all))]
}

// eachContact calls yield with each contact of the table, without spares.
func (t *table) eachContact(yield func(*entry)) {
	for i := range t.buckets {
		for j := range t.buckets[i].live {
			yield(&t.buckets[i].live[j])
		}
	}
}

// lookedIn records a lookup of the target in its bucket, so that the bucket needs no refresh.
func (t *table) lookedIn(target ID, now time.Time) {
	if len(t.buckets) > 0 {
		t.buckets[min(commonBits(t.self, target), len(t.buckets)-1)].looked = now.UnixMilli()
	}
}
