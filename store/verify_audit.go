package store

import (
	"bytes"
	"context"

	"agentsite/store/rows"
)

// checkDecisions checks the hash chain of the operators' decisions, so that a removed or changed one is
// found.
func (v *verifier) checkDecisions(ctx context.Context) error {
	list, err := v.c.QueryxContext(ctx, `SELECT `+rows.AuditColumns+` FROM audit ORDER BY id`)
	if err != nil {
		return err
	}
	defer list.Close()
	var before []byte
	for list.Next() {
		var r rows.AuditRow
		if err := list.StructScan(&r); err != nil {
			return err
		}
		if len(r.Hash) == 0 && len(before) == 0 {
			continue // The entry is older than the hash chain.
		}
		if !bytes.Equal(r.Hash, r.ChainedHash(before)) {
			v.r.addFault("The operators' log of decisions was changed at entry %d, or one before it is gone.", r.ID)
			return nil
		}
		before = r.Hash
	}
	return list.Err()
}
