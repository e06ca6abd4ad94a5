package main

import (
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
)

// sectorBytes is the unit that a real disk writes whole or not at all. A larger page of a database can
// be half written after a power cut.
const sectorBytes = 512

// maxFileBytes is the largest file, because files are kept in memory.
const maxFileBytes = 1 << 30

// disk is a folder in two states: as programs see it, and as a power cut would leave it (the safe
// state). It does not depend on FUSE. It is safe for concurrent use.
//
// The rules are those of POSIX, which promise a program the least: the bytes and the length of a file
// are safe after an fsync of that file; a name (created, linked, renamed or removed) is safe after an
// fsync of its folder. A file that is moved from one folder to another is always in at least one of
// them: an fsync of either folder makes the change in both safe, as a journal does.
type disk struct {
	mu    sync.Mutex // guards the fields below and the fields of every file
	root  *file
	moves [][2]*file // pairs of folders with a file moved between them since their last fsync
	syncs int64
	fails bool // true while every fsync fails with EIO
}

// file is an inode, of a file or a folder. data differs from safe only in the dirty sectors and beyond
// the shorter of the two lengths.
type file struct {
	mode  uint32 // type and permissions, as in stat(2)
	links int
	data  []byte
	safe  []byte
	dirty map[int64]struct{}

	// These fields are set for a folder only.
	names     map[string]*file
	safeNames map[string]*file // names at the last fsync of the folder
}

func newDisk() *disk { return &disk{root: newFile(syscall.S_IFDIR | 0700)} }

func newFile(mode uint32) *file {
	f := &file{mode: mode, links: 1}
	if f.folder() {
		f.names, f.safeNames = make(map[string]*file), make(map[string]*file)
	} else {
		f.dirty = make(map[int64]struct{})
	}
	return f
}

func (f *file) folder() bool  { return f.mode&syscall.S_IFMT == syscall.S_IFDIR }
func (f *file) regular() bool { return f.mode&syscall.S_IFMT == syscall.S_IFREG }

// load reads the files and folders in dir; all of them are safe.
func (d *disk) load(dir string) error { return d.root.load(dir) }

func (f *file) load(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			return err
		}
		path := filepath.Join(dir, e.Name())
		var child *file
		switch {
		case e.IsDir():
			child = newFile(syscall.S_IFDIR | uint32(info.Mode().Perm()))
			if err := child.load(path); err != nil {
				return err
			}
		case e.Type().IsRegular():
			child = newFile(syscall.S_IFREG | uint32(info.Mode().Perm()))
			if child.data, err = os.ReadFile(path); err != nil {
				return err
			}
			child.safe = append([]byte(nil), child.data...)
		default:
			continue // a socket or device holds no data
		}
		f.names[e.Name()], f.safeNames[e.Name()] = child, child
	}
	return nil
}

func (d *disk) lookup(dir *file, name string) *file {
	d.mu.Lock()
	defer d.mu.Unlock()
	return dir.names[name]
}

// create creates a file, folder or special file of the given mode. It returns EEXIST if the name
// exists.
func (d *disk) create(dir *file, name string, mode uint32) (*file, syscall.Errno) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if dir.names[name] != nil {
		return nil, syscall.EEXIST
	}
	f := newFile(mode)
	dir.names[name] = f
	return f, 0
}

func (d *disk) link(f, dir *file, name string) syscall.Errno {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case f.folder():
		return syscall.EPERM
	case dir.names[name] != nil:
		return syscall.EEXIST
	}
	f.links++
	dir.names[name] = f
	return 0
}

// remove removes a name: unlink(2), or rmdir(2) when folder is set.
func (d *disk) remove(dir *file, name string, folder bool) syscall.Errno {
	d.mu.Lock()
	defer d.mu.Unlock()
	f := dir.names[name]
	switch {
	case f == nil:
		return syscall.ENOENT
	case folder && !f.folder():
		return syscall.ENOTDIR
	case !folder && f.folder():
		return syscall.EISDIR
	case len(f.names) > 0:
		return syscall.ENOTEMPTY
	}
	f.links--
	delete(dir.names, name)
	return 0
}

