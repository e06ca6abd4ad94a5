// Package httpsig signs HTTP requests and checks their signatures: HTTP Message
// Signatures (RFC 9421) with Ed25519, and Content-Digest (RFC 9530) with
// SHA-256. It is the part of the two that portals use towards each other and
// towards the endpoints of agents, and it is strict: what it does not know it
// refuses. It knows no keys and no peers; a Policy says which key an id stands
// for and what a signature must cover.
package httpsig

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Errors of Verify that callers branch on.
var (
	// ErrNone: there is no signature, or none with the tag that is asked for.
	ErrNone = errors.New("the request is not signed")
	// ErrMalformed: the headers are not what RFC 9421 and this package allow.
	ErrMalformed = errors.New("the signature cannot be read")
	// ErrCoverage: the signature leaves out what it must cover.
	ErrCoverage = errors.New("the signature does not cover enough")
	// ErrTime: it is too old, expired or of the future.
	ErrTime = errors.New("the signature is not valid now")
	// ErrKey: nobody knows the key.
	ErrKey = errors.New("the signature is by an unknown key")
	// ErrSignature: it does not fit the request.
	ErrSignature = errors.New("the signature does not fit the request")
	// ErrReplayed: its nonce was seen before.
	ErrReplayed = errors.New("the signature was used before")
)

// Component is a part of a request that a signature covers: a derived one such
// as @method (RFC 9421 §2.2), or a header field by its name in lower case. Key,
// when set, is the one member of a dictionary field that is covered (§2.1.2).
type Component struct{ Name, Key string }

// Components is the list of components without keys.
func Components(names ...string) []Component {
	out := make([]Component, len(names))
	for i, n := range names {
		out[i].Name = n
	}
	return out
}

// Params are what a signature covers and says of itself (RFC 9421 §2.3). Empty
// values are left out; times count in whole seconds.
type Params struct {
	Components       []Component
	Created, Expires time.Time
	KeyID            string
	Nonce            string
	Tag              string
}

// Target is where a request is addressed to, for those who do not read it off
// the request: servers behind a proxy. Empty parts are read off the request.
type Target struct {
	// Scheme is http or https.
	Scheme string
	// Authority is the host, with the port unless it is the scheme's own.
	Authority string
}

// Sign signs a request that is about to be sent, replacing what signatures it
// has. The fields that the signature covers must be there; label names it among
// others.
func Sign(r *http.Request, label string, p Params, key ed25519.PrivateKey) error {
	if !validKey(label) {
		return fmt.Errorf("label %q is no key of a dictionary", label)
	}
	in, err := p.list()
	if err != nil {
		return err
	}
	base, err := in.base(r, Target{})
	if err != nil {
		return err
	}
	sig := ed25519.Sign(key, base)
	r.Header.Set("Signature-Input", label+"="+in.String())
	r.Header.Set("Signature", label+"="+bareItem{kind: bytesItem, text: string(sig)}.String())
	return nil
}

// Policy is what a signature must be like to count.
type Policy struct {
	// Key returns the public key that an id stands for; an error, or none, is
	// ErrKey.
	Key func(id string) (ed25519.PublicKey, error)
	// Require must all be covered. A request with a body must have its
	// content-digest covered as well.
	Require []Component
	// Tag picks the signature that is meant; "" is for requests that have
	// only one.
	Tag string
	// Now is the time; required.
	Now time.Time
	// Skew is how far clocks may be apart, MaxAge how old a signature may be
	// whatever it says; both default to 60 s.
	Skew, MaxAge time.Duration
	// Fresh, when set, reports whether a nonce of a key is seen for the first
	// time, and remembers it until that time. It is called only for signatures
	// that hold, and makes a nonce necessary.
	Fresh func(keyID, nonce string, until time.Time) bool
	// Target is what the request was addressed to.
	Target Target
}

