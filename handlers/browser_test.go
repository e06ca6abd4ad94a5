package handlers

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
	"golang.org/x/net/html"

	"agentsite/internal/account"
	"agentsite/internal/chat"
	"agentsite/internal/fault"
	"agentsite/internal/federation"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/index"
	"agentsite/internal/notify"
	"agentsite/internal/registry"
	"agentsite/internal/task"
	"agentsite/internal/testing/storetest"
	"agentsite/store"
)

// site is a portal of real services on a real database; only what would call
// outward is a fake.
type site struct {
	t        *testing.T
	db       *storetest.DB
	accounts *account.Service
	hub      *hub.Service
	chat     *chat.Service
	tasks    *task.Service
	door     *Door
	router   http.Handler
}

// alive finds every agent alive and describes one at every address.
type alive struct{}

func (alive) Probe(context.Context, hub.Target) hub.Liveness {
	return hub.Liveness{State: hub.Alive, Reason: "Answered."}
}

func (a alive) ReadAs(ctx context.Context, t hub.Target) (hub.Described, error) {
	return a.Read(ctx, t.Endpoint)
}

func (alive) Read(_ context.Context, address string) (hub.Described, error) {
	if strings.Contains(address, "nobody") {
		return hub.Described{}, &fault.Error{Kind: fault.Invalid, Safe: "Nothing answered there.", Fields: map[string]string{"endpoint": "nothing answered there"}}
	}
	return hub.Described{Name: "reader", Title: "Invoice reader", Description: "Reads invoices.", Kind: hub.A2A, Endpoint: address,
		Skills: []hub.Skill{{ID: "read", Name: "Read", Tags: []string{"pdf"}, Examples: []string{"Read this"}}}}, nil
}

// idle is a runtime that never gets to work.
type idle struct{}

func (idle) Wake()            {}
func (idle) Stop(string) bool { return false }
func (idle) Ended(task.Task)  {}

// book finds agents and people as the portal does.
type book struct {
	hub *hub.Service
	db  *storetest.DB
}

func (b book) Agent(ctx context.Context, actor ident.Actor, handle string) (chat.AgentRef, error) {
	a, err := b.hub.Callable(ctx, actor, handle)
	if err != nil {
		return chat.AgentRef{}, err
	}
	return chat.AgentRef{ID: a.ID, Handle: a.Handle(), Title: a.Title, Public: a.Visibility == hub.Public, Remote: b.hub.TextGoesTo(a)}, nil
}

func (b book) Person(ctx context.Context, _ ident.Actor, name string) (chat.Member, error) {
	a, err := b.db.AccountByName(ctx, name)
	if err != nil {
		return chat.Member{}, fault.New(fault.NotFound, "There is nobody called %q here.", name)
	}
	return chat.Member{Kind: "person", ID: a.ID, Handle: a.Name, Role: "member"}, nil
}

// Hosts implements chat.Directory.
func (b book) Hosts(ctx context.Context, agentIDs []string) (map[string]string, error) {
	out := make(map[string]string)
	for _, id := range agentIDs {
		if a, err := b.db.AgentByID(ctx, id); err == nil {
			out[id] = b.hub.TextGoesTo(a)
		}
	}
	return out, nil
}

func (b book) Admit(ctx context.Context, actor ident.Actor, handle string, size int) error {
	return b.hub.Admit(ctx, actor, handle, size)
}

func newSite(t *testing.T, policy account.Policy, change ...func(*account.Config)) *site {
	t.Helper()
	return newSiteWith(t, policy, func(*Config) {}, change...)
}

