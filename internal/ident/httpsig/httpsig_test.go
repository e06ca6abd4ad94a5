package httpsig_test

import (
	"bufio"
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	. "agentsite/internal/ident/httpsig"
)

// The key test-key-ed25519 of RFC 9421, appendix B.1.4.
const (
	rfcPrivate = "MC4CAQAwBQYDK2VwBCIEIJ+DYvh6SEqVTm50DFtMDoQikTmiCqirVv9mWG9qfSnF"
	rfcPublic  = "MCowBQYDK2VwAyEAJrQLj5P/89iXES9+vFgrIy29clF9CC/oPPsw3c5D0bs="
)

func rfcKey(t testing.TB) ed25519.PrivateKey {
	t.Helper()
	b, err := base64.StdEncoding.DecodeString(rfcPrivate)
	if err != nil {
		t.Fatal(err)
	}
	k, err := x509.ParsePKCS8PrivateKey(b)
	if err != nil {
		t.Fatal(err)
	}
	private := k.(ed25519.PrivateKey)
	if b, _ = x509.MarshalPKIXPublicKey(private.Public()); base64.StdEncoding.EncodeToString(b) != rfcPublic {
		t.Fatal("the two halves of the key do not fit")
	}
	return private
}

// rfcRequest is the request of appendix B.2 as a server reads it.
func rfcRequest(t testing.TB) (*http.Request, []byte) {
	t.Helper()
	body := []byte(`{"hello": "world"}`)
	text := "POST /foo?param=Value&Pet=dog HTTP/1.1\r\nHost: example.com\r\nDate: Tue, 20 Apr 2021 02:07:55 GMT\r\n" +
		"Content-Type: application/json\r\nContent-Length: 18\r\n" +
		"Content-Digest: sha-512=:WZDPaVn/7XgHaAy8pmojAkGWoRx2UFChF41A2svX+TaPm+AbwAgBWnrIiYllu7BNNyealdVLvRwEmTHWXvJwew==:\r\n\r\n" + string(body)
	r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(text)))
	if err != nil {
		t.Fatal(err)
	}
	return r, body
}

var rfcCreated = time.Unix(1618884473, 0)

const (
	rfcInput     = `("date" "@method" "@path" "@authority" "content-type" "content-length");created=1618884473;keyid="test-key-ed25519"`
	rfcSignature = `:wqcAqbmYJ2ji2glfAMaRy4gruYYnx2nEFN2HN6jrnDnQCK1u02Gb04v9EDgwUPiu4A0w6vuQv5lIp5WPpBKRCw==:`
)

// TestSign_VectorB26 is the vector of RFC 9421, appendix B.2.6. Ed25519 is
// deterministic, so signing gives the very bytes.
func TestSign_VectorB26(t *testing.T) {
	r, _ := rfcRequest(t)
	p := Params{Components: Components("date", "@method", "@path", "@authority", "content-type", "content-length"), Created: rfcCreated, KeyID: "test-key-ed25519"}
	if err := Sign(r, "sig-b26", p, rfcKey(t)); err != nil {
		t.Fatal(err)
	}
	if got := r.Header.Get("Signature-Input"); got != "sig-b26="+rfcInput {
		t.Errorf("input %s", got)
	}
	if got := r.Header.Get("Signature"); got != "sig-b26="+rfcSignature {
		t.Errorf("signature %s", got)
	}
}

func TestVerify_VectorB26(t *testing.T) {
	public := rfcKey(t).Public().(ed25519.PublicKey)
	policy := Policy{Keys: keysFunc(func(id string) (ed25519.PublicKey, error) {
		if id != "test-key-ed25519" {
			return nil, errors.New("no such key")
		}
		return public, nil
	}), Now: rfcCreated.Add(30 * time.Second)}
	r, _ := rfcRequest(t)
	// Spaces and the order of fields are the sender's; the base is ours.
	r.Header.Set("Signature-Input", "sig-b26="+strings.Replace(rfcInput, `"@method" `, `"@method"   `, 1))
	r.Header.Set("Signature", "sig-b26="+rfcSignature)
	got, err := Verify(r, nil, policy)
	if err != nil || !got.Created.Equal(rfcCreated) || got.KeyID != "test-key-ed25519" || len(got.Components) != 6 {
		t.Fatal(got, err)
	}
	r.Method = "PUT"
	if _, err := Verify(r, nil, policy); !errors.Is(err, ErrSignature) {
		t.Error("another method:", err)
	}
}

