// Package rows has functions that several stores share: reserved names, the log of decisions, and
// helpers for values of rows.
package rows

import (
	"agentsite/internal/fault"
	"agentsite/store/engine"
	"database/sql"
	"net/url"
	"strings"
)

// HostOf returns the host and port of an address, "" if it is none.
func HostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Host
}

// ClipText cuts a text to at most n bytes at a character boundary.
func ClipText(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "")
}

// TakeName reserves a name for ever, across accounts and agents; a Conflict fault when it is taken.
func TakeName(t engine.Tx, name, kind, ref string, at int64) error {
	return engine.MapError(t.InsertRows(NameInsert, [][]any{{name, kind, ref, at}}))
}

// NameInsert is the statement of TakeName up to VALUES, for inserts of many names.
const NameInsert = `INSERT INTO names (name, kind, ref, created_at) VALUES`

// NullText returns nil, which is stored as NULL, for an empty text.
func NullText(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// CheckChanged returns the error of a statement, or a NotFound fault if it changed no row.
func CheckChanged(res sql.Result, err error) error {
	if err != nil {
		return err
	}
	if n, err := res.RowsAffected(); err != nil || n > 0 {
		return err
	}
	return fault.New(fault.NotFound, "That is not there any more.")
}
