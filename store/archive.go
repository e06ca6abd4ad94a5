package store

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"agentsite/internal/ident"
	"agentsite/internal/usage"
	"agentsite/store/chats"
	"agentsite/store/replica"
	"agentsite/store/sqlite"
)

// The format of a backup: a tar with exactly these members in this order: the manifest, the files that
// it lists with their hashes, the blobs in the order of their names (their hashes), and manifest.sha256
// (readable by sha256sum -c) with the hash of the manifest. Format 1 had no blobs and format 2 no
// replica; a portal in no network has no replica in format 3 either.
const (
	manifestName    = "manifest.json"
	manifestSumName = "manifest.sha256"

	// backupFormat is raised when an older binary could not restore the new format.
	backupFormat = 3

	maxManifestBytes = 64 << 10
	maxKeyBytes      = 4 << 10
	// maxDatabaseBytes bounds the bytes that a restore writes for a forged size in a header. It is far
	// above the disk of a portal.
	maxDatabaseBytes = 1 << 40
)

// Manifest lists the contents of a backup, in its JSON form. It is the first member.
type Manifest struct {
	Format    int            `json:"format"`
	Schema    int64          `json:"schema"`
	App       string         `json:"app"` // version of the program that made the backup
	CreatedAt time.Time      `json:"created_at"`
	Members   []Member       `json:"members"`
	Rows      map[string]int `json:"rows"`
	// Blobs is the number of the files of messages, BlobBytes their total size.
	Blobs     int   `json:"blobs,omitempty"`
	BlobBytes int64 `json:"blob_bytes,omitempty"`
}

// Member is one file of a backup. SHA256 is lower-case hexadecimal.
type Member struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// memberNames returns the files of a backup in order, with the largest size of each: always the sealing
// key and the database, the others if has reports that they exist. The root key may be kept elsewhere;
// then the folder has only its public half.
func memberNames(has func(name string) bool) []Member {
	var list []Member
	for _, f := range []Member{{Name: ident.PortalKeyFile, Size: maxKeyBytes},
		{Name: ident.PublicKeyFile, Size: maxKeyBytes}, {Name: ident.SealKeyFile, Size: maxKeyBytes},
		{Name: ident.OperationalKeysFile, Size: maxKeyBytes}, {Name: usage.PricesFile, Size: usage.MaxPrices},
		{Name: sqlite.FileName, Size: maxDatabaseBytes},
		{Name: replica.FileName, Size: maxDatabaseBytes}} {
		if f.Name == ident.SealKeyFile || f.Name == sqlite.FileName || has(f.Name) {
			list = append(list, f)
		}
	}
	return list
}

// inFolder returns a function that reports whether a file exists in a folder, for memberNames.
func inFolder(dir string) func(name string) bool {
	return func(name string) bool {
		_, err := os.Stat(filepath.Join(dir, name))
		return err == nil
	}
}

// ErrDamaged is wrapped by errors about a backup that differs from the one written.
var ErrDamaged = errors.New("the backup is damaged or incomplete; use another one")

func damagedError(format string, args ...any) error {
	return fmt.Errorf("%w (%s)", ErrDamaged, fmt.Sprintf(format, args...))
}

// packer writes a manifest and its members in the only encoding that a backup has, so that unpack can
// compare every byte.
type packer struct{ tw *tar.Writer }

func newPacker(w io.Writer) packer { return packer{tar.NewWriter(w)} }

func (p packer) writeHeader(name string, size int64, at time.Time) error {
	return p.tw.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o600,
		ModTime: at.Truncate(time.Second), Format: tar.FormatGNU})
}

func (p packer) packSmall(name string, b []byte, at time.Time) error {
	if err := p.writeHeader(name, int64(len(b)), at); err != nil {
		return err
	}
	_, err := p.tw.Write(b)
	return err
}

func manifestSum(manifest []byte) []byte {
	return fmt.Appendf(nil, "%x  %s\n", sha256.Sum256(manifest), manifestName)
}

