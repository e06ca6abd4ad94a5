// Package rows has functions that several stores share: reserved names, the log of decisions, and
// helpers for values of rows.
package rows

import (
	"agentsite/internal/fault"
	"agentsite/store/engine"
	"database/sql"
	"encoding/json"
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

// NameForm returns the reserved form of a name, under which the name of an erased account or agent is kept.
type NameForm func(name string) (string, error)

// FindReserved returns those of the names that are kept in reserved form.
func FindReserved(t engine.Tx, form NameForm, names ...string) ([]string, error) {
	var found []string
	if form == nil {
		return found, nil
	}
	of, forms := make(map[string]string, len(names)), make([]string, len(names))
	for i, name := range names {
		f, err := form(name)
		if err != nil {
			return nil, err
		}
		of[f], forms[i] = name, f
	}
	in, err := json.Marshal(forms)
	if err != nil {
		return nil, err
	}
	if err := t.List(&found, `SELECT name FROM names WHERE name IN (SELECT value FROM json_each(?))`,
		string(in)); err != nil {
		return nil, err
	}
	for i, f := range found {
		found[i] = of[f]
	}
	return found, nil
}

// TakeName reserves a name for ever, across accounts and agents; a Conflict fault when it is taken, also by one that
// was erased.
func TakeName(t engine.Tx, form NameForm, name, kind, ref string, at int64) error {
	found, err := FindReserved(t, form, name)
	if err != nil {
		return err
	}
	if len(found) > 0 {
		return fault.New(fault.Conflict, "This already exists.")
	}
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
