package store

import (
	"bytes"
	"context"
)

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
