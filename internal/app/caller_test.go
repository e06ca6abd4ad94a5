package app_test

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"agentsite/internal/ident/httpsig"
	"agentsite/internal/testing/agenttest"
	"agentsite/internal/testing/apptest"
)

// wiretap stands before servers of agents and keeps what reaches them.
type wiretap struct {
	*httptest.Server
	mu   sync.Mutex // guards seen
	more *sync.Cond // of mu: seen has grown
	seen []heard
}

// heard is one request as it came, with its body and when.
type heard struct {
	*http.Request
	body []byte
	at   time.Time
	raw  string
}

// newWiretap forwards /name/… to the server of that name.
func newWiretap(t *testing.T, to map[string]string) *wiretap {
	t.Helper()
	w := &wiretap{}
	w.more = sync.NewCond(&w.mu)
	way := &http.Transport{} // not the default one, whose connections every httptest.Server closes
	t.Cleanup(way.CloseIdleConnections)
	proxy := &httputil.ReverseProxy{Transport: way, FlushInterval: -1, Rewrite: func(p *httputil.ProxyRequest) {
		name, rest, _ := strings.Cut(strings.TrimPrefix(p.In.URL.Path, "/"), "/")
		u, err := url.Parse(to[name])
		if err != nil || to[name] == "" {
			u = &url.URL{Scheme: "http", Host: "127.0.0.1:1"}
		}
		p.SetURL(u)
		p.Out.URL.Path, p.Out.URL.RawPath, p.Out.Host = "/"+rest, "", u.Host
	}, ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusNotFound) }}
	w.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		raw, _ := httputil.DumpRequest(r, false)
		w.mu.Lock()
		w.seen = append(w.seen, heard{r.Clone(r.Context()), body, time.Now(), string(raw) + string(body)})
		w.mu.Unlock()
		w.more.Broadcast()
		r.Body = io.NopCloser(bytes.NewReader(body))
		proxy.ServeHTTP(rw, r)
	}))
	t.Cleanup(func() { w.CloseClientConnections(); w.Close() })
	return w
}

func (w *wiretap) all() []heard {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.seen)
}

// await returns once a request that is meant has come.
func (w *wiretap) await(meant func(heard) bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for !slices.ContainsFunc(w.seen, meant) {
		w.more.Wait()
	}
}

// publishedKey is a portal's key as whoever received a request finds it.
func publishedKey(t *testing.T, c *apptest.Client, path string) keySet {
	t.Helper()
	var set struct{ Keys []httpsig.JWK }
	if err := json.Unmarshal([]byte(c.Must(http.MethodGet, path, nil, http.StatusOK).Body), &set); err != nil {
		t.Fatal(err)
	}
	return set.Keys
}

// keySet are the httpsig.Keys of a portal.
type keySet []httpsig.JWK

func (s keySet) PublicKey(id string) (ed25519.PublicKey, error) {
	for _, k := range s {
		if k.Kid == id {
			return k.Public()
		}
	}
	return nil, errors.New("no such key")
}

// nonceSet are httpsig.Nonces of all keys together.
type nonceSet map[string]bool

func (s nonceSet) UseNonce(_, nonce string, _ time.Time) bool {
	defer func() { s[nonce] = true }()
	return !s[nonce]
}

// callerOf splits the field into what asks and who.
func callerOf(r heard) (kind, id string) {
	kind, id, _ = strings.Cut(r.Header.Get("Agentsite-Caller"), ", id=")
	return strings.TrimPrefix(kind, "kind="), strings.Trim(id, `"`)
}

