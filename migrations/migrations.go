// Package migrations embeds the schema's history, one folder per database.
// Files are append-only: a released migration is never edited. Each runs in
// one transaction at start.
package migrations

import (
	"embed"
	"io/fs"
)

//go:embed sqlite/*.sql
var files embed.FS

// SQLite returns the migrations of the embedded database.
func SQLite() fs.FS {
	sub, err := fs.Sub(files, "sqlite")
	if err != nil {
		panic(err) // the folder is embedded above
	}
	return sub
}
