package main

import (
	"context"
	"maps"
	"slices"
	"sync"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// node is an inode of the mounted folder. It is created when the kernel looks up the name.
type node struct {
	fs.Inode
	m *mountpoint
	f *file
}

// mountpoint maps each file to its node, so that two names of one file share an inode.
type mountpoint struct {
	d *disk

	mu    sync.Mutex // guards nodes
	nodes map[*file]*node
}

var (
	_ fs.NodeLookuper  = (*node)(nil)
	_ fs.NodeReaddirer = (*node)(nil)
	_ fs.NodeCreater   = (*node)(nil)
	_ fs.NodeMkdirer   = (*node)(nil)
	_ fs.NodeMknoder   = (*node)(nil)
	_ fs.NodeLinker    = (*node)(nil)
	_ fs.NodeUnlinker  = (*node)(nil)
	_ fs.NodeRmdirer   = (*node)(nil)
	_ fs.NodeRenamer   = (*node)(nil)
	_ fs.NodeOpener    = (*node)(nil)
	_ fs.NodeReader    = (*node)(nil)
	_ fs.NodeWriter    = (*node)(nil)
	_ fs.NodeFsyncer   = (*node)(nil)
	_ fs.NodeGetattrer = (*node)(nil)
	_ fs.NodeSetattrer = (*node)(nil)
	_ fs.NodeStatfser  = (*node)(nil)
)

// mount mounts d at dir. The caller must unmount the returned server.
func mount(dir string, d *disk) (*fuse.Server, error) {
	m := &mountpoint{d: d, nodes: make(map[*file]*node)}
	return fs.Mount(dir, &node{m: m, f: d.root}, &fs.Options{MountOptions: fuse.MountOptions{
		FsName: "powerloss", Name: "powerloss", DirectMount: true,
	}})
}

// openFlags keeps file contents in the page cache. Without that, files could not be mapped as shared
// memory, which SQLite needs for its -shm file.
const openFlags = fuse.FOPEN_KEEP_CACHE

// child returns the inode of f below n. It reads f's type without a lock, because the type never
// changes.
func (n *node) child(ctx context.Context, f *file, out *fuse.EntryOut) *fs.Inode {
	n.m.d.attr(f, &out.Attr)
	n.m.mu.Lock()
	defer n.m.mu.Unlock()
	c := n.m.nodes[f]
	if c == nil {
		c = &node{m: n.m, f: f}
		n.m.nodes[f] = c
	}
	return n.NewInode(ctx, c, fs.StableAttr{Mode: out.Mode & syscall.S_IFMT})
}

func (d *disk) attr(f *file, out *fuse.Attr) {
	mode, size, links := d.stat(f)
	out.Mode, out.Size, out.Nlink = mode, uint64(size), uint32(links)
	out.Blksize, out.Blocks = 4096, uint64(size+511)/512
}

func (n *node) Lookup(ctx context.Context, name string, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	f := n.m.d.lookup(n.f, name)
	if f == nil {
		return nil, syscall.ENOENT
	}
	return n.child(ctx, f, out), 0
}

func (n *node) Readdir(context.Context) (fs.DirStream, syscall.Errno) {
	all := n.m.d.list(n.f)
	var list []fuse.DirEntry
	for _, name := range slices.Sorted(maps.Keys(all)) {
		list = append(list, fuse.DirEntry{Name: name, Mode: all[name]})
	}
	return fs.NewListDirStream(list), 0
}

func (n *node) Create(ctx context.Context, name string, flags, mode uint32, out *fuse.EntryOut) (*fs.Inode, fs.FileHandle, uint32, syscall.Errno) {
	f, errno := n.m.d.create(n.f, name, syscall.S_IFREG|mode&07777)
	if errno == syscall.EEXIST && flags&syscall.O_EXCL == 0 {
		if f = n.m.d.lookup(n.f, name); f != nil && f.regular() {
			errno = 0
		}
	}
	if errno != 0 {
		return nil, nil, 0, errno
	}
	return n.child(ctx, f, out), nil, openFlags, 0
}

func (n *node) Mkdir(ctx context.Context, name string, mode uint32, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	return n.make(ctx, name, syscall.S_IFDIR|mode&07777, out)
}

// Mknod implements fs.NodeMknoder, for unix sockets. A socket holds no data, so it does not survive a
// cut.
func (n *node) Mknod(ctx context.Context, name string, mode, _ uint32, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	return n.make(ctx, name, mode, out)
}

func (n *node) make(ctx context.Context, name string, mode uint32, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	f, errno := n.m.d.create(n.f, name, mode)
	if errno != 0 {
		return nil, errno
	}
	return n.child(ctx, f, out), 0
}

func (n *node) Link(_ context.Context, target fs.InodeEmbedder, name string, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	t, ok := target.(*node)
	if !ok {
		return nil, syscall.EPERM
	}
	if errno := n.m.d.link(t.f, n.f, name); errno != 0 {
		return nil, errno
	}
	n.m.d.attr(t.f, &out.Attr)
	return t.EmbeddedInode(), 0
}

func (n *node) Unlink(_ context.Context, name string) syscall.Errno {
	return n.m.d.remove(n.f, name, false)
}

func (n *node) Rmdir(_ context.Context, name string) syscall.Errno {
	return n.m.d.remove(n.f, name, true)
}

// renameNoReplace and renameExchange are the flags of renameat2(2) that Rename implements.
const renameNoReplace, renameExchange = 1, 2

func (n *node) Rename(_ context.Context, name string, parent fs.InodeEmbedder, newName string, flags uint32) syscall.Errno {
	to, ok := parent.(*node)
	if !ok || flags&renameExchange != 0 {
		return syscall.EINVAL
	}
	return n.m.d.rename(n.f, name, to.f, newName, flags&renameNoReplace != 0)
}

func (n *node) Open(_ context.Context, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	if flags&syscall.O_TRUNC != 0 {
		n.m.d.truncate(n.f, 0)
	}
	return nil, openFlags, 0
}

func (n *node) Read(_ context.Context, _ fs.FileHandle, p []byte, off int64) (fuse.ReadResult, syscall.Errno) {
	return fuse.ReadResultData(p[:n.m.d.read(n.f, p, off)]), 0
}

func (n *node) Write(_ context.Context, _ fs.FileHandle, p []byte, off int64) (uint32, syscall.Errno) {
	if errno := n.m.d.write(n.f, p, off); errno != 0 {
		return 0, errno
	}
	return uint32(len(p)), 0
}

// Fsync implements fs.NodeFsyncer for files and folders.
func (n *node) Fsync(context.Context, fs.FileHandle, uint32) syscall.Errno {
	if n.f.folder() {
		return n.m.d.syncNames(n.f)
	}
	return n.m.d.sync(n.f)
}

// Statfs reports a large disk with free space, because programs ask before they write.
func (n *node) Statfs(_ context.Context, out *fuse.StatfsOut) syscall.Errno {
	const blockSize, blocks = 4096, 1 << 20
	*out = fuse.StatfsOut{Bsize: blockSize, Frsize: blockSize, Blocks: blocks, Bfree: blocks, Bavail: blocks,
		Files: blocks, Ffree: blocks, NameLen: 255}
	return 0
}

func (n *node) Getattr(_ context.Context, _ fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	n.m.d.attr(n.f, &out.Attr)
	return 0
}

func (n *node) Setattr(_ context.Context, _ fs.FileHandle, in *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	if size, ok := in.GetSize(); ok {
		if errno := n.m.d.truncate(n.f, size); errno != 0 {
			return errno
		}
	}
	if mode, ok := in.GetMode(); ok {
		n.m.d.chmod(n.f, mode)
	}
	n.m.d.attr(n.f, &out.Attr)
	return 0
}
