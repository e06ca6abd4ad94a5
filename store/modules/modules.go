// Package modules stores uploaded WebAssembly modules and the rules of hosting. It implements hosting.Store.
package modules

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"strings"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/hosting"
	"agentsite/internal/ident"
	"agentsite/store/engine"
	"agentsite/store/quotas"
	"agentsite/store/rows"
)

// Modules are the tables modules, module_bytes and hosting.
type Modules struct {
	db    engine.DB
	quota *quotas.Quotas
}

var _ hosting.Store = (*Modules)(nil)

// New returns the store of modules in a database.
func New(db engine.DB, q *quotas.Quotas) *Modules { return &Modules{db, q} }

type row struct {
	AccountID string `db:"account_id"`
	Hash      string `db:"hash"`
	Name      string `db:"name"`
	Size      int64  `db:"size"`
	CreatedAt int64  `db:"created_at"`
	Package   string `db:"package"` // name/version
	Portal    string `db:"portal"`
}

// rowBytes are the bytes that a module counts besides its own, as in the trigger.
const rowBytes = 300

// AllModules implements hosting.Store.
func (d *Modules) AllModules(ctx context.Context) ([]hosting.Module, error) {
	var list []row
	if err := d.db.List(ctx, &list, `SELECT account_id, hash, name, size, created_at, package, portal
		FROM modules ORDER BY account_id, hash`); err != nil {
		return nil, engine.MapError(err)
	}
	out := make([]hosting.Module, len(list))
	for i, r := range list {
		name, version, _ := strings.Cut(r.Package, "/")
		out[i] = hosting.Module{Hash: r.Hash, Name: r.Name, AccountID: r.AccountID, Size: r.Size,
			CreatedAt: clock.FromMilli(r.CreatedAt), Source: hosting.Source{Name: name, Version: version, Portal: r.Portal}}
	}
	return out, nil
}

// PutModule implements hosting.Store.
func (d *Modules) PutModule(ctx context.Context, m hosting.Module, data []byte) error {
	return engine.MapError(d.db.Write(ctx, func(t engine.Tx) error {
		if err := d.quota.CheckRoom(t, string(ident.Person), m.AccountID, m.Size+rowBytes); err != nil {
			return err
		}
		if _, err := t.Exec(`INSERT INTO module_bytes (hash, data) VALUES (?, ?) ON CONFLICT (hash) DO NOTHING`, m.Hash,
			data); err != nil {
			return err
		}
		_, err := t.Exec(`INSERT INTO modules (account_id, hash, name, size, created_at) VALUES (?, ?, ?, ?, ?)`,
			m.AccountID, m.Hash, m.Name, m.Size, clock.Milli(m.CreatedAt))
		return err
	}))
}

// NameSource implements hosting.Store.
func (d *Modules) NameSource(ctx context.Context, accountID, hash string, source hosting.Source) error {
	return engine.MapError(d.db.Write(ctx, func(t engine.Tx) error {
		return rows.CheckChanged(t.Exec(`UPDATE modules SET package = ?, portal = ? WHERE account_id = ? AND hash = ?`,
			source.Name+"/"+source.Version, source.Portal, accountID, hash))
	}))
}

// DeleteModule implements hosting.Store. The settings of an agent hold the hash as a text of its own.
func (d *Modules) DeleteModule(ctx context.Context, accountID, hash string) error {
	return engine.MapError(d.db.Write(ctx, func(t engine.Tx) error {
		var name string
		err := t.Get(&name, `SELECT name FROM agents WHERE owner_id = ? AND kind = 'wasm' AND deleted_at = 0
			AND instr(spec, ?) > 0 LIMIT 1`, accountID, `"`+hash+`"`)
		if err == nil {
			return fault.New(fault.Conflict, "The agent %s uses this program.", name)
		}
		if !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		err = t.Get(&name, `SELECT name FROM packages WHERE account_id = ? AND module = ? AND state NOT IN ('withdrawn', 'killed')
			LIMIT 1`, accountID, hash)
		if err == nil {
			return fault.New(fault.Conflict, "The package %s has this program. Withdraw that version first.", name)
		}
		if !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		return rows.CheckChanged(t.Exec(`DELETE FROM modules WHERE account_id = ? AND hash = ?`, accountID, hash))
	}))
}

// ReadModule implements hosting.Store.
func (d *Modules) ReadModule(ctx context.Context, hash string) ([]byte, error) {
	var b []byte
	err := d.db.Get(ctx, &b, `SELECT data FROM module_bytes WHERE hash = ?`, hash)
	return b, engine.MapError(err)
}

// Rules implements hosting.Store.
func (d *Modules) Rules(ctx context.Context) (r hosting.Rules, ok bool, err error) {
	var text string
	err = d.db.Get(ctx, &text, `SELECT rules FROM hosting WHERE one = 1`)
	if errors.Is(err, sql.ErrNoRows) {
		return r, false, nil
	}
	if err == nil {
		err = json.Unmarshal([]byte(text), &r)
	}
	return r, err == nil, engine.MapError(err)
}

// PutRules implements hosting.Store.
func (d *Modules) PutRules(ctx context.Context, by ident.Actor, r hosting.Rules) error {
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return engine.MapError(d.db.Write(ctx, func(t engine.Tx) error {
		if err := rows.AppendAudit(t, by, "hosting.rules", string(r.Policy), ""); err != nil {
			return err
		}
		_, err := t.Exec(`INSERT INTO hosting (one, rules) VALUES (1, ?)
			ON CONFLICT (one) DO UPDATE SET rules = excluded.rules`,
			string(b))
		return err
	}))
}
