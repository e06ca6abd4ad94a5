// Package profiles stores the look of accounts.
package profiles

import (
	"context"
	"strings"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/profile"
	"agentsite/store/engine"
)

// Profiles implements profile.Store.
type Profiles struct{ db engine.DB }

var _ profile.Store = (*Profiles)(nil)

// New returns Profiles on a database.
func New(db engine.DB) *Profiles { return &Profiles{db} }

// profileQuery reads a profile without its picture. An erased account has no password hash.
const profileQuery = `SELECT a.id, a.name, COALESCE(p.display_name, '') AS display_name, COALESCE(p.shown, 0) AS shown,
	COALESCE(p.theme, '') AS theme, COALESCE(p.muted, '') AS muted, COALESCE(p.picture_hash, '') AS picture
	FROM accounts a LEFT JOIN profiles p ON p.account_id = a.id WHERE a.password_hash <> '' AND a.disabled_at = 0 AND `

// Profile implements profile.Store.
func (d *Profiles) Profile(ctx context.Context, id, name string) (profile.Profile, error) {
	var r struct {
		ID          string `db:"id"`
		Name        string `db:"name"`
		DisplayName string `db:"display_name"`
		Shown       int    `db:"shown"`
		Theme       string `db:"theme"`
		Muted       string `db:"muted"`
		Picture     string `db:"picture"`
	}
	where, arg := `a.id = ?`, id
	if id == "" {
		where, arg = `a.name = ?`, name
	}
	if err := d.db.Get(ctx, &r, profileQuery+where, arg); err != nil {
		return profile.Profile{}, engine.MapError(err)
	}
	return profile.Profile{AccountID: r.ID, Name: r.Name, DisplayName: r.DisplayName, Shown: r.Shown == 1, Theme: r.Theme,
		Muted: strings.Fields(r.Muted), Picture: r.Picture}, nil
}

// SaveProfile implements profile.Store.
func (d *Profiles) SaveProfile(ctx context.Context, p profile.Profile, at time.Time) error {
	shown := 0
	if p.Shown {
		shown = 1
	}
	return d.db.Write(ctx, func(t engine.Tx) error {
		_, err := t.Exec(`INSERT INTO profiles (account_id, display_name, shown, theme, muted, updated_at)
			VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (account_id) DO UPDATE SET display_name = excluded.display_name,
			shown = excluded.shown, theme = excluded.theme, muted = excluded.muted, updated_at = excluded.updated_at`,
			p.AccountID, p.DisplayName, shown, p.Theme, strings.Join(p.Muted, " "), clock.Milli(at))
		return err
	})
}

// SavePicture implements profile.Store.
func (d *Profiles) SavePicture(ctx context.Context, accountID, hash string, png []byte, at time.Time) error {
	return d.db.Write(ctx, func(t engine.Tx) error {
		_, err := t.Exec(`INSERT INTO profiles (account_id, picture_hash, picture, updated_at) VALUES (?, ?, ?, ?)
			ON CONFLICT (account_id) DO UPDATE SET picture_hash = excluded.picture_hash, picture = excluded.picture,
			updated_at = excluded.updated_at`, accountID, hash, png, clock.Milli(at))
		return err
	})
}

// Picture implements profile.Store.
func (d *Profiles) Picture(ctx context.Context, accountID string) ([]byte, error) {
	var png []byte
	err := d.db.Get(ctx, &png, `SELECT picture FROM profiles WHERE account_id = ? AND picture IS NOT NULL`, accountID)
	if err = engine.MapError(err); err == nil && len(png) == 0 {
		err = fault.New(fault.NotFound, "There is no picture.")
	}
	return png, err
}

// agentsQuery lists the public agents of an account, the oldest first.
const agentsQuery = `SELECT name FROM agents WHERE owner_id = ? AND visibility = 'public' AND deleted_at = 0
	AND status IN ('active', 'deprecated') ORDER BY id LIMIT ?`

// PublicAgents implements profile.Store.
func (d *Profiles) PublicAgents(ctx context.Context, accountID string, limit int) (names []string, err error) {
	err = d.db.List(ctx, &names, agentsQuery, accountID, limit)
	return names, engine.MapError(err)
}

// packagesQuery lists the packages of an account that can be fetched, the oldest first.
const packagesQuery = `SELECT name FROM packages WHERE account_id = ? AND state IN ('published', 'deprecated')
	ORDER BY id LIMIT ?`

// PublicPackages implements profile.Store.
func (d *Profiles) PublicPackages(ctx context.Context, accountID string, limit int) ([]string, error) {
	var versions []string
	err := d.db.List(ctx, &versions, packagesQuery, accountID, limit)
	var names []string
	seen := make(map[string]bool)
	for _, n := range versions {
		if !seen[n] {
			names, seen[n] = append(names, n), true
		}
	}
	return names, engine.MapError(err)
}
