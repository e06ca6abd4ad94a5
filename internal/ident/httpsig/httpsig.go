// Package httpsig signs HTTP requests and checks their signatures: HTTP Message Signatures (RFC 9421)
// with Ed25519, and Content-Digest (RFC 9530) with SHA-256. It implements the part of the two that
// portals use towards each other and towards the endpoints of agents. It is strict: unknown features
// are refused. It does not know keys or peers; a Policy maps ids to keys and lists the components that
// a signature must cover.
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

	"github.com/dunglas/httpsfv"
)

// Errors of Verify, Read and Check by which callers choose their answer. They may be wrapped; use
// errors.Is.
var (
	// ErrNone: there is no signature, or none with the required tag.
	ErrNone = errors.New("the request is not signed")
	// ErrMalformed: the headers violate RFC 9421 or the limits of this package.
	ErrMalformed = errors.New("the signature cannot be read")
	// ErrCoverage: the signature does not cover a required component.
	ErrCoverage = errors.New("the signature does not cover enough")
	// ErrTime: the signature is too old, expired, or created in the future.
	ErrTime = errors.New("the signature is not valid now")
	// ErrKey: the signature names no key, or Policy.Keys does not know the key.
	ErrKey = errors.New("the signature is by an unknown key")
	// ErrSignature: the signature or the digest does not match the request.
	ErrSignature = errors.New("the signature does not fit the request")
	// ErrReplayed: the signature's nonce was used before.
	ErrReplayed = errors.New("the signature was used before")
)

// Component is a part of a request that a signature covers: a derived one such as @method (RFC 9421
// §2.2), or a header field by its name in lower case. Key, when set, is the one member of a dictionary
// field that is covered (§2.1.2).
type Component struct{ Name, Key string }

// Components returns components for names of header fields or derived components, without keys.
func Components(names ...string) []Component {
	out := make([]Component, len(names))
	for i, n := range names {
		out[i].Name = n
	}
	return out
}

// Params are the covered components and the parameters of a signature (RFC 9421 §2.3). Empty values are
// left out. Times have the precision of seconds.
type Params struct {
	Components       []Component
	Created, Expires time.Time
	KeyID            string
	Nonce            string
	Tag              string
}

// Target is the address to which a request was sent. A server behind a proxy cannot read it from the
// request. Empty parts are read from the request.
type Target struct {
	// Scheme is "http" or "https".
	Scheme string
	// Authority is the host, with the port unless it is the scheme's own.
	Authority string
}

// Sign signs a request that is about to be sent and replaces signatures that it has. All fields that the
// signature covers must be set before. label names the signature in the header fields.
func Sign(r *http.Request, label string, p Params, key ed25519.PrivateKey) error {
	in, err := p.list()
	if err != nil {
		return err
	}
	base, err := signatureBase(in, r, Target{}, p.Components)
	if err != nil {
		return err
	}
	inputs := httpsfv.NewDictionary()
	inputs.Add(label, in)
	field, err := httpsfv.Marshal(inputs)
	if err != nil {
		return fmt.Errorf("label %q: %w", label, err)
	}
	r.Header.Set("Signature-Input", field)
	r.Header.Set("Signature", label+"=:"+base64.StdEncoding.EncodeToString(ed25519.Sign(key, base))+":")
	return nil
}

// Policy holds the requirements that Verify and Check apply to a signature.
type Policy struct {
	Keys Keys
	// Require lists components that must all be covered. A request with a body must have its
	// content-digest covered as well.
	Require []Component
	// Tag selects the signature with that tag; "" requires that the request has only one signature.
	Tag string
	// Now is the time at which the signature must be valid; required.
	Now time.Time
	// Skew is the tolerated difference between clocks, MaxAge the maximum age of a signature regardless
	// of its expiry; both default to 60 s.
	Skew, MaxAge time.Duration
	// Nonces makes a nonce mandatory and rejects a used one; nil accepts signatures without a nonce.
	Nonces Nonces
	// Target is the address that the request must have been sent to.
	Target Target
}

// Keys finds the public key for the key id in a signature.
type Keys interface {
	// PublicKey returns the public key for an id. An error, or a nil key, makes the check fail with
	// ErrKey.
	PublicKey(id string) (ed25519.PublicKey, error)
}

// Nonces stores the nonces of valid signatures, so that a signature is accepted once.
type Nonces interface {
	// UseNonce reports whether a nonce was not yet used with the key, and stores it at least until the
	// given time.
	UseNonce(keyID, nonce string, until time.Time) bool
}

