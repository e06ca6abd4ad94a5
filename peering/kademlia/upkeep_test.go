package kademlia

import (
	"slices"
	"testing"
	"time"
)

// keeps is a Source of so many records, evenly over the space.
type keeps []Record

func (k keeps) Next(from ID, n int) []Record {
	i := slices.IndexFunc(k, func(r Record) bool { return !less(r.Key, from) })
	if i < 0 {
		return nil
	}
	return k[i:min(len(k), i+n)]
}

func less(a, b ID) bool { return slices.Compare(a[:], b[:]) < 0 }

// drive has a node's requests answered for a while, and counts them by kind.
func (n *Node) drive(from time.Time, d time.Duration) map[Kind]int {
	kinds := make(map[Kind]int)
	for at := time.Duration(0); at <= d; at += time.Second {
		now := from.Add(at)
		for calls := n.Poll(now); len(calls) > 0; calls = n.Poll(now) {
			for _, c := range calls {
				kinds[c.Request.Kind]++
				r := &Response{Codes: make([]Code, len(c.Request.Records))}
				for i := range r.Codes {
					r.Codes[i] = Stored
				}
				n.Answer(c.ID, r, nil, now)
			}
		}
	}
	return kinds
}

// TestNode_PublishesAtThePaceOfNow tells a node in the midst of its first round
// that others live an hour and not for days: what is left of the round does not
// wait for half a day.
func TestNode_PublishesAtThePaceOfNow(t *testing.T) {
	mine := keeps{{Key: ID{0xff}, Value: []byte{7, 1}}}
	n := testNode(Config{Mine: mine})
	for i := range byte(100) {
		n.meet(&Contact{ID: ID{i, 1}}, begun)
	}
	n.Join(nil)
	n.Publish()
	if kinds := n.drive(begun, time.Minute); kinds[Store] == 0 {
		t.Fatal("nothing is stored at once")
	}
	if kinds := n.drive(begun.Add(time.Minute), 2*time.Hour); kinds[Store] != 0 {
		t.Fatalf("%d are stored again in two hours, though nobody died", kinds[Store])
	}
	for range 400 { // of an hour each
		n.lives.addDeath(&entry{seen: 3600})
	}
	if p := n.Period(begun.Add(2 * time.Hour)); p > 3*time.Hour {
		t.Fatalf("a period of %v", p)
	}
	if kinds := n.drive(begun.Add(2*time.Hour+time.Minute), 3*time.Hour); kinds[Store] == 0 {
		t.Error("nothing is stored again, though all die")
	}
}

// TestNode_PublishesWhatStandsAloneByItself counts the requests of a round: a
// record that has no neighbour costs no walk around a whole region.
func TestNode_PublishesWhatStandsAloneByItself(t *testing.T) {
	cost := func(keys ...ID) (walks, puts int) {
		var mine keeps
		for _, k := range keys {
			mine = append(mine, Record{Key: k, Value: []byte{7, 1}})
		}
		n := testNode(Config{Mine: mine})
		for i := range byte(250) {
			n.meet(&Contact{ID: ID{i, 1}}, begun)
		}
		n.Join(nil)
		n.Publish()
		for at := time.Duration(0); at < 20*time.Second; at += time.Second {
			n.drive(begun.Add(at), 0)
			if p := n.upkeep.region; p != nil && at > 15*time.Second {
				if p.more != nil {
					walks++
				} else {
					puts++
				}
				break
			}
		}
		return walks, puts
	}
	if walks, puts := cost(ID{0x40}, ID{0xc0}); walks != 0 || puts == 0 {
		t.Errorf("far from each other: %d walks, %d puts", walks, puts)
	}
	if walks, puts := cost(ID{0x40, 1}, ID{0x40, 2}); walks == 0 || puts != 0 {
		t.Errorf("beside each other: %d walks, %d puts", walks, puts)
	}
}

// TestNode_AsksAgainWhoFailedOnce is of a contact that goes: that is known soon,
// and not when somebody happens to need it.
func TestNode_AsksAgainWhoFailedOnce(t *testing.T) {
	n := testNode(Config{})
	gone := ID{0x80, 1}
	n.meet(&Contact{ID: gone}, begun)
	n.upkeep.joining, n.upkeep.shaken, n.upkeep.selfAt = len(joins)-1, true, begun.Add(24*time.Hour)
	n.probeNode(n.table.getContact(gone), begun)
	for _, c := range n.Poll(begun) {
		if c.Request.Kind == Ping {
			n.Fail(c.ID, begun)
		}
	}
	if got := asked(n, begun.Add(doubtFor-time.Second), Ping); len(got) != 0 {
		t.Errorf("%v is asked at once", got)
	}
	if got := asked(n, begun.Add(doubtFor), Ping); !slices.Equal(got, []ID{gone}) {
		t.Errorf("%v is asked, want the one that failed", got)
	}
}

// TestNode_AsksThoseBehindTheDead has one that nobody can replace keep no other
// from being asked whether it is there.
func TestNode_AsksThoseBehindTheDead(t *testing.T) {
	n := testNode(Config{})
	gone, stays := ID{0x80, 1}, ID{0x80, 2}
	n.meet(&Contact{ID: gone}, begun)
	n.meet(&Contact{ID: stays}, begun.Add(time.Second))
	for range maxFail {
		n.table.noteFailure(gone, begun)
	}
	for i := range n.table.buckets { // due now, and nothing else is
		n.table.buckets[i].looked = 0
	}
	n.upkeep.joining, n.upkeep.shaken, n.upkeep.selfAt = len(joins)-1, true, begun.Add(24*time.Hour)
	if got := asked(n, begun.Add(time.Hour), Ping); !slices.Equal(got, []ID{stays}) {
		t.Errorf("%v is asked", got)
	}
}

// TestNode_LooksLessOftenWhereNothingChanges counts what a table costs in which
// all stay, and after somebody did not answer.
func TestNode_LooksLessOftenWhereNothingChanges(t *testing.T) {
	settled := func(most time.Duration) (n *Node, hour func(from int) int) {
		n = testNode(Config{Self: 1000 * time.Hour, RefreshMost: most})
		var all []*Contact
		for i := range byte(100) {
			all = append(all, &Contact{ID: ID{i, 1}})
		}
		n.Settle(all, func(*Contact) time.Duration { return 50 * time.Millisecond }, begun)
		return n, func(from int) int {
			return n.drive(begun.Add(time.Duration(from)*time.Hour), time.Hour-time.Second)[FindNode]
		}
	}
	_, hour := settled(10 * time.Minute)
	hour(0)
	always := hour(1)
	n, hour := settled(0)
	hour(0)
	hour(1)
	later := hour(2)
	if later == 0 || later*5 > always*2 {
		t.Errorf("%d questions in an hour, and %d of who looks every ten minutes", later, always)
	}
	now := begun.Add(3 * time.Hour)
	for i := range n.table.buckets {
		if b := &n.table.buckets[i]; len(b.live) > 0 {
			n.table.noteFailure(b.live[0].ID, now)
		}
	}
	if again := hour(3); again*20 < later*23 {
		t.Errorf("%d questions in an hour after somebody was silent, %d before", again, later)
	}
}
