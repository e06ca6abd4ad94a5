// Package migrations embeds the schema's history, one folder per database.
// Files are append-only: a released migration is never edited. Each runs in
// one transaction at start.
package migrations

import (
	"embed"
	"io/fs"
)

//go:embed sqlite/*.sql replica/*.sql
var files embed.FS

// SQLite returns the migrations of the embedded database.
func SQLite() fs.FS { return folder("sqlite") }

// Replica returns those of the replica of what other portals signed.
func Replica() fs.FS { return folder("replica") }

func folder(name string) fs.FS {
	sub, err := fs.Sub(files, name)
	if err != nil {
		panic(err) // the folders are embedded above
	}
	return sub
}
