// Package library keeps the files of people: versioned, by path, in the library of one person. Each write is a new
// version and none is changed later, so that each write can be undone. Agents read and write by a grant for a path.
package library

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"path"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/plaintext"
)

// The bounds of a library.
const (
	// MaxPath and MaxName bound a path and each of its names, in bytes, MaxDepth the number of its names.
	MaxPath, MaxName, MaxDepth = 500, 200, 20
	// MaxVersions is the number of versions of a file. The oldest make room for new ones, those of agents first.
	MaxVersions = 500
	// MaxShares is the number of links of a person that have not expired.
	MaxShares = 200
	// MaxLife bounds the time for which a link counts.
	MaxLife = 365 * 24 * time.Hour
	// MaxText bounds the text of a file that is edited in the browser or written by an agent, in bytes.
	MaxText = 256 << 10
)

// File is a file as it is now.
type File struct {
	PersonID, Path string
	// Version is the newest. Versions begin with 1.
	Version int
	// Hash is the SHA-256 of the content, "" for a deleted file.
	Hash      string
	Size      int64
	MediaType string
	UpdatedAt time.Time
}

// Name returns the last name of the path.
func (f File) Name() string { return path.Base(f.Path) }

// Writer is the agent that wrote a version; the zero Writer is the person.
type Writer struct {
	AgentID string
	Agent   string // handle, "" if its owner erased the account
	// ConversationID and TaskID name the work in which the agent wrote.
	ConversationID, TaskID string
}

// Version is one version of a file.
type Version struct {
	Path   string
	Number int
	// Hash is the SHA-256 of the content, "" for a deletion.
	Hash      string
	Size      int64
	MediaType string
	// Restores is the version with the content that this one has again, 0 for none.
	Restores int
	By       Writer
	At       time.Time
}

// Written is a version that an agent wrote. Newest is the newest version of its file now.
type Written struct {
	Version
	Newest int
}

// Share is a link that allows its holder to load a file until it expires.
type Share struct {
	ID, PersonID, Path string
	// Version is the shared version, 0 for the newest.
	Version              int
	CreatedAt, ExpiresAt time.Time
}

// AnyVersion as the Expect of a write replaces whatever is there.
const AnyVersion = -1

// Write is a new version.
type Write struct {
	PersonID string
	Version  Version // without Number, which the store gives
	// Expect is the version that must be the newest, 0 if there must be no file, or AnyVersion.
	Expect int
	// Text has the words by which a search finds the file.
	Text string
}

// Store stores libraries. A missing file, version or link is a NotFound fault.
type Store interface {
	// PutVersion stores a version and returns it with its number. If the content is that of the newest version it
	// returns that one. A Conflict fault if another version than the expected one is the newest. It deletes the oldest
	// versions beyond MaxVersions, those of agents first.
	PutVersion(ctx context.Context, w Write) (Version, error)
	FileAt(ctx context.Context, personID, path string) (File, error)
	// Files returns up to limit files that are not deleted, with paths that begin with prefix, in the order of their
	// paths, which are greater than after.
	Files(ctx context.Context, personID, prefix, after string, limit int) ([]File, error)
	// FirstFiles returns up to limit files that are not deleted: those in a folder, which is "" or ends with a slash,
	// and the first one of each folder in it, in the order of their paths, which are greater than after.
	FirstFiles(ctx context.Context, personID, folder, after string, limit int) ([]File, error)
	// FindFiles returns up to limit files that contain all the given words, the newest first, and those words.
	FindFiles(ctx context.Context, personID string, words []string, limit int) (files []File, texts []string, err error)
	VersionAt(ctx context.Context, personID, path string, number int) (Version, error)
	// Versions returns up to limit versions of a file with lower numbers than before, the newest first.
	Versions(ctx context.Context, personID, path string, before, limit int) ([]Version, error)
	// WrittenBy returns up to limit versions that agents wrote in tasks into the library of a person, the newest first.
	WrittenBy(ctx context.Context, personID string, taskIDs []string, limit int) ([]Written, error)
	// OwnersOf returns the ids of the persons into whose libraries an agent wrote in a task.
	OwnersOf(ctx context.Context, taskID string) ([]string, error)
	// PutShare stores a link with the hash of its secret; a Conflict fault beyond MaxShares.
	PutShare(ctx context.Context, s Share, secretHash string) error
	// Shares returns the links of a person that have not expired, of one file if path is not "", the newest first.
	Shares(ctx context.Context, personID, path string, now time.Time) ([]Share, error)
	ShareBySecret(ctx context.Context, secretHash string) (Share, error)
	DeleteShare(ctx context.Context, personID, id string) error
	// CountAll returns the numbers of a person's files that are not deleted, and of all versions.
	CountAll(ctx context.Context, personID string) (files, versions int, err error)
	// DropFiles deletes up to limit files with all their versions, search texts and links, in the order of their paths,
	// which are greater than after. It returns the last path, "" at the end, and the number of versions.
	DropFiles(ctx context.Context, personID, after string, limit int) (last string, versions int, err error)
}

