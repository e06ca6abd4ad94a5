package app_test

import (
	"net/http"
	"net/url"
	"slices"
	"testing"
	"time"

	"agentsite/internal/testing/agenttest"
	"agentsite/internal/testing/apptest"
)

func TestStreams_EndWithTheRight(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	owner, oper := p.User(t, "olga"), p.Operator(t, "rob")
	type scene struct {
		victim *apptest.Client
		name   string
		room   string
	}
	for _, c := range []struct {
		name  string
		token bool
		act   func(t *testing.T, s scene)
	}{
		{"logout", false, func(t *testing.T, s scene) { s.victim.Must(http.MethodPost, "/logout", form(), http.StatusSeeOther) }},
		{"end all sessions", false, func(t *testing.T, s scene) {
			p.LogIn(t, s.name).Must(http.MethodPost, "/account/sessions/end", form(), http.StatusSeeOther)
		}},
		{"password changed elsewhere", false, func(t *testing.T, s scene) {
			p.LogIn(t, s.name).Must(http.MethodPost, "/account/password", form("current_password", apptest.Password, "password", "another good password"), http.StatusSeeOther)
		}},
		{"password reset", false, func(t *testing.T, s scene) {
			link, err := p.Control().ResetLink(t.Context(), s.name)
			if err != nil {
				t.Fatal(err)
			}
			u, _ := url.Parse(link)
			p.Guest(t).Must(http.MethodPost, "/reset", form("token", u.Query().Get("link"), "password", "another good password"), http.StatusSeeOther)
		}},
		{"token revoked", true, func(t *testing.T, s scene) {
			c := p.LogIn(t, s.name)
			var out struct{ Tokens []struct{ ID string } }
			c.Get(http.MethodGet, "/api/v1/tokens", nil, http.StatusOK, &out)
			c.Must(http.MethodDelete, "/api/v1/tokens/"+out.Tokens[0].ID, nil, http.StatusNoContent)
		}},
		{"disabled by the operator", false, func(t *testing.T, s scene) {
			oper.With(t).Must(http.MethodPost, "/admin/people/"+s.name+"/disable", form(), http.StatusSeeOther)
		}},
		{"token's account disabled from another process", true, func(t *testing.T, s scene) {
			c := p.OpenControl(t)
			defer c.Close()
			if err := c.SetUserDisabled(t.Context(), s.name, true); err != nil {
				t.Fatal(err)
			}
		}},
		{"removed from the room", false, func(t *testing.T, s scene) {
			owner.With(t).Must(http.MethodDelete, "/api/v1/conversations/"+s.room+"/members", map[string]any{"handle": s.name}, http.StatusNoContent)
		}},
		{"left the room", true, func(t *testing.T, s scene) {
			s.victim.Must(http.MethodDelete, "/api/v1/conversations/"+s.room+"/members", map[string]any{"handle": s.name}, http.StatusNoContent)
		}},
		{"conversation deleted", false, func(t *testing.T, s scene) {
			// Its owner has left, so it is the victim's alone and goes for good.
			owner.With(t).Must(http.MethodDelete, "/api/v1/conversations/"+s.room, nil, http.StatusNoContent)
			s.victim.Must(http.MethodDelete, "/api/v1/conversations/"+s.room, nil, http.StatusNoContent)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := scene{name: apptest.Fresh("victim")}
			s.victim = p.User(t, s.name)
			if c.token {
				s.victim = s.victim.NewToken()
			}
			owner := owner.With(t)
			s.room = owner.Conversation(s.name)
			s.victim.Must(http.MethodPost, "/api/v1/conversations/"+s.room+"/accept", nil, http.StatusOK)
			streams := []*apptest.Stream{s.victim.Socket(s.room), s.victim.Events(s.room)}
			owner.Say(s.room, "before")
			for _, x := range streams {
				x.Heard("before")
			}
			c.act(t, s)
			for i, x := range streams {
				select {
				case <-x.Ended:
				case <-time.After(apptest.WaitTime):
					t.Fatalf("stream %d goes on after the right ended", i)
				}
			}
			owner.Try(http.MethodPost, "/api/v1/conversations/"+s.room+"/messages", map[string]any{"client_id": "after", "text": "after"})
			for _, x := range streams {
				if slices.ContainsFunc(x.All(), func(e apptest.Event) bool { return e.Plain() == "after" }) {
					t.Error("something was delivered after the right ended")
				}
			}
			if a := s.victim.Do(http.MethodGet, "/api/v1/conversations/"+s.room+"/messages", nil); a.Status != http.StatusUnauthorized && a.Status != http.StatusNotFound {
				t.Errorf("the conversation can still be read: %d", a.Status)
			}
		})
	}
}

