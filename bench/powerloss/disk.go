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

// sectorBytes is the unit a real disk writes whole or not at all. A page of
// a program may be torn between its sectors.
const sectorBytes = 512

// maxFileBytes bounds one file, because files are kept in memory.
const maxFileBytes = 1 << 30

// disk is a folder as its users see it, and beside that what would be left of
// it without power. It knows nothing of FUSE.
//
// The rules are POSIX's, the strictest a program may meet: bytes, and the
// length of a file, are safe after an fsync of that file; a name (created,
// linked, renamed, removed) is safe after an fsync of the folder it is in. A
// name moved from one folder to another is never in neither: an fsync of one
// of the two makes both safe, as every journal does.
type disk struct {
	mu    sync.Mutex // guards everything below, and the fields of every file
	root  *file
	moves [][2]*file // folders with an unsafe move between them
	syncs int64
}

// file is one inode, of a file or a folder. A file's bytes differ from the
// safe ones at most in the dirty sectors and past the shorter of the two
// lengths.
type file struct {
	mode  uint32 // type and permissions
	links int
	data  []byte
	safe  []byte
	dirty map[int64]struct{}

	// Of a folder:
	names     map[string]*file
	safeNames map[string]*file // as of its last fsync
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

// load takes over the files and folders in dir; all of it counts as safe.
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
			continue // a socket is no data
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

// create makes a file, folder or special file of the given mode.
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

// remove takes a name away: unlink, or rmdir when folder is set.
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
		return 0 // two links of one file: POSIX does nothing
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

// syncNames is fsync of a folder.
func (d *disk) syncNames(dir *file) {
	d.mu.Lock()
	defer d.mu.Unlock()
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
		clear(f.data[size:]) // zeros, should it grow again
		f.data = f.data[:size]
		// The rest of the sector that was cut through.
		f.mark(int64(size), int64(size))
	}
	return 0
}

// sync is fsync of a file.
func (d *disk) sync(f *file) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f.safe = resize(f.safe, len(f.data))
	for s := range f.dirty {
		f.copySector(f.safe, s)
	}
	clear(f.dirty)
	d.syncs++
}

func (f *file) grow(size int64) {
	was := int64(len(f.data))
	f.data = resize(f.data, int(size))
	f.mark(was, size)
}

// mark notes the sectors that hold the bytes [from, to) as unsafe.
func (f *file) mark(from, to int64) {
	for s := from / sectorBytes; s*sectorBytes < max(to, from+1); s++ {
		f.dirty[s] = struct{}{}
	}
}

// copySector copies what f holds in a sector to the same place of to.
func (f *file) copySector(to []byte, sector int64) {
	lo := sector * sectorBytes
	hi := min(lo+sectorBytes, int64(len(f.data)), int64(len(to)))
	if lo < hi {
		copy(to[lo:hi], f.data[lo:hi])
	}
}

// resize returns b with the given length; bytes it gains are zero.
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

// remains is what a power cut leaves.
type remains struct {
	files map[string]left // by path
	// lost is how many bytes users had written and the cut took, in whole
	// sectors; forgotten how many names were not as they saw them.
	lost, forgotten int64
	syncs           int64
}

// left is a file, or a folder.
type left struct {
	mode os.FileMode
	data []byte
}

// cut tells what is left when the power goes now. With keep 0 nothing that was
// not fsynced survives. Otherwise each unsafe sector, each unsafe change of
// length and all unsafe names together survive with that probability: a disk
// may write early, in any order. The disk goes on as before.
func (d *disk) cut(keep float64, rng *rand.Rand) remains {
	d.mu.Lock()
	defer d.mu.Unlock()
	luck := func() bool { return keep > 0 && rng.Float64() < keep }
	out := remains{files: make(map[string]left), syncs: d.syncs}
	out.folder("", d.root, luck(), luck)
	return out
}

// folder adds what is left of a folder. It goes through names in order, so
// that the same luck leaves the same.
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

// save writes what is left into a folder, which is made.
func (r remains) save(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(r.files)) { // a folder before what is in it
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
