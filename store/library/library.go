// Package library stores the libraries of people: paths, versions, words and links. The contents are among the files of
// conversations. It implements library.Store.
package library

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"time"
	"unicode/utf8"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/library"
	"agentsite/store/engine"
	"agentsite/store/quotas"
	"agentsite/store/rows"
)

// Library is the tables of libraries.
type Library struct {
	db    engine.DB
	quota *quotas.Quotas
}

var _ library.Store = (*Library)(nil)

// New returns the store of libraries in a database.
func New(db engine.DB, q *quotas.Quotas) *Library { return &Library{db, q} }

// rowBytes are the bytes that a version counts besides its path, as in the triggers.
const rowBytes = 300

type fileRow struct {
	PersonID  string         `db:"person_id"`
	Path      string         `db:"path"`
	Version   int            `db:"version"`
	Hash      sql.NullString `db:"hash"`
	Size      int64          `db:"size"`
	MediaType string         `db:"media_type"`
	UpdatedAt int64          `db:"updated_at"`
}

func (r fileRow) file() library.File {
	return library.File{PersonID: r.PersonID, Path: r.Path, Version: r.Version, Hash: r.Hash.String, Size: r.Size,
		MediaType: r.MediaType, UpdatedAt: clock.FromMilli(r.UpdatedAt)}
}

type versionRow struct {
	Path           string         `db:"path"`
	Version        int            `db:"version"`
	Hash           sql.NullString `db:"hash"`
	Size           int64          `db:"size"`
	MediaType      string         `db:"media_type"`
	Restores       int            `db:"restores"`
	AgentID        string         `db:"agent_id"`
	Agent          string         `db:"agent"`
	ConversationID string         `db:"conversation_id"`
	TaskID         string         `db:"task_id"`
	CreatedAt      int64          `db:"created_at"`
}

func (r versionRow) version() library.Version {
	return library.Version{Path: r.Path, Number: r.Version, Hash: r.Hash.String, Size: r.Size, MediaType: r.MediaType,
		Restores: r.Restores, By: library.Writer{AgentID: r.AgentID, Agent: r.Agent, ConversationID: r.ConversationID,
			TaskID: r.TaskID}, At: clock.FromMilli(r.CreatedAt)}
}

const (
	fileColumns = `SELECT f.person_id, f.path, f.version, f.hash, f.size, f.media_type, f.updated_at
		FROM library_files f `
	versionColumns = `SELECT v.path, v.version, v.hash, v.size, v.media_type, v.restores, v.agent_id, v.agent,
		v.conversation_id, v.task_id, v.created_at FROM library_versions v `
)

// PutVersion implements library.Store.
func (d *Library) PutVersion(ctx context.Context, w library.Write) (v library.Version, err error) {
	err = d.db.Write(ctx, func(t engine.Tx) error {
		v = w.Version
		var now fileRow
		err := t.Get(&now, fileColumns+`WHERE f.person_id = ? AND f.path = ?`, w.PersonID, v.Path)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		at := now.Version
		if !now.Hash.Valid && w.Expect == 0 {
			at = 0
		}
		if w.Expect != library.AnyVersion && w.Expect != at {
			return fault.New(fault.Conflict, "The newest version of %.200q is %d now, not %d.", v.Path, at, w.Expect)
		}
		if now.Version > 0 && now.Hash.String == v.Hash {
			v.Number = now.Version
			var have versionRow
			err := t.Get(&have, versionColumns+`WHERE v.person_id = ? AND v.path = ? AND v.version = ?`, w.PersonID,
				v.Path, now.Version)
			v = have.version()
			return err
		}
		v.Number = now.Version + 1
		if v.Hash != "" && v.Restores == 0 { // undoing needs no room, so that it always works
			// The words for the search are stored for each file, even if the content is there already.
			add := int64(len(v.Path) + rowBytes + len(w.Text))
			if err := d.quota.CheckRoom(t, string(ident.Person), w.PersonID, add); err != nil {
				return err
			}
		}
		if err := putRows(t, w, v); err != nil {
			return err
		}
		return dropOldest(t, w.PersonID, v)
	})
	return v, engine.MapError(err)
}

