package kademlia

import (
	"math/rand/v2"
	"testing"
	"time"
)

func value(publisher byte, minor int64, life time.Duration) Value {
	return Value{Entry{Publisher: ID{publisher}, Major: 1, Minor: minor, Expires: begun.Add(life)}, []byte{publisher, byte(minor)}}
}

func TestStore_KeepsTheNewestOfEachPublisher(t *testing.T) {
	s := valueStore{cfg: StoreConfig{}.withDefaults()}
	for i, c := range []struct {
		v    Value
		want Code
	}{
		{value(1, 2, time.Hour), Stored}, {value(1, 1, time.Hour), Old}, {value(1, 2, time.Hour), Stored}, {value(1, 3, 2*time.Hour), Stored},
		{value(2, 1, time.Hour), Stored}, {value(3, 1, -time.Second), Invalid},
	} {
		if got := s.putValue(ID{9}, c.v, 100, begun); got != c.want {
			t.Errorf("%d: code %d, want %d", i, got, c.want)
		}
	}
	if got := s.getValues(ID{9}, begun, nil); len(got) != 2 || got[0].Minor != 3 || s.count != 2 || s.bytes != 4 {
		t.Errorf("%d values, %d records of %d bytes", len(got), s.count, s.bytes)
	}
	// Of one version the first stays.
	other := value(1, 3, time.Hour)
	other.Bytes = []byte("another")
	if s.putValue(ID{9}, other, 100, begun); string(s.getValues(ID{9}, begun, nil)[0].Bytes) == "another" {
		t.Error("the second of one version replaced the first")
	}
}

func TestStore_LetsGoOfWhatIsOver(t *testing.T) {
	s := valueStore{cfg: StoreConfig{}.withDefaults()}
	s.putValue(ID{9}, value(1, 1, time.Hour), 100, begun)
	s.putValue(ID{9}, value(2, 1, 3*time.Hour), 100, begun)
	if got := s.getValues(ID{9}, begun.Add(2*time.Hour), nil); len(got) != 1 || got[0].Publisher != (ID{2}) {
		t.Errorf("%d values are given after an hour", len(got))
	}
	if s.sweepExpired(begun.Add(2 * time.Hour)); s.count != 1 || s.of[ID{1}] != 0 {
		t.Errorf("%d records are held after two hours", s.count)
	}
	if s.sweepExpired(begun.Add(4 * time.Hour)); s.count != 0 || s.bytes != 0 || len(s.keys)+len(s.of)+len(s.ends) != 0 {
		t.Errorf("%d records of %d bytes are held after four hours", s.count, s.bytes)
	}
}

func TestStore_HasBounds(t *testing.T) {
	fill := func(cfg StoreConfig, share int, of func(i int) (ID, Value)) int {
		s := valueStore{cfg: cfg.withDefaults()}
		for i := range 50 {
			if key, v := of(i); s.putValue(key, v, share, begun) == Full {
				return i
			}
		}
		return -1
	}
	spread := func(i int) (ID, Value) { return ID{byte(i)}, value(byte(i), 1, time.Hour) }
	oneKey := func(i int) (ID, Value) { return ID{9}, value(byte(i), 1, time.Hour) }
	oneBy := func(i int) (ID, Value) { return ID{byte(i)}, value(1, 1, time.Hour) }
	for name, got := range map[string]int{
		"records": fill(StoreConfig{Records: 7}, 100, spread), "bytes": fill(StoreConfig{Bytes: 15}, 100, spread),
		"a key": fill(StoreConfig{PerKey: 7}, 100, oneKey), "a publisher": fill(StoreConfig{}, 7, oneBy),
	} {
		if got != 7 {
			t.Errorf("%s: full at %d, want 7", name, got)
		}
	}
	// An answer has some of them, each time others.
	s := valueStore{cfg: StoreConfig{Answer: 10}.withDefaults()}
	for i := range 50 {
		s.putValue(ID{9}, value(byte(i), 1, time.Hour), 100, begun)
	}
	r, seen := rand.New(rand.NewPCG(1, 1)), make(map[ID]bool)
	for range 100 {
		got := s.getValues(ID{9}, begun, r)
		if len(got) != 10 {
			t.Fatalf("%d values in an answer", len(got))
		}
		for _, v := range got {
			seen[v.Publisher] = true
		}
	}
	if len(seen) != 50 {
		t.Errorf("only %d of 50 are ever named", len(seen))
	}
}

// TestNode_KeepsValuesNotMessages is of records that came together: one that is
// kept must not keep the memory of all the others.
func TestNode_KeepsValuesNotMessages(t *testing.T) {
	n := testNode(Config{})
	message := make([]byte, 1000)
	message[10], message[11] = 7, 1
	r := &Request{Kind: Store, Records: []Record{{Key: ID{1}, Value: message[10:14]}}}
	if got := n.Serve(nil, r, begun); got.Codes[0] != Stored {
		t.Fatalf("%v", got.Codes)
	}
	clear(message)
	got := n.Serve(nil, &Request{Kind: Get, Targets: []ID{{1}}}, begun).Found[0]
	if len(got) != 1 || string(got[0]) != "\x07\x01\x00\x00" || cap(got[0]) > 64 {
		t.Errorf("it keeps %v, of %d bytes", got, cap(got[0]))
	}
}
