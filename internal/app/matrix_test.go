package app_test

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"agentsite/internal/app"
	"agentsite/internal/ident"
	"agentsite/internal/testing/agenttest"
	"agentsite/internal/testing/apptest"
	"agentsite/internal/testing/racetest"
	"agentsite/static"
)

// actors are the columns of the policy.
var actors = []string{"anon", "guest", "other", "reader", "member", "owner", "oper", "wrong", "right", "gone"}

// row is one line of the policy.
type row struct {
	line                     int
	method, pattern, variant string
	scopes                   []string
	want                     map[string]string
}

func (r row) route() app.Route { return app.Route{Method: r.method, Pattern: r.pattern} }

func (r row) page() bool { return len(r.scopes) == 1 && r.scopes[0] == "-" }

func readPolicy(t *testing.T) []row {
	t.Helper()
	f, err := os.Open("testdata/policy.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []row
	in := bufio.NewScanner(f)
	for n := 1; in.Scan(); n++ {
		text := strings.TrimSpace(in.Text())
		if text == "" || text[0] == '#' {
			continue
		}
		cells := strings.Split(text, "|")
		if len(cells) != 3 && len(cells) != 4 {
			t.Fatalf("policy.txt:%d has %d columns", n, len(cells))
		}
		head, variant, _ := strings.Cut(strings.TrimSpace(cells[0]), " [")
		method, pattern, _ := strings.Cut(head, " ")
		r := row{line: n, method: method, pattern: strings.TrimSpace(pattern), variant: strings.TrimSuffix(variant, "]"), scopes: strings.Fields(cells[1]), want: make(map[string]string)}
		answers := strings.Fields(cells[2])
		if len(answers) != len(actors) {
			t.Fatalf("policy.txt:%d has %d answers, want %d", n, len(answers), len(actors))
		}
		for i, a := range actors {
			r.want[a] = answers[i]
		}
		r.want["portal"] = r.want["anon"]
		if len(cells) == 4 {
			r.want["portal"] = strings.TrimSpace(cells[3])
		}
		out = append(out, r)
	}
	return out
}

// world is a portal with somebody of every kind.
type world struct {
	t    *testing.T // the test that all rows belong to
	p    *apptest.Portal
	far  *agenttest.OpenAIServer
	as   map[string]*apptest.Client
	oper *apptest.Client
	// tokens of the owner by their scopes.
	tokens  map[string]*apptest.Client
	lacking sync.Mutex // guards without
	without map[string]*apptest.Client
	spec    *spec
	public  string // agents of the owner
	private string
	gone    []*http.Cookie
	hanging string // one that never answers, on a host of its own
	peer    *apptest.Portal
	peerFor string // for whom it says to ask

	quiet sync.Mutex // guards still
	still *stillRoom
}

// names of the accounts, by column.
var people = map[string]string{"other": "otto", "reader": "rhea", "member": "mia", "owner": "olga", "oper": "rob"}

func newWorld(t *testing.T) *world {
	slow := agenttest.NewOpenAIServer(t)
	far := agenttest.NewOpenAIServer(t) // before the portal, so that it ends after it
	w := &world{t: t, p: apptest.Start(t, func(c *app.Config) {
		c.SMTP, c.MailFrom = "smtp://127.0.0.1:1", "portal@example.org" // nobody has an address, so nothing is sent
	}), far: far, tokens: make(map[string]*apptest.Client), without: make(map[string]*apptest.Client)}
	w.as = map[string]*apptest.Client{"anon": w.p.Guest(t), "guest": w.p.Visitor(t), "gone": w.p.User(t, "gone")}
	for column, name := range people {
		if column == "oper" {
			w.as[column] = w.p.Operator(t, name)
		} else {
			w.as[column] = w.p.User(t, name)
		}
	}
	w.oper, w.spec = w.as["oper"], readSpec(t, w.p)
	w.peer = apptest.Start(t)
	if err := w.peer.Greet(t.Context(), w.p.URL()); err != nil {
		t.Fatal(err)
	}
	w.peerFor = fmt.Sprintf("kind=person, id=%q, handle=%q", people["owner"], people["owner"]+"@"+w.p.Host)
	u, _ := url.Parse(w.p.Base)
	w.gone = w.as["gone"].HTTP.Jar.Cookies(u)
	w.as["gone"].Token = w.as["gone"].NewToken().Token
	if err := w.p.Control().SetUserDisabled(t.Context(), "gone", true); err != nil {
		t.Fatal(err)
	}
	w.public = w.as["owner"].Agent("public", w.far.Base(agenttest.Echo))
	w.private = w.as["owner"].Agent("private", w.far.Base(agenttest.Echo))
	w.hanging = w.as["owner"].Agent("public", slow.Base(agenttest.Hang))
	w.as["owner"].Meets(w.as["reader"], w.as["member"], w.p.User(t, people["other"]+"x"))
	for _, s := range scopeNames() {
		w.tokens[s] = w.as["owner"].NewToken(s)
	}
	return w
}

func scopeNames() []string {
	var out []string
	for _, s := range ident.Scopes() {
		out = append(out, string(s))
	}
	return out
}

// bearers are the owner's tokens that are sent as "wrong" and as "right".
func (w *world) bearers(t *testing.T, r row) (wrong *apptest.Client, right []*apptest.Client) {
	scopes := r.scopes
	if r.page() {
		return w.tokens["tasks"], []*apptest.Client{w.tokens["agents:write"], w.tokens["admin"]}
	}
	if r.scopes[0] == "*" {
		return w.tokens["tasks"], []*apptest.Client{w.tokens["agents:read"]}
	}
	var others []string
	for _, s := range scopeNames() {
		if !slices.Contains(scopes, s) {
			others = append(others, s)
		}
	}
	for _, s := range scopes {
		right = append(right, w.tokens[s])
	}
	// An account has few tokens: rows of the same scopes share theirs.
	key := strings.Join(others, " ")
	w.lacking.Lock()
	defer w.lacking.Unlock()
	if w.without[key] == nil {
		w.without[key] = w.as["owner"].With(t).NewToken(others...)
	}
	return w.without[key], right
}

// object is what a request is about: the words of its path and body.
type object struct {
	name, id, handle string
	other            string // a second one that the body names
	seq              string // of a message; the first one if empty
	hash             string // of a file, where name is the secret of a link
}

// cell builds the request of one row: make gives it a fresh object of the
// owner's; absent is one that never was.
type cell struct {
	object func(t *testing.T, w *world, actor string) object
	query  string
	// rest is what stands in the path for a * of the pattern.
	rest string
	body func(w *world, o object) any
	// alone: the actor loses a session by it, so it gets one of its own.
	alone bool
	// scarce: one address may ask no more often than the columns do.
	scarce bool
	accept string
	// header is sent with the request, where it names an object.
	header func(o object) (name, value string)
}

func form(pairs ...string) url.Values {
	v := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		v.Add(pairs[i], pairs[i+1])
	}
	return v
}

