package federation_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"agentsite/internal/federation"
	"agentsite/internal/record"
)

func TestTiers_FollowTheNetworkWithoutFlapping(t *testing.T) {
	t.Parallel()
	var agents int
	var bytes int64
	var told []string
	var fails error
	var tiers *federation.Tiers
	cfg := federation.TiersConfig{Log: slog.New(slog.DiscardHandler),
		Known:    func(context.Context) (int, int64, error) { return agents, bytes, nil },
		Announce: func(context.Context) error { told = append(told, tiers.Tier()); return fails }}
	tiers = federation.NewTiers(cfg)
	for i, step := range []struct {
		agents int
		bytes  int64
		want   string
		told   int
	}{
		{0, 0, record.TierReplica, 0},
		{1_999_999, 1 << 30, record.TierReplica, 0},
		{2_000_000, 1 << 30, record.TierSummary, 1},
		{1_999_999, 1 << 30, record.TierSummary, 1},
		{1_600_000, 1 << 30, record.TierSummary, 1},
		{1_599_999, 4 << 30, record.TierSummary, 1},
		{1_599_999, 3 << 30, record.TierReplica, 2},
		{1_999_999, 3 << 30, record.TierReplica, 2},
		{10, 4 << 30, record.TierSummary, 3},
	} {
		agents, bytes = step.agents, step.bytes
		changed, was := tiers.Changed(), tiers.Tier()
		if err := tiers.Look(t.Context()); err != nil {
			t.Error(err)
		}
		if tiers.Tier() != step.want || len(told) != step.told {
			t.Errorf("step %d: %s, told %v", i, tiers.Tier(), told)
		}
		select {
		case <-changed:
			if was == step.want {
				t.Errorf("step %d: nothing changed", i)
			}
		default:
			if was != step.want {
				t.Errorf("step %d: nobody is told", i)
			}
		}
	}
	// It is announced until it is.
	agents, bytes, fails = 0, 0, errors.New("no key")
	if err := tiers.Look(t.Context()); !errors.Is(err, fails) || tiers.Tier() != record.TierReplica {
		t.Error(err, tiers.Tier())
	}
	fails = nil
	for range 2 {
		if err := tiers.Look(t.Context()); err != nil || len(told) != 5 {
			t.Error(err, told)
		}
	}
	// A restart goes on with what there was; an operator's word stands.
	agents = 1_700_000
	for was, want := range map[string]string{"": record.TierReplica, record.TierReplica: record.TierReplica, record.TierSummary: record.TierSummary} {
		cfg.Want, cfg.Was = "", was
		if got := federation.NewTiers(cfg); got.Look(t.Context()) != nil || got.Tier() != want {
			t.Errorf("after %q: %s", was, got.Tier())
		}
		cfg.Want = record.TierSummary
		if got := federation.NewTiers(cfg); got.Look(t.Context()) != nil || got.Tier() != record.TierSummary {
			t.Errorf("wanted, after %q: %s", was, got.Tier())
		}
	}
	// Only its operator makes a portal an index, which it stays however much there is.
	agents = 3_000_000
	cfg.Want, cfg.Was = record.TierIndex, record.TierSummary
	if got := federation.NewTiers(cfg); got.Look(t.Context()) != nil || got.Tier() != record.TierIndex {
		t.Errorf("an index: %s", got.Tier())
	}
	agents = 0
	cfg.Want, cfg.Was = "", record.TierIndex
	if got := federation.NewTiers(cfg); got.Look(t.Context()) != nil || got.Tier() != record.TierReplica {
		t.Errorf("no index any more: %s", got.Tier())
	}
}
