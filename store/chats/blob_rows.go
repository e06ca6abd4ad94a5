package chats

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/store/engine"
)

// blobRows keeps blobs in the tables blobs and blob_parts of a database on a server. Parts are written and
// read one by one, so that a long file takes little memory and no transaction waits for a slow reader.
type blobRows struct{ db engine.DB }

// partBytes is the size of all parts of a blob but the last.
const partBytes = 256 << 10

// put implements blobStore. A crash leaves parts, which sweep deletes.
func (d blobRows) put(ctx context.Context, r io.Reader, limit int64) (hash string, size int64, head []byte,
	err error) {
	h, first := sha256.New(), &headWriter{}
	in := io.TeeReader(io.LimitReader(CtxReader{Ctx: ctx, In: r}, limit+1), io.MultiWriter(h, first))
	id := blobID(clock.Now(), rand.Text())
	defer func() {
		if err != nil && size > 0 {
			err = errors.Join(err, d.dropParts(context.WithoutCancel(ctx), id))
		}
	}()
	part := make([]byte, partBytes)
	for n := 0; ; n++ {
		read, end, err := fillPart(in, part)
		size += int64(read)
		switch {
		case err != nil:
			err = fmt.Errorf("receive a file: %w", err)
		case size > limit:
			err = fault.New(fault.Invalid, "The file is too large: use at most %s.", sizeText(limit))
		case read > 0:
			err = d.putPart(ctx, id, n, part[:read])
		}
		if err != nil {
			return "", size, nil, err
		}
		if end {
			break
		}
	}
	hash = hex.EncodeToString(h.Sum(nil))
	return hash, size, first.b, d.place(ctx, hash, id, size)
}

// fillPart reads until the part is full or r ends. io.ReadFull would take an upload that was broken off, which
// fails with io.ErrUnexpectedEOF, for one that has ended.
func fillPart(r io.Reader, part []byte) (n int, end bool, err error) {
	for n < len(part) {
		m, err := r.Read(part[n:])
		n += m
		if errors.Is(err, io.EOF) {
			return n, true, nil
		}
		if err != nil {
			return n, false, err
		}
	}
	return n, false, nil
}

func (d blobRows) dropParts(ctx context.Context, id string) error {
	return d.db.Write(ctx, func(t engine.Tx) error {
		_, err := t.Exec(`DELETE FROM blob_parts WHERE blob_id = ? AND NOT EXISTS (SELECT 1 FROM blobs b WHERE b.blob_id = ?)`,
			id, id)
		return err
	})
}

// blobID returns an id that sorts by its time.
func blobID(at time.Time, random string) string {
	return fmt.Sprintf("%013x-%s", clock.Milli(at), random)
}

func (d blobRows) putPart(ctx context.Context, id string, n int, part []byte) error {
	return d.db.Write(ctx, func(t engine.Tx) error {
		_, err := t.Exec(`INSERT INTO blob_parts (blob_id, part, bytes) VALUES (?, ?, ?)`, id, n, part)
		return err
	})
}

// place makes the parts of an upload the blob of a hash, or deletes them if a whole one is there already.
func (d blobRows) place(ctx context.Context, hash, id string, size int64) error {
	now := clock.Milli(clock.Now())
	return d.db.Write(ctx, func(t engine.Tx) error {
		var have string
		if err := t.Get(&have, `INSERT INTO blobs (hash, blob_id, size, touched_at) VALUES (?, ?, ?, ?)
			ON CONFLICT (hash) DO UPDATE SET touched_at = excluded.touched_at RETURNING blob_id`, hash, id, size,
			now); err != nil || have == id {
			return err
		}
		var stored int64
		if err := t.Get(&stored, `SELECT CAST(COALESCE(SUM(octet_length(bytes)), 0) AS BIGINT) FROM blob_parts
			WHERE blob_id = ?`, have); err != nil {
			return err
		}
		needless := id
		if stored != size {
			needless = have
			if _, err := t.Exec(`UPDATE blobs SET blob_id = ?, size = ? WHERE hash = ?`, id, size, hash); err != nil {
				return err
			}
		}
		_, err := t.Exec(`DELETE FROM blob_parts WHERE blob_id = ?`, needless)
		return err
	})
}

