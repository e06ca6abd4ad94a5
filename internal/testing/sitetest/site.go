// Package sitetest builds the HTTP handlers over real services and a real database, and requests their
// pages as a browser would.
package sitetest

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
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
	"golang.org/x/net/html"

	"agentsite/handlers"
	"agentsite/handlers/request"
	"agentsite/internal/account"
	"agentsite/internal/adjust"
	"agentsite/internal/attention"
	"agentsite/internal/chat"
	"agentsite/internal/fault"
	"agentsite/internal/federation"
	"agentsite/internal/figures"
	"agentsite/internal/halt"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/index"
	"agentsite/internal/liveness"
	"agentsite/internal/notify"
	"agentsite/internal/profile"
	"agentsite/internal/registry"
	"agentsite/internal/scheduler"
	"agentsite/internal/task"
	"agentsite/internal/testing/storetest"
	"agentsite/store"
)

// Site is a portal of real services on a real database. Only the parts that would make outgoing
// requests or run agents are fakes.
type Site struct {
	T        *testing.T
	DB       *storetest.DB
	Accounts *account.Service
	Hub      *hub.Service
	Chat     *chat.Service
	Tasks    *task.Service
	Routes   *handlers.Routes
	Router   http.Handler
	Gate     *Gate
	// QueueState is the state of the queue as the operator sees it.
	QueueState scheduler.Snapshot
}

// alive is a fake prober and reader: every agent is alive, and every address has the same agent, except
// addresses with "nobody" in them, at which no server answers.
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
	name, title := "reader", "Invoice reader"
	if strings.Contains(address, "guide") {
		name, title = "guide", "Guide" // like a built-in agent
	}
	return hub.Described{Name: name, Title: title, Description: "Reads invoices.", Kind: hub.A2A, Endpoint: address,
		Skills: []hub.Skill{{ID: "read", Name: "Read", Tags: []string{"pdf"}, Examples: []string{"Read this"}}}}, nil
}

// Try implements hub.Trier by repeating the question.
func (alive) Try(_ context.Context, _ ident.Actor, _ hub.Agent, _, text string) (hub.Tried, error) {
	return hub.Tried{State: string(task.Completed), Text: "Tried: " + text}, nil
}

// idle is a fake runtime that never runs a task.
type idle struct{}

func (idle) Wake()                                   {}
func (idle) AwaitStop(context.Context, string) error { return nil }
func (idle) Stop(string) bool                        { return false }
func (idle) Ended(task.Task)                         {}
func (idle) WaitOf(string) (task.Wait, bool)         { return task.Wait{}, false }

// Gate is a fake runtime's admission: it admits all tasks except those of busy agents.
type Gate struct {
	mu   sync.Mutex // guards busy
	busy map[string]time.Duration
}

// SetBusy makes an agent refuse tasks for a time, or admit them again with 0.
func (g *Gate) SetBusy(handle string, wait time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.busy[handle] = wait
}

// Admit implements chat.Admission.
func (g *Gate) Admit(_ context.Context, t task.Task) (time.Duration, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	wait := g.busy[t.AgentHandle]
	return wait, wait == 0
}

// Withdraw implements chat.Admission. The fake holds no places.
func (*Gate) Withdraw(...string) {}

// Queue implements handlers' port of the queue with the state that a test sets.
func (s *Site) Queue(_ context.Context, actor ident.Actor) (scheduler.Snapshot, error) {
	return s.QueueState, hub.RequireOperator(actor)
}

// AgentQueue implements handlers' port of the queue. No task waits.
func (s *Site) AgentQueue(context.Context, ident.Actor, string) (running, waiting int, err error) {
	return 0, 0, nil
}

// book implements chat.Directory with the hub and the accounts, as the portal does.
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

// NewSite returns a portal with the given policy for sign-up. Each change edits the configuration of
// the accounts.
func NewSite(t *testing.T, policy account.Policy, change ...func(*account.Config)) *Site {
	t.Helper()
	return NewSiteWith(t, policy, func(*handlers.Config) {}, change...)
}

