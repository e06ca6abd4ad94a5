package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/store/chats"
	"agentsite/store/engine"
	"agentsite/store/postgres"
	"agentsite/store/replica"
	"agentsite/store/space"
	"agentsite/store/sqlite"
	"agentsite/store/transfer"
)

// Move names the two databases of a move between the engines. The caller has locked the folders.
type Move struct {
	// Keys are the key files of the portal in its data folder.
	Keys ident.KeyFiles
	// Database is the URL of the PostgreSQL database to move from; "" for the file in the data folder.
	Database string
	// To is the URL of the PostgreSQL database to move to; "" for a file in the folder ToDir.
	To    string
	ToDir string
	// Step is called after each step that is on disk, with its name.
	Step func(name string)
	Log  *slog.Logger
}

// MoveReport has the numbers of copied and compared rows of a move.
type MoveReport struct {
	Tables, Rows int
	// Files is the number of files of messages.
	Files int
	// Heads is the number of conversations with the last message as the head of their chain.
	Heads int
	// Other is the name of the database that was moved to.
	Other string
}

// MovedSuffix is added to the name of a database file that was moved away, when a new one takes its place.
const MovedSuffix = ".moved"

// FileTarget begins the target of a move to a file; the data folder follows.
const FileTarget = "sqlite:"

// ParseTarget returns the database URL or the folder that the argument of a move names.
func ParseTarget(to string) (url, dir string, err error) {
	if dir, ok := strings.CutPrefix(to, FileTarget); ok && dir != "" {
		dir, err := filepath.Abs(strings.TrimPrefix(dir, "//"))
		return "", dir, err
	}
	if strings.HasPrefix(to, "postgres://") || strings.HasPrefix(to, "postgresql://") {
		return to, "", nil
	}
	return "", "", fault.New(fault.Invalid, "Name the target: postgres://… for a PostgreSQL database, or %sDIR "+
		"for a file in a data folder.", FileTarget)
}

// Run moves the portal: it copies all rows, compares them, and marks the old database, which no portal
// starts on again. Until the end the new one does not start either, so that never both do. After an
// interruption, calling Run again goes on.
func (m Move) Run(ctx context.Context) (MoveReport, error) {
	if m.Step == nil {
		m.Step = func(string) {}
	}
	switch {
	case m.Database == "" && m.To != "":
		return m.toServer(ctx)
	case m.Database != "" && m.ToDir != "":
		return m.toFile(ctx)
	}
	return MoveReport{}, fault.New(fault.Invalid, "A move goes from one kind of database to the other. Name the "+
		"PostgreSQL database that the portal is on with --database. To copy a portal, use `agentsite backup`.")
}

// toServer moves the file in the data folder to a server.
func (m Move) toServer(ctx context.Context) (r MoveReport, err error) {
	file, err := sqlite.OpenPortal(ctx, m.Keys.Dir, nil, m.Log)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	source, err := beginSource(ctx, file)
	if err != nil {
		return r, err
	}
	server, target, err := m.openTarget(ctx, source)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	r.Other = server.Name()
	switch {
	case source.State == moved && target.State == complete && source.ID == target.ID:
		return r, nil // everything was done before
	case source.State != moved:
		if target.State != incomplete {
			// An id names one copy: an earlier incomplete one, elsewhere, never becomes complete by this move.
			source.ID = ident.NewID()
		}
		if r, err = m.fillServer(ctx, file, server, source.ID); err != nil {
			return r, err
		}
		if err := mark(ctx, file, moved, source.ID, server.Name()); err != nil {
			return r, err
		}
		m.Step("moved")
	case target.State != incomplete || source.ID != target.ID:
		return r, source.refusal(nameOf(file))
	}
	err = mark(ctx, server, complete, source.ID, nameOf(file))
	m.Step("complete")
	return r, err
}

