package replica

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"agentsite/internal/record"
	"agentsite/store/engine"
	"agentsite/store/postgres"
)

// Report is the result of a verification of a replica. Its repairs lose no data, because deleted records
// are fetched again from the other portals.
type Report struct {
	Portals, Records int
	// Mended lists the repairs as sentences for the operator, at most maxMended; More counts further
	// ones.
	Mended []string
	More   int
}

// maxMended bounds the listed repairs of a report.
const maxMended = 100

func (r *Report) mended(format string, args ...any) {
	if len(r.Mended) == maxMended {
		r.More++
		return
	}
	r.Mended = append(r.Mended, fmt.Sprintf(format, args...))
}

// Verify checks and repairs the replica that cfg names while no portal runs on it, see Replica.Verify. It
// may be of any portal and network. Without a replica the report is empty. A file that cannot be opened is
// marked, so that the next start creates a new one.
func Verify(ctx context.Context, cfg Config) (Report, error) {
	if cfg.Database != "" {
		server, err := postgres.Open(ctx, cfg.Database, postgres.Replica(), cfg.Log)
		if err != nil {
			return Report{}, err
		}
		return verifyOwned(ctx, newReplica(server, nil, nil))
	}
	path := filepath.Join(cfg.Dir, FileName)
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return Report{}, nil
	}
	var report Report
	r, err := openFile(ctx, path, nil, cfg.Log)
	if err == nil {
		report, err = verifyOwned(ctx, r)
	}
	if err == nil || ctx.Err() != nil {
		return report, err
	}
	report.mended("The replica of other portals' agents cannot be used (%v): the next start moves it aside and begins a new one.", err)
	return report, os.WriteFile(path+damagedSuffix, nil, 0o600)
}

// verifyOwned verifies a replica of the owner that it names, and closes it. Without an owner it is empty.
func verifyOwned(ctx context.Context, r *Replica) (report Report, err error) {
	var owner struct{ Portal, Network string }
	switch err = r.Get(ctx, &owner, `SELECT portal, network FROM owner WHERE id = 1`); {
	case err == nil:
		r.own, r.network = record.PortalID(owner.Portal), owner.Network
		report, err = r.Verify(ctx)
	case r.File == nil && errors.Is(err, sql.ErrNoRows):
		err = nil
	}
	return report, errors.Join(err, r.Close())
}

