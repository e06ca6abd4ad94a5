package httpsig

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"net/http"
	"strings"
)

// DigestOf returns the value for a Content-Digest header (RFC 9530 §2), given the SHA-256 of the body.
func DigestOf(sum [sha256.Size]byte) string {
	return "sha-256=:" + base64.StdEncoding.EncodeToString(sum[:]) + ":"
}

// CheckDigest returns an error unless Content-Digest has the SHA-256 of body. Digests by other
// algorithms are ignored.
func CheckDigest(h http.Header, body []byte) error {
	list, err := parseDictionary(strings.Join(h.Values("Content-Digest"), ", "))
	if err != nil {
		return err
	}
	want, ok := findBytes(list, "sha-256")
	if !ok {
		return errors.New("the Content-Digest has no sha-256")
	}
	sum := sha256.Sum256(body)
	if subtle.ConstantTimeCompare(sum[:], want) != 1 {
		return errors.New("the body is not the one whose digest was signed")
	}
	return nil
}
