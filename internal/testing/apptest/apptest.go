// Package apptest runs a real portal inside a test, on a free loopback port and a folder of its own.
// Clients make requests over HTTP as a guest, an account, an operator or the bearer of a token. Every
// client has a loopback address of its own, so that the limits by address of one do not affect another.
// A status 500 or a panic anywhere fails the test. The package does not judge other answers.
package apptest

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"agentsite/agentruntime/pdf/child"
	"agentsite/agentruntime/wasm/guest"
	"agentsite/internal/app"
	"agentsite/internal/control"
	"agentsite/internal/testing/storetest"
)

// Portal is a portal that runs until the test ends or Stop is called.
type Portal struct {
	*app.Portal
	// Base is the URL at which the portal listens, Host the host name that requests must have.
	Base, Host string
	Dir        string
	// Setup is the secret with which the first operator sets up the portal, "" if it has accounts.
	Setup string

	cfg app.Config
	t   testing.TB
	log *Log
	ctl control.Control
	// stop ends the portal; further calls do nothing.
	stop func()

	mu       sync.Mutex // guards canaries
	canaries []string
}

// Canary returns secret and registers it: from now on the test fails when the secret appears in an
// answer, a stream or the log of the portal.
func (p *Portal) Canary(secret string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.canaries = append(p.canaries, secret)
	return secret
}

// check fails the test if text contains a canary. where says in the message which output this is.
func (p *Portal) check(t testing.TB, where, text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.canaries {
		if i := strings.Index(text, c); i >= 0 {
			t.Errorf("%s shows a secret: …%.80s…", where, text[max(0, i-60):])
		}
	}
}

// Log is a writer that keeps all text in memory. It is safe for concurrent use.
type Log struct {
	mu  sync.Mutex // guards buf
	buf bytes.Buffer
}

// Write implements io.Writer.
func (l *Log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

// String returns the text written so far.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// line is a Log that closes seen when the text contains prefix.
type line struct {
	Log
	prefix string
	once   sync.Once
	seen   chan struct{}
}

// Write implements io.Writer.
func (l *line) Write(b []byte) (int, error) {
	n, err := l.Log.Write(b)
	if strings.Contains(l.String(), l.prefix) {
		l.once.Do(func() { close(l.seen) })
	}
	return n, err
}

// Password is the password of every account that this package creates.
const Password = "correct horse battery"

// parallel is the number of tests that run at once. It is larger than the number of processors, because
// tests of portals mostly wait for disks and for each other.
const parallel = 12

// gcPercent makes garbage collections less frequent, which saves a fifth of the processor time of tests
// that run many portals.
const gcPercent = 400

// Main runs the tests for a TestMain, up to parallel of them at once unless the command line sets
// -parallel. It returns the exit status.
func Main(m *testing.M) int {
	if len(os.Args) == 2 && os.Args[1] == guest.Argument {
		return guest.Run() // a portal of a test started this test program to run a hosted program
	}
	if len(os.Args) == 2 && os.Args[1] == child.Argument {
		return child.Run() // … or to read a PDF file
	}
	debug.SetGCPercent(gcPercent)
	if err := flag.Set("test.parallel", strconv.Itoa(parallel)); err != nil {
		panic(err)
	}
	return m.Run()
}

// RealHashes is an edit for Start after which passwords are hashed at the full cost of a real portal.
func RealHashes(c *app.Config) { c.CheapHashes = false }

// WithPrograms is an edit for Start after which the portal has the agents of the programs that come with each.
func WithPrograms(c *app.Config) { c.Bare = false }

// Start runs a portal until t ends and returns when it is ready. Each edit changes its settings before
// the start. The test fails if the portal's log then has an error or a panic.
func Start(t testing.TB, edit ...func(*app.Config)) *Portal {
	t.Helper()
	cfg := app.Defaults()
	cfg.Listen, cfg.Data, cfg.LogLevel = "127.0.0.1:0", t.TempDir(), "debug"
	cfg.Limits = "disk-free=0,disk-reserve=0" // many portals share the disk of a test
	cfg.CheapHashes = true                    // RealHashes switches this off
	cfg.Bare = true                           // WithPrograms switches this off
	for _, e := range edit {
		e(&cfg)
	}
	if list, err := os.ReadDir(cfg.Data); err == nil && len(list) == 0 {
		storetest.Prepare(t, cfg.Data)
	}
	if cfg.Database == "" {
		cfg.Database = storetest.DatabaseOf(t, cfg.Data)
	}
	p := &Portal{Dir: cfg.Data, cfg: cfg, t: t, log: new(Log)}
	var err error
	ctx, cancel := context.WithCancel(context.Background())
	if p.Portal, err = app.Open(ctx, cfg, p.log); err != nil {
		cancel()
		t.Fatal(err)
	}
	p.Base = "http://" + p.Addr().String()
	if u, err := url.Parse(p.URL()); err == nil {
		p.Host = u.Host
	}
	out := &line{prefix: "ready ", seen: make(chan struct{})}
	said := new(Log)
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx, out, said) }()
	select {
	case <-out.seen:
	case err := <-done:
		cancel()
		t.Fatalf("the portal ended at its start: %v\n%s", err, p.Log())
	case <-time.After(WaitTime):
		cancel()
		t.Fatalf("the portal is not ready\n%s", p.Log())
	}
	if _, secret, ok := strings.Cut(said.String(), "setup="); ok {
		p.Setup = strings.TrimSpace(secret)
	}
	if p.ctl, err = control.Open(ctx, cfg, false, p.log); err != nil {
		cancel()
		t.Fatal(err)
	}
	p.stop = sync.OnceFunc(func() {
		p.ctl.Close()
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("the portal ended with: %v", err)
			}
		case <-time.After(WaitTime):
			t.Error("the portal does not stop")
		}
	})
	t.Cleanup(func() {
		p.stop()
		p.check(t, "the log", p.Log())
		for _, l := range strings.Split(p.Log(), "\n") {
			if strings.Contains(l, "panic") || strings.Contains(l, "level=ERROR") {
				t.Errorf("log: %.600s", l)
			}
		}
		// Package testing keeps the cleanup functions of a parallel test, and so p, until all tests
		// have ended. Releasing the portal here frees 4 MB.
		p.Portal, p.ctl, p.log, p.stop = nil, nil, new(Log), func() {}
	})
	return p
}

