package app_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"agentsite/internal/testing/agenttest"
	"agentsite/internal/testing/apptest"
	"agentsite/internal/testing/racetest"
)

// spec is the portal's OpenAPI document, as far as the tests ask it.
type spec struct {
	Servers []struct{ URL string }
	Paths   map[string]map[string]struct {
		OperationID string `json:"operationId"`
		Security    []map[string][]string
		Parameters  []struct {
			Ref string `json:"$ref"`
		}
		RequestBody struct{ Content map[string]media }
		Responses   map[string]struct {
			Ref     string `json:"$ref"`
			Content map[string]media
		}
	}
	Components struct {
		Schemas    map[string]json.RawMessage
		Responses  map[string]struct{ Content map[string]media }
		Parameters map[string]struct {
			Name, In string
			Schema   struct {
				Enum    []string
				Items   struct{ Enum []string }
				Maximum int
			}
		}
	}
	defs map[string]any // the schemas, such that a field they do not have is an error

	mu       sync.Mutex      // guards all below
	seen     map[string]bool // the schemas that an answer was checked by
	resolved map[string]*jsonschema.Resolved
}

type media struct{ Schema, Example json.RawMessage }

func readSpec(t *testing.T, p *apptest.Portal) *spec {
	t.Helper()
	a := p.Guest(t).Must(http.MethodGet, "/api/v1/openapi.json", nil, http.StatusOK)
	s := &spec{defs: make(map[string]any), seen: make(map[string]bool), resolved: make(map[string]*jsonschema.Resolved)}
	if err := json.Unmarshal([]byte(a.Body), s); err != nil {
		t.Fatal(err)
	}
	for name, raw := range s.Components.Schemas {
		s.defs[name] = strict(raw)
	}
	return s
}

// strict is a schema where objects have only the fields that are described: the
// document itself leaves room for further ones.
func strict(raw json.RawMessage) any {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return nil
	}
	var close func(v any) any
	close = func(v any) any {
		switch v := v.(type) {
		case map[string]any:
			for k := range v {
				v[k] = close(v[k])
			}
			if _, open := v["additionalProperties"]; v["type"] == "object" && v["properties"] != nil && !open {
				v["additionalProperties"] = false
			}
			if ref, ok := v["$ref"].(string); ok {
				v["$ref"] = strings.Replace(ref, "#/components/schemas/", "#/$defs/", 1)
			}
		case []any:
			for i := range v {
				v[i] = close(v[i])
			}
		}
		return v
	}
	return close(v)
}

// valid says what is wrong with a value by a schema of the document.
func (s *spec) valid(schema, value json.RawMessage) error {
	var v any
	if err := json.Unmarshal(value, &v); err != nil {
		return err
	}
	r, err := s.resolve(schema)
	if err != nil {
		return err
	}
	return r.Validate(v)
}

// resolve prepares a schema once: it takes far longer than a check.
func (s *spec) resolve(schema json.RawMessage) (*jsonschema.Resolved, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r, ok := s.resolved[string(schema)]; ok {
		return r, nil
	}
	root, defs := strict(schema), make(map[string]any)
	s.addReferred(defs, root)
	b, err := json.Marshal(map[string]any{"$schema": "https://json-schema.org/draft/2020-12/schema", "$defs": defs, "allOf": []any{root}})
	if err != nil {
		return nil, err
	}
	var js jsonschema.Schema
	if err := json.Unmarshal(b, &js); err != nil {
		return nil, err
	}
	r, err := js.Resolve(nil)
	if err == nil {
		s.resolved[string(schema)] = r
	}
	return r, err
}

// addReferred adds the schemas that v refers to, directly or through others, to
// defs. The rest of the document would take most of the time of resolve.
func (s *spec) addReferred(defs map[string]any, v any) {
	switch v := v.(type) {
	case map[string]any:
		if ref, ok := v["$ref"].(string); ok {
			name := strings.TrimPrefix(ref, "#/$defs/")
			if _, have := defs[name]; !have && s.defs[name] != nil {
				defs[name] = s.defs[name]
				s.addReferred(defs, s.defs[name])
			}
		}
		for _, x := range v {
			s.addReferred(defs, x)
		}
	case []any:
		for _, x := range v {
			s.addReferred(defs, x)
		}
	}
}

// path is that of a route in the document.
func (r row) specPath() string { return specPath(r.pattern, r.method, r.variant) }

