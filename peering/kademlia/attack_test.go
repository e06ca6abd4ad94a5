package kademlia

import (
	"slices"
	"testing"
	"time"
)

// TestWalk_AsksFewOfOneOperator names nodes of one operator only, twenty in each
// answer, all nearer to the target than whoever names them.
func TestWalk_AsksFewOfOneOperator(t *testing.T) {
	n := testNode(Config{})
	target := ID{0x80}
	for i := range byte(10) {
		n.meet(&Contact{ID: ID{0xc0, i}}, begun)
	}
	l := n.Find(target, begun)
	asked, others, named := 0, 0, byte(0)
	for calls := n.Poll(begun); len(calls) > 0; calls = n.Poll(begun) {
		for _, c := range calls {
			r := &Response{}
			if c.Request.Kind != FindNode || c.Request.Targets[0] != target { // of upkeep
				n.Answer(c.ID, r, nil, begun)
				continue
			}
			if len(c.To.Groups) > 0 {
				asked++
			} else {
				others++
			}
			for range n.cfg.K {
				named++
				r.Nodes = append(r.Nodes, &Contact{ID: ID{0x80, 1, named}, Groups: []Group{7}})
			}
			n.Answer(c.ID, r, nil, begun)
		}
	}
	if asked == 0 || asked > n.cfg.GroupAnswer {
		t.Errorf("%d of one operator were asked, want a few, at most %d", asked, n.cfg.GroupAnswer)
	}
	if others != 10 {
		t.Errorf("%d of 10 others were asked: those of one operator crowd them out", others)
	}
	count := 0
	for _, c := range l.Nearest() {
		if len(c.Groups) > 0 {
			count++
		}
	}
	if count > n.cfg.GroupAnswer {
		t.Errorf("%d of one operator count as the nearest", count)
	}
	if got := n.Buckets(); n.Known() > 10+n.cfg.GroupTable {
		t.Errorf("buckets have %v", got)
	}
}

// TestNode_NamesFewOfOneOperator is of what this node answers.
func TestNode_NamesFewOfOneOperator(t *testing.T) {
	n := testNode(Config{GroupBucket: 10, GroupTable: 10})
	for i := range byte(10) {
		n.meet(&Contact{ID: ID{0x80, i}, Groups: []Group{7}}, begun)
		n.meet(&Contact{ID: ID{0x90, i}}, begun)
	}
	count := 0
	nodes := n.Serve(nil, &Request{Kind: FindNode, Targets: []ID{{0x80}}}, begun).Nodes
	for _, c := range nodes {
		if len(c.Groups) > 0 {
			count++
		}
	}
	if count != n.cfg.GroupAnswer || len(nodes) != 13 {
		t.Errorf("%d are named, %d of one operator", len(nodes), count)
	}
}

// TestNode_BoundsAFloodOfRecords is of one publisher that brings more than its
// share to one node; others still have room there.
func TestNode_BoundsAFloodOfRecords(t *testing.T) {
	n := testNode(Config{Store: StoreConfig{Agents: 1000, Publisher: 10}})
	for i := range byte(200) {
		n.meet(&Contact{ID: ID{i, 1}}, begun)
	}
	share := int(4*1000*n.regionShare()) + 10
	if share < 100 || share > 1500 {
		t.Fatalf("a share of %d", share)
	}
	codes := make(map[Code]int)
	bring := func(publisher byte, i int) Code {
		key := ID{0, 0, byte(i >> 8), byte(i)} // this node is 0
		return n.Serve(nil, &Request{Kind: Store, Records: []Record{{Key: key, Value: []byte{publisher, 1}}}}, begun).Codes[0]
	}
	for i := range 5000 {
		codes[bring(7, i)]++
	}
	if codes[Stored] != share || codes[Full] != 5000-share || n.Held() != share {
		t.Errorf("%v, and %d are held, want %d", codes, n.Held(), share)
	}
	if code := bring(8, 0); code != Stored {
		t.Errorf("another publisher is told %v", code)
	}
}

// TestNode_TakesNoOldRecordBack replays what a publisher signed before: to who
// keeps the new one, and in answers beside it.
func TestNode_TakesNoOldRecordBack(t *testing.T) {
	n := testNode(Config{})
	key, older, newer := ID{0, 1}, []byte{7, 1}, []byte{7, 2}
	store := func(v []byte) Code {
		return n.Serve(nil, &Request{Kind: Store, Records: []Record{{Key: key, Value: v}}}, begun).Codes[0]
	}
	if store(newer) != Stored || store(older) != Old {
		t.Error("the old one is taken")
	}
	if got := n.Serve(nil, &Request{Kind: Get, Targets: []ID{key}}, begun).Found[0]; len(got) != 1 || !slices.Equal(got[0], newer) {
		t.Errorf("%v is given out", got)
	}

	for _, first := range [][]byte{older, newer} {
		n := testNode(Config{})
		for i := range byte(3) {
			n.meet(&Contact{ID: ID{0x80, i}}, begun)
		}
		l := n.Get(ID{0x80}, 3, begun)
		for i, c := range n.Poll(begun) {
			v := first
			if i == 1 {
				v = newer
			}
			n.Answer(c.ID, &Response{Found: [][][]byte{{v}}}, nil, begun)
		}
		if got := l.Values(); len(got) != 1 || !slices.Equal(got[0].Bytes, newer) {
			t.Errorf("%v is found", got)
		}
	}
}

// TestNode_AsksBeforeItBelieves names a node that is not there, as its id with
// somebody else's address: it gets no place, and nobody hears of it from here.
func TestNode_AsksBeforeItBelieves(t *testing.T) {
	n := testNode(Config{})
	n.meet(&Contact{ID: ID{1}}, begun)
	stolen := &Contact{ID: ID{0x40}, Address: "https://evil.example"}
	n.Find(ID{0x40}, begun)
	now := begun
	for range 4 {
		for _, c := range n.Poll(now) {
			if c.To == stolen {
				n.Fail(c.ID, now) // who is there does not prove that id
			} else {
				n.Answer(c.ID, &Response{Nodes: []*Contact{stolen}}, nil, now)
			}
		}
		now = now.Add(time.Second)
	}
	for _, c := range append(n.Contacts(), n.Serve(nil, &Request{Kind: FindNode, Targets: []ID{{0x40}}}, now).Nodes...) {
		if c.ID == stolen.ID {
			t.Error("it is believed")
		}
	}
}
