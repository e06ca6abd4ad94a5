package store

import (
	"context"

	"agentsite/internal/ident"
	"agentsite/internal/quota"
)

// StorageOf returns the bytes that are stored for the actor's account, network or portal.
func (d *DB) StorageOf(ctx context.Context, actor ident.Actor) (quota.Usage, error) {
	return d.Quotas.Used(ctx, actor)
}

// GreatestStorage returns the owners of a kind with the most stored bytes, the greatest first.
func (d *DB) GreatestStorage(ctx context.Context, kind quota.Kind, limit int) ([]quota.Owner, error) {
	return d.Quotas.Greatest(ctx, kind, limit)
}

// FreeDisk returns the free bytes of the disk with the database; ok is false if they are not known, as on
// PostgreSQL.
func (d *DB) FreeDisk() (free int64, ok bool) {
	if d.file == nil {
		return 0, false
	}
	return d.Space.FreeBytes()
}