// putRows writes the rows of a version.
func putRows(t engine.Tx, w library.Write, v library.Version) error {
	hash, at := sql.NullString{String: v.Hash, Valid: v.Hash != ""}, clock.Milli(v.At)
	if hash.Valid {
		res, err := t.Exec(`UPDATE files SET loose_at = 0 WHERE hash = ?`, v.Hash)
		if err != nil {
			return err
		}
		if n, err := res.RowsAffected(); err != nil || n == 0 {
			return errors.Join(err, fault.New(fault.NotFound, "The content is gone. Send it again."))
		}
	}
	for _, q := range []struct {
		query string
		args  []any
	}{
		{`INSERT INTO library_versions (person_id, path, version, hash, size, media_type, restores, agent_id, agent,
			conversation_id, task_id, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			[]any{w.PersonID, v.Path, v.Number, hash, v.Size, v.MediaType, v.Restores, v.By.AgentID, v.By.Agent,
				v.By.ConversationID, v.By.TaskID, at}},
		{`INSERT INTO library_files (person_id, path, version, hash, size, media_type, updated_at)
			VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (person_id, path) DO UPDATE SET version = excluded.version,
			hash = excluded.hash, size = excluded.size, media_type = excluded.media_type, updated_at = excluded.updated_at`,
			[]any{w.PersonID, v.Path, v.Number, hash, v.Size, v.MediaType, at}},
		{`DELETE FROM library_texts WHERE person_id = ? AND path = ?`, []any{w.PersonID, v.Path}},
	} {
		if _, err := t.Exec(q.query, q.args...); err != nil {
			return err
		}
	}
	if !hash.Valid {
		return nil
	}
	_, err := t.Exec(`INSERT INTO library_texts (person_id, path, text) VALUES (?, ?, ?)`, w.PersonID, v.Path, w.Text)
	return err
}

// dropOldest deletes the versions of a file beyond library.MaxVersions: the oldest that agents wrote, then the person's.
// So no agent can push out the versions of the person.
func dropOldest(t engine.Tx, personID string, v library.Version) error {
	if v.Number <= library.MaxVersions {
		return nil
	}
	var n int
	if err := t.Get(&n, `SELECT COUNT(*) FROM library_versions WHERE person_id = ? AND path = ?`, personID,
		v.Path); err != nil || n <= library.MaxVersions {
		return err
	}
	const these = ` FROM library_versions WHERE person_id = ? AND path = ? AND version IN (SELECT o.version
		FROM library_versions o WHERE o.person_id = ? AND o.path = ? AND o.version < ?
		ORDER BY (o.agent_id = ''), o.version LIMIT ?)`
	args := []any{personID, v.Path, personID, v.Path, v.Number, n - library.MaxVersions}
	var hashes []string
	if err := t.List(&hashes, `SELECT DISTINCT hash`+these+` AND hash IS NOT NULL`, args...); err != nil {
		return err
	}
	if _, err := t.Exec(`DELETE`+these, args...); err != nil {
		return err
	}
	return rows.LoosenFiles(t, hashes, clock.Milli(v.At))
}

// FileAt implements library.Store.
func (d *Library) FileAt(ctx context.Context, personID, path string) (library.File, error) {
	var r fileRow
	err := d.db.Get(ctx, &r, fileColumns+`WHERE f.person_id = ? AND f.path = ?`, personID, path)
	return r.file(), engine.MapError(err)
}

// Files implements library.Store.
func (d *Library) Files(ctx context.Context, personID, prefix, after string, limit int) ([]library.File, error) {
	return d.files(ctx, fileColumns+`WHERE f.person_id = ? AND f.path >= ? AND f.path < ? AND f.path > ?
		AND f.hash IS NOT NULL ORDER BY f.path LIMIT ?`, personID, prefix, prefix+library.AfterAll, after, limit)
}

// FirstFiles implements library.Store. It reads one row of the index for each entry, and none of the other files in its
// folder.
func (d *Library) FirstFiles(ctx context.Context, personID, folder, after string, limit int) ([]library.File, error) {
	return d.files(ctx, `WITH RECURSIVE entries (n, path) AS (
		SELECT 1, (SELECT f.path FROM library_files f WHERE f.person_id = ?1 AND f.path >= ?2 AND f.path < ?3
			AND f.path > ?4 AND f.hash IS NOT NULL ORDER BY f.path LIMIT 1)
		UNION ALL
		SELECT e.n + 1, (SELECT f.path FROM library_files f WHERE f.person_id = ?1 AND f.path < ?3 AND f.path >
			CASE instr(substr(e.path, CAST(?5 AS INTEGER)), '/') WHEN 0 THEN e.path
				ELSE substr(e.path, 1,
					CAST(?5 AS INTEGER) - 1 + instr(substr(e.path, CAST(?5 AS INTEGER)), '/')) || ?6 END
			AND f.hash IS NOT NULL ORDER BY f.path LIMIT 1)
			FROM entries e WHERE e.path IS NOT NULL AND e.n < ?7)
		SELECT f.person_id, f.path, f.version, f.hash, f.size, f.media_type, f.updated_at
		FROM entries e JOIN library_files f ON f.person_id = ?1 AND f.path = e.path ORDER BY f.path`, personID, folder,
		folder+library.AfterAll, after, utf8.RuneCountInString(folder)+1, library.AfterAll, limit)
}

func (d *Library) files(ctx context.Context, query string, args ...any) ([]library.File, error) {
	var list []fileRow
	if err := d.db.List(ctx, &list, query, args...); err != nil {
		return nil, engine.MapError(err)
	}
	out := make([]library.File, len(list))
	for i, r := range list {
		out[i] = r.file()
	}
	return out, nil
}

// FindFiles implements library.Store.
func (d *Library) FindFiles(ctx context.Context, personID string, words []string, limit int) (files []library.File,
	texts []string, err error) {
	query, args := `SELECT f.person_id, f.path, f.version, f.hash, f.size, f.media_type, f.updated_at, t.text
		FROM library_texts t JOIN library_files f ON f.person_id = t.person_id AND f.path = t.path
		WHERE t.person_id = ?`, []any{personID}
	for _, w := range words {
		query += ` AND instr(t.text, ?) > 0`
		args = append(args, w)
	}
	var list []struct {
		fileRow
		Text string `db:"text"`
	}
	if err := d.db.List(ctx, &list, query+` ORDER BY f.updated_at DESC, f.path LIMIT ?`, append(args,
		limit)...); err != nil {
		return nil, nil, engine.MapError(err)
	}
	for _, r := range list {
		files, texts = append(files, r.file()), append(texts, r.Text)
	}
	return files, texts, nil
}

// VersionAt implements library.Store.
func (d *Library) VersionAt(ctx context.Context, personID, path string, number int) (library.Version, error) {
	var r versionRow
	err := d.db.Get(ctx, &r, versionColumns+`WHERE v.person_id = ? AND v.path = ? AND v.version = ?`, personID, path,
		number)
	return r.version(), engine.MapError(err)
}

// Versions implements library.Store.
func (d *Library) Versions(ctx context.Context, personID, path string, before, limit int) ([]library.Version, error) {
	return d.versions(ctx, versionColumns+`WHERE v.person_id = ? AND v.path = ? AND v.version < ?
		ORDER BY v.version DESC LIMIT ?`, personID, path, before, limit)
}

// WrittenBy implements library.Store.
func (d *Library) WrittenBy(ctx context.Context, personID string, taskIDs []string, limit int) ([]library.Written,
	error) {
	args := make([]any, 0, len(taskIDs)+2)
	for _, id := range taskIDs {
		args = append(args, id)
	}
	var list []struct {
		versionRow
		Newest int `db:"newest"`
	}
	if err := d.db.List(ctx, &list, `SELECT v.path, v.version, v.hash, v.size, v.media_type, v.restores, v.agent_id,
		v.agent, v.conversation_id, v.task_id, v.created_at, f.version AS newest FROM library_versions v
		JOIN library_files f ON f.person_id = v.person_id AND f.path = v.path
		WHERE v.task_id IN (?`+strings.Repeat(", ?", len(taskIDs)-1)+`) AND v.task_id <> '' AND v.person_id = ?
		ORDER BY v.created_at DESC, v.path, v.version DESC LIMIT ?`, append(args, personID, limit)...); err != nil {
		return nil, engine.MapError(err)
	}
	out := make([]library.Written, len(list))
	for i, r := range list {
		out[i] = library.Written{Version: r.version(), Newest: r.Newest}
	}
	return out, nil
}

// OwnersOf implements library.Store.
func (d *Library) OwnersOf(ctx context.Context, taskID string) (ids []string, err error) {
	err = d.db.List(ctx, &ids, `SELECT DISTINCT person_id FROM library_versions
		WHERE task_id = ? AND task_id <> '' ORDER BY person_id`, taskID)
	return ids, engine.MapError(err)
}

func (d *Library) versions(ctx context.Context, query string, args ...any) ([]library.Version, error) {
	var list []versionRow
	if err := d.db.List(ctx, &list, query, args...); err != nil {
		return nil, engine.MapError(err)
	}
	out := make([]library.Version, len(list))
	for i, r := range list {
		out[i] = r.version()
	}
	return out, nil
}

type shareRow struct {
	ID        string `db:"id"`
	PersonID  string `db:"person_id"`
	Path      string `db:"path"`
	Version   int    `db:"version"`
	CreatedAt int64  `db:"created_at"`
	ExpiresAt int64  `db:"expires_at"`
}

func (r shareRow) share() library.Share {
	return library.Share{ID: r.ID, PersonID: r.PersonID, Path: r.Path, Version: r.Version,
		CreatedAt: clock.FromMilli(r.CreatedAt), ExpiresAt: clock.FromMilli(r.ExpiresAt)}
}

const shareColumns = `SELECT s.id, s.person_id, s.path, s.version, s.created_at, s.expires_at FROM library_shares s `

// PutShare implements library.Store. It deletes the person's links that have expired.
func (d *Library) PutShare(ctx context.Context, s library.Share, secretHash string) error {
	return engine.MapError(d.db.Write(ctx, func(t engine.Tx) error {
		var n int
		if err := t.Get(&n, `SELECT COUNT(*) FROM library_shares WHERE person_id = ? AND expires_at > ?`, s.PersonID,
			clock.Milli(s.CreatedAt)); err != nil {
			return err
		}
		if n >= library.MaxShares {
			return fault.New(fault.Conflict, "You have %d links. Revoke one that you do not need.", n)
		}
		if _, err := t.Exec(`DELETE FROM library_shares WHERE person_id = ? AND expires_at <= ?`, s.PersonID,
			clock.Milli(s.CreatedAt)); err != nil {
			return err
		}
		_, err := t.Exec(`INSERT INTO library_shares (id, person_id, path, version, secret, created_at, expires_at)
			VALUES (?, ?, ?, ?, ?, ?, ?)`, s.ID, s.PersonID, s.Path, s.Version, secretHash, clock.Milli(s.CreatedAt),
			clock.Milli(s.ExpiresAt))
		return err
	}))
}

// Shares implements library.Store.
func (d *Library) Shares(ctx context.Context, personID, path string, now time.Time) ([]library.Share, error) {
	query, args := shareColumns+`WHERE person_id = ? AND expires_at > ?`, []any{personID, clock.Milli(now)}
	if path != "" {
		query, args = query+` AND path = ?`, append(args, path)
	}
	var list []shareRow
	if err := d.db.List(ctx, &list, query+` ORDER BY id DESC`, args...); err != nil {
		return nil, engine.MapError(err)
	}
	out := make([]library.Share, len(list))
	for i, r := range list {
		out[i] = r.share()
	}
	return out, nil
}

// ShareBySecret implements library.Store. It does not find the links of a disabled account.
func (d *Library) ShareBySecret(ctx context.Context, secretHash string) (library.Share, error) {
	var r shareRow
	err := d.db.Get(ctx, &r, shareColumns+`JOIN accounts a ON a.id = s.person_id
		WHERE s.secret = ? AND a.disabled_at = 0`, secretHash)
	return r.share(), engine.MapError(err)
}

// DeleteShare implements library.Store.
func (d *Library) DeleteShare(ctx context.Context, personID, id string) error {
	return engine.MapError(d.db.Write(ctx, func(t engine.Tx) error {
		res, err := t.Exec(`DELETE FROM library_shares WHERE person_id = ? AND id = ?`, personID, id)
		if err != nil {
			return err
		}
		if n, err := res.RowsAffected(); err != nil || n == 0 {
			return errors.Join(err, fault.New(fault.NotFound, "There is no link with the id %.80q.", id))
		}
		return nil
	}))
}

// CountAll implements library.Store.
func (d *Library) CountAll(ctx context.Context, personID string) (files, versions int, err error) {
	var n struct {
		Files    int `db:"files"`
		Versions int `db:"versions"`
	}
	err = d.db.Get(ctx, &n, `SELECT
		(SELECT COUNT(*) FROM library_files WHERE person_id = ?1 AND hash IS NOT NULL) AS files,
		(SELECT COUNT(*) FROM library_versions WHERE person_id = ?1) AS versions`, personID)
	return n.Files, n.Versions, engine.MapError(err)
}

// DropFiles implements library.Store.
func (d *Library) DropFiles(ctx context.Context, personID, after string, limit int) (last string, versions int,
	err error) {
	err = d.db.Write(ctx, func(t engine.Tx) error {
		last, versions = "", 0
		var paths, hashes []string
		if err := t.List(&paths, `SELECT path FROM library_files WHERE person_id = ? AND path > ? ORDER BY path LIMIT ?`,
			personID, after, limit); err != nil || len(paths) == 0 {
			return err
		}
		last = paths[len(paths)-1]
		const these = ` WHERE person_id = ? AND path > ? AND path <= ?`
		if err := t.List(&hashes, `SELECT DISTINCT hash FROM library_versions`+these+` AND hash IS NOT NULL`, personID,
			after, last); err != nil {
			return err
		}
		for _, table := range []string{"library_shares", "library_texts", "library_files", "library_versions"} {
			res, err := t.Exec(`DELETE FROM `+table+these, personID, after, last)
			if err != nil {
				return err
			}
			n, err := res.RowsAffected()
			if err != nil {
				return err
			}
			versions = int(n) // of the last table
		}
		return rows.LoosenFiles(t, hashes, clock.Milli(clock.Now()))
	})
	return last, versions, engine.MapError(err)
}
