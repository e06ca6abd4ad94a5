package kademlia

import (
	"slices"
	"time"
)

// table holds contacts by the number of leading bits that their id shares with the own id (section
// 2.4). A contact gets in only by answering a request of this node; sending a request or being
// named by others is not enough. Old contacts keep their places, because a node that has answered
// for long will probably answer tomorrow (section 4.1).
type table struct {
	self    ID
	cfg     *Config
	buckets []bucket // by shared bits; as many as there are contacts for
	size    int
	groups  map[Group]int
	// far is the memory for the distances that nearestContacts sorts, reused by each call.
	far []uint64
}

type bucket struct {
	live  []entry // the contact that answered longest ago comes first
	spare []entry // contacts that answered but found no place; the latest is last
	// looked is the time of the last lookup in the bucket, changed the time when a contact of it
	// last came, left or did not answer; both in Unix ms.
	looked, changed int64
}

type entry struct {
	*Contact
	lead uint64 // the first bits of the id
	// seen is the time of the last answer, since the start of the unbroken time in which it is
	// known. Both are in Unix seconds, half the size of milliseconds: a table has a hundred entries
	// and more.
	seen, since uint32
	fails       uint8 // requests in a row without an answer
}

// unixSeconds converts a time to the form that entries use.
func unixSeconds(t time.Time) uint32 { return uint32(t.Unix()) }

// answeredAt returns the time of the last answer.
func (e *entry) answeredAt() time.Time { return time.Unix(int64(e.seen), 0) }

// knownFor returns how long the contact is known, up to its last answer.
func (e *entry) knownFor() time.Duration { return time.Duration(e.seen-e.since) * time.Second }

func newTable(self ID, cfg *Config) *table {
	return &table{self: self, cfg: cfg, groups: make(map[Group]int)}
}

// bucketOf returns the bucket of an id, nil if there is none.
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

// getContact returns the contact of a node, nil if it is not in the table.
func (t *table) getContact(id ID) *Contact {
	if b := t.bucketOf(id); b != nil {
		if i := findEntry(b.live, id); i >= 0 {
			return b.live[i].Contact
		}
	}
	return nil
}

// hasRoom reports whether a node that is not in the table would get a place.
func (t *table) hasRoom(c *Contact) bool {
	b := t.bucketOf(c.ID)
	if b != nil && (!t.hasPlace(b) || findEntry(b.live, c.ID) >= 0) { // the first condition decides most calls
		return false
	}
	return c.ID != t.self && t.cfg.Admits(c) && t.groupsAllow(b, c)
}

// hasPlace reports whether a bucket has a free place. If two buckets could hold the whole network,
// the table takes all of it (section 2.4 splits a bucket for this; a table that is never larger
// needs no split).
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

// bucketAllows reports whether a list of a bucket has room for one more contact of the same groups.
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

// noteAnswer records that a node answered, and takes it in if there is a place. It reports whether
// the node is new in the table.
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
		return false // otherwise a few hosts would soon fill the waiting list
	}
	if len(b.spare) >= spares {
		b.spare = slices.Delete(b.spare, 0, 1)
	}
	b.spare = append(growEntries(b.spare, spares), e)
	return false
}

// growEntries returns the list with room for one more entry. It doubles, but not beyond the usual
// size of a list: a table has some twenty lists, most of them full.
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

// noteFailure records that a node did not answer. A contact that failed too often loses its place
// to the spare that answered last. Without a spare it keeps the place for some more tries, because
// a portal that is offline for a while would lose its whole table otherwise; it is not named in
// answers meanwhile.
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

// failedOnce reports whether a contact of the table failed exactly once.
func (t *table) failedOnce(id ID) bool {
	b := t.bucketOf(id)
	if b == nil {
		return false
	}
	i := findEntry(b.live, id)
	return i >= 0 && b.live[i].fails == 1
}

// removeNode removes a node from the table.
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

// nearestContacts returns the n contacts nearest to a target, nearest first, of those that pass
// keep (nil: all). Failing contacts are left out. Waiting contacts are included: they answered last
// and differ from the old contacts that are in most tables, so a walk has fewer steps.
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
	// All contacts of one bucket are nearer to the target than all of another. A contact that
	// shares n bits with this node and differs in the next one is near the target if the target
	// differs there too, and nearer the fewer bits it shares; otherwise it is far, and farther the
	// fewer bits it shares.
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

// eachContact calls yield with each contact of the table.
func (t *table) eachContact(yield func(*entry)) {
	for i := range t.buckets {
		for j := range t.buckets[i].live {
			yield(&t.buckets[i].live[j])
		}
	}
}

// lookedIn notes a lookup near a target.
func (t *table) lookedIn(target ID, now time.Time) {
	if len(t.buckets) > 0 {
		t.buckets[min(commonBits(t.self, target), len(t.buckets)-1)].looked = now.UnixMilli()
	}
}
