package main

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func (d *disk) make(t *testing.T, name string) *file {
	t.Helper()
	f, errno := d.create(d.root, name, syscall.S_IFREG|0600)
	if errno != 0 {
		t.Fatal(errno)
	}
	return f
}

// after returns what a plain cut leaves, as text; an absent file is "-".
func after(d *disk, name string) string {
	l, ok := d.cut(0, nil).files[name]
	if !ok {
		return "-"
	}
	return string(l.data)
}

func TestCut_KeepsOnlyWhatWasSynced(t *testing.T) {
	d := newDisk()
	f := d.make(t, "a")
	d.write(f, []byte("one"), 0)
	if got := after(d, "a"); got != "-" {
		t.Errorf("a name that was not synced is left with %q", got)
	}
	d.syncNames(d.root)
	if got := after(d, "a"); got != "" {
		t.Errorf("bytes that were not synced are left: %q", got)
	}
	d.sync(f)
	d.write(f, []byte("two more"), 3)
	if got := after(d, "a"); got != "one" {
		t.Errorf("left %q, want one", got)
	}
	d.sync(f)
	if got := after(d, "a"); got != "onetwo more" {
		t.Errorf("left %q", got)
	}
	d.write(f, []byte("X"), 0) // overwritten in place
	if got := after(d, "a"); got != "onetwo more" {
		t.Errorf("left %q", got)
	}
}

// A failed fsync reports an error and loses the changes, which stay visible, for good.
func TestFail_LosesTheChanges(t *testing.T) {
	d := newDisk()
	f := d.make(t, "a")
	d.syncNames(d.root)
	d.write(f, []byte("old"), 0)
	d.sync(f)
	d.write(f, []byte("new"), 0)
	for _, line := range []string{"fail", "heal"} {
		if got, err := command(d, line); err != nil || got != "done" {
			t.Fatalf("%s: %q %v", line, got, err)
		}
		want := syscall.EIO
		if line == "heal" {
			want = 0
		}
		if got, names := d.sync(f), d.syncNames(d.root); got != want || names != want {
			t.Errorf("after %s: fsync of the file %v, of the folder %v", line, got, names)
		}
		seen := make([]byte, 3)
		d.read(f, seen, 0)
		if got := after(d, "a"); got != "old" || string(seen) != "new" {
			t.Errorf("after %s: %q is safe, %q is seen", line, got, seen)
		}
	}
}

func TestCut_Truncation(t *testing.T) {
	d := newDisk()
	f := d.make(t, "a")
	d.write(f, []byte("0123456789"), 0)
	d.sync(f)
	d.syncNames(d.root)
	d.truncate(f, 4)
	if got := after(d, "a"); got != "0123456789" {
		t.Errorf("an unsynced truncation took bytes: %q", got)
	}
	d.truncate(f, 6)
	d.sync(f)
	if got := after(d, "a"); got != "0123\x00\x00" {
		t.Errorf("shrunk and grown: left %q", got)
	}
}

func TestCut_Names(t *testing.T) {
	d := newDisk()
	a, b := d.make(t, "a"), d.make(t, "b")
	d.write(a, []byte("A"), 0)
	d.write(b, []byte("B"), 0)
	d.sync(a)
	d.sync(b)
	d.syncNames(d.root)
	if errno := d.rename(d.root, "a", d.root, "b", true); errno != syscall.EEXIST {
		t.Errorf("rename without replacing: %v", errno)
	}
	d.rename(d.root, "a", d.root, "b", false)
	d.link(a, d.root, "c")
	if got := after(d, "a") + after(d, "b") + after(d, "c"); got != "AB-" {
		t.Errorf("unsynced names: left %q", got)
	}
	d.syncNames(d.root)
	if got := after(d, "a") + after(d, "b") + after(d, "c"); got != "-AA" {
		t.Errorf("synced names: left %q", got)
	}
	d.remove(d.root, "c", false)
	if got := after(d, "c"); got != "A" {
		t.Errorf("an unsynced removal: left %q", got)
	}
	if r := d.cut(0, nil); r.forgotten != 1 {
		t.Errorf("forgotten %d names, want 1", r.forgotten)
	}
	if errno := d.link(a, d.root, "b"); errno != syscall.EEXIST {
		t.Errorf("link over a file: %v", errno)
	}
}

func TestCut_Folders(t *testing.T) {
	d := newDisk()
	sub, _ := d.create(d.root, "sub", syscall.S_IFDIR|0700)
	f, _ := d.create(sub, "a", syscall.S_IFREG|0600)
	d.write(f, []byte("A"), 0)
	d.sync(f)
	d.syncNames(sub)
	if got := after(d, "sub/a"); got != "-" {
		t.Errorf("in a folder whose name is not safe: %q", got)
	}
	d.syncNames(d.root)
	if got := after(d, "sub/a"); got != "A" {
		t.Errorf("left %q", got)
	}
	if errno := d.remove(d.root, "sub", true); errno != syscall.ENOTEMPTY {
		t.Errorf("rmdir of a full folder: %v", errno)
	}
	// A move is never half done, whichever folder is synced.
	for _, synced := range []*file{sub, d.root} {
		d.rename(sub, "a", d.root, "b", false)
		if got := after(d, "sub/a") + after(d, "b"); got != "A-" {
			t.Errorf("unsynced move: left %q", got)
		}
		d.syncNames(synced)
		if got := after(d, "sub/a") + after(d, "b"); got != "-A" {
			t.Errorf("synced move: left %q", got)
		}
		d.rename(d.root, "b", sub, "a", true)
		d.syncNames(sub)
	}
	d.remove(sub, "a", false)
	d.remove(d.root, "sub", true)
	d.syncNames(d.root)
	if r := d.cut(0, nil); len(r.files) != 0 {
		t.Errorf("left %v", r.files)
	}
}

