package chats

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"sync"
	"time"

	"agentsite/internal/chat"
	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/store/engine"
	"agentsite/store/quotas"
	"agentsite/store/rows"
	"agentsite/store/space"
)

// Files stores the files of messages: rows in the database, and their contents in a folder beside it or in
// the database. It implements chat.Files.
type Files struct {
	db     engine.DB
	quotas *quotas.Quotas
	blobs  blobStore
	// Keep is read-locked by a backup, which needs every blob that its copy of the database names;
	// deletions try to lock it.
	Keep sync.RWMutex
}

var _ chat.Files = (*Files)(nil)

// NewFiles returns the files of a portal, with their contents in the data folder dir.
func NewFiles(db engine.DB, dir string, quotas *quotas.Quotas, disk *space.Space) *Files {
	return &Files{db: db, quotas: quotas, blobs: &blobFolder{db: db, dir: dir, disk: disk}}
}

// NewFilesInRows returns the files of a portal, with their contents in rows of the database.
func NewFilesInRows(db engine.DB, quotas *quotas.Quotas) *Files {
	return &Files{db: db, quotas: quotas, blobs: blobRows{db}}
}

type fileRow struct {
	Hash      string `db:"hash"`
	Size      int64  `db:"size"`
	MediaType string `db:"media_type"`
	CreatedAt int64  `db:"created_at"`
}

func (r fileRow) file() chat.File {
	return chat.File{Hash: r.Hash, Size: r.Size, MediaType: r.MediaType, CreatedAt: clock.FromMilli(r.CreatedAt)}
}

func errNoFile() error { return fault.New(fault.NotFound, "There is no such file.") }

const (
	fileQuery = `SELECT f.hash, f.size, f.media_type, f.created_at FROM files f WHERE f.hash = ?1`
	// mayRead limits a query on files f to those that a member (kind ?2, id ?3) sent, or that a message
	// holds which the member may see.
	mayRead = ` AND (EXISTS (SELECT 1 FROM uploads o WHERE o.owner_kind = ?2 AND o.owner_id = ?3 AND o.hash = f.hash)
		OR EXISTS (SELECT 1 FROM file_uses u JOIN members m ON m.conversation_id = u.conversation_id AND m.kind = ?2 AND m.member_id = ?3
			AND m.left_at = 0 AND m.from_seq < u.seq WHERE u.hash = f.hash))`
)

// PutFile implements chat.Files. A file that the owner sent before does not count again for the quota.
func (d *Files) PutFile(ctx context.Context, f chat.File, ownerKind, ownerID string, quota int64) error {
	// Touch the blob first, so that a sweep does not delete it before the row exists.
	if err := d.blobs.touch(ctx, f.Hash, f.Size); err != nil {
		return err
	}
	now := clock.Milli(clock.Now())
	return d.db.Write(ctx, func(t engine.Tx) error {
		var sent bool
		if err := t.Get(&sent, `SELECT EXISTS (SELECT 1 FROM uploads WHERE owner_kind = ? AND owner_id = ? AND hash = ?)`, ownerKind, ownerID, f.Hash); err != nil {
			return err
		}
		if !sent {
			var taken int64
			if err := t.Get(&taken, `SELECT COALESCE(SUM(f.size), 0) FROM uploads o JOIN files f ON f.hash = o.hash WHERE o.owner_kind = ? AND o.owner_id = ?`, ownerKind, ownerID); err != nil {
				return err
			}
			if taken+f.Size > quota {
				return fault.New(fault.RateLimited,
					"Your files would take more than the %d MiB you have here. Remove messages with files you do not need; what no message holds is deleted after a day.", quota>>20)
			}
			if err := d.quotas.CheckRoom(t, ownerKind, ownerID, f.Size+quotas.RowBytes); err != nil {
				return err
			}
		}
		if _, err := t.Exec(`INSERT INTO files (hash, size, media_type, created_at, loose_at) VALUES (?, ?, ?, ?, ?)
			ON CONFLICT (hash) DO UPDATE SET loose_at = excluded.loose_at WHERE files.loose_at > 0`, f.Hash, f.Size,
			f.MediaType, clock.Milli(f.CreatedAt), now); err != nil {
			return err
		}
		_, err := t.Exec(`INSERT INTO uploads (owner_kind, owner_id, hash, created_at) VALUES (?, ?, ?, ?)
			ON CONFLICT (owner_kind, owner_id, hash) DO UPDATE SET created_at = excluded.created_at`, ownerKind,
			ownerID, f.Hash, now)
		return err
	})
}

// FileFor implements chat.Files. Files of messages before the member joined are a NotFound fault.
func (d *Files) FileFor(ctx context.Context, hash, memberKind, memberID string) (chat.File, error) {
	var r fileRow
	if err := d.db.Get(ctx, &r, fileQuery+mayRead, hash, memberKind, memberID); err != nil {
		return chat.File{}, engine.MapError(err)
	}
	return r.file(), nil
}

