package webpush_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/testing/pushtest"
	"agentsite/internal/webpush"
)

func draft(b *pushtest.Browser, endpoint string) webpush.Draft {
	return webpush.Draft{Endpoint: endpoint, P256dh: b.P256dh(), Auth: b.Auth()}
}

// memory is a store of one queue. It answers DuePushes from due, and notes the outcomes.
type memory struct {
	mu       sync.Mutex
	browsers []webpush.Browser
	due      []webpush.Waiting
	settled  chan webpush.Outcome
}

func (m *memory) PutBrowser(_ context.Context, b webpush.Browser) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.browsers = append(m.browsers, b)
	return nil
}

func (m *memory) Browsers(context.Context, string) ([]webpush.Browser, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.browsers, nil
}

func (m *memory) DropBrowsers(context.Context, string, string) error { return nil }

func (m *memory) DuePushes(context.Context, time.Time, int) ([]webpush.Waiting, time.Time, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := m.due
	m.due = nil
	return list, time.Time{}, nil
}

func (m *memory) SettlePush(_ context.Context, o webpush.Outcome) error {
	m.settled <- o
	return nil
}

// push queues a notice for the first browser.
func (m *memory) push(n hub.Notice) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.due = append(m.due, webpush.Waiting{Browser: m.browsers[0], Notice: n})
}

type service func(*http.Request) (*http.Response, error)

func (f service) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func answers(status int) *http.Response {
	return &http.Response{StatusCode: status, Body: io.NopCloser(strings.NewReader("")), Header: http.Header{}}
}

type httpsOnly struct{}

func (httpsOnly) CheckURL(s string) error {
	if !strings.HasPrefix(s, "https://push.example/") {
		return errors.New("use https")
	}
	return nil
}

var ada = ident.Actor{Kind: ident.Person, ID: "ada-id", Name: "ada", Credential: "s1"}

// world is a running service with a push service of its own.
type world struct {
	*webpush.Service
	store *memory
	wake  chan struct{}
}