// newSiteWith is newSite with another configuration of the handlers.
func newSiteWith(t *testing.T, policy account.Policy, edit func(*Config), change ...func(*account.Config)) *site {
	t.Helper()
	ctx, dir, log := t.Context(), t.TempDir(), slog.New(slog.DiscardHandler)
	opened, err := store.Open(ctx, dir, log)
	if err != nil {
		t.Fatal(err)
	}
	db := storetest.Join(opened)
	keys, err := ident.CreateKeys(dir)
	if err != nil {
		t.Fatal(err)
	}
	const base = "http://portal.test"
	s := &site{t: t, db: db}
	people := account.Config{Policy: policy, Guests: true, URL: base, Log: log, CheapHashes: true}
	for _, c := range change {
		c(&people)
	}
	s.accounts = account.New(db, people)
	s.hub = hub.New(hub.Ports{Store: db, Index: index.New(), Prober: alive{}, Reader: alive{}, Sealer: keys}, hub.Config{Portal: "portal.test", Kinds: []hub.Kind{hub.A2A, hub.OpenAI}, Log: log,
		CheckURL: func(u string) error {
			if !strings.HasPrefix(u, "https://") {
				return errors.New("begin with https://")
			}
			return nil
		}})
	s.chat = chat.New(db, book{s.hub, db}, idle{}, chat.Config{Portal: "portal.test", Log: log})
	s.tasks = task.NewService(db, idle{}, s.chat)
	hooks := notify.New(notify.Ports{Store: db, Chat: s.chat, Accounts: db, Sealer: keys}, notify.Config{URL: base, CheckURL: func(string) error { return nil }, Log: log})
	peers, err := federation.NewPeers(ctx, db, federation.PeersConfig{Name: "Test", Agents: s.hub.Own})
	if err != nil {
		t.Fatal(err)
	}
	cfg := Config{Peers: peers, Servers: registry.New(db, s.hub, registry.Config{Portal: "portal.test", Log: log}), Name: "Test", URL: base, Host: "portal.test", Version: "1.2.3", CookieName: "agentsite-test", Hooks: hooks, Log: log}
	edit(&cfg)
	s.door = New(s.accounts, s.hub, s.chat, s.tasks, db, cfg)
	r := chi.NewRouter()
	r.Use(middleware.RequestID, middleware.ClientIPFromRemoteAddr)
	r.Route("/api/v1", s.door.API)
	s.door.Pages(r)
	s.router = r
	work, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { s.hub.Run(work); close(ended) }()
	t.Cleanup(func() { stop(); <-ended; db.Close() })

	str := func(s string) *string { return &s }
	if err := s.hub.EnsureBuiltin(ctx, hub.Draft{Name: str("guide"), Title: str("Guide"), Description: str("Knows who is here. Ask it **anything**."),
		Skills: &[]hub.Skill{{Name: "Find", Tags: []string{"help"}, Examples: []string{"Who reads invoices?"}}}}); err != nil {
		t.Fatal(err)
	}
	if err := s.hub.Load(ctx); err != nil {
		t.Fatal(err)
	}
	return s
}

var system = ident.Actor{Kind: ident.System}

// lastAddr gives every browser an address of its own, so that limits of one do
// not meet another.
var lastAddr atomic.Int64

// browser is a visitor with a cookie jar.
type browser struct {
	*site
	t      *testing.T
	addr   string
	cookie string
	actor  ident.Actor // of a person
}

func (s *site) guest() *browser {
	n := lastAddr.Add(1)
	return &browser{site: s, t: s.t, addr: "192.0." + strconv.FormatInt(n/250, 10) + "." + strconv.FormatInt(n%250+1, 10) + ":4711"}
}

const goodPassword = "correct horse battery"

// person is a signed-in visitor with a new account.
func (s *site) person(name string) *browser { return s.signedIn(name, false) }

func (s *site) operator(name string) *browser { return s.signedIn(name, true) }

func (s *site) signedIn(name string, operator bool) *browser {
	s.t.Helper()
	a, err := s.accounts.Add(s.t.Context(), system, account.SignUp{Name: name, Password: goodPassword}, operator)
	if err != nil {
		s.t.Fatal(err)
	}
	secret, err := s.accounts.StartSession(s.t.Context(), a)
	if err != nil {
		s.t.Fatal(err)
	}
	b := s.guest()
	b.cookie = secret
	if b.actor, err = s.accounts.Authenticate(s.t.Context(), secret, "192.0.2.1"); err != nil {
		s.t.Fatal(err)
	}
	return b
}

// agentOf registers an agent of the person.
func (s *site) agentOf(b *browser, name string, visibility hub.Visibility) hub.Agent {
	s.t.Helper()
	title, text, endpoint, kind := "Title of "+name, "Says "+name+". And more.", "https://"+name+".example/a2a", hub.A2A
	a, err := s.hub.Publish(s.t.Context(), b.actor, hub.Draft{Name: &name, Title: &title, Description: &text, Kind: &kind, Endpoint: &endpoint, Visibility: &visibility,
		Skills: &[]hub.Skill{{Name: "Talk", Tags: []string{"talk"}, Examples: []string{"Say " + name}}}})
	if err != nil {
		s.t.Fatal(err)
	}
	return a
}

