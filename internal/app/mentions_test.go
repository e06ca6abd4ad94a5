package app_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"agentsite/internal/testing/apptest"
)

// A person gets a notice when others add or mention them, once until they read it, and none in a conversation
// that they muted.
func TestNotices_OfConversations(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	ada, bob := p.User(t, "ada"), p.User(t, "bob")
	last := ""
	notices := func() (got []string) {
		t.Helper()
		var list struct {
			Notices []struct{ ID, Kind, URL string }
		}
		ada.Get(http.MethodGet, "/api/v1/notices", nil, http.StatusOK, &list)
		for _, n := range list.Notices {
			got = append(got, n.Kind+" "+strings.TrimPrefix(n.URL, p.URL()))
		}
		last = list.Notices[0].ID
		return got
	}
	read := func() {
		t.Helper()
		ada.Must(http.MethodPost, "/api/v1/notices/read", map[string]any{"up_to": last}, http.StatusNoContent)
	}
	bob.Meets(ada) // an invitation
	room := bob.Conversation("calc", "ada")
	first := notices()
	if !slices.Contains(first, "added /chat/"+room) {
		t.Errorf("no notice of being added: %q", first)
	}
	expect := func(what string, more int) {
		t.Helper()
		if got := notices(); len(got) != len(first)+more {
			t.Errorf("%s: %q", what, got)
		}
	}
	said := bob.Say(room, "hello @ada")
	if got := notices(); !slices.Contains(got, fmt.Sprintf("mention /chat/%s/m/%d", room, said.Seq)) {
		t.Errorf("no notice of being mentioned: %q", got)
	}
	bob.Say(room, "once more, @ada")
	expect("a second one before the first was read", 1)
	ada.Say(room, "I am @ada, and `@ada` is a name")
	expect("by oneself", 1)
	read()
	bob.Say(room, "hello again, @ada")
	expect("after reading", 2)
	read()
	bob.Say(room, "`@ada` in code, and > no quote")
	expect("in code", 2)
	ada.Must(http.MethodPatch, "/api/v1/conversations/"+room, map[string]any{"notify": "nothing"}, http.StatusOK)
	bob.Say(room, "muted, @ada")
	expect("in a muted conversation", 2)
}