// Verify checks that the hash, version, portal and key of every record are those of its row, and that
// the counts are right. It deletes damaged records, which are then fetched again. If one of the portal's
// own is damaged, its own head is deleted too, so that its next start begins a new epoch. The portal may
// run meanwhile; records that arrive may be checked or not.
func (r *Replica) Verify(ctx context.Context) (Report, error) {
	var report Report
	if r.File != nil {
		if found, err := r.File.QuickCheck(ctx); err != nil || len(found) > 0 {
			if ctx.Err() != nil {
				return report, ctx.Err()
			}
			r.File.MarkDamaged()
			report.mended("The file of the replica is damaged (%s%v): the next start moves it aside and begins a new one.",
				strings.Join(found[:min(1, len(found))], ""), errText(err))
			return report, nil
		}
	}
	var portals []struct {
		ID     int64
		Portal record.PortalID
	}
	if err := r.List(ctx, &portals, `SELECT id, portal FROM portals ORDER BY id`); err != nil {
		return report, r.notedError(err)
	}
	for _, p := range portals {
		report.Portals++
		err := r.verifyAgents(ctx, p.ID, p.Portal, &report)
		if err == nil {
			err = r.verifyReplaced(ctx, p.ID, p.Portal, &report)
		}
		if err == nil {
			err = r.verifySaid(ctx, p.ID, p.Portal, &report)
		}
		if err == nil {
			err = r.recountPortal(ctx, p.Portal, &report)
		}
		if err != nil {
			return report, err
		}
	}
	return report, r.verifyWires(ctx, &report)
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// openStored decodes a wire and reports whether it is the record that the other arguments describe, with
// a valid signature.
func openStored(network string, wire []byte, portal record.PortalID, epoch, seq int64, hash []byte,
	signer string) (*record.Record, bool) {
	rec, err := record.Open(network, wire)
	if err != nil || rec.Portal != portal || rec.Epoch != epoch || rec.Seq != seq ||
		string(rec.Hash[:]) != string(hash) || string(rec.Key) != signer {
		return nil, false
	}
	return rec, true
}

func (r *Replica) verifyAgents(ctx context.Context, id int64, portal record.PortalID, report *Report) error {
	after := []byte{}
	for {
		type row struct {
			slotRow
			Signer string
			Wire   []byte
		}
		var rows []row
		err := r.List(ctx, &rows, `SELECT a.akey, a.epoch, a.seq, a.until, a.hash, a.gone, a.size, a.n, a.signer, w.wire
			FROM agents a LEFT JOIN wires w ON w.n = a.n WHERE a.portal = ? AND a.akey > ? ORDER BY a.akey LIMIT ?`, id,
			after, pageRecords)
		if err != nil {
			return r.notedError(err)
		}
		for _, a := range rows {
			after = a.Akey
			if a.N == nil {
				continue
			}
			report.Records++
			rec, ok := openStored(r.network, a.Wire, portal, a.Epoch, a.Seq, a.Hash, a.Signer)
			if ok && rec.Type == record.TypeAgent && rec.Tombstone() == a.Gone && int64(len(a.Wire)) == a.Size {
				if key := agentKey(rec.Slot()); string(key[:]) == string(a.Akey) {
					continue
				}
			}
			// letGo reports a repair only if the record was not replaced since it was read.
			if err := r.letGo(ctx, portal, a.Akey, *a.N, a.Seq, report); err != nil {
				return err
			}
		}
		if len(rows) < pageRecords {
			return nil
		}
	}
}

// letGo deletes a damaged record of an agent and its version, which may be damaged as well. That is
// safe, because the head decides which agents count.
func (r *Replica) letGo(ctx context.Context, portal record.PortalID, key []byte, n, seq int64, report *Report) error {
	var gone int64
	err := r.changePortals(ctx, func(t engine.Tx) error {
		p, found, err := r.findPortal(t, portal)
		if err != nil || !found {
			return err
		}
		if gone, err = voidAgents(t, p, `akey = ? AND n = ? AND seq = ?`, key, n, seq); err != nil || gone == 0 {
			return err
		}
		if portal == r.own {
			if err := voidSaid(t, p, `type = 'head/1'`); err != nil {
				return err
			}
		}
		return deleteAgents(t, p, `akey = ?`, key)
	})
	if gone > 0 {
		report.mended("The record %d of an agent of %s was damaged; it was let go.", seq, portal)
	}
	return err
}

func (r *Replica) verifySaid(ctx context.Context, id int64, portal record.PortalID, report *Report) error {
	var after int64
	for {
		var rows []struct {
			saidRow
			Type, About, Signer string
			Wire                []byte
		}
		err := r.List(ctx, &rows, `SELECT number, type, about, epoch, seq, until, hash, signer, wire FROM said
			WHERE portal = ? AND number > ? AND wire IS NOT NULL ORDER BY number LIMIT ?`, id, after, pageRecords)
		if err != nil {
			return r.notedError(err)
		}
		for _, s := range rows {
			after = s.Number
			report.Records++
			rec, ok := openStored(r.network, s.Wire, portal, s.Epoch, s.Seq, s.Hash, s.Signer)
			if ok && rec.Slot() == (record.Slot{Type: record.Type(s.Type), Portal: portal, About: s.About}) {
				continue
			}
			if err := r.letGoSaid(ctx, portal, s.Number, s.Seq, record.Type(s.Type), report); err != nil {
				return err
			}
		}
		if len(rows) < pageRecords {
			return nil
		}
	}
}

// letGoSaid deletes a damaged record that is no agent's, and its version unless that must be remembered
// for ever.
func (r *Replica) letGoSaid(ctx context.Context, portal record.PortalID, number, seq int64, typ record.Type,
	report *Report) error {
	err := r.changePortals(ctx, func(t engine.Tx) error {
		p, found, err := r.findPortal(t, portal)
		if err != nil || !found {
			return err
		}
		if err := voidSaid(t, p, `number = ?`, number); err != nil {
			return err
		}
		if typ == record.TypeCard {
			p.ring = nil
		}
		p.turn()
		res, err := t.Exec(`DELETE FROM said WHERE number = ? AND until > 0`, number)
		if err != nil {
			return err
		}
		gone, err := res.RowsAffected()
		p.Bytes -= gone * slotBytes
		return err
	})
	if err == nil {
		report.mended("The record %d of type %s of %s was damaged; it was let go.", seq, typ, portal)
	}
	return err
}

// recountPortal counts the rows of a portal and corrects its stored counts, in one transaction.
func (r *Replica) recountPortal(ctx context.Context, portal record.PortalID, report *Report) error {
	wrong := false
	err := r.changePortals(ctx, func(t engine.Tx) error {
		p, found, err := r.findPortal(t, portal)
		if err != nil || !found {
			return err
		}
		var a struct{ Agents, Slots, Bytes int64 }
		var said struct{ Slots, Bytes int64 }
		if err := t.Get(&a, `SELECT COUNT(CASE WHEN n IS NOT NULL AND gone = 0 THEN 1 END) AS agents, COUNT(*) AS slots, COALESCE(SUM(size), 0) AS bytes FROM agents WHERE portal = ?`, p.ID); err != nil {
			return err
		}
		if err := t.Get(&said, `SELECT COUNT(*) AS slots, COALESCE(SUM(length(wire)), 0) AS bytes FROM said WHERE portal = ?`, p.ID); err != nil {
			return err
		}
		bytes := a.Bytes + said.Bytes + slotBytes*(a.Slots+said.Slots)
		if wrong = p.Agents != a.Agents || p.Slots != a.Slots || p.Bytes != bytes; wrong {
			p.Agents, p.Slots, p.Bytes = a.Agents, a.Slots, bytes
			p.turn()
		}
		return nil
	})
	if wrong && err == nil {
		report.mended("What is held of %s was counted wrong; it was counted anew.", portal)
	}
	return err
}

// verifyWires deletes records in wires to which no slot refers.
func (r *Replica) verifyWires(ctx context.Context, report *Report) error {
	const lost = `SELECT n FROM wires EXCEPT SELECT n FROM agents WHERE n IS NOT NULL`
	var there, held int64
	err := r.Write(ctx, func(t engine.Tx) error { // A write, because no other write can come between the two counts.
		return errors.Join(t.Get(&there, `SELECT COUNT(*) FROM wires`),
			t.Get(&held, `SELECT COUNT(*) FROM agents WHERE n IS NOT NULL`))
	})
	if err != nil || there == held {
		return err
	}
	var n int64
	err = r.changePortals(ctx, func(t engine.Tx) error {
		res, err := t.Exec(`DELETE FROM wires WHERE n IN (` + lost + `)`)
		if err != nil {
			return err
		}
		n, err = res.RowsAffected()
		return err
	})
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	if n > 0 && err == nil {
		report.mended("%d records were of no agent; they were let go.", n)
	}
	return err
}