// openTarget opens a server's database for a copy. It empties one with the incomplete copy of another move.
func (m Move) openTarget(ctx context.Context, source moveMark) (*postgres.DB, moveMark, error) {
	server, err := postgres.Open(ctx, m.To, postgres.Portal(), m.Log)
	if err != nil {
		return nil, moveMark{}, err
	}
	target, err := readMark(ctx, server)
	if err == nil && target.State == incomplete && target.ID != source.ID {
		if err := errors.Join(server.Close(), postgres.Drop(ctx, m.To, postgres.Portal(), m.Log)); err != nil {
			return nil, target, err
		}
		if server, err = postgres.Open(ctx, m.To, postgres.Portal(), m.Log); err != nil {
			return nil, target, err
		}
		target = moveMark{}
	}
	if err == nil && target.State != incomplete && (target.State != complete || target.ID != source.ID) {
		err = refuseUsed(ctx, server)
	}
	if err != nil {
		return nil, target, errors.Join(err, server.Close())
	}
	return server, target, nil
}

// nameOf returns the name of a database for messages, with its kind.
func nameOf(db Engine) string {
	if file, ok := db.(*sqlite.DB); ok {
		return "database file " + file.Path()
	}
	return db.Name()
}

// refuseUsed returns a fault if a portal has used the database.
func refuseUsed(ctx context.Context, db Engine) error {
	var portals int
	if err := db.Get(ctx, &portals, `SELECT COUNT(*) FROM portal`); err != nil || portals == 0 {
		return err
	}
	return fault.New(fault.Conflict, "The %s holds a portal already. Name an empty database, or empty it with "+
		"`DROP SCHEMA agentsite CASCADE` if you do not need it.", nameOf(db))
}

// fillServer copies the rows of the file and proves them.
func (m Move) fillServer(ctx context.Context, file *sqlite.DB, server *postgres.DB, id string) (r MoveReport,
	err error) {
	r.Other = server.Name()
	if err := mark(ctx, file, moving, id, server.Name()); err != nil {
		return r, err
	}
	m.Step("moving")
	if err := mark(ctx, server, incomplete, id, nameOf(file)); err != nil {
		return r, err
	}
	m.Step("incomplete")
	return r, transfer.ReadFile(ctx, file.Path(), func(from transfer.Source) error {
		copied, err := transfer.FillServer(ctx, from, server, m.Step)
		if err != nil {
			return err
		}
		if r.Files, err = copyBlobs(ctx, file, blobsIn(m.Keys.Dir), chats.NewFilesInRows(server, nil)); err != nil {
			return err
		}
		m.Step("files")
		if err := m.loadReplica(ctx); err != nil {
			return err
		}
		return transfer.ReadServer(ctx, m.To, func(to transfer.Source) (err error) {
			r.Heads, err = to.Compare(ctx, copied)
			r.addRows(copied)
			return err
		})
	})
}

func (r *MoveReport) addRows(copied []transfer.Copied) {
	for _, c := range copied {
		r.Tables++
		r.Rows += int(c.Sum.Rows)
	}
}

// copyBlobs copies the content of each file that the database names, unless the target has it, and returns
// their number.
func copyBlobs(ctx context.Context, from engine.DB, blobs openBlob, to *chats.Files) (n int, err error) {
	var failed error
	err = engine.Each(ctx, from, func(b blobRow) bool {
		n++
		failed = moveBlob(ctx, b, blobs, to)
		return failed == nil
	}, `SELECT hash, size FROM files ORDER BY hash`)
	return n, errors.Join(failed, err)
}

func moveBlob(ctx context.Context, b blobRow, blobs openBlob, to *chats.Files) error {
	if sum, err := copyBlob(ctx, io.Discard, to.OpenBlob, b.Hash); err == nil && sum == b.Hash {
		return nil
	}
	f, err := blobs(ctx, b.Hash)
	if err != nil {
		return fmt.Errorf("copy the file %s of a message; see `agentsite verify`: %w", b.Hash, err)
	}
	defer f.Close()
	hash, _, _, err := to.PutBlob(ctx, f, b.Size)
	if err == nil && hash != b.Hash {
		err = errors.New("its content is damaged; see `agentsite verify`")
	}
	if err != nil {
		return fmt.Errorf("copy the file %s of a message: %w", b.Hash, err)
	}
	return nil
}

// loadReplica copies the part of the replica that no other portal can give back.
func (m Move) loadReplica(ctx context.Context) error {
	if err := postgres.Drop(ctx, m.To, postgres.Replica(), m.Log); err != nil {
		return err
	}
	return replica.Load(ctx, replica.Config{Dir: m.Keys.Dir, Database: m.To, Log: m.Log})
}

