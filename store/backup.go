package store

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"filippo.io/age"

	"agentsite/internal/clock"
	"agentsite/internal/ident"
	"agentsite/internal/usage"
	"agentsite/store/chats"
	"agentsite/store/replica"
	"agentsite/store/sqlite"
	"agentsite/store/transfer"
)

// Backups writes backups of a portal's data and verifies the data, while the portal runs.
type Backups struct {
	db       Engine
	file     *sqlite.DB // nil on PostgreSQL
	database string     // URL of the PostgreSQL database, "" on SQLite
	dir      string     // the data folder
	keys     ident.KeyFiles
	words    *chats.Words
	files    *chats.Files
}

func newBackups(db Engine, file *sqlite.DB, cfg Config, dir string, words *chats.Words,
	files *chats.Files) *Backups {
	return &Backups{db, file, cfg.Database, dir, ident.KeyFiles{Dir: dir, Root: cfg.KeyFile}, words, files}
}

// scryptLogN is age's own default: 256 MiB and about a second per guess.
const scryptLogN = 18

// BackupOptions are the settings of one backup.
type BackupOptions struct {
	// Passphrase encrypts the backup with age; empty leaves it readable. A
	// backup holds the portal's keys, so it is a secret either way.
	Passphrase string
	// App is the version of the program, for the manifest.
	App string
}

// Backup writes all data that a portal must not lose to w while it runs: the database as of one moment
// at or after the call, the files of its messages, the key files, and the part of the replica that no
// other portal can give back. The copy is made in the data folder, which needs room for it, and
// verified before the first byte is written to w. After an error the bytes in w are useless.
func (d *Backups) Backup(ctx context.Context, w io.Writer, o BackupOptions) (Manifest, error) {
	return d.writeBackup(ctx, w, o, scryptLogN)
}

func (d *Backups) writeBackup(ctx context.Context, w io.Writer, o BackupOptions, logN int) (m Manifest, err error) {
	// Keep the blobs that the copy names until they are written: SweepBlobs deletes none while Keep is
	// locked.
	d.files.Keep.RLock()
	defer d.files.Keep.RUnlock()
	scratch, err := sqlite.MakeScratch(d.dir)
	if err != nil {
		return m, fmt.Errorf("make room for the copy: %w", err)
	}
	defer scratch.Remove()
	dir := scratch.Path
	if m, err = d.makeSnapshot(ctx, dir); err != nil {
		return m, err
	}
	m.App = o.App
	buf := bufio.NewWriterSize(w, 64<<10)
	out := io.WriteCloser(nopCloser{buf})
	if o.Passphrase != "" {
		lock, err := age.NewScryptRecipient(o.Passphrase)
		if err != nil {
			return m, fmt.Errorf("encrypt the backup: %w", err)
		}
		lock.SetWorkFactor(logN)
		if out, err = age.Encrypt(buf, lock); err != nil {
			return m, fmt.Errorf("encrypt the backup: %w", err)
		}
	}
	if err := pack(ctx, out, m, dir, d.files.OpenBlob); err != nil {
		return m, fmt.Errorf("write the backup: %w", err)
	}
	if err := errors.Join(out.Close(), buf.Flush()); err != nil {
		return m, fmt.Errorf("write the backup: %w", err)
	}
	return m, nil
}

// Scratch is a temporary file or folder that may hold keys and messages.
type Scratch = sqlite.Scratch

