// Package migrations embeds the schema's history, one folder per database.
// Files are append-only: a released migration is never edited. Each runs in
// one transaction at start.
//
// schema holds the outcome of all of them, which an empty database gets in one
// step. A test in store compares the two; with -update it writes schema anew.
package migrations

import (
	"embed"
	"io/fs"
)

//go:embed sqlite/*.sql replica/*.sql schema/*.sql
var files embed.FS

// SQLite returns the migrations of the embedded database.
func SQLite() fs.FS { return folder("sqlite") }

// Replica returns those of the replica of what other portals signed.
func Replica() fs.FS { return folder("replica") }

// Schema returns the statements that make a database of that name, "sqlite" or
// "replica", as its migrations do.
func Schema(name string) string {
	b, err := files.ReadFile("schema/" + name + ".sql")
	if err != nil {
		panic(err) // the files are embedded above
	}
	return string(b)
}

func folder(name string) fs.FS {
	sub, err := fs.Sub(files, name)
	if err != nil {
		panic(err) // the folders are embedded above
	}
	return sub
}