func TestCallers_EndpointsLearnWhoAsksAndNothingElse(t *testing.T) {
	t.Parallel()
	a2a := agenttest.NewA2AServer(t, "1.0", "JSONRPC")
	model := agenttest.NewOpenAIServer(t)
	modern, legacy := agenttest.NewMCPServer(t, true), agenttest.NewMCPServer(t, false)
	w := newWiretap(t, map[string]string{"a2a": a2a.URL, "openai": model.URL, "prompt": model.URL, "modern": modern.URL, "legacy": legacy.URL})
	p := apptest.Start(t)
	owner := p.User(t, "ada")
	echo := string(agenttest.Echo)
	kinds := map[string]map[string]any{
		"a2a":    {"kind": "a2a", "endpoint": w.URL + "/a2a/" + echo, "config": map[string]any{"binding": "JSONRPC", "version": "1.0", "streaming": true}},
		"openai": {"kind": "openai", "endpoint": w.URL + "/openai/" + echo + "/v1", "config": map[string]any{"model": "echo-1"}},
		"prompt": {"kind": "prompt", "endpoint": w.URL + "/prompt/" + echo + "/v1", "config": map[string]any{"instructions": "Say it again.", "model": "echo-1"}},
		"modern": {"kind": "mcp", "endpoint": w.URL + "/modern/" + echo},
		"legacy": {"kind": "mcp", "endpoint": w.URL + "/legacy/" + echo},
	}
	for name, body := range kinds {
		body["name"], body["description"], body["visibility"] = "of-"+name, "Says it again.", "public"
		owner.Must(http.MethodPost, "/api/v1/agents", body, http.StatusCreated)
	}
	bob := p.User(t, "bob").NewToken()
	token := p.Canary(bob.Token)
	visitor := p.Guest(t)
	for name := range kinds {
		agent, text := "of-"+name, "echo text=hello"
		if state, all := outcome(t, bob, agent); state != "TASK_STATE_COMPLETED" && !strings.Contains(all, "TASK_STATE_") {
			t.Errorf("%s: %s", name, all)
		}
		send := `{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"m-` + name + `","role":"ROLE_USER","parts":[{"text":"` + text + `"}]}}}`
		for _, c := range []*apptest.Client{bob, visitor} {
			if a := c.Must(http.MethodPost, "/agents/"+agent+"/a2a", send, http.StatusOK); !strings.Contains(a.Body, "hello") {
				t.Errorf("%s: %s", name, a.Body)
			}
		}
		bob.Must(http.MethodPost, "/v1/chat/completions", map[string]any{"model": agent, "messages": []any{map[string]string{"role": "user", "content": text}}}, http.StatusOK)
	}

	fromSet, fromDirectory := publishedKey(t, p.Guest(t), "/.well-known/jwks.json"), publishedKey(t, p.Guest(t), "/.well-known/http-message-signatures-directory")
	ids, seen := make(map[string]map[string][]string), make(nonceSet)
	for _, r := range w.all() {
		if strings.Contains(r.raw, token) || strings.Contains(r.raw, "agss_") || r.Header.Get("Cookie") != "" || r.Header.Get("Authorization") != "" {
			t.Errorf("a credential went along:\n%s", r.raw)
		}
		if strings.Contains(r.URL.Path, "/.well-known/agentsite") { // whether the owner may list it is nobody's call
			continue
		}
		if got := r.Header.Get("Agentsite-Portal"); got != p.URL() {
			t.Errorf("%s %s is of portal %q", r.Method, r.URL, got)
		}
		policy := httpsig.Policy{Tag: "web-bot-auth", Now: r.at, Keys: fromSet,
			Require: append(httpsig.Components("@method", "@authority", "@path", "@query", "agentsite-portal", "agentsite-caller"), httpsig.Component{Name: "signature-agent", Key: "sig1"}),
			Nonces:  seen}
		if _, err := httpsig.Verify(r.Request, r.body, policy); err != nil {
			t.Errorf("%s %s: %v\n%s", r.Method, r.URL, err, r.raw)
		}
		policy.Nonces, policy.Keys = nil, fromDirectory
		if _, err := httpsig.Verify(r.Request, r.body, policy); err != nil {
			t.Errorf("by the directory: %v", err)
		}
		for _, field := range []string{"Agentsite-Caller", "Agentsite-Portal", "Agentsite-Hops"} {
			forged := r.Clone(r.Context())
			if forged.Header.Get(field) == "" {
				continue
			}
			forged.Header.Set(field, forged.Header.Get(field)+"x")
			if _, err := httpsig.Verify(forged, r.body, policy); !errors.Is(err, httpsig.ErrSignature) {
				t.Errorf("a forged %s: %v", field, err)
			}
		}
		kind, id := callerOf(r)
		if (kind == "probe") != (id == "") || (kind == "probe") != (r.Header.Get("Agentsite-Hops") == "") {
			t.Errorf("%s %s of %s", r.Method, r.URL, r.Header.Get("Agentsite-Caller"))
		}
		agent := strings.Split(r.URL.Path, "/")[1]
		if ids[agent] == nil {
			ids[agent] = make(map[string][]string)
		}
		if !slices.Contains(ids[agent][kind], id) {
			ids[agent][kind] = append(ids[agent][kind], id)
		}
	}
	var persons []string
	for name := range kinds {
		got := ids[name]
		if len(got["person"]) != 1 || len(got["guest"]) != 1 || len(got["probe"]) != 1 || got["person"][0] == got["guest"][0] {
			t.Errorf("%s was called by %v", name, got)
			continue
		}
		if slices.Contains(persons, got["person"][0]) {
			t.Error("two agents see the same id of one person")
		}
		persons = append(persons, got["person"][0])
	}
}

