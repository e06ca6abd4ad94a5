package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"errors"

	"agentsite/internal/clock"
	"agentsite/internal/federation"
	"agentsite/internal/ident"
	"agentsite/store/sqlite"
)

// auditRow is a decision in the operators' log.
type auditRow struct {
	ID        int64  `db:"id"`
	ActorKind string `db:"actor_kind"`
	ActorID   string `db:"actor_id"`
	Act       string `db:"act"`
	Subject   string `db:"subject"`
	Why       string `db:"why"`
	CreatedAt int64  `db:"created_at"`
	Hash      []byte `db:"hash"`
}

const auditColumns = `id, actor_kind, actor_id, act, subject, why, created_at, hash`

// chained is the hash of a decision that follows one with the hash before:
// each part with its length, so that no two decisions share one.
func (r *auditRow) chained(before []byte) []byte {
	h := sha256.New()
	part := func(b []byte) {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(b))))
		h.Write(b)
	}
	part(before)
	part(binary.BigEndian.AppendUint64(nil, uint64(r.CreatedAt)))
	for _, s := range []string{r.ActorKind, r.ActorID, r.Act, r.Subject, r.Why} {
		part([]byte(s))
	}
	return h.Sum(nil)
}

// appendAudit notes a decision in the operators' log.
func appendAudit(t *sqlite.Tx, by ident.Actor, act, subject, why string) error {
	r := auditRow{ActorKind: string(by.Kind), ActorID: by.ID, Act: act, Subject: subject, Why: why, CreatedAt: clock.Milli(clock.Now())}
	var last []byte
	if err := t.Get(&last, `SELECT hash FROM audit ORDER BY id DESC LIMIT 1`); err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	_, err := t.Exec(`INSERT INTO audit (actor_kind, actor_id, act, subject, why, created_at, hash) VALUES (?, ?, ?, ?, ?, ?, ?)`,
		r.ActorKind, r.ActorID, r.Act, r.Subject, r.Why, r.CreatedAt, r.chained(last))
	return err
}

// Decisions implements federation.PeerStore.
func (d *Peers) Decisions(ctx context.Context, before int64, limit int) ([]federation.Entry, error) {
	var rows []struct {
		auditRow
		Name sql.NullString `db:"name"`
	}
	err := d.db.List(ctx, &rows, `SELECT audit.id, audit.actor_kind, audit.actor_id, audit.act, audit.subject, audit.why, audit.created_at, accounts.name
		FROM audit LEFT JOIN accounts ON accounts.id = audit.actor_id
		WHERE audit.act >= 'peer' AND audit.act < 'peert' AND (?1 = 0 OR audit.id < ?1) ORDER BY audit.id DESC LIMIT ?2`, before, limit)
	if err != nil {
		return nil, sqlite.MapError(err)
	}
	out := make([]federation.Entry, len(rows))
	for i, r := range rows {
		by := r.Name.String
		if by == "" {
			if by = r.ActorID; r.ActorKind == string(ident.System) {
				by = "command line"
			}
		}
		out[i] = federation.Entry{ID: r.ID, By: by, Act: r.Act, Subject: r.Subject, Why: r.Why, At: clock.FromMilli(r.CreatedAt)}
	}
	return out, nil
}

// decisions checks that every decision of operators follows the one before it.
func (v *verifier) decisions(ctx context.Context) error {
	rows, err := v.c.QueryxContext(ctx, `SELECT `+auditColumns+` FROM audit ORDER BY id`)
	if err != nil {
		return err
	}
	defer rows.Close()
	var before []byte
	for rows.Next() {
		var r auditRow
		if err := rows.StructScan(&r); err != nil {
			return err
		}
		if len(r.Hash) == 0 && len(before) == 0 {
			continue // from before there were hashes
		}
		if !bytes.Equal(r.Hash, r.chained(before)) {
			v.r.fault("The operators' log of decisions was changed at entry %d, or one before it is gone.", r.ID)
			return nil
		}
		before = r.Hash
	}
	return rows.Err()
}