// attempt is a form that lets a draft answer.
func attempt(w *world) url.Values {
	return form("name", apptest.Fresh("tried"), "description", "New.", "kind", "openai", "endpoint", w.far.Base(agenttest.Echo), "visibility", "public", "model", "echo-1", "try", "Hello")
}

func agentBody() map[string]any {
	return map[string]any{"name": apptest.Fresh("new"), "description": "New.", "kind": "openai", "visibility": "public", "config": map[string]string{"model": "echo-1"}}
}

func (w *world) agent(t *testing.T, visibility string) string {
	return w.as["owner"].With(t).Agent(visibility, w.far.Base(agenttest.Echo))
}

// room is a conversation of the owner with the member, the reader, a third
// person and the calculator.
func (w *world) room(t *testing.T) string {
	owner := w.as["owner"].With(t)
	id := owner.Conversation("calc", people["reader"], people["member"], people["other"]+"x")
	owner.Must(http.MethodPatch, "/api/v1/conversations/"+id+"/members/"+people["reader"], map[string]any{"role": "reader"}, http.StatusNoContent)
	return id
}

// cells say what each route is asked, by route and variant.
func cells() map[string]cell {
	agent := func(visibility string) func(*testing.T, *world, string) object {
		return func(t *testing.T, w *world, _ string) object { return object{name: w.agent(t, visibility)} }
	}
	shared := map[string]func(*testing.T, *world, string) object{
		"public":  func(_ *testing.T, w *world, _ string) object { return object{name: w.public} },
		"private": func(_ *testing.T, w *world, _ string) object { return object{name: w.private} },
		"builtin": func(_ *testing.T, _ *world, _ string) object { return object{name: "calc"} },
	}
	room := func(t *testing.T, w *world, actor string) object {
		return object{id: w.roomFor(t, actor).id, handle: "calc"}
	}
	guests := func(t *testing.T, w *world, _ string) object {
		return object{id: w.as["guest"].With(t).Conversation("calc")}
	}
	task := func(mode agenttest.Mode) func(*testing.T, *world, string) object {
		return func(t *testing.T, w *world, _ string) object {
			owner := w.as["owner"].With(t)
			name := w.public
			if mode == agenttest.Hang {
				name = w.hanging
			}
			id := owner.Conversation(name, people["member"])
			return object{id: owner.Say(id, "Hello").Tasks[0].ID}
		}
	}
	token := func(t *testing.T, w *world, _ string) object {
		owner := w.as["owner"].With(t)
		// Found by a label of its own: other rows make tokens meanwhile.
		label := apptest.Fresh("token")
		owner.Get(http.MethodPost, "/api/v1/tokens", map[string]any{"label": label, "scopes": []string{"tasks"}}, http.StatusCreated, new(any))
		var out struct{ Tokens []struct{ ID, Label string } }
		owner.Get(http.MethodGet, "/api/v1/tokens", nil, http.StatusOK, &out)
		for _, k := range out.Tokens {
			if k.Label == label {
				return object{id: k.ID}
			}
		}
		t.Fatalf("no token %s", label)
		return object{}
	}
	somebody := func(t *testing.T, w *world, _ string) object {
		name := apptest.Fresh("somebody")
		if err := w.p.Control().AddUser(context.Background(), name, apptest.Password, false); err != nil {
			t.Fatal(err)
		}
		return object{name: name}
	}
	fixed := func(v any) func(*world, object) any { return func(*world, object) any { return v } }
	out := map[string]cell{
		"GET /healthz": {}, "GET /readyz": {}, "GET /metrics": {}, "GET /static/*": {},
		"GET /api/v1/search":        {query: "?q=calculator"},
		"GET /api/v1/agents":        {},
		"GET /api/v1/agents [mine]": {query: "?owner=me"},
		"POST /api/v1/agents": {body: func(w *world, _ object) any {
			b := agentBody()
			b["endpoint"] = w.far.Base(agenttest.Echo)
			return b
		}},
		"GET /api/v1/conversations":  {},
		"POST /api/v1/conversations": {body: fixed(map[string]any{"members": []string{"calc"}})},
		"POST /api/v1/conversations [private]": {object: shared["private"], body: func(_ *world, o object) any {
			return map[string]any{"members": []string{o.name}}
		}},
		"GET /api/v1/conversations/{id}":                     {object: room},
		"GET /api/v1/conversations/{id} [guest's]":           {object: guests},
		"PATCH /api/v1/conversations/{id}":                   {object: room, body: fixed(map[string]any{"title": "Another"})},
		"DELETE /api/v1/conversations/{id}":                  {object: room},
		"GET /api/v1/conversations/{id}/messages":            {object: room},
		"POST /api/v1/conversations/{id}/messages":           {object: room, body: fixed(map[string]any{"client_id": "one", "text": "2+2"})},
		"POST /api/v1/conversations/{id}/messages [guest's]": {object: guests, body: fixed(map[string]any{"client_id": "one", "text": "2+2"})},
		"POST /api/v1/conversations/{id}/members":            {object: room, body: fixed(map[string]any{"members": []string{"guide"}})},
		"POST /api/v1/conversations/{id}/members [private]": {
			object: func(t *testing.T, w *world, actor string) object {
				return object{id: w.roomFor(t, actor).id, name: w.private}
			},
			body: func(_ *world, o object) any { return map[string]any{"members": []string{o.name}} }},
		"DELETE /api/v1/conversations/{id}/members":          {object: room, body: fixed(map[string]any{"handle": "calc"})},
		"DELETE /api/v1/conversations/{id}/members [person]": {object: room, body: fixed(map[string]any{"handle": people["other"] + "x"})},
		"DELETE /api/v1/conversations/{id}/members/{handle}": {object: room},
		"POST /api/v1/conversations/{id}/read":               {object: room, body: fixed(map[string]any{"seq": 1})},
		"POST /api/v1/conversations/{id}/stop":               {object: room},
		"GET /api/v1/conversations/{id}/export":              {object: room},
		"GET /api/v1/conversations/{id}/live":                {object: room, accept: "text/event-stream"},
		"GET /api/v1/tasks":                                  {},
		"GET /api/v1/tasks/{id}":                             {object: task(agenttest.Echo)},
		"GET /account/running":                               {},
		"POST /account/running/stop":                         {alone: true, body: fixed(form())},
		"POST /account/running/{id}/stop":                    {object: task(agenttest.Hang), body: fixed(form())},
		"POST /api/v1/tasks/{id}/cancel":                     {object: task(agenttest.Hang)},
		"POST /api/v1/tasks/{id}/input":                      {object: task(agenttest.Hang), body: fixed(map[string]any{"text": "yes"})},
		"GET /api/v1/me":                                     {},
		"GET /api/v1/tokens":                                 {},
		"DELETE /api/v1/me":                                  {alone: true, body: fixed(map[string]any{"confirm": "another name"})},
		"GET /account/delete":                                {alone: true},
		"POST /account/delete":                               {alone: true, body: fixed(form("confirm", "another name"))},
		"POST /api/v1/me/export":                             {},
		"POST /account/export":                               {body: fixed(form())},
		"POST /api/v1/tokens":                                {body: fixed(map[string]any{"label": "new", "scopes": []string{"account"}})},
		"DELETE /api/v1/tokens/{id}":                         {object: token},

		"GET /": {}, "GET /about": {}, "GET /docs": {}, "GET /robots.txt": {}, "GET /favicon.svg": {}, "GET /favicon.ico": {}, "GET /agents": {}, "GET /agents/new": {}, "GET /agents/new/program": {}, "GET /program": {},
		"GET /docs/*": {rest: "operate/limits"},
		"POST /agents/new": {body: func(w *world, _ object) any {
			return form("name", apptest.Fresh("new"), "description", "New.", "kind", "openai", "endpoint", w.far.Base(agenttest.Echo), "visibility", "public", "model", "echo-1")
		}},
		"POST /agents/new/fetch":                  {body: func(w *world, _ object) any { return form("url", w.far.Base(agenttest.Echo)) }},
		"POST /agents/new/card":                   {body: fixed(form("card", `{"name":"from-a-file","description":"New.","kind":"link"}`))},
		"POST /agents/new/check":                  {body: fixed(form("name", "some-name", "kind", "link", "description", "New."))},
		"POST /agents/new/try":                    {body: func(w *world, _ object) any { return attempt(w) }},
		"GET /chat":                               {},
		"GET /chat/members":                       {query: "?q=calc"},
		"POST /chat":                              {body: fixed(form("agent", "calc", "text", "2+2"))},
		"POST /chat [private]":                    {object: shared["private"], body: func(_ *world, o object) any { return form("agent", o.name, "text", "Hello", "told", o.name) }},
		"GET /chat/{id}":                          {object: room},
		"POST /chat/{id}":                         {object: room, body: fixed(form("text", "2+2", "client_id", "one"))},
		"POST /chat/{id}/stop":                    {object: room, body: fixed(form())},
		"POST /chat/{id}/rename":                  {object: room, body: fixed(form("title", "Another"))},
		"POST /chat/{id}/agent":                   {object: room, body: fixed(form("agent", "guide"))},
		"POST /chat/{id}/members":                 {object: room, body: fixed(form("member", "guide"))},
		"POST /chat/{id}/members/remove":          {object: room, body: fixed(form("member", "calc"))},
		"POST /chat/{id}/members/remove [person]": {object: room, body: fixed(form("member", people["other"]+"x"))},
		"POST /chat/{id}/leave":                   {object: room, body: fixed(form())},
		"POST /chat/{id}/delete":                  {object: room, body: fixed(form())},
		"GET /login":                              {},
		"POST /login":                             {alone: true, body: fixed(form("name", people["other"]+"x", "password", apptest.Password))},
		"POST /logout":                            {alone: true, body: fixed(form())},
		"GET /signup":                             {},
		"POST /signup":                            {alone: true, body: func(*world, object) any { return form("name", apptest.Fresh("signed"), "password", apptest.Password) }},
		"GET /reset":                              {query: "?link=agsl_nothing"},
		"POST /reset": {alone: true, object: func(t *testing.T, w *world, actor string) object {
			link, err := w.p.Control().ResetLink(context.Background(), somebody(t, w, actor).name)
			if err != nil {
				t.Fatal(err)
			}
			_, secret, _ := strings.Cut(link, "link=")
			return object{other: secret}
		}, body: func(_ *world, o object) any { return form("token", o.other, "password", "another good password") }},
		"POST /reset/mail":                 {scarce: true, body: fixed(form("name", "nobody"))},
		"GET /account":                     {},
		"POST /account/tokens":             {body: fixed(form("label", "page", "scopes", "tasks", "expires", "7d"))},
		"POST /account/tokens/{id}/revoke": {object: token, body: fixed(form())},
		"POST /account/password":           {alone: true, body: fixed(form("current_password", apptest.Password, "password", "another good password"))},
		"POST /account/email":              {alone: true, body: fixed(form("email", ""))},
		"POST /account/sessions/end":       {alone: true, body: fixed(form())},
		"GET /admin":                       {}, "GET /admin/people": {}, "GET /admin/invites": {}, "GET /admin/agents": {},
		"POST /admin/people/{name}/reset":   {object: somebody, body: fixed(form())},
		"POST /admin/people/{name}/disable": {object: somebody, body: fixed(form())},
		"POST /admin/people/{name}/enable":  {object: somebody, body: fixed(form())},
		"POST /admin/invites":               {body: fixed(form("note", "for a friend"))},
		"POST /admin/invites/{id}/revoke": {object: func(t *testing.T, w *world, _ string) object {
			oper := w.oper.With(t)
			oper.Must(http.MethodPost, "/admin/invites", form("note", "x"), http.StatusOK)
			page := oper.Must(http.MethodGet, "/admin/invites", nil, http.StatusOK).Body
			ids := between(page, "/admin/invites/", "/revoke")
			if len(ids) == 0 {
				t.Fatal("no invite on the page")
			}
			return object{id: ids[len(ids)-1]}
		}, body: fixed(form())},
		"POST /admin/agents/{name}/withdraw": {object: agent("public"), body: fixed(form())},
		"POST /admin/agents/{name}/restore":  {object: agent("public"), body: fixed(form())},
	}
	edit := func(w *world, o object) any {
		return form("description", "Changed.", "kind", "openai", "endpoint", w.far.Base(agenttest.Echo), "visibility", "public", "model", "echo-1")
	}
	linked := func(visibility string) func(*testing.T, *world, string) object { // one agent for all requests of a cell
		var once sync.Once
		name := apptest.Fresh("linked")
		return func(t *testing.T, w *world, _ string) object {
			once.Do(func() {
				w.as["owner"].With(t).Must(http.MethodPost, "/api/v1/agents", map[string]any{"name": name, "description": "Dials in.", "kind": "link", "visibility": visibility}, http.StatusCreated)
			})
			return object{name: name}
		}
	}
	for _, v := range []string{"public", "private"} {
		for _, route := range []string{"GET /api/v1/agents/{name}", "GET /api/v1/agents/{name}/versions", "GET /agents/{name}", "GET /agents/{name}/edit", "GET /agents/{name}/versions"} {
			out[route+" ["+v+"]"] = cell{object: shared[v]}
		}
		out["PATCH /api/v1/agents/{name} ["+v+"]"] = cell{object: agent(v), body: fixed(map[string]any{"title": "Changed"})}
		out["DELETE /api/v1/agents/{name} ["+v+"]"] = cell{object: agent(v)}
		out["POST /api/v1/agents/{name}/check ["+v+"]"] = cell{object: agent(v)}
		out["POST /api/v1/agents/{name}/pause ["+v+"]"] = cell{object: agent(v), body: fixed(map[string]any{"reason": "slow"})}
		out["POST /api/v1/agents/{name}/resume ["+v+"]"] = cell{object: agent(v)}
		out["POST /agents/{name}/edit ["+v+"]"] = cell{object: agent(v), body: edit}
		out["POST /agents/{name}/edit/check ["+v+"]"] = cell{object: shared[v], body: edit}
		out["POST /agents/{name}/edit/try ["+v+"]"] = cell{object: shared[v], body: func(w *world, _ object) any { return attempt(w) }}
		out["GET /agents/{name}/connect ["+v+"]"] = cell{object: linked(v)}
		out["POST /agents/{name}/connect ["+v+"]"] = cell{object: linked(v), body: fixed(form())}
		out["POST /agents/{name}/check ["+v+"]"] = cell{object: agent(v), body: fixed(form())}
		out["POST /agents/{name}/pause ["+v+"]"] = cell{object: agent(v), body: fixed(form("pause", "1"))}
	}
	maps.Copy(out, directoryCells(fixed, agent, room))
	out["PATCH /api/v1/agents/{name} [builtin]"] = cell{object: shared["builtin"], body: fixed(map[string]any{"title": "Changed"})}
	out["DELETE /api/v1/agents/{name} [builtin]"] = cell{object: shared["builtin"]}
	maps.Copy(out, peeringCells())
	maps.Copy(out, agentCells())
	maps.Copy(out, chatCells())
	maps.Copy(out, a2aCells())
	maps.Copy(out, webhookCells())
	maps.Copy(out, grantCells())
	maps.Copy(out, hostingCells())
	maps.Copy(out, memoryCells())
	maps.Copy(out, libraryCells())
	maps.Copy(out, openAICells())
	maps.Copy(out, mcpCells())
	maps.Copy(out, registryCells())
	maps.Copy(out, embedCells())
	maps.Copy(out, peerCells())
	return out
}

