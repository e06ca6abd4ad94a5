// Package migrations embeds the migrations of the databases, one folder per database. Files are
// only added: a released migration is never edited. All that a database lacks run in one transaction
// when a portal starts, so that none may contain BEGIN, COMMIT, VACUUM or a PRAGMA that a transaction
// ignores, such as foreign_keys.
//
// The folder schema holds the result of all migrations, with which an empty database is created in
// one step. A test in store/sqlite compares the two; with -update it rewrites schema.
package migrations

import (
	"embed"
	"io/fs"
)

//go:embed sqlite/*.sql replica/*.sql postgres/*.sql postgres_replica/*.sql schema/*.sql
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

// Postgres returns the migrations of the portal's database on PostgreSQL. The first creates the tables of
// SQLite's migrations up to its number.
func Postgres() fs.FS { return subFolder("postgres") }

// PostgresReplica returns the migrations of the replica on PostgreSQL, as Postgres does.
func PostgresReplica() fs.FS { return subFolder("postgres_replica") }
