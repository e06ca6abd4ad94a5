package doctor

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Free disk that is little, and so little that writes will fail soon: a backup
// or an upgrade needs as much as the database has.
const (
	littleDisk = 1 << 30
	noDisk     = 128 << 20
)

// FolderOf looks at a data folder by itself, before anything in it is opened.
func FolderOf(dir string) Report {
	var r Report
	Subject{Dir: dir}.folder(&r)
	r.Judge()
	return r
}

// folder looks at the data folder: who may read it, whether it can be written,
// how much room there is.
func (s Subject) folder(r *Report) {
	st, err := os.Stat(s.Dir)
	if err != nil {
		r.Add(Data, Fault, "Name the folder of a portal with --data.", "The data folder cannot be read: %v.", err)
		return
	}
	before := len(r.Findings)
	if st.Mode().Perm()&0o077 != 0 {
		r.Add(Data, Fault, "chmod 700 "+s.Dir, "Others on this machine can look into the data folder %s (%s). It holds keys and what people wrote.", s.Dir, st.Mode().Perm())
	}
	s.secrets(r)
	if f, err := os.CreateTemp(s.Dir, ".doctor-*"); err != nil {
		r.Add(Data, Fault, "Give the folder to the user that the portal runs as, or mount its disk for writing.", "Nothing can be written into %s: %v.", s.Dir, err)
	} else {
		f.Close()
		os.Remove(f.Name())
	}
	free, ok := room(s.Dir)
	switch {
	case !ok:
	case free < noDisk:
		r.Add(Data, Fault, "Make room on the disk of "+s.Dir+".", "The disk is all but full: %s are free. What people say will not be kept when nothing is.", size(free))
	case free < littleDisk:
		r.Add(Data, Note, "Make room before the next backup or upgrade.", "There are %s of disk left.", size(free))
	}
	s.leftovers(r)
	if len(r.Findings) == before {
		r.Add(Data, OK, "", "The data folder %s is private and can be written; %s are free.", s.Dir, size(free))
	}
}

// secrets looks who may read what must be secret.
func (s Subject) secrets(r *Report) {
	list := few{r: r, check: Data, level: Fault, do: "chmod 600 " + filepath.Join(s.Dir, "*.key") + " " + filepath.Join(s.Dir, "*.db*")}
	defer list.done()
	entries, err := os.ReadDir(s.Dir)
	if err != nil {
		r.Add(Data, Fault, "Run this as the user that the portal runs as.", "The data folder cannot be listed: %v.", err)
		return
	}
	for _, e := range entries {
		if name := e.Name(); !strings.HasSuffix(name, ".key") && !strings.Contains(name, ".db") || !e.Type().IsRegular() {
			continue
		}
		if st, err := e.Info(); err == nil && st.Mode().Perm()&0o077 != 0 {
			list.add("Others on this machine may read %s (%s).", e.Name(), st.Mode().Perm())
		}
	}
}

// leftovers tells of what an earlier start put aside.
func (s Subject) leftovers(r *Report) {
	replica := filepath.Join(s.Dir, "replica.db")
	if _, err := os.Stat(replica + ".damaged"); err == nil {
		r.Add(Data, Fault, "Start the portal again: it begins a new replica, which is filled from the other portals.", "The replica of other portals' agents was seen to be damaged.")
	}
	switch st, err := os.Stat(replica + ".aside"); {
	case err == nil:
		r.Add(Data, Note, "Remove "+replica+".aside* when you need it no more.", "A replica was moved aside by %s because it could not be used.", st.ModTime().UTC().Format(time.DateOnly))
	case !errors.Is(err, fs.ErrNotExist):
		r.Add(Data, Note, "", "It cannot be seen whether a replica was moved aside: %v.", err)
	}
}

// room is how many bytes the portal's user may still write on a disk.
func room(dir string) (free uint64, ok bool) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		return 0, false
	}
	return uint64(st.Bavail) * uint64(st.Bsize), true
}
