package rows

import (
	"agentsite/internal/clock"
	"agentsite/internal/ident"
	"agentsite/store/engine"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"errors"
)

// AuditRow is a decision in the operators' log, with the hash that chains it to the previous one.
type AuditRow struct {
	ID        int64  `db:"id"`
	ActorKind string `db:"actor_kind"`
	ActorID   string `db:"actor_id"`
	Act       string `db:"act"`
	Subject   string `db:"subject"`
	Why       string `db:"why"`
	CreatedAt int64  `db:"created_at"`
	Hash      []byte `db:"hash"`
}

const AuditColumns = `id, actor_kind, actor_id, act, subject, why, created_at, hash`

// ChainedHash returns the hash of a decision that follows one with the hash before, nil for the first.
// Each field is hashed with its length, so that no two decisions have the same input.
func (r *AuditRow) ChainedHash(before []byte) []byte {
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

// AppendAudit adds a decision of by to the operators' log, in the transaction that carries it out.
// Entries are never changed.
func AppendAudit(t engine.Tx, by ident.Actor, act, subject, why string) error {
	r := AuditRow{ActorKind: string(by.Kind), ActorID: by.ID, Act: act, Subject: subject, Why: why,
		CreatedAt: clock.Milli(clock.Now())}
	var last []byte
	if err := t.Get(&last, `SELECT hash FROM audit ORDER BY id DESC LIMIT 1`); err != nil &&
		!errors.Is(err, sql.ErrNoRows) {
		return err
	}
	_, err := t.Exec(`INSERT INTO audit (actor_kind, actor_id, act, subject, why, created_at, hash) VALUES (?, ?, ?, ?, ?, ?, ?)`,
		r.ActorKind, r.ActorID, r.Act, r.Subject, r.Why, r.CreatedAt, r.ChainedHash(last))
	return err
}
