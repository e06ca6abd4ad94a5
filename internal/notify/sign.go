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

// secretPrefix is how secrets of Standard Webhooks begin; base64 of the key
// follows.
const secretPrefix = "whsec_"

// newSecret returns a key of 256 bits.
func newSecret() string {
	var b [32]byte
	rand.Read(b[:])
	return secretPrefix + base64.StdEncoding.EncodeToString(b[:])
}

// sign is the signature of a body that is sent at a time, as Standard Webhooks
// has it: the HMAC-SHA256 of id, time and body.
func sign(secret, id string, at time.Time, body []byte) (string, error) {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, secretPrefix))
	if err != nil || len(key) == 0 {
		return "", fmt.Errorf("sign a webhook: its secret is damaged")
	}
	h := hmac.New(sha256.New, key)
	h.Write([]byte(id + "." + strconv.FormatInt(at.Unix(), 10) + "."))
	h.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(h.Sum(nil)), nil
}