// TestCallers_GoodbyesAreSigned: an endpoint that answers nothing unsigned must
// still hear that nobody waits any more.
func TestCallers_GoodbyesAreSigned(t *testing.T) {
	t.Parallel()
	a2a, legacy := agenttest.NewA2AServer(t, "1.0", "JSONRPC"), agenttest.NewMCPServer(t, false)
	w := newWiretap(t, map[string]string{"a2a": a2a.URL, "legacy": legacy.URL})
	p := apptest.Start(t)
	owner := p.User(t, "ada")
	for name, c := range map[string]struct {
		body    map[string]any
		started chan struct{}
		text    string
		doing   string
		goodbye string
	}{
		"a2a":    {map[string]any{"kind": "a2a", "endpoint": w.URL + "/a2a/" + string(agenttest.Echo), "config": map[string]any{"binding": "JSONRPC", "version": "1.0", "streaming": true}}, a2a.Started, "wait", "thinking", "CancelTask"},
		"legacy": {map[string]any{"kind": "mcp", "endpoint": w.URL + "/legacy/" + string(agenttest.Wait)}, legacy.Started, "echo text=hello", "working on it", "notifications/cancelled"},
	} {
		c.body["name"], c.body["description"], c.body["visibility"] = "of-"+name, "Never answers.", "public"
		owner.Must(http.MethodPost, "/api/v1/agents", c.body, http.StatusCreated)
		room := owner.Conversation("of-" + name)
		s := owner.Events(room)
		said := owner.Say(room, c.text)
		<-c.started
		s.Wait(name+" says what it does", func(e apptest.Event) bool { return strings.Contains(e.Raw, c.doing) })
		owner.Must(http.MethodPost, "/api/v1/conversations/"+room+"/stop", nil, http.StatusOK)
		s.Answered(said.Tasks[0].ID)
		s.Close()
		w.await(func(r heard) bool { return strings.Contains(string(r.body), c.goodbye) })
	}
	key := publishedKey(t, p.Guest(t), "/.well-known/jwks.json")
	for _, r := range w.all() {
		if strings.Contains(r.URL.Path, "/.well-known/agentsite") {
			continue
		}
		if _, err := httpsig.Verify(r.Request, r.body, httpsig.Policy{Now: r.at, Keys: key}); err != nil {
			t.Errorf("%v\n%s", err, r.raw)
		}
		if kind, _ := callerOf(r); kind != "person" && kind != "probe" {
			t.Errorf("of %s:\n%s", kind, r.raw)
		}
	}
}