// page is an answer, read as a browser would.
type page struct {
	t        *testing.T
	status   int
	location string
	header   http.Header
	doc      *html.Node
	body     string
}

func (b *browser) get(path string) page { return b.do(http.MethodGet, path, nil) }

// post sends a form; pairs are names and values.
func (b *browser) post(path string, pairs ...string) page {
	in := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		in.Add(pairs[i], pairs[i+1])
	}
	return b.do(http.MethodPost, path, in)
}

func (b *browser) do(method, path string, in url.Values) page {
	b.t.Helper()
	r := httptest.NewRequest(method, path, strings.NewReader(in.Encode()))
	r.RemoteAddr = b.addr
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if b.cookie != "" {
		r.AddCookie(&http.Cookie{Name: "agentsite-test", Value: b.cookie})
	}
	w := httptest.NewRecorder()
	b.router.ServeHTTP(w, r)
	for _, c := range w.Result().Cookies() {
		if c.Name == "agentsite-test" {
			if b.cookie = c.Value; c.MaxAge < 0 {
				b.cookie = ""
			}
		}
	}
	p := page{t: b.t, status: w.Code, location: w.Header().Get("Location"), header: w.Header(), body: w.Body.String()}
	doc, err := html.Parse(strings.NewReader(p.body))
	if err != nil {
		b.t.Fatalf("%s %s: %v", method, path, err)
	}
	p.doc = doc
	return p
}

func (p page) is(status int) page {
	p.t.Helper()
	if p.status != status {
		p.t.Fatalf("status %d, want %d; says: %.600s", p.status, status, words(p.doc))
	}
	return p
}

// leads fails unless the answer sends the browser to path.
func (p page) leads(path string) page {
	p.t.Helper()
	if p.is(http.StatusSeeOther); p.location != path {
		p.t.Fatalf("leads to %q, want %q", p.location, path)
	}
	return p
}

// all are the elements with that name and those attributes, pairs of key and
// value.
func (p page) all(name string, attrs ...string) []*html.Node {
	var out []*html.Node
	var visit func(*html.Node)
	visit = func(n *html.Node) {
		if n.Type == html.ElementNode && (n.Data == name || name == "*") {
			fits := true
			for i := 0; i < len(attrs); i += 2 {
				have := attribute(n, attrs[i])
				fits = fits && (have == attrs[i+1] || attrs[i] == "class" && slices.Contains(strings.Fields(have), attrs[i+1]))
			}
			if fits {
				out = append(out, n)
			}
		}
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			visit(c)
		}
	}
	visit(p.doc)
	return out
}

// one is the only such element.
func (p page) one(name string, attrs ...string) *html.Node {
	p.t.Helper()
	list := p.all(name, attrs...)
	if len(list) != 1 {
		p.t.Fatalf("%d elements <%s %v>, want one; says: %.600s", len(list), name, attrs, words(p.doc))
	}
	return list[0]
}

func (p page) has(name string, attrs ...string) bool { return len(p.all(name, attrs...)) > 0 }

func (p page) says(text string) bool { return strings.Contains(words(p.doc), text) }

func attribute(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

// words are the text below a node, on one line.
func words(n *html.Node) string {
	var b strings.Builder
	var visit func(*html.Node)
	visit = func(n *html.Node) {
		if n.Type == html.TextNode {
			b.WriteString(n.Data + " ")
		}
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			visit(c)
		}
	}
	visit(n)
	return strings.Join(strings.Fields(b.String()), " ")
}

// field fails unless the form shows again what was typed in the named field,
// and says what is wrong with it when wrong is not empty.
func (p page) field(id, value, wrong string) {
	p.t.Helper()
	n := p.one("*", "id", id)
	have := attribute(n, "value")
	if n.Data == "textarea" {
		have = words(n)
	}
	if have != value {
		p.t.Errorf("field %s holds %q, want %q", id, have, value)
	}
	if wrong == "" {
		return
	}
	if attribute(n, "aria-invalid") != "true" {
		p.t.Errorf("field %s is not marked as wrong", id)
	}
	if said := words(p.one("*", "id", id+"-error")); !strings.Contains(said, wrong) {
		p.t.Errorf("field %s: says %q, want %q", id, said, wrong)
	}
}
