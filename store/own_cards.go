package store

import (
	"context"
	"database/sql"
	"errors"

	"agentsite/internal/record"
	"agentsite/store/engine"
)

// keptCards is how many of the portal's own cards are kept for each network; older ones are deleted.
const keptCards = 16

// LastCard implements federation.Cards. It returns zero values when the portal signed no card for the
// network.
func (d *Peers) LastCard(ctx context.Context, network string) (record.Version, []byte, error) {
	var r struct {
		Epoch int64  `db:"epoch"`
		Seq   int64  `db:"seq"`
		Wire  []byte `db:"wire"`
	}
	err := d.db.Get(ctx, &r, `SELECT epoch, seq, wire FROM own_cards WHERE network = ? ORDER BY epoch DESC, seq DESC LIMIT 1`, network)
	if errors.Is(err, sql.ErrNoRows) {
		return record.Version{}, nil, nil
	}
	return record.Version{Epoch: r.Epoch, Seq: r.Seq}, r.Wire, engine.MapError(err)
}

// KeepCard implements federation.Cards. A version that is stored already is a Conflict fault, so that no
// version is signed twice.
func (d *Peers) KeepCard(ctx context.Context, network string, v record.Version, wire []byte) error {
	return d.db.Write(ctx, func(t engine.Tx) error {
		if _, err := t.Exec(`INSERT INTO own_cards (network, epoch, seq, wire) VALUES (?, ?, ?, ?)`, network, v.Epoch,
			v.Seq, wire); err != nil {
			return err
		}
		_, err := t.Exec(`
			DELETE FROM own_cards WHERE network = ?1 AND (epoch, seq) NOT IN
			  (SELECT epoch, seq FROM own_cards WHERE network = ?1 ORDER BY epoch DESC, seq DESC LIMIT ?2)`, network,
			keptCards)
		return err
	})
}