// NewSiteWith is NewSite, and edit changes the configuration of the handlers.
func NewSiteWith(t *testing.T, policy account.Policy, edit func(*handlers.Config), change ...func(*account.Config)) *Site {
	t.Helper()
	ctx, dir, log := t.Context(), t.TempDir(), slog.New(slog.DiscardHandler)
	opened, err := store.OpenWith(ctx, dir, store.Config{Database: storetest.DatabaseOf(t, dir)}, log)
	if err != nil {
		t.Fatal(err)
	}
	db := storetest.Join(opened)
	keys, err := ident.CreateKeys(dir)
	if err != nil {
		t.Fatal(err)
	}
	const base = "http://portal.test"
	s := &Site{T: t, DB: db, Gate: &Gate{busy: make(map[string]time.Duration)}}
	people := account.Config{Policy: policy, Guests: true, URL: base, Log: log, CheapHashes: true}
	for _, c := range change {
		c(&people)
	}
	s.Accounts = account.New(db, people)
	queue := liveness.NewQueue(db, log)
	s.Hub = hub.New(hub.Ports{Store: db, Index: index.New(), Probes: queue, Reader: alive{}, Trier: alive{}, Sealer: keys, Addresses: secureOnly{}, Models: noModels{}}, hub.Config{Portal: "portal.test", Kinds: []hub.Kind{hub.A2A, hub.OpenAI}, Log: log})
	s.Chat = chat.New(db, book{s.Hub, db}, idle{}, chat.Config{Portal: "portal.test", Admission: s.Gate, Log: log})
	s.Tasks = task.NewService(db, idle{}, s.Chat)
	hooks := notify.New(notify.Ports{Store: db, Chat: s.Chat, Accounts: db, Sealer: keys}, notify.Config{URL: base, Addresses: anyAddress{}, Log: log})
	peers, err := federation.NewPeers(ctx, db, federation.PeersConfig{Name: "Test", Agents: s.Hub.Own})
	if err != nil {
		t.Fatal(err)
	}
	cfg := handlers.Config{Profiles: profile.New(opened.Profiles, &s.Hub.Names), Peers: peers, Servers: registry.New(db, s.Hub, registry.Config{Portal: "portal.test", Log: log}), Live: adjust.NewSnapshot(adjust.Values{adjust.Name: "Test"}), URL: base, Host: "portal.test", Version: "1.2.3", CookieName: "agentsite-test", Hooks: hooks, Queue: s, Halts: halt.New(db.Halts, s.Hub, nil, nil), Log: log,
		Connections: request.NewConnections(request.ConnectionLimits{All: 1000, PerAddress: 1000, Sockets: 100, Streams: 100})}
	cfg.Figures = figures.New(opened.Figures, opened, log)
	cfg.Attention = attention.New(attention.Config{Complaints: s.Hub.Complaints, Accounts: s.Accounts, Portals: peers, Tasks: s,
		Figures: cfg.Figures})
	edit(&cfg)
	s.Routes = handlers.New(s.Accounts, s.Hub, s.Chat, s.Tasks, db, cfg)
	r := chi.NewRouter()
	r.Use(middleware.RequestID, middleware.ClientIPFromRemoteAddr)
	r.Route("/api/v1", s.Routes.API)
	s.Routes.Pages(r)
	s.Router = r
	work, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	monitor := liveness.New(liveness.Ports{Queue: queue, Prober: alive{}, Directory: s.Hub, Notices: s.Hub.Notices})
	go func() { monitor.Run(work); close(ended) }()
	t.Cleanup(func() { stop(); <-ended; storetest.CheckStorage(t, opened); db.Close() })

	str := func(s string) *string { return &s }
	if err := s.Hub.EnsureBuiltin(ctx, hub.Draft{Name: str("guide"), Title: str("Guide"), Description: str("Knows who is here. Ask it **anything**."),
		Skills: &[]hub.Skill{{Name: "Find", Tags: []string{"help"}, Examples: []string{"Who reads invoices?"}}}}); err != nil {
		t.Fatal(err)
	}
	if err := s.Hub.Load(ctx); err != nil {
		t.Fatal(err)
	}
	return s
}

var System = ident.Actor{Kind: ident.System}

// lastAddr numbers the addresses of browsers. Each has its own, so that limits by address of one do not
// affect another.
var lastAddr atomic.Int64

// Browser is a visitor that keeps the session cookie.
type Browser struct {
	*Site
	t      *testing.T
	Addr   string
	Cookie string
	Actor  ident.Actor // set for an account, zero for a guest
}

func (s *Site) Guest() *Browser {
	n := lastAddr.Add(1)
	return &Browser{Site: s, t: s.T, Addr: "192.0." + strconv.FormatInt(n/250, 10) + "." + strconv.FormatInt(n%250+1, 10) + ":4711"}
}

const GoodPassword = "correct horse battery"

// Person creates an account and returns a browser that is signed in to it.
func (s *Site) Person(name string) *Browser { return s.signedIn(name, false) }

func (s *Site) Operator(name string) *Browser { return s.signedIn(name, true) }

func (s *Site) signedIn(name string, operator bool) *Browser {
	s.T.Helper()
	a, err := s.Accounts.Add(s.T.Context(), System, account.SignUp{Name: name, Password: GoodPassword}, operator)
	if err != nil {
		s.T.Fatal(err)
	}
	secret, err := s.Accounts.StartSession(s.T.Context(), a)
	if err != nil {
		s.T.Fatal(err)
	}
	b := s.Guest()
	b.Cookie = secret
	if b.Actor, err = s.Accounts.Authenticate(s.T.Context(), secret, "192.0.2.1"); err != nil {
		s.T.Fatal(err)
	}
	return b
}

