package record

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
)

// Sign makes a record of body: the root key signs a *Card, an operational key everything else. The
// caller must have stored the version of body before any other portal sees the record, because two
// records of one version prove a fork. Sign refuses everything that other portals would refuse,
// except for checks that depend on the time and on their keys. It signs a *Contact, too. The body
// belongs to the record afterwards; callers must not change it.
func Sign(network string, body Body, key ed25519.PrivateKey) (*Record, error) {
	if !ValidNetwork(network) {
		return nil, fmt.Errorf("sign %s: %q is not the name of a network", body.recordType(), network)
	}
	if c, ok := body.(*Contact); ok {
		return c.signContact(network, key)
	}
	r, err := draftRecord(network, body)
	if err == nil {
		err = r.checkLife()
	}
	if err == nil && !r.hasConsent(network) {
		err = refuse(BadSignature, "agent_sig is not the agent's; sign with Cosign last")
	}
	if err != nil {
		return nil, fmt.Errorf("sign %s: %w", body.recordType(), err)
	}
	r.Key, r.sig = KeyIDOf(PublicOf(key)), [64]byte(ed25519.Sign(key, r.signed))
	r.Wire = sealEnvelope(r.Key, r.payload, r.sig[:], r.Type)
	return r, nil
}

// draftRecord returns the unsigned record of a body, after the checks that Open does.
func draftRecord(network string, body Body) (*Record, error) {
	payload, err := encodeBody(body)
	if err != nil {
		return nil, err
	}
	r := &Record{Type: body.recordType(), Header: *body.asHeader(), Body: body}
	if rule, _ := ruleOf(r.Type); len(payload) > rule.max {
		return nil, refuse(TooLarge, "its payload has %d bytes, %s has at most %d", len(payload), r.Type, rule.max)
	}
	if err := Canonical(payload); err != nil {
		return nil, err
	}
	r.signed = PAE(network, r.Type, payload)
	r.payload = r.signed[len(r.signed)-len(payload):]
	r.Hash = sha256.Sum256(r.signed)
	return r, nil
}

// encodeBody returns the canonical payload of a body. It checks the fields first, because
// encoding/json silently replaces invalid UTF-8.
func encodeBody(body Body) ([]byte, error) {
	if err := checkBody(body); err != nil {
		return nil, err
	}
	b, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	v := jsontext.Value(b)
	err = v.Canonicalize() // RFC 8785 (JSON Canonicalization Scheme)
	return v, err
}
