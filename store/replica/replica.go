// Package replica stores the records that portals signed, apart from the portal's own data: in the file
// replica.db on SQLite, and in a schema of its own on PostgreSQL.
// Everything in it can be fetched again from the other portals, except the versions of dropped records
// and the proofs of conflicts.
package replica

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"

	"agentsite/internal/federation"
	"agentsite/internal/record"
	"agentsite/store/engine"
	"agentsite/store/space"
	"agentsite/store/sqlite"
)

// maxKnown bounds the portals with a cached state, at about 1 KiB each.
const maxKnown = 16 << 10

// Engine is a database engine of a replica.
type Engine interface {
	engine.DB
	// Fatal returns a channel that is closed when an error has stopped all writing; Err returns that
	// error.
	Fatal() <-chan struct{}
	Err() error
	// CheckSettings returns an error unless the database runs with the settings that durability needs.
	CheckSettings(ctx context.Context) error
	// QuickCheck returns messages about damage; none means that no damage was found.
	QuickCheck(ctx context.Context) ([]string, error)
	// Name returns the name of the database for messages.
	Name() string
}

// Config names the place of a replica and its owner.
type Config struct {
	// Dir is the data folder, which holds the replica if Database is "".
	Dir string
	// Database is the URL of a PostgreSQL database, postgres://…; "" for SQLite.
	Database string
	Own      record.PortalID
	Network  string
	// Disk is the disk of Dir. While it is nearly full, records are not kept there. It may be nil.
	Disk *space.Space
	Log  *slog.Logger
}

// Replica keeps the signed records of portals in a database of its own. It implements
// federation.Replica. It is safe for concurrent use; its opener closes it, which waits for queued
// writes.
type Replica struct {
	Engine
	// File is the Engine if it is SQLite, nil on PostgreSQL. It must not be changed.
	File    *sqlite.DB
	own     record.PortalID
	network string
	// known caches the state of portals by their id; it equals the state on disk.
	known *engine.Cache[known]
	open  openPortals
	disk  *space.Space // nil watches nothing, as on PostgreSQL
}

var _ federation.Replica = (*Replica)(nil)

// known is the cached state of a portal: its row id and its standing.
type known struct {
	id       int64
	standing record.Standing
	// fresh is true while the portal has no row in agents, so that earlier versions need no lookup.
	fresh bool
}

// Open opens or creates the replica of a portal and a network. A replica that is damaged, was written by a
// newer binary, or belongs to another portal or network is logged and moved aside, and a new one created,
// because its records can be fetched again. A folder or database that cannot be written is an error, and so
// is a replica that cannot be opened for the moment, for example without a descriptor or connection.
func Open(ctx context.Context, cfg Config) (*Replica, error) {
	if cfg.Database != "" {
		return openPostgres(ctx, cfg)
	}
	return openSQLite(ctx, cfg)
}

// newReplica returns the replica on an engine. file is the engine if it is SQLite, otherwise nil.
func newReplica(e Engine, file *sqlite.DB, disk *space.Space) *Replica {
	return &Replica{Engine: e, File: file, disk: disk, known: engine.NewCache[known](maxKnown),
		open: openPortals{make(map[record.PortalID]*portalRow)}}
}

// errForeign is the error for a replica of another portal or network.
var errForeign = errors.New("it belongs to")

// claimReplica binds a new replica to a portal and a network. It returns an error for a replica that
// belongs to others.
func (r *Replica) claimReplica(ctx context.Context, own record.PortalID, network string) error {
	var owner struct{ Portal, Network string }
	switch err := r.Get(ctx, &owner, `SELECT portal, network FROM owner WHERE id = 1`); {
	case errors.Is(err, sql.ErrNoRows):
		err := r.Write(ctx, func(t engine.Tx) error {
			_, err := t.Exec(`INSERT INTO owner (id, portal, network) VALUES (1, ?, ?)`, own, network)
			return err
		})
		if err != nil {
			return err
		}
	case err != nil:
		return err
	case owner.Portal != string(own):
		return fmt.Errorf("%w the portal %s", errForeign, owner.Portal)
	case owner.Network != network:
		return fmt.Errorf("%w the network %s", errForeign, owner.Network)
	}
	r.own, r.network = own, network
	return startNumbers(ctx, r.Engine)
}

// lookUpPortal returns the cached or stored state of a portal; false when the replica has none.
func (r *Replica) lookUpPortal(ctx context.Context, id record.PortalID) (known, bool, error) {
	k, generation, ok := r.known.Get(string(id))
	if ok {
		return k, true, nil
	}
	var row struct {
		portalRow
		Card []byte
	}
	err := r.Get(ctx, &row, `SELECT `+portalColumns+
		`, (SELECT wire FROM said WHERE portal = portals.id AND type = 'portal/1' AND about = '') AS card FROM portals WHERE portal = ?`, id)
	if errors.Is(err, sql.ErrNoRows) {
		return known{}, false, nil // Do not cache unknown portals, because a request can name any.
	}
	if err != nil {
		return known{}, false, r.notedError(err)
	}
	k = known{id: row.ID, standing: row.standing(ringOf(r.network, row.Card)), fresh: row.Slots == 0}
	r.known.Put(string(id), k, generation)
	return k, true, nil
}

// ringOf returns the keys in a stored card, nil without one. A damaged card counts as none until Verify
// has deleted it and it was fetched again.
func ringOf(network string, card []byte) *record.Ring {
	if card == nil {
		return nil
	}
	if c, err := record.Open(network, card); err == nil {
		if body, ok := c.Body.(*record.Card); ok {
			return body.Ring()
		}
	}
	return nil
}

// notedError maps the error of a read to a fault. If the error is damage of the file, it also makes the
// next start create a new replica.
func (r *Replica) notedError(err error) error {
	if err != nil && r.File != nil && sqlite.IsDamaged(err) {
		r.File.NoteError(err)
	}
	return engine.MapError(err)
}

// Standing implements record.Memory. It is cached, because a Gate asks for it for each record.
func (r *Replica) Standing(ctx context.Context, portal record.PortalID) (record.Standing, error) {
	k, _, err := r.lookUpPortal(ctx, portal)
	return k.standing, err
}
