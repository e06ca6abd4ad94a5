package sqlite

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"agentsite/migrations"
)

// FileName is the database inside the data folder.
const FileName = "agentsite.db"

// ApplicationID marks our database files: "AGST" in ASCII.
const ApplicationID = 0x41475354

// OpenPortal opens or creates the database in the folder dir, migrates it to this
// binary's schema, and refuses to go on when SQLite runs with other settings
// than those durability needs, or when the file was written by a newer binary.
func OpenPortal(ctx context.Context, dir string, log *slog.Logger) (*DB, error) {
	path := filepath.Join(dir, FileName)
	if err := CheckFile(path); err != nil {
		return nil, err
	}
	RemoveScratch(dir)
	_, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		err = createFile(ctx, dir, log)
	case err == nil:
		err = CheckPortal(ctx, path)
	}
	if err != nil {
		return nil, err
	}
	return Open(ctx, path, portalFile(), log)
}

// createFile makes a database beside its place and puts it there whole: a crash
// leaves no empty file, which the next start would have to refuse.
func createFile(ctx context.Context, dir string, log *slog.Logger) error {
	path := filepath.Join(dir, FileName)
	if nonEmpty(path + "-wal") {
		return fmt.Errorf("%s-wal lies there without its database %s, which was a portal's before. Put the database back, restore a backup into a new folder with `agentsite restore FILE`, or delete that file too to start afresh", path, FileName)
	}
	tmp, err := os.MkdirTemp(dir, ScratchPrefix)
	if err != nil {
		return fmt.Errorf("create database: %w", err)
	}
	defer os.RemoveAll(tmp)
	// Created here so that the file is private from its first byte.
	f, err := os.OpenFile(filepath.Join(tmp, FileName), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("create database: %w", err)
	}
	defer f.Close()
	w, err := openWriter(ctx, f.Name(), portalFile(), log)
	if err != nil {
		return err
	}
	if err := errors.Join(w.closeWriter(), f.Sync()); err != nil {
		return fmt.Errorf("create database: %w", err)
	}
	// Link fails when the name exists: a database is never replaced.
	if err := errors.Join(os.Link(f.Name(), path), SyncDir(dir)); err != nil {
		return fmt.Errorf("create database: %w", err)
	}
	return nil
}

// portalFile describes a portal's database.
func portalFile() Kind {
	return Kind{ID: ApplicationID, Migrations: migrations.SQLite(), Schema: migrations.Schema("sqlite"),
		// Deleted data is overwritten, so that a deleted text is not left in the file.
		WriterOptions: fmt.Sprintf("_time_format=sqlite&_pragma=cache_size(-%d)&_pragma=wal_autocheckpoint(2000)&"+
			"_pragma=secure_delete(1)", writeCacheKB), copied: true}
}

// SchemaVersion is the newest migration this binary knows.
func SchemaVersion() int64 { return portalFile().newestVersion() }
