package notify

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// secretPrefix begins each signing key in the notation of Standard Webhooks. The key follows in
// base64.
const secretPrefix = "whsec_"

// newSecret returns a random signing key of 256 bits, in the notation of Standard Webhooks.
func newSecret() string {
	var b [32]byte
	rand.Read(b[:])
	return secretPrefix + base64.StdEncoding.EncodeToString(b[:])
}

// signBody returns the signature of a body that is sent at a time, as in Standard Webhooks: the
// HMAC-SHA256 of id, time and body.
func signBody(secret, id string, at time.Time, body []byte) (string, error) {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, secretPrefix))
	if err != nil || len(key) == 0 {
		return "", fmt.Errorf("sign a webhook: its secret is damaged")
	}
	h := hmac.New(sha256.New, key)
	h.Write([]byte(id + "." + strconv.FormatInt(at.Unix(), 10) + "."))
	h.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(h.Sum(nil)), nil
}
