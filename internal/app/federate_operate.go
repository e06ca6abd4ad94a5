package app

import (
	"context"

	"agentsite/internal/clock"
	"agentsite/internal/federation"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
)

// openPeers makes the service that knows other portals, also for a portal outside any network.
func (p *Portal) openPeers(ctx context.Context, cfg federation.PeersConfig) (err error) {
	cfg.Name, cfg.Agents, cfg.Tell, cfg.Most, cfg.Log = p.name, p.published, p.tellOperators, p.set.MostPeers, p.log
	p.peers, err = federation.NewPeers(ctx, p.db, cfg)
	return err
}

// published counts the agents that others are told of.
func (p *Portal) published() int { return p.hub.Own() }

// tellOperators leaves a notice about another portal with every operator.
func (p *Portal) tellOperators(ctx context.Context, n federation.Notice) {
	operators, err := p.db.Operators(ctx)
	if err != nil {
		p.log.Warn("list operators", "error", err)
		return
	}
	note := hub.Notice{Kind: hub.NoticePeer, Subject: n.Subject, Text: n.Text, Href: n.Href, CreatedAt: clock.Now()}
	for _, id := range operators {
		note.ID, note.AccountID = ident.NewID(), id
		if err := p.db.AddNotice(ctx, note); err != nil {
			p.log.Warn("store a notice", "account", id, "kind", note.Kind, "error", err)
		}
	}
	p.teller.told(note, operators)
}
