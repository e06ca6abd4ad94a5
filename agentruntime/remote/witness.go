package remote

import (
	"bytes"
	"context"
	"crypto/rsa"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/go-jose/go-jose/v4"
	"github.com/gowebpki/jcs"

	"agentsite/internal/a2a"
	"agentsite/internal/egress"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
)

// Bounds of the data that a proof is read from, because it comes from any server.
const (
	maxProofFile  = 64 << 10
	maxSignedCard = 256 << 10
	maxKeySet     = 64 << 10
	maxSignatures = 8
	maxRSABits    = 8192
)

// cardAlgorithms are the accepted signature algorithms of a card.
var cardAlgorithms = []jose.SignatureAlgorithm{jose.ES256, jose.ES384, jose.EdDSA, jose.PS256, jose.PS384, jose.RS256}

// Witness implements hub.Witness: it searches an origin for the proof that an account may list the
// agent there.
type Witness struct{ rt http.RoundTripper }

// NewWitness returns a Witness over rt, which must bound time and restrict addresses, and must not
// follow redirects.
func NewWitness(rt http.RoundTripper) *Witness { return &Witness{rt} }

// HasToken implements hub.Witness: the token must be alone on a line of the file at hub.ProofPath.
func (w *Witness) HasToken(ctx context.Context, origin, token string) error {
	b, err := w.readFile(ctx, origin+hub.ProofPath, maxProofFile)
	if err != nil {
		return err
	}
	for line := range bytes.Lines(b) {
		if string(bytes.TrimSpace(line)) == token {
			return nil
		}
	}
	return fault.New(fault.Invalid, "%s is there, but does not hold your token on a line of its own.", origin+
		hub.ProofPath)
}

// readFile reads a file of at most most bytes. A redirect is an error, because it could lead away from
// the origin. Its errors are Invalid faults with a sentence for the owner.
func (w *Witness) readFile(ctx context.Context, address string, most int64) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "%s is no address.", address)
	}
	req.Header.Set("Accept", "application/json, text/plain, */*;q=0.5")
	resp, err := w.rt.RoundTrip(req)
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "%s could not be read: %s.", address, egress.Reason(err))
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fault.New(fault.Invalid, "%s answered with HTTP %d instead of 200.", address, resp.StatusCode)
	}
	b, err := io.ReadAll(io.LimitReader(resp.Body, most+1))
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "%s could not be read to its end: %s.", address, egress.Reason(err))
	}
	if int64(len(b)) > most {
		return nil, fault.New(fault.Invalid, "%s is larger than %d KiB.", address, most>>10)
	}
	return b, nil
}

// SignedCard implements hub.Witness: the card must be signed as in A2A 1.0 (§8.4), by a key that the
// endpoint's own origin serves at a well-known path, and name the endpoint. Card and keys count only at
// such paths, because other paths of an origin may belong to its users.
func (w *Witness) SignedCard(ctx context.Context, t hub.Target) (hub.Described, error) {
	none := hub.Described{}
	end, err := url.Parse(t.Endpoint)
	if err != nil || end.Host == "" {
		return none, fault.New(fault.Invalid, "The agent has no address.")
	}
	origin := end.Scheme + "://" + end.Host
	var conf hub.A2AConfig
	if json.Unmarshal(t.Config, &conf) != nil || conf.CardURL == "" {
		conf.CardURL = origin + "/.well-known/agent-card.json"
	}
	if !wellKnown(conf.CardURL, origin, end.Path) {
		return none, fault.New(fault.Invalid,
			"The card counts only at a well-known path of the same site, such as %s/.well-known/agent-card.json.",
			origin)
	}
	raw, err := w.readFile(ctx, conf.CardURL, maxSignedCard)
	if err != nil {
		return none, err
	}
	said, err := a2a.ParseCard(raw, conf.CardURL)
	if err != nil {
		return none, err
	}
	var card map[string]any
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if err := dec.Decode(&card); err != nil {
		return none, fault.Wrap(fault.Invalid, err, "The card is not JSON.")
	}
	var named struct {
		URL        string `json:"url"`
		Interfaces []struct {
			URL string `json:"url"`
		} `json:"supportedInterfaces"`
		Signatures []struct {
			Protected string `json:"protected"`
			Signature string `json:"signature"`
		} `json:"signatures"`
	}
	if err := json.Unmarshal(raw, &named); err != nil {
		return none, fault.Wrap(fault.Invalid, err, "The card is not valid in A2A.")
	}
	same := func(u string) bool { return strings.TrimRight(u, "/") == strings.TrimRight(t.Endpoint, "/") }
	found := same(named.URL)
	for _, i := range named.Interfaces {
		found = found || same(i.URL)
	}
	if !found {
		return none, fault.New(fault.Invalid, "The card does not name %s.", t.Endpoint)
	}
	if len(named.Signatures) == 0 {
		return none, fault.New(fault.Invalid, "The card is not signed.")
	}
	delete(card, "signatures")
	payloads, err := canonicalForms(card)
	if err != nil {
		return none, fault.Wrap(fault.Invalid, err, "The card cannot be brought into canonical form.")
	}
	var last error
	for _, s := range named.Signatures[:min(len(named.Signatures), maxSignatures)] {
		if last = w.checkSignature(ctx, origin, s.Protected, s.Signature, payloads); last == nil {
			return said, nil
		}
	}
	return none, last
}