// Stop ends the portal before the end of the test. Start with the same Dir and address starts it again.
func (p *Portal) Stop() { p.stop() }

// Log returns the portal's log so far.
func (p *Portal) Log() string { return p.log.String() }

// Control returns the operator's commands, which act on the running portal.
func (p *Portal) Control() control.Control { return p.ctl }

// OpenControl returns the operator's commands in the way another process gets them, over the data
// folder. The caller must close it.
func (p *Portal) OpenControl(t testing.TB) control.Control {
	t.Helper()
	c, err := control.Open(t.Context(), p.cfg, false, p.log)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Client makes requests to a portal with one session or token. Its methods end the test when a request
// fails.
type Client struct {
	Name  string
	Token string
	HTTP  *http.Client
	Addr  string // IP address from which the client connects

	p *Portal
	t testing.TB
}

var addresses atomic.Uint32

// Guest returns a client without a session, with an empty cookie jar.
func (p *Portal) Guest(t testing.TB) *Client {
	n := addresses.Add(1)
	addr := net.IPv4(127, byte(10+n>>16), byte(n>>8), byte(n))
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	d := &net.Dialer{LocalAddr: &net.TCPAddr{IP: addr}}
	tr := &http.Transport{DialContext: d.DialContext, MaxIdleConnsPerHost: 4, DisableCompression: true, ExpectContinueTimeout: WaitTime}
	t.Cleanup(tr.CloseIdleConnections)
	return &Client{p: p, t: t, Addr: addr.String(), HTTP: &http.Client{Jar: jar, Transport: tr,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// Visitor returns a guest that has a session, because it began a conversation.
func (p *Portal) Visitor(t testing.TB) *Client {
	t.Helper()
	c := p.Guest(t)
	c.Must(http.MethodPost, "/api/v1/conversations", map[string]any{"members": []string{}}, http.StatusCreated)
	return c
}

// User creates an account and returns a client that is logged in to it.
func (p *Portal) User(t testing.TB, name string) *Client { return p.person(t, name, false) }

// Operator is User for an account with the rights of an operator.
func (p *Portal) Operator(t testing.TB, name string) *Client { return p.person(t, name, true) }

func (p *Portal) person(t testing.TB, name string, operator bool) *Client {
	t.Helper()
	if err := p.ctl.AddUser(context.Background(), name, Password, operator); err != nil {
		t.Fatalf("add %s: %v", name, err)
	}
	return p.LogIn(t, name)
}

// LogIn returns a client with a new session of an account that User created.
func (p *Portal) LogIn(t testing.TB, name string) *Client {
	t.Helper()
	c := p.Guest(t)
	c.Name = name
	c.Must(http.MethodPost, "/login", url.Values{"name": {name}, "password": {Password}}, http.StatusSeeOther)
	return c
}

// With returns a copy of the client with the same session that reports failures to t.
func (c *Client) With(t testing.TB) *Client {
	d := *c
	d.t = t
	return &d
}

// Bearer returns a client without a session that presents the token.
func (p *Portal) Bearer(t testing.TB, token string) *Client {
	c := p.Guest(t)
	c.Token = token
	return c
}

// NewToken creates an API token with the given scopes (none means all) and returns a client that
// presents it.
func (c *Client) NewToken(scopes ...string) *Client {
	c.t.Helper()
	body := map[string]any{"label": "test"}
	if len(scopes) > 0 {
		body["scopes"] = scopes
	}
	var out struct{ Token string }
	c.Get(http.MethodPost, "/api/v1/tokens", body, http.StatusCreated, &out)
	return c.p.Bearer(c.t, out.Token)
}

// Answer is an HTTP answer of the portal, read completely except for event streams.
type Answer struct {
	Status int
	Header http.Header
	Body   string
}

// Fields returns the fields that an error of the API names, with the message for each.
func (a Answer) Fields() map[string]string {
	var e struct {
		Error struct{ Fields map[string]string }
	}
	json.Unmarshal([]byte(a.Body), &e)
	return e.Error.Fields
}

// Kind returns the kind of an error of the API, "" for any other answer.
func (a Answer) Kind() string {
	var e struct{ Error struct{ Kind string } }
	json.Unmarshal([]byte(a.Body), &e)
	return e.Error.Kind
}

// Request returns a request with the client's token. body is nil, url.Values for a form, a string or
// io.Reader with JSON, or any value that is encoded as JSON.
func (c *Client) Request(ctx context.Context, method, path string, body any) *http.Request {
	var rd io.Reader
	kind := ""
	switch b := body.(type) {
	case nil:
	case url.Values:
		rd, kind = strings.NewReader(b.Encode()), "application/x-www-form-urlencoded"
	case string:
		rd, kind = strings.NewReader(b), "application/json"
	case io.Reader:
		rd, kind = b, "application/json"
	default:
		j, err := json.Marshal(b)
		if err != nil {
			c.t.Fatal(err)
		}
		rd, kind = bytes.NewReader(j), "application/json"
	}
	req, err := http.NewRequestWithContext(ctx, method, c.p.Base+path, rd)
	if err != nil {
		c.t.Fatal(err)
	}
	req.Host = c.p.Host
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	if c.Token != "" {
		req.Header.Set("Authorization", "Bearer "+c.Token)
	}
	return req
}

// Do makes one request and returns the answer. Each edit changes the request before it is sent.
func (c *Client) Do(method, path string, body any, edit ...func(*http.Request)) Answer {
	c.t.Helper()
	a, err := c.Try(method, path, body, edit...)
	if err != nil {
		c.t.Fatalf("%s %s: %v", method, path, err)
	}
	return a
}

// Try is Do, but returns an error when no complete answer comes, instead of ending the test.
func (c *Client) Try(method, path string, body any, edit ...func(*http.Request)) (Answer, error) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), WaitTime)
	defer cancel()
	req := c.Request(ctx, method, path, body)
	for _, e := range edit {
		e(req)
	}
	resp, err := c.HTTP.Do(req)
	if err != nil {
		return Answer{}, err
	}
	defer resp.Body.Close()
	a := Answer{Status: resp.StatusCode, Header: resp.Header}
	if resp.Header.Get("Content-Type") == "text/event-stream; charset=utf-8" {
		return a, nil // an event stream does not end by itself
	}
	b, err := io.ReadAll(io.LimitReader(resp.Body, 256<<20))
	a.Body = string(b)
	c.p.check(c.t, method+" "+path, a.Body)
	if a.Status == http.StatusInternalServerError {
		c.t.Errorf("%s %s: 500 %.300s", method, path, a.Body)
	}
	return a, err
}

// Must is Do, and ends the test when the status differs from want.
func (c *Client) Must(method, path string, body any, want int, edit ...func(*http.Request)) Answer {
	c.t.Helper()
	a := c.Do(method, path, body, edit...)
	if a.Status != want {
		c.t.Fatalf("%s %s as %q: %d, want %d: %.400s", method, path, c.Name, a.Status, want, a.Body)
	}
	return a
}

// Get is Must, and parses the answer from JSON into out.
func (c *Client) Get(method, path string, body any, want int, out any) {
	c.t.Helper()
	a := c.Must(method, path, body, want)
	if err := json.Unmarshal([]byte(a.Body), out); err != nil {
		c.t.Fatalf("%s %s: %v in %.300s", method, path, err, a.Body)
	}
}

var names atomic.Uint32

// Fresh returns a name that begins with prefix and was not returned before in this process.
func Fresh(prefix string) string { return fmt.Sprintf("%s-%04d", prefix, names.Add(1)) }

// Agent registers an agent of kind openai with a new name. Its model is at the URL base. It returns the
// name.
func (c *Client) Agent(visibility, base string) string {
	c.t.Helper()
	name := Fresh("agent")
	c.Must(http.MethodPost, "/api/v1/agents", map[string]any{"name": name, "description": "An agent of a test.", "kind": "openai",
		"endpoint": base, "visibility": visibility, "config": map[string]string{"model": "echo-1"}}, http.StatusCreated)
	return name
}

// Conversation creates a conversation with the given members and returns its id.
func (c *Client) Conversation(members ...string) string {
	c.t.Helper()
	if members == nil {
		members = []string{}
	}
	var out struct{ ID string }
	c.Get(http.MethodPost, "/api/v1/conversations", map[string]any{"members": members}, http.StatusCreated, &out)
	return out.ID
}

// Meets lets c add the people to conversations without asking: each accepts an invitation of c.
func (c *Client) Meets(people ...*Client) {
	c.t.Helper()
	for _, p := range people {
		id := c.Conversation(p.Name)
		p.Must(http.MethodPost, "/api/v1/conversations/"+id+"/accept", nil, http.StatusOK)
		c.Must(http.MethodDelete, "/api/v1/conversations/"+id, nil, http.StatusNoContent)
		p.Must(http.MethodDelete, "/api/v1/conversations/"+id, nil, http.StatusNoContent)
	}
}

// Said is the portal's answer to a posted message.
type Said struct {
	ID    string
	Seq   int64
	Tasks []struct{ ID, State string }
}

// Say posts text to a conversation. With a session the request must list the remote agents that get the
// text, as the pages do.
func (c *Client) Say(conversation, text string) (s Said) {
	c.t.Helper()
	body := map[string]any{"client_id": Fresh("m"), "text": text}
	if c.Token == "" {
		body["told"] = c.Remote(conversation)
	}
	c.Get(http.MethodPost, "/api/v1/conversations/"+conversation+"/messages", body, http.StatusCreated, &s)
	return s
}

// Remote returns the handles of the members whose agents get the text on another server.
func (c *Client) Remote(conversation string) []string {
	c.t.Helper()
	var room struct {
		Members []struct{ Handle, Remote string }
	}
	c.Get(http.MethodGet, "/api/v1/conversations/"+conversation, nil, http.StatusOK, &room)
	out := []string{}
	for _, m := range room.Members {
		if m.Remote != "" {
			out = append(out, m.Handle)
		}
	}
	return out
}

// LogInNext logs in to an account with a page to continue at, and returns the answer.
func (p *Portal) LogInNext(t testing.TB, name, next string) Answer {
	t.Helper()
	return p.Guest(t).Do(http.MethodPost, "/login", url.Values{"name": {name}, "password": {Password}, "next": {next}})
}
