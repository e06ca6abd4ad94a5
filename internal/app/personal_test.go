package app_test

import (
	"archive/zip"
	"bytes"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"agentsite/internal/ident"
	"agentsite/internal/testing/agenttest"
	"agentsite/internal/testing/apptest"
)

// markerPrefix begins every marker, and stands nowhere else.
const markerPrefix = "zqmark"

// newMarker returns a word that is also a valid name, and that no other call returns.
func newMarker() string { return markerPrefix + strings.ToLower(ident.NewID()) }

// fillAccount has a person write a marker into every field that they can fill in, and returns the markers. talk is a
// conversation with others, in which the person says some of them.
func fillAccount(t *testing.T, ada *apptest.Client, talk string, far *agenttest.OpenAIServer) []string {
	t.Helper()
	var markers []string
	m := func() string {
		markers = append(markers, newMarker())
		return markers[len(markers)-1]
	}
	api := func(method, path string, body any, status int) {
		t.Helper()
		ada.Must(method, "/api/v1"+path, body, status)
	}
	own := ada.Conversation("calc")
	ada.Say(own, "about "+m())
	api(http.MethodPatch, "/conversations/"+own, map[string]any{"title": "titled " + m()}, http.StatusOK)
	ada.Say(talk, "in public "+m())
	api(http.MethodPost, "/tokens", map[string]any{"label": m(), "scopes": []string{"tasks"}}, http.StatusCreated)
	api(http.MethodPost, "/searches", map[string]any{"title": m(), "query": "q=" + m()}, http.StatusCreated)
	api(http.MethodPost, "/webhooks", map[string]any{"url": "https://hooks.example/" + m(), "label": m(), "events": []string{"task.ended"}}, http.StatusCreated)
	api(http.MethodPost, "/models", map[string]any{"name": m(), "url": "https://llm.example/" + m(), "model": m()}, http.StatusCreated)
	api(http.MethodPut, "/grants/"+ident.NewID(), map[string]any{"agent": "calc", "tool": "ask", "scope": m(), "decision": "deny"}, http.StatusOK)
	api(http.MethodPost, "/agents", map[string]any{"name": m(), "title": m(), "description": "Does " + m(), "kind": "openai",
		"endpoint": far.Base(agenttest.Echo), "visibility": "public", "config": map[string]string{"model": m()},
		"skills": []map[string]any{{"id": "s", "name": m(), "description": m(), "tags": []string{m()}, "examples": []string{m()}}}}, http.StatusCreated)
	api(http.MethodPost, "/agents/calc/report", map[string]any{"reason": "other", "text": m()}, http.StatusNoContent)
	var file struct {
		URL string `json:"url"`
	}
	ada.Get(http.MethodPost, "/api/v1/files?name=a.txt", strings.NewReader("a file with "+m()), http.StatusCreated, &file)
	api(http.MethodPost, "/conversations/"+talk+"/messages", map[string]any{"client_id": m(),
		"parts": []map[string]any{{"text": "a file"}, {"url": file.URL, "filename": m() + ".txt"}}}, http.StatusCreated)
	return markers
}

// readArchive returns the files of a zip archive.
func readArchive(t *testing.T, b []byte) map[string]string {
	t.Helper()
	z, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	out := make(map[string]string)
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		out[f.Name] = string(content)
	}
	return out
}

// An archive has everything that the person wrote, and nothing of others that the person may not read.
func TestExport_HasEverythingOfThePersonAlone(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	far := agenttest.NewOpenAIServer(t)
	ada, bob := p.User(t, "ada"), p.User(t, "bob")
	bob.Say(bob.Conversation("calc"), "secretofbob")
	bob.Meets(ada)
	talk := bob.Conversation("calc", "ada")
	bob.Say(talk, "spokenbybob")
	markers := fillAccount(t, ada, talk, far)
	a := ada.Must(http.MethodPost, "/api/v1/me/export", nil, http.StatusOK)
	if got := a.Header.Get("Content-Type"); got != "application/zip" {
		t.Error(got)
	}
	files := readArchive(t, []byte(a.Body))
	var all strings.Builder
	for name, content := range files {
		all.WriteString(name + "\n" + content + "\n")
	}
	for i, m := range markers {
		if !strings.Contains(all.String(), m) && !strings.Contains(all.String(), url.QueryEscape(m)) {
			t.Errorf("marker %d is not in the archive", i)
		}
	}
	if strings.Contains(all.String(), "secretofbob") || !strings.Contains(files["conversations/"+talk+".jsonl"], "spokenbybob") {
		t.Error("the archive has another selection of messages")
	}
	for _, name := range []string{"README.txt", "manifest.json", "data/account.jsonl", "data/agents.jsonl", "data/uploads.jsonl"} {
		if files[name] == "" {
			t.Errorf("the archive has no %s", name)
		}
	}
	if strings.Contains(all.String(), ada.Token) && ada.Token != "" || strings.Contains(all.String(), "$argon2") {
		t.Error("the archive has a secret")
	}
	token := ada.NewToken("chat:read")
	token.Must(http.MethodPost, "/api/v1/me/export", nil, http.StatusForbidden)
}