func TestIDs_OfOthersGiveNothing(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	olga, otto := p.User(t, "olga"), p.User(t, "otto")
	type listed struct {
		Tasks []struct {
			ID             string
			ConversationID string `json:"conversation_id"`
		}
		Conversations []struct{ ID string }
		NextCursor    string `json:"next_cursor"`
	}
	start := func(c *apptest.Client) (room, task string) {
		room = c.Conversation("calc")
		s := c.Events(room)
		task = c.Say(room, "2+2").Tasks[0].ID
		s.Answered(task)
		return room, task
	}
	room1, task1 := start(olga)
	start(olga)
	mine, myTask := start(otto)
	var l listed
	otto.Get(http.MethodGet, "/api/v1/tasks?conversation_id="+room1, nil, http.StatusOK, &l)
	if len(l.Tasks) != 0 {
		t.Errorf("tasks of a foreign conversation: %v", l.Tasks)
	}
	var hers listed
	olga.Get(http.MethodGet, "/api/v1/tasks?limit=1", nil, http.StatusOK, &hers)
	otto.Get(http.MethodGet, "/api/v1/tasks?cursor="+hers.NextCursor, nil, http.StatusOK, &l)
	for _, x := range l.Tasks {
		if x.ID != myTask {
			t.Errorf("a foreign cursor led to task %s", x.ID)
		}
	}
	hers = listed{}
	olga.Get(http.MethodGet, "/api/v1/conversations?limit=1", nil, http.StatusOK, &hers)
	if hers.NextCursor == "" {
		t.Fatal("no cursor")
	}
	l = listed{}
	otto.Get(http.MethodGet, "/api/v1/conversations?cursor="+hers.NextCursor, nil, http.StatusOK, &l)
	for _, x := range l.Conversations {
		if x.ID != mine {
			t.Errorf("a foreign cursor led to conversation %s", x.ID)
		}
	}
	for _, c := range []struct {
		what, method, path string
		body               any
		want               int
	}{
		{"task of another", http.MethodGet, "/api/v1/tasks/" + task1, nil, 404},
		{"input to a task of another", http.MethodPost, "/api/v1/tasks/" + task1 + "/input", map[string]any{"text": "yes"}, 404},
		{"cancel of a task of another", http.MethodPost, "/api/v1/tasks/" + task1 + "/cancel", nil, 404},
		{"task id as conversation", http.MethodGet, "/api/v1/conversations/" + myTask, nil, 404},
		{"conversation id as task", http.MethodGet, "/api/v1/tasks/" + mine, nil, 404},
		{"removing somebody of another room", http.MethodDelete, "/api/v1/conversations/" + mine + "/members", map[string]any{"handle": "olga"}, 404},
		{"removing oneself from another room", http.MethodDelete, "/api/v1/conversations/" + room1 + "/members", map[string]any{"handle": "otto"}, 404},
		{"reading on in another room", http.MethodPost, "/api/v1/conversations/" + room1 + "/read", map[string]any{"seq": 1}, 404},
		{"account id as member", http.MethodPost, "/api/v1/conversations", map[string]any{"members": []string{room1}}, 404},
	} {
		if a := otto.Do(c.method, c.path, c.body); a.Status != c.want {
			t.Errorf("%s: %d, want %d: %.200s", c.what, a.Status, c.want, a.Body)
		}
	}
	// The same client_id of two senders in one room is two messages.
	shared := olga.Conversation("otto")
	otto.Must(http.MethodPost, "/api/v1/conversations/"+shared+"/accept", nil, http.StatusOK)
	body := map[string]any{"client_id": "same", "text": "hers"}
	olga.Must(http.MethodPost, "/api/v1/conversations/"+shared+"/messages", body, http.StatusCreated)
	body["text"] = "his"
	otto.Must(http.MethodPost, "/api/v1/conversations/"+shared+"/messages", body, http.StatusCreated)
	otto.Must(http.MethodPost, "/api/v1/conversations/"+shared+"/messages", body, http.StatusOK)
	// A token in a cookie is no session, a session as bearer no token.
	token := otto.NewToken()
	u, _ := url.Parse(p.Base)
	cookies := otto.HTTP.Jar.Cookies(u)
	swapped := p.Guest(t)
	swapped.HTTP.Jar.SetCookies(u, []*http.Cookie{{Name: cookies[0].Name, Value: token.Token, Path: "/"}})
	swapped.Must(http.MethodGet, "/account", nil, http.StatusSeeOther)
	swapped.Must(http.MethodGet, "/api/v1/me", nil, http.StatusUnauthorized)
	p.Bearer(t, cookies[0].Value).Must(http.MethodGet, "/api/v1/me", nil, http.StatusUnauthorized)
}

