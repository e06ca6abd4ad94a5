package store_test

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"testing"
	"testing/iotest"

	"agentsite/internal/ident"
	"agentsite/internal/testing/pgtest"
	"agentsite/internal/testing/storetest"
	"agentsite/store/engine"
)

// Files are kept in parts on PostgreSQL: of a range only its parts are read, and nothing is written into the
// data folder.
func TestBlobs_InParts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := ident.CreateKeys(dir); err != nil {
		t.Fatal(err)
	}
	db := storetest.OpenOn(t, dir, pgtest.NewDatabase(t))
	const size = 20<<20 + 77
	content := make([]byte, size)
	for i, r := 0, rand.NewPCG(1, 2); i+8 <= size; i += 8 {
		v := r.Uint64()
		for j := range 8 {
			content[i+j] = byte(v >> (8 * j))
		}
	}
	hash, n, _, err := db.PutBlob(t.Context(), iotest.HalfReader(bytes.NewReader(content)), size)
	if err != nil || n != size {
		t.Fatal(n, err)
	}
	f, err := db.OpenBlob(t.Context(), hash)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := iotest.TestReader(f, content); err != nil {
		t.Error(err)
	}
	// Of the whole file only the two parts around 10 MiB stay, which a range of it needs.
	if err := db.Write(t.Context(), func(w engine.Tx) error {
		_, err := w.Exec(`DELETE FROM blob_parts WHERE part NOT IN (39, 40)`)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Seek(10<<20-1000, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 2000)
	if _, err := io.ReadFull(f, got); err != nil || !bytes.Equal(got, content[10<<20-1000:10<<20+1000]) {
		t.Error("another range", err)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Read(got); err == nil {
		t.Error("a missing part was read")
	}
	// An upload that is broken off leaves nothing.
	before := len(blobs(t, db))
	if _, _, _, err := db.PutBlob(t.Context(), io.MultiReader(bytes.NewReader(content[:1<<20]), iotest.ErrReader(io.ErrUnexpectedEOF)), size); err == nil {
		t.Error("half a file was stored")
	}
	if _, _, _, err := db.PutBlob(t.Context(), bytes.NewReader(content), 1<<20); err == nil {
		t.Error("a file beyond its limit was stored")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, _, err := db.PutBlob(ctx, bytes.NewReader(content), size); err == nil {
		t.Error("a file was stored after its request ended")
	}
	if n := len(blobs(t, db)); n != before {
		t.Errorf("%d blobs, before %d", n, before)
	}
	if list := blobFiles(t, dir); len(list) != 0 {
		t.Errorf("in the data folder lies %v", list)
	}
}