// A person erases their account with its name and a new session; tokens and wrong names erase nothing.
func TestErase_TakesANewSessionAndTheName(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	ada, bob := p.User(t, "ada"), p.User(t, "bob")
	agent := ada.Agent("public", agenttest.NewOpenAIServer(t).Base(agenttest.Echo))
	ada.NewToken().Must(http.MethodDelete, "/api/v1/me", map[string]any{"confirm": "ada"}, http.StatusForbidden)
	ada.Must(http.MethodDelete, "/api/v1/me", map[string]any{"confirm": "bob"}, http.StatusBadRequest)
	ada.Must(http.MethodGet, "/api/v1/agents/"+agent, nil, http.StatusOK)
	ada.Must(http.MethodDelete, "/api/v1/me", map[string]any{"confirm": "ada"}, http.StatusNoContent)
	ada.Must(http.MethodGet, "/api/v1/me", nil, http.StatusUnauthorized)
	bob.Must(http.MethodGet, "/api/v1/agents/"+agent, nil, http.StatusNotFound)
	if r, err := p.Control().Verify(t.Context()); err != nil || len(r.Faults) > 0 {
		t.Error(r.Faults, err)
	}
	bob.Must(http.MethodPost, "/account/delete", form("confirm", "bob"), http.StatusSeeOther)
	bob.Must(http.MethodGet, "/api/v1/me", nil, http.StatusUnauthorized)
}

// Agents of an erased account leave other portals, so that their pages and searches have nothing of the person.
func TestErase_ReachesOtherPortals(t *testing.T) {
	t.Parallel()
	here, there := apptest.Start(t), apptest.Start(t)
	far := agenttest.NewOpenAIServer(t)
	marker, name := newMarker(), newMarker()
	ada := here.User(t, "ada")
	ada.Must(http.MethodPost, "/api/v1/agents", map[string]any{"name": name, "description": "Does " + marker, "kind": "openai",
		"endpoint": far.Base(agenttest.Echo), "visibility": "public", "config": map[string]string{"model": "x"}}, http.StatusCreated)
	if err := there.Greet(t.Context(), here.URL()); err != nil {
		t.Fatal(err)
	}
	bob := there.User(t, "bob")
	page := "/api/v1/agents/" + name + "@" + here.Host
	// A record reaches the catalog and the search index one after the other.
	await := func(what string, done func() (bool, string)) {
		t.Helper()
		deadline, tick := time.After(2*time.Minute), time.NewTicker(50*time.Millisecond)
		defer tick.Stop()
		for {
			ok, last := done()
			if ok {
				return
			}
			select {
			case <-tick.C:
			case <-deadline:
				t.Fatalf("%s: %.500s", what, last)
			}
		}
	}
	status := func(want int) func() (bool, string) {
		return func() (bool, string) {
			a := bob.Do(http.MethodGet, page, nil)
			return a.Status == want, a.Body
		}
	}
	await("the agent is known there", status(http.StatusOK))
	await("the other portal finds it", func() (bool, string) {
		a := bob.Must(http.MethodGet, "/api/v1/search?q="+marker, nil, http.StatusOK)
		return strings.Contains(a.Body, name), a.Body
	})
	ada.Must(http.MethodDelete, "/api/v1/me", map[string]any{"confirm": "ada", "messages": "delete"}, http.StatusNoContent)
	await("the agent is gone there", status(http.StatusNotFound))
	for _, path := range []string{"/api/v1/search?q=" + marker, "/agents?q=" + marker} {
		await(path+" has no agent", func() (bool, string) {
			a := bob.Must(http.MethodGet, path, nil, http.StatusOK)
			return !strings.Contains(a.Body, name) && !strings.Contains(a.Body, "Does "+marker), a.Body
		})
	}
}
