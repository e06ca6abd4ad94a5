package library

import (
	"cmp"
	"context"
	"io"
	"strings"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
)

// Service keeps libraries. Create it with New; it is safe for concurrent use.
type Service struct {
	store    Store
	contents Contents
	// documents is nil if the portal reads text files only.
	documents Documents
}

// New returns a service.
func New(store Store, contents Contents, documents Documents) *Service {
	return &Service{store, contents, documents}
}

const (
	// pageSize and maxPage are the numbers of files of a page.
	pageSize, maxPage = 100, 1000
	// foundFiles is the number of files that a search returns.
	foundFiles = 50
	// maxQuery bounds a query in bytes, maxWords its words.
	maxQuery, maxWords = 500, 16
)

func errNone(path string) error {
	return fault.New(fault.NotFound, "There is no file %.200q in your library.", path)
}

// checkAccount returns a fault unless the actor has an account and full rights to it.
func checkAccount(actor ident.Actor) error {
	switch {
	case !actor.IsPerson():
		return fault.New(fault.Unauthenticated, "Sign in to keep files.")
	case !actor.May(ident.AccountAll):
		return fault.New(fault.Forbidden, "%s", ident.AccountAll.DescribeMissing())
	}
	return nil
}

// ownerOf returns the person of an account as the owner of contents.
func ownerOf(actor ident.Actor) ident.Actor {
	return ident.Actor{Kind: ident.Person, ID: actor.ID, Name: actor.Name, Addr: actor.Addr}
}

// Page is a part of a library. Next is the path to go on from, "" at the end.
type Page struct {
	Files []File
	Next  string
}

// List returns the actor's files with paths that begin with prefix, in the order of their paths, after a path.
func (s *Service) List(ctx context.Context, actor ident.Actor, prefix, after string, limit int) (Page, error) {
	if err := checkAccount(actor); err != nil {
		return Page{}, err
	}
	limit = cmp.Or(max(limit, 0), pageSize)
	if limit > maxPage || len(prefix) > MaxPath || len(after) > MaxPath {
		return Page{}, fault.New(fault.Invalid, "limit is at most %d.", maxPage)
	}
	list, err := s.store.Files(ctx, actor.ID, prefix, after, limit+1)
	if err != nil || len(list) <= limit {
		return Page{Files: list}, err
	}
	return Page{list[:limit], list[limit-1].Path}, nil
}

// Entry is a file or a folder in a folder. Name ends with a slash for a folder; its File is zero.
type Entry struct {
	Name string
	File File
}

// Folder returns the entries of a folder, "" for the top, in the order of their paths, after the path next of an
// earlier page. next is "" at the end.
func (s *Service) Folder(ctx context.Context, actor ident.Actor, folder, after string) (list []Entry, next string,
	err error) {
	if err := checkAccount(actor); err != nil {
		return nil, "", err
	}
	folder, err = checkFolder(folder)
	if err != nil || len(after) > MaxPath+8 {
		return nil, "", errNone(folder)
	}
	files, err := s.store.FirstFiles(ctx, actor.ID, folder, after, pageSize+1)
	if err != nil {
		return nil, "", err
	}
	for _, f := range files[:min(len(files), pageSize)] {
		name, _, deeper := strings.Cut(f.Path[len(folder):], "/")
		if deeper {
			list, next = append(list, Entry{Name: name + "/"}), folder+name+"/"+AfterAll
		} else {
			list, next = append(list, Entry{name, f}), f.Path
		}
	}
	if len(files) <= pageSize {
		next = ""
	}
	return list, next, nil
}

// Hit is a file that fits a search. Excerpt has the words around the first one found in its text, "" for none.
type Hit struct {
	File    File
	Excerpt string
}

// Search returns the actor's files with all words of a query, the newest first.
func (s *Service) Search(ctx context.Context, actor ident.Actor, query string) ([]Hit, error) {
	if err := checkAccount(actor); err != nil {
		return nil, err
	}
	if len(query) > maxQuery {
		return nil, fault.Field("q", "is too long")
	}
	words := strings.Fields(foldText(query))
	if len(words) == 0 {
		return []Hit{}, nil
	}
	words = words[:min(len(words), maxWords)]
	files, texts, err := s.store.FindFiles(ctx, actor.ID, words, foundFiles)
	out := make([]Hit, len(files))
	for i, f := range files {
		out[i] = Hit{f, excerptOf(texts[i], words)}
	}
	return out, err
}

// Find returns a file of the actor. A deleted one has no hash.
func (s *Service) Find(ctx context.Context, actor ident.Actor, path string) (File, error) {
	if err := checkAccount(actor); err != nil {
		return File{}, err
	}
	path, err := CheckPath(path)
	if err != nil {
		return File{}, errNone(path)
	}
	f, err := s.store.FileAt(ctx, actor.ID, path)
	if fault.Is(err, fault.NotFound) {
		err = errNone(path)
	}
	return f, err
}