// specPath returns the path of a route in the description. The routes of files in the library end with a path that may
// have slashes; what is done with the file follows it.
func specPath(pattern, method, variant string) string {
	path := strings.Replace(strings.TrimPrefix(pattern, "/api/v1"), "*", "{path}", 1)
	if method == http.MethodPost && strings.HasPrefix(path, "/library/") {
		path += "/" + variant
	}
	return path
}

// request says what is wrong with a body that was taken.
func (s *spec) request(r row, body any) error {
	m, ok := s.Paths[r.specPath()][strings.ToLower(r.method)].RequestBody.Content["application/json"]
	if _, text := body.(string); text {
		return nil
	}
	if !ok {
		return fmt.Errorf("the document has no JSON body")
	}
	b, err := json.Marshal(body)
	if err != nil {
		return err
	}
	return s.valid(m.Schema, b)
}

// answer says what is wrong with an answer.
func (s *spec) answer(r row, a apptest.Answer) error {
	op := s.Paths[r.specPath()][strings.ToLower(r.method)]
	answer, ok := op.Responses[fmt.Sprint(a.Status)]
	if !ok {
		return fmt.Errorf("the document has no answer %d", a.Status)
	}
	content := answer.Content
	if name, ok := strings.CutPrefix(answer.Ref, "#/components/responses/"); ok {
		content = s.Components.Responses[name].Content
	}
	kind, _, _ := strings.Cut(a.Header.Get("Content-Type"), ";")
	if len(content) == 0 {
		if a.Body != "" {
			return fmt.Errorf("the document has no body for %d: %.100s", a.Status, a.Body)
		}
		return nil
	}
	m, ok := content[kind]
	if !ok {
		if _, ok = content["*/*"]; ok {
			return nil
		}
		return fmt.Errorf("the document has no %s for %d", kind, a.Status)
	}
	if kind != "application/json" {
		return nil
	}
	s.mu.Lock()
	s.seen[string(m.Schema)] = true
	s.mu.Unlock()
	return s.valid(m.Schema, json.RawMessage(a.Body))
}

// What the operations answer is checked with the matrix, in row.check; here is
// what its requests do not get.
func (w *world) described(t *testing.T, asks *agenttest.A2AServer) {
	t.Helper()
	owner := w.as["owner"].With(t)
	do := func(pattern, method, path string, body any, want int) apptest.Answer {
		t.Helper()
		r, a := row{method: method, pattern: "/api/v1" + pattern}, owner.Must(method, "/api/v1"+path, body, want)
		if err := w.spec.answer(r, a); err != nil {
			t.Errorf("%s %s: %d is not as described: %v", method, pattern, want, err)
		}
		if body != nil {
			if err := w.spec.request(r, body); err != nil {
				t.Errorf("%s %s: the body is not as described: %v", method, pattern, err)
			}
		}
		return a
	}
	name := apptest.Fresh("asks")
	do("/agents/{name}", http.MethodPut, "/agents/"+name, map[string]any{"description": "Asks back.", "kind": "a2a", "endpoint": asks.Endpoint(agenttest.Echo), "visibility": "public",
		"skills": []map[string]any{{"name": "Ask"}}, "limits": map[string]any{"per_day": 9, "callers": "listed", "listed": []string{people["other"]}}}, http.StatusCreated)
	room := owner.Conversation(name)
	live := owner.Events(room)
	defer live.Close()
	asked := owner.Say(room, "ask")
	live.Wait("question", func(e apptest.Event) bool { return strings.Contains(e.Raw, "input_required") })
	do("/tasks/{id}", http.MethodGet, "/tasks/"+asked.Tasks[0].ID, nil, http.StatusOK)
	do("/tasks/{id}/input", http.MethodPost, "/tasks/"+asked.Tasks[0].ID+"/input", map[string]any{"text": "this one", "told": []string{name}}, http.StatusOK)

	room = owner.Conversation("calc")
	path, calc := "/conversations/"+room, owner.Events(room)
	defer calc.Close()
	said := map[string]any{"client_id": "one", "parts": []map[string]any{{"text": "2+2"}}}
	do("/conversations/{id}/messages", http.MethodPost, path+"/messages", said, http.StatusCreated)
	do("/conversations/{id}/messages", http.MethodPost, path+"/messages", said, http.StatusOK)
	e := calc.Wait("answer", func(e apptest.Event) bool { return e.Type == "message" && e.Sender.Kind == "agent" })
	again := do("/conversations/{id}/messages/{seq}/again", http.MethodPost, fmt.Sprintf("%s/messages/%d/again", path, e.Seq), nil, http.StatusAccepted)
	var out struct{ Task struct{ ID string } }
	if err := json.Unmarshal([]byte(again.Body), &out); err != nil {
		t.Fatal(err)
	}
	calc.Answered(out.Task.ID)
	do("/conversations/{id}/messages/{seq}/reactions/{emoji}", http.MethodPut, fmt.Sprintf("%s/messages/%d/reactions/%%F0%%9F%%91%%8D", path, e.Seq), nil, http.StatusOK)
	do("/conversations/{id}/messages", http.MethodGet, path+"/messages", nil, http.StatusOK)
	do("/conversations/{id}/export", http.MethodGet, path+"/export?format=json", nil, http.StatusOK)
	do("/conversations/search", http.MethodGet, "/conversations/search?q=2", nil, http.StatusOK)
	do("/agents/{name}/stats", http.MethodGet, "/agents/"+name+"/stats", nil, http.StatusOK)
	do("/agents/{name}/calls/{task}", http.MethodGet, "/agents/"+name+"/calls/"+asked.Tasks[0].ID, nil, http.StatusOK)
	do("/search", http.MethodGet, "/search?q=calculatr", nil, http.StatusOK)
	do("/library", http.MethodDelete, "/library?confirm=all", nil, http.StatusOK)

	owner = w.oper.With(t)
	liar := w.p.Lied(t)
	do("/peers/{peer}/proof", http.MethodGet, "/peers/"+liar+"/proof", nil, http.StatusOK)

	for path, methods := range w.spec.Paths {
		for method, op := range methods {
			for status, answer := range op.Responses {
				if m, ok := answer.Content["application/json"]; ok && !w.spec.seen[string(m.Schema)] {
					t.Errorf("no answer of a test was checked by the schema of %s %s, %s", method, path, status)
				}
			}
		}
	}
}

