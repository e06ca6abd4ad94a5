package store_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentsite/internal/account"
	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/library"
	"agentsite/internal/testing/storetest"
	"agentsite/store/engine"
)

// libraryWrite is a write of notes/tea.md with a content, "" for a deletion.
func libraryWrite(who account.Account, hash string) library.Write {
	return library.Write{PersonID: who.ID, Expect: library.AnyVersion, Version: library.Version{Path: "notes/tea.md",
		Hash: hash, MediaType: "text/plain", At: clock.Now()}}
}

// A library is emptied in steps of some files, whole or not at all each, and nothing of it counts any more.
func TestLibrary_DropsFilesInSteps(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	ctx, ada, bob := t.Context(), storetest.Account(t, db, "ada"), storetest.Account(t, db, "bob")
	hash := send(t, db, ada, "the content")
	bytes := func() int64 {
		u, err := db.StorageOf(ctx, ident.Actor{Kind: ident.Person, ID: ada.ID})
		if err != nil {
			t.Fatal(err)
		}
		return u.Total
	}
	before, text := bytes(), "a text of some words"
	put := func(who account.Account, path string) {
		w := libraryWrite(who, hash)
		w.Version.Path, w.Text = path, text
		if _, err := db.Library.PutVersion(ctx, w); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 5 {
		put(ada, fmt.Sprintf("%d.md", i))
	}
	put(bob, "0.md")
	if got, want := bytes()-before, int64(5*(4+300+len(text))); got != want {
		t.Errorf("5 files count %d bytes, want %d", got, want)
	}
	after := ""
	for _, want := range []struct {
		last     string
		versions int
	}{{"1.md", 2}, {"3.md", 2}, {"4.md", 1}, {"", 0}} {
		last, n, err := db.Library.DropFiles(ctx, ada.ID, after, 2)
		if err != nil || last != want.last || n != want.versions {
			t.Fatalf("after %q: %q, %d versions, %v; want %q, %d", after, last, n, err, want.last, want.versions)
		}
		after = last
	}
	if files, versions, err := db.Library.CountAll(ctx, ada.ID); err != nil || files+versions > 0 || bytes() != before {
		t.Errorf("left %d files, %d versions, %d bytes, %v", files, versions, bytes()-before, err)
	}
	if files, versions, err := db.Library.CountAll(ctx, bob.ID); err != nil || files != 1 || versions != 1 {
		t.Errorf("of another person: %d files, %d versions, %v", files, versions, err)
	}
	found, _, err := db.Library.FindFiles(ctx, ada.ID, []string{"words"}, 10)
	if err != nil || len(found) > 0 {
		t.Errorf("found: %+v, %v", found, err)
	}
}

// Versions of agents make room before those of the person, so that no agent can push out those of the person.
func TestLibrary_VersionsOfAgentsMakeRoomFirst(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	ctx, ada := t.Context(), storetest.Account(t, db, "ada")
	mine, theirs := send(t, db, ada, "mine"), send(t, db, ada, "theirs")
	for i := range library.MaxVersions + 3 {
		w := libraryWrite(ada, mine)
		if i > 0 {
			w.Version.By = library.Writer{AgentID: "a1", Agent: "filer"}
			if w.Version.Hash = theirs; i%2 == 0 {
				w.Version.Hash = ""
			}
		}
		if _, err := db.Library.PutVersion(ctx, w); err != nil {
			t.Fatal(err)
		}
	}
	list, err := db.Library.Versions(ctx, ada.ID, "notes/tea.md", library.MaxVersions+9, library.MaxVersions+9)
	if err != nil || len(list) != library.MaxVersions {
		t.Fatal(len(list), err)
	}
	if last, before := list[len(list)-1], list[len(list)-2]; last.Number != 1 || last.Hash != mine || before.Number != 5 {
		t.Errorf("the oldest versions are %+v and %+v", before, last)
	}
	storetest.Sound(t, db)
}

// A version with an earlier content is stored beyond the quota, so that an undo always works.
func TestLibrary_RestoringNeedsNoRoom(t *testing.T) {
	t.Parallel()
	db := openBounded(t)
	ctx, ada := t.Context(), storetest.Account(t, db, "ada")
	first, second := send(t, db, ada, "first"), send(t, db, ada, "second")
	for _, hash := range []string{first, second} {
		if _, err := db.Library.PutVersion(ctx, libraryWrite(ada, hash)); err != nil {
			t.Fatal(err)
		}
	}
	other := libraryWrite(ada, first)
	other.Version.Path, other.Text = "notes/copy.md", strings.Repeat("x", smallQuota)
	if _, err := db.Library.PutVersion(ctx, other); !fault.Is(err, fault.RateLimited) {
		t.Errorf("the words of a search beyond the quota: %v", err)
	}
	c := storetest.Conversation(t, db, ada)
	for n := 10 << 10; n > 0; {
		if _, err := db.Append(ctx, storetest.Post(c, ada, ident.NewID(), strings.Repeat("x", n))); err != nil {
			n /= 2
		}
	}
	back := libraryWrite(ada, first)
	if _, err := db.Library.PutVersion(ctx, back); !fault.Is(err, fault.RateLimited) {
		t.Errorf("a new version: %v", err)
	}
	back.Version.Restores = 1
	if v, err := db.Library.PutVersion(ctx, back); err != nil || v.Number != 3 {
		t.Errorf("restored as %+v, %v", v, err)
	}
}

// The links of an account open nothing while it is disabled.
func TestLibrary_LinksOfDisabledAccounts(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	ctx, ada := t.Context(), storetest.Account(t, db, "ada")
	now := clock.Now()
	if err := db.Library.PutShare(ctx, library.Share{ID: ident.NewID(), PersonID: ada.ID, Path: "notes/tea.md", CreatedAt: now,
		ExpiresAt: now.Add(time.Hour)}, "secret"); err != nil {
		t.Fatal(err)
	}
	for _, at := range []time.Time{{}, now, {}} {
		if err := db.SetDisabled(ctx, ada.ID, at, ident.Actor{Kind: ident.System}); err != nil {
			t.Fatal(err)
		}
		if l, err := db.Library.ShareBySecret(ctx, "secret"); fault.Is(err, fault.NotFound) == at.IsZero() || at.IsZero() && l.PersonID != ada.ID {
			t.Errorf("disabled at %v: %+v, %v", at, l, err)
		}
	}
}

// The pages of a folder have each file and each folder in it once, in the order of their paths, and no deleted ones.
func TestLibrary_FoldersAreComplete(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	ctx, ada := t.Context(), storetest.Account(t, db, "ada")
	hash := send(t, db, ada, "the content")
	var paths []string
	for _, folder := range []string{"", "über 茶/", "über 茶/a/"} {
		for i := range 130 {
			paths = append(paths, fmt.Sprintf("%sfile-%03d.md", folder, i),
				fmt.Sprintf("%s茶-%03d/é/one.md", folder, i), fmt.Sprintf("%s茶-%03d/two.md", folder, i))
		}
		paths = append(paths, folder+"a/x", folder+"a-b", folder+"a.md", folder+"a0", folder+"b/"+library.AfterAll,
			folder+"b0")
	}
	var files, gone [][]any
	for _, path := range paths {
		files = append(files, []any{ada.ID, path, 1, hash, 10, "text/plain", 1})
		gone = append(gone, []any{ada.ID, path + "-gone", 2, nil, 0, "", 1})
	}
	if err := db.Write(ctx, func(t engine.Tx) error {
		return errors.Join(t.InsertRows(`INSERT INTO library_files VALUES `, files),
			t.InsertRows(`INSERT INTO library_files VALUES `, gone))
	}); err != nil {
		t.Fatal(err)
	}
	slices.Sort(paths)
	s, actor := library.New(db.Library, nil, nil), ident.Actor{Kind: ident.Person, ID: ada.ID, Name: "ada"}
	for _, folder := range []string{"", "über 茶", "über 茶/a", "茶-001", "none"} {
		var want, got []string
		for _, path := range paths {
			rest, ok := strings.CutPrefix("/"+path, strings.TrimSuffix("/"+folder, "/")+"/")
			name, _, deeper := strings.Cut(rest, "/")
			if deeper {
				name += "/"
			}
			if ok && !slices.Contains(want, name) {
				want = append(want, name)
			}
		}
		for next := ""; ; {
			list, after, err := s.Folder(ctx, actor, folder, next)
			if err != nil || len(list) > 100 || len(list) < 100 && after != "" {
				t.Fatalf("%q: a page with %d entries, next %q, %v", folder, len(list), after, err)
			}
			for _, e := range list {
				got = append(got, e.Name)
			}
			if next = after; next == "" {
				break
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q: %s", folder, diff)
		}
	}
}

// BenchmarkLibrary_List lists 10,000 files of a person: all of them in pages of 1,000, and one folder.
func BenchmarkLibrary_List(b *testing.B) {
	db := storetest.New(b)
	ctx, ada := b.Context(), storetest.Account(b, db, "ada")
	const folders, each = 100, 100
	hash := strings.Repeat("ab", 32)
	files := make([][]any, 0, folders*each)
	for i := range folders * each {
		files = append(files, []any{ada.ID, fmt.Sprintf("folder-%03d/file-%03d.md", i/each, i%each), 1, hash, 10, "text/markdown", 1})
	}
	if err := db.Write(ctx, func(t engine.Tx) error {
		if _, err := t.Exec(`INSERT INTO files (hash, size, media_type, created_at, loose_at) VALUES (?, 10, 'text/markdown', 1, 0)`, hash); err != nil {
			return err
		}
		return t.InsertRows(`INSERT INTO library_files VALUES `, files)
	}); err != nil {
		b.Fatal(err)
	}
	s, actor := library.New(db.Library, nil, nil), ident.Actor{Kind: ident.Person, ID: ada.ID, Name: "ada"}
	b.Run("all", func(b *testing.B) {
		for b.Loop() {
			n, after := 0, ""
			for {
				page, err := s.List(ctx, actor, "", after, 1000)
				if err != nil {
					b.Fatal(err)
				}
				n += len(page.Files)
				if after = page.Next; after == "" {
					break
				}
			}
			if n != folders*each {
				b.Fatalf("%d files", n)
			}
		}
	})
	b.Run("top", func(b *testing.B) {
		for b.Loop() {
			if list, _, err := s.Folder(ctx, actor, "", ""); err != nil || len(list) != folders {
				b.Fatal(len(list), err)
			}
		}
	})
}
