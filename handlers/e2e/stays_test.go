package e2e

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"agentsite/internal/testing/agenttest"
	"agentsite/internal/testing/apptest"
)

// TestGuest_HasAnAnswerByOneClick has a visitor without an account on the home page: one click asks the example, and the
// answer is there, without a field or a form between.
func TestGuest_HasAnAnswerByOneClick(t *testing.T) {
	root := needBrowser(t)
	t.Parallel()
	p := apptest.Start(t)
	for name, s := range map[string]screen{"desk": desk, "phone": screens["phone"], "plain": screens["phone without scripts"]} {
		t.Run(name, func(t *testing.T) {
			g := visit(t, root, p, s)
			g.open("/")
			g.press(".example button")
			g.answered("12")
			g.clean("an answer by one click")
		})
	}
}

// pagesSince lists the requests for pages after the first n requests, as method and path: without those for files, API
// and streams.
func (f *front) pagesSince(n int) (list []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.seen[n:] {
		_, path, _ := strings.Cut(s, " ")
		if !strings.HasPrefix(path, "/static/") && !strings.HasPrefix(path, "/api/") && path != "/favicon.ico" {
			list = append(list, s)
		}
	}
	return list
}

func (f *front) requests() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.seen)
}

// sameSteps fails unless joining took these requests and no other page between. BenchmarkJoin measures their time.
func (f *front) sameSteps(t *testing.T, since int, want ...string) {
	t.Helper()
	if got := f.pagesSince(since); !slices.Equal(got, want) {
		t.Errorf("joining takes %q, want %q", got, want)
	}
}

// TestSignUp_IsOneForm fills two fields and clicks once: the next page is the home page of the new account, which asks
// an agent as that account by the next click.
func TestSignUp_IsOneForm(t *testing.T) {
	root := needBrowser(t)
	t.Parallel()
	f := newFront(t)
	behind(t, f)
	for name, s := range map[string]screen{"desk": desk, "phone": screens["phone"], "plain": screens["phone without scripts"]} {
		// One after the other: the front counts the requests of one.
		b := visitAt(t, root, f.URL, s)
		b.open("/signup")
		b.fill("#name", "ada-"+name)
		b.fill("#password", apptest.Password)
		since := f.requests()
		b.press("main form button")
		b.until("the account", `document.querySelector('.who a[href="/account"]')?.innerText.includes(`+js("ada-"+name)+`)`)
		f.sameSteps(t, since, "POST /signup", "GET /")
		b.press(".example button")
		b.answered("12")
		b.clean("an account by one form")
	}
}

// TestRoom_IsJoinedByALink has a person open an invitation link: one click, and the conversation with its messages is
// there, after one page.
func TestRoom_IsJoinedByALink(t *testing.T) {
	root := needBrowser(t)
	t.Parallel()
	f := newFront(t)
	p := behind(t, f)
	ada := p.User(t, "ada")
	for name, s := range map[string]screen{"desk": desk, "phone": screens["phone"], "plain": screens["phone without scripts"]} {
		bob := p.User(t, "bob-"+name)
		room := ada.Conversation()
		ada.Say(room, "Welcome aboard")
		var link struct{ URL string }
		ada.Get(http.MethodPost, "/api/v1/conversations/"+room+"/links", map[string]any{"kind": "join", "role": "member"}, http.StatusCreated, &link)
		b := visit(t, root, p, s).as(bob)
		path := strings.TrimPrefix(link.URL, p.URL())
		since := f.requests()
		b.open(path)
		b.press("main form button")
		b.until("the conversation", `location.pathname === "/chat/`+room+`" && document.querySelector("[data-messages]").innerText.includes("Welcome aboard")`)
		f.sameSteps(t, since, "GET "+path, "POST "+path, "GET /chat/"+room)
		b.clean("joining by a link")
	}
}

// TestRegister_FetchTryRegister pastes an address, tries the agent that was found, and registers it: three clicks after
// two fields, at both widths, with and without scripts.
func TestRegister_FetchTryRegister(t *testing.T) {
	root := needBrowser(t)
	t.Parallel()
	for name, s := range map[string]screen{"desk": desk, "phone": screens["phone"], "plain": screens["phone without scripts"]} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := apptest.Start(t)
			n := &newcomer{tab: visit(t, root, p, s).as(p.User(t, "ann-"+name))}
			h := newHarbour(t)
			n.open("/agents/new")
			n.fill("#url", h.URL)
			n.press(".fetch button")
			n.says("Found “Harbour pilot”")
			n.fill("#try", "When is high water?")
			if s.scripts {
				n.steps++
				n.click("[data-try-button]")
			} else {
				n.press("[data-try-button]")
			}
			n.until("its answer", `[...document.querySelectorAll(".a-try .prose")].at(-1)?.innerText.includes(`+js(agenttest.Echoed("When is high water?"))+`)`)
			n.press(`button[name="save"]`)
			n.says("It is registered. Next steps")
			if n.steps != 5 {
				t.Errorf("it took %d steps", n.steps)
			}
			n.clean("fetch, try, register")
		})
	}
}