func (d blobRows) touch(ctx context.Context, hash string, size int64) error {
	return d.db.Write(ctx, func(t engine.Tx) error {
		res, err := t.Exec(`UPDATE blobs SET touched_at = ? WHERE hash = ? AND size = ?`, clock.Milli(clock.Now()), hash,
			size)
		if err != nil {
			return err
		}
		if n, _ := res.RowsAffected(); n == 0 {
			return errPartial(nil)
		}
		return nil
	})
}

func (d blobRows) open(ctx context.Context, hash string) (io.ReadSeekCloser, error) {
	var b struct {
		ID   string `db:"blob_id"`
		Size int64  `db:"size"`
	}
	err := d.db.Get(ctx, &b, `SELECT blob_id, size FROM blobs WHERE hash = ?`, hash)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, errNoFile()
	}
	if err != nil {
		return nil, engine.MapError(err)
	}
	return &partReader{ctx: ctx, db: d.db, id: b.ID, size: b.Size, number: -1}, nil
}

func (d blobRows) drop(ctx context.Context, hash string, before time.Time) (dropped bool, err error) {
	err = d.db.Write(ctx, func(t engine.Tx) error {
		dropped = false
		var id string
		err := t.Get(&id, `DELETE FROM blobs WHERE hash = ? AND touched_at < ?
			AND NOT EXISTS (SELECT 1 FROM files f WHERE f.hash = blobs.hash) RETURNING blob_id`, hash, clock.Milli(before))
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err == nil {
			_, err = t.Exec(`DELETE FROM blob_parts WHERE blob_id = ?`, id)
		}
		dropped = err == nil
		return err
	})
	return dropped, err
}

// sweepPage bounds the blobs that one statement of a sweep lists.
const sweepPage = 1000

func (d blobRows) sweep(ctx context.Context, before time.Time, drop func(string) (bool, error)) (n int, err error) {
	for after := ""; ; {
		var page []string
		if err := d.db.List(ctx, &page, `SELECT hash FROM blobs WHERE hash > ? AND touched_at < ?
			AND NOT EXISTS (SELECT 1 FROM files f WHERE f.hash = blobs.hash) ORDER BY hash LIMIT ?`, after,
			clock.Milli(before), sweepPage); err != nil {
			return n, engine.MapError(err)
		}
		for _, hash := range page {
			after = hash
			gone, err := drop(hash)
			if err != nil {
				return n, err
			}
			if gone {
				n++
			}
		}
		if len(page) < sweepPage {
			break
		}
	}
	return n, d.db.Write(ctx, func(t engine.Tx) error {
		_, err := t.Exec(`DELETE FROM blob_parts WHERE blob_id < ?
			AND NOT EXISTS (SELECT 1 FROM blobs b WHERE b.blob_id = blob_parts.blob_id)`, blobID(before, ""))
		return err
	})
}

// partReader reads a blob part by part. It keeps one part in memory.
type partReader struct {
	ctx    context.Context
	db     engine.DB
	id     string
	size   int64
	at     int64 // the next byte
	number int64 // of the part in memory, -1 for none
	part   []byte
}

// Read implements io.Reader.
func (r *partReader) Read(b []byte) (int, error) {
	if r.at >= r.size {
		return 0, io.EOF
	}
	if n := r.at / partBytes; n != r.number {
		r.number = -1
		var part []byte
		err := r.db.Get(r.ctx, &part, `SELECT bytes FROM blob_parts WHERE blob_id = ? AND part = ?`, r.id, n)
		if err != nil {
			return 0, fmt.Errorf("read a file: %w", engine.MapError(err))
		}
		if int64(len(part)) != min(partBytes, r.size-n*partBytes) {
			return 0, fmt.Errorf("part %d of a file is damaged", n)
		}
		r.number, r.part = n, part
	}
	n := copy(b, r.part[r.at%partBytes:])
	r.at += int64(n)
	return n, nil
}

// Seek implements io.Seeker.
func (r *partReader) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += r.at
	case io.SeekEnd:
		offset += r.size
	}
	if offset < 0 {
		return 0, errors.New("seek before the begin of a file")
	}
	r.at = offset
	return offset, nil
}

// Close implements io.Closer.
func (r *partReader) Close() error { return nil }