func (d *disk) rename(dir *file, name string, to *file, newName string, noReplace bool) syscall.Errno {
	d.mu.Lock()
	defer d.mu.Unlock()
	f, old := dir.names[name], to.names[newName]
	switch {
	case f == nil:
		return syscall.ENOENT
	case f == old:
		return 0 // both names are links of the same file: POSIX requires no change
	case old != nil && noReplace:
		return syscall.EEXIST
	case old != nil && old.folder() != f.folder():
		return syscall.ENOTDIR
	case old != nil && len(old.names) > 0:
		return syscall.ENOTEMPTY
	case old != nil:
		old.links--
	}
	delete(dir.names, name)
	to.names[newName] = f
	if dir != to {
		d.moves = append(d.moves, [2]*file{dir, to})
	}
	return 0
}

// syncNames is fsync(2) of a folder: its names become safe, and those of folders with which it
// exchanged files.
func (d *disk) syncNames(dir *file) syscall.Errno {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fails {
		return syscall.EIO
	}
	d.syncs++
	todo := []*file{dir}
	for len(todo) > 0 {
		f := todo[0]
		todo = todo[1:]
		f.safeNames = maps.Clone(f.names)
		var rest [][2]*file
		for _, m := range d.moves {
			switch f {
			case m[0]:
				todo = append(todo, m[1])
			case m[1]:
				todo = append(todo, m[0])
			default:
				rest = append(rest, m)
			}
		}
		d.moves = rest
	}
	return 0
}

func (d *disk) list(dir *file) map[string]uint32 {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := make(map[string]uint32, len(dir.names))
	for name, f := range dir.names {
		out[name] = f.mode
	}
	return out
}

func (d *disk) stat(f *file) (mode uint32, size, links int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return f.mode, len(f.data), f.links
}

func (d *disk) chmod(f *file, perm uint32) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f.mode = f.mode&syscall.S_IFMT | perm&07777
}

func (d *disk) read(f *file, p []byte, off int64) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	if off >= int64(len(f.data)) {
		return 0
	}
	return copy(p, f.data[off:])
}

func (d *disk) write(f *file, p []byte, off int64) syscall.Errno {
	d.mu.Lock()
	defer d.mu.Unlock()
	end := off + int64(len(p))
	if off < 0 || end > maxFileBytes {
		return syscall.EFBIG
	}
	if end > int64(len(f.data)) {
		f.grow(end)
	}
	copy(f.data[off:], p)
	f.mark(off, end)
	return 0
}

func (d *disk) truncate(f *file, size uint64) syscall.Errno {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case size > maxFileBytes:
		return syscall.EFBIG
	case int64(size) > int64(len(f.data)):
		f.grow(int64(size))
	default:
		clear(f.data[size:]) // the bytes must read as zeros if the file grows again
		f.data = f.data[:size]
		// The last sector, of which only a part remains, has changed.
		f.mark(int64(size), int64(size))
	}
	return 0
}

// setFails lets every fsync from now on fail, or succeed again.
func (d *disk) setFails(fails bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fails = fails
}

// sync is fsync(2) of a file: its bytes and length become safe. As on Linux, a failed fsync loses the changes: the
// next one succeeds although they are not safe.
func (d *disk) sync(f *file) syscall.Errno {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fails {
		clear(f.dirty)
		return syscall.EIO
	}
	f.safe = resize(f.safe, len(f.data))
	for s := range f.dirty {
		f.copySector(f.safe, s)
	}
	clear(f.dirty)
	d.syncs++
	return 0
}

func (f *file) grow(size int64) {
	was := int64(len(f.data))
	f.data = resize(f.data, int(size))
	f.mark(was, size)
}

