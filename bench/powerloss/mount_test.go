package main

import (
	"bytes"
	"io"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// mounted returns a mounted folder and its disk; the test is skipped where
// FUSE is not to be had.
func mounted(t *testing.T) (string, *disk) {
	t.Helper()
	if _, err := os.Stat("/dev/fuse"); err != nil {
		t.Skip("no /dev/fuse")
	}
	dir, d := t.TempDir(), newDisk()
	server, err := mount(dir, d)
	if err != nil {
		t.Skip("cannot mount: ", err)
	}
	t.Cleanup(func() { unmount(server, dir) })
	return dir, d
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func syncDir(t *testing.T, dir string) {
	t.Helper()
	f, err := os.Open(dir)
	check(t, err)
	check(t, f.Sync())
	check(t, f.Close())
}

func TestMount_FsyncDecides(t *testing.T) {
	dir, d := mounted(t)
	path := filepath.Join(dir, "a")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	check(t, err)
	defer f.Close()
	_, err = f.WriteString("synced")
	check(t, err)
	check(t, f.Sync())
	if got := after(d, "a"); got != "-" {
		t.Errorf("name without fsync of the folder: %q", got)
	}
	syncDir(t, dir)
	_, err = f.WriteString(", not synced")
	check(t, err)
	if got := after(d, "a"); got != "synced" {
		t.Errorf("left %q", got)
	}
	b, err := os.ReadFile(path)
	if err != nil || string(b) != "synced, not synced" {
		t.Errorf("users see %q, %v", b, err)
	}
	check(t, syscall.Fdatasync(int(f.Fd())))
	if got := after(d, "a"); got != "synced, not synced" {
		t.Errorf("after fdatasync left %q", got)
	}
	if _, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL, 0o600); !os.IsExist(err) {
		t.Errorf("O_EXCL on a file that exists: %v", err)
	}
	check(t, os.Truncate(path, 2))
	if got := after(d, "a"); got != "synced, not synced" {
		t.Errorf("unsynced truncation left %q", got)
	}
	check(t, os.WriteFile(path, []byte("new"), 0o600)) // O_TRUNC
	if b, _ := os.ReadFile(path); string(b) != "new" {
		t.Errorf("O_TRUNC: users see %q", b)
	}
}

func TestMount_LinkRenameUnlink(t *testing.T) {
	dir, d := mounted(t)
	at := func(name string) string { return filepath.Join(dir, name) }
	f, err := os.CreateTemp(dir, ".key-*")
	check(t, err)
	_, err = f.WriteString("k")
	check(t, err)
	check(t, f.Sync())
	check(t, f.Close())
	check(t, os.Link(f.Name(), at("key")))
	if err := os.Link(f.Name(), at("key")); !os.IsExist(err) {
		t.Errorf("link over a name: %v", err)
	}
	st, err := os.Stat(at("key"))
	check(t, err)
	if n := st.Sys().(*syscall.Stat_t).Nlink; n != 2 {
		t.Errorf("nlink %d", n)
	}
	check(t, os.Remove(f.Name()))
	check(t, os.Rename(at("key"), at("kept")))
	if got := after(d, "kept"); got != "-" {
		t.Errorf("left %q before the folder was synced", got)
	}
	syncDir(t, dir)
	if got := after(d, "kept"); got != "k" {
		t.Errorf("left %q", got)
	}
	list, err := os.ReadDir(dir)
	if err != nil || len(list) != 1 || list[0].Name() != "kept" {
		t.Errorf("the folder lists %v, %v", list, err)
	}
}

// TestMount_SharedMapping is what SQLite does with its -shm: two descriptors,
// two mappings, one memory.
func TestMount_SharedMapping(t *testing.T) {
	dir, _ := mounted(t)
	path := filepath.Join(dir, "shm")
	var maps [2][]byte
	for i := range maps {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
		check(t, err)
		defer f.Close()
		check(t, f.Truncate(32<<10))
		maps[i], err = syscall.Mmap(int(f.Fd()), 0, 32<<10, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
		check(t, err)
		defer syscall.Munmap(maps[i])
	}
	copy(maps[0][5000:], "seen by both")
	if !bytes.HasPrefix(maps[1][5000:], []byte("seen by both")) {
		t.Error("mappings of one file differ")
	}
}

func TestMount_Locks(t *testing.T) {
	dir, _ := mounted(t)
	open := func() *os.File {
		f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
		check(t, err)
		t.Cleanup(func() { f.Close() })
		return f
	}
	a, b := open(), open()
	check(t, syscall.Flock(int(a.Fd()), syscall.LOCK_EX|syscall.LOCK_NB))
	if err := syscall.Flock(int(b.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != syscall.EWOULDBLOCK {
		t.Errorf("second flock: %v", err)
	}
	check(t, a.Close())
	check(t, syscall.Flock(int(b.Fd()), syscall.LOCK_EX|syscall.LOCK_NB))
}

func TestMount_Socket(t *testing.T) {
	dir, d := mounted(t)
	path := filepath.Join(dir, "s")
	l, err := net.Listen("unix", path)
	check(t, err)
	defer l.Close()
	check(t, os.Chmod(path, 0o600))
	go func() {
		if c, err := l.Accept(); err == nil {
			io.WriteString(c, "hello")
			c.Close()
		}
	}()
	c, err := net.Dial("unix", path)
	check(t, err)
	defer c.Close()
	if b, err := io.ReadAll(c); err != nil || string(b) != "hello" {
		t.Errorf("%q, %v", b, err)
	}
	syncDir(t, dir)
	if got := after(d, "s"); got != "-" {
		t.Error("a socket was kept as data")
	}
}

// TestMount_Folders is how a program puts a file in its place whole.
func TestMount_Folders(t *testing.T) {
	dir, d := mounted(t)
	tmp, err := os.MkdirTemp(dir, "tmp-")
	check(t, err)
	f, err := os.OpenFile(filepath.Join(tmp, "db"), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	check(t, err)
	defer f.Close()
	_, err = f.WriteString("whole")
	check(t, err)
	check(t, f.Sync())
	check(t, os.Link(f.Name(), filepath.Join(dir, "db")))
	check(t, os.RemoveAll(tmp))
	syncDir(t, dir)
	if r := d.cut(0, nil); len(r.files) != 1 || after(d, "db") != "whole" {
		t.Errorf("left %v", r.files)
	}
}

func TestMount_HasFreeSpace(t *testing.T) {
	dir, _ := mounted(t)
	var s syscall.Statfs_t
	check(t, syscall.Statfs(dir, &s))
	if free := int64(s.Bavail) * s.Bsize; free < 1<<30 {
		t.Errorf("%d bytes are free", free)
	}
}
