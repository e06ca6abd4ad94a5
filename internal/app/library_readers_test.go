package app_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"agentsite/internal/ident"
	"agentsite/internal/testing/apptest"
)

// That an agent wrote into a library is shown to the owner of the library only: in the page, in the API and in the live
// streams of a conversation, also when the message changes later. The page of the owner is told to fetch it again.
func TestLibrary_OnlyTheOwnerLearnsOfAWrite(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	ada, bob := p.User(t, "ada"), p.User(t, "bob")
	agent := filer(t, p.User(t, "eve"))
	ada.Must(http.MethodPut, "/api/v1/grants/"+ident.NewID(), map[string]any{"agent": agent, "tool": "library_write",
		"scope": "notes/", "decision": "allow"}, http.StatusOK)
	ada.Meets(bob)
	room := ada.Conversation(agent, "bob")
	owner := map[string]*apptest.Stream{"socket": ada.Socket(room, "?html=1"), "events": ada.Events(room, "?html=1")}
	others := map[string]*apptest.Stream{"bob's socket": bob.Socket(room, "?html=1"),
		"bob's events": bob.Events(room, "?html=1"), "ada's plain socket": ada.Socket(room)}
	said := ada.Say(room, "@"+agent+` please
library_write {"path":"notes/tea.md","text":"Black tea."}`)
	answer := owner["socket"].Answered(said.Tasks[0].ID)
	if readFile(ada, "notes/tea.md") != "Black tea." {
		t.Fatalf("nothing was written: %q", answer.Plain())
	}
	written := func(after int) func(apptest.Event) bool {
		n := 0
		return func(e apptest.Event) bool {
			if e.Type == "library" && e.Seq == answer.Seq {
				n++
			}
			return n > after
		}
	}
	for name, s := range owner {
		s.Wait(name+": the notice of the write", written(0))
	}
	// A reaction sends the message again, for all readers.
	bob.Must(http.MethodPut, fmt.Sprintf("/api/v1/conversations/%s/messages/%d/reactions/👍", room, answer.Seq), nil,
		http.StatusOK)
	for name, s := range owner {
		s.Wait(name+": the notice after a reaction", written(1))
	}
	ada.Say(room, "That is all.")
	for name, s := range others {
		s.Heard("That is all.")
		for _, e := range s.All() {
			if e.Type == "library" || strings.Contains(e.Raw, "data-filed") {
				t.Errorf("%s learns of the write: %s", name, e.Raw)
			}
		}
	}
	// One who comes back gets the notice too, and nobody else.
	ada.Socket(room, "?html=1&after=0").Wait("the notice after a break", written(0))
	late := bob.Socket(room, "?html=1&after=0")
	late.Heard("That is all.")
	ada.Say(room, "Good bye.") // after it, nothing of the first batch is missing
	late.Heard("Good bye.")
	for _, e := range late.All() {
		if e.Type == "library" {
			t.Errorf("bob learns of the write when he comes back: %s", e.Raw)
		}
	}
	const mark = `class="written`
	if page := ada.Must(http.MethodGet, "/chat/"+room, nil, http.StatusOK).Body; !strings.Contains(page, mark) {
		t.Error("the owner's page does not show the write")
	}
	for _, path := range []string{"/chat/" + room, "/api/v1/conversations/" + room + "/messages"} {
		body := bob.Must(http.MethodGet, path, nil, http.StatusOK).Body
		if strings.Contains(body, mark) || strings.Contains(body, "data-filed") || strings.Contains(body, `"written"`) {
			t.Errorf("bob learns of the write at %s", path)
		}
	}
}

// A kept file replaces nothing and has a name that can be stored, in a folder too.
func TestLibrary_KeptFilesHaveOwnNames(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	ada := p.User(t, "ada")
	long := strings.Repeat("a", 196) + ".md"
	putFile(t, ada, "tea.md", "Green tea.")
	putFile(t, ada, long, "Long.")
	putFile(t, ada, "plans/2027.md", "A folder.")
	hash := putFile(t, ada, "source.txt", "The kept content.").Hash
	for _, c := range []struct{ name, given, want string }{
		{"a free name", "milk.md", "milk.md"},
		{"the same content again", "milk.md", "milk.md"},
		{"the name of another content", "tea.md", "tea (2).md"},
		{"two spaces", "my  cup  of tea.md", "my cup of tea.md"},
		{"a folder with two spaces", "my  notes/tea.md", "my notes/tea.md"},
		{"a folder with a control character", "a\tb/tea.md", "a b/tea.md"},
		{"a longest name that is taken", long, strings.Repeat("a", 193) + " (2).md"},
		{"a name that is too long", strings.Repeat("b", 300) + ".md", strings.Repeat("b", 197) + ".md"},
		{"the name of a folder", "plans", "plans (2)"},
		{"out of the library", "../../milk.md", "milk.md"},
	} {
		a := ada.Must(http.MethodPost, "/library/keep", form("hash", hash, "path", c.given), http.StatusSeeOther)
		if got := readFile(ada, strings.ReplaceAll(c.want, " ", "%20")); got != "The kept content." {
			t.Errorf("%s: %q at %s", c.name, got, a.Header.Get("Location"))
		}
	}
	ada.Must(http.MethodPost, "/library/keep", form("hash", hash, "path", "tea.md/deeper.md"), http.StatusConflict)
	if got := readFile(ada, "tea.md"); got != "Green tea." {
		t.Errorf("replaced: %q", got)
	}
}
