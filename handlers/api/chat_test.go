package api_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"agentsite/handlers/api"
	"agentsite/handlers/respond"
	"agentsite/internal/account"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/task"
	"agentsite/internal/testing/sitetest"
)

// apiSite is a site whose API and pages both answer.
type apiSite struct {
	*sitetest.Site
	h http.Handler
}

func newAPISite(t *testing.T) *apiSite {
	s := sitetest.NewSite(t, account.Open)
	return &apiSite{s, s.Router}
}

// call sends a request as somebody: by their session, or with a token of
// theirs. body is nil, a string as it stands, or what becomes JSON.
func (s *apiSite) call(b *sitetest.Browser, token, method, path string, body any, edit ...func(*http.Request)) *httptest.ResponseRecorder {
	s.T.Helper()
	var rd io.Reader
	switch v := body.(type) {
	case nil:
	case string:
		rd = strings.NewReader(v)
	case io.Reader:
		rd = v
	default:
		j, err := json.Marshal(v)
		if err != nil {
			s.T.Fatal(err)
		}
		rd = bytes.NewReader(j)
	}
	r := httptest.NewRequest(method, path, rd)
	if b != nil {
		r.RemoteAddr = b.Addr
		if b.Cookie != "" && token == "" {
			r.AddCookie(&http.Cookie{Name: "agentsite-test", Value: b.Cookie})
		}
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	for _, e := range edit {
		e(r)
	}
	w := httptest.NewRecorder()
	s.h.ServeHTTP(w, r)
	return w
}

// must is call that demands a status and reads the answer.
func (s *apiSite) must(b *sitetest.Browser, method, path string, body any, want int) map[string]any {
	s.T.Helper()
	w := s.call(b, "", method, "/api/v1"+path, body)
	if w.Code != want {
		s.T.Fatalf("%s %s: %d, want %d: %s", method, path, w.Code, want, w.Body)
	}
	out := make(map[string]any)
	if w.Code != http.StatusNoContent {
		if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil {
			s.T.Fatalf("%s %s: %v in %s", method, path, err, w.Body)
		}
	}
	return out
}

func (s *apiSite) open(b *sitetest.Browser, members ...string) string {
	s.T.Helper()
	return s.must(b, http.MethodPost, "/conversations", map[string]any{"members": members}, http.StatusCreated)["id"].(string)
}

func (s *apiSite) said(b *sitetest.Browser, id, text string) int64 {
	s.T.Helper()
	return int64(s.must(b, http.MethodPost, "/conversations/"+id+"/messages", map[string]any{"client_id": ident.NewID(), "text": text}, http.StatusCreated)["seq"].(float64))
}

func (s *apiSite) token(b *sitetest.Browser, scopes ...ident.Scope) string {
	s.T.Helper()
	secret, err := s.Accounts.CreateToken(s.T.Context(), b.Actor, account.NewToken{Label: "x", Scopes: scopes})
	if err != nil {
		s.T.Fatal(err)
	}
	return secret
}

func TestAPI_MessageIsTheSameEverywhereAfterItChanged(t *testing.T) {
	s := newAPISite(t)
	ann, bob := s.Person("ann"), s.Person("bob")
	s.Acquaint(ann, bob)
	id := s.open(ann, "bob")
	first := s.said(ann, id, "Frist")
	at := fmt.Sprintf("/conversations/%s/messages/%d", id, first)
	s.must(ann, http.MethodPatch, at, map[string]any{"text": "First"}, http.StatusOK)
	s.must(bob, http.MethodPut, at+"/reactions/%F0%9F%91%8D", nil, http.StatusOK)
	s.must(bob, http.MethodPatch, at, map[string]any{"text": "Mine"}, http.StatusForbidden)
	m := s.must(bob, http.MethodGet, at, nil, http.StatusOK)
	if m["edited_at"] == nil || fmt.Sprint(m["reactions"]) != "[map[by:[bob] emoji:👍]]" || fmt.Sprint(m["parts"]) != "[map[text:First]]" {
		t.Errorf("%v", m)
	}
	list := s.must(bob, http.MethodGet, "/conversations/"+id+"/messages?limit=1", nil, http.StatusOK)["messages"].([]any)
	if fmt.Sprint(list[0]) != fmt.Sprint(m) {
		t.Errorf("lists say %v", list[0])
	}
	if e := s.must(bob, http.MethodGet, at+"/edits", nil, http.StatusOK)["edits"].([]any); len(e) != 2 || !strings.Contains(fmt.Sprint(e[0]), "Frist") {
		t.Errorf("edits %v", e)
	}
	reply := int64(s.must(bob, http.MethodPost, "/conversations/"+id+"/messages", map[string]any{"client_id": "r", "text": "Yes", "reply_to": first}, http.StatusCreated)["seq"].(float64))
	if m := s.must(ann, http.MethodGet, fmt.Sprintf("/conversations/%s/messages/%d", id, reply), nil, http.StatusOK); m["target"] != float64(first) {
		t.Errorf("the reply targets %v", m["target"])
	}
	s.must(bob, http.MethodDelete, at+"/reactions/%F0%9F%91%8D", nil, http.StatusOK)
	m = s.must(ann, http.MethodDelete, at, nil, http.StatusOK)
	if u, _ := m["unsaid"].(map[string]any); u["by"] != "ann" || u["at"] == "" || fmt.Sprint(m["parts"]) != "[]" || m["reactions"] != nil {
		t.Errorf("taken away: %v", m)
	}
	for _, bad := range []string{"0", "-1", "x", "99999999999999999999", "4711"} {
		s.must(ann, http.MethodGet, "/conversations/"+id+"/messages/"+bad, nil, http.StatusNotFound)
	}
}

func TestAPI_ConversationTellsSettingsAndWhatIsMine(t *testing.T) {
	s := newAPISite(t)
	ann, bob := s.Person("ann"), s.Person("bob")
	s.Acquaint(ann, bob)
	id := s.open(ann, "guide")
	c := s.must(ann, http.MethodGet, "/conversations/"+id, nil, http.StatusOK)
	if c["private"] != true || fmt.Sprint(c["settings"]) != "map[budget:262144 hops:3 past:all speaks:alone turns:8]" || fmt.Sprint(c["mine"]) != "map[archived:false from_seq:0 notify: pinned:false role:owner]" {
		t.Errorf("%v", c)
	}
	c = s.must(ann, http.MethodPatch, "/conversations/"+id, map[string]any{"title": "Plans", "speaker": "guide", "past": "nothing", "hops": 1, "pinned": true, "notify": "mentions"}, http.StatusOK)
	if c["title"] != "Plans" || fmt.Sprint(c["settings"]) != "map[budget:262144 hops:1 past:nothing speaker:guide speaks:agent turns:8]" || c["mine"].(map[string]any)["pinned"] != true {
		t.Errorf("%v", c)
	}
	for body, field := range map[string]string{`{"speaks":"loudly"}`: "speaks", `{"hops":99}`: "hops", `{"notfy":"mentions"}`: "notfy", `{"pinned":"yes"}`: "pinned"} {
		w := s.call(ann, "", http.MethodPatch, "/api/v1/conversations/"+id, body)
		var e respond.ErrorBody
		if json.Unmarshal(w.Body.Bytes(), &e); w.Code != http.StatusBadRequest || e.Error.Fields[field] == "" {
			t.Errorf("%s: %d %s", body, w.Code, w.Body)
		}
	}
	s.said(ann, id, "before")
	s.must(ann, http.MethodPost, "/conversations/"+id+"/members", map[string]any{"handle": "bob"}, http.StatusCreated)
	s.said(ann, id, "after")
	s.said(ann, id, "and after")
	c = s.must(bob, http.MethodGet, "/conversations?limit=5", nil, http.StatusOK)["conversations"].([]any)[0].(map[string]any)
	if c["unread"] != float64(2) || c["private"] != false || c["mine"].(map[string]any)["from_seq"] == float64(0) {
		t.Errorf("bob's list: %v", c)
	}
	s.must(bob, http.MethodPatch, "/conversations/"+id, map[string]any{"archived": true}, http.StatusOK)
	if n := len(s.must(bob, http.MethodGet, "/conversations", nil, http.StatusOK)["conversations"].([]any)); n != 0 {
		t.Errorf("%d that are not archived", n)
	}
	for filter, want := range map[string]int{"archived": 1, "pinned": 0} {
		if n := len(s.must(bob, http.MethodGet, "/conversations?filter="+filter, nil, http.StatusOK)["conversations"].([]any)); n != want {
			t.Errorf("%d %s", n, filter)
		}
	}
	s.must(bob, http.MethodGet, "/conversations?filter=lost", nil, http.StatusBadRequest)
	// What he may not see, he does not find.
	for q, want := range map[string]int{"after": 2, "before": 0} {
		found := s.must(bob, http.MethodGet, "/conversations/search?q="+q, nil, http.StatusOK)["results"].([]any)
		if len(found) != want {
			t.Errorf("%s: found %v", q, found)
		}
	}
	page := s.must(bob, http.MethodGet, "/conversations/search?q=after&limit=1", nil, http.StatusOK)
	page = s.must(bob, http.MethodGet, "/conversations/search?q=after&limit=1&cursor="+page["next_cursor"].(string), nil, http.StatusOK)
	if r := page["results"].([]any); len(r) != 1 || !strings.Contains(fmt.Sprint(r), "text:after") {
		t.Errorf("the next page: %v", page)
	}
}

func TestAPI_ReadersReadAndReact(t *testing.T) {
	s := newAPISite(t)
	ann, bob := s.Person("ann"), s.Person("bob")
	s.Acquaint(ann, bob)
	id := s.open(ann, "bob", "guide")
	seq := s.said(ann, id, "@guide hello")
	s.must(ann, http.MethodPatch, "/conversations/"+id+"/members/bob", map[string]any{"role": "reader"}, http.StatusNoContent)
	s.must(bob, http.MethodPost, "/conversations/"+id+"/messages", map[string]any{"client_id": "1", "text": "Hi"}, http.StatusForbidden)
	s.must(bob, http.MethodPost, "/conversations/"+id+"/stop", nil, http.StatusForbidden)
	s.must(bob, http.MethodPut, fmt.Sprintf("/conversations/%s/messages/%d/reactions/%%E2%%9D%%A4", id, seq), nil, http.StatusOK)
	c := s.must(bob, http.MethodPost, "/conversations/"+id+"/branch", map[string]any{"seq": seq}, http.StatusCreated)
	if c["private"] != true || c["branched_from"] != id || c["mine"].(map[string]any)["role"] != "owner" {
		t.Errorf("%v", c)
	}
	s.must(bob, http.MethodPost, "/conversations/"+id+"/branch", map[string]any{}, http.StatusBadRequest)
}

func TestAPI_SessionsAreToldWhereTextGoes(t *testing.T) {
	s := newAPISite(t)
	ann := s.Person("ann")
	s.AgentOf(ann, "echo", hub.Public)
	id := s.open(ann, "echo")
	say := map[string]any{"client_id": "1", "text": "Hello"}
	path := "/conversations/" + id + "/messages"
	e := s.must(ann, http.MethodPost, path, say, http.StatusConflict)["error"].(map[string]any)
	if told, _ := e["fields"].(map[string]any)["told"].(string); !strings.Contains(told, "echo") || !strings.Contains(told, "echo.example") {
		t.Errorf("%v", e)
	}
	if n := s.must(ann, http.MethodGet, path, nil, http.StatusOK)["messages"].([]any); len(n) != 0 {
		t.Errorf("%v was said all the same", n)
	}
	if w := s.call(ann, s.token(ann, ident.ChatWrite), http.MethodPost, "/api/v1"+path, map[string]any{"client_id": "token", "text": "Hello"}); w.Code != http.StatusCreated {
		t.Errorf("a token: %d %s", w.Code, w.Body)
	}
	s.must(ann, http.MethodPost, path, map[string]any{"client_id": "2", "text": "Hello"}, http.StatusConflict) // a program's word is not the person's
	say["told"], say["share"] = []string{"echo"}, "nothing"
	s.must(ann, http.MethodPost, path, say, http.StatusCreated)
	s.must(ann, http.MethodPost, path, map[string]any{"client_id": "3", "text": "Hello"}, http.StatusCreated)
	d := s.must(ann, http.MethodGet, "/conversations/"+id+"/disclosures", nil, http.StatusOK)["disclosures"].([]any)[0].(map[string]any)
	if d["agent"] != "echo" || d["host"] != "echo.example" || d["share"] != "nothing" || d["told_at"] == nil {
		t.Errorf("%v", d)
	}
	s.must(ann, http.MethodPost, "/conversations/"+id+"/disclosures", map[string]any{"agent": "echo", "share": "everything"}, http.StatusBadRequest)
	s.must(ann, http.MethodPost, "/conversations/"+id+"/disclosures", map[string]any{"agent": "echo", "share": "own"}, http.StatusNoContent)
}

func TestAPI_LinksLetInAndShow(t *testing.T) {
	s := newAPISite(t)
	ann, bob := s.Person("ann"), s.Person("bob")
	s.Acquaint(ann, bob)
	id := s.open(ann, "guide")
	s.said(ann, id, "Shown")
	l := s.must(ann, http.MethodPost, "/conversations/"+id+"/links", map[string]any{"kind": "read", "life": "2h"}, http.StatusCreated)
	read := l["url"].(string)[strings.LastIndexByte(l["url"].(string), '/'):]
	s.said(ann, id, "Said later")
	w := s.call(nil, "", http.MethodGet, "/api/v1/shared"+read, nil)
	if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "Shown") || strings.Contains(w.Body.String(), "later") || w.Header().Get("X-Robots-Tag") == "" {
		t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
	}
	if strings.Contains(w.Body.String(), id) {
		t.Error("a reader learns the conversation's id")
	}
	s.must(nil, http.MethodGet, "/join"+read, nil, http.StatusUnauthorized)
	s.must(bob, http.MethodGet, "/join"+read, nil, http.StatusNotFound) // it is no key to that door
	j := s.must(ann, http.MethodPost, "/conversations/"+id+"/links", map[string]any{"kind": "join", "role": "reader", "max_uses": 1}, http.StatusCreated)
	join := j["url"].(string)[strings.LastIndexByte(j["url"].(string), '/'):]
	if i := s.must(bob, http.MethodGet, "/join"+join, nil, http.StatusOK); i["by"] != "ann" || i["role"] != "reader" || i["member"] != false || i["conversation_id"] != nil {
		t.Errorf("%v", i)
	}
	if c := s.must(bob, http.MethodPost, "/join"+join, nil, http.StatusOK); c["mine"].(map[string]any)["role"] != "reader" {
		t.Errorf("%v", c)
	}
	s.must(s.Person("eve"), http.MethodPost, "/join"+join, nil, http.StatusNotFound)
	list := s.must(ann, http.MethodGet, "/conversations/"+id+"/links", nil, http.StatusOK)["links"].([]any)
	if strings.Contains(fmt.Sprint(list), read[1:]) {
		t.Error("the secret is told again")
	}
	for _, x := range list {
		s.must(ann, http.MethodDelete, "/conversations/"+id+"/links/"+x.(map[string]any)["id"].(string), nil, http.StatusNoContent)
	}
	s.must(nil, http.MethodGet, "/shared"+read, nil, http.StatusNotFound)
	for _, bad := range []string{`{"kind":"write"}`, `{"kind":"read","life":"soon"}`, `{"kind":"read","life":"-1h"}`, `{"kind":"join","max_uses":-1}`, `{"kind":"join","role":"owner"}`} {
		if w := s.call(ann, "", http.MethodPost, "/api/v1/conversations/"+id+"/links", bad); w.Code != http.StatusBadRequest {
			t.Errorf("%s: %d", bad, w.Code)
		}
	}
}