// SharedFile implements chat.Files. It is for links, so it checks no member.
func (d *Files) SharedFile(ctx context.Context, hash, conversationID string, from, upTo int64) (chat.File, error) {
	var r fileRow
	if err := d.db.Get(ctx, &r, fileQuery+` AND EXISTS (SELECT 1 FROM file_uses u WHERE u.hash = f.hash AND u.conversation_id = ?2 AND u.seq > ?3 AND u.seq <= ?4)`,
		hash, conversationID, from, upTo); err != nil {
		return chat.File{}, engine.MapError(err)
	}
	return r.file(), nil
}

// useFiles records that the message holds the files. by must have sent them or be able to read them,
// else it returns a NotFound fault. by nil stands for an agent; this portal stored its files itself;
// files that are gone are left out then.
func useFiles(t engine.Tx, hashes []string, conversationID string, seq int64, by *chat.Sender) error {
	hashes = slices.Compact(slices.Sorted(slices.Values(hashes)))
	for _, hash := range hashes {
		var r fileRow
		var err error
		if by == nil {
			err = t.Get(&r, fileQuery, hash)
		} else {
			err = t.Get(&r, fileQuery+mayRead, hash, memberKind(by.Kind), by.ID)
		}
		if errors.Is(err, sql.ErrNoRows) {
			if by == nil {
				continue
			}
			return errNoFile()
		}
		if err != nil {
			return err
		}
		if _, err := t.Exec(`INSERT INTO file_uses (hash, conversation_id, seq) VALUES (?, ?, ?) ON CONFLICT DO NOTHING`, hash, conversationID, seq); err != nil {
			return err
		}
		if _, err := t.Exec(`UPDATE files SET loose_at = 0 WHERE hash = ? AND loose_at > 0`, hash); err != nil {
			return err
		}
	}
	return nil
}

// dropFileUses removes the references of one message to its files, or with seq 0 those of all messages
// of the conversation. at is the time from which an unused file waits for its deletion.
func dropFileUses(t engine.Tx, conversationID string, seq, at int64) error {
	from, to := seq, seq
	if seq == 0 {
		to = 1<<63 - 1
	}
	var hashes []string
	if err := t.List(&hashes, `SELECT DISTINCT hash FROM file_uses WHERE conversation_id = ? AND seq BETWEEN ? AND ?`,
		conversationID, from, to); err != nil || len(hashes) == 0 {
		return err
	}
	if _, err := t.Exec(`DELETE FROM file_uses WHERE conversation_id = ? AND seq BETWEEN ? AND ?`, conversationID, from,
		to); err != nil {
		return err
	}
	return rows.LoosenFiles(t, hashes, at)
}

// looseQuery finds files that nothing has held, and no member has sent again, since a time.
const looseQuery = `SELECT hash FROM files WHERE loose_at > 0 AND loose_at < ? AND ` + rows.Unheld + `
	ORDER BY loose_at LIMIT ?`

// orphanQuery finds files that no message holds and no member has sent.
const orphanQuery = `SELECT hash FROM files WHERE loose_at > 0 AND ` + rows.Unheld + `
	AND NOT EXISTS (SELECT 1 FROM uploads o WHERE o.hash = files.hash) ORDER BY hash LIMIT ?`

// DropOrphans deletes the files that belong to no member any more, as after the erasure of an account. Their blobs are
// deleted if they were last touched before a time, so that an upload of the same content keeps its blob. While a
// backup is made they stay until SweepBlobs deletes them.
func (d *Files) DropOrphans(ctx context.Context, before time.Time) error {
	for {
		n, err := d.dropFiles(ctx, before, orphanQuery, orphanPage)
		if err != nil || n < orphanPage {
			return err
		}
	}
}

// orphanPage is the number of files that DropOrphans deletes in one transaction.
const orphanPage = 100

// DropFiles implements chat.Files. It also deletes their blobs, unless a backup is being made; then
// SweepBlobs deletes them later.
func (d *Files) DropFiles(ctx context.Context, before time.Time, limit int) (int, error) {
	return d.dropFiles(ctx, before, looseQuery, clock.Milli(before), limit)
}

// dropFiles deletes the files that a query finds, and their blobs if they were last touched before a time.
func (d *Files) dropFiles(ctx context.Context, before time.Time, query string, args ...any) (int, error) {
	var hashes []string
	err := d.db.Write(ctx, func(t engine.Tx) error {
		hashes = nil
		if err := t.List(&hashes, query, args...); err != nil {
			return err
		}
		for _, hash := range hashes {
			if _, err := t.Exec(`DELETE FROM uploads WHERE hash = ?`, hash); err != nil {
				return err
			}
			if _, err := t.Exec(`DELETE FROM files WHERE hash = ?`, hash); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	for _, hash := range hashes {
		if _, err := d.dropBlob(ctx, hash, before); err != nil {
			return len(hashes), err
		}
	}
	return len(hashes), nil
}
