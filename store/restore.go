package store

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"filippo.io/age"

	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/store/chats"
	"agentsite/store/postgres"
	"agentsite/store/replica"
	"agentsite/store/sqlite"
)

// ageIntro begins every file that age encrypted.
const ageIntro = "age-encryption.org/v1\n"

// VerifyBackup reads a backup to its end and makes all checks of a restore. The error wraps ErrDamaged
// if any bit differs from the written backup. It unpacks to a temporary folder of the system, which it
// removes, with those that killed verifications left.
func VerifyBackup(ctx context.Context, r io.Reader, passphrase string) (Report, error) {
	sqlite.RemoveAbandoned(os.TempDir())
	tmp, err := sqlite.MakeScratch(os.TempDir())
	if err != nil {
		return Report{}, fmt.Errorf("make room to unpack: %w", err)
	}
	defer tmp.Remove()
	return extractBackup(ctx, r, tmp.Path, passphrase)
}

// Restore unpacks a backup into dir, which must be missing or empty, after it has checked the whole
// backup: dir gets all files or none. The next start of the portal migrates an older schema.
func Restore(ctx context.Context, r io.Reader, dir, passphrase string) (Report, error) {
	return RestoreInto(ctx, r, dir, passphrase, "", slog.New(slog.DiscardHandler))
}

// RestoreInto is Restore for a portal with its database on a server: the database at the URL must hold no
// portal. With "" it is a file in dir.
func RestoreInto(ctx context.Context, r io.Reader, dir, passphrase, database string, log *slog.Logger) (Report, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return Report{}, err
	}
	if folder, err := filepath.EvalSymlinks(dir); err == nil {
		dir = folder // A link to a folder on another disk stays; the data goes to that disk.
	}
	exists, err := checkEmpty(dir)
	if err != nil {
		return Report{}, err
	}
	// Unpack beside dir, so that one rename makes all files appear. A folder that cannot be replaced,
	// such as a mounted volume, is filled file by file.
	parent, inside := filepath.Dir(dir), false
	if !exists {
		if err := os.MkdirAll(parent, 0o700); err != nil {
			return Report{}, fmt.Errorf("make the data folder: %w", err)
		}
	} else if inside = !isReplaceable(dir); inside {
		parent = dir
	}
	sqlite.RemoveAbandoned(parent)
	scratch, err := sqlite.MakeScratch(parent)
	if err != nil {
		return Report{}, fmt.Errorf("make room to unpack: %w", err)
	}
	defer scratch.Remove()
	tmp := scratch.Path
	report, err := extractBackup(ctx, r, tmp, passphrase)
	if err != nil {
		return report, err
	}
	finish := func() error { return nil }
	if database != "" {
		if finish, err = loadServer(ctx, tmp, database, log); err != nil {
			return report, fmt.Errorf("fill the database: %w", err)
		}
	}
	if err := sqlite.SyncDir(tmp); err != nil {
		return report, err
	}
	if inside {
		err = moveInto(tmp, dir)
	} else {
		if exists {
			err = os.Remove(dir) // Remove fails if the folder is no longer empty.
		}
		if err == nil {
			err = os.Rename(tmp, dir)
		}
	}
	if err != nil {
		return report, fmt.Errorf("put the restored files in place: %w", err)
	}
	if err := sqlite.SyncDir(parent); err != nil {
		return report, err
	}
	return report, finish()
}

// loadServer copies the databases in the folder dir to a server and removes the files. A portal starts on the
// copy after finish was called.
func loadServer(ctx context.Context, dir, url string, log *slog.Logger) (finish func() error, err error) {
	m := Move{Keys: ident.KeyFiles{Dir: dir}, To: url, Step: func(string) {}, Log: log}
	file, err := sqlite.OpenPortal(ctx, dir, nil, log)
	if err != nil {
		return nil, err
	}
	source := moveMark{ID: ident.NewID()}
	server, _, err := m.openTarget(ctx, source)
	if err == nil {
		_, err = m.fillServer(ctx, file, server, source.ID)
		err = errors.Join(err, server.Close())
	}
	if err := errors.Join(err, file.Close()); err != nil {
		return nil, err
	}
	if err := os.RemoveAll(filepath.Join(dir, chats.BlobsDir)); err != nil {
		return nil, err
	}
	for _, name := range []string{sqlite.FileName, replica.FileName} {
		for _, suffix := range []string{"", "-wal", "-shm"} {
			if err := os.Remove(filepath.Join(dir, name+suffix)); err != nil && !errors.Is(err, os.ErrNotExist) {
				return nil, err
			}
		}
	}
	return func() error {
		server, err := postgres.Open(ctx, url, postgres.Portal(), log)
		if err != nil {
			return err
		}
		return errors.Join(mark(ctx, server, complete, source.ID, "a backup"), server.Close())
	}, nil
}

