package app_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"agentsite/internal/hub"
	"agentsite/internal/testing/apptest"
	"agentsite/internal/testing/racetest"
)

// put is base with one field, written as a path, set to raw JSON.
func put(t *testing.T, base map[string]any, field, raw string) string {
	t.Helper()
	b, err := json.Marshal(base)
	if err != nil {
		t.Fatal(err)
	}
	const mark = `"\u0000mark"`
	var tree map[string]any
	json.Unmarshal(b, &tree)
	if outer, inner, ok := strings.Cut(field, "."); ok {
		m, _ := tree[outer].(map[string]any)
		if m == nil {
			m = make(map[string]any)
		}
		m[inner] = "\x00mark"
		tree[outer] = m
	} else {
		tree[field] = "\x00mark"
	}
	b, _ = json.Marshal(tree)
	return strings.Replace(string(b), mark, raw, 1)
}

func TestInput_BadFieldsAreNamed(t *testing.T) {
	racetest.Skip(t)
	t.Parallel()
	p := apptest.Start(t)
	c := p.User(t, "olga").NewToken()
	room := c.Conversation()
	agent := c.Agent("public", "http://127.0.0.1:1234/v1")
	long := `"` + strings.Repeat("a", 1000<<10) + `"` // just below the bound of a body
	wrong := map[string]string{"number": `7`, "negative": `-1`, "huge": `1e400`, "list": `[[]]`, "object": `{"a":{}}`, "bool": `true`, "1 MB": long}
	text := []string{"number", "negative", "huge", "list", "object", "bool", "1 MB"}
	publish := map[string]any{"name": "x", "description": "X.", "kind": "openai", "endpoint": "http://127.0.0.1:1234/v1", "visibility": "public", "config": map[string]any{"model": "m"}}
	say := map[string]any{"client_id": "x", "text": "Hello"}
	type body struct {
		method, path string
		base         map[string]any
		fields       map[string][]string // the values of wrong, or raw JSON
	}
	n := 0
	for _, b := range []body{
		{http.MethodPost, "/api/v1/agents", publish, map[string][]string{
			"name":  append(text, `""`, `"\u0000"`, `"a"`, `"A B"`, `"1x"`, `"x\u202ey"`, `"admin"`, `"\ud800"`, `"ünï"`, `"../x"`, `"a/b"`),
			"title": text, "description": append(text, `""`, `" "`, `"\u0000\u202e"`), "kind": append(text, `""`, `"builtin"`, `"wasi"`, `"OPENAI"`),
			"endpoint":   append(text, `""`, `"x"`, `"ftp://x"`, `"http://"`, `"http://a b"`, `"http://u:p@example.org"`, `"javascript:alert(1)"`, `"http://example.org:22/"`, `"http://example.org/\r\nX: y"`),
			"visibility": append(text, `"secret"`), "skills": {"number", "object", "bool", "1 MB", `[7]`, `["x"]`, `[{"name":7}]`, `[{"id":"x"},{"id":"x"}]`, `[{"name":` + long + `}]`},
			"config": {"number", "list", "bool", "1 MB"}, "config.model": {"number", "list", "object", "bool", "1 MB", `""`},
			"config.key": {"number", "list", "object", "bool", "1 MB", `"a\r\nb"`, `"\u0000"`}, "status": {"number", "list", "bool", `{"state":"gone"}`}, "version": {"list", "object", "bool", `"1"`, `1e400`, `1.5`},
		}},
		{http.MethodPatch, "/api/v1/agents/" + agent, map[string]any{}, map[string][]string{
			"name": {`"another"`, "number"}, "title": text, "description": append(text, `""`), "endpoint": append(text, `""`, `"x"`), "visibility": append(text, `"secret"`), "status": {`{"state":"gone"}`},
			"config.instructions": {"number", "list", "1 MB"}, "kind": append(text, `"builtin"`),
		}},
		{http.MethodPost, "/api/v1/conversations", map[string]any{}, map[string][]string{
			"title": text, "members": {"number", "object", "bool", "1 MB", `[7]`, `[""]`, `["\u0000"]`, `["nobody-here"]`, `["a@b@c"]`, `[` + long + `]`, `["x","x","x"` + strings.Repeat(`,"x"`, 100) + `]`},
		}},
		{http.MethodPatch, "/api/v1/conversations/" + room, map[string]any{}, map[string][]string{"title": append(text, `""`, `" "`, `"\u0000"`, `"\u202e"`)}},
		{http.MethodPost, "/api/v1/conversations/" + room + "/messages", say, map[string][]string{
			"client_id": append(text, `""`), "text": append(text, `"a\u0000b"`, `" "`, `"\n"`),
		}},
		{http.MethodPost, "/api/v1/conversations/" + room + "/messages", map[string]any{"client_id": "x"}, map[string][]string{
			"parts": {"number", "object", "bool", "1 MB", `[7]`, `[{}]`, `[{"text":"a","url":"b"}]`, `[{"raw":""}]`, `[{"raw":7}]`, `[{"text":7}]`, `[{"text":"a","mediaType":` + long + `}]`, `[` + strings.Repeat(`{"text":"a"},`, 40) + `{"text":"a"}]`},
			"text":  {`""`},
		}},
		{http.MethodPost, "/api/v1/conversations/" + room + "/members", map[string]any{}, map[string][]string{
			"members": {"number", "object", "bool", `[7]`, `[]`}, "handle": {"number", "list", "object", "bool", `"nobody-here"`, `"\u0000"`, "1 MB"}}},
		{http.MethodPost, "/api/v1/conversations/" + room + "/read", map[string]any{}, map[string][]string{"seq": {"negative", "huge", "list", "object", "bool", `"1"`, `1.5`, `99999999999999999999`}}},
		{http.MethodPost, "/api/v1/tokens", map[string]any{"label": "x"}, map[string][]string{
			"label": {"number", "list", "object", "bool", "1 MB"}, "scopes": {"number", "object", "bool", `[7]`, `["everything"]`, `[""]`, `"tasks"`, `["tasks admin"]`},
			"expires_days": {"negative", "huge", "list", "object", "bool", `367`, `"7"`, `1.5`, `9223372036854775807`}}},
	} {
		for field, values := range b.fields {
			for _, v := range values {
				raw, ok := wrong[v]
				if !ok {
					raw = v
				}
				n++
				a := c.Do(b.method, b.path, put(t, b.base, field, raw))
				show := v
				if len(show) > 60 {
					show = show[:60] + "…"
				}
				if a.Status < 400 || a.Status >= 500 || a.Kind() == "" {
					t.Errorf("%s %s %s=%s: %d %.200s", b.method, b.path, field, show, a.Status, a.Body)
					continue
				}
				if !names(a.Fields(), field) {
					t.Errorf("%s %s %s=%s: the error does not name the field: %.300s", b.method, b.path, field, show, a.Body)
				}
				if len(a.Body) > 8<<10 {
					t.Errorf("%s %s %s=%s: the error is %d bytes", b.method, b.path, field, show, len(a.Body))
				}
			}
		}
	}
	t.Logf("%d bad fields", n)
}

