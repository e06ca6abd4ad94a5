// Package httpsig signs HTTP requests and checks their signatures: HTTP Message
// Signatures (RFC 9421) with Ed25519, and Content-Digest (RFC 9530) with
// SHA-256. It is the part of the two that portals use towards each other and
// towards the endpoints of agents, and it is strict: what it does not know it
// refuses. It knows no keys and no peers; a Policy says which key an id stands
// for and what a signature must cover.
package httpsig

import (
	"crypto/ed25519"
	"encoding/base64"
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
	base, err := in.base(r, Target{}, p.Components)
	if err != nil {
		return err
	}
	r.Header.Set("Signature-Input", string(in.append(append([]byte(label), '='))))
	r.Header.Set("Signature", label+"=:"+base64.StdEncoding.EncodeToString(ed25519.Sign(key, base))+":")
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
	s, err := Read(r.Header, p.Tag)
	if err != nil {
		return Params{}, err
	}
	if len(body) > 0 {
		p.Require = append(p.Require[:len(p.Require):len(p.Require)], digestComponent)
	}
	key, until, err := s.Check(p)
	if err == nil {
		err = s.Verify(r, p.Target, key)
	}
	if err == nil {
		err = s.VerifyBody(r.Header, body)
	}
	if err == nil && p.Fresh != nil && (s.Nonce == "" || !p.Fresh(s.KeyID, s.Nonce, until)) {
		err = ErrReplayed
	}
	return s.Params, err
}

// Signature is one of a received request, read and not verified.
type Signature struct {
	Params
	list innerList
	sig  []byte
}

// Read returns the signature of a request with a tag, "" for requests that
// have only one. The errors are ErrNone and ErrMalformed, wrapped.
func Read(h http.Header, tag string) (*Signature, error) {
	label, in, sig, err := pick(h, tag)
	if err != nil {
		return nil, err
	}
	p, err := in.parsed()
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrMalformed, label, err)
	}
	return &Signature{p, in, sig}, nil
}

// Check compares what the signature says of itself with a policy, whose Tag,
// Fresh and Target do not matter, and returns the key that it has to hold by and
// until when it can be sent again. It costs next to nothing. The errors are
// ErrCoverage, ErrTime and ErrKey, wrapped.
func (s *Signature) Check(p Policy) (key ed25519.PublicKey, until time.Time, err error) {
	for _, c := range p.Require {
		if !slices.Contains(s.Components, c) {
			return nil, until, fmt.Errorf("%w: %s is left out", ErrCoverage, c)
		}
	}
	if until, err = p.inTime(s.Params); err != nil {
		return nil, until, err
	}
	if s.KeyID == "" {
		return nil, until, fmt.Errorf("%w: it names none", ErrKey)
	}
	key, err = p.Key(s.KeyID)
	if err != nil || len(key) != ed25519.PublicKeySize {
		return nil, until, fmt.Errorf("%w: %.100q", ErrKey, s.KeyID)
	}
	return key, until, nil
}

// Verify verifies the signature of a request that was addressed to a target. It
// does not need the body, which VerifyBody is for. The errors are ErrCoverage
// and ErrSignature, wrapped.
func (s *Signature) Verify(r *http.Request, to Target, key ed25519.PublicKey) error {
	base, err := s.list.base(r, to, s.Components)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrCoverage, err)
	}
	if !ed25519.Verify(key, base, s.sig) {
		return ErrSignature
	}
	return nil
}

// digestComponent is what covers a body.
var digestComponent = Component{Name: "content-digest"}

// VerifyBody verifies the body of a request whose signature holds, by the
// digest that it covers. The errors are ErrCoverage and ErrSignature, wrapped.
func (s *Signature) VerifyBody(h http.Header, body []byte) error {
	switch {
	case slices.Contains(s.Components, digestComponent):
		if err := CheckDigest(h, body); err != nil {
			return fmt.Errorf("%w: %w", ErrSignature, err)
		}
	case len(body) > 0:
		return fmt.Errorf("%w: %s is left out", ErrCoverage, digestComponent)
	}
	return nil
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
	if len(h["Signature-Input"]) == 0 || len(h["Signature"]) == 0 {
		return "", in, nil, ErrNone
	}
	inputs, err := parseInputs(strings.Join(h["Signature-Input"], ", "))
	if err != nil {
		return "", in, nil, fmt.Errorf("%w: Signature-Input: %w", ErrMalformed, err)
	}
	sigs, err := parseDictionary(strings.Join(h["Signature"], ", "))
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
