package hub_test

import (
	"fmt"
	"io"
	"log/slog"
	"testing"

	"agentsite/bench/corpus"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/index"
	"agentsite/internal/testing/storetest"
)

// BenchmarkImport is the import of agents as a portal does it, without HTTP:
// checked, stored and findable.
func BenchmarkImport(b *testing.B) {
	db := storetest.New(b)
	keys, err := ident.LoadKeys(storetest.Dir(db))
	if err != nil {
		b.Fatal(err)
	}
	s := hub.New(hub.Ports{Store: db, Index: index.New(), Sealer: keys, Addresses: anyAddress{}}, hub.Config{Portal: "home.example", Kinds: []hub.Kind{hub.Link},
		Log: slog.New(slog.DiscardHandler)})
	boss := storetest.Account(b, db, "boss")
	const batch = 20_000
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		i := 0
		done, err := s.Import(b.Context(), ident.Actor{Kind: ident.Operator, ID: boss.ID, Name: "boss"}, func() (hub.Draft, error) {
			if i == batch {
				return hub.Draft{}, io.EOF
			}
			a := corpus.Agent(n)
			name, kind := fmt.Sprintf("import-%d", n), hub.Link
			i, n = i+1, n+1
			return hub.Draft{Name: &name, Title: &a.Title, Description: &a.Description, Kind: &kind, Skills: &a.Skills}, nil
		})
		if err != nil || done.Agents < batch*9/10 { // some of the made-up skills have one id twice
			b.Fatal(done.Agents, done.Skipped, err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/agent")
}

// anyAddress allows every address.
type anyAddress struct{}

func (anyAddress) CheckURL(string) error { return nil }