func start(t *testing.T, far service) *world {
	t.Helper()
	keys, err := ident.CreateKeys(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{store: &memory{settled: make(chan webpush.Outcome)}, wake: make(chan struct{}, 1)}
	w.Service, err = webpush.New(webpush.Config{Store: w.store, Keys: keys, Addresses: httpsOnly{}, Transport: far,
		Wake: w.wake, Name: func() string { return "Portal" }, URL: "https://portal.example"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- w.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return w
}

// send pushes a notice and returns the outcome.
func (w *world) send(n hub.Notice) webpush.Outcome {
	w.store.push(n)
	select {
	case w.wake <- struct{}{}:
	default:
	}
	return <-w.store.settled
}

func notice() hub.Notice {
	return hub.Notice{ID: "n1", AccountID: "ada-id", Kind: hub.NoticeMention, Subject: "bob", Text: "bob mentioned you in a conversation.",
		Href: "/chat/c1?at=3#m3", CreatedAt: clock.Now()}
}

func TestRun_EncryptsForTheBrowser(t *testing.T) {
	b := pushtest.New(t)
	bodies, headers := make(chan []byte, 1), make(chan http.Header, 1)
	w := start(t, func(r *http.Request) (*http.Response, error) {
		body, err := io.ReadAll(r.Body)
		bodies <- body
		headers <- r.Header
		return answers(http.StatusCreated), err
	})
	for _, texts := range []bool{false, true} {
		d := draft(b, "https://push.example/a")
		d.Texts = texts
		w.store.browsers = nil
		if err := w.Subscribe(t.Context(), ada, d); err != nil {
			t.Fatal(err)
		}
		if o := w.send(notice()); !o.Done || o.Gone || o.Failures != 0 {
			t.Errorf("the outcome is %+v", o)
		}
		plain, err := b.Open(<-bodies)
		if err != nil {
			t.Fatal(err)
		}
		var m webpush.Message
		if err := json.Unmarshal(plain, &m); err != nil {
			t.Fatal(err)
		}
		want := webpush.Message{ID: "n1", Title: "Portal", Body: "Someone mentioned you.", Href: "/notices"}
		if texts {
			want.Body, want.Href = "bob mentioned you in a conversation.", "/chat/c1?at=3#m3"
		}
		if m != want {
			t.Errorf("with texts %v the browser shows %+v, want %+v", texts, m, want)
		}
		h := <-headers
		if !strings.HasPrefix(h.Get("Authorization"), "vapid t=") || !strings.HasSuffix(h.Get("Authorization"), ", k="+w.PublicKey()) ||
			h.Get("Content-Encoding") != "aes128gcm" || h.Get("Ttl") != "86400" || h.Get("Cookie") != "" {
			t.Errorf("the headers are %v", h)
		}
	}
	if strings.Contains(string(w.store.browsers[0].Sealed), "push.example") {
		t.Error("the address is stored in clear")
	}
}

func TestRun_SettlesWhatTheServiceAnswers(t *testing.T) {
	for _, c := range []struct {
		status     int
		failures   int
		done, gone bool
	}{
		{status: 201, failures: 7, done: true},
		{status: 404, done: true, gone: true},
		{status: 410, done: true, gone: true},
		{status: 400, done: true},
		{status: 429}, {status: 500}, {status: 302}, {status: 0},
		{status: 503, failures: 39, gone: true},
	} {
		w := start(t, func(*http.Request) (*http.Response, error) {
			if c.status == 0 {
				return nil, errors.New("no answer")
			}
			return answers(c.status), nil
		})
		if err := w.Subscribe(t.Context(), ada, draft(pushtest.New(t), "https://push.example/a")); err != nil {
			t.Fatal(err)
		}
		w.store.browsers[0].Failures = c.failures
		o := w.send(notice())
		if o.Done != c.done || o.Gone != c.gone {
			t.Errorf("%d: %+v", c.status, o)
		}
		if again := !o.Done && !o.Gone; again && (o.Failures != c.failures+1 || !o.NextAt.After(clock.Now())) {
			t.Errorf("%d: the next attempt is %+v", c.status, o)
		}
	}
}

func TestRun_SendsNoOldNotice(t *testing.T) {
	w := start(t, func(*http.Request) (*http.Response, error) {
		t.Error("a request")
		return nil, errors.New("none")
	})
	if err := w.Subscribe(t.Context(), ada, draft(pushtest.New(t), "https://push.example/a")); err != nil {
		t.Fatal(err)
	}
	n := notice()
	n.CreatedAt = clock.Now().Add(-25 * time.Hour)
	if o := w.send(n); !o.Done || o.Gone {
		t.Errorf("%+v", o)
	}
	w.store.browsers[0].SessionID = "another" // a row that was moved cannot be opened
	if o := w.send(notice()); !o.Gone {
		t.Errorf("%+v", o)
	}
}

func TestSubscribe_Refuses(t *testing.T) {
	w := start(t, func(*http.Request) (*http.Response, error) { return nil, errors.New("none") })
	good := draft(pushtest.New(t), "https://push.example/a")
	for name, change := range map[string]func(*webpush.Draft){
		"http":     func(d *webpush.Draft) { d.Endpoint = "http://push.example/a" },
		"no host":  func(d *webpush.Draft) { d.Endpoint = "https:///a" },
		"user":     func(d *webpush.Draft) { d.Endpoint = "https://a@push.example/" },
		"long":     func(d *webpush.Draft) { d.Endpoint += strings.Repeat("a", 2000) },
		"no key":   func(d *webpush.Draft) { d.P256dh = "" },
		"bad key":  func(d *webpush.Draft) { d.P256dh = strings.Repeat("B", 87) },
		"long key": func(d *webpush.Draft) { d.P256dh = strings.Repeat("B", 1000) },
		"no auth":  func(d *webpush.Draft) { d.Auth = "" },
		"bad auth": func(d *webpush.Draft) { d.Auth = "AAAA" },
	} {
		d := good
		change(&d)
		if err := w.Subscribe(t.Context(), ada, d); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	token, guest := ada, ada
	token.Narrowed, guest.Kind = true, ident.Guest
	if err := w.Subscribe(t.Context(), token, good); !fault.Is(err, fault.Forbidden) {
		t.Errorf("a token: %v", err)
	}
	if err := w.Subscribe(t.Context(), guest, good); !fault.Is(err, fault.Unauthenticated) {
		t.Errorf("a guest: %v", err)
	}
	if len(w.store.browsers) != 0 {
		t.Error("a refused subscription is stored")
	}
}

// The key must survive a restart, because browsers subscribed with it.
func TestNew_KeepsItsKey(t *testing.T) {
	dir := t.TempDir()
	var public [2]string
	for i := range public {
		keys, err := ident.CreateKeys(dir)
		if err != nil {
			t.Fatal(err)
		}
		s, err := webpush.New(webpush.Config{Store: &memory{}, Keys: keys})
		if err != nil {
			t.Fatal(err)
		}
		public[i] = s.PublicKey()
	}
	if public[0] != public[1] || len(public[0]) != 87 {
		t.Errorf("the keys are %q", public)
	}
}
