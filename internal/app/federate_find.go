package app

import (
	"context"

	"agentsite/handlers/peer"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/peering/answer"
	"agentsite/peering/catalog"
	"agentsite/peering/search"
	"agentsite/peering/translate"
)

// find makes the directory of other portals' agents, which are shown in an
// index. It comes before the hub, which asks it.
func (f *federated) find(shelf catalog.Directory) {
	f.catalog = catalog.New(catalog.Config{Self: f.id, Host: f.p.url.Host, Tier: f.tiers.Tier, Network: f.p.set.network, Replica: f.p.replica,
		Registry: f.peers, Directory: shelf, Translate: translate.Agent, Imports: f.peers.Imports, News: f.peers.Changed, Liveness: f.p.livenessOf, Log: f.p.log})
	f.summaries = catalog.NewSummaries(f.p.set.network, f.p.replica, f.p.log)
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
	f.stranger = &search.Bootstrapper{Handshake: f.client.Handshake, Registry: f.peers, Wanted: f.peers.Wanted, Report: f.syncer.Report, Catalog: f.catalog}
	f.searcher = search.New(search.Config{Network: f.p.set.network, Caller: f.client, Gate: f.gate, Replica: f.p.replica, Registry: f.peers,
		Catalog: f.catalog, Summaries: f.summaries, Take: f.syncer.Take, DHT: f.overlay, Bootstrapper: f.stranger, Log: f.p.log})
	f.seeks = search.NewResolver(search.ResolverConfig{Host: f.p.url.Host, DHT: f.overlay, Searcher: f.searcher, Bootstrapper: f.stranger, Log: f.p.log})
	f.answers = answer.NewNetwork(answer.NetworkConfig{Self: f.id, Name: f.p.set.network, Replica: f.p.replica, Registry: f.peers, Catalog: f.catalog, Searcher: f.searcher})
	f.run = append(f.run, f.searcher.Run)
}

// wider returns the remote search, nil for a portal without a network.
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
	peer.Search(f.door, &answer.Answerer{Self: f.id, Host: f.p.url.Host, Network: f.p.set.network, Replica: f.p.replica, Prove: f.p.publisher.Prove, Tier: f.tiers.Tier, Archive: f.archive,
		Search: func(ctx context.Context, q hub.Query) (hub.Page, error) {
			return f.p.hub.Search(ctx, ident.Actor{Kind: ident.Guest}, q)
		}})
}