// Open returns a version of a file with its content, the newest for number 0. A deletion is a NotFound fault. The
// caller closes the content.
func (s *Service) Open(ctx context.Context, actor ident.Actor, path string, number int) (Version, io.ReadSeekCloser,
	error) {
	f, err := s.Find(ctx, actor, path)
	if err != nil {
		return Version{}, nil, err
	}
	return s.openVersion(ctx, ownerOf(actor), f, number)
}

func (s *Service) openVersion(ctx context.Context, owner ident.Actor, f File, number int) (Version,
	io.ReadSeekCloser, error) {
	v, err := s.store.VersionAt(ctx, owner.ID, f.Path, cmp.Or(number, f.Version))
	if fault.Is(err, fault.NotFound) || err == nil && v.Hash == "" {
		return Version{}, nil, errNone(f.Path)
	}
	if err != nil {
		return Version{}, nil, err
	}
	_, r, err := s.contents.OpenContent(ctx, owner, v.Hash)
	return v, r, err
}

// Versions returns the versions of a file with lower numbers than before, 0 for all, the newest first.
func (s *Service) Versions(ctx context.Context, actor ident.Actor, path string, before int) ([]Version, error) {
	f, err := s.Find(ctx, actor, path)
	if err != nil {
		return nil, err
	}
	if before <= 0 {
		before = f.Version + 1
	}
	return s.store.Versions(ctx, actor.ID, f.Path, before, pageSize)
}

// Draft is a content to write. Name and MediaType only refine the type that the content shows.
type Draft struct {
	Content   io.Reader
	MediaType string
	// Expect is the version that must be the newest, 0 if there must be no file, or AnyVersion.
	Expect int
}

// Put writes a new version of a file of the actor.
func (s *Service) Put(ctx context.Context, actor ident.Actor, path string, d Draft) (Version, error) {
	return s.put(ctx, actor, path, d, Writer{})
}

// PutFor is Put for an agent, which must have the permission of the person for the path.
func (s *Service) PutFor(ctx context.Context, person ident.Actor, by Writer, path string, d Draft) (Version, error) {
	return s.put(ctx, person, path, d, by)
}

func (s *Service) put(ctx context.Context, actor ident.Actor, path string, d Draft, by Writer) (Version, error) {
	if err := checkAccount(actor); err != nil {
		return Version{}, err
	}
	path, err := CheckPath(path)
	if err != nil {
		return Version{}, err
	}
	if err := s.checkPlace(ctx, actor.ID, path); err != nil {
		return Version{}, err
	}
	owner := ownerOf(actor)
	c, err := s.contents.PutContent(ctx, owner, path, d.MediaType, d.Content)
	if err != nil {
		return Version{}, err
	}
	return s.write(ctx, owner, Version{Path: path, Hash: c.Hash, Size: c.Size, MediaType: c.MediaType, By: by}, d.Expect)
}

// checkPlace returns a Conflict fault for a path below a file, or of a folder.
func (s *Service) checkPlace(ctx context.Context, personID, path string) error {
	below, err := s.store.Files(ctx, personID, path+"/", "", 1)
	if err != nil {
		return err
	}
	if len(below) > 0 {
		return fault.New(fault.Conflict, "%.200q is a folder.", path)
	}
	for i, c := range path {
		if c != '/' {
			continue
		}
		f, err := s.store.FileAt(ctx, personID, path[:i])
		if err == nil && f.Hash != "" {
			return fault.New(fault.Conflict, "%.200q is a file, not a folder.", path[:i])
		}
		if err != nil && !fault.Is(err, fault.NotFound) {
			return err
		}
	}
	return nil
}

// write stores a version with the words of its content.
func (s *Service) write(ctx context.Context, owner ident.Actor, v Version, expect int) (Version, error) {
	v.At = clock.Now()
	w := Write{PersonID: owner.ID, Version: v, Expect: expect}
	if v.Hash != "" {
		text, err := s.wordsOf(ctx, owner, v)
		if err != nil {
			return Version{}, err
		}
		w.Text = text
	}
	return s.store.PutVersion(ctx, w)
}

// maxKept is the number of names that Keep tries.
const maxKept = 100

// Keep copies a content that the actor may read, such as a file of a conversation, to the path of the library that
// CleanPath makes of name. If another content or a folder is there, the name gets a number, so that the name of a file
// that an agent made replaces nothing. A Conflict fault if all numbers are taken.
func (s *Service) Keep(ctx context.Context, actor ident.Actor, hash, name string) (Version, error) {
	if err := checkAccount(actor); err != nil {
		return Version{}, err
	}
	c, r, err := s.contents.OpenContent(ctx, ownerOf(actor), hash)
	if err != nil {
		return Version{}, err
	}
	defer r.Close()
	name = CleanPath(name)
	for n, to := 1, name; n <= maxKept; n++ {
		if n > 1 {
			to = numberedPath(name, n)
		}
		if to, err = CheckPath(to); err != nil {
			return Version{}, err
		}
		f, err := s.store.FileAt(ctx, actor.ID, to)
		switch {
		case err == nil && f.Hash == c.Hash:
			return s.store.VersionAt(ctx, actor.ID, f.Path, f.Version)
		case err == nil && f.Hash != "":
			continue
		case err != nil && !fault.Is(err, fault.NotFound):
			return Version{}, err
		}
		below, err := s.store.Files(ctx, actor.ID, to+"/", "", 1)
		if err != nil {
			return Version{}, err
		}
		if len(below) == 0 {
			return s.put(ctx, actor, to, Draft{Content: r, MediaType: c.MediaType, Expect: f.Version}, Writer{})
		}
	}
	return Version{}, fault.New(fault.Conflict, "There are %d files with the name %.200q already.", maxKept, name)
}

