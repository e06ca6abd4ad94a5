// Package migrations embeds the migrations of the databases, one folder per database. Files are
// only added: a released migration is never edited. Each runs in one transaction when a portal
// starts.
//
// The folder schema holds the result of all migrations, with which an empty database is created in
// one step. A test in store compares the two; with -update it rewrites schema.
package migrations

import (
	"embed"
	"io/fs"
)

//go:embed sqlite/*.sql replica/*.sql schema/*.sql
var files embed.FS

// SQLite returns the migrations of agentsite.db, the portal's main database.
func SQLite() fs.FS { return subFolder("sqlite") }

// Replica returns the migrations of replica.db, which holds verified records of other portals and
// can be deleted at any time.
func Replica() fs.FS { return subFolder("replica") }

// Schema returns the SQL statements that create an empty database, "sqlite" or "replica", in the
// form that its migrations lead to. It panics for another name.
func Schema(name string) string {
	b, err := files.ReadFile("schema/" + name + ".sql")
	if err != nil {
		panic(err) // cannot happen for the two names: their files are embedded
	}
	return string(b)
}

func subFolder(name string) fs.FS {
	sub, err := fs.Sub(files, name)
	if err != nil {
		panic(err) // cannot happen: both folders are embedded
	}
	return sub
}
