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

// FileName is the name of the portal's database in the data folder.
const FileName = "agentsite.db"

// ApplicationID marks portals' databases in the file header: "AGST" in ASCII.
const ApplicationID = 0x41475354

// OpenPortal opens or creates the portal's database in the folder dir and migrates it. It returns an
// error if SQLite runs without the settings that durability needs, or if a newer binary wrote the file.
func OpenPortal(ctx context.Context, dir string, reserve Reserve, log *slog.Logger) (*DB, error) {
	path := filepath.Join(dir, FileName)
	if err := CheckFile(path); err != nil {
		return nil, err
	}
	RemoveScratch(dir)
	// A restore into a new folder unpacks beside it, keys included.
	folder, err := filepath.EvalSymlinks(dir)
	if err == nil {
		folder, err = filepath.Abs(folder)
	}
	if err == nil {
		RemoveAbandoned(filepath.Dir(folder))
	}
	k := portalFile()
	k.Reserve = reserve
	_, err = os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		err = createFile(ctx, dir, log)
	case err == nil:
		if err = CheckPortal(ctx, path); err != nil {
			break
		}
		if err := prepareCompaction(ctx, path, k); err != nil {
			// The portal runs without it, for example on a full disk; a damaged file is found below.
			log.Warn("the database is not made smaller when data is deleted", "error", err)
		}
	}
	if err != nil {
		return nil, err
	}
	return Open(ctx, path, k, log)
}

// createFile creates the database in a temporary folder and links the finished file to its place, so
// that a crash leaves no empty file, which the next start would refuse.
func createFile(ctx context.Context, dir string, log *slog.Logger) error {
	path := filepath.Join(dir, FileName)
	if nonEmpty(path + "-wal") {
		return fmt.Errorf("%s-wal lies there without its database %s, which was a portal's before. Put the database back, restore a backup into a new folder with `agentsite restore FILE`, or delete that file too to start afresh", path, FileName)
	}
	tmp, err := MakeScratch(dir)
	if err != nil {
		return fmt.Errorf("create database: %w", err)
	}
	defer tmp.Remove()
	// Create the file here, because SQLite would create it readable by others.
	f, err := os.OpenFile(filepath.Join(tmp.Path, FileName), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("create database: %w", err)
	}
	defer f.Close()
	if err := setIncremental(ctx, f.Name(), portalFile()); err != nil {
		return err
	}
	w, err := openWriter(ctx, f.Name(), portalFile(), log)
	if err != nil {
		return err
	}
	if err := errors.Join(w.closeWriter(), f.Sync()); err != nil {
		return fmt.Errorf("create database: %w", err)
	}
	// Link fails if the name exists, so that no database is replaced.
	if err := errors.Join(os.Link(f.Name(), path), SyncDir(dir)); err != nil {
		return fmt.Errorf("create database: %w", err)
	}
	return nil
}

// portalFile returns the Kind of the portal's database.
func portalFile() Kind {
	return Kind{ID: ApplicationID, Migrations: migrations.SQLite(), Schema: migrations.Schema("sqlite"),
		// secure_delete overwrites deleted data, so that a deleted text is not left in the file.
		WriterOptions: fmt.Sprintf("_time_format=sqlite&_pragma=cache_size(-%d)&_pragma=wal_autocheckpoint(2000)&"+
			"_pragma=secure_delete(1)", writeCacheKB), copied: true}
}

// SchemaVersion returns the version of the newest migration of the portal's database in this binary.
func SchemaVersion() int64 { return portalFile().newestVersion() }