// names reports whether the fields hold one, or a part of it.
func names(fields map[string]string, field string) bool {
	for f := range fields {
		if f == field || strings.HasPrefix(f, field+"[") || strings.HasPrefix(f, field+".") || strings.HasPrefix(field, f+".") {
			return true
		}
	}
	return false
}

func TestInput_BadQueriesAreNamed(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	c := p.User(t, "olga")
	room := c.Conversation()
	odd := []string{"x", "-1", "0", "1.5", "99999999999999999999", "9223372036854775807", "\x00", "\xff", "%", "\u202e1", "1e3", " 1", strings.Repeat("9", 10000)}
	for path, fields := range map[string]string{
		"/api/v1/search": "limit", "/api/v1/agents": "limit", "/api/v1/conversations": "limit", "/api/v1/conversations/" + room + "/messages": "limit", "/api/v1/tasks": "limit",
	} {
		for _, v := range odd {
			if a := c.Do(http.MethodGet, path+"?"+url.Values{fields: {v}}.Encode(), nil); a.Status != http.StatusBadRequest && v != "0" || a.Status == http.StatusBadRequest && !names(a.Fields(), fields) {
				t.Errorf("%s?%s=%.40q: %d %.200s", path, fields, v, a.Status, a.Body)
			}
		}
	}
	for _, path := range []string{"/api/v1/search?q=", "/api/v1/search?kind=", "/api/v1/search?tag=", "/api/v1/search?skill=", "/api/v1/search?portal=", "/api/v1/search?live=", "/api/v1/search?scope=", "/api/v1/search?cursor=",
		"/api/v1/conversations?cursor=", "/api/v1/tasks?cursor=", "/api/v1/tasks?state=", "/api/v1/tasks?conversation_id=", "/api/v1/conversations/" + room + "/messages?after=", "/api/v1/conversations/" + room + "/messages?before=",
		"/api/v1/conversations/" + room + "/export?format=", "/api/v1/conversations/" + room + "/live?after=", "/agents?q=", "/agents?tag=", "/agents?cursor=", "/agents?live=", "/chat?cursor=", "/chat?agent=", "/chat/" + room + "?before=", "/account?done=", "/login?next=",
		"/signup?invite=", "/signup?setup=", "/reset?link="} {
		for _, v := range append(odd, "'; DROP TABLE agents; --", "<script>alert(1)</script>", "\u202e", strings.Repeat("a ", 5000), strings.Repeat("[", 5000), "*", "\"", "NEAR(a b)", "a\nb\rc") {
			a := c.Do(http.MethodGet, path+url.QueryEscape(v), nil)
			if a.Status >= 500 {
				t.Errorf("%s%.40q: %d", path, v, a.Status)
			}
			if strings.Contains(a.Body, "<script>alert(1)") {
				if strings.HasPrefix(a.Header.Get("Content-Type"), "text/html") {
					t.Errorf("%s: text became a tag", path)
				}
			}
		}
	}
	for _, v := range append(odd, "..", "../../etc/passwd", strings.Repeat("a", 5000), "<script>", "a%2fb", "a@b", "@", "a@@b", "null", "A") {
		v = url.PathEscape(v)
		for _, path := range []string{"/api/v1/agents/" + v, "/api/v1/agents/" + v + "/versions", "/api/v1/conversations/" + v, "/api/v1/conversations/" + v + "/messages", "/api/v1/tasks/" + v, "/agents/" + v, "/agents/" + v + "/edit", "/chat/" + v, "/docs/" + v, "/static/" + v} {
			if a, err := c.Try(http.MethodGet, path, nil); err == nil && a.Status >= 500 {
				t.Errorf("%.80s: %d", path, a.Status)
			}
		}
		for _, path := range []string{"/api/v1/tokens/" + v, "/api/v1/agents/" + v, "/api/v1/conversations/" + v, "/api/v1/conversations/" + room + "/members/" + v} {
			if a, err := c.Try(http.MethodDelete, path, nil); err == nil && (a.Status >= 500 || a.Status < 300) {
				t.Errorf("DELETE %.80s: %d", path, a.Status)
			}
		}
	}
}

