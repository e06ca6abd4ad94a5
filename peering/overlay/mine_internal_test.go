package overlay

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"testing"

	"agentsite/internal/record"
	"agentsite/internal/testing/recordtest"
	"agentsite/peering/kademlia"
)

// ownLog is the log of a portal as mine reads it; it counts the entries read.
type ownLog struct {
	t       *testing.T
	portal  *recordtest.Portal
	start   int64
	entries []*record.Record
	read    int
}

func (l *ownLog) add(id string, caps ...string) {
	l.put(l.portal.Agent(id), func(a *record.Agent) { a.Caps = caps })
}

func (l *ownLog) remove(id string) { l.put(l.portal.Gone(id), func(*record.Agent) {}) }

func (l *ownLog) put(a *record.Agent, change func(*record.Agent)) {
	change(a)
	l.entries = slices.DeleteFunc(l.entries, func(r *record.Record) bool { return r.Body.(*record.Agent).ID == a.ID })
	l.entries = append(l.entries, l.portal.Sign(l.t, a))
}

// Head implements Records.
func (l *ownLog) Head(context.Context, record.PortalID) ([]byte, error) {
	h := l.portal.Head(new(record.Tree))
	h.LogStart = max(l.start, 1)
	return l.portal.Sign(l.t, h).Wire, nil
}

// Log implements Records. A page has two entries at most.
func (l *ownLog) Log(_ context.Context, _ record.PortalID, after int64, _, _ int) (page [][]byte, err error) {
	for _, r := range l.entries {
		if r.Seq > after && len(page) < 2 {
			page = append(page, r.Wire)
		}
	}
	l.read += len(page)
	return page, nil
}

func (l *ownLog) overlay() *Overlay {
	o := &Overlay{cfg: Config{
		Self:    signer{l.portal, l.portal.Sign(l.t, l.portal.Card()).Wire, "https://self.example"},
		Records: l,
		Log:     slog.New(slog.DiscardHandler),
	}, id: kademlia.ID{1}}
	o.mine = mine{o: o}
	return o
}

// want compares the keys of mine with agents and counts of capabilities.
func (l *ownLog) want(m *mine, agents []string, caps map[string]int64) {
	l.t.Helper()
	want := map[kademlia.ID]int64{m.o.id: 1, hostKey("https://self.example"): 1}
	for _, id := range agents {
		want[kademlia.ID(record.AgentKey(record.AgentID(l.portal.ID, id)))] = 1
	}
	for c, n := range caps {
		for _, k := range record.CapKeys(c) {
			want[kademlia.ID(k)] += n
		}
	}
	got := make(map[kademlia.ID]int64)
	for _, e := range m.keys {
		got[e.key] = e.count
	}
	if !maps.Equal(got, want) || !slices.IsSortedFunc(m.keys, func(a, b entry) int { return bytes.Compare(a.key[:], b.key[:]) }) {
		l.t.Errorf("keys are %v, want %v", got, want)
	}
}

// load loads and returns how many entries were read for it.
func (l *ownLog) load(m *mine) (fresh []entry, read int) {
	l.t.Helper()
	l.read = 0
	fresh, err := m.loadLog(l.t.Context())
	if err != nil {
		l.t.Fatal(err)
	}
	return fresh, l.read
}

func TestMine_ReadsOnlyWhatChanged(t *testing.T) {
	l := &ownLog{t: t, portal: recordtest.NewPortal("self")}
	m := &l.overlay().mine
	for i := range 100 {
		l.add(fmt.Sprintf("a%d", i), "text/answer")
	}
	if fresh, read := l.load(m); len(fresh) != len(m.keys) || read != 100 {
		t.Errorf("%d of %d keys are new, %d entries read", len(fresh), len(m.keys), read)
	}
	l.add("b", "image/draw", "text/answer")
	fresh, read := l.load(m)
	if read != 1 {
		t.Errorf("%d entries read for one change", read)
	}
	// The agent and both keys of its new capability.
	if len(fresh) != 1+len(record.CapKeys("image/draw")) {
		t.Errorf("%d new keys", len(fresh))
	}
	if fresh, read := l.load(m); len(fresh) != 0 || read != 0 {
		t.Errorf("%d new keys, %d entries read without a change", len(fresh), read)
	}
}

func TestMine_FollowsChanges(t *testing.T) {
	l := &ownLog{t: t, portal: recordtest.NewPortal("self")}
	m := &l.overlay().mine
	l.add("a", "text/answer")
	l.add("b", "image/draw", "text/answer")
	l.load(m)
	l.want(m, []string{"a", "b"}, map[string]int64{"text/answer": 2, "image/draw": 1})
	l.add("b", "text/answer")
	l.load(m)
	l.want(m, []string{"a", "b"}, map[string]int64{"text/answer": 2})
	l.remove("a")
	l.load(m)
	l.want(m, []string{"b"}, map[string]int64{"text/answer": 1})
	l.add("a", "image/draw")
	if fresh, _ := l.load(m); len(fresh) != 1+len(record.CapKeys("image/draw")) {
		t.Errorf("%d new keys", len(fresh))
	}
	l.want(m, []string{"a", "b"}, map[string]int64{"text/answer": 1, "image/draw": 1})
	// Tombstones were removed from the log since it was read.
	l.entries = l.entries[1:]
	l.start = l.portal.Seq + 1
	l.add("c", "text/answer")
	l.load(m)
	l.want(m, []string{"a", "c"}, map[string]int64{"text/answer": 1, "image/draw": 1})
	// A new epoch begins an empty log.
	l.portal.Epoch, l.portal.Seq, l.entries, l.start = l.portal.Epoch+1, 0, nil, 0
	l.add("d", "text/answer")
	l.load(m)
	l.want(m, []string{"d"}, map[string]int64{"text/answer": 1})
}
