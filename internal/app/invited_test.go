package app_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"agentsite/internal/testing/apptest"
)

// ofInvited are the routes for invited people.
var ofInvited = []string{"/api/v1/conversations/{id}/accept", "/api/v1/conversations/{id}/decline", "/chat/{id}/accept", "/chat/{id}/decline"}

// Invited people before they accept, people after a decline, and former members get the answer of a stranger from
// each route about conversations and their files.
func TestPolicy_InvitedAndFormerMembersAreStrangers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	owner := w.as["owner"].With(t)
	id := w.stillRoom(t).id
	members := "/api/v1/conversations/" + id + "/members"
	strangers := make(map[string]*apptest.Client)
	for _, name := range []string{"invited", "declined", "left", "removed"} {
		c := w.p.User(t, name)
		strangers[name] = c
		owner.Must(http.MethodPost, members, map[string]any{"handle": name}, http.StatusCreated)
		if name == "declined" {
			c.Must(http.MethodPost, "/api/v1/conversations/"+id+"/decline", nil, http.StatusNoContent)
		}
		if name == "left" || name == "removed" {
			c.Must(http.MethodPost, "/api/v1/conversations/"+id+"/accept", nil, http.StatusOK)
		}
		if name == "left" {
			c.Must(http.MethodDelete, "/api/v1/conversations/"+id, nil, http.StatusNoContent)
		}
		if name == "removed" {
			owner.Must(http.MethodDelete, members+"/"+name, nil, http.StatusNoContent)
		}
	}
	all, tried := cells(), 0
	for _, r := range readPolicy(t) {
		ofRoom := strings.HasPrefix(r.pattern, "/api/v1/conversations/{id}") || strings.HasPrefix(r.pattern, "/chat/{id}")
		ofFile := strings.Contains(r.pattern, "/files/{hash}") && !strings.Contains(r.pattern, "{secret}")
		c := all[cellKey(r)]
		if !ofRoom && !ofFile || slices.Contains(ofInvited, r.pattern) || c.object == nil {
			continue
		}
		tried++
		o := c.object(t, w, "other")
		for name, person := range strangers {
			a := r.ask(person.With(t), w, c, o)
			want, _ := strings.CutSuffix(r.want["other"], "~")
			if !slices.Contains(strings.Split(want, "/"), fmt.Sprint(a.Status)) || !strings.HasPrefix(want, "4") {
				t.Errorf("%s as one who is %s: %d, want %s: %.200s", cellKey(r), name, a.Status, want, a.Body)
			}
		}
	}
	if tried < 40 {
		t.Errorf("only %d rows were tried", tried)
	}
	for name, person := range strangers {
		person := person.With(t)
		for _, path := range []string{"/api/v1/conversations", "/api/v1/conversations/search?q=2", "/api/v1/tasks", "/chat?q=2"} {
			if a := person.Do(http.MethodGet, path, nil); a.Status != http.StatusOK || strings.Contains(a.Body, id) && !(name == "invited" && strings.HasPrefix(path, "/chat")) {
				t.Errorf("%s as one who is %s: %d %.300s", path, name, a.Status, a.Body)
			}
		}
	}
}