// Verify checks the signature of a received request whose whole body is given, and returns its
// parameters. The errors are those of this package, wrapped.
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
	if err == nil && p.Nonces != nil && (s.Nonce == "" || !p.Nonces.UseNonce(s.KeyID, s.Nonce, until)) {
		err = ErrReplayed
	}
	return s.Params, err
}

// Signature is the signature of a received request: parsed, but not verified.
type Signature struct {
	Params
	list httpsfv.InnerList
	sig  []byte
}

// Read returns the signature with the given tag; an empty tag requires that the request has only one
// signature. The errors are ErrNone and ErrMalformed, wrapped.
func Read(h http.Header, tag string) (*Signature, error) {
	label, in, sig, err := pickSignature(h, tag)
	if err != nil {
		return nil, err
	}
	p, err := parseParams(in)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrMalformed, label, err)
	}
	return &Signature{p, in, sig}, nil
}

// Check compares the parameters of the signature with a policy, except for Tag, Nonces and Target. It
// returns the key for Verify and the time until which a replay would be accepted. It computes no
// signature, so it can run before the body is read. The errors are ErrCoverage, ErrTime and ErrKey,
// wrapped.
func (s *Signature) Check(p Policy) (key ed25519.PublicKey, until time.Time, err error) {
	for _, c := range p.Require {
		if !slices.Contains(s.Components, c) {
			return nil, until, fmt.Errorf("%w: %s is left out", ErrCoverage, c)
		}
	}
	if until, err = p.checkTime(s.Params); err != nil {
		return nil, until, err
	}
	if s.KeyID == "" {
		return nil, until, fmt.Errorf("%w: it names none", ErrKey)
	}
	key, err = p.Keys.PublicKey(s.KeyID)
	if err != nil || len(key) != ed25519.PublicKeySize {
		return nil, until, fmt.Errorf("%w: %.100q", ErrKey, s.KeyID)
	}
	return key, until, nil
}

// Verify verifies the signature of a request that was sent to the target. The body is not needed;
// VerifyBody checks it. The errors are ErrCoverage and ErrSignature, wrapped.
func (s *Signature) Verify(r *http.Request, to Target, key ed25519.PublicKey) error {
	base, err := signatureBase(s.list, r, to, s.Components)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrCoverage, err)
	}
	if !ed25519.Verify(key, base, s.sig) {
		return ErrSignature
	}
	return nil
}

// digestComponent is the component that covers the body, through its digest.
var digestComponent = Component{Name: "content-digest"}

// VerifyBody checks the body of a request against the digest that the signature covers. The signature
// must be verified before. The errors are ErrCoverage and ErrSignature, wrapped.
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

// checkTime checks the times of a signature and returns the time until which a replay would be accepted.
func (p Policy) checkTime(s Params) (until time.Time, err error) {
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

// pickSignature returns the only signature with the required tag, or ErrNone or ErrMalformed, wrapped.
func pickSignature(h http.Header, tag string) (label string, in httpsfv.InnerList, sig []byte, err error) {
	if len(h["Signature-Input"]) == 0 || len(h["Signature"]) == 0 {
		return "", in, nil, ErrNone
	}
	inputs, err := parseDictionary(strings.Join(h["Signature-Input"], ", "))
	if err != nil {
		return "", in, nil, fmt.Errorf("%w: Signature-Input: %w", ErrMalformed, err)
	}
	sigs, err := parseDictionary(strings.Join(h["Signature"], ", "))
	if err != nil {
		return "", in, nil, fmt.Errorf("%w: Signature: %w", ErrMalformed, err)
	}
	found := 0
	for _, key := range inputs.Names() {
		m, _ := inputs.Get(key)
		list, ok := m.(httpsfv.InnerList)
		if !ok {
			return "", in, nil, fmt.Errorf("%w: Signature-Input: %s is no list in brackets", ErrMalformed, key)
		}
		if t, _ := list.Params.Get("tag"); tag == "" || t == tag {
			if found++; found == 1 {
				label, in = key, list
			}
		}
	}
	switch {
	case found == 0:
		return "", in, nil, ErrNone
	case found > 1:
		return "", in, nil, fmt.Errorf("%w: there are %d signatures that could be meant", ErrMalformed, found)
	}
	if _, ok := sigs.Get(label); !ok {
		return "", in, nil, fmt.Errorf("%w: Signature: %s is missing", ErrMalformed, label)
	}
	sig, _ = findBytes(sigs, label)
	if len(sig) != ed25519.SignatureSize {
		return "", in, nil, fmt.Errorf("%w: Signature: %s is none of Ed25519", ErrMalformed, label)
	}
	return label, in, sig, nil
}
