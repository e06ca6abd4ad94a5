package store

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"agentsite/store/chats"
	"agentsite/store/sqlite"
)

type blobRow struct {
	Hash string `db:"hash"`
	Size int64  `db:"size"`
}

// eachBlob calls fn for each file of a message that the database at path lists, in the order of the
// hashes, until fn fails. Databases of schemas before 3 have none.
func eachBlob(ctx context.Context, path string, fn func(blobRow) error) error {
	pool, err := sqlite.ConnectReadOnly(path)
	if err != nil {
		return err
	}
	defer pool.Close()
	c, err := pool.Connx(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	if schema, err := sqlite.SchemaOf(ctx, c); err != nil || schema < 3 {
		return err
	}
	var failed error
	err = sqlite.EachRow(ctx, c, func(b blobRow) {
		if failed == nil {
			failed = fn(b)
		}
	}, `SELECT hash, size FROM files ORDER BY hash`)
	if failed != nil {
		return failed
	}
	return err
}

// packBlobs writes the blobs that the database lists. A blob with content of another hash is an
// error, because the backup would be damaged.
func packBlobs(ctx context.Context, p packer, m Manifest, database string, blobs openBlob) error {
	n, size := 0, int64(0)
	err := eachBlob(ctx, database, func(b blobRow) error {
		name := chats.BlobPath(b.Hash)
		if err := p.writeHeader(filepath.ToSlash(name), b.Size, m.CreatedAt); err != nil {
			return err
		}
		sum, err := copyBlob(ctx, p.tw, blobs, b.Hash)
		if err != nil {
			return err
		}
		if sum != b.Hash {
			return fmt.Errorf("the file %s is damaged", b.Hash)
		}
		n, size = n+1, size+b.Size
		return nil
	})
	if err == nil && (n != m.Blobs || size != m.BlobBytes) {
		err = fmt.Errorf("the copy names %d files with %d bytes instead of %d with %d", n, size, m.Blobs, m.BlobBytes)
	}
	return err
}

// writeBlobs writes the blobs of the backup to the folder of each hash. It bounds them by the sizes in
// the manifest.
func (u *unpacker) writeBlobs(m Manifest) error {
	last, left := "", m.BlobBytes
	for range m.Blobs {
		h, err := u.tr.Next()
		if err != nil {
			return damagedError("a file of a message: %v", err)
		}
		hash := h.Name[strings.LastIndexByte(h.Name, '/')+1:]
		if name := chats.BlobPath(hash); name == "" || filepath.ToSlash(name) != h.Name || !plainFile(h) {
			return damagedError("%q stands where a file of a message should", h.Name)
		}
		if left -= h.Size; h.Size < 0 || left < 0 || hash <= last {
			return damagedError("the file %s of a message does not belong there", hash)
		}
		last = hash
		for _, dir := range []string{chats.BlobsDir, filepath.Dir(chats.BlobPath(hash))} {
			if err := chats.MakeDir(filepath.Join(u.dir, dir)); err != nil {
				return err
			}
		}
		if err := u.writeFile(Member{Name: h.Name, Size: h.Size, SHA256: hash}, m.CreatedAt); err != nil {
			return err
		}
	}
	if left != 0 {
		return damagedError("its files of messages have %d bytes less than they should", left)
	}
	return u.flushBlobs()
}

// flushBlobs makes the names of unpacked blobs durable, by a flush of each folder.
func (u *unpacker) flushBlobs() error {
	root := filepath.Join(u.dir, chats.BlobsDir)
	folders, err := os.ReadDir(root)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, f := range folders {
		if err := sqlite.SyncDir(filepath.Join(root, f.Name())); err != nil {
			return err
		}
	}
	return sqlite.SyncDir(root)
}
