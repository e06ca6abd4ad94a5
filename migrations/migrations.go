// Package migrations embeds the schema's history, one folder per database. Files are append-only: a
// released migration is never edited. Each runs in one transaction at start.
//
// schema holds the result of all of them, which an empty database gets in one step. A test in store
// compares the two; with -update it rewrites schema.
package migrations

import (
	"embed"
	"io/fs"
)

//go:embed sqlite/*.sql replica/*.sql schema/*.sql
var files embed.FS

// SQLite returns the migrations of the embedded database.
func SQLite() fs.FS { return subFolder("sqlite") }

// Replica returns the migrations of the replica, the database of other portals' records.
func Replica() fs.FS { return subFolder("replica") }

// Schema returns the statements that create a database of that name, "sqlite" or "replica", equal to
// the result of its migrations.
func Schema(name string) string {
	b, err := files.ReadFile("schema/" + name + ".sql")
	if err != nil {
		panic(err) // the files are embedded above
	}
	return string(b)
}

func subFolder(name string) fs.FS {
	sub, err := fs.Sub(files, name)
	if err != nil {
		panic(err) // the folders are embedded above
	}
	return sub
}