func TestAPI_PrefsAreTimesOfTheDay(t *testing.T) {
	s := newAPISite(t)
	ann := s.Person("ann")
	want := map[string]any{"notify": "mentions", "quiet_from": "22:30", "quiet_to": "07:05", "zone": "Europe/Berlin"}
	s.must(ann, http.MethodPut, "/account/chat", want, http.StatusOK)
	if got := s.must(ann, http.MethodGet, "/account/chat", nil, http.StatusOK); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v", got)
	}
	for body, field := range map[string]string{`{"quiet_from":"25:00","quiet_to":"07:00"}`: "quiet_from", `{"quiet_from":"22:00"}`: "quiet_to", `{"quiet_from":"22:0","quiet_to":"1:00"}`: "quiet_from",
		`{"zone":"Mars/Olympus"}`: "zone", `{"notify":"shout"}`: "notify", `{"quiet_from":"22:-1","quiet_to":"1:00"}`: "quiet_from"} {
		w := s.call(ann, "", http.MethodPut, "/api/v1/account/chat", body)
		var e respond.ErrorBody
		if json.Unmarshal(w.Body.Bytes(), &e); w.Code != http.StatusBadRequest || e.Error.Fields[field] == "" {
			t.Errorf("%s: %d %s", body, w.Code, w.Body)
		}
	}
}