// Delete writes a version that says that the file is deleted, which RollBack takes back.
func (s *Service) Delete(ctx context.Context, actor ident.Actor, path string) (Version, error) {
	f, err := s.Find(ctx, actor, path)
	if err == nil && f.Hash == "" {
		err = errNone(path)
	}
	if err != nil {
		return Version{}, err
	}
	return s.write(ctx, ownerOf(actor), Version{Path: f.Path}, f.Version)
}

// ConfirmAll is what a person says to Empty, so that no slip of an address deletes a library.
const ConfirmAll = "all"

// dropBatch is the number of files that are deleted in one transaction, so that other writes wait for none that is long.
const dropBatch = 200

// CountAll returns the numbers of the actor's files that are not deleted, and of all versions.
func (s *Service) CountAll(ctx context.Context, actor ident.Actor) (files, versions int, err error) {
	if err := checkAccount(actor); err != nil {
		return 0, 0, err
	}
	return s.store.CountAll(ctx, actor.ID)
}

// Empty deletes all files of the actor for good, with their versions and links, and returns the number of versions.
// Nothing takes it back. A file that is written meanwhile may stay. confirm must be ConfirmAll.
func (s *Service) Empty(ctx context.Context, actor ident.Actor, confirm string) (versions int, err error) {
	if err := checkAccount(actor); err != nil {
		return 0, err
	}
	if confirm != ConfirmAll {
		return 0, fault.Field("confirm", "must be \""+ConfirmAll+"\": all files and their versions are deleted, and nothing "+
			"brings them back")
	}
	ctx = context.WithoutCancel(ctx) // half of a library is worse than none
	for after := ""; ; {
		last, n, err := s.store.DropFiles(ctx, actor.ID, after, dropBatch)
		if versions += n; err != nil || last == "" {
			return versions, err
		}
		after = last
	}
}

// RollBack writes a new version of a file with the content of an earlier one.
func (s *Service) RollBack(ctx context.Context, actor ident.Actor, path string, number int) (Version, error) {
	f, err := s.Find(ctx, actor, path)
	if err != nil {
		return Version{}, err
	}
	old, err := s.store.VersionAt(ctx, actor.ID, f.Path, number)
	if fault.Is(err, fault.NotFound) {
		return Version{}, fault.New(fault.NotFound, "There is no version %d of %.200q.", number, f.Path)
	}
	if err != nil {
		return Version{}, err
	}
	if err := s.checkPlace(ctx, actor.ID, f.Path); err != nil {
		return Version{}, err
	}
	return s.write(ctx, ownerOf(actor), Version{Path: f.Path, Hash: old.Hash, Size: old.Size, MediaType: old.MediaType,
		Restores: number}, f.Version)
}

// Undo takes the newest version of a file back, with all versions before it that the same task wrote: it writes the
// content of the one before them, or deletes the file if there is none. A Conflict fault if number is not the newest.
func (s *Service) Undo(ctx context.Context, actor ident.Actor, path string, number int) (Version, error) {
	f, err := s.Find(ctx, actor, path)
	if err != nil {
		return Version{}, err
	}
	if f.Version != number {
		return Version{}, fault.New(fault.Conflict,
			"The file was changed since. Choose a version in its history.")
	}
	newest, err := s.store.VersionAt(ctx, actor.ID, f.Path, number)
	if err != nil {
		return Version{}, err
	}
	before := newest
	for before.Number == number || before.By.TaskID != "" && before.By.TaskID == newest.By.TaskID {
		list, err := s.store.Versions(ctx, actor.ID, f.Path, before.Number, 1)
		if err != nil {
			return Version{}, err
		}
		if len(list) == 0 {
			return s.Delete(ctx, actor, f.Path)
		}
		before = list[0]
	}
	if before.Hash == "" {
		return s.Delete(ctx, actor, f.Path)
	}
	return s.RollBack(ctx, actor, f.Path, before.Number)
}

// WrittenBy returns the versions that agents wrote into the actor's library in tasks, the newest first. Callers without
// an account have none.
func (s *Service) WrittenBy(ctx context.Context, actor ident.Actor, taskIDs []string) ([]Written, error) {
	if checkAccount(actor) != nil || len(taskIDs) == 0 {
		return []Written{}, nil
	}
	return s.store.WrittenBy(ctx, actor.ID, taskIDs, foundFiles)
}

// OwnersOf returns the ids of the persons into whose libraries an agent wrote in a task. Only they may learn of it.
func (s *Service) OwnersOf(ctx context.Context, taskID string) ([]string, error) {
	if taskID == "" {
		return []string{}, nil
	}
	return s.store.OwnersOf(ctx, taskID)
}
