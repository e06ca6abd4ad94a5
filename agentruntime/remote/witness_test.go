package remote_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"
	"github.com/gowebpki/jcs"

	"agentsite/agentruntime/remote"
	"agentsite/internal/hub"
)

const token = "agentsite-owner=abc"

func TestWitness_HasToken(t *testing.T) {
	for _, c := range []struct {
		name, body string
		status     int
		want       string // part of the error, empty for a proof
	}{
		{"alone", token + "\n", 200, ""},
		{"among others", "# ours\r\nagentsite-owner=zzz\r\n  " + token + "  \r\n", 200, ""},
		{"as part of a line", "my " + token, 200, "does not hold your token"},
		{"longer", token + "d", 200, "does not hold your token"},
		{"absent", "nothing", 404, "HTTP 404"},
		{"endless", strings.Repeat("a\n", 64<<10), 200, "larger than"},
		{"a redirect", token, 302, "HTTP 302"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != hub.ProofPath {
					t.Errorf("asked for %s", r.URL.Path)
				}
				if c.status == 302 {
					w.Header().Set("Location", "https://elsewhere.example/")
				}
				w.WriteHeader(c.status)
				io.WriteString(w, c.body)
			}))
			defer s.Close()
			err := remote.NewWitness(http.DefaultTransport).HasToken(t.Context(), s.URL, token)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// signedSite serves a card and the keys that are said to have signed it.
type signedSite struct {
	*httptest.Server
	card map[string]any
	keys jose.JSONWebKeySet
}

func newSignedSite(t *testing.T) *signedSite {
	s := &signedSite{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/.well-known/agent-card.json":
			json.NewEncoder(w).Encode(s.card)
		case "/.well-known/jwks.json", "/.well-known/other.json", "/keys":
			json.NewEncoder(w).Encode(s.keys)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(s.Close)
	s.card = map[string]any{"name": "Signed", "description": "It <signs> & more", "version": "1", "skills": []any{},
		"capabilities":        map[string]any{"streaming": false},
		"supportedInterfaces": []any{map[string]any{"url": s.URL + "/a2a", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}}}
	return s
}

// sign signs what cover makes of the card.
func (s *signedSite) sign(t *testing.T, alg jose.SignatureAlgorithm, key any, public any, head map[jose.HeaderKey]any, cover func(map[string]any) map[string]any) {
	t.Helper()
	s.keys.Keys = append(s.keys.Keys, jose.JSONWebKey{Key: public, KeyID: "k1", Algorithm: string(alg), Use: "sig"})
	opts := (&jose.SignerOptions{}).WithType("JOSE").WithHeader("kid", "k1")
	for k, v := range head {
		opts = opts.WithHeader(k, v)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: key}, opts)
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(cover(s.card))
	if err != nil {
		t.Fatal(err)
	}
	if b, err = jcs.Transform(b); err != nil {
		t.Fatal(err)
	}
	jws, err := signer.Sign(b)
	if err != nil {
		t.Fatal(err)
	}
	detached, err := jws.DetachedCompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	protected, signature, _ := strings.Cut(detached, "..")
	s.card["signatures"] = []any{map[string]any{"protected": protected, "signature": signature}}
}

func asServed(card map[string]any) map[string]any { return card }

func withoutDefaults(card map[string]any) map[string]any {
	return map[string]any{"name": card["name"], "description": card["description"], "version": card["version"], "supportedInterfaces": card["supportedInterfaces"]}
}

func TestWitness_SignedCard(t *testing.T) {
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	pub, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		build func(*signedSite)
		want  string
	}{
		{"as served", func(s *signedSite) { s.sign(t, jose.ES256, ec, ec.Public(), nil, asServed) }, ""},
		{"without defaults", func(s *signedSite) { s.sign(t, jose.EdDSA, ed, pub, nil, withoutDefaults) }, ""},
		{"key set named", func(s *signedSite) {
			s.sign(t, jose.EdDSA, ed, pub, map[jose.HeaderKey]any{"jku": s.URL + "/.well-known/other.json"}, asServed)
		}, ""},
		{"key set of a user", func(s *signedSite) {
			s.sign(t, jose.EdDSA, ed, pub, map[jose.HeaderKey]any{"jku": s.URL + "/keys"}, asServed)
		}, "well-known path"},
		{"key set elsewhere", func(s *signedSite) {
			s.sign(t, jose.EdDSA, ed, pub, map[jose.HeaderKey]any{"jku": "https://elsewhere.example/keys"}, asServed)
		}, "well-known path"},
		{"unsigned", func(s *signedSite) {}, "not signed"},
		{"changed since", func(s *signedSite) {
			s.sign(t, jose.ES256, ec, ec.Public(), nil, asServed)
			s.card["description"] = "Something else"
		}, "No key"},
		{"another's key", func(s *signedSite) { s.sign(t, jose.EdDSA, ed, ec.Public(), nil, asServed) }, "No key"},
		{"another address", func(s *signedSite) {
			s.card["supportedInterfaces"] = []any{map[string]any{"url": s.URL + "/other", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}}
			s.sign(t, jose.ES256, ec, ec.Public(), nil, asServed)
		}, "does not name"},
		{"a shared secret", func(s *signedSite) {
			s.sign(t, jose.HS256, []byte(strings.Repeat("k", 32)), []byte(strings.Repeat("k", 32)), nil, asServed)
		}, "cannot be read"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSignedSite(t)
			c.build(s)
			said, err := remote.NewWitness(http.DefaultTransport).SignedCard(context.Background(), hub.Target{Kind: hub.A2A, Endpoint: s.URL + "/a2a"})
			if err == nil && said.Title != "Signed" {
				t.Errorf("the card says %+v", said)
			}
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}