func TestOpenAPI_HasAnOperationForEachRoute(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	s := readSpec(t, p)
	if len(s.Servers) != 1 || s.Servers[0].URL != p.Base+"/api/v1" {
		t.Errorf("it is at %v", s.Servers)
	}
	routes, err := p.Routes()
	if err != nil {
		t.Fatal(err)
	}
	there := make(map[string]bool)
	for _, r := range routes {
		path, ours := strings.CutPrefix(r.Pattern, "/api/v1")
		if !ours {
			continue
		}
		acts := []string{""}
		if r.Method == http.MethodPost && path == "/library/*" {
			acts = []string{"rollback", "undo", "share"}
		}
		for _, act := range acts {
			path := specPath(r.Pattern, r.Method, act)
			there[r.Method+" "+path] = true
			if _, ok := s.Paths[path][strings.ToLower(r.Method)]; !ok {
				t.Errorf("%s %s has no operation", r.Method, path)
			}
		}
	}
	for path, methods := range s.Paths {
		for method, op := range methods {
			if !there[strings.ToUpper(method)+" "+path] {
				t.Errorf("%s is of %s %s, which is no route", op.OperationID, method, path)
			}
		}
	}
}

func TestOpenAPI_NamesTheScopesOfThePolicy(t *testing.T) {
	t.Parallel()
	s := readSpec(t, apptest.Start(t))
	want, anonymous := make(map[string][]string), make(map[string]bool)
	for _, r := range readPolicy(t) {
		if !strings.HasPrefix(r.pattern, "/api/v1/") || r.variant == "mine" && r.method == http.MethodGet {
			continue // of the caller's own agents the operation says it in words
		}
		key := strings.ToLower(r.method) + " " + r.specPath()
		for _, scope := range r.scopes {
			if scope != "*" && !slices.Contains(want[key], scope) {
				want[key] = append(want[key], scope)
			}
		}
		anonymous[key] = anonymous[key] || strings.HasPrefix(r.want["anon"], "2")
	}
	for path, methods := range s.Paths {
		for method, op := range methods {
			key := method + " " + path
			var got []string
			open, session := false, false
			for _, way := range op.Security {
				scopes, token := way["token"]
				if token && len(scopes) > 1 {
					t.Errorf("%s needs several scopes at once", key)
				}
				got = append(got, scopes...)
				_, cookie := way["session"]
				session = session || cookie
				open = open || len(way) == 0
			}
			slices.Sort(got)
			slices.Sort(want[key])
			if !slices.Equal(got, want[key]) || open != anonymous[key] || !session {
				t.Errorf("%s takes scopes %v (anonymous: %v), the policy says %v (%v)", key, got, open, want[key], anonymous[key])
			}
		}
	}
}

