package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"agentsite/internal/clock"
	"agentsite/internal/federation"
	"agentsite/store/engine"
	"agentsite/store/rows"
)

// Peers stores the facts and decisions about other portals, and this portal's own cards. It implements
// federation.PeerStore, Nonces and Cards.
type Peers struct{ db engine.DB }

var _ federation.PeerStore = (*Peers)(nil)

func newPeers(db engine.DB) *Peers { return &Peers{db} }

const (
	// maxPeerRows bounds the rows that are read when the portal starts.
	maxPeerRows = 50_000
	// maxPeerChanges is how many changes of state are kept for each portal; older ones are deleted.
	maxPeerChanges = 100
)

// Peers implements federation.PeerStore. The portal reads all facts once at its start.
func (d *Peers) Peers(ctx context.Context) ([]federation.Facts, error) {
	var rows []string
	if err := d.db.List(ctx, &rows, `SELECT facts FROM peers ORDER BY key LIMIT ?`, maxPeerRows); err != nil {
		return nil, engine.MapError(err)
	}
	out := make([]federation.Facts, len(rows))
	for i, s := range rows {
		if err := json.Unmarshal([]byte(s), &out[i]); err != nil {
			return nil, fmt.Errorf("read a portal: %w", err)
		}
	}
	return out, nil
}

// SavePeers implements federation.PeerStore, in one transaction.
func (d *Peers) SavePeers(ctx context.Context, save []federation.Facts, forget []string,
	changes []federation.Change) error {
	return d.db.Write(ctx, func(t engine.Tx) error {
		for _, key := range forget {
			if err := deletePeer(t, key); err != nil {
				return err
			}
		}
		for i := range save {
			if err := savePeer(t, &save[i]); err != nil {
				return err
			}
		}
		for _, c := range changes {
			if _, err := t.Exec(`INSERT INTO peer_changes (peer, state, reason, at) VALUES (?, ?, ?, ?)`, c.Key,
				string(c.State), c.Reason, clock.Milli(c.At)); err != nil {
				return err
			}
			if _, err := t.Exec(`DELETE FROM peer_changes WHERE peer = ?1 AND id <= (SELECT id FROM peer_changes WHERE peer = ?1 ORDER BY id DESC LIMIT 1 OFFSET ?2)`, c.Key, maxPeerChanges); err != nil {
				return err
			}
		}
		return nil
	})
}

func savePeer(t engine.Tx, f *federation.Facts) error {
	b, err := json.Marshal(f)
	if err != nil {
		return err
	}
	_, err = t.Exec(`INSERT INTO peers (key, facts, known_at) VALUES (?, ?, ?) ON CONFLICT (key) DO UPDATE SET facts = excluded.facts`,
		f.Key(), string(b), clock.Milli(f.Known))
	return err
}

func deletePeer(t engine.Tx, key string) error {
	if _, err := t.Exec(`DELETE FROM peers WHERE key = ?`, key); err != nil {
		return err
	}
	_, err := t.Exec(`DELETE FROM peer_changes WHERE peer = ?`, key)
	return err
}

// PeerChanges implements federation.PeerStore. At most maxPeerChanges are stored for each portal.
func (d *Peers) PeerChanges(ctx context.Context, key string, limit int) ([]federation.Change, error) {
	var rows []struct {
		State  string `db:"state"`
		Reason string `db:"reason"`
		At     int64  `db:"at"`
	}
	if err := d.db.List(ctx, &rows, `SELECT state, reason, at FROM peer_changes WHERE peer = ? ORDER BY id DESC LIMIT ?`, key, limit); err != nil {
		return nil, engine.MapError(err)
	}
	out := make([]federation.Change, len(rows))
	for i, r := range rows {
		out[i] = federation.Change{Key: key, State: federation.State(r.State), Reason: r.Reason,
			At: clock.FromMilli(r.At)}
	}
	return out, nil
}

// PeerPolicy implements federation.PeerStore. Fields that a policy of an earlier binary lacks have
// their defaults.
func (d *Peers) PeerPolicy(ctx context.Context) (federation.Policy, bool, error) {
	p := federation.DefaultPolicy()
	var s string
	err := d.db.Get(ctx, &s, `SELECT policy FROM peer_policy WHERE one = 1`)
	if errors.Is(err, sql.ErrNoRows) {
		return p, false, nil
	}
	if err != nil {
		return p, false, engine.MapError(err)
	}
	if err := json.Unmarshal([]byte(s), &p); err != nil {
		return p, false, fmt.Errorf("read the policy: %w", err)
	}
	return p, true, nil
}

// DecidePeers implements federation.PeerStore: the decision, its effects and its log entry are stored in
// one transaction.
func (d *Peers) DecidePeers(ctx context.Context, in federation.Decided) error {
	return d.db.Write(ctx, func(t engine.Tx) error {
		if in.Forget != "" {
			if err := deletePeer(t, in.Forget); err != nil {
				return err
			}
		}
		if in.Save != nil {
			if err := savePeer(t, in.Save); err != nil {
				return err
			}
		}
		if in.Policy != nil {
			b, err := json.Marshal(in.Policy)
			if err != nil {
				return err
			}
			if _, err := t.Exec(`INSERT INTO peer_policy (one, policy) VALUES (1, ?) ON CONFLICT (one) DO UPDATE SET policy = excluded.policy`, string(b)); err != nil {
				return err
			}
		}
		return rows.AppendAudit(t, in.By, in.Act, in.Subject, in.Why)
	})
}
