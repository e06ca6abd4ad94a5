package registry

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-chi/chi/v5"

	"agentsite/internal/adjust"
	"agentsite/internal/clock"
	"agentsite/internal/ident"
	"agentsite/internal/registry"
)

// world is what a door sees of other machines.
type world struct {
	asked []string          // what was looked at, in order
	pages map[string]string // by URL
	texts map[string][]string
}

func (w *world) RoundTrip(r *http.Request) (*http.Response, error) {
	w.asked = append(w.asked, r.URL.String())
	body, ok := w.pages[r.URL.String()]
	if !ok {
		return nil, errors.New("nobody there")
	}
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(body))}, nil
}

func (w *world) LookupTXT(_ context.Context, name string) ([]string, error) {
	w.asked = append(w.asked, name)
	if t, ok := w.texts[name]; ok {
		return t, nil
	}
	return nil, errors.New("no such host")
}

// directory notes who publishes.
type directory struct {
	Directory
	by []ident.Actor
}

func (d *directory) PublishRelease(_ context.Context, actor ident.Actor, r registry.Release) (registry.Release, error) {
	d.by = append(d.by, actor)
	return r, nil
}

func (d *directory) Namespace() string { return "org.home" }

type loginDoor struct {
	*Handler
	routes http.Handler
	world  *world
	dir    *directory
}