func TestCut_IsRepeatableAndLeavesTheDiskAlone(t *testing.T) {
	d := newDisk()
	f := d.make(t, "a")
	d.syncNames(d.root)
	d.write(f, bytes.Repeat([]byte("x"), 10*sectorBytes), 0)
	for range 2 {
		r := d.cut(0, nil)
		if r.lost != 10*sectorBytes || len(r.files["a"].data) != 0 {
			t.Fatalf("lost %d, left %d", r.lost, len(r.files["a"].data))
		}
	}
	d.sync(f)
	if r := d.cut(0, nil); r.lost != 0 || len(r.files["a"].data) != 10*sectorBytes {
		t.Errorf("after sync: lost %d, left %d", r.lost, len(r.files["a"].data))
	}
}

// TestCut_KeepsSomeSectors shows that what was synced is never touched by
// luck, and that luck takes single sectors.
func TestCut_KeepsSomeSectors(t *testing.T) {
	d := newDisk()
	f := d.make(t, "a")
	d.write(f, bytes.Repeat([]byte("s"), 100*sectorBytes), 0)
	d.sync(f)
	d.syncNames(d.root)
	d.write(f, bytes.Repeat([]byte("n"), 50*sectorBytes), 50*sectorBytes)
	r := d.cut(0.5, rand.New(rand.NewPCG(1, 2))).files["a"].data
	if !bytes.Equal(r[:50*sectorBytes], bytes.Repeat([]byte("s"), 50*sectorBytes)) {
		t.Error("synced bytes changed")
	}
	kept := 0
	for i := 50; i < 100; i++ {
		sector := r[i*sectorBytes : (i+1)*sectorBytes]
		n := bytes.Count(sector, []byte("n"))
		if n != 0 && n != sectorBytes {
			t.Fatalf("sector %d is half written", i)
		}
		kept += n / sectorBytes
	}
	if kept < 5 || kept > 45 {
		t.Errorf("kept %d of 50 sectors", kept)
	}
	if all := d.cut(1, rand.New(rand.NewPCG(1, 2))); all.lost != 0 || !bytes.Equal(all.files["a"].data, f.data) {
		t.Error("with probability 1 everything is kept")
	}
}

// TestDisk_AgainstAModel compares random operations with two byte slices.
func TestDisk_AgainstAModel(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 7))
		d := newDisk()
		f := d.make(t, "a")
		d.syncNames(d.root)
		var data, safe []byte
		for range 200 {
			switch rng.IntN(6) {
			case 0, 1, 2:
				off, n := rng.IntN(4000), 1+rng.IntN(1500)
				p := make([]byte, n)
				for i := range p {
					p[i] = byte(rng.Uint32())
				}
				if off+n > len(data) {
					data = append(data, make([]byte, off+n-len(data))...)
				}
				copy(data[off:], p)
				d.write(f, p, int64(off))
			case 3:
				n := rng.IntN(6000)
				if n <= len(data) {
					data = append([]byte(nil), data[:n]...)
				} else {
					data = append(data, make([]byte, n-len(data))...)
				}
				d.truncate(f, uint64(n))
			case 4:
				safe = append([]byte(nil), data...)
				d.sync(f)
			}
			if !bytes.Equal(d.root.names["a"].data, data) {
				t.Fatalf("seed %d: data differs", seed)
			}
			if got := d.cut(0, nil).files["a"].data; !bytes.Equal(got, safe) {
				t.Fatalf("seed %d: left %d bytes, want %d", seed, len(got), len(safe))
			}
			if got := d.cut(1, rng).files["a"].data; !bytes.Equal(got, data) {
				t.Fatalf("seed %d: keep 1 left %d bytes, want %d", seed, len(got), len(data))
			}
		}
	}
}

func TestLoadAndSave(t *testing.T) {
	from, to := t.TempDir(), filepath.Join(t.TempDir(), "image")
	if err := os.WriteFile(filepath.Join(from, "key"), []byte("k"), 0o600); err != nil {
		t.Fatal(err)
	}
	d := newDisk()
	if err := d.load(from); err != nil {
		t.Fatal(err)
	}
	d.create(d.root, "sock", syscall.S_IFSOCK|0600)
	d.syncNames(d.root)
	line, err := command(d, "cut "+to)
	if err != nil || line != "cut files=1 lost=0 forgotten=0 syncs=1" {
		t.Fatalf("%q, %v", line, err)
	}
	b, err := os.ReadFile(filepath.Join(to, "key"))
	st, _ := os.Stat(filepath.Join(to, "key"))
	if err != nil || string(b) != "k" || st.Mode().Perm() != 0o600 {
		t.Errorf("%q %v %v", b, st.Mode(), err)
	}
	for _, bad := range []string{"", "cut", "cut a 2 1", "cut a x 1", "burn a", "cut " + to} {
		if _, err := command(d, bad); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}