// mark marks the sectors that contain the bytes [from, to) as unsafe.
func (f *file) mark(from, to int64) {
	for s := from / sectorBytes; s*sectorBytes < max(to, from+1); s++ {
		f.dirty[s] = struct{}{}
	}
}

// copySector copies one sector of f's data to the same offset of to, as far as both have it.
func (f *file) copySector(to []byte, sector int64) {
	lo := sector * sectorBytes
	hi := min(lo+sectorBytes, int64(len(f.data)), int64(len(to)))
	if lo < hi {
		copy(to[lo:hi], f.data[lo:hi])
	}
}

// resize returns b with the given length; additional bytes are zero.
func resize(b []byte, size int) []byte {
	if size <= len(b) {
		return b[:size]
	}
	if size <= cap(b) {
		n := len(b)
		b = b[:size]
		clear(b[n:])
		return b
	}
	grown := make([]byte, size, size+size/4)
	copy(grown, b)
	return grown
}

// remains is the content of a folder after a power cut.
type remains struct {
	files map[string]left // by path relative to the folder
	// lost is the number of written bytes that the cut removed, in whole sectors; forgotten is the
	// number of names that differ from those that programs saw.
	lost, forgotten int64
	syncs           int64
}

// left is a file or folder after a power cut. data is nil for a folder.
type left struct {
	mode os.FileMode
	data []byte
}

// cut returns the files that a power cut at this moment would leave. With keep 0 nothing survives that
// was not flushed by fsync. Otherwise each unsafe sector, each unsafe change of length, and all unsafe
// names together survive with probability keep, because a disk may write early and in any order. The
// disk itself stays unchanged.
func (d *disk) cut(keep float64, rng *rand.Rand) remains {
	d.mu.Lock()
	defer d.mu.Unlock()
	luck := func() bool { return keep > 0 && rng.Float64() < keep }
	out := remains{files: make(map[string]left), syncs: d.syncs}
	out.folder("", d.root, luck(), luck)
	return out
}

// folder adds the remains of a folder. It visits names in order, so that the same random numbers give
// the same result.
func (r *remains) folder(path string, dir *file, unsafeNames bool, luck func() bool) {
	names, other := dir.safeNames, dir.names
	if unsafeNames {
		names, other = other, names
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		f := names[name]
		if other[name] != f {
			r.forgotten++
		}
		at := filepath.Join(path, name)
		switch {
		case f.folder():
			r.files[at] = left{os.ModeDir | os.FileMode(f.mode&0777), nil}
			r.folder(at, f, unsafeNames, luck)
		case f.regular():
			r.files[at] = left{os.FileMode(f.mode & 0777), r.content(f, luck)}
		}
	}
	for name := range other {
		if names[name] == nil {
			r.forgotten++
		}
	}
}

func (r *remains) content(f *file, luck func() bool) []byte {
	data := append([]byte(nil), f.safe...)
	if len(data) != len(f.data) && luck() {
		data = resize(data, len(f.data))
	}
	for _, s := range slices.Sorted(maps.Keys(f.dirty)) {
		if !luck() {
			r.lost += sectorBytes
			continue
		}
		if hi := min((s+1)*sectorBytes, int64(len(f.data))); hi > int64(len(data)) {
			data = resize(data, int(hi))
		}
		f.copySector(data, s)
	}
	return data
}

// save creates dir and writes the remains into it.
func (r remains) save(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(r.files)) { // in order, so that a folder is created before its files
		l, path := r.files[name], filepath.Join(dir, name)
		if l.mode.IsDir() {
			if err := os.Mkdir(path, l.mode.Perm()); err != nil {
				return err
			}
			continue
		}
		f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, l.mode)
		if err != nil {
			return err
		}
		_, err = f.Write(l.data)
		if cerr := f.Close(); err == nil {
			err = cerr
		}
		if err != nil {
			return err
		}
	}
	return nil
}