// between are the texts between two others, in order.
func between(s, from, to string) (out []string) {
	for {
		_, rest, ok := strings.Cut(s, from)
		if !ok {
			return out
		}
		s = rest
		if v, _, ok := strings.Cut(s, to); ok && !strings.ContainsAny(v, " <>\"/") {
			out = append(out, v)
		}
	}
}

// path is the row's address of an object.
func (r row) path(c cell, o object) string {
	p := strings.NewReplacer("{name}", o.name, "{host}", o.name, "{person}", o.name, "{id}", o.id, "{peer}", o.id, "{handle}", o.handle, "{domain}", o.handle, "{page}", o.name, "{task}", cmp.Or(o.seq, o.id), "{version}", "latest", "{owner}", o.other,
		"{secret}", o.name, "{link}", o.other, "{seq}", cmp.Or(o.seq, "1"), "{emoji}", "%F0%9F%91%8D", "{hash}", cmp.Or(o.hash, o.name), "{urn}", "urn%3Aair%3A127.0.0.1%3Aagents%3A"+o.name).Replace(strings.Replace(r.pattern, "*", cmp.Or(c.rest, "*"), 1) + c.query)
	if r.pattern == "/static/*" {
		p = static.URL("icons/mark.svg")
	}
	return p
}

// ask sends the row's request about o as c.
func (r row) ask(c *apptest.Client, w *world, cl cell, o object, edit ...func(*http.Request)) apptest.Answer {
	var body any
	if cl.body != nil {
		body = cl.body(w, o)
	}
	return c.Do(r.method, r.path(cl, o), body, func(req *http.Request) {
		if cl.accept != "" {
			req.Header.Set("Accept", cl.accept)
		}
		if cl.header != nil {
			req.Header.Set(cl.header(o))
		}
		for _, e := range edit {
			e(req)
		}
	})
}

