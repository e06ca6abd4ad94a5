package chats

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"agentsite/internal/fault"
	"agentsite/store/engine"
	"agentsite/store/space"
	"agentsite/store/sqlite"
)

// BlobsDir is the folder in the data folder that holds the contents of files: content with a SHA-256
// that begins with "ab" is in files/ab, with the hash as its name.
const BlobsDir = "files"

// headBytes is the number of bytes that PutBlob returns as the head, enough to recognize the media type.
const headBytes = 512

// BlobPath returns the path of a blob below the data folder; "" if hash is no SHA-256 in lower-case
// hexadecimal.
func BlobPath(hash string) string {
	if len(hash) != 2*sha256.Size || strings.Trim(hash, "0123456789abcdef") != "" {
		return ""
	}
	return filepath.Join(BlobsDir, hash[:2], hash)
}

// blobStore holds the contents of files by their hash. touch and put give a blob the time of now, so that
// sweep does not delete it soon.
type blobStore interface {
	put(ctx context.Context, r io.Reader, limit int64) (hash string, size int64, head []byte, err error)
	// touch returns a NotFound fault for a missing or incomplete blob.
	touch(ctx context.Context, hash string, size int64) error
	open(ctx context.Context, hash string) (io.ReadSeekCloser, error)
	// drop deletes a blob that no row of files names and that was last touched before a time, and reports
	// whether it did.
	drop(ctx context.Context, hash string, before time.Time) (bool, error)
	// sweep calls drop for all blobs that no row of files names, and deletes remains of uploads.
	sweep(ctx context.Context, before time.Time, drop func(hash string) (bool, error)) (int, error)
}

// PutBlob implements chat.Blobs. It returns after the content is on disk.
func (d *Files) PutBlob(ctx context.Context, r io.Reader, limit int64) (hash string, size int64, head []byte,
	err error) {
	return d.blobs.put(ctx, r, limit)
}

// OpenBlob implements chat.Blobs. An unknown hash is a NotFound fault. It checks no permission.
func (d *Files) OpenBlob(ctx context.Context, hash string) (io.ReadSeekCloser, error) {
	return d.blobs.open(ctx, hash)
}

// dropBlob deletes a blob unless it is named, young, or a backup is made.
func (d *Files) dropBlob(ctx context.Context, hash string, before time.Time) (bool, error) {
	if !d.Keep.TryLock() {
		return false, nil
	}
	defer d.Keep.Unlock()
	return d.blobs.drop(ctx, hash, before)
}

// SweepBlobs deletes blobs that belong to no file and are older than the given time: their upload was
// never completed. It returns their number. One call checks all blobs.
func (d *Files) SweepBlobs(ctx context.Context, before time.Time) (int, error) {
	return d.blobs.sweep(ctx, before, func(hash string) (bool, error) { return d.dropBlob(ctx, hash, before) })
}

// blobFolder keeps blobs in the folder BlobsDir of a data folder.
type blobFolder struct {
	db   engine.DB
	dir  string // the data folder
	disk *space.Space
	mu   sync.Mutex // held while a blob is put into its place or deleted
}

// OpenBlobIn returns the content of a blob in a data folder that no portal uses.
func OpenBlobIn(dir, hash string) (io.ReadSeekCloser, error) {
	return (&blobFolder{dir: dir}).open(context.Background(), hash)
}

func (d *blobFolder) blob(hash string) (string, error) {
	path := BlobPath(hash)
	if path == "" {
		return "", errNoFile()
	}
	return filepath.Join(d.dir, path), nil
}

// put implements blobStore. A crash leaves at most a temporary file, which the next start removes.
func (d *blobFolder) put(ctx context.Context, r io.Reader, limit int64) (hash string, size int64, head []byte,
	err error) {
	if err := d.disk.Check(limit, false); err != nil {
		return "", 0, nil, err
	}
	root := filepath.Join(d.dir, BlobsDir)
	if err := MakeDir(root); err != nil {
		return "", 0, nil, diskError(err)
	}
	f, err := os.CreateTemp(root, sqlite.ScratchPrefix) // CreateTemp creates the file with mode 0600.
	if err != nil {
		return "", 0, nil, diskError(err)
	}
	defer os.Remove(f.Name())
	defer f.Close()
	h, out := sha256.New(), &DiskWriter{W: f}
	first := &headWriter{}
	size, err = io.Copy(io.MultiWriter(out, h, first), io.LimitReader(space.Reader{In: CtxReader{Ctx: ctx, In: r}, Space: d.disk}, limit+1))
	switch {
	case out.Err != nil:
		return "", 0, nil, diskError(out.Err)
	case err != nil:
		return "", 0, nil, fmt.Errorf("receive a file: %w", err)
	case size > limit:
		return "", 0, nil, fault.New(fault.Invalid, "The file is too large: use at most %s.", sizeText(limit))
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return "", 0, nil, diskError(err)
	}
	hash = hex.EncodeToString(h.Sum(nil))
	if err := d.placeBlob(f.Name(), hash, size); err != nil {
		return "", 0, nil, diskError(err)
	}
	return hash, size, first.b, nil
}