// pack writes the backup of the files in dir, with the blobs that the database in dir names. It hashes the
// written bytes again: a file that changed since m was made is an error.
func pack(ctx context.Context, w io.Writer, m Manifest, dir string, blobs openBlob) error {
	manifest, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	p := newPacker(w)
	if err := p.packSmall(manifestName, manifest, m.CreatedAt); err != nil {
		return err
	}
	for _, f := range m.Members {
		if err := p.writeHeader(f.Name, f.Size, m.CreatedAt); err != nil {
			return err
		}
		sum, err := copyFile(ctx, p.tw, filepath.Join(dir, f.Name))
		if err != nil {
			return err
		}
		if sum != f.SHA256 {
			return fmt.Errorf("%s changed while it was backed up", f.Name)
		}
	}
	if err := packBlobs(ctx, p, m, filepath.Join(dir, sqlite.FileName), blobs); err != nil {
		return err
	}
	if err := p.packSmall(manifestSumName, manifestSum(manifest), m.CreatedAt); err != nil {
		return err
	}
	return p.tw.Close()
}

// copyFile copies a file to w and returns its SHA-256 in hexadecimal.
func copyFile(ctx context.Context, w io.Writer, path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	return copySum(ctx, w, f)
}

// copyBlob is copyFile for a blob.
func copyBlob(ctx context.Context, w io.Writer, blobs openBlob, hash string) (string, error) {
	f, err := blobs(ctx, hash)
	if err != nil {
		return "", err
	}
	defer f.Close()
	return copySum(ctx, w, f)
}