// Verify checks the signature of a received request whose body is body, and
// returns what it says. The errors are those above, wrapped.
func Verify(r *http.Request, body []byte, p Policy) (Params, error) {
	label, in, sig, err := pick(r.Header, p.Tag)
	if err != nil {
		return Params{}, err
	}
	out, err := in.parsed()
	if err != nil {
		return Params{}, fmt.Errorf("%w: %s: %w", ErrMalformed, label, err)
	}
	need := p.Require
	if len(body) > 0 {
		need = append(slices.Clone(need), Component{Name: "content-digest"})
	}
	for _, c := range need {
		if !slices.Contains(out.Components, c) {
			return out, fmt.Errorf("%w: %s is left out", ErrCoverage, c)
		}
	}
	until, err := p.inTime(out)
	if err != nil {
		return out, err
	}
	if out.KeyID == "" {
		return out, fmt.Errorf("%w: it names none", ErrKey)
	}
	key, err := p.Key(out.KeyID)
	if err != nil || len(key) != ed25519.PublicKeySize {
		return out, fmt.Errorf("%w: %.100q", ErrKey, out.KeyID)
	}
	base, err := in.base(r, p.Target)
	if err != nil {
		return out, fmt.Errorf("%w: %w", ErrCoverage, err)
	}
	if !ed25519.Verify(key, base, sig) {
		return out, ErrSignature
	}
	if slices.Contains(out.Components, Component{Name: "content-digest"}) {
		if err := CheckDigest(r.Header, body); err != nil {
			return out, fmt.Errorf("%w: %w", ErrSignature, err)
		}
	}
	if p.Fresh != nil && (out.Nonce == "" || !p.Fresh(out.KeyID, out.Nonce, until)) {
		return out, ErrReplayed
	}
	return out, nil
}

// inTime checks when a signature was made, and returns until when it can be
// sent again.
func (p Policy) inTime(s Params) (until time.Time, err error) {
	skew, age := p.Skew, p.MaxAge
	if skew <= 0 {
		skew = time.Minute
	}
	if age <= 0 {
		age = time.Minute
	}
	switch {
	case s.Created.IsZero():
		return until, fmt.Errorf("%w: it does not say when it was created", ErrTime)
	case s.Created.After(p.Now.Add(skew)):
		return until, fmt.Errorf("%w: it is of the future; is a clock wrong?", ErrTime)
	}
	until = s.Created.Add(age)
	if !s.Expires.IsZero() && s.Expires.Before(until) {
		until = s.Expires
	}
	if until = until.Add(skew); p.Now.After(until) {
		return until, fmt.Errorf("%w: it has expired; is a clock wrong?", ErrTime)
	}
	return until, nil
}

// pick finds the signature that is meant.
func pick(h http.Header, tag string) (label string, in innerList, sig []byte, err error) {
	if len(h.Values("Signature-Input")) == 0 || len(h.Values("Signature")) == 0 {
		return "", in, nil, ErrNone
	}
	inputs, err := parseInputs(strings.Join(h.Values("Signature-Input"), ", "))
	if err != nil {
		return "", in, nil, fmt.Errorf("%w: Signature-Input: %w", ErrMalformed, err)
	}
	sigs, err := parseDictionary(strings.Join(h.Values("Signature"), ", "))
	if err != nil {
		return "", in, nil, fmt.Errorf("%w: Signature: %w", ErrMalformed, err)
	}
	found := 0
	for _, m := range inputs {
		if t, _ := m.list.param("tag"); tag == "" || t.kind == stringItem && t.text == tag {
			if found++; found == 1 {
				label, in = m.key, m.list
			}
		}
	}
	switch {
	case found == 0:
		return "", in, nil, ErrNone
	case found > 1:
		return "", in, nil, fmt.Errorf("%w: there are %d signatures that could be meant", ErrMalformed, found)
	}
	for _, m := range sigs {
		if m.key == label {
			if m.item.kind != bytesItem || len(m.item.text) != ed25519.SignatureSize {
				return "", in, nil, fmt.Errorf("%w: Signature: %s is none of Ed25519", ErrMalformed, label)
			}
			return label, in, []byte(m.item.text), nil
		}
	}
	return "", in, nil, fmt.Errorf("%w: Signature: %s is missing", ErrMalformed, label)
}

// KeyID returns the id of the key that a request says it is signed with, by the
// signature with that tag. Nothing of it has been verified.
func KeyID(h http.Header, tag string) (string, error) {
	_, in, _, err := pick(h, tag)
	if err != nil {
		return "", err
	}
	id, ok := in.param("keyid")
	if !ok || id.kind != stringItem || id.text == "" {
		return "", fmt.Errorf("%w: it names no key", ErrMalformed)
	}
	return id.text, nil
}
