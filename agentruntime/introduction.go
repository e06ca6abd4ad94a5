package agentruntime

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/ident/httpsig"
	"agentsite/internal/task"
)

// Header fields that name the calling portal and person to an agent's endpoint. Each is covered by the
// signature.
const (
	// PortalField holds the portal's URL, under which its key directory is found.
	PortalField = "Agentsite-Portal"
	// CallerField holds the kind of the caller and, except for probes, an id. task.HopsField lists the
	// agents in between.
	CallerField = "Agentsite-Caller"
	// agentField names the portal as in Web Bot Auth, where verifiers find the key by it
	// (draft-ietf-webbotauth-httpsig-protocol §4).
	agentField = "Signature-Agent"
)

const (
	// signatureLabel names the one signature in Signature and Signature-Input, and the member of
	// Signature-Agent that this signature covers.
	signatureLabel = "sig1"
	signatureTag   = "web-bot-auth"
	// signatureLife is how long a signature is valid. A request is sent at once after signing, but
	// clocks differ.
	signatureLife = time.Minute
	// maxIntroduced bounds a body that must be read to be signed, in bytes.
	maxIntroduced = 32 << 20
)

// Introducer signs the requests that drivers make on behalf of a caller (task.WithBehalf), so that the
// owner of an endpoint can verify the portal and the kind of caller. Other requests stay unchanged.
// Create it with NewIntroducer; it is safe for concurrent use.
type Introducer struct {
	url      string
	identity Identity
}

// Identity is the portal as the author of requests. The application implements it with its keys.
type Identity interface {
	// SigningKey returns the key that signs requests now. Its public part is in the portal's key directory, which
	// receivers fetch (/.well-known/http-message-signatures-directory).
	SigningKey() (ed25519.PrivateKey, error)
	// Mark computes a text from a purpose and a subject that only this portal can compute.
	Mark(purpose, subject string) string
	// Hop returns the entry of an agent in task.HopsField, the chain of agents that other portals check
	// for loops.
	Hop(agentID string) task.Hop
}

// NewIntroducer returns the Introducer of the portal at url, its public origin, which PortalField
// carries.
func NewIntroducer(url string, identity Identity) *Introducer {
	return &Introducer{url: url, identity: identity}
}

// SignRequest implements egress.Signer. It first removes the header fields that it sets, so that no
// driver can forge them, and signs only if the context has a caller (task.BehalfOf). It may replace
// r.Body by a copy in memory.
func (i *Introducer) SignRequest(r *http.Request) error {
	for _, name := range []string{PortalField, CallerField, task.HopsField, task.BudgetField, agentField, "Signature",
		"Signature-Input"} {
		r.Header.Del(name)
	}
	b, ok := task.BehalfOf(r.Context())
	if !ok {
		return nil
	}
	h := r.Header
	h.Set(PortalField, i.url)
	h.Set(CallerField, i.callerValue(b))
	h.Set(agentField, fmt.Sprintf("%s=%q", signatureLabel, i.url))
	covered := httpsig.Components("@method", "@authority", "@path", "@query", "agentsite-portal", "agentsite-caller")
	if b.AgentID != "" {
		h.Set(task.HopsField, b.Via.AppendHop(i.identity.Hop(b.AgentID)).Field())
		covered = append(covered, httpsig.Component{Name: "agentsite-hops"})
		if left := b.Budget.Field(clock.Now()); left != "" {
			h.Set(task.BudgetField, left)
			covered = append(covered, httpsig.Component{Name: "agentsite-budget"})
		}
	}
	covered = append(covered, httpsig.Component{Name: "signature-agent", Key: signatureLabel})
	sum, there, err := bodyDigest(r)
	if err != nil {
		return err
	}
	if there {
		h.Set("Content-Digest", httpsig.DigestOf(sum))
		covered = append(covered, httpsig.Component{Name: "content-digest"})
	}
	key, err := i.identity.SigningKey()
	if err != nil {
		return err
	}
	var nonce [32]byte
	rand.Read(nonce[:])
	now := clock.Now()
	return httpsig.Sign(r, signatureLabel, httpsig.Params{Components: covered, Created: now,
		Expires: now.Add(signatureLife),
		Nonce:   base64.RawURLEncoding.EncodeToString(nonce[:]),
		KeyID:   httpsig.KeyOf(key.Public().(ed25519.PublicKey)).Kid, Tag: signatureTag}, key)
}

// callerValue returns the value of CallerField. The id is the same for the same person and agent, and
// differs between agents. Owners can thereby distinguish callers, but cannot identify them.
func (i *Introducer) callerValue(b task.Behalf) string {
	s := "kind=" + b.Kind
	if b.CallerID != "" {
		s += fmt.Sprintf(", id=%q", i.identity.Mark("agentsite/caller/1", b.AgentID+"/"+b.CallerID))
	}
	return s
}

// bodyDigest returns the SHA-256 of a request's body; there is false without a body. It leaves r.Body
// readable from the start: a body without GetBody is read into memory, at most maxIntroduced bytes.
func bodyDigest(r *http.Request) (sum [sha256.Size]byte, there bool, err error) {
	if r.Body == nil || r.Body == http.NoBody {
		return sum, false, nil
	}
	if r.GetBody != nil {
		body, err := r.GetBody()
		if err != nil {
			return sum, true, err
		}
		defer body.Close()
		hash := sha256.New()
		if _, err := io.Copy(hash, body); err != nil {
			return sum, true, err
		}
		return [sha256.Size]byte(hash.Sum(nil)), true, nil
	}
	b, err := io.ReadAll(io.LimitReader(r.Body, maxIntroduced+1))
	if err == nil && len(b) > maxIntroduced {
		err = errors.New("the body is too large to be signed")
	}
	if err != nil {
		return sum, true, err
	}
	r.Body.Close()
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(b)), int64(len(b))
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b)), nil }
	return sha256.Sum256(b), true, nil
}