func copySum(ctx context.Context, w io.Writer, r io.Reader) (string, error) {
	h := sha256.New()
	if _, err := io.Copy(io.MultiWriter(w, h), chats.CtxReader{Ctx: ctx, In: r}); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// unpack reads a backup into dir and refuses any bytes that pack would not write, with an error that
// wraps ErrDamaged. While it reads, it packs the same content again and compares every byte, including
// headers, padding and end.
func unpack(ctx context.Context, r io.Reader, dir string) (Manifest, error) {
	u := &unpacker{got: sha256.New(), want: sha256.New(), dir: dir}
	u.in = io.TeeReader(chats.CtxReader{Ctx: ctx, In: r}, u.got)
	u.tr, u.again = tar.NewReader(u.in), newPacker(u.want)
	m, err := u.unpackAll()
	if cause := ctx.Err(); cause != nil {
		return m, cause
	}
	return m, err
}

type unpacker struct {
	in        io.Reader
	got, want hash.Hash
	tr        *tar.Reader
	again     packer
	dir       string
}

func (u *unpacker) unpackAll() (Manifest, error) {
	var m Manifest
	manifest, err := u.readSmall(manifestName, maxManifestBytes)
	if err != nil {
		return m, err
	}
	if err := json.Unmarshal(manifest, &m); err != nil {
		return m, damagedError("its manifest cannot be read")
	}
	if m.Format > backupFormat {
		return m, fmt.Errorf("the backup has format %d, this binary knows up to %d: use the newer agentsite", m.Format,
			backupFormat)
	}
	if err := checkManifest(m); err != nil {
		return m, err
	}
	if newest := sqlite.SchemaVersion(); m.Schema > newest {
		return m, fmt.Errorf("the backup has schema %d, this binary knows up to %d: use the newer agentsite (it was made by %q)", m.Schema, newest, m.App)
	}
	if err := u.again.packSmall(manifestName, manifest, m.CreatedAt); err != nil {
		return m, damagedError("its manifest is not ours")
	}
	for _, f := range m.Members {
		if err := u.writeMember(f, m.CreatedAt); err != nil {
			return m, err
		}
	}
	if err := u.writeBlobs(m); err != nil {
		return m, err
	}
	sum, err := u.readSmall(manifestSumName, maxManifestBytes)
	if err != nil {
		return m, err
	}
	if !bytes.Equal(sum, manifestSum(manifest)) {
		return m, damagedError("its manifest does not have the hash it should")
	}
	if err := errors.Join(u.again.packSmall(manifestSumName, sum, m.CreatedAt), u.again.tw.Close()); err != nil {
		return m, err
	}
	// Read to the end: bytes after the last member are not written by pack.
	if _, err := u.tr.Next(); err != io.EOF {
		return m, damagedError("something follows its last member")
	}
	if _, err := io.Copy(io.Discard, u.in); err != nil {
		return m, damagedError("%v", err)
	}
	if !bytes.Equal(u.got.Sum(nil), u.want.Sum(nil)) {
		return m, damagedError("bytes between its members changed")
	}
	return m, nil
}

func checkManifest(m Manifest) error {
	has := func(name string) bool {
		return slices.ContainsFunc(m.Members, func(f Member) bool { return f.Name == name })
	}
	names := memberNames(func(name string) bool { return has(name) && (m.Format >= 3 || name == ident.PortalKeyFile) })
	if !has(ident.PortalKeyFile) && !has(ident.PublicKeyFile) {
		return damagedError("its manifest names no key of the portal")
	}
	if m.Format < 1 || m.Schema < 1 || len(m.Members) != len(names) || m.Blobs < 0 || m.BlobBytes < 0 ||
		m.Format == 1 && m.Blobs > 0 {
		return damagedError("its manifest is not one of ours")
	}
	for i, f := range m.Members {
		if f.Name != names[i].Name || f.Size < 1 || f.Size > names[i].Size {
			return damagedError("its manifest names %q with %d bytes", f.Name, f.Size)
		}
	}
	return nil
}

// nextMember goes to the next member and returns its size. Another name is an ErrDamaged.
func (u *unpacker) nextMember(name string) (int64, error) {
	h, err := u.tr.Next()
	if err != nil {
		return 0, damagedError("%s: %v", name, err)
	}
	if h.Name != name || !plainFile(h) {
		return 0, damagedError("%q stands where %s should", h.Name, name)
	}
	return h.Size, nil
}

// plainFile reports whether an entry is as pack writes it. Links are refused, and sparse files, which
// grow when read.
func plainFile(h *tar.Header) bool { return h.Typeflag == tar.TypeReg && h.Format == tar.FormatGNU }

func (u *unpacker) readSmall(name string, maxBytes int64) ([]byte, error) {
	size, err := u.nextMember(name)
	if err != nil {
		return nil, err
	}
	if size > maxBytes {
		return nil, damagedError("%s is too long", name)
	}
	b := make([]byte, size)
	if _, err := io.ReadFull(u.tr, b); err != nil {
		return nil, damagedError("%s: %v", name, err)
	}
	return b, nil
}

// writeMember writes the next member to its file and returns after the file is on disk. A wrong size or
// hash is an ErrDamaged.
func (u *unpacker) writeMember(want Member, at time.Time) error {
	size, err := u.nextMember(want.Name)
	if err != nil {
		return err
	}
	if size != want.Size {
		return damagedError("%s has %d bytes instead of %d", want.Name, size, want.Size)
	}
	return u.writeFile(want, at)
}

// writeFile writes the current member, readable by its owner only. An existing file is an error.
func (u *unpacker) writeFile(want Member, at time.Time) error {
	f, err := os.OpenFile(filepath.Join(u.dir, filepath.FromSlash(want.Name)), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := u.again.writeHeader(want.Name, want.Size, at); err != nil {
		return err
	}
	h := sha256.New()
	out := &chats.DiskWriter{W: f}
	if _, err := io.Copy(io.MultiWriter(out, h, u.again.tw), u.tr); err != nil {
		if out.Err != nil {
			return fmt.Errorf("write %s: %w", want.Name, out.Err)
		}
		return damagedError("%s: %v", want.Name, err)
	}
	if hex.EncodeToString(h.Sum(nil)) != want.SHA256 {
		return damagedError("%s is not what was backed up", want.Name)
	}
	return errors.Join(f.Sync(), f.Close())
}
