package replica

import (
	"fmt"
	"testing"
	"time"

	"agentsite/internal/federation"
	"agentsite/internal/record"
	"agentsite/internal/testing/recordtest"
	"agentsite/store/engine"
)

// What a head covers is shown until the next head is whole: also after a
// restart, and unless it is damaged. Then nothing is left of it.
func TestReplica_SetsAsideWhatANewerOneAwaits(t *testing.T) {
	t.Parallel()
	const many = sweepStep + 50
	dir := t.TempDir()
	r := openOwn(t, dir)
	p := recordtest.NewPortal("one")
	take(t, r, p, p.Card())
	all := func() {
		t.Helper()
		g, err := record.NewGate(recordtest.Network, r)
		if err != nil {
			t.Fatal(err)
		}
		var wires [][]byte
		for i := range many {
			wires = append(wires, p.Sign(t, p.Agent(fmt.Sprint("a", i))).Wire)
		}
		results, err := g.AdmitAll(t.Context(), wires, time.UnixMilli(p.Now))
		if err != nil {
			t.Fatal(err)
		}
		for _, res := range results {
			if res.Err != nil || !res.Fresh {
				t.Fatal(res.Err)
			}
		}
	}
	complete := func() {
		t.Helper()
		head := take(t, r, p, p.Head(new(record.Tree)))
		was, err := r.Position(t.Context(), p.ID)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok, err := r.Complete(t.Context(), p.ID, was, head.Version(), federation.Whole{Version: head.Version(), Hash: head.Hash}); err != nil || !ok {
			t.Fatal(ok, err)
		}
	}
	expect := func(covered, aside int) {
		t.Helper()
		n := 0
		if err := r.Covered(t.Context(), p.ID, 0, func([]byte) bool { n++; return true }); err != nil || n != covered {
			t.Errorf("%d are covered, %v; want %d", n, err, covered)
		}
		if err := r.Get(t.Context(), &n, `SELECT COUNT(*) FROM replaced`); err != nil || n != aside {
			t.Errorf("%d are set aside, %v; want %d", n, err, aside)
		}
	}
	all()
	complete()
	expect(many, 0)
	all()
	all()
	expect(many, many)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	r = openOwn(t, dir)
	expect(many, many)
	sound(t, r)
	if err := r.Write(t.Context(), func(t engine.Tx) error {
		_, err := t.Exec(`UPDATE replaced SET wire = ? WHERE n = (SELECT MAX(n) FROM replaced)`, []byte("x"))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if report, err := r.Verify(t.Context()); err != nil || len(report.Mended) != 1 {
		t.Error(report.Mended, err)
	}
	expect(many-1, many-1)
	sound(t, r)
	complete()
	expect(many, many-1-sweepStep)
	if err := r.Sweep(t.Context(), time.UnixMilli(p.Now)); err != nil {
		t.Fatal(err)
	}
	expect(many, 0)
	sound(t, r)
}
