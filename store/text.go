package store

import (
	"agentsite/internal/fault"
	"agentsite/store/sqlite"
	"database/sql"
	"net/url"
	"strings"
)

// hostOf is the host and port of an address.
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Host
}

// clip shortens a text to at most n bytes of whole characters.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "")
}

// takeName reserves a name for ever; a Conflict fault when it is taken.
func takeName(t *sqlite.Tx, name, kind, ref string, at int64) error {
	_, err := t.Exec(nameInsert, name, kind, ref, at)
	return sqlite.MapError(err)
}

const nameInsert = `INSERT INTO names (name, kind, ref, created_at) VALUES (?, ?, ?, ?)`

// nullable is NULL for an empty text.
func nullable(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// gone makes a NotFound fault of a statement that changed nothing.
func gone(res sql.Result, err error) error {
	if err != nil {
		return err
	}
	if n, err := res.RowsAffected(); err != nil || n > 0 {
		return err
	}
	return fault.New(fault.NotFound, "That is not there any more.")
}
