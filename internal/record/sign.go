package record

import (
	"crypto/ed25519"
	"encoding/json"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
)

// Sign makes a record of body: the root key signs a *Card, an operational key
// everything else. The caller must have stored that the body's version is used
// before anybody sees the record: two records of one version are proof of a
// lie. It refuses what others would refuse, except for what depends on the
// time and on which keys they know. For a *Contact too.
func Sign(network string, body Body, key ed25519.PrivateKey) (*Record, error) {
	if !ValidNetwork(network) {
		return nil, fmt.Errorf("sign %s: %q is no name of a network", body.kind(), network)
	}
	if c, ok := body.(*Contact); ok {
		return c.sign(network, key)
	}
	payload, err := marshal(body)
	if err != nil {
		return nil, fmt.Errorf("sign %s: %w", body.kind(), err)
	}
	id := KeyIDOf(PublicOf(key))
	r, err := Open(network, seal(id, payload, ed25519.Sign(key, PAE(network, body.kind(), payload)), body.kind()))
	if err == nil {
		err = r.brief()
	}
	if err == nil && !r.consents(network) {
		err = refuse(BadSignature, "agent_sig is not the agent's; sign with Cosign last")
	}
	if err != nil {
		return nil, fmt.Errorf("sign %s: %w", body.kind(), err)
	}
	return r, nil
}

// marshal returns the canonical payload of a body. The fields are looked at
// first, because encoding/json mends invalid UTF-8 silently.
func marshal(body Body) ([]byte, error) {
	if err := valid(body); err != nil {
		return nil, err
	}
	b, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	v := jsontext.Value(b)
	err = v.Canonicalize() // as RFC 8785 says
	return v, err
}
