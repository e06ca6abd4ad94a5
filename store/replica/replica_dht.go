package replica

import (
	"context"
	"database/sql"

	"agentsite/internal/clock"
	"agentsite/internal/federation"
	"agentsite/internal/record"
	"agentsite/store/engine"
	"agentsite/store/sqlite"
)

var _ federation.DHTStore = (*Replica)(nil)

// DHTNodes implements federation.DHTStore. The replica keeps no other order than that of KeepDHTNodes.
func (r *Replica) DHTNodes(ctx context.Context) (all []federation.DHTNode, err error) {
	err = r.eachRecord(ctx, func(row *sql.Rows) (bool, error) {
		var id, node []byte
		if err := row.Scan(&id, &node); err != nil {
			return false, err
		}
		if len(id) != len(record.Hash{}) {
			return false, sqlite.ErrBadValue
		}
		all = append(all, federation.DHTNode{ID: record.Hash(id), Node: node})
		return true, nil
	}, `SELECT id, node FROM dht_nodes ORDER BY rank`)
	return all, err
}

// KeepDHTNodes implements federation.DHTStore. It replaces all nodes in one transaction.
func (r *Replica) KeepDHTNodes(ctx context.Context, all []federation.DHTNode) error {
	return r.Write(ctx, func(t engine.Tx) error {
		if _, err := t.Exec(`DELETE FROM dht_nodes`); err != nil {
			return err
		}
		for i, n := range all {
			node := n.Node
			if node == nil {
				node = []byte{}
			}
			if _, err := t.Exec(`INSERT INTO dht_nodes (rank, id, node) VALUES (?, ?, ?)`, i, n.ID[:],
				node); err != nil {
				return err
			}
		}
		return nil
	})
}

// pageDHT is the number of values that DHTRecords reads at once, and that KeepDHTRecords writes in one
// transaction.
const pageDHT = 256

// DHTRecords implements federation.DHTStore. It reads in pages, so that a slow yield holds no read
// transaction.
func (r *Replica) DHTRecords(ctx context.Context, yield func(key record.Hash, value []byte) bool) error {
	now := clock.Now().UnixMilli()
	lastKey, lastBy := []byte{}, []byte{}
	for {
		type row struct{ key, by, value []byte }
		var page []row
		err := r.eachRecord(ctx, func(rows *sql.Rows) (bool, error) {
			var x row
			err := rows.Scan(&x.key, &x.by, &x.value)
			if err == nil && len(x.key) != len(record.Hash{}) {
				err = sqlite.ErrBadValue
			}
			page = append(page, x)
			return true, err
		}, `SELECT key, publisher, value FROM dht_records WHERE (key, publisher) > (?, ?) AND expires > ? ORDER BY key, publisher LIMIT ?`, lastKey, lastBy, now, pageDHT)
		if err != nil || len(page) == 0 {
			return err
		}
		for _, x := range page {
			if !yield(record.Hash(x.key), x.value) {
				return nil
			}
			lastKey, lastBy = x.key, x.by
		}
	}
}

// KeepDHTRecords implements federation.DHTStore. An error may leave some records stored.
func (r *Replica) KeepDHTRecords(ctx context.Context, more []federation.DHTRecord) error {
	now := clock.Now().UnixMilli()
	if err := r.Write(ctx, func(t engine.Tx) error {
		_, err := t.Exec(`DELETE FROM dht_records WHERE expires <= ?`, now)
		return err
	}); err != nil {
		return err
	}
	for len(more) > 0 {
		page := more[:min(len(more), pageDHT)]
		more = more[len(page):]
		err := r.Write(ctx, func(t engine.Tx) error {
			for _, k := range page {
				if _, err := t.Exec(`INSERT INTO dht_records (key, publisher, expires, value) VALUES (?, ?, ?, ?)
					ON CONFLICT (key, publisher) DO UPDATE SET expires = excluded.expires, value = excluded.value`, k.Key[:], k.Publisher[:], k.Expires, k.Value); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// ForgetDHT implements federation.DHTStore. publisher is also the id of the node.
func (r *Replica) ForgetDHT(ctx context.Context, publisher record.Hash) error {
	return r.Write(ctx, func(t engine.Tx) error {
		if _, err := t.Exec(`DELETE FROM dht_nodes WHERE id = ?`, publisher[:]); err != nil {
			return err
		}
		_, err := t.Exec(`DELETE FROM dht_records WHERE publisher = ?`, publisher[:])
		return err
	})
}
