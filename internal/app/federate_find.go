package app

import (
	"context"

	"agentsite/handlers/peer"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/peering"
	"agentsite/peering/translate"
)

// find makes the directory of other portals' agents, which are shown in an
// index. It comes before the hub, which asks it.
func (f *federated) find(shelf peering.Shelf) {
	f.catalog = peering.NewCatalog(peering.CatalogConfig{Self: f.id, Host: f.p.url.Host, Tier: f.tiers.Tier, Network: f.p.set.network, Replica: f.p.replica,
		Registry: f.peers, Shelf: shelf, Translate: translate.Agent, Imports: f.peers.Imports, News: f.peers.Changed, Liveness: f.p.livenessOf, Log: f.p.log})
	f.summaries = peering.NewSummaries(f.p.set.network, f.p.replica, f.p.log)
	f.run = append(f.run, f.catalog.Run, f.summaries.Run)
}

// network is what the hub asks for agents of other portals; nil for a portal
// that keeps to itself. Tests give another.
func (f *federated) network(instead hub.Network) hub.Network {
	if instead != nil {
		return instead
	}
	if f == nil {
		return nil
	}
	return f.answers
}

// search makes what asks other portals for their agents. It comes after follow
// and distribute, by which it takes heads in and finds portals.
func (f *federated) search() {
	f.stranger = &peering.Stranger{Handshake: f.client.Handshake, Registry: f.peers, Wanted: f.peers.Wanted, Report: f.syncer.Report, Catalog: f.catalog}
	f.searcher = peering.NewSearcher(peering.SearcherConfig{Network: f.p.set.network, Caller: f.client, Gate: f.gate, Replica: f.p.replica, Registry: f.peers,
		Catalog: f.catalog, Summaries: f.summaries, Take: f.syncer.Take, Book: f.overlay, Stranger: f.stranger, Log: f.p.log})
	f.seeks = peering.NewSeeker(peering.SeekerConfig{Host: f.p.url.Host, Book: f.overlay, Searcher: f.searcher, Stranger: f.stranger, Log: f.p.log})
	f.answers = peering.NewNetwork(peering.NetworkConfig{Self: f.id, Name: f.p.set.network, Replica: f.p.replica, Registry: f.peers, Catalog: f.catalog, Searcher: f.searcher})
	f.run = append(f.run, f.searcher.Run)
}

// wider asks portals that are not wholly held; nil for a portal that keeps to
// itself.
func (f *federated) wider() hub.Wider {
	if f == nil {
		return nil
	}
	return f.searcher
}

// seeker finds agents of portals that are not known here; nil for a portal that
// keeps to itself.
func (f *federated) seeker() hub.Seeker {
	if f == nil {
		return nil
	}
	return f.seeks
}

// answer finds agents for others. It comes after follow.
func (f *federated) answer() {
	peer.Search(f.door, &peering.Answerer{Self: f.id, Host: f.p.url.Host, Network: f.p.set.network, Replica: f.p.replica, Prove: f.p.publisher.Prove, Tier: f.tiers.Tier, Archive: f.archive,
		Search: func(ctx context.Context, q hub.Query) (hub.Page, error) {
			return f.p.hub.Search(ctx, ident.Actor{Kind: ident.Guest}, q)
		}})
}
