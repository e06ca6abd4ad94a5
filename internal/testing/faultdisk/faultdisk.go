// Package faultdisk lets tests see the changes that SQLite makes to files, one system call at a time,
// and make them fail. A test can copy a folder before each change, which is the state after a kill at that
// moment, or refuse a change as a full disk does. It replaces the system calls in SQLite's table, so it
// works with the databases that product code opens; the product's own writes are not seen.
package faultdisk

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"unsafe"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
)

// Change is a system call that SQLite is about to make. Large writes are made in two halves, so that
// half a page can be on disk.
type Change struct {
	Call string // "write", "ftruncate" or "unlink"
	Path string
}

// watch is a folder whose changes a test wants to see.
type watch struct {
	dir    string
	mu     sync.Mutex // serializes before
	before func(Change) syscall.Errno
}

var table struct {
	sync.RWMutex
	watches []*watch

	// The calls of the operating system, as SQLite had them.
	write     func(*libc.TLS, int32, uintptr, lib.Tsize_t) lib.Tssize_t
	pwrite    func(*libc.TLS, int32, uintptr, lib.Tsize_t, lib.Toff_t) lib.Tssize_t
	ftruncate func(*libc.TLS, int32, lib.Toff_t) int32
	unlink    func(*libc.TLS, uintptr) int32
}

// These are variables, because SQLite keeps their address.
var (
	writeCall     = write
	pwriteCall    = pwrite
	ftruncateCall = ftruncate
	unlinkCall    = unlink
)

// Install replaces the system calls of SQLite in this process. Call it in TestMain, before any database
// is open, because SQLite reads its table without a lock.
func Install() {
	tls := libc.NewTLS()
	defer tls.Close()
	vfs := lib.Xsqlite3_vfs_find(tls, 0)
	for name, call := range map[string]struct{ ours, theirs unsafe.Pointer }{
		"write":     {unsafe.Pointer(&writeCall), unsafe.Pointer(&table.write)},
		"pwrite":    {unsafe.Pointer(&pwriteCall), unsafe.Pointer(&table.pwrite)},
		"pwrite64":  {unsafe.Pointer(&pwriteCall), unsafe.Pointer(&table.pwrite)},
		"ftruncate": {unsafe.Pointer(&ftruncateCall), unsafe.Pointer(&table.ftruncate)},
		"unlink":    {unsafe.Pointer(&unlinkCall), unsafe.Pointer(&table.unlink)},
	} {
		replaceCall(tls, vfs, name, call.ours, call.theirs)
	}
}

// replaceCall sets a system call of a VFS to the function variable at ours, and the one at theirs to the
// call that it had. A call that this build of SQLite does not use stays as it is.
func replaceCall(tls *libc.TLS, vfs uintptr, name string, ours, theirs unsafe.Pointer) {
	zName, err := libc.CString(name)
	if err != nil {
		panic(err)
	}
	defer libc.Xfree(tls, zName)
	v := (*lib.Tsqlite3_vfs)(pointer(vfs))
	get := *(*func(*libc.TLS, uintptr, uintptr) uintptr)(unsafe.Pointer(&struct{ uintptr }{v.FxGetSystemCall}))
	set := *(*func(*libc.TLS, uintptr, uintptr, uintptr) int32)(unsafe.Pointer(&struct{ uintptr }{v.FxSetSystemCall}))
	was := get(tls, vfs, zName)
	if was == 0 {
		return
	}
	// SQLite's table holds values of Go functions.
	*(*uintptr)(theirs) = was
	if rc := set(tls, vfs, zName, *(*uintptr)(ours)); rc != lib.SQLITE_OK {
		panic(fmt.Sprintf("SQLite did not take the system call %s: %d", name, rc))
	}
}

// pointer converts an address outside Go's memory.
func pointer(at uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&at)) }

// Watch calls before ahead of each change to a file in dir or below, until the function that it returns
// is called. A change fails with the error number that before returns, unless that is 0. before is called
// by one goroutine at a time; it must not use a database in dir.
func Watch(dir string, before func(Change) syscall.Errno) (stop func()) {
	w := &watch{dir: dir + string(filepath.Separator), before: before}
	table.Lock()
	defer table.Unlock()
	table.watches = append(table.watches, w)
	return func() {
		table.Lock()
		defer table.Unlock()
		for i, other := range table.watches {
			if other == w {
				table.watches = append(table.watches[:i:i], table.watches[i+1:]...)
				return
			}
		}
	}
}

