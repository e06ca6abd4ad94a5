package endpoint

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/ident"
)

// stateAge is how long a client has to repeat a call with the user's answer.
const stateAge = 24 * time.Hour

// maxState bounds a sealed state in bytes, because clients send it back with each repeated call.
const maxState = 16 << 10

// signData returns a MAC over data, which only this endpoint can make. purpose separates uses of the key.
func (e *Endpoint) signData(purpose string, data []byte) []byte {
	h := hmac.New(sha256.New, e.cfg.Key)
	fmt.Fprintf(h, "%d:%s", len(purpose), purpose)
	h.Write(data)
	return h.Sum(nil)[:16]
}

// callerKey returns a key that identifies a caller: kind and id of an account, or the address of a guest.
func callerKey(a ident.Actor) string {
	if a.ID != "" {
		return string(a.Kind) + " " + a.ID
	}
	return "addr " + a.Addr
}

func (c *Call) sealPurpose() string {
	return "state/" + c.HTTP.URL.Path + "/" + c.Method + "/" + c.Name + "/" + callerKey(c.Actor)
}

// Seal returns data as a State with a MAC. Unseal accepts it only from the same caller, for the same tool
// of the same server, within a day. The client can read the data.
func (c *Call) Seal(data string) string {
	b := binary.BigEndian.AppendUint64(nil, uint64(clock.Now().Add(stateAge).Unix()))
	b = append(b, data...)
	return base64.RawURLEncoding.EncodeToString(append(b, c.endpoint.signData(c.sealPurpose(), b)...))
}

// Unseal returns the data of the call's State, or a problem for the client if the state was changed, is
// too old, or belongs to another caller or tool.
func (c *Call) Unseal() (string, error) {
	wrong := Wrong("requestState: is not the one that this call returned, or it is older than a day. Call without it to start again.")
	b, err := base64.RawURLEncoding.Strict().DecodeString(c.State)
	if err != nil || len(b) < 24 {
		return "", wrong
	}
	b, proof := b[:len(b)-16], b[len(b)-16:]
	if !hmac.Equal(proof, c.endpoint.signData(c.sealPurpose(), b)) ||
		int64(binary.BigEndian.Uint64(b)) < clock.Now().Unix() {
		return "", wrong
	}
	return string(b[8:]), nil
}

// session holds the data of a client's handshake. It is contained in the session id that the client
// sends, so the server stores nothing.
type session struct {
	version string
	client  Client
}

// sessionBytes is the size of a session: one byte each for version and capabilities, and random bytes
// that make the id unique.
const sessionBytes = 1 + 1 + 12

// sessionID returns the session as an id with a MAC.
func (e *Endpoint) sessionID(s session) string {
	b := make([]byte, sessionBytes)
	rand.Read(b[2:])
	for i, v := range handshake {
		if v == s.version {
			b[0] = byte(i)
		}
	}
	for i, can := range []bool{s.client.Elicitation, s.client.Sampling, s.client.Roots} {
		if can {
			b[1] |= 1 << i
		}
	}
	return base64.RawURLEncoding.EncodeToString(append(b, e.signData("session", b)...))
}

// readSession decodes a session id. ok is false if the id was not made by this endpoint.
func (e *Endpoint) readSession(id string) (s session, ok bool) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(id)
	if err != nil || len(b) != sessionBytes+16 ||
		!hmac.Equal(b[sessionBytes:], e.signData("session", b[:sessionBytes])) || int(b[0]) >= len(handshake) {
		return s, false
	}
	return session{handshake[b[0]], Client{Elicitation: b[1]&1 != 0, Sampling: b[1]&2 != 0, Roots: b[1]&4 != 0}}, true
}
