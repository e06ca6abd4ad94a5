// Package rows holds small pieces that several stores need: names that are
// taken for ever, the log of decisions, NULL for an empty text.
package rows

import (
	"agentsite/internal/fault"
	"agentsite/store/sqlite"
	"database/sql"
	"net/url"
	"strings"
)

// HostOf is the host and port of an address.
func HostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Host
}

// ClipText shortens a text to at most n bytes of whole characters.
func ClipText(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "")
}

// TakeName reserves a name for ever; a Conflict fault when it is taken.
func TakeName(t *sqlite.Tx, name, kind, ref string, at int64) error {
	return sqlite.MapError(t.InsertRows(NameInsert, [][]any{{name, kind, ref, at}}))
}

// NameInsert is the statement of TakeName up to its values.
const NameInsert = `INSERT INTO names (name, kind, ref, created_at) VALUES`

// NullText is NULL for an empty text.
func NullText(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// CheckChanged makes a NotFound fault of a statement that changed nothing.
func CheckChanged(res sql.Result, err error) error {
	if err != nil {
		return err
	}
	if n, err := res.RowsAffected(); err != nil || n > 0 {
		return err
	}
	return fault.New(fault.NotFound, "That is not there any more.")
}