// watchOf returns the watch of the folder that holds path, which is called only if there is any; nil
// for none.
func watchOf(path func() string) (*watch, string) {
	table.RLock()
	defer table.RUnlock()
	if len(table.watches) == 0 {
		return nil, ""
	}
	name := path()
	for _, w := range table.watches {
		if strings.HasPrefix(name, w.dir) {
			return w, name
		}
	}
	return nil, ""
}

// refuse reports whether the test refuses a change, and sets errno then.
func (w *watch) refuse(tls *libc.TLS, call, path string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	errno := w.before(Change{call, path})
	if errno != 0 {
		*(*int32)(pointer(libc.X__errno_location(tls))) = int32(errno)
	}
	return errno != 0
}

func pathOf(fd int32) func() string {
	return func() string {
		name, _ := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
		return name
	}
}

func write(tls *libc.TLS, fd int32, buf uintptr, n lib.Tsize_t) lib.Tssize_t {
	return halves(tls, fd, n, func(from, n lib.Tsize_t) lib.Tssize_t {
		return table.write(tls, fd, buf+uintptr(from), n)
	})
}

func pwrite(tls *libc.TLS, fd int32, buf uintptr, n lib.Tsize_t, at lib.Toff_t) lib.Tssize_t {
	return halves(tls, fd, n, func(from, n lib.Tsize_t) lib.Tssize_t {
		return table.pwrite(tls, fd, buf+uintptr(from), n, at+lib.Toff_t(from))
	})
}

// halves makes a watched write of n bytes in two parts, and any other at once.
func halves(tls *libc.TLS, fd int32, n lib.Tsize_t, part func(from, n lib.Tsize_t) lib.Tssize_t) lib.Tssize_t {
	w, path := watchOf(pathOf(fd))
	if w == nil {
		return part(0, n)
	}
	if w.refuse(tls, "write", path) {
		return -1
	}
	first := part(0, n/2)
	if first < lib.Tssize_t(n/2) {
		return first
	}
	if w.refuse(tls, "write", path) {
		if n/2 == 0 {
			return -1
		}
		return first // SQLite tries the rest, and is refused.
	}
	rest := part(n/2, n-n/2)
	if rest < 0 {
		return first
	}
	return first + rest
}

func ftruncate(tls *libc.TLS, fd int32, size lib.Toff_t) int32 {
	if w, path := watchOf(pathOf(fd)); w != nil && w.refuse(tls, "ftruncate", path) {
		return -1
	}
	return table.ftruncate(tls, fd, size)
}

func unlink(tls *libc.TLS, name uintptr) int32 {
	if w, path := watchOf(func() string { return libc.GoString(name) }); w != nil && w.refuse(tls, "unlink", path) {
		return -1
	}
	return table.unlink(tls, name)
}

// Count returns the number of changes that run makes to a copy of dir.
func Count(t *testing.T, dir string, run func(dir string)) (changes int) {
	t.Helper()
	live := CopyFolder(t, dir)
	stop := Watch(live, func(Change) syscall.Errno { changes++; return 0 })
	defer stop()
	run(live)
	if changes == 0 {
		t.Fatal("SQLite changed nothing: is faultdisk installed in TestMain?")
	}
	return changes
}

// Kills returns copies of a folder as kills leave it: run is called with a copy of dir, of which a copy
// is made before some of the changes, at most limit of them and evenly spread. run ends the test when it
// fails. It is called twice, because the first call counts the changes.
func Kills(t *testing.T, dir string, limit int, run func(dir string)) (left []string) {
	t.Helper()
	changes, n, live := Count(t, dir, run), 0, CopyFolder(t, dir)
	limit = min(limit, changes)
	stop := Watch(live, func(Change) syscall.Errno {
		if n*limit/changes != (n+1)*limit/changes {
			left = append(left, CopyFolder(t, live))
		}
		n++
		return 0
	})
	defer stop()
	run(live)
	return left
}

// CopyFolder copies a folder with all files and folders below it, and returns the copy, which the test removes.
func CopyFolder(t *testing.T, dir string) string {
	t.Helper()
	to := t.TempDir()
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return to
}