func TestOpenAPI_ParametersAreTaken(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	s, ann := readSpec(t, p), p.User(t, "ann")
	room := ann.Conversation("calc")
	ann.Say(room, "2+2")
	var link struct{ URL string }
	ann.Get(http.MethodPost, "/api/v1/conversations/"+room+"/links", map[string]any{"kind": "read"}, http.StatusCreated, &link)
	there := strings.NewReplacer("{id}", room, "{secret}", link.URL[strings.LastIndexByte(link.URL, '/')+1:], "{name}", "calc")
	var hook struct{ ID string }
	ann.Get(http.MethodPost, "/api/v1/webhooks", map[string]any{"url": "http://127.0.0.1:2/hook", "events": []string{"task.ended"}}, http.StatusCreated, &hook)
	oper := p.Operator(t, "rob")
	goal := startGoal(ann, map[string]any{"goal": "What is 2+2?", "members": []string{"calc"}})
	asked := 0
	for path, methods := range s.Paths {
		if strings.HasSuffix(path, "/live") {
			continue // never ends
		}
		for _, ref := range methods["get"].Parameters {
			param := s.Components.Parameters[strings.TrimPrefix(ref.Ref, "#/components/parameters/")]
			if param.In != "query" {
				continue
			}
			ask := func(value string, want int) {
				t.Helper()
				asked++
				caller := ann
				query := url.Values{param.Name: {value}}
				if path == "/conversations/search" {
					query.Set("q", "2")
				}
				if strings.HasPrefix(path, "/webhooks/") {
					path = strings.ReplaceAll(path, "{id}", hook.ID)
				}
				if strings.HasPrefix(path, "/goals/") {
					path = strings.ReplaceAll(path, "{id}", goal)
				}
				if strings.HasPrefix(path, "/peers") {
					caller = oper
				}
				caller.Must(http.MethodGet, "/api/v1"+there.Replace(path)+"?"+query.Encode(), nil, want)
			}
			for _, value := range append(param.Schema.Enum, param.Schema.Items.Enum...) {
				ask(value, http.StatusOK)
			}
			if most := param.Schema.Maximum; most > 0 {
				ask(fmt.Sprint(most), http.StatusOK)
				ask(fmt.Sprint(most+1), http.StatusBadRequest)
			}
		}
	}
	if asked < 40 {
		t.Errorf("only %d values", asked)
	}
}

func TestOpenAPI_ExamplesAreRight(t *testing.T) {
	racetest.Skip(t)
	t.Parallel()
	s := readSpec(t, apptest.Start(t))
	n := 0
	for path, methods := range s.Paths {
		for method, op := range methods {
			all := []media{op.RequestBody.Content["application/json"]}
			for _, r := range op.Responses {
				all = append(all, slices.Collect(maps.Values(r.Content))...)
			}
			for _, m := range all {
				if m.Example == nil {
					continue
				}
				n++
				if err := s.valid(m.Schema, m.Example); err != nil {
					t.Errorf("%s %s: %v", method, path, err)
				}
			}
		}
	}
	if n < 20 {
		t.Errorf("only %d examples", n)
	}
}

func TestOpenAPI_IsKeptByItsTag(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	const path = "/api/v1/openapi.json"
	a := p.Guest(t).Must(http.MethodGet, path, nil, http.StatusOK)
	tag := a.Header.Get("ETag")
	if tag == "" || a.Header.Get("Cache-Control") != "public, max-age=300" {
		t.Errorf("headers: %v", a.Header)
	}
	if b := p.User(t, "ann").Must(http.MethodGet, path, nil, http.StatusOK); b.Body != a.Body || b.Header.Get("ETag") != tag {
		t.Error("it is not the same for everybody")
	}
	b := p.Guest(t).Must(http.MethodGet, path, nil, http.StatusNotModified, func(r *http.Request) { r.Header.Set("If-None-Match", tag) })
	if b.Body != "" {
		t.Errorf("304 with %d bytes", len(b.Body))
	}
}