// CreateScratch creates a temporary file in dir, for a backup that is not complete, and removes those
// that killed processes left there.
func CreateScratch(dir string) (*Scratch, error) {
	sqlite.RemoveAbandoned(dir)
	return sqlite.CreateScratch(dir)
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

// makeSnapshot copies the portal's files to dir, verifies the copy and returns its manifest. dir must be
// empty.
func (d *Backups) makeSnapshot(ctx context.Context, dir string) (Manifest, error) {
	m := Manifest{Format: backupFormat, CreatedAt: clock.Now()}
	for _, name := range []string{ident.PortalKeyFile, ident.PublicKeyFile, ident.SealKeyFile,
		ident.OperationalKeysFile, usage.PricesFile} {
		path := filepath.Join(d.dir, name)
		if name == ident.PortalKeyFile {
			path = d.keys.RootPath()
		}
		b, err := os.ReadFile(path)
		if errors.Is(err, os.ErrNotExist) && name != ident.SealKeyFile {
			continue // The verification below reports missing keys.
		}
		if err == nil && name == usage.PricesFile && (len(b) == 0 || len(b) > usage.MaxPrices) {
			continue // The portal does not use it either.
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), b, 0o600)
		}
		if err != nil {
			return m, fmt.Errorf("back up %s: %w", name, err)
		}
	}
	// The replica comes first: the portal's own card in it is never newer than the one in the database. A
	// failure here must not prevent the backup of people's data, because the replica can be fetched again.
	copied, err := replica.Copy(ctx, replica.Config{Dir: d.dir, Database: d.database}, dir)
	if err != nil {
		d.db.Log().Warn("the backup holds nothing of the replica: its proofs and versions are not saved; run `agentsite verify`", "error", err)
	}
	if err := d.words.PurgeWords(ctx); err != nil {
		d.db.Log().Warn("the backup holds words of deleted messages", "error", err)
	}
	if err := d.copyTo(ctx, dir); err != nil {
		return m, fmt.Errorf("copy the database: %w", err)
	}
	report, err := verifyFolder(ctx, ident.KeyFiles{Dir: dir}, d.files.OpenBlob)
	if err == nil {
		err = report.err()
	}
	if err != nil {
		return m, fmt.Errorf("no backup was made; keep your earlier ones, and run `agentsite verify`: %w", err)
	}
	m.Rows, m.Blobs, m.BlobBytes = report.rowCounts(), report.Files, report.FileBytes
	if m.Schema, err = sqlite.PortalSchema(ctx, filepath.Join(dir, sqlite.FileName)); err != nil {
		return m, err
	}
	there := inFolder(dir)
	for _, f := range memberNames(func(name string) bool {
		return there(name) &&
			(name != replica.FileName || copied)
	}) {
		path := filepath.Join(dir, f.Name)
		st, err := os.Stat(path)
		if err != nil {
			return m, err
		}
		if st.Size() > f.Size {
			return m, fmt.Errorf("%s has %d bytes, more than a backup can hold", f.Name, st.Size())
		}
		sum, err := copyFile(ctx, io.Discard, path)
		if err != nil {
			return m, err
		}
		m.Members = append(m.Members, Member{Name: f.Name, Size: st.Size(), SHA256: sum})
	}
	return m, nil
}

// copyTo writes the database, as of one moment, to a database file in the folder dir. It uses a connection
// of its own, so that requests keep all connections of the pool.
func (d *Backups) copyTo(ctx context.Context, dir string) error {
	path := filepath.Join(dir, sqlite.FileName)
	if d.file == nil {
		return copyServer(ctx, d.database, path)
	}
	pool, err := sqlite.Connect(d.file.Path(), sqlite.CopyDSN(d.file.Path()), 1)
	if err != nil {
		return err
	}
	defer pool.Close()
	c, err := pool.Connx(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	return sqlite.CopyInto(ctx, c, path)
}

// copyServer writes the rows of a database on a server to a new file and compares them.
func copyServer(ctx context.Context, url, path string) error {
	return transfer.ReadServer(ctx, url, func(from transfer.Source) error {
		copied, err := transfer.WriteFile(ctx, from, filepath.Dir(path))
		if err != nil {
			return err
		}
		return transfer.ReadFile(ctx, path, func(to transfer.Source) error {
			_, err := to.Compare(ctx, copied)
			return err
		})
	})
}

// rowCounts returns the numbers of rows for a manifest, by plural name.
func (r *Report) rowCounts() map[string]int {
	return map[string]int{"conversations": r.Conversations, "messages": r.Messages, "tasks": r.Tasks,
		"agents": r.Agents, "accounts": r.Accounts, "files": r.Files}
}
