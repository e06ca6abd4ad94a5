package httpsig

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"errors"
)

// JWK is an Ed25519 public key as a JSON Web Key (RFC 8037 §2), as published in key directories.
type JWK struct {
	Kty string `json:"kty"`
	Crv string `json:"crv"`
	X   string `json:"x"`
	Kid string `json:"kid,omitempty"`
	Use string `json:"use,omitempty"`
}

// KeyOf returns a public key as a JWK. Its id is its thumbprint (RFC 7638), so that no other key can
// have the same id. The alg member is left out, because JOSE and key directories use different names for
// the algorithm.
func KeyOf(public ed25519.PublicKey) JWK {
	k := JWK{Kty: "OKP", Crv: "Ed25519", X: base64.RawURLEncoding.EncodeToString(public), Use: "sig"}
	k.Kid = k.thumbprint()
	return k
}

func (k JWK) thumbprint() string {
	sum := sha256.Sum256([]byte(`{"crv":"Ed25519","kty":"OKP","x":"` + k.X + `"}`))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// Public returns the key. It fails unless the key is of type Ed25519 and its id, if set, is its
// thumbprint.
func (k JWK) Public() (ed25519.PublicKey, error) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(k.X)
	switch {
	case k.Kty != "OKP" || k.Crv != "Ed25519":
		return nil, errors.New("this is no key of Ed25519")
	case err != nil || len(b) != ed25519.PublicKeySize:
		return nil, errors.New("the key is damaged")
	case k.Kid != "" && k.Kid != k.thumbprint():
		return nil, errors.New("the key's id is not its thumbprint")
	}
	return b, nil
}
