package record_test

import (
	"bytes"
	"context"
	"sync"
	"testing"
	"time"

	"agentsite/internal/fault"
	"agentsite/internal/record"
	"agentsite/internal/record/recordtest"
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
	g, _ := recordtest.Gate(t)
	got, err := g.AdmitAll(t.Context(), batch, time.UnixMilli(p.Now))
	if err != nil {
		t.Fatal(err)
	}
	g1, _ := recordtest.Gate(t)
	for i := range batch {
		why := record.ReasonOf(got[i].Err)
		if got[i].Fresh != fresh[i] || want[i] != "?" && why != want[i] || want[i] == "?" && why == "" || (got[i].Record == nil) != (got[i].Err != nil) {
			t.Errorf("record %d: fresh %v, %q, want %q", i, got[i].Fresh, why, want[i])
		}
		one, alone := admit(t, g1, batch[i], p.Now)
		if one != got[i].Fresh || alone != why {
			t.Errorf("record %d: %v %q in the batch, %v %q alone", i, got[i].Fresh, why, one, alone)
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
