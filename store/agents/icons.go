package agents

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/store/sqlite"
)

const (
	// iconHashBytes is how much of the SHA-256 names a picture.
	iconHashBytes = 16
	// iconGrace is how long a picture may wait for the agent it was made for.
	iconGrace = 24 * time.Hour
	// iconsLooked is how many icons are checked at each put. The start is random like its hash, so that in
	// time all are checked, and unused icons stay a small part.
	iconsLooked = 20
)

func IconHash(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:iconHashBytes])
}

// PutIcon implements hub.Icons: hash is the first half of the SHA-256, in
// lower-case hexadecimal.
// Pictures that no agent has had in any version are forgotten a day after they
// were put last.
func (d *Agents) PutIcon(ctx context.Context, hash string, png []byte) error {
	if IconHash(png) != hash {
		return fault.New(fault.Invalid, "The picture is not the one its hash names.")
	}
	now := clock.Now()
	return d.db.Write(ctx, func(t *sqlite.Tx) error {
		if _, err := t.Exec(`INSERT INTO icons (hash, created_at, data) VALUES (?, ?, ?) ON CONFLICT (hash) DO UPDATE SET created_at = excluded.created_at`,
			hash, clock.Milli(now), png); err != nil {
			return err
		}
		_, err := t.Exec(pruneIcons, hash, iconsLooked, clock.Milli(now.Add(-iconGrace)))
		return err
	})
}

const pruneIcons = `DELETE FROM icons WHERE hash IN (SELECT hash FROM icons WHERE hash > ? ORDER BY hash LIMIT ?) AND created_at < ?
	AND NOT EXISTS (SELECT 1 FROM agent_versions v WHERE v.icon <> '' AND v.icon = icons.hash)`

// Icon implements hub.Icons.
func (d *Agents) Icon(ctx context.Context, hash string) ([]byte, error) {
	var b []byte
	err := d.db.Get(ctx, &b, `SELECT data FROM icons WHERE hash = ?`, hash)
	return b, sqlite.MapError(err)
}