func checkEmpty(dir string) (exists bool, err error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look into the data folder: %w", err)
	}
	for _, e := range entries {
		if e.Name() == "lost+found" || strings.HasPrefix(e.Name(),
			// The file system makes lost+found, and a restore that was killed leaves scratch: neither is data.
			sqlite.ScratchPrefix) {
			continue
		}
		return true, fault.New(fault.Conflict,
			"The folder %s is not empty (it holds %s), and a restore replaces nothing. Give a new folder with --data, or move the old one away.", dir, e.Name())
	}
	return true, nil
}

// isReplaceable reports whether dir can be removed and a new folder take its place: dir is empty, no
// mount point, and its parent is writable.
func isReplaceable(dir string) bool {
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		return false
	}
	probe, err := sqlite.MakeScratch(filepath.Dir(dir))
	if err != nil {
		return false
	}
	defer probe.Remove()
	// A rename to another name and back fails for mount points and other file systems.
	moved := filepath.Join(probe.Path, "dir")
	if os.Rename(dir, moved) != nil {
		return false
	}
	return os.Rename(moved, dir) == nil
}

// moveInto moves the files of tmp to dir, the database last, because a folder without it does not count
// as a portal's.
func moveInto(tmp, dir string) error {
	if err := os.Rename(filepath.Join(tmp, chats.BlobsDir), filepath.Join(dir, chats.BlobsDir)); err != nil &&
		!errors.Is(err, os.ErrNotExist) {
		return err
	}
	var list []string
	has := inFolder(tmp)
	for _, f := range memberNames(has) {
		if f.Name != sqlite.FileName {
			list = append(list, f.Name)
		}
	}
	if has(sqlite.FileName) {
		list = append(list, sqlite.FileName)
	}
	for _, name := range list {
		if name == sqlite.FileName {
			if err := sqlite.SyncDir(dir); err != nil {
				return err
			}
		}
		// Link fails if the name exists, so that no file is replaced.
		if err := os.Link(filepath.Join(tmp, name), filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return sqlite.SyncDir(dir)
}

// extractBackup unpacks a backup into dir and verifies the result.
func extractBackup(ctx context.Context, r io.Reader, dir, passphrase string) (Report, error) {
	plain, err := openBackup(r, passphrase)
	if err != nil {
		return Report{}, err
	}
	m, err := unpack(ctx, plain, dir)
	if err != nil {
		return Report{}, err
	}
	if m.Schema < sqlite.SchemaVersion() {
		// The checks need this binary's schema.
		if err := upgradeDatabase(ctx, dir); err != nil {
			return Report{}, err
		}
	}
	report, err := Verify(ctx, dir)
	report.Backup = &m
	if err != nil {
		return report, err
	}
	if err := report.err(); err != nil {
		return report, damagedError("%v", err)
	}
	have := report.rowCounts()
	if m.Format == 1 { // Backups of format 1 list no files, so the counts cannot be compared.
		delete(have, "files")
	}
	if !maps.Equal(have, m.Rows) {
		return report, damagedError("it holds %v rows instead of %v", have, m.Rows)
	}
	if report.Files != m.Blobs || report.FileBytes != m.BlobBytes {
		return report, damagedError("it holds %d files of messages instead of %d", m.Blobs, report.Files)
	}
	return report, nil
}

// upgradeDatabase migrates an unpacked database and removes the copies that the migration makes, because
// the backup itself is a copy.
func upgradeDatabase(ctx context.Context, dir string) error {
	d, err := Open(ctx, dir, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	if err := d.Close(); err != nil {
		return err
	}
	copies, err := sqlite.SchemaCopies(filepath.Join(dir, sqlite.FileName))
	for _, path := range copies {
		err = errors.Join(err, os.Remove(path))
	}
	return err
}

// openBackup returns the decrypted content of a backup, or r itself if it is not encrypted. A missing or
// needless passphrase is an Invalid fault.
func openBackup(r io.Reader, passphrase string) (io.Reader, error) {
	buf := bufio.NewReaderSize(r, 64<<10)
	intro, err := buf.Peek(len(ageIntro))
	if err != nil && err != io.EOF {
		return nil, fmt.Errorf("read the backup: %w", err)
	}
	switch {
	case string(intro) != ageIntro && passphrase == "":
		return buf, nil
	case string(intro) != ageIntro:
		return nil, fault.New(fault.Invalid, "This file is not an encrypted backup. If it is to be one, it is damaged; "+
			"else leave the passphrase away.")
	case passphrase == "":
		return nil, fault.New(fault.Invalid, "This backup is encrypted. Give its passphrase with --passphrase-file.")
	}
	key, err := age.NewScryptIdentity(passphrase)
	if err != nil {
		return nil, fmt.Errorf("read the backup: %w", err)
	}
	key.SetMaxWorkFactor(scryptLogN) // A forged header could otherwise make scrypt use all memory.
	plain, err := age.Decrypt(buf, key)
	if _, wrong := errors.AsType[*age.NoIdentityMatchError](err); wrong {
		return nil, fmt.Errorf("the passphrase is wrong, or %w", ErrDamaged)
	}
	if err != nil {
		return nil, damagedError("%v", err)
	}
	return plain, nil
}
