package packages

import (
	"strconv"
	"testing"

	"agentsite/internal/clock"
)

// numbered is a notice of a portal at a time.
func numbered(portal string, at int) Notice {
	return Notice{Kill: Kill{Hash: portal + strconv.Itoa(at), CreatedAt: clock.FromMilli(int64(at))}, PortalID: portal}
}

// A portal displaces only its own oldest notices, or those of a portal that has more. An older notice displaces none of
// its portal.
func TestNoticeBook_Bounds(t *testing.T) {
	t.Parallel()
	b := newNoticeBook()
	for at := range maxNoticesOfPortal + 10 {
		if !b.put(numbered("evil", 1000+at)) {
			t.Fatalf("notice %d is not kept", at)
		}
	}
	if b.put(numbered("evil", 1)) {
		t.Error("the oldest is kept though there is no room")
	}
	if _, ok := b.find("evil", "evil1009"); ok || b.count != maxNoticesOfPortal || len(b.byPortal["evil"]) != b.count {
		t.Errorf("%d are kept, or the wrong ones", b.count)
	}
	for i := 1; b.count < maxNotices; i++ {
		for at := range maxNoticesOfPortal {
			b.put(numbered("evil-"+strconv.Itoa(i)+"-", at))
		}
	}
	if !b.put(numbered("honest", 0)) || b.count != maxNotices {
		t.Errorf("of a portal without any: %d are kept", b.count)
	}
	if n, ok := b.find("honest", "honest0"); !ok || b.put(n) {
		t.Error("it is not kept, or the same again is a change")
	}
	for _, of := range b.byPortal {
		if len(of) > maxNoticesOfPortal {
			t.Errorf("%d of one portal", len(of))
		}
	}
}

// Of two notices of a portal for one hash the newer is kept, in any order.
func TestNoticeBook_KeepsTheNewer(t *testing.T) {
	t.Parallel()
	old, next := numbered("p", 1), numbered("p", 2)
	next.Hash = old.Hash
	for _, list := range [][]Notice{{old, next, old}, {next, old, next}} {
		b := newNoticeBook()
		for _, n := range list {
			b.put(n)
		}
		if n, _ := b.find("p", old.Hash); n != next || b.count != 1 {
			t.Errorf("kept %+v of %d", n, b.count)
		}
	}
}
