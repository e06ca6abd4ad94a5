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

// Limits of free disk space in bytes: a note below the first, a fault below the second. A backup or an
// upgrade additionally needs the size of the database.
const (
	littleDisk = 1 << 30
	noDisk     = 128 << 20
)

// FolderOf checks only the data folder itself. No file in it is opened, so it works for a damaged or
// locked folder.
func FolderOf(dir string) Report {
	var r Report
	Subject{Dir: dir}.checkFolder(&r)
	r.Judge()
	return r
}

// checkFolder checks the data folder: its permissions, whether it can be written, and its free space.
func (s Subject) checkFolder(r *Report) {
	st, err := os.Stat(s.Dir)
	if err != nil {
		r.Add(Data, Fault, "Name the folder of a portal with --data.", "The data folder cannot be read: %v.", err)
		return
	}
	before := len(r.Findings)
	if st.Mode().Perm()&0o077 != 0 {
		r.Add(Data, Fault, "chmod 700 "+s.Dir,
			"Others on this machine can read the data folder %s (%s). It holds keys and messages.", s.Dir,
			st.Mode().Perm())
	}
	s.checkSecrets(r)
	if f, err := os.CreateTemp(s.Dir, ".agentsite-tmp-doctor-*"); err != nil {
		r.Add(Data, Fault, "Give the folder to the user that the portal runs as, or mount its disk for writing.",
			"Nothing can be written into %s: %v.", s.Dir, err)
	} else {
		f.Close()
		os.Remove(f.Name())
	}
	free, ok := freeSpace(s.Dir)
	switch {
	case !ok:
	case free < noDisk:
		r.Add(Data, Fault, "Make room on the disk of "+s.Dir+".",
			"The disk is almost full: %s are free. Messages cannot be stored when it is full.", formatSize(free))
	case free < littleDisk:
		r.Add(Data, Note, "Make room before the next backup or upgrade.", "There are %s of disk left.",
			formatSize(free))
	}
	s.checkLeftovers(r)
	if len(r.Findings) == before {
		r.Add(Data, OK, "", "The data folder %s is private and can be written; %s are free.", s.Dir, formatSize(free))
	}
}

// checkSecrets reports key and database files that other users of the machine can read.
func (s Subject) checkSecrets(r *Report) {
	list := cappedFindings{r: r, check: Data, level: Fault, do: "chmod 600 " + filepath.Join(s.Dir, "*.key") + " " +
		filepath.Join(s.Dir, "*.db*")}
	defer list.addRest()
	entries, err := os.ReadDir(s.Dir)
	if err != nil {
		r.Add(Data, Fault, "Run this as the user that the portal runs as.", "The data folder cannot be listed: %v.",
			err)
		return
	}
	for _, e := range entries {
		if name := e.Name(); !strings.HasSuffix(name, ".key") && !strings.HasSuffix(name, ".keys") && !strings.Contains(name, ".db") ||
			!e.Type().IsRegular() {
			continue
		}
		if st, err := e.Info(); err == nil && st.Mode().Perm()&0o077 != 0 {
			list.addOne("Others on this machine may read %s (%s).", e.Name(), st.Mode().Perm())
		}
	}
}

// checkLeftovers reports files that earlier starts kept: damaged ones that were moved aside, and copies
// made before an upgrade.
func (s Subject) checkLeftovers(r *Report) {
	replica := filepath.Join(s.Dir, "replica.db")
	if _, err := os.Stat(replica + ".damaged"); err == nil {
		r.Add(Data, Fault, "Start the portal again: it begins a new replica, which is filled from the other portals.",
			"The replica of other portals' agents is damaged.")
	}
	switch st, err := os.Stat(replica + ".aside"); {
	case err == nil:
		r.Add(Data, Note, "Remove "+replica+".aside* when you no longer need it.",
			"A replica was moved aside by %s because it could not be used.", st.ModTime().UTC().Format(time.DateOnly))
	case !errors.Is(err, fs.ErrNotExist):
		r.Add(Data, Note, "", "It is unknown whether a replica was moved aside: %v.", err)
	}
	entries, _ := os.ReadDir(s.Dir) // checkSecrets reports a folder that cannot be listed
	for _, e := range entries {
		if name := e.Name(); strings.HasPrefix(name, "agentsite.db.schema-") || strings.HasPrefix(name, "agentsite.db.before-") {
			r.Add(Data, Note, "Remove "+filepath.Join(s.Dir, name)+" when you no longer need it.",
				"%s is a copy of the database from before an upgrade.", name)
		}
	}
}

// freeSpace returns the number of bytes that the portal's user can still write to the disk of dir; ok is
// false if that is unknown.
func freeSpace(dir string) (free uint64, ok bool) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		return 0, false
	}
	return uint64(st.Bavail) * uint64(st.Bsize), true
}
