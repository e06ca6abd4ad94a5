// Package pushtest is the browser's end of Web Push for tests: it makes the keys of a subscription and decrypts the
// messages for it as RFC 8291 says, with the standard library alone.
package pushtest

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"testing"
)

// Browser has the keys of one subscription.
type Browser struct {
	key  *ecdh.PrivateKey
	auth []byte
}

// New makes keys.
func New(t testing.TB) *Browser {
	t.Helper()
	key, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	b := &Browser{key: key, auth: make([]byte, 16)}
	rand.Read(b.auth)
	return b
}

// P256dh returns the public key in base64url.
func (b *Browser) P256dh() string {
	return base64.RawURLEncoding.EncodeToString(b.key.PublicKey().Bytes())
}

// Auth returns the secret in base64url.
func (b *Browser) Auth() string { return base64.RawURLEncoding.EncodeToString(b.auth) }

// Open decrypts the body of a request to the push service.
func (b *Browser) Open(body []byte) ([]byte, error) {
	if len(body) < 86 || body[20] != 65 || binary.BigEndian.Uint32(body[16:20]) != 4096 {
		return nil, errors.New("the header is not that of one record")
	}
	salt, sender, sealed := body[:16], body[21:86], body[86:]
	from, err := ecdh.P256().NewPublicKey(sender)
	if err != nil {
		return nil, err
	}
	shared, err := b.key.ECDH(from)
	if err != nil {
		return nil, err
	}
	info := "WebPush: info\x00" + string(b.key.PublicKey().Bytes()) + string(sender)
	ikm, err := hkdf.Key(sha256.New, shared, b.auth, info, 32)
	if err != nil {
		return nil, err
	}
	key, err := hkdf.Key(sha256.New, ikm, salt, "Content-Encoding: aes128gcm\x00", 16)
	if err != nil {
		return nil, err
	}
	nonce, err := hkdf.Key(sha256.New, ikm, salt, "Content-Encoding: nonce\x00", 12)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	plain, err := aead.Open(nil, nonce, sealed, nil)
	if err != nil {
		return nil, err
	}
	text, ok := bytes.CutSuffix(bytes.TrimRight(plain, "\x00"), []byte{2})
	if !ok {
		return nil, errors.New("the record is not the last")
	}
	return text, nil
}
