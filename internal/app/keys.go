package app

import (
	"crypto/ed25519"
	"errors"

	"agentsite/internal/clock"
	"agentsite/internal/ident/httpsig"
)

// signingKey returns the key that signs requests to agents now.
func (p *Portal) signingKey() (ed25519.PrivateKey, error) {
	k, ok := p.operational.Signing(clock.Now(), nil)
	if !ok {
		return nil, errors.New("no operational key is good now; is the clock wrong?")
	}
	return k.Key, nil
}

// signingKeys returns the public keys of the portal's signed requests.
func (p *Portal) signingKeys() []httpsig.JWK {
	var keys []httpsig.JWK
	for _, k := range p.operational.Current(clock.Now()) {
		keys = append(keys, httpsig.KeyOf(k.Public()))
	}
	return keys
}