// A token that may only read must not stop the work of a room on its way to
// being refused.
func TestDelete_WithoutScopeStopsNothing(t *testing.T) {
	t.Parallel()
	far := agenttest.NewOpenAIServer(t)
	p := apptest.Start(t)
	olga := p.User(t, "olga")
	room := olga.Conversation(olga.Agent("public", far.Base(agenttest.Wait)))
	task := olga.Say(room, "Hello").Tasks[0].ID
	<-far.Started
	reader := olga.NewToken("chat:read")
	reader.Must(http.MethodDelete, "/api/v1/conversations/"+room, nil, http.StatusForbidden)
	reader.Must(http.MethodPost, "/api/v1/conversations/"+room+"/stop", nil, http.StatusForbidden)
	// A whole answer elsewhere is time enough for a stop to arrive.
	other := olga.Conversation("calc")
	s := olga.Events(other)
	s.Answered(olga.Say(other, "2+2").Tasks[0].ID)
	var now struct{ State string }
	olga.Get(http.MethodGet, "/api/v1/tasks/"+task, nil, http.StatusOK, &now)
	if now.State != "working" {
		t.Errorf("the task is %s", now.State)
	}
	olga.Must(http.MethodPost, "/api/v1/conversations/"+room+"/stop", nil, http.StatusOK)
	<-far.Stopped
}

// What an agent was while private stays its owner's when it becomes public.
func TestVersions_KeepPrivatePastPrivate(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	olga, otto := p.User(t, "olga"), p.User(t, "otto")
	name := olga.Agent("private", "http://127.0.0.1:1234/v1")
	olga.Must(http.MethodPatch, "/api/v1/agents/"+name, map[string]any{"description": "For everybody.", "visibility": "public"}, http.StatusOK)
	count := func(c *apptest.Client) int {
		var out struct{ Versions []struct{ Version int } }
		c.Get(http.MethodGet, "/api/v1/agents/"+name+"/versions", nil, http.StatusOK, &out)
		return len(out.Versions)
	}
	if mine, others := count(olga), count(otto); mine != 2 || others != 1 {
		t.Errorf("the owner sees %d versions, others %d; want 2 and 1", mine, others)
	}
}