// AgentOf registers an agent of kind A2A that the browser's account owns.
func (s *Site) AgentOf(b *Browser, name string, visibility hub.Visibility) hub.Agent {
	s.T.Helper()
	title, text, endpoint, kind := "Title of "+name, "Says "+name+". And more.", "https://"+name+".example/a2a", hub.A2A
	a, err := s.Hub.Publish(s.T.Context(), b.Actor, hub.Draft{Name: &name, Title: &title, Description: &text, Kind: &kind, Endpoint: &endpoint, Visibility: &visibility,
		Skills: &[]hub.Skill{{Name: "Talk", Tags: []string{"talk"}, Examples: []string{"Say " + name}}}})
	if err != nil {
		s.T.Fatal(err)
	}
	return a
}

// Page is an answer with its parsed HTML.
type Page struct {
	T        *testing.T
	Status   int
	Location string
	Header   http.Header
	Doc      *html.Node
	Body     string
}

func (b *Browser) Get(path string) Page { return b.Do(http.MethodGet, path, nil) }

// Post sends a form. pairs are names and values in turn.
func (b *Browser) Post(path string, pairs ...string) Page {
	in := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		in.Add(pairs[i], pairs[i+1])
	}
	return b.Do(http.MethodPost, path, in)
}

func (b *Browser) Do(method, path string, in url.Values) Page {
	b.t.Helper()
	r := httptest.NewRequest(method, path, strings.NewReader(in.Encode()))
	r.RemoteAddr = b.Addr
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if b.Cookie != "" {
		r.AddCookie(&http.Cookie{Name: "agentsite-test", Value: b.Cookie})
	}
	w := httptest.NewRecorder()
	b.Router.ServeHTTP(w, r)
	for _, c := range w.Result().Cookies() {
		if c.Name == "agentsite-test" {
			if b.Cookie = c.Value; c.MaxAge < 0 {
				b.Cookie = ""
			}
		}
	}
	p := Page{T: b.t, Status: w.Code, Location: w.Header().Get("Location"), Header: w.Header(), Body: w.Body.String()}
	doc, err := html.Parse(strings.NewReader(p.Body))
	if err != nil {
		b.t.Fatalf("%s %s: %v", method, path, err)
	}
	p.Doc = doc
	return p
}

func (p Page) Is(status int) Page {
	p.T.Helper()
	if p.Status != status {
		p.T.Fatalf("status %d, want %d; says: %.600s", p.Status, status, Words(p.Doc))
	}
	return p
}

// Leads fails the test unless the answer redirects to path.
func (p Page) Leads(path string) Page {
	p.T.Helper()
	if p.Is(http.StatusSeeOther); p.Location != path {
		p.T.Fatalf("leads to %q, want %q", p.Location, path)
	}
	return p
}

// All returns the elements with that tag name ("*" for any) and those attributes, pairs of name and
// value.
func (p Page) All(name string, attrs ...string) []*html.Node {
	var out []*html.Node
	var visit func(*html.Node)
	visit = func(n *html.Node) {
		if n.Type == html.ElementNode && (n.Data == name || name == "*") {
			fits := true
			for i := 0; i < len(attrs); i += 2 {
				have := Attribute(n, attrs[i])
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
	visit(p.Doc)
	return out
}

// One returns the only element that All finds, and ends the test if there is none or more than one.
func (p Page) One(name string, attrs ...string) *html.Node {
	p.T.Helper()
	list := p.All(name, attrs...)
	if len(list) != 1 {
		p.T.Fatalf("%d elements <%s %v>, want one; says: %.600s", len(list), name, attrs, Words(p.Doc))
	}
	return list[0]
}

func (p Page) Has(name string, attrs ...string) bool { return len(p.All(name, attrs...)) > 0 }

func (p Page) Says(text string) bool { return strings.Contains(Words(p.Doc), text) }

func Attribute(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

// Words returns the text below a node with white space reduced to single spaces.
func Words(n *html.Node) string {
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

// Field fails the test unless the form field id has the value that was typed, and the message wrong
// unless that is "".
func (p Page) Field(id, value, wrong string) {
	p.T.Helper()
	n := p.One("*", "id", id)
	have := Attribute(n, "value")
	if n.Data == "textarea" {
		have = Words(n)
	}
	if have != value {
		p.T.Errorf("field %s holds %q, want %q", id, have, value)
	}
	if wrong == "" {
		return
	}
	if Attribute(n, "aria-invalid") != "true" {
		p.T.Errorf("field %s is not marked as wrong", id)
	}
	if said := Words(p.One("*", "id", id+"-error")); !strings.Contains(said, wrong) {
		p.T.Errorf("field %s: says %q, want %q", id, said, wrong)
	}
}

// noModels implements hub.Models.
type noModels struct{}

// NamedModel implements hub.Models.
func (noModels) NamedModel(_, _ string) (model, host string, ok bool) { return "", "", false }

// secureOnly is an address policy that allows https addresses only.
type secureOnly struct{}

func (secureOnly) CheckURL(u string) error {
	if !strings.HasPrefix(u, "https://") {
		return errors.New("begin with https://")
	}
	return nil
}

// anyAddress is an address policy that allows every address.
type anyAddress struct{}

func (anyAddress) CheckURL(string) error { return nil }
