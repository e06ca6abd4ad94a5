package agents

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/store/engine"
)

const (
	// iconHashBytes is the number of bytes of the SHA-256 that name a picture.
	iconHashBytes = 16
	// iconGrace is how long a picture without an agent is kept, because it is stored before its agent.
	iconGrace = 24 * time.Hour
	// iconsLooked is how many pictures each put checks for being unused. It begins after the new hash,
	// which is random, so that all are checked in time.
	iconsLooked = 20
)

func IconHash(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:iconHashBytes])
}

// PutIcon implements hub.Icons: hash is the first half of the SHA-256 in lower-case hexadecimal, another
// one is an Invalid fault. It also deletes some pictures that no version of an agent has used for
// iconGrace.
func (d *Agents) PutIcon(ctx context.Context, hash string, png []byte) error {
	if IconHash(png) != hash {
		return fault.New(fault.Invalid, "The picture is not the one its hash names.")
	}
	now := clock.Now()
	return d.db.Write(ctx, func(t engine.Tx) error {
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

// Icon implements hub.Icons. An unknown hash is a NotFound fault.
func (d *Agents) Icon(ctx context.Context, hash string) ([]byte, error) {
	var b []byte
	err := d.db.Get(ctx, &b, `SELECT data FROM icons WHERE hash = ?`, hash)
	return b, engine.MapError(err)
}