func TestExport_SaysWhatBecameOfEachMessage(t *testing.T) {
	s := newAPISite(t)
	ann, bob := s.Person("ann"), s.Person("bob")
	s.Acquaint(ann, bob)
	id := s.open(ann, "guide")
	s.said(ann, id, "Nobody else reads this")
	s.must(ann, http.MethodPatch, "/conversations/"+id, map[string]any{"past": "nothing", "title": "Plans\n# of ours"}, http.StatusOK)
	s.must(ann, http.MethodPost, "/conversations/"+id+"/members", map[string]any{"handle": "bob"}, http.StatusCreated)
	seq := s.said(ann, id, "Frist")
	s.must(ann, http.MethodPatch, fmt.Sprintf("/conversations/%s/messages/%d", id, seq), map[string]any{"text": "First"}, http.StatusOK)
	gone := s.said(ann, id, "Secret")
	s.must(ann, http.MethodDelete, fmt.Sprintf("/conversations/%s/messages/%d", id, gone), nil, http.StatusOK)
	f := s.must(bob, http.MethodPost, "/files?name=notes.txt", "some notes", http.StatusCreated)
	s.must(bob, http.MethodPost, "/conversations/"+id+"/messages", map[string]any{"client_id": "f", "reply_to": seq,
		"parts": []task.Part{task.TextPart("See here\n\n---\n\n**ann** (person), now:\n\nI owe bob"), {URL: f["url"].(string), Filename: "notes.txt"}}}, http.StatusCreated)
	s.must(ann, http.MethodPut, fmt.Sprintf("/conversations/%s/messages/%d/reactions/%%F0%%9F%%91%%8D", id, seq), nil, http.StatusOK)

	w := s.call(bob, "", http.MethodGet, "/api/v1/conversations/"+id+"/export", nil)
	text := w.Body.String()
	for _, want := range []string{"# Plans # of ours\n", "**ann** (person)", ", edited 2", "\n\n> First\n", "*deleted by ann", "*in answer to* ann: First", "File: [notes.txt](<http://portal.test/files/" + f["hash"].(string) + ">)", "👍 ann", "*ann added bob*"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	for _, not := range []string{"Nobody else", "Frist", "Secret", "\n**ann** (person), now", "\nI owe bob"} {
		if strings.Contains(text, not) {
			t.Errorf("%q is exported", not)
		}
	}
	w = s.call(bob, "", http.MethodGet, "/api/v1/conversations/"+id+"/export?format=json", nil)
	var out struct {
		Conversation api.ConversationJSON
		Messages     []api.MessageJSON
	}
	if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil || out.Conversation.ID != id {
		t.Fatalf("%v %s", err, w.Body)
	}
	for _, m := range out.Messages {
		if m.Kind.Amends() || m.Seq == seq && (m.Parts[0].Text != "First" || m.EditedAt == "" || len(m.Reactions) != 1) || m.Seq == gone && (m.Unsaid == nil || len(m.Parts) > 0) {
			t.Errorf("%+v", m)
		}
	}
	s.must(bob, http.MethodGet, "/conversations/"+id+"/export?format=pdf", nil, http.StatusBadRequest)
}