func newDoor(t *testing.T, edit func(*Config)) *loginDoor {
	t.Helper()
	keys, err := ident.CreateKeys(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	l := &loginDoor{world: &world{pages: make(map[string]string), texts: make(map[string][]string)}, dir: new(directory)}
	cfg := Config{Directory: l.dir, Sealer: keys, Fetch: l.world, Resolver: l.world, Live: adjust.NewSnapshot(adjust.Values{adjust.Accounts: adjust.Open}), URL: "https://home.org", Started: clock.Now().Add(-time.Hour), Log: slog.New(slog.DiscardHandler),
		Addresses: noPrivate{}, Callers: asGuest{}}
	if edit != nil {
		edit(&cfg)
	}
	l.Handler = New(cfg)
	r := chi.NewRouter()
	l.Routes(r)
	l.routes = r
	return l
}

func (l *loginDoor) post(path string, body any, token string) *httptest.ResponseRecorder {
	b, _ := json.Marshal(body)
	if s, ok := body.(string); ok {
		b = []byte(s)
	}
	req := httptest.NewRequest(http.MethodPost, path, strings.NewReader(string(b)))
	req.Header.Set("Content-Type", "application/json")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	rec := httptest.NewRecorder()
	l.routes.ServeHTTP(rec, req)
	return rec
}

// key is a publisher's key.
type key struct {
	record string
	sign   func(string) string
}

func newKey(t *testing.T, algorithm string) key {
	t.Helper()
	if algorithm == "ed25519" {
		public, private, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		return key{"v=MCPv1; k=ed25519; p=" + base64.StdEncoding.EncodeToString(public), func(s string) string { return hex.EncodeToString(ed25519.Sign(private, []byte(s))) }}
	}
	private, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := private.PublicKey.Bytes() // 4, x, y
	if err != nil {
		t.Fatal(err)
	}
	compressed := append([]byte{2 + raw[96]&1}, raw[1:49]...)
	return key{"v=MCPv1; k=ecdsap384; p=" + base64.StdEncoding.EncodeToString(compressed), func(s string) string {
		digest := sha512.Sum384([]byte(s))
		r, v, err := ecdsa.Sign(rand.Reader, private, digest[:])
		if err != nil {
			t.Fatal(err)
		}
		out := make([]byte, 96)
		r.FillBytes(out[:48])
		v.FillBytes(out[48:])
		return hex.EncodeToString(out)
	}}
}

func (k key) login(domain string, at time.Time) loginJSON {
	stamp := at.UTC().Format(time.RFC3339)
	return loginJSON{domain, stamp, k.sign(stamp)}
}

func loggedIn(t *testing.T, rec *httptest.ResponseRecorder) string {
	t.Helper()
	var out loggedInJSON
	if err := json.Unmarshal(rec.Body.Bytes(), &out); rec.Code != http.StatusOK || err != nil || out.Token == "" {
		t.Fatalf("%d %s", rec.Code, rec.Body)
	}
	return out.Token
}

func TestLogin_ProvesADomain(t *testing.T) {
	t.Parallel()
	for _, algorithm := range []string{"ed25519", "ecdsap384"} {
		l := newDoor(t, nil)
		k, stale := newKey(t, algorithm), newKey(t, "ed25519")
		l.world.pages["https://acme.example"+keyPath] = "\n" + k.record + "\n"
		l.world.texts["acme.example."] = []string{"v=spf1 -all", stale.record, k.record}
		token := loggedIn(t, l.post("/v0/auth/http", k.login("Acme.example", clock.Now()), ""))
		if rec := l.post("/v0/publish", whole, token); rec.Code != http.StatusOK {
			t.Fatalf("%d %s", rec.Code, rec.Body)
		}
		token = loggedIn(t, l.post("/v0.1/auth/dns", k.login("acme.example", clock.Now().Add(time.Second)), ""))
		if rec := l.post("/v0.1/publish", whole, token); rec.Code != http.StatusOK {
			t.Fatalf("%d %s", rec.Code, rec.Body)
		}
		if len(l.dir.by) != 2 || l.dir.by[0].Kind != ident.Publisher || l.dir.by[0].Name != "acme.example" || l.dir.by[0].Below || !l.dir.by[1].Below || l.dir.by[1].Name != "acme.example" {
			t.Errorf("%+v", l.dir.by)
		}
		for what, in := range map[string]loginJSON{
			"another key":       newKey(t, algorithm).login("acme.example", clock.Now().Add(2*time.Second)),
			"another algorithm": newKey(t, map[string]string{"ed25519": "ecdsap384", "ecdsap384": "ed25519"}[algorithm]).login("acme.example", clock.Now().Add(2*time.Second)),
			"nothing signed":    {"acme.example", clock.Now().UTC().Format(time.RFC3339), ""},
			"no hex":            {"acme.example", clock.Now().UTC().Format(time.RFC3339), "zz"},
			"another time":      {"acme.example", clock.Now().Add(3 * time.Second).UTC().Format(time.RFC3339), k.login("", clock.Now().Add(4*time.Second)).Signature},
		} {
			if rec := l.post("/v0/auth/dns", in, ""); rec.Code != http.StatusUnauthorized || !strings.Contains(rec.Body.String(), `"detail":"DNS authentication failed"`) || rec.Header().Get("Content-Type") != "application/problem+json" {
				t.Errorf("%s, %s: %d %s", algorithm, what, rec.Code, rec.Body)
			}
		}
	}
}

// A signed time is good for 15 seconds either way, once, and what it gets for
// five minutes, here.
func TestLogin_Ends(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := newKey(t, "ecdsap384")
		l := newDoor(t, func(c *Config) { c.Started = clock.Now() })
		l.world.pages["https://acme.example"+keyPath] = k.record
		l.world.texts["acme.example."] = []string{k.record}
		refused := func(what string, in loginJSON) {
			t.Helper()
			for _, path := range []string{"/v0/auth/http", "/v0/auth/dns"} {
				if rec := l.post(path, in, ""); rec.Code != http.StatusUnauthorized {
					t.Errorf("%s: %d %s", what, rec.Code, rec.Body)
				}
			}
		}
		refused("signed before the start", k.login("acme.example", clock.Now().Add(-2*time.Second)))
		time.Sleep(time.Hour)
		now := clock.Now()
		refused("too old", k.login("acme.example", now.Add(-16*time.Second)))
		refused("too new", k.login("acme.example", now.Add(16*time.Second)))
		in := k.login("acme.example", now)
		token := loggedIn(t, l.post("/v0/auth/http", in, ""))
		refused("again", in)
		refused("again, signed anew", k.login("acme.example", now))
		refused("again, in capitals", k.login("ACME.example", now))

		elsewhere := newDoor(t, nil)
		elsewhere.Sealer = l.Sealer
		elsewhere.URL = "https://other.org"
		for what, c := range map[string]struct {
			door  *loginDoor
			token string
			after time.Duration
			want  int
		}{
			"at once":         {l, token, 0, http.StatusOK},
			"another portal":  {elsewhere, token, 0, http.StatusUnauthorized},
			"a changed token": {l, changeMiddle(token), 0, http.StatusUnauthorized},
			"half a token":    {l, token[:20], 0, http.StatusUnauthorized},
			"no token":        {l, tokenPrefix, 0, http.StatusUnauthorized},
		} {
			if rec := c.door.post("/v0/publish", whole, c.token); rec.Code != c.want {
				t.Errorf("%s: %d %s", what, rec.Code, rec.Body)
			}
		}
		time.Sleep(tokenLife - time.Second)
		if rec := l.post("/v0/publish", whole, token); rec.Code != http.StatusOK {
			t.Errorf("before its end: %d %s", rec.Code, rec.Body)
		}
		time.Sleep(time.Second)
		if rec := l.post("/v0/publish", whole, token); rec.Code != http.StatusUnauthorized {
			t.Errorf("after its end: %d %s", rec.Code, rec.Body)
		}
		l.Live = adjust.NewSnapshot(adjust.Values{adjust.Accounts: "closed"})
		if rec := l.post("/v0/auth/http", k.login("acme.example", clock.Now()), ""); rec.Code != http.StatusForbidden {
			t.Errorf("where accounts alone publish: %d %s", rec.Code, rec.Body)
		}
	})
}