// absent is an object that never was, of the same form.
func (o object) absent() object {
	if o.name != "" {
		o.name = apptest.Fresh("nothing")
	} else if o.id != "" {
		o.id = ident.NewID()
	}
	return o
}

// plain takes out of an answer what is each request's own.
func plain(a apptest.Answer, o object) string {
	s := a.Body
	for _, own := range []string{a.Header.Get("X-Request-Id"), o.name, o.id} {
		if own != "" {
			s = strings.ReplaceAll(s, own, "…")
			s = strings.ReplaceAll(s, url.QueryEscape(own), "…")
		}
	}
	return chatList.ReplaceAllString(nonces.ReplaceAllString(s, "…"), "…")
}

// chatList is the actor's other conversations, which parallel rows change all
// the time, and the place where its next page begins; what was asked for is
// never among them.
var chatList = regexp.MustCompile(`(?s)<ul class="chat-list">.*?</ul>|href="/chat\?cursor=[^"]*"`)

var nonces = regexp.MustCompile(`nonce="[^"]*"`)

// differ is where two texts begin to.
func differ(a, b string) string {
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	at := func(s string) string { return s[max(0, i-60):min(len(s), i+120)] }
	return fmt.Sprintf("…%s…\n…%s…", at(a), at(b))
}

func TestPolicy_HasARowForEachRoute(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t, func(c *app.Config) { c.SMTP, c.MailFrom = "smtp://127.0.0.1:1", "portal@example.org" })
	routes, err := p.Routes()
	if err != nil {
		t.Fatal(err)
	}
	rows, there := make(map[app.Route]bool), make(map[app.Route]bool)
	for _, r := range readPolicy(t) {
		rows[r.route()] = true
	}
	for _, r := range routes {
		if strings.HasPrefix(r.Pattern, "/static/") {
			r = app.Route{Method: http.MethodGet, Pattern: "/static/*"} // files: read by whoever, in one way
		}
		there[r] = true
		if !rows[r] {
			t.Errorf("%s %s has no row in testdata/policy.txt", r.Method, r.Pattern)
		}
	}
	for r := range rows {
		if !there[r] {
			t.Errorf("testdata/policy.txt has a row for %s %s, which is no route", r.Method, r.Pattern)
		}
	}
	if len(routes) < 80 {
		t.Errorf("only %d routes: the walk is broken", len(routes))
	}
}

