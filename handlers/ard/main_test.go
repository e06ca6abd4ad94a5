package ard

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"

	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/index"
)

// directory is the real index without a portal around it.
type directory struct {
	*index.Index
	asked []hub.Query
}

func (d *directory) Search(_ context.Context, _ ident.Actor, q hub.Query) (hub.Page, error) {
	d.asked = append(d.asked, q)
	if q.Scope == hub.ScopePortal {
		q.Portals = []string{"local"}
	}
	return d.Index.Search(q)
}

func (d *directory) Listed(_ context.Context, _ ident.Actor, name string) (hub.Agent, error) {
	page, err := d.Index.Search(hub.Query{Text: name})
	for _, r := range page.Results {
		if r.Agent.Name == name {
			return r.Agent, nil
		}
	}
	return hub.Agent{}, fault.New(fault.NotFound, "There is no agent %s. %v", name, err)
}

func (d *directory) Own() int { return d.Count("") }

func (d *directory) Source(a hub.Agent) hub.Source {
	for _, p := range d.Portals() {
		if p.Portal == a.Portal {
			return p
		}
	}
	return hub.Source{Portal: "portal.example", URL: "https://portal.example", Verified: true}
}

func (d *directory) Portals() []hub.Source {
	return []hub.Source{{Portal: "other.example:8443", URL: "https://other.example:8443", Name: "Other", Verified: true},
		{Portal: "unseen.example", URL: "https://unseen.example", Name: "Unseen"}}
}

var born = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// made is the n-th agent of a test; every third does not answer.
func made(n int) hub.Agent {
	a := hub.Agent{ID: ident.NewID(), Name: fmt.Sprintf("agent-%05d", n), Title: fmt.Sprintf("Agent %d", n), Description: "Answers in a test.", Kind: hub.Link, Visibility: hub.Public, Version: 1,
		Status: hub.Status{State: hub.Active}, Liveness: hub.Liveness{State: hub.Alive}, CreatedAt: born.Add(time.Duration(n) * time.Hour), UpdatedAt: born.Add(time.Duration(n) * time.Hour),
		Skills: []hub.Skill{{ID: "talk", Name: "Talk", Tags: []string{"test", fmt.Sprintf("tag-%02d", n%40)}, Examples: []string{"hello", "how are you?"}}}}
	if n%3 == 0 {
		a.Liveness.State = hub.Unreachable
	}
	return a
}

func newDoor(agents int) (*Handler, *directory) {
	dir := &directory{Index: index.New()}
	for n := range agents {
		dir.Put(made(n))
	}
	return New(Config{Directory: dir, Callers: asPublic{}, Name: "Test", URL: "https://portal.example", Host: "portal.example",
		Publisher: "portal.example", Version: "1", PublicKey: "key", Log: slog.New(slog.DiscardHandler)}), dir
}

func (d *Handler) get(path string) *httptest.ResponseRecorder {
	r := chi.NewRouter()
	d.Routes(r)
	w := httptest.NewRecorder()
	r.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w
}

func TestDomain(t *testing.T) {
	for in, want := range map[string]string{"Portal.Example": "portal.example", "127.0.0.1": "127.0.0.1", "2001:db8::1": "2001-db8--1", "a_b.example": "a-b.example"} {
		if got := Domain(in); got != want {
			t.Errorf("Domain(%q) = %q, want %q", in, got, want)
		}
		if id := "urn:air:" + Domain(in) + ":agents:x"; !identifier.MatchString(id) {
			t.Errorf("%s is no identifier", id)
		}
	}
}

// asPublic takes each caller for a guest.
type asPublic struct{}

func (asPublic) Authenticate(*http.Request) (ident.Actor, error) { return publicActor, nil }