func sizeText(n int64) string {
	if n >= 1<<20 {
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d bytes", n)
}

func diskError(err error) error {
	if errors.Is(err, syscall.ENOSPC) {
		return space.ErrFull(err)
	}
	return fault.Wrap(fault.Unavailable, err,
		"This portal could not store the file. Try again in a moment, or tell its operator.")
}

// headWriter keeps the first headBytes of the written bytes.
type headWriter struct{ b []byte }

func (w *headWriter) Write(b []byte) (int, error) {
	w.b = append(w.b, b[:min(len(b), headBytes-len(w.b))]...)
	return len(b), nil
}

// MakeDir creates a folder, readable by its owner only, and flushes its name to disk. An existing folder
// is no error.
func MakeDir(dir string) error {
	err := os.Mkdir(dir, 0o700)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return sqlite.SyncDir(filepath.Dir(dir))
}

// placeBlob moves a written blob to its place. A blob of the same hash and size stays and gets a new
// time, so that SweepBlobs does not delete it soon.
func (d *blobFolder) placeBlob(tmp, hash string, size int64) error {
	path, err := d.blob(hash)
	if err != nil {
		return err
	}
	if err := MakeDir(filepath.Dir(path)); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if st, err := os.Stat(path); err == nil && st.Size() == size {
		now := time.Now()
		if err := os.Chtimes(path, now, now); err != nil {
			return err
		}
	} else if err := os.Rename(tmp, path); err != nil {
		return err
	}
	// Flush also for a blob that was there before, because its own flush may not have happened yet.
	return sqlite.SyncDir(filepath.Dir(path))
}

func (d *blobFolder) touch(_ context.Context, hash string, size int64) error {
	path, err := d.blob(hash)
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	st, err := os.Stat(path)
	if err != nil || st.Size() != size {
		return errPartial(err)
	}
	now := time.Now()
	if err := os.Chtimes(path, now, now); err != nil {
		return diskError(err)
	}
	return nil
}

// errPartial is the fault of a file that is not stored in full.
func errPartial(cause error) error {
	return fault.Wrap(fault.NotFound, cause, "The file was not received in full. Send it again.")
}

func (d *blobFolder) open(_ context.Context, hash string) (io.ReadSeekCloser, error) {
	path, err := d.blob(hash)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errNoFile()
	}
	if err != nil {
		return nil, diskError(err)
	}
	return f, nil
}

func (d *blobFolder) drop(ctx context.Context, hash string, before time.Time) (bool, error) {
	path, err := d.blob(hash)
	if err != nil {
		return false, nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	st, err := os.Stat(path)
	if err != nil || !st.ModTime().Before(before) {
		return false, nil
	}
	var known bool
	if err := d.db.Get(ctx, &known, `SELECT EXISTS (SELECT 1 FROM files WHERE hash = ?)`, hash); err != nil || known {
		return false, engine.MapError(err)
	}
	if err := os.Remove(path); err != nil {
		return false, diskError(err)
	}
	return true, nil
}

func (d *blobFolder) sweep(ctx context.Context, _ time.Time, drop func(string) (bool, error)) (int, error) {
	root := filepath.Join(d.dir, BlobsDir)
	folders, err := os.ReadDir(root)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, diskError(err)
	}
	n := 0
	for _, f := range folders {
		if !f.IsDir() {
			continue
		}
		gone, err := d.sweepFolder(ctx, filepath.Join(root, f.Name()), drop)
		if n += gone; err != nil {
			return n, err
		}
	}
	return n, nil
}

func (d *blobFolder) sweepFolder(ctx context.Context, dir string, drop func(string) (bool, error)) (n int,
	err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0, diskError(err)
	}
	begin := filepath.Base(dir)
	var hashes []string
	if err := d.db.List(ctx, &hashes, `SELECT hash FROM files WHERE hash >= ? AND hash < ?`, begin,
		begin+"g"); err != nil {
		return 0, engine.MapError(err)
	}
	known := make(map[string]bool, len(hashes))
	for _, h := range hashes {
		known[h] = true
	}
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return n, err
		}
		if known[e.Name()] || BlobPath(e.Name()) != filepath.Join(BlobsDir, begin, e.Name()) {
			continue
		}
		gone, err := drop(e.Name())
		if err != nil {
			return n, err
		}
		if gone {
			n++
		}
	}
	return n, nil
}