// TestKeyOf_RFC8037 checks the thumbprint of appendix A.3 of RFC 8037.
func TestKeyOf_RFC8037(t *testing.T) {
	x, _ := base64.RawURLEncoding.DecodeString("11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo")
	k := KeyOf(x)
	if k.Kid != "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k" {
		t.Error(k.Kid)
	}
	if p, err := k.Public(); err != nil || !bytes.Equal(p, x) {
		t.Error(p, err)
	}
	for name, bad := range map[string]func(*JWK){"kind": func(k *JWK) { k.Kty = "EC" }, "curve": func(k *JWK) { k.Crv = "X25519" },
		"short": func(k *JWK) { k.X = k.X[:20]; k.Kid = "" }, "foreign id": func(k *JWK) { k.Kid = "other" }} {
		c := k
		bad(&c)
		if _, err := c.Public(); err == nil {
			t.Error(name, "is taken")
		}
	}
}

var now = time.Unix(1_900_000_000, 0)

// signed is a request that was signed and sent, as its server has it.
func signed(t testing.TB, p Params, body string) (*http.Request, []byte) {
	t.Helper()
	var got *http.Request
	var read []byte
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got, read = r, nil
		read, _ = io.ReadAll(r.Body)
	}))
	s.Start()
	defer s.Close()
	r, err := http.NewRequest("POST", s.URL+"/agents/a%2Fb/%C3%A9;x?q=%20a&&b", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Digest", DigestOf(sha256.Sum256([]byte(body))))
	r.Header.Add("X-Two", " one ")
	r.Header.Add("X-Two", "two")
	r.Header.Set("Signature-Agent", `other="https://b.example", sig1="https://a.example"`)
	if p.Components == nil {
		p.Components = append(Components("@method", "@authority", "@path", "@query", "@target-uri", "@scheme", "@request-target", "content-digest", "x-two"), Component{"signature-agent", "sig1"})
	}
	if err := Sign(r, "sig1", p, rfcKey(t)); err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return got, read
}

func params() Params {
	return Params{Created: now, Expires: now.Add(time.Minute), KeyID: "k", Nonce: "n-1", Tag: "test"}
}

func policy(t testing.TB) Policy {
	public := rfcKey(t).Public().(ed25519.PublicKey)
	return Policy{Now: now, Keys: oneKey(public)}
}

func TestVerify_HoldsAfterTheNetwork(t *testing.T) {
	r, body := signed(t, params(), "hello")
	p := policy(t)
	p.Tag, p.Require = "test", append(Components("@method", "@query"), Component{"signature-agent", "sig1"})
	got, err := Verify(r, body, p)
	if err != nil {
		t.Fatal(err)
	}
	if got.Nonce != "n-1" || got.Tag != "test" || !got.Expires.Equal(now.Add(time.Minute)) {
		t.Error(got)
	}
	// Members of a dictionary that are not covered may change on the way.
	r.Header.Set("Signature-Agent", `sig1="https://a.example"`)
	if _, err := Verify(r, body, p); err != nil {
		t.Error(err)
	}
}

