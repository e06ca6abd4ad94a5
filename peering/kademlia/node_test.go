package kademlia

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// believes says that a value is of whom its first byte names.
type believes struct{}

func (believes) Validate(_ ID, b []byte) (Entry, error) {
	return Entry{Publisher: ID{b[0]}, Major: 1, Minor: int64(b[1]), Expires: begun.Add(24 * time.Hour)}, nil
}

func testNode(cfg Config) *Node {
	cfg.Rand, cfg.Values = rand.New(rand.NewPCG(1, 1)), believes{}
	return New(&Contact{ID: ID{}}, cfg)
}

// meet has a node answer as if it had been asked.
func (n *Node) meet(c *Contact, now time.Time) { n.noteAnswer(c, now) }

// asked returns whom a node asks now, by kind.
func asked(n *Node, now time.Time, k Kind) (to []ID) {
	for _, c := range n.Poll(now) {
		if c.Request.Kind == k {
			to = append(to, c.To.ID)
		}
	}
	return to
}

func TestNode_AsksWhomItHearsOfOnce(t *testing.T) {
	n := testNode(Config{})
	c := &Contact{ID: ID{1}}
	n.Hear(c, begun)
	calls := n.Poll(begun)
	if len(calls) != 1 || calls[0].Request.Kind != Ping || calls[0].To != c || n.Known() != 0 {
		t.Fatalf("%+v, and it knows %d", calls, n.Known())
	}
	n.Fail(calls[0].ID, begun)
	for _, after := range []struct {
		d    time.Duration
		want int
	}{{time.Second, 0}, {absentFor - time.Second, 0}, {absentFor + time.Second, 1}} {
		now := begun.Add(after.d)
		n.Hear(c, now)
		if got := asked(n, now, Ping); len(got) != after.want {
			t.Errorf("after %v it is asked %d times, want %d", after.d, len(got), after.want)
		}
	}
}

func TestNode_TakesWhatOneSaysOfItself(t *testing.T) {
	n := testNode(Config{})
	n.Hear(&Contact{ID: ID{1}, Version: 1}, begun)
	call := n.Poll(begun)[0]
	n.Answer(call.ID, &Response{Self: &Contact{ID: ID{1}, Version: 2}}, nil, begun)
	if got := n.Contacts(); len(got) != 1 || got[0].Version != 2 {
		t.Fatalf("%+v", got)
	}
	n.Answer(call.ID, &Response{Self: &Contact{ID: ID{1}, Version: 3}}, nil, begun)
	if n.Contacts()[0].Version != 2 {
		t.Error("an answer counts twice")
	}
}

// What others say of a node, of whatever version, is no more once it speaks for
// itself: a liar who names it with the highest of all versions keeps it there
// otherwise, for all whom this node tells.
func TestNode_BelievesTheNodeItselfNotTheHighestVersion(t *testing.T) {
	n := testNode(Config{})
	n.Hear(&Contact{ID: ID{1}, Version: math.MaxInt64, Node: []byte("made up")}, begun)
	call := n.Poll(begun)[0]
	n.Answer(call.ID, &Response{Self: &Contact{ID: ID{1}, Version: 2, Node: []byte("true")}}, nil, begun)
	if got := n.Contacts(); len(got) != 1 || string(got[0].Node) != "true" {
		t.Errorf("%+v", got)
	}
}

func TestNode_BoundsTheGroupsOfOne(t *testing.T) {
	n := testNode(Config{})
	n.meet(&Contact{ID: ID{1}, Groups: []Group{1}}, begun)
	for i := range Group(100) { // it is seen at ever other addresses
		now := begun.Add(time.Duration(i) * time.Hour)
		n.Find(ID{1}, now)
		for _, c := range n.Poll(now) {
			n.Answer(c.ID, &Response{}, []Group{100 + i}, now)
		}
	}
	if got := n.Contacts()[0].Groups; len(got) < 2 || len(got) > maxGroups || !slices.Contains(got, 1) {
		t.Errorf("groups %v, want its first and at most %d", got, maxGroups)
	}
}

func TestNode_DealsWithWhomItAdmits(t *testing.T) {
	n := testNode(Config{Admits: func(c *Contact) bool { return c.ID != ID{1} }})
	out, in := &Contact{ID: ID{1}}, &Contact{ID: ID{2}}
	n.meet(out, begun)
	n.meet(in, begun)
	n.Hear(out, begun)
	if got := n.Contacts(); len(got) != 1 || got[0] != in {
		t.Errorf("%+v are in the table", got)
	}
	l := n.Find(ID{1}, begun)
	for range 3 {
		for _, c := range n.Poll(begun) {
			if c.To.ID == out.ID {
				t.Error("it is asked")
			}
			n.Answer(c.ID, &Response{Nodes: []*Contact{out}}, nil, begun)
		}
	}
	if got := l.Nearest(); slices.Contains(got, out) {
		t.Error("it is found")
	}
	if r := n.Serve(nil, &Request{Kind: FindNode, Targets: []ID{{1}}}, begun); slices.Contains(r.Nodes, out) {
		t.Error("it is named")
	}
}

