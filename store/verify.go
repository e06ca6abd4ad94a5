package store

import (
	"context"
	"crypto/ed25519"
	"database/sql"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/jmoiron/sqlx"

	"agentsite/internal/ident"
	"agentsite/store/chats"
	"agentsite/store/replica"
	"agentsite/store/sqlite"
)

// maxFaults bounds a report, because a database with more faults is restored and not repaired by hand.
const maxFaults = 100

// Report is the result of a verification. Faults are sentences for the operator that name the damage;
// none means that there is none.
type Report struct {
	Conversations, Messages, Tasks, Agents, Accounts int
	// Files counts the files of messages and uploads, FileBytes their size.
	Files     int
	FileBytes int64

	Faults []string
	// More is the number of faults beyond those listed.
	More int
	// Backup is the manifest of a backup; nil for a data folder.
	Backup *Manifest
	// Replica is the report on the replica, if there is one.
	Replica replica.Report
}

// OK reports whether the verification found no damage; the replica does not count, because it can be
// fetched again.
func (r *Report) OK() bool { return len(r.Faults) == 0 }

func (r *Report) addFault(format string, args ...any) {
	if len(r.Faults) == maxFaults {
		r.More++
		return
	}
	r.Faults = append(r.Faults, fmt.Sprintf(format, args...))
}

// err returns the faults as one error, nil if there are none.
func (r *Report) err() error {
	if r.OK() {
		return nil
	}
	return fmt.Errorf("the database is damaged (%d faults), first: %s", len(r.Faults)+r.More, r.Faults[0])
}

// Verify checks the data folder dir while no portal runs on it, and changes nothing there. An error
// means that the database could not be read at all or is of a newer binary; damage in it is in the
// report.
func Verify(ctx context.Context, dir string) (Report, error) {
	return VerifyFiles(ctx, ident.KeyFiles{Dir: dir})
}

// VerifyFiles is Verify for a portal whose root key may be outside its data folder.
func VerifyFiles(ctx context.Context, keys ident.KeyFiles) (Report, error) {
	return verifyFolder(ctx, keys, blobsIn(keys.Dir))
}

// openBlob opens the content of a file of a message by its hash; a NotFound fault if it is missing.
type openBlob func(ctx context.Context, hash string) (io.ReadSeekCloser, error)

// blobsIn opens blobs in a data folder.
func blobsIn(dir string) openBlob {
	return func(_ context.Context, hash string) (io.ReadSeekCloser, error) { return chats.OpenBlobIn(dir, hash) }
}

// verifyFolder verifies a database in keys.Dir with its blobs.
func verifyFolder(ctx context.Context, keys ident.KeyFiles, blobs openBlob) (Report, error) {
	var r Report
	path := filepath.Join(keys.Dir, sqlite.FileName)
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return r, fmt.Errorf("there is no database %s: give the data folder of a portal", path)
	}
	public, err := verifyFile(ctx, path, blobs, &r)
	if err != nil {
		return r, err
	}
	return r, verifyKeys(keys, public, &r)
}

// Verify checks the database while the portal runs. It reads in short
// transactions, so that it holds up neither writers nor the WAL; messages
// that arrive meanwhile may or may not be counted. A database on a server is
// copied to a file in the data folder, which needs room for it, and the copy
// is checked.
func (d *Backups) Verify(ctx context.Context) (Report, error) {
	var r Report
	if d.file == nil {
		return d.verifyServer(ctx)
	}
	pool, err := sqlite.Connect(d.file.Path(), sqlite.ReadDSN(d.file.Path()), 1)
	if err != nil {
		return r, err
	}
	defer pool.Close()
	public, err := verifyPool(ctx, pool, d.files.OpenBlob, &r)
	if err != nil {
		return r, err
	}
	return r, verifyKeys(d.keys, public, &r)
}

func (d *Backups) verifyServer(ctx context.Context) (r Report, err error) {
	d.files.Keep.RLock()
	defer d.files.Keep.RUnlock()
	scratch, err := sqlite.MakeScratch(d.dir)
	if err != nil {
		return r, fmt.Errorf("make room for a copy of the database: %w", err)
	}
	defer scratch.Remove()
	if err := d.copyTo(ctx, scratch.Path); err != nil {
		return r, fmt.Errorf("copy the database: %w", err)
	}
	public, err := verifyFile(ctx, filepath.Join(scratch.Path, sqlite.FileName), d.files.OpenBlob, &r)
	if err != nil {
		return r, err
	}
	return r, verifyKeys(d.keys, public, &r)
}

// verifyFile checks a database file that no portal writes, and returns the public key of the portal that
// it belongs to.
func verifyFile(ctx context.Context, path string, blobs openBlob, r *Report) ([]byte, error) {
	if err := sqlite.CheckFile(path); err != nil {
		return nil, err
	}
	if err := sqlite.CheckPortal(ctx, path); err != nil {
		return nil, err
	}
	pool, err := sqlite.ConnectReadOnly(path)
	if err != nil {
		return nil, err
	}
	defer pool.Close()
	return verifyPool(ctx, pool, blobs, r)
}

