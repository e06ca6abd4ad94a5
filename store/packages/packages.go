// Package packages stores the packages of this portal, the modules that its operators stopped, and the kill notices of
// other portals. It implements packages.Store.
package packages

import (
	"context"
	"encoding/json"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/packages"
	"agentsite/store/engine"
	"agentsite/store/rows"
)

// Packages are the tables packages, kills and kill_notices.
type Packages struct{ db engine.DB }

var _ packages.Store = (*Packages)(nil)

// New returns the store of packages in a database.
func New(db engine.DB) *Packages { return &Packages{db} }

type row struct {
	ID        string `db:"id"`
	AccountID string `db:"account_id"`
	Author    string `db:"author"`
	Manifest  string `db:"manifest"`
	Readme    string `db:"readme"`
	Module    string `db:"module"`
	Size      int64  `db:"size"`
	State     string `db:"state"`
	Note      string `db:"note"`
	Downloads int64  `db:"downloads"`
	CreatedAt int64  `db:"created_at"`
	UpdatedAt int64  `db:"updated_at"`
}

// AllPackages implements packages.Store.
func (d *Packages) AllPackages(ctx context.Context) ([]packages.Package, error) {
	var list []row
	if err := d.db.List(ctx, &list, `SELECT id, account_id, author, manifest, readme, module, size, state, note,
		downloads, created_at, updated_at FROM packages ORDER BY id`); err != nil {
		return nil, engine.MapError(err)
	}
	out := make([]packages.Package, len(list))
	for i, r := range list {
		out[i] = packages.Package{ID: r.ID, AccountID: r.AccountID, Author: r.Author, Module: r.Module, Size: r.Size,
			Readme: r.Readme, State: packages.State(r.State), Note: r.Note, Downloads: r.Downloads,
			CreatedAt: clock.FromMilli(r.CreatedAt), UpdatedAt: clock.FromMilli(r.UpdatedAt)}
		if err := json.Unmarshal([]byte(r.Manifest), &out[i].Manifest); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// AddPackage implements packages.Store.
func (d *Packages) AddPackage(ctx context.Context, p packages.Package) error {
	manifest, err := json.Marshal(p.Manifest)
	if err != nil {
		return err
	}
	return engine.MapError(d.db.Write(ctx, func(t engine.Tx) error {
		var taken int
		if err := t.Get(&taken, `SELECT COUNT(*) FROM packages WHERE name = ?1 AND (account_id <> ?2 OR version = ?3)`,
			p.Name, p.AccountID, p.Version); err != nil {
			return err
		}
		if taken > 0 {
			return fault.New(fault.Conflict, "The package %s is of another account, or has this version.", p.Name)
		}
		_, err := t.Exec(`INSERT INTO packages (id, account_id, author, name, version, manifest, readme, module, size,
			state, note, downloads, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?, ?)`, p.ID,
			p.AccountID, p.Author, p.Name, p.Version, string(manifest), p.Readme, p.Module, p.Size, string(p.State), p.Note,
			clock.Milli(p.CreatedAt), clock.Milli(p.UpdatedAt))
		return err
	}))
}

// SetState implements packages.Store.
func (d *Packages) SetState(ctx context.Context, by ident.Actor, p packages.Package) error {
	return engine.MapError(d.db.Write(ctx, func(t engine.Tx) error {
		if err := rows.AppendAudit(t, by, "package."+string(p.State), p.Name+"/"+p.Version, p.Note); err != nil {
			return err
		}
		return rows.CheckChanged(t.Exec(`UPDATE packages SET state = ?, note = ?, updated_at = ? WHERE id = ?`,
			string(p.State), p.Note, clock.Milli(p.UpdatedAt), p.ID))
	}))
}

// CountDownload implements packages.Store.
func (d *Packages) CountDownload(ctx context.Context, id string) error {
	return engine.MapError(d.db.Write(ctx, func(t engine.Tx) error {
		_, err := t.Exec(`UPDATE packages SET downloads = downloads + 1 WHERE id = ?`, id)
		return err
	}))
}

// Kills implements packages.Store.
func (d *Packages) Kills(ctx context.Context) ([]packages.Kill, error) {
	var list []struct {
		Hash      string `db:"hash"`
		Reason    string `db:"reason"`
		CreatedAt int64  `db:"created_at"`
	}
	if err := d.db.List(ctx, &list, `SELECT hash, reason, created_at FROM kills ORDER BY hash`); err != nil {
		return nil, engine.MapError(err)
	}
	out := make([]packages.Kill, len(list))
	for i, r := range list {
		out[i] = packages.Kill{Hash: r.Hash, Reason: r.Reason, CreatedAt: clock.FromMilli(r.CreatedAt)}
	}
	return out, nil
}

// PutKill implements packages.Store.
func (d *Packages) PutKill(ctx context.Context, by ident.Actor, k packages.Kill) error {
	return engine.MapError(d.db.Write(ctx, func(t engine.Tx) error {
		if err := rows.AppendAudit(t, by, "module.kill", k.Hash, k.Reason); err != nil {
			return err
		}
		_, err := t.Exec(`INSERT INTO kills (hash, reason, created_at) VALUES (?, ?, ?)
			ON CONFLICT (hash) DO UPDATE SET reason = excluded.reason, created_at = excluded.created_at`,
			k.Hash, k.Reason, clock.Milli(k.CreatedAt))
		return err
	}))
}

// DeleteKill implements packages.Store.
func (d *Packages) DeleteKill(ctx context.Context, by ident.Actor, hash string) error {
	return engine.MapError(d.db.Write(ctx, func(t engine.Tx) error {
		if err := rows.AppendAudit(t, by, "module.unkill", hash, ""); err != nil {
			return err
		}
		return rows.CheckChanged(t.Exec(`DELETE FROM kills WHERE hash = ?`, hash))
	}))
}

// Notices implements packages.Store.
func (d *Packages) Notices(ctx context.Context) ([]packages.Notice, error) {
	var list []struct {
		PortalID  string `db:"portal_id"`
		Hash      string `db:"hash"`
		Host      string `db:"host"`
		Package   string `db:"package"`
		Reason    string `db:"reason"`
		CreatedAt int64  `db:"created_at"`
	}
	if err := d.db.List(ctx, &list, `SELECT portal_id, hash, host, package, reason, created_at FROM kill_notices
		ORDER BY portal_id, hash`); err != nil {
		return nil, engine.MapError(err)
	}
	out := make([]packages.Notice, len(list))
	for i, r := range list {
		out[i] = packages.Notice{Kill: packages.Kill{Hash: r.Hash, Reason: r.Reason,
			CreatedAt: clock.FromMilli(r.CreatedAt)}, Portal: r.Host, PortalID: r.PortalID, Package: r.Package}
	}
	return out, nil
}

// SaveNotices implements packages.Store.
func (d *Packages) SaveNotices(ctx context.Context, put, removed []packages.Notice) error {
	return engine.MapError(d.db.Write(ctx, func(t engine.Tx) error {
		for _, n := range put {
			if _, err := t.Exec(`INSERT INTO kill_notices (portal_id, hash, host, package, reason, created_at)
				VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (portal_id, hash) DO UPDATE SET host = excluded.host,
				package = excluded.package, reason = excluded.reason, created_at = excluded.created_at`,
				n.PortalID, n.Hash, n.Portal, n.Package, n.Reason, clock.Milli(n.CreatedAt)); err != nil {
				return err
			}
		}
		for _, n := range removed {
			if _, err := t.Exec(`DELETE FROM kill_notices WHERE portal_id = ? AND hash = ?`, n.PortalID,
				n.Hash); err != nil {
				return err
			}
		}
		return nil
	}))
}