// TestNode_HandsOverToWhoIsNear gives a newcomer what it should hold, once, if
// this node is the nearest that has it.
func TestNode_HandsOverToWhoIsNear(t *testing.T) {
	for _, nearest := range []bool{true, false} {
		n := testNode(Config{})
		key := ID{0, 1} // this node is 0
		if !nearest {
			n.meet(&Contact{ID: ID{0, 1, 1}}, begun)
		}
		if code := n.Serve(nil, &Request{Kind: Store, Records: []Record{{Key: key, Value: []byte{7, 1}}}}, begun).Codes[0]; code != Stored {
			t.Fatal(code)
		}
		n.meet(&Contact{ID: ID{0, 2}}, begun)
		want := 0
		if nearest {
			want = 1
		}
		if got := asked(n, begun, Store); len(got) != want {
			t.Errorf("nearest %v: given to %v", nearest, got)
		}
		n.meet(&Contact{ID: ID{0, 2}}, begun)
		if got := asked(n, begun, Store); len(got) != 0 {
			t.Errorf("nearest %v: given again to %v", nearest, got)
		}
	}
}

// TestNode_RefusesWhatIsFar is of keys to which many others are nearer.
func TestNode_RefusesWhatIsFar(t *testing.T) {
	n := testNode(Config{})
	for i := range 20 * 256 {
		n.meet(&Contact{ID: ID{byte(1 << (i % 8)), byte(i), byte(i >> 8)}}, begun)
	}
	if n.Known() < 60 {
		t.Fatalf("it knows %d", n.Known())
	}
	codes := n.Serve(nil, &Request{Kind: Store, Records: []Record{{Key: ID{0xff}, Value: []byte{7, 1}}, {Key: ID{0, 1}, Value: []byte{7, 1}}}}, begun).Codes
	if codes[0] != TooFar || codes[1] != Stored {
		t.Errorf("codes %v", codes)
	}
}

// TestNode_PublishesAsOftenAsNodesDie is the period by how long contacts lived,
// those counted that live on.
func TestNode_PublishesAsOftenAsNodesDie(t *testing.T) {
	n := testNode(Config{})
	if got := n.Period(begun); got != 12*time.Hour {
		t.Errorf("before anybody died: %v", got)
	}
	lived := 4 * time.Hour
	for i := range 10 {
		dead, spare := &Contact{ID: ID{128, byte(i)}}, &Contact{ID: ID{64, byte(i)}}
		n.meet(dead, begun)
		n.meet(spare, begun.Add(lived))
		n.meet(dead, begun.Add(lived))
		for range 4 * maxFail {
			n.Hear(dead, begun)
			n.table.noteAnswer(spare, begun.Add(lived))
			if gone := n.table.noteFailure(dead.ID, begun.Add(lived)); gone != nil {
				n.lives.addDeath(gone)
			}
		}
	}
	now := begun.Add(lived)
	if got, want := n.Period(now), time.Duration(float64(lived)*math.Ln2/2); (got - want).Abs() > time.Minute {
		t.Errorf("%v, want %v", got, want)
	}
	// Ten that live on, as far as anybody knows: nothing else than before. Then
	// they answer ten hours later, and the mean is longer.
	if got := n.Period(now.Add(10 * time.Hour)); got != n.Period(now) {
		t.Errorf("%v by who has not answered", got)
	}
	for i := range 10 {
		n.meet(&Contact{ID: ID{64, byte(i)}}, now.Add(10*time.Hour))
	}
	if got, want := n.Period(now.Add(10*time.Hour)), time.Duration(float64(lived+10*time.Hour)*math.Ln2/2); (got - want).Abs() > time.Minute {
		t.Errorf("later %v, want %v", got, want)
	}
}

// TestTimes_SayWhenAnAnswerIsLate is the soft timeout: 5/4 of what 95 of 100
// requests do not exceed, within its bounds.
func TestTimes_SayWhenAnAnswerIsLate(t *testing.T) {
	cfg := Config{}.withDefaults()
	var few times
	if got := few.softLimit(&cfg); got != cfg.SoftMax {
		t.Errorf("%v of who has asked nobody", got)
	}
	for _, c := range []struct{ took, want time.Duration }{
		{10 * time.Millisecond, 200 * time.Millisecond}, {240 * time.Millisecond, 300 * time.Millisecond}, {time.Second, 600 * time.Millisecond},
	} {
		var all times
		for i := range len(all.last) {
			if i%22 == 0 { // one in twenty is not what to go by
				all.addDuration(2 * time.Second)
			} else {
				all.addDuration(c.took)
			}
		}
		if got := all.softLimit(&cfg); got != c.want {
			t.Errorf("requests take %v: late after %v, want %v", c.took, got, c.want)
		}
	}
}

// A request that was crowded out of its path by nearer nodes gives its place
// free all the same, once: else who answers soonest could keep a lookup from
// going on.
func TestWalk_FreesThePlaceOfWhoWasCrowdedOut(t *testing.T) {
	for _, late := range []bool{false, true} {
		n := testNode(Config{})
		n.meet(&Contact{ID: ID{0x80}}, begun)
		l := n.Get(ID{0xff}, 1, begun)
		n.Poll(begun)
		at := slices.IndexFunc(n.calls, func(c *call) bool { return c.walk == &l.walk })
		if at < 0 {
			t.Fatal("nobody is asked")
		}
		c, p := n.calls[at], l.paths[0]
		for i := range maxCands {
			p.addCandidate(&l.walk, &Contact{ID: ID{0xff, byte(i), 1}}, 2)
		}
		if p.candidateOf(&l.walk, c.to.ID) != nil || p.flight != 1 {
			t.Fatalf("it is there still, %d in flight", p.flight)
		}
		if late {
			l.markSlow(c)
			if p.flight != 0 {
				t.Errorf("late: %d in flight", p.flight)
			}
		}
		l.takeFailure(c)
		if p.flight != 0 || l.calls != 0 {
			t.Errorf("failed, late before %t: %d in flight of %d", late, p.flight, l.calls)
		}
	}
}