// Domains that prove nothing, or lead to this machine, are not even looked at.
func TestLogin_LooksAtNoOtherMachine(t *testing.T) {
	t.Parallel()
	k := newKey(t, "ed25519")
	for domain, loopback := range map[string]bool{
		"": false, "localhost": true, "127.0.0.1": true, "localhost:8080": true, "tool.localhost:8080": true, "[::1]:80": true, "localhost:x": false, "127.0.0.1:": false,
		"acme.example:443": false, "acme.example/x": false, "acme.example@evil.example": false, "10.0.0.1": false, "1.2.3": false, "2130706433": false, "0x7f.1": false, "intranet": false,
		"user.github.io": false, "-a.example": false, "a..example": false, "a.example.": false, "[fe80::1%25lo]:80": false, strings.Repeat("a.", 130) + "b": false, "a b.example": false,
	} {
		for _, on := range []bool{false, true} {
			l := newDoor(t, func(c *Config) { c.Loopback = on })
			rec := l.post("/v0/auth/http", k.login(domain, clock.Now()), "")
			looked := len(l.world.asked) > 0
			if want := on && loopback; rec.Code != http.StatusUnauthorized || looked != want {
				t.Errorf("%q, loopback %v: %d, looked at %v: %s", domain, on, rec.Code, l.world.asked, rec.Body)
			}
			if looked && !strings.HasPrefix(l.world.asked[0], "http://") {
				t.Errorf("%q: %v", domain, l.world.asked)
			}
		}
	}
	l := newDoor(t, nil)
	if rec := l.post("/v0/auth/none", nil, ""); rec.Code != http.StatusForbidden {
		t.Errorf("anonymous on a public portal: %d", rec.Code)
	}
	l.Loopback = true
	token := loggedIn(t, l.post("/v0/auth/none", nil, ""))
	if rec := l.post("/v0/publish", whole, token); rec.Code != http.StatusOK || l.dir.by[0].Name != registry.AnonymousDomain {
		t.Errorf("%d %+v", rec.Code, l.dir.by)
	}
}

func TestLogin_IsBounded(t *testing.T) {
	t.Parallel()
	k := newKey(t, "ed25519")
	l := newDoor(t, nil)
	l.world.pages["https://big.example"+keyPath] = strings.Repeat(" ", maxKeyFile) + k.record
	many := make([]string, maxRecords)
	for i := range many {
		many[i] = "v=spf1"
	}
	l.world.texts["many.example."] = append(many, k.record)
	for path, domain := range map[string]string{"/v0/auth/http": "big.example", "/v0/auth/dns": "many.example"} {
		if rec := l.post(path, k.login(domain, clock.Now()), ""); rec.Code != http.StatusUnauthorized {
			t.Errorf("%s: %d %s", domain, rec.Code, rec.Body)
		}
	}
	limited := false
	for range 30 {
		rec := l.post("/v0/auth/http", k.login("nobody.example", clock.Now()), "")
		limited = limited || rec.Code == http.StatusTooManyRequests && rec.Header().Get("Retry-After") != ""
	}
	if !limited {
		t.Error("anybody makes this portal look at domains without end")
	}
	var u usedStamps
	u.until = make(map[string]time.Time)
	now := time.Now()
	for i := range maxStamps {
		if err := u.takeStamp(string(rune(i))+"x", now.Add(time.Second), now); err != nil {
			t.Fatal(i, err)
		}
	}
	if err := u.takeStamp("one more", now.Add(time.Second), now); err == nil {
		t.Error("what is remembered has no bound")
	}
	if err := u.takeStamp("later", now.Add(time.Minute), now.Add(2*time.Second)); err != nil || len(u.until) != 1 {
		t.Errorf("%v, %d remembered", err, len(u.until))
	}
}

// asGuest takes each caller for a guest.
type asGuest struct{}

func (asGuest) Authenticate(*http.Request) (ident.Actor, error) {
	return ident.Actor{Kind: ident.Guest}, nil
}

// changeMiddle returns the token with another letter in its middle. Its last letter has bits that do not count.
func changeMiddle(token string) string {
	at, other := len(token)/2, "A"
	if token[at:at+1] == other {
		other = "B"
	}
	return token[:at] + other + token[at+1:]
}
