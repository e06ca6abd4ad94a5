package peering_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"

	"agentsite/handlers/peer"
	"agentsite/internal/clock"
	"agentsite/internal/federation"
	"agentsite/internal/hub"
	"agentsite/internal/record"
	"agentsite/internal/record/recordtest"
	"agentsite/peering"
	"agentsite/peering/translate"
)

// BenchmarkFanOut is a search at one portal, both its sides, signed, with five
// results proved and verified; without the network and the index.
func BenchmarkFanOut(b *testing.B) {
	var n wires
	x, y := newSite(b, &n, "127.0.0.1:1001"), newSite(b, &n, "127.0.0.1:1002")
	y.registry.Say(x.self.ID(), federation.Decision{In: true, Show: true, State: federation.Active, PerSecond: 100_000})
	now := clock.Now().UnixMilli()
	header := func(seq int64) record.Header {
		return record.Header{Portal: y.self.ID(), Epoch: now, Seq: seq, Issued: now, Expires: now + recordtest.Hour}
	}
	var tree record.Tree
	var page hub.Page
	sign := func(body record.Body, into ...*site) {
		r, err := y.self.Sign(body)
		if err != nil {
			b.Fatal(err)
		}
		for _, s := range into {
			if _, _, err := s.gate.Admit(b.Context(), r.Wire, clock.Now()); err != nil {
				b.Fatal(err)
			}
		}
		if a, ok := body.(*record.Agent); ok {
			tree.Set(record.AgentKey(a.AgentID()), r.Hash)
		}
	}
	if _, err := x.client.Hello(b.Context(), y.origin, ""); err != nil {
		b.Fatal(err)
	}
	for i := range int64(1000) {
		id := fmt.Sprintf("a%d", i)
		sign(&record.Agent{Header: header(i + 1), ID: id, Name: id, Title: "Translates words", Description: "For one language and another."}, y)
		if i < 5 {
			page.Results = append(page.Results, hub.Result{Agent: hub.Agent{ID: id}})
		}
	}
	head := &record.Head{Header: header(2000), Count: int64(tree.Len()), Root: tree.Root(), LogStart: 1}
	sign(head, x, y)
	answers := &peering.Answerer{Self: y.self.ID(), Network: recordtest.Network, Replica: y.replica,
		Search: func(context.Context, hub.Query) (hub.Page, error) { return page, nil },
		Prove:  func(_ context.Context, _ record.PortalID, key record.Hash) *record.Proof { return tree.Prove(key) }}
	peer.Search(unlimited{y.door}, answers)
	r := chi.NewRouter()
	r.Use(middleware.ClientIPFromRemoteAddr)
	y.door.Routes(r)
	n.set(federation.HostOf(y.origin), r)
	x.registry.Synced(y.self.ID(), federation.HeadRow{Portal: y.self.ID(), Version: head.Version(), Issued: now, Expires: now + recordtest.Hour, Count: 1000}, 0, true, time.Time{})
	catalog := peering.NewCatalog(peering.CatalogConfig{Self: x.self.ID(), Host: "127.0.0.1:1001", Network: recordtest.Network, Replica: x.replica, Registry: x.registry, Translate: translate.Agent})
	catalog.Attach(hub.New(hub.Ports{}, hub.Config{}))
	catalog.Settle(b.Context())
	s := peering.NewSearcher(peering.SearcherConfig{Network: recordtest.Network, Caller: x.client, Gate: x.gate, Replica: x.replica, Registry: x.registry, Catalog: catalog, Log: slog.New(slog.DiscardHandler)})
	for b.Loop() {
		if list, c := s.Ask(b.Context(), hub.Query{Text: "translates"}); len(list) != 5 || c.Answered != 1 {
			b.Fatal(len(list), c)
		}
	}
}

// unlimited is a door that counts no requests.
type unlimited struct{ *peer.Door }

func (d unlimited) Handle(method, pattern string, h peer.Handler, _ peer.Limits) {
	d.Door.Handle(method, pattern, h, peer.Limits{})
}