func verifyPool(ctx context.Context, pool *sqlx.DB, blobs openBlob, r *Report) ([]byte, error) {
	c, err := pool.Connx(ctx)
	if err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	defer c.Close()
	v := &verifier{c: c, r: r, blobs: blobs}
	checks := []func(context.Context) error{v.checkPages, v.checkReferences, v.countRows, v.checkTranscripts,
		v.clientIDs, v.checkTasks, v.checkOutbox, v.checkNames, v.checkAgents, v.readPortal}
	// A backup may be older than these tables. A file that does not name its schema gets every check.
	schema, err := sqlite.SchemaOf(ctx, c)
	v.first, v.unsalted = err == nil && schema < 3, err == nil && schema < 26
	if err != nil || schema >= 2 {
		checks = append(checks, v.checkVersions, v.checkUses, v.checkIcons)
	}
	if !v.first {
		checks = append(checks, v.checkWork, v.checkReactions, v.fileUses, v.checkWords, v.checkFiles)
	}
	if err != nil || schema >= 5 {
		checks = append(checks, v.checkServers)
	}
	if err != nil || schema >= 13 {
		checks = append(checks, v.checkStorage)
	}
	if err != nil || schema >= 11 {
		checks = append(checks, v.checkDecisions)
	}
	if err != nil || schema >= 14 {
		checks = append(checks, v.checkInvitations)
	}
	for _, check := range checks {
		err := check(ctx)
		switch {
		case err == nil:
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case sqlite.IsDamaged(err):
			// Continue, because another check may name the damaged conversation.
			r.addFault("The database file is damaged: %v.", err)
		default:
			return nil, fmt.Errorf("verify: %w", err)
		}
	}
	return v.public, nil
}

// verifier runs the checks one after another on one connection, and adds the damage that they find to r.
type verifier struct {
	c        *sqlx.Conn
	r        *Report
	blobs    openBlob
	first    bool   // schemas before 3: messages lack the later columns
	unsalted bool   // schemas before 26: messages lack the salt
	public   []byte // public key of the portal according to the database; nil before the first start
}

func (v *verifier) checkPages(ctx context.Context) error {
	type line struct {
		Text string `db:"integrity_check"`
	}
	return sqlite.EachRow(ctx, v.c, func(l line) {
		// A damaged full-text index is rebuilt by the next search, so it is no damage to report.
		if l.Text != "ok" && !strings.Contains(l.Text, "said_words") {
			v.r.addFault("The database file is damaged: %s.", l.Text)
		}
	}, `PRAGMA integrity_check(20)`)
}

func (v *verifier) checkReferences(ctx context.Context) error {
	type broken struct {
		Table  string         `db:"table"`
		RowID  sql.NullInt64  `db:"rowid"`
		Parent string         `db:"parent"`
		FKID   sql.NullString `db:"fkid"`
	}
	return sqlite.EachRow(ctx, v.c, func(b broken) {
		v.r.addFault("A row of table %s refers to a row of %s that is gone.", b.Table, b.Parent)
	}, `PRAGMA foreign_key_check`)
}

func (v *verifier) countRows(ctx context.Context) error {
	return errors.Join(
		v.c.GetContext(ctx, &v.r.Accounts, `SELECT COUNT(*) FROM accounts WHERE password_hash <> ''`),
		v.c.GetContext(ctx, &v.r.Agents, `SELECT COUNT(*) FROM agents WHERE deleted_at = 0 AND kind <> 'peer'`),
	)
}

// readPortal reads the public key of the portal that the database belongs to; nil before the portal's
// first start.
func (v *verifier) readPortal(ctx context.Context) error {
	err := v.c.GetContext(ctx, &v.public, `SELECT public_key FROM portal WHERE id = 1`)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	return err
}

// verifyKeys checks the key files, and that the portal key is the one that the database belongs
// to (known, nil for any).
func verifyKeys(keys ident.KeyFiles, known []byte, r *Report) error {
	var portal []byte
	for _, name := range []string{ident.PublicKeyFile, ident.PortalKeyFile, ident.SealKeyFile} {
		path := filepath.Join(keys.Dir, name)
		if name == ident.PortalKeyFile {
			path = keys.RootPath()
		}
		b, err := os.ReadFile(path)
		if errors.Is(err, os.ErrNotExist) {
			if name == ident.SealKeyFile || name == ident.PortalKeyFile && portal == nil {
				r.addFault("The key file %s is missing: restore a backup.", name)
			}
			continue
		}
		if err != nil {
			return fmt.Errorf("read key: %w", err)
		}
		key := keyBytes(b)
		if key == nil {
			r.addFault("The key file %s is damaged: restore a backup.", name)
			continue
		}
		switch name {
		case ident.PublicKeyFile:
			portal = key
		case ident.PortalKeyFile:
			portal = ed25519.NewKeyFromSeed(key).Public().(ed25519.PublicKey)
		}
	}
	if portal != nil && known != nil && !ed25519.PublicKey(known).Equal(ed25519.PublicKey(portal)) {
		r.addFault("%s is not the key of the portal this database belongs to: restore a backup.", ident.PortalKeyFile)
	}
	b, err := os.ReadFile(filepath.Join(keys.Dir, ident.OperationalKeysFile))
	if errors.Is(err, os.ErrNotExist) || portal == nil {
		return nil // The next start of the portal creates operational keys.
	}
	if err != nil {
		return fmt.Errorf("read keys: %w", err)
	}
	if err := ident.CheckOperational(b, portal); err != nil {
		r.addFault("The key file %s %v.", ident.OperationalKeysFile, err)
	}
	return nil
}

// keyBytes returns the key in a PEM file, nil if it has not the 32 bytes of both kinds of keys.
func keyBytes(file []byte) []byte {
	block, _ := pem.Decode(file)
	if block == nil || len(block.Bytes) != ed25519.SeedSize {
		return nil
	}
	return block.Bytes
}