func TestPolicy_EveryCell(t *testing.T) {
	t.Parallel()
	asks := agenttest.NewA2AServer(t, "1.0", "JSONRPC") // before the portal, so that it ends after it
	w := newWorld(t)
	all := cells()
	t.Run("rows", func(t *testing.T) {
		for n, r := range readPolicy(t) {
			if racetest.Enabled && n%4 != 0 {
				continue // a fourth of them meets all that they share
			}
			key := r.method + " " + r.pattern
			if r.variant != "" {
				key += " [" + r.variant + "]"
			}
			c, ok := all[key]
			if !ok {
				t.Errorf("no request for %q", key)
				continue
			}
			t.Run(strings.ReplaceAll(key, "/", "⁄"), func(t *testing.T) {
				t.Parallel()
				r.check(t, w, c)
			})
		}
	})
	if !racetest.Enabled {
		w.described(t, asks)
	}
}

func (r row) check(t *testing.T, w *world, c cell) {
	r.checkPortal(t, w, c)
	wrong, right := w.bearers(t, r)
	for _, actor := range actors {
		callers := []*apptest.Client{w.as[actor]}
		switch actor {
		case "wrong":
			callers = []*apptest.Client{wrong}
		case "right":
			callers = right
		}
		for i, caller := range callers {
			caller = w.fresh(t, actor, caller)
			if c.alone {
				caller = w.alone(t, actor, caller)
			}
			var o object
			if c.object != nil {
				o = c.object(t, w, actor)
			}
			a := r.ask(caller, w, c, o)
			want, seen := strings.CutSuffix(r.want[actor], "~")
			if !slices.Contains(strings.Split(want, "/"), fmt.Sprint(a.Status)) {
				t.Errorf("policy.txt:%d as %s (%d): %d, want %s: %.300s", r.line, actor, i, a.Status, want, a.Body)
				continue
			}
			if strings.HasPrefix(r.pattern, "/api/v1/") {
				if err := w.spec.answer(r, a); err != nil {
					t.Errorf("policy.txt:%d as %s: %d is not as described: %v", r.line, actor, a.Status, err)
				}
				if c.body != nil && a.Status < 300 {
					if err := w.spec.request(r, c.body(w, o)); err != nil {
						t.Errorf("policy.txt:%d as %s: the body is not as described: %v", r.line, actor, err)
					}
				}
			}
			switch {
			case a.Status == http.StatusNotFound && !seen && (o.name != "" || o.id != ""):
				// A page also shows what the actor has elsewhere, which other
				// rows change meanwhile: alike once is alike.
				no := o.absent()
				b := r.ask(caller, w, c, no)
				for range 5 {
					if strings.HasPrefix(r.pattern, "/api/") || b.Status == a.Status && plain(a, o) == plain(b, no) {
						break
					}
					a, b = r.ask(caller, w, c, o), r.ask(caller, w, c, no)
				}
				if b.Status != a.Status || plain(a, o) != plain(b, no) {
					t.Errorf("policy.txt:%d as %s: forbidden (%d) and absent (%d) differ:\n%s", r.line, actor, a.Status, b.Status, differ(plain(a, o), plain(b, no)))
				}
			case a.Status == http.StatusSeeOther && r.method == http.MethodGet && (actor == "anon" || actor == "guest" || actor == "gone"):
				if to := a.Header.Get("Location"); !strings.HasPrefix(to, "/login?next=") {
					t.Errorf("policy.txt:%d as %s: sent to %q", r.line, actor, to)
				}
			case strings.HasPrefix(r.pattern, "/api/") && a.Status >= 400 && a.Kind() == "":
				t.Errorf("policy.txt:%d as %s: no error object: %.200s", r.line, actor, a.Body)
			}
		}
	}
}

