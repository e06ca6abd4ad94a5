package record_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"agentsite/internal/record"
	"agentsite/internal/testing/recordtest"
)

// typical returns n agents of the size that FEDERATION.md measured with: three
// skills, 25 words of description, about 1.2 KB as they travel.
func typical(b *testing.B, p *recordtest.Portal, n int) [][]byte {
	wires := make([][]byte, n)
	size := 0
	for i := range wires {
		a := p.Agent(fmt.Sprint("a", i))
		a.Description = strings.Repeat("seven words of what this agent does ", 4)
		for s := range 3 {
			a.Skills = append(a.Skills, record.Skill{ID: fmt.Sprint("s", s), Name: "Translate texts", Description: "From one language to another.", Tags: []string{"text"}})
		}
		wires[i] = p.Sign(b, a).Wire
		size += len(wires[i])
	}
	b.ReportMetric(float64(size/n), "B/record")
	return wires
}

func BenchmarkOpen(b *testing.B) {
	p := recordtest.NewPortal("one")
	wires := typical(b, p, 256)
	b.ResetTimer()
	for i := range b.N {
		if _, err := record.Open(recordtest.Network, wires[i%len(wires)]); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCanonical(b *testing.B) {
	p := recordtest.NewPortal("one")
	r, err := record.Open(recordtest.Network, typical(b, p, 1)[0])
	if err != nil {
		b.Fatal(err)
	}
	pay, _ := b64.DecodeString(string(r.Wire[strings.Index(string(r.Wire), `"p":"`)+5 : strings.Index(string(r.Wire), `","s":"`)]))
	b.SetBytes(int64(len(pay)))
	b.ResetTimer()
	for range b.N {
		if err := record.Canonical(pay); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAdmit(b *testing.B) {
	p := recordtest.NewPortal("one")
	wires := typical(b, p, 4096)
	g, _ := recordtest.Gate(b, p)
	b.ResetTimer()
	for i := range b.N {
		if i%len(wires) == 0 && i > 0 { // all known: a new gate
			b.StopTimer()
			g, _ = recordtest.Gate(b, p)
			b.StartTimer()
		}
		if _, _, err := g.Admit(context.Background(), wires[i%len(wires)], time.UnixMilli(p.Now)); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkAdmitAll is one record's share of a first sync: a million of them
// may take 120 µs each, on two cores, with what indexing costs.
func BenchmarkAdmitAll(b *testing.B) {
	p := recordtest.NewPortal("one")
	wires := typical(b, p, record.MaxBatch)
	b.ResetTimer()
	for done := 0; done < b.N; done += len(wires) {
		b.StopTimer()
		g, _ := recordtest.Gate(b, p)
		b.StartTimer()
		got, err := g.AdmitAll(context.Background(), wires[:min(len(wires), b.N-done)], time.UnixMilli(p.Now))
		if err != nil || got[0].Err != nil {
			b.Fatal(err, got[0].Err)
		}
	}
}