func TestVerify_NoticesEveryChange(t *testing.T) {
	for name, change := range map[string]func(r *http.Request, body *[]byte){
		"method":    func(r *http.Request, _ *[]byte) { r.Method = "PUT" },
		"path":      func(r *http.Request, _ *[]byte) { r.URL.Path, r.URL.RawPath = "/agents/a/b/é;x", "" },
		"query":     func(r *http.Request, _ *[]byte) { r.URL.RawQuery = "q=%20a&b" },
		"host":      func(r *http.Request, _ *[]byte) { r.Host = "b.example" },
		"field":     func(r *http.Request, _ *[]byte) { r.Header.Set("X-Two", "one, three") },
		"line":      func(r *http.Request, _ *[]byte) { r.Header.Add("X-Two", "three") },
		"member":    func(r *http.Request, _ *[]byte) { r.Header.Set("Signature-Agent", `sig1="https://c.example"`) },
		"body":      func(_ *http.Request, b *[]byte) { *b = []byte("hellp") },
		"no body":   func(_ *http.Request, b *[]byte) { *b = nil },
		"digest":    func(r *http.Request, _ *[]byte) { r.Header.Set("Content-Digest", DigestOf(sha256.Sum256(nil))) },
		"parameter": func(r *http.Request, _ *[]byte) { swap(r, "Signature-Input", `nonce="n-1"`, `nonce="n-2"`) },
		"later": func(r *http.Request, _ *[]byte) {
			swap(r, "Signature-Input", "expires=1900000060", "expires=1900000099")
		},
		"order": func(r *http.Request, _ *[]byte) {
			swap(r, "Signature-Input", `"@method" "@authority"`, `"@authority" "@method"`)
		},
	} {
		r, body := signed(t, params(), "hello")
		change(r, &body)
		if _, err := Verify(r, body, policy(t)); !errors.Is(err, ErrSignature) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func swap(r *http.Request, name, old, new string) {
	r.Header.Set(name, strings.Replace(r.Header.Get(name), old, new, 1))
}

func TestVerify_RefusesWhatIsMissingOrStrange(t *testing.T) {
	long := strings.Repeat("a", 9000)
	for name, c := range map[string]struct {
		change func(r *http.Request)
		want   error
	}{
		"none":        {func(r *http.Request) { r.Header.Del("Signature") }, ErrNone},
		"no input":    {func(r *http.Request) { r.Header.Del("Signature-Input") }, ErrNone},
		"other tag":   {func(r *http.Request) { swap(r, "Signature-Input", `tag="test"`, `tag="else"`) }, ErrNone},
		"other label": {func(r *http.Request) { swap(r, "Signature", "sig1=", "sig2=") }, ErrMalformed},
		"two": {func(r *http.Request) {
			r.Header.Add("Signature-Input", strings.Replace(r.Header.Get("Signature-Input"), "sig1=", "sig2=", 1))
		}, ErrMalformed},
		"twice":     {func(r *http.Request) { r.Header.Add("Signature", r.Header.Get("Signature")) }, ErrMalformed},
		"half":      {func(r *http.Request) { r.Header.Set("Signature", "sig1=:AAAA:") }, ErrMalformed},
		"no base64": {func(r *http.Request) { r.Header.Set("Signature", "sig1=:A-_A:") }, ErrMalformed},
		"a string":  {func(r *http.Request) { r.Header.Set("Signature", `sig1="x"`) }, ErrMalformed},
		"long":      {func(r *http.Request) { r.Header.Set("Signature", "sig1="+long) }, ErrMalformed},
		"garbage":   {func(r *http.Request) { r.Header.Set("Signature-Input", "sig1=(((") }, ErrMalformed},
		"other algorithm": {func(r *http.Request) {
			r.Header.Set("Signature-Input", r.Header.Get("Signature-Input")+`;alg="hmac-sha256"`)
		}, ErrMalformed},
		"unknown":         {func(r *http.Request) { r.Header.Set("Signature-Input", r.Header.Get("Signature-Input")+`;more`) }, ErrMalformed},
		"component twice": {func(r *http.Request) { swap(r, "Signature-Input", `"@path"`, `"@path" "@path"`) }, ErrMalformed},
		"of a response":   {func(r *http.Request) { swap(r, "Signature-Input", `"@path"`, `"@path";req`) }, ErrMalformed},
		"in capitals":     {func(r *http.Request) { swap(r, "Signature-Input", `"x-two"`, `"X-Two"`) }, ErrMalformed},
		"unknown derived": {func(r *http.Request) { swap(r, "Signature-Input", `"@path"`, `"@status"`) }, ErrCoverage},
		"no such field":   {func(r *http.Request) { r.Header.Del("X-Two") }, ErrCoverage},
		"uncovered":       {func(r *http.Request) { swap(r, "Signature-Input", `"@method" `, "") }, ErrCoverage},
		"uncovered body":  {func(r *http.Request) { swap(r, "Signature-Input", `"content-digest" `, "") }, ErrCoverage},
		"no key":          {func(r *http.Request) { swap(r, "Signature-Input", `;keyid="k"`, "") }, ErrKey},
		"strange key":     {func(r *http.Request) { swap(r, "Signature-Input", `keyid="k"`, `keyid="z"`) }, ErrKey},
		"no date":         {func(r *http.Request) { swap(r, "Signature-Input", ";created=1900000000", "") }, ErrTime},
		"of the future":   {func(r *http.Request) { swap(r, "Signature-Input", "created=1900000000", "created=1900000061") }, ErrTime},
		"old":             {func(r *http.Request) { swap(r, "Signature-Input", "created=1900000000", "created=1899999879") }, ErrTime},
		"expired":         {func(r *http.Request) { swap(r, "Signature-Input", "expires=1900000060", "expires=1899999939") }, ErrTime},
		"a negative date": {func(r *http.Request) { swap(r, "Signature-Input", "created=1900000000", "created=-1") }, ErrMalformed},
		"no whole date":   {func(r *http.Request) { swap(r, "Signature-Input", "created=1900000000", "created=1900000000.5") }, ErrMalformed},
	} {
		r, body := signed(t, params(), "hello")
		c.change(r)
		p := policy(t)
		p.Tag, p.Require = "test", Components("@method")
		known := p.Keys
		p.Keys = keysFunc(func(id string) (ed25519.PublicKey, error) {
			if id == "z" {
				return nil, nil
			}
			return known.PublicKey(id)
		})
		if _, err := Verify(r, body, p); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

func TestVerify_OnceOnly(t *testing.T) {
	seen := make(map[string]time.Time)
	p := policy(t)
	p.Nonces = noncesFunc(func(key, nonce string, until time.Time) bool {
		k := key + " " + nonce
		_, known := seen[k]
		seen[k] = until
		return !known
	})
	r, body := signed(t, params(), "hello")
	spoiled := r.Clone(t.Context())
	spoiled.Method = "PUT"
	if _, err := Verify(spoiled, body, p); !errors.Is(err, ErrSignature) || len(seen) != 0 {
		t.Fatal("a forged request used the nonce up:", err)
	}
	if _, err := Verify(r, body, p); err != nil {
		t.Fatal(err)
	}
	if _, err := Verify(r, body, p); !errors.Is(err, ErrReplayed) {
		t.Error("again:", err)
	}
	// It must be remembered for as long as the signature is taken.
	late := policy(t)
	late.Now = seen["k n-1"]
	if _, err := Verify(r, body, late); err != nil {
		t.Error("the nonce is remembered for longer than it must:", err)
	}
	if late.Now = late.Now.Add(time.Second); !errors.Is(second(Verify(r, body, late)), ErrTime) {
		t.Error("the nonce is forgotten too early")
	}
	n := params()
	n.Nonce = ""
	if r, body := signed(t, n, "hello"); !errors.Is(second(Verify(r, body, p)), ErrReplayed) {
		t.Error("no nonce is taken")
	}
}

func second(_ Params, err error) error { return err }

func TestVerify_BehindAProxy(t *testing.T) {
	r, err := http.NewRequest("GET", "https://Portal.Example:443/x", nil)
	if err != nil {
		t.Fatal(err)
	}
	p := params()
	p.Components = Components("@target-uri", "@authority", "@query")
	if err := Sign(r, "a", p, rfcKey(t)); err != nil {
		t.Fatal(err)
	}
	inside := httptest.NewRequest("GET", "/x", nil)
	inside.Host = "10.0.0.7:8080"
	inside.Header = r.Header
	v := policy(t)
	if _, err := Verify(inside, nil, v); !errors.Is(err, ErrSignature) {
		t.Error(err)
	}
	v.Target = Target{Scheme: "https", Authority: "portal.example"}
	if _, err := Verify(inside, nil, v); err != nil {
		t.Error(err)
	}
}

func TestSign_RefusesWhatCannotBeSigned(t *testing.T) {
	for name, c := range map[string]struct {
		label string
		p     Params
	}{
		"label":      {"Sig 1", Params{}},
		"field":      {"s", Params{Components: Components("content-digest")}},
		"derived":    {"s", Params{Components: Components("@status")}},
		"twice":      {"s", Params{Components: Components("@method", "@method")}},
		"line break": {"s", Params{KeyID: "a\nb"}},
		"member":     {"s", Params{Components: []Component{{"x", "a"}}}},
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("X", `b="c"`)
		if err := Sign(r, c.label, c.p, rfcKey(t)); err == nil {
			t.Errorf("%s is signed: %v", name, r.Header)
		}
	}
}

func TestCheckDigest(t *testing.T) {
	h := make(http.Header)
	if CheckDigest(h, nil) == nil {
		t.Error("none")
	}
	// RFC 9530, appendix D.
	h.Set("Content-Digest", "sha-512=:AAAA:, sha-256=:RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8FabDg=:")
	if err := CheckDigest(h, []byte("{\"hello\": \"world\"}\n")); err != nil {
		t.Error(err)
	}
	if CheckDigest(h, []byte("{\"hello\": \"world\"}")) == nil {
		t.Error("another body")
	}
}

func FuzzVerify(f *testing.F) {
	f.Add("sig-b26="+rfcInput, "sig-b26="+rfcSignature, `a="b", c=:AAAA:;d;e=?0, f=-7`)
	f.Add(`a=("x";key="a" "@method");created=1;tag="\"\\"`, "a=:AA==:", "x=*t/:a")
	f.Add("a=(", "a=:", ",")
	public := rfcKey(f).Public().(ed25519.PublicKey)
	f.Fuzz(func(t *testing.T, input, sig, field string) {
		r, body := rfcRequest(t)
		r.Header["Signature-Input"], r.Header["Signature"], r.Header["X"] = []string{input}, []string{sig}, []string{field}
		got, err := Verify(r, nil, Policy{Now: rfcCreated, Keys: oneKey(public)})
		if err == nil {
			// Nobody but the owner of the key makes one that holds: what holds
			// is the vector, in whatever form it is written.
			if fmt.Sprint(got.Components) != `["date" "@method" "@path" "@authority" "content-type" "content-length"]` {
				t.Fatal("forged", got)
			}
			// Signed again as it was read it holds again.
			if err := Sign(r, "again", got, rfcKey(t)); err != nil {
				t.Fatal(err)
			}
		}
		CheckDigest(r.Header, body)
	})
}

// keysFunc are Keys by a function.
type keysFunc func(id string) (ed25519.PublicKey, error)

func (f keysFunc) PublicKey(id string) (ed25519.PublicKey, error) { return f(id) }

// oneKey are Keys with the same key for all ids.
type oneKey ed25519.PublicKey

func (k oneKey) PublicKey(string) (ed25519.PublicKey, error) { return ed25519.PublicKey(k), nil }

// noncesFunc are Nonces by a function.
type noncesFunc func(keyID, nonce string, until time.Time) bool

func (f noncesFunc) UseNonce(keyID, nonce string, until time.Time) bool {
	return f(keyID, nonce, until)
}
