package a2a

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"encoding/asn1"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"

	"github.com/go-jose/go-jose/v4"
	"github.com/gowebpki/jcs"
)

// CardSignature is a detached JWS of a card (§8.4).
type CardSignature struct {
	Protected string `json:"protected"`
	Signature string `json:"signature"`
}

// Signer signs the cards of a portal with ES256. It is safe for concurrent
// use. Create it with NewSigner.
type Signer struct {
	key       *ecdsa.PrivateKey
	protected string
	keys      []jose.JSONWebKey
}

// NewSigner returns a signer whose key is derived from secret, which must hold 32 bytes of entropy or
// more. The same secret gives the same key, so that nothing needs to be stored. jku is the URL at which
// the portal serves Keys.
func NewSigner(secret []byte, jku string) (*Signer, error) {
	s := &Signer{}
	for i := byte(0); s.key == nil; i++ { // all but one in 2³² digests are a valid key; else try the next one
		d := sha256.Sum256(append([]byte{i}, secret...))
		key, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), d[:])
		if err != nil && i == 255 {
			return nil, fmt.Errorf("derive the key of cards: %w", err)
		}
		s.key = key
	}
	public := jose.JSONWebKey{Key: &s.key.PublicKey, Algorithm: string(jose.ES256), Use: "sig"}
	print, err := public.Thumbprint(crypto.SHA256)
	if err != nil {
		return nil, fmt.Errorf("name the key of cards: %w", err)
	}
	public.KeyID = base64.RawURLEncoding.EncodeToString(print)
	s.keys = []jose.JSONWebKey{public}
	head, err := json.Marshal(map[string]string{"alg": string(jose.ES256), "typ": "JOSE", "kid": public.KeyID,
		"jku": jku})
	s.protected = base64.RawURLEncoding.EncodeToString(head)
	return s, err
}

// Keys returns the public keys as JSON Web Keys, for the document at jku.
func (s *Signer) Keys() []any {
	var out []any
	for _, k := range s.keys {
		out = append(out, k)
	}
	return out
}

// Sign returns the card with its signatures. There are two, and a verifier accepts either: one covers
// the card as it is written, and one the card that remains for a reader of 1.0 that drops the fields of
// 0.3.
func (s *Signer) Sign(c AgentCard) (AgentCard, error) {
	c.Signatures = nil
	b, err := json.Marshal(c)
	if err != nil {
		return c, err
	}
	var plain map[string]any
	if err := json.Unmarshal(b, &plain); err != nil {
		return c, err
	}
	stripFields03(plain)
	p, err := json.Marshal(plain)
	if err != nil {
		return c, err
	}
	for _, form := range [][]byte{p, b} {
		one, err := s.signDetached(form)
		if err != nil {
			return c, err
		}
		c.Signatures = append(c.Signatures, one)
	}
	return c, nil
}

// SignDetached returns the signature of a JSON text as a detached JWS in compact form (RFC 7515,
// appendix F), over the text's canonical form.
func (s *Signer) SignDetached(text []byte) (string, error) {
	one, err := s.signDetached(text)
	return one.Protected + ".." + one.Signature, err
}

// signDetached signs the canonical form (RFC 8785) of a JSON text. The signature is deterministic (RFC
// 6979), so that a card that did not change has the same bytes.
func (s *Signer) signDetached(b []byte) (CardSignature, error) {
	payload, err := jcs.Transform(b)
	if err != nil {
		return CardSignature{}, fmt.Errorf("canonicalize a card: %w", err)
	}
	digest := sha256.Sum256([]byte(s.protected + "." + base64.RawURLEncoding.EncodeToString(payload)))
	der, err := s.key.Sign(nil, digest[:], crypto.SHA256)
	if err != nil {
		return CardSignature{}, fmt.Errorf("sign a card: %w", err)
	}
	var sig struct{ R, S *big.Int }
	if _, err := asn1.Unmarshal(der, &sig); err != nil {
		return CardSignature{}, fmt.Errorf("sign a card: %w", err)
	}
	raw := make([]byte, 64)
	sig.R.FillBytes(raw[:32])
	sig.S.FillBytes(raw[32:])
	return CardSignature{s.protected, base64.RawURLEncoding.EncodeToString(raw)}, nil
}

// stripFields03 removes the fields that are only in 0.3, and the values that the protobuf of 1.0 treats
// as absent (§8.4.1).
func stripFields03(card map[string]any) {
	for _, name := range []string{"url", "preferredTransport", "protocolVersion", "security",
		"supportsAuthenticatedExtendedCard"} {
		delete(card, name)
	}
	schemes, _ := card["securitySchemes"].(map[string]any)
	for _, s := range schemes {
		if s, ok := s.(map[string]any); ok {
			delete(s, "type")
			delete(s, "description")
			delete(s, "scheme")
		}
	}
	needs, _ := card["securityRequirements"].([]any)
	for _, n := range needs {
		n, _ := n.(map[string]any)
		schemes, _ := n["schemes"].(map[string]any)
		for _, list := range schemes {
			if list, ok := list.(map[string]any); ok {
				delete(list, "list")
			}
		}
	}
	able, _ := card["capabilities"].(map[string]any)
	more, _ := able["extensions"].([]any)
	for _, e := range more {
		if e, ok := e.(map[string]any); ok && e["required"] == false {
			delete(e, "required")
		}
	}
}