func TestForms_OddFieldsAreNo500(t *testing.T) {
	racetest.Skip(t)
	t.Parallel()
	p := apptest.Start(t)
	c := p.Operator(t, "rob")
	room := c.Conversation("calc")
	agent := c.Agent("public", "http://127.0.0.1:1234/v1")
	const formFields = "base brain instructions example_user example_agent tools other_tools portal_tools unasked temperature max_tokens languages input_modes output_modes publisher icon icon_remove callers listed per_minute per_day max_bytes note tried_asked"
	odd := []string{"", " ", "\x00", "\xff\xfe", "\u202e", strings.Repeat("a", 1000<<10), "-1", "1e400", "<script>alert(1)</script>", "\r\nSet-Cookie: a=b", "🤖"}
	for path, fields := range map[string]string{
		"/login": "name password next", "/signup": "name password invite setup", "/reset": "token password", "/agents/new": "name title description kind endpoint visibility model key notes skill_name skill_id skill_tags skill_examples auth_header token " + formFields,
		"/agents/new/check": "name " + formFields, "/agents/new/try": "name try " + formFields, "/agents/new/card": "card", "/agents/" + agent + "/edit/check": formFields, "/agents/" + agent + "/edit/try": "try tried_asked tried_answer",
		"/agents/new/fetch": "url", "/agents/" + agent + "/edit": "title description kind endpoint visibility model key", "/chat": "agent text", "/chat/" + room: "text client_id", "/chat/" + room + "/rename": "title",
		"/chat/" + room + "/members": "member", "/chat/" + room + "/members/remove": "member", "/account/tokens": "label scopes expires", "/account/password": "current_password password", "/admin/invites": "note uses",
	} {
		who := c
		if path == "/login" || path == "/signup" || path == "/reset" {
			who = p.Guest(t)
		}
		for _, field := range strings.Fields(fields) {
			for _, v := range odd {
				a := who.Do(http.MethodPost, path, url.Values{field: {v}})
				if a.Status >= 500 {
					t.Errorf("%s %s=%.40q: %d", path, field, v, a.Status)
				}
				if strings.Contains(a.Body, "<script>alert(1)") {
					t.Errorf("%s %s: text became a tag", path, field)
				}
				for _, k := range a.Header["Set-Cookie"] {
					if strings.HasPrefix(k, "a=b") {
						t.Errorf("%s %s: a header was smuggled in", path, field)
					}
				}
			}
		}
	}
}

