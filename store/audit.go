package store

import (
	"context"
	"database/sql"

	"agentsite/internal/clock"
	"agentsite/internal/federation"
	"agentsite/internal/ident"
	"agentsite/store/engine"
	"agentsite/store/rows"
)

// Decisions implements federation.PeerStore. It reads only entries about the federation from the
// operators' log, newest first.
func (d *Peers) Decisions(ctx context.Context, before int64, limit int) ([]federation.Entry, error) {
	var rows []struct {
		rows.AuditRow
		Name sql.NullString `db:"name"`
	}
	err := d.db.List(ctx, &rows, `SELECT audit.id, audit.actor_kind, audit.actor_id, audit.act, audit.subject, audit.why, audit.created_at, accounts.name
		FROM audit LEFT JOIN accounts ON accounts.id = audit.actor_id
		WHERE audit.act >= 'peer' AND audit.act < 'peert' AND (?1 = 0 OR audit.id < ?1) ORDER BY audit.id DESC LIMIT ?2`, before, limit)
	if err != nil {
		return nil, engine.MapError(err)
	}
	out := make([]federation.Entry, len(rows))
	for i, r := range rows {
		by := r.Name.String
		if by == "" {
			if by = r.ActorID; r.ActorKind == string(ident.System) {
				by = "command line"
			}
		}
		out[i] = federation.Entry{ID: r.ID, By: by, Act: r.Act, Subject: r.Subject, Why: r.Why,
			At: clock.FromMilli(r.CreatedAt)}
	}
	return out, nil
}
