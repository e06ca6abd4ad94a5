package store

import (
	"context"
	"math"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/federation/guard"
	"agentsite/store/engine"
)

// KeepNonces implements guard.NonceStore. It also deletes nonces that are no longer needed.
func (d *Peers) KeepNonces(ctx context.Context, list map[[16]byte]time.Time) error {
	over := clock.Milli(clock.Now().Add(-guard.NoncesKept))
	return d.db.Write(ctx, func(t engine.Tx) error {
		if _, err := t.Exec(`DELETE FROM peer_nonces WHERE until <= ?`, over); err != nil {
			return err
		}
		for nonce, until := range list {
			if _, err := t.Exec(`INSERT INTO peer_nonces (nonce, until) VALUES (?, ?) ON CONFLICT (nonce) DO UPDATE SET until = max(peer_nonces.until, excluded.until)`, nonce[:], clock.Milli(until)); err != nil {
				return err
			}
		}
		return nil
	})
}

// running is the row that exists while a portal runs, and remains after a crash. No nonce has this
// value, because nonces are hashes.
var running [16]byte

// LoadNonces implements guard.NonceStore. It marks the portal as running, so that clean is false after a
// crash.
func (d *Peers) LoadNonces(ctx context.Context, yield func(nonce [16]byte, until time.Time)) (clean bool, err error) {
	err = d.db.Write(ctx, func(t engine.Tx) error {
		var n int
		if err := t.Get(&n, `SELECT COUNT(*) FROM peer_nonces WHERE nonce = ?`, running[:]); err != nil {
			return err
		}
		clean = n == 0
		_, err := t.Exec(`INSERT INTO peer_nonces (nonce, until) VALUES (?, ?) ON CONFLICT (nonce) DO NOTHING`,
			running[:], int64(math.MaxInt64))
		return err
	})
	if err != nil {
		return false, err
	}
	rows, err := d.db.Rows(ctx, `SELECT nonce, until FROM peer_nonces WHERE until > ?`,
		clock.Milli(clock.Now().Add(-guard.NoncesKept)))
	if err != nil {
		return false, engine.MapError(err)
	}
	defer rows.Close()
	for rows.Next() {
		var nonce []byte
		var until int64
		if err := rows.Scan(&nonce, &until); err != nil {
			return false, engine.MapError(err)
		}
		if n := [16]byte(nonce); n != running {
			yield(n, clock.FromMilli(until))
		}
	}
	return clean, engine.MapError(rows.Err())
}

// EndNonces implements guard.NonceStore. It removes the mark of a running portal; call it after the last
// KeepNonces.
func (d *Peers) EndNonces(ctx context.Context) error {
	return d.db.Write(ctx, func(t engine.Tx) error {
		_, err := t.Exec(`DELETE FROM peer_nonces WHERE nonce = ?`, running[:])
		return err
	})
}
