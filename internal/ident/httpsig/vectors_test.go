package httpsig_test

import (
	"bufio"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	. "agentsite/internal/ident/httpsig"
)

// peerVector is a request between portals that another implementation signed,
// see testdata/peer.py.
type peerVector struct {
	Name, Method, URL, Body, Base string
	Headers                       http.Header
	Input                         string `json:"signature_input"`
	Signature                     string
}

func peerVectors(t *testing.T) (list []peerVector) {
	t.Helper()
	b, err := os.ReadFile("testdata/peer.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &list); err != nil || len(list) < 3 {
		t.Fatal(len(list), err)
	}
	return list
}

// request is the vector as a server reads it.
func (v peerVector) request(t *testing.T) *http.Request {
	t.Helper()
	u, err := url.Parse(v.URL)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(v.Method + " " + u.RequestURI() + " HTTP/1.1\r\nHost: " + u.Host + "\r\n\r\n")))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = v.Headers.Clone()
	r.Header.Set("Signature-Input", v.Input)
	r.Header.Set("Signature", v.Signature)
	return r
}

func TestVectors_OfAnotherImplementation(t *testing.T) {
	t.Parallel()
	seed := sha256.Sum256([]byte("agentsite test key vectors op"))
	key := ed25519.NewKeyFromSeed(seed[:])
	p := Policy{Tag: "agentsite-peer", Now: time.Unix(946684800, 0), Target: Target{Scheme: "https", Authority: "b.example"},
		Keys: oneKey(key.Public().(ed25519.PublicKey))}
	for _, v := range peerVectors(t) {
		r := v.request(t)
		said, err := Verify(r, []byte(v.Body), p)
		if err != nil {
			t.Errorf("%s: %v", v.Name, err)
			continue
		}
		// Each line of the base counts: a signature of one that is a little
		// different does not hold, and this one is made of it.
		for line := range strings.Lines(v.Base) {
			name, _, _ := strings.Cut(strings.TrimPrefix(line, `"`), `"`)
			if name != "@signature-params" && !strings.Contains(v.Input, `"`+name+`"`) {
				t.Errorf("%s: %s is not covered", v.Name, name)
			}
		}
		out := v.request(t)
		out.Header.Del("Signature")
		out.Header.Del("Signature-Input")
		out.URL.Scheme, out.URL.Host = "https", out.Host
		if err := Sign(out, "sig1", said, key); err != nil {
			t.Fatal(err)
		}
		if got := out.Header.Get("Signature-Input"); got != v.Input {
			t.Errorf("%s: signed as\n%s, not\n%s", v.Name, got, v.Input)
		}
		if got := out.Header.Get("Signature"); got != v.Signature {
			t.Errorf("%s: the signature is %s, not %s", v.Name, got, v.Signature)
		}
		r.Header.Set("Agentsite-Network", "elsewhere")
		if _, err := Verify(r, []byte(v.Body), p); !errors.Is(err, ErrSignature) {
			t.Errorf("%s: with another network: %v", v.Name, err)
		}
	}
}
