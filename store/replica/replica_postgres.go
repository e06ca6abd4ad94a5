package replica

import (
	"context"
	"errors"
	"fmt"

	"agentsite/store/postgres"
)

// openPostgres is Open for the schema of the replica in a PostgreSQL database.
func openPostgres(ctx context.Context, cfg Config) (*Replica, error) {
	r, err := openSchema(ctx, cfg)
	if err == nil || !postgres.IsUnusable(err) && !errors.Is(err, errForeign) {
		return r, err
	}
	schema := postgres.Replica().Schema
	cfg.Log.Warn("the replica cannot be used: it is moved aside and a new one begun, filled from the other portals",
		"schema", schema, "aside", schema+postgres.AsideSuffix, "reason", err)
	if err := postgres.MoveAside(ctx, cfg.Database, postgres.Replica(), cfg.Log); err != nil {
		return nil, fmt.Errorf("move the replica aside: %w", err)
	}
	return openSchema(ctx, cfg)
}

// openSchema opens or creates the schema and claims it.
func openSchema(ctx context.Context, cfg Config) (*Replica, error) {
	server, err := postgres.Open(ctx, cfg.Database, postgres.Replica(), cfg.Log)
	if err != nil {
		return nil, fmt.Errorf("open the replica: %w", err)
	}
	r := newReplica(server, nil, nil)
	if err := r.claimReplica(ctx, cfg.Own, cfg.Network); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}
