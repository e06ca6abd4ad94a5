package record_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"agentsite/internal/fault"
	"agentsite/internal/record"
	"agentsite/internal/testing/recordtest"
)

func TestGate_ManyWaysAtOnceAdmitOnce(t *testing.T) {
	t.Parallel()
	p := recordtest.NewPortal("one")
	g, mem := recordtest.Gate(t, p)
	var wires [][]byte
	for range 4 {
		wires = append(wires, p.Sign(t, p.Agent("x")).Wire)
	}
	var fresh [4]int
	var mu sync.Mutex
	var wg sync.WaitGroup
	for way := range 8 {
		wg.Go(func() {
			for i := range wires {
				i := (i + way) % len(wires)
				_, ok, err := g.Admit(context.Background(), wires[i], time.UnixMilli(p.Now))
				if err != nil && record.ReasonOf(err) != record.Stale && !fault.Is(err, fault.Unavailable) {
					t.Error(err)
				}
				if ok {
					mu.Lock()
					fresh[i]++
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	for i, n := range fresh {
		if n > 1 || i == 3 && n != 1 {
			t.Errorf("record %d was new %d times", i, n)
		}
	}
	if s, _ := mem.Seen(t.Context(), p.Sign(t, p.Agent("x")).Slot()); s.Seq != p.Seq-1 {
		t.Errorf("seq %d stays, want %d", s.Seq, p.Seq-1)
	}
}

func TestAdmitAll_IsAdmitInOrder(t *testing.T) {
	t.Parallel()
	p := recordtest.NewPortal("one")
	card := p.Sign(t, p.Card())
	a1, b1 := p.Sign(t, p.Agent("a")), p.Sign(t, p.Agent("b"))
	a2 := p.Sign(t, p.Agent("a"))
	p.Seq--
	twin := p.Agent("a")
	twin.Title = "A twin"
	a2b := p.Sign(t, twin)
	bad := bytes.Clone(b1.Wire)
	bad[len(bad)/2] ^= 1
	late := p.Sign(t, p.Agent("late"))
	batch := [][]byte{a1.Wire, card.Wire, a1.Wire, []byte("{}"), b1.Wire, a2.Wire, a1.Wire, a2.Wire, bad, a2b.Wire, b1.Wire, late.Wire}
	want := []record.Reason{record.NoPortal, "", "", record.NotEnvelope, "", "", record.Stale, "", "?", record.Equivocation, record.Quarantined, record.Quarantined}
	fresh := []bool{false, true, true, false, true, true, false, false, false, false, false, false}
	bulk, err := record.NewGate(recordtest.Network, recordtest.Bulk{Memory: new(recordtest.Memory)})
	if err != nil {
		t.Fatal(err)
	}
	g, _ := recordtest.Gate(t)
	for name, g := range map[string]*record.Gate{"one by one": g, "in bulk": bulk} {
		got, err := g.AdmitAll(t.Context(), batch, time.UnixMilli(p.Now))
		if err != nil {
			t.Fatal(err)
		}
		g1, _ := recordtest.Gate(t)
		for i := range batch {
			why := record.ReasonOf(got[i].Err)
			if got[i].Fresh != fresh[i] || want[i] != "?" && why != want[i] || want[i] == "?" && why == "" || (got[i].Record == nil) != (got[i].Err != nil) {
				t.Errorf("%s: record %d: fresh %v, %q, want %q", name, i, got[i].Fresh, why, want[i])
			}
			one, alone := admit(t, g1, batch[i], p.Now)
			if one != got[i].Fresh || alone != why {
				t.Errorf("%s: record %d: %v %q in the batch, %v %q alone", name, i, got[i].Fresh, why, one, alone)
			}
		}
	}
	if _, err := g.AdmitAll(t.Context(), make([][]byte, record.MaxBatch+1), time.UnixMilli(p.Now)); err == nil {
		t.Error("a batch without bound was taken")
	}
	if all, err := g.AdmitAll(t.Context(), nil, time.UnixMilli(p.Now)); err != nil || len(all) != 0 {
		t.Error(all, err)
	}
}

func TestAdmitAll_HeadOfANewEpochEndsTheOld(t *testing.T) {
	t.Parallel()
	p := recordtest.NewPortal("one")
	g, _ := recordtest.Gate(t, p)
	old := p.Sign(t, p.Agent("x"))
	p.Epoch++
	var tree record.Tree
	got, err := g.AdmitAll(t.Context(), [][]byte{p.Sign(t, p.Head(&tree)).Wire, old.Wire}, time.UnixMilli(p.Now))
	if err != nil || !got[0].Fresh || record.ReasonOf(got[1].Err) != record.Stale {
		t.Errorf("%v, %v", got, err)
	}
}

// Whatever is in a batch, each of it fares as if it came alone.
func TestAdmitAll_FaresAsOneByOne(t *testing.T) {
	t.Parallel()
	for seed := range uint64(80) {
		rnd := rand.New(rand.NewPCG(seed, 7))
		portals := []*recordtest.Portal{recordtest.NewPortal("one"), recordtest.NewPortal("two"), recordtest.NewPortal("three")}
		var wires [][]byte
		for range 24 {
			p := portals[rnd.IntN(len(portals))]
			switch rnd.IntN(12) {
			case 0, 1:
				p.Op = recordtest.Key(fmt.Sprint("op ", rnd.IntN(2)))
				wires = append(wires, p.Sign(t, p.Card()).Wire)
			case 2, 3:
				wires = append(wires, p.Sign(t, p.Head(new(record.Tree))).Wire)
			case 4:
				p.Seq = max(0, p.Seq-1-rnd.Int64N(2)) // signs a version again
			case 5:
				p.Epoch, p.Seq = p.Epoch+1, 0
			case 6:
				if len(wires) > 0 {
					wires = append(wires, wires[rnd.IntN(len(wires))])
				}
			case 7:
				a, b := p.Sign(t, p.Head(new(record.Tree))), p.Head(new(record.Tree))
				b.Seq, b.Prev = a.Seq, record.Hash{1}
				lower, higher := a, p.Sign(t, b)
				if bytes.Compare(lower.Hash[:], higher.Hash[:]) > 0 {
					lower, higher = higher, lower
				}
				w := portals[rnd.IntN(len(portals))]
				if w != p {
					wires = append(wires, w.Sign(t, &record.Fork{Header: w.Header(day), Subject: p.ID, A: lower.Wire, B: higher.Wire}).Wire)
				}
			default:
				a := p.Agent(fmt.Sprint("a", rnd.IntN(3)))
				a.Title = fmt.Sprint("Title ", rnd.IntN(3))
				wires = append(wires, p.Sign(t, a).Wire)
			}
		}
		alone, one := recordtest.Gate(t)
		plain, two := recordtest.Gate(t)
		three := new(recordtest.Memory)
		bulk, err := record.NewGate(recordtest.Network, recordtest.Bulk{Memory: three})
		if err != nil {
			t.Fatal(err)
		}
		now := time.UnixMilli(portals[0].Now)
		a, errA := plain.AdmitAll(t.Context(), wires, now)
		b, errB := bulk.AdmitAll(t.Context(), wires, now)
		if errA != nil || errB != nil {
			t.Fatal(errA, errB)
		}
		for i, wire := range wires {
			_, fresh, err := alone.Admit(t.Context(), wire, now)
			for name, r := range map[string]record.Result{"one by one": a[i], "in bulk": b[i]} {
				// Of two reasons to refuse it another may be told.
				if r.Fresh != fresh || (r.Err == nil) != (err == nil) {
					t.Fatalf("seed %d, %s, record %d of %d: %v, %v; alone %v, %v", seed, name, i, len(wires), r.Fresh, r.Err, fresh, err)
				}
			}
			if r, err := record.Open(recordtest.Network, wire); err == nil {
				x, _ := one.Held(t.Context(), r.Slot())
				y, _ := two.Held(t.Context(), r.Slot())
				z, _ := three.Held(t.Context(), r.Slot())
				if i == len(wires)-1 && (!bytes.Equal(x, y) || !bytes.Equal(x, z)) {
					t.Fatalf("seed %d: another record stays", seed)
				}
			}
		}
	}
}

// TestAdmitAll_ManyOfOneKey has enough records of a key for their signatures to
// be checked together, and among them some that are not good.
func TestAdmitAll_ManyOfOneKey(t *testing.T) {
	t.Parallel()
	p, q := recordtest.NewPortal("one"), recordtest.NewPortal("two")
	g, _ := recordtest.Gate(t, p, q)
	var wires [][]byte
	want := make(map[int]record.Reason)
	for i := range 3 * 40 {
		from := p
		if i%3 == 2 { // another key, as often
			from = q
		}
		wire := bytes.Clone(from.Sign(t, from.Agent(fmt.Sprint("a", i))).Wire)
		if i%17 == 0 {
			wire = recordtest.Bent(wire)
			want[i] = record.BadSignature
		}
		wires = append(wires, wire)
	}
	// One that another portal's key signed.
	forger := *p
	forger.Op = q.Op
	wires = append(wires, forger.Sign(t, forger.Agent("forged")).Wire)
	want[len(wires)-1] = record.NoKey
	got, err := g.AdmitAll(t.Context(), wires, time.UnixMilli(p.Now))
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range got {
		if why := record.ReasonOf(r.Err); why != want[i] || r.Fresh != (want[i] == "") {
			t.Errorf("record %d: fresh %v, %v, want %q", i, r.Fresh, r.Err, want[i])
		}
	}
}

// A record that this process signed is trusted for its signature alone.
func TestAdmitSigned_AsksAllButTheSignature(t *testing.T) {
	t.Parallel()
	p := recordtest.NewPortal("one")
	g, mem := recordtest.Gate(t, p)
	older := p.Sign(t, p.Agent("a"))
	newer, other := p.Sign(t, p.Agent("a")), p.Sign(t, p.Agent("b"))
	unlisted := *p
	unlisted.Op = recordtest.Key("not on the card")
	strange := unlisted.Sign(t, unlisted.Agent("c"))
	want := []record.Reason{"", "", record.Stale, record.NoKey}
	got, err := g.AdmitSigned(t.Context(), []*record.Record{newer, other, older, strange}, time.UnixMilli(p.Now))
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range got {
		if why := record.ReasonOf(r.Err); why != want[i] || r.Fresh != (why == "") {
			t.Errorf("record %d: fresh %v, %v, want %q", i, r.Fresh, r.Err, want[i])
		}
	}
	if seen, err := mem.Seen(t.Context(), newer.Slot()); err != nil || seen.Hash != newer.Hash {
		t.Errorf("%+v is kept, %v", seen, err)
	}
	if _, err := g.AdmitSigned(t.Context(), []*record.Record{p.Sign(t, p.Card())}, time.UnixMilli(p.Now)); err == nil {
		t.Error("a card was let in without a look at its signature")
	}
	if _, err := g.AdmitSigned(t.Context(), make([]*record.Record, record.MaxBatch+1), time.UnixMilli(p.Now)); err == nil {
		t.Error("a batch without bound was taken")
	}
}