func TestTasks_ListSaysWhatItTakes(t *testing.T) {
	t.Parallel()
	c := apptest.Start(t).User(t, "olga")
	for query, field := range map[string]string{"limit=0": "limit", "limit=101": "limit", "state=done": "state", "state=WORKING": "state", "state=TASK_STATE_WORKING": "state"} {
		a := c.Must(http.MethodGet, "/api/v1/tasks?"+query, nil, http.StatusBadRequest)
		if !names(a.Fields(), field) || field == "state" && !strings.Contains(a.Fields()["state"], "submitted, working, input_required") {
			t.Errorf("%s: %s", query, a.Body)
		}
	}
	for _, query := range []string{"", "limit=1", "limit=100&state=input_required", "state="} {
		c.Must(http.MethodGet, "/api/v1/tasks?"+query, nil, http.StatusOK)
	}
}

func TestInput_APITakesTheLargestPictureThatTheFormDoes(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	c := p.User(t, "olga")
	name := c.Agent("private", p.Base+"/v1")
	icon := append([]byte(picture()), make([]byte, hub.MaxIconBytes)...)[:hub.MaxIconBytes]
	c.Must(http.MethodPatch, "/api/v1/agents/"+name, map[string]any{"icon": icon}, http.StatusOK)
	if a := c.Must(http.MethodPatch, "/api/v1/agents/"+name, map[string]any{"icon": append(icon, 0)}, http.StatusBadRequest); !names(a.Fields(), "icon") {
		t.Error(a.Body)
	}
	c.Must(http.MethodPatch, "/api/v1/agents/"+name, map[string]any{"icon": append(icon, icon...)}, http.StatusRequestEntityTooLarge)
	// Who cannot have an agent sends no picture, and others none elsewhere.
	p.Guest(t).Must(http.MethodPatch, "/api/v1/agents/"+name, map[string]any{"icon": icon}, http.StatusRequestEntityTooLarge)
	c.Must(http.MethodPost, "/api/v1/conversations", map[string]any{"title": string(make([]byte, 2<<20))}, http.StatusRequestEntityTooLarge)
}