// checkPortal asks as another portal does, in the name of the owner.
func (r row) checkPortal(t *testing.T, w *world, c cell) {
	if c.scarce {
		return
	}
	var o object
	if c.object != nil {
		o = c.object(t, w, "anon")
	}
	a := r.ask(w.p.Guest(t), w, c, o, func(req *http.Request) { w.peer.Sign(t, req, w.peerFor) })
	want, _ := strings.CutSuffix(r.want["portal"], "~")
	if !slices.Contains(strings.Split(want, "/"), fmt.Sprint(a.Status)) {
		t.Errorf("policy.txt:%d as a portal: %d, want %s: %.300s", r.line, a.Status, want, a.Body)
	}
}

// fresh keeps what one cell leaves in a cookie jar from the next.
func (w *world) fresh(t *testing.T, actor string, c *apptest.Client) *apptest.Client {
	switch actor {
	case "anon", "wrong", "right", "gone":
		n := w.p.Bearer(t, c.Token)
		if actor == "gone" {
			u, _ := url.Parse(w.p.Base)
			n.HTTP.Jar.SetCookies(u, w.gone)
		}
		return n
	case "guest": // from an address of its own: of one only so much is taken
		n := w.p.Guest(t)
		n.Name, n.HTTP.Jar = c.Name, c.HTTP.Jar
		return n.With(t)
	}
	return c.With(t)
}

// alone gives the actor a session that may end.
func (w *world) alone(t *testing.T, actor string, c *apptest.Client) *apptest.Client {
	switch actor {
	case "anon":
		return w.p.Guest(t)
	case "guest":
		return w.p.Visitor(t)
	case "oper":
		return w.p.Operator(t, apptest.Fresh("oper"))
	case "other", "reader", "member", "owner":
		return w.p.User(t, apptest.Fresh(actor))
	case "wrong", "right":
		return w.p.Bearer(t, c.Token) // a login must not leave its cookie with the shared one
	}
	gone := w.p.Guest(t)
	gone.Token = c.Token
	return gone
}
