package app_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"agentsite/handlers/library"
	"agentsite/internal/testing/apptest"
)

// putFile writes a version of a file.
func putFile(t *testing.T, c *apptest.Client, path, text string) (v library.VersionJSON) {
	t.Helper()
	a := c.Do(http.MethodPut, "/api/v1/library/"+path, text)
	if a.Status != http.StatusOK && a.Status != http.StatusCreated {
		t.Fatalf("put %s: %d %s", path, a.Status, a.Body)
	}
	if err := json.Unmarshal([]byte(a.Body), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// readFile returns the content of a file, or "404".
func readFile(c *apptest.Client, path string) string {
	a := c.Do(http.MethodGet, "/api/v1/library/"+path, nil)
	if a.Status != http.StatusOK {
		return strconv.Itoa(a.Status)
	}
	return a.Body
}

func versionsOf(c *apptest.Client, path string) []library.VersionJSON {
	var out struct{ Versions []library.VersionJSON }
	c.Get(http.MethodGet, "/api/v1/library/"+path+"?versions=all", nil, http.StatusOK, &out)
	return out.Versions
}

func filesOf(c *apptest.Client, query string) (paths []string) {
	var out struct{ Files []library.FileJSON }
	c.Get(http.MethodGet, "/api/v1/library"+query, nil, http.StatusOK, &out)
	for _, f := range out.Files {
		paths = append(paths, f.Path)
	}
	return paths
}

func libraryCells() map[string]cell {
	written := func(t *testing.T, w *world, _ string) object {
		path := "notes/" + apptest.Fresh("file") + ".md"
		putFile(t, w.as["owner"].With(t), path, "Tea at "+path)
		return object{name: path}
	}
	shared := func(t *testing.T, w *world, actor string) object {
		o := written(t, w, actor)
		var s library.ShareJSON
		w.as["owner"].With(t).Get(http.MethodPost, "/api/v1/library/"+o.name+"/share", map[string]any{"life": "1h"}, http.StatusCreated, &s)
		return object{id: s.ID, name: s.URL[strings.LastIndex(s.URL, "/")+1:]}
	}
	fresh := func(*testing.T, *world, string) object { return object{name: apptest.Fresh("new")} }
	sent := func(t *testing.T, w *world, _ string) object {
		v := putFile(t, w.as["owner"].With(t), apptest.Fresh("sent"), apptest.Fresh("words"))
		return object{hash: v.Hash, name: apptest.Fresh("kept")}
	}
	pathForm := func(pairs ...string) func(*world, object) any {
		return func(_ *world, o object) any { return form(append(slices.Clone(pairs), "path", o.name)...) }
	}
	fixed := func(v any) func(*world, object) any { return func(*world, object) any { return v } }
	first := fixed(map[string]any{"version": 1})
	return map[string]cell{
		"GET /api/v1/library":                {query: "?q=tea"},
		"DELETE /api/v1/library":             {},
		"GET /api/v1/library/*":              {object: written, rest: "{name}"},
		"GET /api/v1/library/* [versions]":   {object: written, rest: "{name}", query: "?versions=all"},
		"PUT /api/v1/library/*":              {object: fresh, rest: "{name}", body: fixed("Some text.")},
		"DELETE /api/v1/library/*":           {object: written, rest: "{name}"},
		"POST /api/v1/library/* [rollback]":  {object: written, rest: "{name}/rollback", body: first},
		"POST /api/v1/library/* [undo]":      {object: written, rest: "{name}/undo", body: first},
		"POST /api/v1/library/* [share]":     {object: written, rest: "{name}/share", body: fixed(map[string]any{"life": "1h"})},
		"GET /library":                       {},
		"POST /library/upload":               {body: fixed(form("folder", ""))},
		"GET /library/file":                  {object: written, query: "?path={name}"},
		"GET /library/raw":                   {object: written, query: "?path={name}"},
		"GET /library/edit":                  {object: written, query: "?path={name}"},
		"POST /library/edit":                 {object: fresh, body: pathForm("version", "0", "text", "Some text.")},
		"POST /library/delete":               {object: written, body: pathForm()},
		"GET /library/empty":                 {},
		"POST /library/empty":                {body: fixed(form("confirm", ""))},
		"POST /library/rollback":             {object: written, body: pathForm("version", "1")},
		"POST /library/undo":                 {object: written, body: pathForm("version", "1")},
		"POST /library/share":                {object: written, body: pathForm("life", "1h")},
		"POST /library/revoke":               {object: shared, body: func(_ *world, o object) any { return form("id", o.id, "path", "x") }},
		"POST /library/keep":                 {object: sent, body: func(_ *world, o object) any { return form("hash", o.hash, "path", o.name) }},
		"GET /shared-files/{secret}":         {object: shared},
		"GET /api/v1/library-shares":         {},
		"DELETE /api/v1/library-shares/{id}": {object: shared},
	}
}

// A person writes, reads, finds, deletes and rolls back files by the API.
func TestLibrary_VersionsAreNeverLost(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	ada, bob := p.User(t, "ada"), p.User(t, "bob")
	if v := putFile(t, ada, "notes/tea.md", "Green tea.\n"); v.Version != 1 || v.MediaType != "text/markdown" {
		t.Errorf("first: %+v", v)
	}
	putFile(t, ada, "notes/tea.md", "Black tea.\n")
	if v := putFile(t, ada, "notes/tea.md", "Black tea.\n"); v.Version != 2 {
		t.Errorf("the same content again: %+v", v)
	}
	putFile(t, ada, "plans/2027/budget.csv", "item,price\ntea,3\n")
	ada.Must(http.MethodPut, "/api/v1/library/notes/tea.md", "Late.", http.StatusConflict, func(r *http.Request) { r.Header.Set("If-Match", `"1"`) })
	ada.Must(http.MethodPut, "/api/v1/library/notes/tea.md", "New.", http.StatusConflict, func(r *http.Request) { r.Header.Set("If-None-Match", "*") })
	ada.Must(http.MethodPut, "/api/v1/library/notes", "A file.", http.StatusConflict)
	ada.Must(http.MethodPut, "/api/v1/library/notes/tea.md/deeper", "A file.", http.StatusConflict)
	for _, path := range []string{"..%2Fx", "a/%2E%2E/b", "a%00b", "a%2F%2Fb", "a%0Ab", "a%5Cb", strings.Repeat("a", 201), "a%E2%80%AEb", "%20a"} {
		if a := ada.Do(http.MethodPut, "/api/v1/library/"+path, "x"); a.Status != http.StatusBadRequest && a.Status != http.StatusNotFound {
			t.Errorf("the path %s: %d %s", path, a.Status, a.Body)
		}
	}
	putFile(t, ada, "caf%65%CC%81.txt", "decomposed")
	if got := readFile(ada, "caf%C3%A9.txt"); got != "decomposed" {
		t.Errorf("by its composed name: %s", got)
	}
	if got := filesOf(ada, "?prefix=notes/"); !slices.Equal(got, []string{"notes/tea.md"}) {
		t.Errorf("list: %v", got)
	}
	if got := filesOf(ada, "?q=BLACK+tea"); !slices.Equal(got, []string{"notes/tea.md"}) {
		t.Errorf("found: %v", got)
	}
	if got := filesOf(ada, "?q=green"); len(got) > 0 {
		t.Errorf("found an old version: %v", got)
	}
	if got := readFile(ada, "notes/tea.md?version=1"); got != "Green tea.\n" {
		t.Errorf("version 1: %s", got)
	}
	for _, path := range []string{"notes/tea.md", "notes/tea.md?version=1", "notes/tea.md?versions=all"} {
		if got := readFile(bob, path); got != "404" {
			t.Errorf("bob reads %s: %s", path, got)
		}
	}
	ada.Must(http.MethodDelete, "/api/v1/library/notes/tea.md", nil, http.StatusNoContent)
	if got, list := readFile(ada, "notes/tea.md"), filesOf(ada, "?prefix=notes/"); got != "404" || len(list) > 0 {
		t.Errorf("deleted: %s, %v", got, list)
	}
	ada.Must(http.MethodPost, "/api/v1/library/notes/tea.md/undo", map[string]any{"version": 2}, http.StatusConflict)
	ada.Must(http.MethodPost, "/api/v1/library/notes/tea.md/undo", map[string]any{"version": 3}, http.StatusOK)
	ada.Must(http.MethodPost, "/api/v1/library/notes/tea.md/rollback", map[string]any{"version": 1}, http.StatusOK)
	if got := readFile(ada, "notes/tea.md"); got != "Green tea.\n" {
		t.Errorf("rolled back: %s", got)
	}
	var restores []int
	for _, v := range versionsOf(ada, "notes/tea.md") {
		restores = append(restores, v.Restores)
	}
	if !slices.Equal(restores, []int{1, 2, 0, 0, 0}) {
		t.Errorf("versions restore %v", restores)
	}
}

// A link needs no account until it is revoked, and browsers never show its content.
func TestLibrary_SharesAreRevoked(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	ada, anybody := p.User(t, "ada"), p.Guest(t)
	putFile(t, ada, "page.html", "<script>alert(1)</script>")
	var s library.ShareJSON
	ada.Get(http.MethodPost, "/api/v1/library/page.html/share", map[string]any{"life": "1h"}, http.StatusCreated, &s)
	ada.Must(http.MethodPost, "/api/v1/library/page.html/share", map[string]any{"life": "never"}, http.StatusBadRequest)
	address := s.URL[strings.Index(s.URL, "/shared-files/"):]
	a := anybody.Must(http.MethodGet, address, nil, http.StatusOK)
	for name, want := range map[string]string{"Content-Disposition": "attachment; filename=page.html", "X-Content-Type-Options": "nosniff",
		"Content-Type": "application/octet-stream", "Content-Security-Policy": "default-src 'none'; sandbox; frame-ancestors 'none'"} {
		if got := a.Header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	anybody.Must(http.MethodGet, address+"x", nil, http.StatusNotFound)
	var list struct{ Shares []library.ShareJSON }
	ada.Get(http.MethodGet, "/api/v1/library-shares", nil, http.StatusOK, &list)
	if len(list.Shares) != 1 || list.Shares[0].ID != s.ID || list.Shares[0].URL != "" {
		t.Errorf("shares: %+v", list)
	}
	ada.Must(http.MethodDelete, "/api/v1/library-shares/"+s.ID, nil, http.StatusNoContent)
	anybody.Must(http.MethodGet, address, nil, http.StatusNotFound)
}

// Pages of the library work without JavaScript: a person sends files, edits a text, sees the differences, and goes back.
func TestLibraryPages_HistoryAndUndo(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	ada := p.User(t, "ada")
	var body bytes.Buffer
	m := multipart.NewWriter(&body)
	for _, f := range [][2]string{{"tea.md", "Green tea.\nHot.\n"}, {"milk.txt", "Cold."}} {
		w, err := m.CreateFormFile("file", f[0])
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(w, f[1])
	}
	m.Close()
	ada.Must(http.MethodPost, "/library/upload", io.Reader(&body), http.StatusSeeOther, setHeader("Content-Type", m.FormDataContentType()))
	ada.Must(http.MethodPost, "/library/edit", form("path", "tea.md", "version", "1", "text", "Black tea.\r\nHot.\r\n"), http.StatusSeeOther)
	if got := readFile(ada, "tea.md"); got != "Black tea.\nHot.\n" {
		t.Errorf("edited: %q", got)
	}
	if a := ada.Must(http.MethodPost, "/library/edit", form("path", "tea.md", "version", "1", "text", "Lost?"), http.StatusConflict); !strings.Contains(a.Body, "Lost?") {
		t.Error("a refused text is not shown again")
	}
	page := ada.Must(http.MethodGet, "/library/file?path=tea.md", nil, http.StatusOK).Body
	for _, want := range []string{"<del><bdi>Green tea.</bdi></del>", "<ins><bdi>Black tea.</bdi></ins>", "Changes since version 1"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page of the file has no %q", want)
		}
	}
	ada.Must(http.MethodPost, "/library/rollback", form("path", "tea.md", "version", "1"), http.StatusSeeOther)
	ada.Must(http.MethodPost, "/library/delete", form("path", "milk.txt"), http.StatusSeeOther)
	if page := ada.Must(http.MethodGet, "/library", nil, http.StatusOK).Body; strings.Contains(page, "milk.txt") || !strings.Contains(page, "tea.md") {
		t.Error("the folder shows a deleted file, or not the other one")
	}
	if got := readFile(ada, "tea.md"); got != "Green tea.\nHot.\n" {
		t.Errorf("gone back: %q", got)
	}
	page = ada.Must(http.MethodPost, "/library/share", form("path", "tea.md", "life", "24h"), http.StatusOK).Body
	_, secret, ok := strings.Cut(page, "/shared-files/")
	secret, _, _ = strings.Cut(secret, "<")
	if !ok {
		t.Fatal("the page shows no link")
	}
	p.Guest(t).Must(http.MethodGet, "/shared-files/"+secret, nil, http.StatusOK)
}

// Emptying a library deletes the files, versions, links and search texts of one person for good, if it is confirmed. What
// it counted is free, except for contents, which wait a day.
func TestLibrary_IsEmptied(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	ada, bob := p.User(t, "ada"), p.User(t, "bob")
	stored := func() (n int64) {
		var me struct{ Storage struct{ Bytes int64 } }
		ada.Get(http.MethodGet, "/api/v1/me", nil, http.StatusOK, &me)
		return me.Storage.Bytes
	}
	before := stored()
	putFile(t, bob, "tea.md", "Green tea.")
	for _, name := range []string{"tea.md", "notes/milk.md", "gone.md"} {
		putFile(t, ada, name, "About "+name)
	}
	putFile(t, ada, "tea.md", "Black tea.")
	ada.Must(http.MethodDelete, "/api/v1/library/gone.md", nil, http.StatusNoContent)
	var s library.ShareJSON
	ada.Get(http.MethodPost, "/api/v1/library/tea.md/share", map[string]any{"life": "1h"}, http.StatusCreated, &s)
	address := s.URL[strings.Index(s.URL, "/shared-files/"):]

	for _, query := range []string{"", "?confirm=", "?confirm=yes"} {
		ada.Must(http.MethodDelete, "/api/v1/library"+query, nil, http.StatusBadRequest)
	}
	page := ada.Must(http.MethodGet, "/library/empty", nil, http.StatusOK).Body
	for _, want := range []string{"2 that are there now", "5 versions in all", "cannot be undone"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if a := ada.Must(http.MethodPost, "/library/empty", form("confirm", ""), http.StatusBadRequest); !strings.Contains(a.Body, "tick this") {
		t.Error("the page does not say what is missing")
	}
	if len(filesOf(ada, "")) != 2 || len(versionsOf(ada, "tea.md")) != 2 {
		t.Fatal("files are gone without a confirmation")
	}

	ada.Must(http.MethodPost, "/library/empty", form("confirm", "all"), http.StatusSeeOther)
	if list := filesOf(ada, ""); len(list) > 0 {
		t.Errorf("files: %v", list)
	}
	if list := filesOf(ada, "?q=tea"); len(list) > 0 {
		t.Errorf("found: %v", list)
	}
	ada.Must(http.MethodGet, "/api/v1/library/tea.md?versions=all", nil, http.StatusNotFound)
	p.Guest(t).Must(http.MethodGet, address, nil, http.StatusNotFound)
	if got := readFile(bob, "tea.md"); got != "Green tea." {
		t.Errorf("the file of another person: %q", got)
	}
	if page := ada.Must(http.MethodGet, "/library/empty", nil, http.StatusOK).Body; !strings.Contains(page, "nothing to delete") {
		t.Error("the page offers to empty an empty library")
	}
	// Four contents wait for their deletion.
	var contents int64
	for _, text := range []string{"About tea.md", "About notes/milk.md", "About gone.md", "Black tea."} {
		contents += int64(len(text)) + 300
	}
	if got := stored() - before; got != contents {
		t.Errorf("%d bytes count, want %d", got, contents)
	}

	if v := putFile(t, ada, "tea.md", "White tea."); v.Version != 1 {
		t.Errorf("written again as version %d", v.Version)
	}
	var out struct{ Deleted int }
	ada.Get(http.MethodDelete, "/api/v1/library?confirm=all", nil, http.StatusOK, &out)
	if out.Deleted != 1 || len(filesOf(ada, "")) > 0 {
		t.Errorf("%d deleted, left %v", out.Deleted, filesOf(ada, ""))
	}
}
