package record

import (
	"crypto/ed25519"
	"encoding/json"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
)

// Sign makes a record of body: the root key signs a *Card, an operational key everything else. The
// caller must have stored the version of body before any other portal sees the record, because two
// records of one version prove a fork. Sign refuses everything that other portals would refuse,
// except for checks that depend on the time and on their keys. It signs a *Contact, too.
func Sign(network string, body Body, key ed25519.PrivateKey) (*Record, error) {
	if !ValidNetwork(network) {
		return nil, fmt.Errorf("sign %s: %q is not the name of a network", body.recordType(), network)
	}
	if c, ok := body.(*Contact); ok {
		return c.signContact(network, key)
	}
	payload, err := encodeBody(body)
	if err != nil {
		return nil, fmt.Errorf("sign %s: %w", body.recordType(), err)
	}
	id := KeyIDOf(PublicOf(key))
	r, err := Open(network, sealEnvelope(id, payload, ed25519.Sign(key, PAE(network, body.recordType(), payload)),
		body.recordType()))
	if err == nil {
		err = r.checkLife()
	}
	if err == nil && !r.hasConsent(network) {
		err = refuse(BadSignature, "agent_sig is not the agent's; sign with Cosign last")
	}
	if err != nil {
		return nil, fmt.Errorf("sign %s: %w", body.recordType(), err)
	}
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
	err = v.Canonicalize() // RFC 8785
	return v, err
}
