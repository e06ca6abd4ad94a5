package app

import (
	"context"

	"agentsite/internal/federation"
	"agentsite/internal/record"
)

// tier chooses the tier. The replica is open by then: this portal's card in it has the last one.
func (f *federated) tier(ctx context.Context) error {
	wire, err := f.p.replica.Card(ctx, f.id)
	if err != nil {
		return err
	}
	was := ""
	if r, err := record.Open(f.p.set.network, wire); err == nil {
		if card, ok := r.Body.(*record.Card); ok {
			was = card.Tier
		}
	}
	f.tiers = federation.NewTiers(federation.TiersConfig{Want: f.p.set.tier, Was: was, Log: f.p.log,
		Known: func(ctx context.Context) (int, int64, error) {
			_, held, err := f.p.replica.Holding(ctx, "")
			if err != nil {
				return 0, 0, err
			}
			agents, bytes := f.peers.Known(held)
			return agents, bytes, nil
		},
		Announce: func(ctx context.Context) error { return f.self.Renew(ctx) }})
	f.run = append(f.run, f.tiers.Run)
	return nil
}

// summing reports whether only summaries are kept of others.
func (f *federated) summing() bool {
	return f.tiers != nil && f.tiers.Tier() == record.TierSummary
}