// toFile moves a server's database to a file in a data folder.
func (m Move) toFile(ctx context.Context) (r MoveReport, err error) {
	server, err := postgres.Open(ctx, m.Database, postgres.Portal(), m.Log)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	source, err := beginSource(ctx, server)
	if err != nil {
		return r, err
	}
	path := filepath.Join(m.ToDir, sqlite.FileName)
	r.Other = "database file " + path
	target, err := markOfFile(ctx, path)
	if err != nil {
		return r, err
	}
	switch {
	case source.State == moved && target.State == complete && source.ID == target.ID:
		return r, nil // everything was done before
	case source.State == moved && (target.State != incomplete || source.ID != target.ID):
		return r, source.refusal(nameOf(server))
	case target.State == none || target.State == complete || target.State == moving:
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			return r, errors.Join(err, fault.New(fault.Conflict, "%s holds %s, the database of a portal. Name an empty folder.",
				m.ToDir, sqlite.FileName))
		}
	}
	if source.State != moved {
		source.ID = ident.NewID() // of the file that is written anew
		if err := mark(ctx, server, moving, source.ID, r.Other); err != nil {
			return r, err
		}
		m.Step("moving")
		if r, err = m.writeFile(ctx, server, source.ID); err != nil {
			return r, err
		}
		if err := mark(ctx, server, moved, source.ID, r.Other); err != nil {
			return r, err
		}
		m.Step("moved")
	}
	err = markFile(ctx, m.ToDir, complete, source.ID, server.Name(), m.Log)
	m.Step("complete")
	return r, err
}

// writeFile creates the files of the portal in m.ToDir, the database last.
func (m Move) writeFile(ctx context.Context, server *postgres.DB, id string) (r MoveReport, err error) {
	if err := os.MkdirAll(m.ToDir, 0o700); err != nil {
		return r, fmt.Errorf("create the data folder: %w", err)
	}
	if err := m.copyKeys(); err != nil {
		return r, err
	}
	sqlite.RemoveAbandoned(m.ToDir)
	scratch, err := sqlite.MakeScratch(m.ToDir)
	if err != nil {
		return r, fmt.Errorf("make room for the database: %w", err)
	}
	defer scratch.Remove()
	r.Other = "database file " + filepath.Join(m.ToDir, sqlite.FileName)
	err = transfer.ReadServer(ctx, m.Database, func(from transfer.Source) error {
		copied, err := transfer.WriteFile(ctx, from, scratch.Path)
		if err != nil {
			return err
		}
		m.Step("written")
		r.addRows(copied)
		return transfer.ReadFile(ctx, filepath.Join(scratch.Path, sqlite.FileName), func(to transfer.Source) (err error) {
			r.Heads, err = to.Compare(ctx, copied)
			return err
		})
	})
	if err != nil {
		return r, err
	}
	if err := markFile(ctx, scratch.Path, incomplete, id, server.Name(), m.Log); err != nil {
		return r, err
	}
	files := chats.NewFiles(nil, m.ToDir, nil, space.New(m.ToDir, space.Config{}))
	if r.Files, err = copyBlobs(ctx, server, chats.NewFilesInRows(server, nil).OpenBlob, files); err != nil {
		return r, err
	}
	m.Step("files")
	if _, err := replica.Copy(ctx, replica.Config{Database: m.Database}, scratch.Path); err != nil {
		return r, fmt.Errorf("copy the replica: %w", err)
	}
	m.Step("compared")
	return r, m.place(scratch.Path)
}