// Content is a stored content.
type Content struct {
	Hash, MediaType string
	Size            int64
}

// Contents stores contents by their hash, once for each person, within the person's limits.
type Contents interface {
	PutContent(ctx context.Context, person ident.Actor, name, mediaType string, r io.Reader) (Content, error)
	// OpenContent returns a content that the person keeps, or may read in a conversation; else a NotFound fault.
	OpenContent(ctx context.Context, person ident.Actor, hash string) (Content, io.ReadSeekCloser, error)
}

// Documents reads the text of PDF files.
type Documents interface {
	// DocumentText returns the first part of the text of a PDF file of a person, "" if it has none that can be read.
	DocumentText(ctx context.Context, personID string, content io.ReadSeeker, size int64) (string, error)
}

// AfterAll is greater than all characters of paths, so that a folder with it comes after the paths in the folder.
const AfterAll = "\U0010ffff"

// CheckPath returns a path in the form in which it is stored, NFC, or a fault about a path that no file can have.
func CheckPath(p string) (string, error) {
	p = norm.NFC.String(p)
	switch {
	case p == "":
		return "", fault.Field("path", "name the file")
	case len(p) > MaxPath || !utf8.ValidString(p):
		return "", fault.Field("path", "is too long")
	}
	names := strings.Split(p, "/")
	if len(names) > MaxDepth {
		return "", fault.Field("path", "has too many folders")
	}
	for _, name := range names {
		switch {
		case name == "" || name == "." || name == "..":
			return "", fault.Field("path", "use names between slashes, not \".\" or \"..\"")
		case len(name) > MaxName:
			return "", fault.Field("path", "has a name that is too long")
		case name != plaintext.OneLine(name) || strings.ContainsFunc(name, isForbidden):
			return "", fault.Field("path", "has characters that names cannot have: control characters, \\, "+
				"spaces at an end or two in a row")
		}
	}
	return p, nil
}

func isForbidden(r rune) bool {
	return r == '\\' || unicode.IsControl(r) || r == utf8.RuneError || unicode.IsSpace(r) && r != ' '
}

// CleanPath returns a path from a program or a disk, such as the name of a file that an agent made, without the
// characters that names cannot have, and with names that are cut to MaxName. The whole may still be too long.
func CleanPath(p string) string {
	var names []string
	for name := range strings.SplitSeq(norm.NFC.String(strings.ToValidUTF8(p, "")), "/") {
		name = strings.Map(func(r rune) rune {
			if isForbidden(r) {
				return ' '
			}
			return r
		}, name)
		if name = plaintext.OneLine(name); name != "" && name != "." && name != ".." {
			names = append(names, fitName(name, "", MaxName))
		}
	}
	return cmp.Or(strings.Join(names, "/"), "file")
}

// maxEnding bounds the ending of a name in bytes, such as ".md", which stays when a name is cut.
const maxEnding = 16

// fitName returns a name with a suffix before its ending, in at most limit bytes.
func fitName(name, suffix string, limit int) string {
	ending := path.Ext(name)
	if ending == name || len(ending) > maxEnding {
		ending = ""
	}
	stem, end := strings.TrimSuffix(name, ending), suffix+ending
	if room := max(limit-len(end), 0); len(stem) > room {
		stem = strings.TrimRight(strings.ToValidUTF8(stem[:room], ""), " ")
	}
	return stem + end
}

// numberedPath returns a path with a number in its name, such as "notes/tea (2).md".
func numberedPath(p string, n int) string {
	dir, name := path.Split(p)
	return dir + fitName(name, fmt.Sprintf(" (%d)", n), min(MaxName, MaxPath-len(dir)))
}

// checkFolder returns a folder with its final slash, "" for the whole library.
func checkFolder(folder string) (string, error) {
	folder = strings.Trim(folder, "/")
	if folder == "" {
		return "", nil
	}
	p, err := CheckPath(folder)
	return p + "/", err
}
