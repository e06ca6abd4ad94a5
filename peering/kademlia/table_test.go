package kademlia

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

var begun = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func testTable(seed uint64, cfg Config) (*table, *rand.Rand) {
	r := rand.New(rand.NewPCG(seed, 0))
	cfg.Rand = r
	c := cfg.withDefaults()
	return newTable(randomID(r), &c), r
}

// TestTable_NearestIsWhatSortingAllGives compares with brute force.
func TestTable_NearestIsWhatSortingAllGives(t *testing.T) {
	for seed := range uint64(6) {
		tab, r := testTable(seed, Config{})
		for range 20 + r.IntN(2000) {
			id := randomID(r)
			if n := r.IntN(40); n > 20 { // some are near the own id
				copy(id[:], tab.self[:n-20])
			}
			tab.noteAnswer(&Contact{ID: id}, begun)
		}
		var all []*Contact
		tab.eachContact(func(e *entry) { all = append(all, e.Contact) })
		if len(all) != tab.size {
			t.Fatalf("%d contacts, %d counted", len(all), tab.size)
		}
		for i := range tab.buckets { // those that wait are named too
			for _, e := range tab.buckets[i].spare {
				all = append(all, e.Contact)
			}
		}
		for range 50 {
			target, n := randomID(r), 1+r.IntN(60)
			if share := r.IntN(64); share > 32 {
				copy(target[:share-32], tab.self[:])
			}
			want := slices.Clone(all)
			slices.SortFunc(want, func(a, b *Contact) int { return distance(target, a.ID).Cmp(distance(target, b.ID)) })
			want = want[:min(n, len(want))]
			if got := tab.nearestContacts(target, n, nil); !slices.Equal(got, want) {
				t.Fatalf("seed %d: the %d nearest of %d are not what sorting gives", seed, n, len(all))
			}
		}
	}
}

// TestTable_HoldsItsRules does at random what happens to a table, and looks at
// all that has to be true of it.
func TestTable_HoldsItsRules(t *testing.T) {
	for seed := range uint64(10) {
		tab, r := testTable(seed, Config{})
		now := begun
		var known []*Contact
		for range 3000 {
			now = now.Add(time.Duration(r.IntN(5000)) * time.Millisecond)
			var c *Contact
			if len(known) > 0 && r.IntN(3) > 0 {
				c = known[r.IntN(len(known))]
			} else {
				c = &Contact{ID: randomID(r)}
				if r.IntN(2) == 0 {
					c.Groups = []Group{Group(r.IntN(12))}
				}
				known = append(known, c)
			}
			switch r.IntN(4) {
			case 0:
				tab.noteFailure(c.ID, now)
			case 1:
				if r.IntN(10) == 0 {
					tab.removeNode(c.ID)
				}
			default:
				tab.noteAnswer(c, now)
			}
			holds(t, tab)
		}
	}
}

func holds(t *testing.T, tab *table) {
	t.Helper()
	size, groups := 0, make(map[Group]int)
	for i, b := range tab.buckets {
		mine := make(map[Group]int)
		for j, e := range b.live {
			size++
			if commonBits(tab.self, e.ID) != i {
				t.Fatalf("a contact with %d bits is in bucket %d", commonBits(tab.self, e.ID), i)
			}
			if j > 0 && b.live[j-1].seen > e.seen {
				t.Fatal("a bucket is not in the order in which its contacts answered")
			}
			if findEntry(b.live[j+1:], e.ID) >= 0 || findEntry(b.spare, e.ID) >= 0 {
				t.Fatal("a contact is there twice")
			}
			for _, g := range e.Groups {
				groups[g]++
				mine[g]++
			}
		}
		wait := make(map[Group]int)
		for _, e := range b.spare {
			for _, g := range e.Groups {
				wait[g]++
			}
		}
		for g := range Group(12) {
			if mine[g] > tab.cfg.GroupBucket || wait[g] > tab.cfg.GroupBucket {
				t.Fatalf("%d of group %d are in one bucket, %d wait for a place in it", mine[g], g, wait[g])
			}
		}
		if len(b.spare) > spares {
			t.Fatalf("%d wait", len(b.spare))
		}
		// While there are few all have a place, and they keep it.
		if len(b.live) > 2*tab.cfg.K {
			t.Fatalf("a bucket holds %d of %d", len(b.live), tab.size)
		}
	}
	if size != tab.size || fmt.Sprint(groups) != fmt.Sprint(tab.groups) {
		t.Fatalf("%d contacts are counted as %d, %v as %v", size, tab.size, groups, tab.groups)
	}
	for g, n := range groups {
		if n > tab.cfg.GroupTable {
			t.Fatalf("%d of group %d are in the table", n, g)
		}
	}
}

// TestTable_KeepsTheOld is section 4.1: a flood of new nodes takes nobody's
// place.
func TestTable_KeepsTheOld(t *testing.T) {
	tab, r := testTable(1, Config{})
	for range 500 {
		tab.noteAnswer(&Contact{ID: randomID(r)}, begun)
	}
	var old []*Contact
	tab.eachContact(func(e *entry) { old = append(old, e.Contact) })
	for i := range 5000 {
		tab.noteAnswer(&Contact{ID: randomID(r)}, begun.Add(time.Duration(i)*time.Second))
	}
	for _, c := range old {
		if tab.getContact(c.ID) == nil {
			t.Fatal("an old contact lost its place to a new one")
		}
	}
	// Until it is silent, twice.
	first := tab.buckets[0].live[0].Contact
	if tab.noteFailure(first.ID, begun); tab.getContact(first.ID) == nil {
		t.Error("one failure costs the place")
	}
	if slices.ContainsFunc(tab.nearestContacts(first.ID, 20, nil), func(c *Contact) bool { return c == first }) != true {
		t.Error("one failure keeps it from being named")
	}
	if gone := tab.noteFailure(first.ID, begun); gone == nil || tab.getContact(first.ID) != nil {
		t.Error("two failures do not cost the place")
	}
	if len(tab.buckets[0].live) != tab.cfg.K {
		t.Error("no spare took it")
	}
}

// TestTable_KeepsThoseItCannotReplace is of a portal whose own network is cut:
// it must not lose everybody.
func TestTable_KeepsThoseItCannotReplace(t *testing.T) {
	tab, r := testTable(1, Config{})
	c := &Contact{ID: randomID(r)}
	tab.noteAnswer(c, begun)
	for range 2 * maxFail {
		tab.noteFailure(c.ID, begun)
	}
	if tab.getContact(c.ID) == nil {
		t.Error("it is gone")
	}
	if len(tab.nearestContacts(c.ID, 1, nil)) != 0 {
		t.Error("it is still named")
	}
	tab.noteAnswer(c, begun)
	if len(tab.nearestContacts(c.ID, 1, nil)) != 1 {
		t.Error("it answered, and is not named")
	}
}

func TestTable_TakesTheNewerContact(t *testing.T) {
	tab, r := testTable(1, Config{})
	id := randomID(r)
	for _, v := range []int64{2, 3, 1} {
		tab.noteAnswer(&Contact{ID: id, Version: v}, begun)
	}
	if got := tab.getContact(id).Version; got != 3 {
		t.Errorf("version %d is held", got)
	}
}