// wellKnown reports whether a card's address is a well-known path of the origin, at its root or above
// the endpoint.
func wellKnown(card, origin, endpoint string) bool {
	u, err := url.Parse(card)
	if err != nil || !sameOrigin(card, origin) || u.RawQuery != "" {
		return false
	}
	dir, name, ok := strings.Cut(u.Path, "/.well-known/")
	return ok && !strings.Contains(name, "/") && (dir == "" || endpoint == dir || strings.HasPrefix(endpoint, dir+"/"))
}

// checkSignature checks one signature of a card against the payloads that it may cover. nil means that a
// key of the origin made it.
func (w *Witness) checkSignature(ctx context.Context, origin, protected, signature string, payloads [][]byte) error {
	for _, payload := range payloads {
		jws, err := jose.ParseDetached(protected+".."+signature, payload, cardAlgorithms)
		if err != nil {
			return fault.Wrap(fault.Invalid, err, "The card's signature cannot be read.")
		}
		head := jws.Signatures[0].Protected
		at := origin + "/.well-known/jwks.json"
		if jku, ok := head.ExtraHeaders[jose.HeaderKey("jku")].(string); ok {
			at = jku
		}
		if !wellKnown(at, origin, "") {
			return fault.New(fault.Invalid, "The card is signed by a key that is not at a well-known path of "+
				"its own site, but at %.200s.", at)
		}
		b, err := w.readFile(ctx, at, maxKeySet)
		if err != nil {
			return err
		}
		var set jose.JSONWebKeySet
		if err := json.Unmarshal(b, &set); err != nil {
			return fault.Wrap(fault.Invalid, err, "The key set at %s cannot be read.", at)
		}
		keys := set.Keys
		if head.KeyID != "" {
			keys = set.Key(head.KeyID)
		}
		for _, k := range keys[:min(len(keys), maxSignatures)] {
			if !k.Valid() || !k.IsPublic() || k.Use != "" && k.Use != "sig" {
				continue
			}
			// A key of hundreds of thousands of bits takes a minute to check.
			if pub, ok := k.Key.(*rsa.PublicKey); ok && pub.N.BitLen() > maxRSABits {
				continue
			}
			if _, err := jws.Verify(k); err == nil {
				return nil
			}
		}
	}
	return fault.New(fault.Invalid, "No key of %s made the card's signature.", origin)
}

// canonicalForms returns the texts that a card's signature may cover: the card as it is served, and the
// card without fields of default value, which signers leave out.
func canonicalForms(card map[string]any) ([][]byte, error) {
	var out [][]byte
	for _, v := range []any{card, pruneDefaults(card)} {
		b, err := json.Marshal(v)
		if err != nil {
			return nil, err
		}
		if b, err = jcs.Transform(b); err != nil {
			return nil, fmt.Errorf("canonicalize: %w", err)
		}
		if !slices.ContainsFunc(out, func(o []byte) bool { return bytes.Equal(o, b) }) {
			out = append(out, b)
		}
	}
	return out, nil
}

// pruneDefaults returns a copy without members that have the default value of their type (A2A 1.0
// §8.4).
func pruneDefaults(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			if e = pruneDefaults(e); !isDefault(e) {
				out[k] = e
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = pruneDefaults(e)
		}
		return out
	}
	return v
}

func isDefault(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case bool:
		return !v
	case string:
		return v == ""
	case json.Number:
		return v == "0"
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	}
	return false
}

func sameOrigin(address, origin string) bool {
	u, err := url.Parse(address)
	return err == nil && u.User == nil && strings.EqualFold(u.Scheme+"://"+u.Host, origin)
}