// place moves the new files into the folder. An old database, which was moved away, is kept under another
// name; an old replica is removed.
func (m Move) place(from string) error {
	path := filepath.Join(m.ToDir, sqlite.FileName)
	for _, suffix := range []string{"-wal", "-shm", ""} {
		if err := rename(path+suffix, filepath.Join(m.ToDir, sqlite.FileName+MovedSuffix+suffix)); err != nil {
			return err
		}
	}
	old := filepath.Join(m.ToDir, replica.FileName)
	for _, suffix := range []string{"-wal", "-shm", ".damaged", ""} {
		if err := os.Remove(old + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	for _, name := range []string{replica.FileName, sqlite.FileName} {
		if err := rename(filepath.Join(from, name), filepath.Join(m.ToDir, name)); err != nil {
			return err
		}
	}
	m.Step("placed")
	return sqlite.SyncDir(m.ToDir)
}

// rename renames a file, if it exists.
func rename(from, to string) error {
	err := os.Rename(from, to)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// copyKeys copies the key files to another folder than the portal's. One that is there with other content is
// an error.
func (m Move) copyKeys() error {
	if same, err := sameFolder(m.Keys.Dir, m.ToDir); same || err != nil {
		return err
	}
	names := []string{ident.PortalKeyFile, ident.PublicKeyFile, ident.SealKeyFile, ident.OperationalKeysFile}
	for _, name := range names {
		from := filepath.Join(m.Keys.Dir, name)
		if name == ident.PortalKeyFile && m.Keys.Root != "" {
			continue // it stays where it is
		}
		b, err := os.ReadFile(from)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = writeNew(filepath.Join(m.ToDir, name), b)
		}
		if err != nil {
			return fmt.Errorf("copy the keys: %w", err)
		}
	}
	return sqlite.SyncDir(m.ToDir)
}

// writeNew writes a file that its owner alone may read. An existing one must have the same content.
func writeNew(path string, b []byte) error {
	if have, err := os.ReadFile(path); err == nil {
		if string(have) != string(b) {
			return fault.New(fault.Conflict, "%s is there already, with other content. Name an empty folder.", path)
		}
		return nil
	}
	tmp := path + ".new"
	f, err := os.OpenFile(tmp, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(tmp, path)
}

func sameFolder(a, b string) (bool, error) {
	one, err := os.Stat(a)
	if err != nil {
		return false, err
	}
	other, err := os.Stat(b)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && os.SameFile(one, other), err
}

// Cancel takes the mark of a move that did not end from the source, so that the portal starts there again.
// After the source was marked as moved, m must name the copy, which is marked first, so that it never
// becomes complete.
func (m Move) Cancel(ctx context.Context) (err error) {
	var source Engine
	if m.Database == "" {
		source, err = sqlite.OpenPortal(ctx, m.Keys.Dir, nil, m.Log)
	} else {
		source, err = postgres.Open(ctx, m.Database, postgres.Portal(), m.Log)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	have, err := readMark(ctx, source)
	if err != nil {
		return err
	}
	switch have.State {
	case moving:
	case moved:
		if err := m.abandonCopy(ctx, have); err != nil {
			return err
		}
	default:
		return fault.New(fault.Conflict, "The %s is not being moved: there is nothing to cancel.", nameOf(source))
	}
	return clearMark(ctx, source)
}

// abandonCopy gives the incomplete copy of a move another id. A complete one is a fault.
func (m Move) abandonCopy(ctx context.Context, source moveMark) (err error) {
	const other = "canceled"
	var target moveMark
	switch {
	case m.To != "":
		server, err := postgres.Open(ctx, m.To, postgres.Portal(), m.Log)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, server.Close()) }()
		if target, err = readMark(ctx, server); err != nil {
			return err
		}
		if target.State == incomplete && target.ID == source.ID {
			return mark(ctx, server, incomplete, other, source.Other)
		}
	case m.ToDir != "":
		if target, err = markOfFile(ctx, filepath.Join(m.ToDir, sqlite.FileName)); err != nil {
			return err
		}
		if target.State == incomplete && target.ID == source.ID {
			return markFile(ctx, m.ToDir, incomplete, other, source.Other, m.Log)
		}
	default:
		return fault.New(fault.Conflict, "The portal was copied to the %s already. Name that with --to as well, so "+
			"that it is never started.", source.Other)
	}
	if target.ID != source.ID {
		return fault.New(fault.Conflict, "The portal was copied to the %s, but --to names another database.", source.Other)
	}
	return fault.New(fault.Conflict, "The move to the %s has ended, and a portal may have started there. Move back "+
		"from there with `agentsite migrate-database`.", source.Other)
}
