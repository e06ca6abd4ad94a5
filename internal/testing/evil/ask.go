package evil

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/federation/guard"
	"agentsite/internal/ident/httpsig"
	"agentsite/internal/record"
)

// Request is a request of the lying portal and its differences from an honest one. The zero values of
// Header, Key, Before and After mean no difference.
type Request struct {
	Method, Path string
	Body         []byte
	Header       http.Header // further headers, which the signature covers
	// Key signs the request instead of the portal's operational key.
	Key ed25519.PrivateKey
	// Before changes the request and the signature parameters before it is signed, After changes the
	// signed request.
	Before func(*http.Request, *httpsig.Params)
	After  func(*http.Request)
}

// Answer is the answer of a portal to a request.
type Answer struct {
	Status int
	Reason string   // reason of a refused request, "" if it was accepted
	Unfit  []string // reasons of the records in the request that were refused
	Body   []byte
}

// client follows no redirects.
var client = &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 16},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

// Make builds a signed request to the portal at an origin and applies the differences in q. The method
// is GET, or POST with a body.
func (p *Portal) Make(ctx context.Context, origin string, q Request) (*http.Request, error) {
	var body io.Reader
	if q.Body != nil {
		body = bytes.NewReader(q.Body)
	}
	if q.Method == "" {
		q.Method = http.MethodGet
		if q.Body != nil {
			q.Method = http.MethodPost
		}
	}
	r, err := http.NewRequestWithContext(ctx, q.Method, origin+q.Path, body)
	if err != nil {
		return nil, err
	}
	list := []string{"@method", "@authority", "@path", "@query", strings.ToLower(guard.NetworkField)}
	for name, v := range q.Header {
		r.Header[name] = v
		list = append(list, strings.ToLower(name))
	}
	r.Header.Set(guard.NetworkField, p.Network)
	if q.Body != nil {
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Content-Digest", httpsig.DigestOf(sha256.Sum256(q.Body)))
		list = append(list, "content-digest")
	}
	at := clock.Now()
	params := httpsig.Params{Components: httpsig.Components(list...), Created: at, Expires: at.Add(time.Minute), KeyID: p.KeyID(p.Op), Nonce: nonce(), Tag: guard.SignatureTag}
	if q.Before != nil {
		q.Before(r, &params)
	}
	k := p.Op
	if q.Key != nil {
		k = q.Key
	}
	if err := httpsig.Sign(r, guard.SignatureLabel, params, k); err != nil {
		return nil, err
	}
	if q.After != nil {
		q.After(r)
	}
	return r, nil
}

// As returns a Before function that puts the key id of another portal into the signature.
func As(keyID string) func(*http.Request, *httpsig.Params) {
	return func(_ *http.Request, p *httpsig.Params) { p.KeyID = keyID }
}

// KeyID returns the key id by which signatures of this portal name the key k.
func (p *Portal) KeyID(k ed25519.PrivateKey) string {
	return string(p.ID) + "/" + string(record.KeyIDOf(record.PublicOf(k)))
}

func nonce() string {
	var b [16]byte
	rand.Read(b[:])
	return encoding.EncodeToString(b[:])
}

// Ask makes a request to the portal at an origin and returns the answer.
func (p *Portal) Ask(ctx context.Context, origin string, q Request) (Answer, error) {
	r, err := p.Make(ctx, origin, q)
	if err != nil {
		return Answer{}, err
	}
	return Send(r)
}

// Send sends a request and reads the answer, at most 8 MiB of it. A refusal is no error.
func Send(r *http.Request) (Answer, error) {
	res, err := client.Do(r)
	if err != nil {
		return Answer{}, err
	}
	defer res.Body.Close()
	a := Answer{Status: res.StatusCode}
	if a.Body, err = io.ReadAll(io.LimitReader(res.Body, 8<<20)); err != nil {
		return a, err
	}
	var v struct {
		Error struct {
			Reason string
			Code   int // error code of JSON-RPC
		}
		Refused []struct{ Reason string }
	}
	json.Unmarshal(a.Body, &v) // other answers have none of these fields
	if a.Reason = v.Error.Reason; a.Reason == "" && v.Error.Code != 0 {
		a.Reason = fmt.Sprint("rpc ", v.Error.Code)
	}
	for _, u := range v.Refused {
		a.Unfit = append(a.Unfit, u.Reason)
	}
	return a, nil
}

// Hello makes the request hello with the portal's own card and head.
func (p *Portal) Hello(ctx context.Context, origin string) (Answer, error) {
	card, head := p.Current()
	return p.HelloAs(ctx, origin, card, head, Request{})
}

// HelloAs makes the request hello with the given card and head, which may be false. q adds other
// differences.
func (p *Portal) HelloAs(ctx context.Context, origin string, card, head []byte, q Request) (Answer, error) {
	q.Path, q.Body = "/peering/v1/hello", fmt.Appendf(nil, `{"card":%s,"head":%s}`, card, head)
	return p.Ask(ctx, origin, q)
}

// Hint sends a hint with the given head, and with the card unless it is nil.
func (p *Portal) Hint(ctx context.Context, origin string, card, head []byte) (Answer, error) {
	body := fmt.Appendf(nil, `{"heads":[{"head":%s}]}`, head)
	if card != nil {
		body = fmt.Appendf(nil, `{"heads":[{"card":%s,"head":%s}]}`, card, head)
	}
	return p.Ask(ctx, origin, Request{Path: "/peering/v1/heads/hint", Body: body})
}

// Tell sends a hint with the portal's current head.
func (p *Portal) Tell(ctx context.Context, origin string) (Answer, error) {
	_, head := p.Current()
	return p.Hint(ctx, origin, nil, head)
}

// Attest sends the given records about other portals.
func (p *Portal) Attest(ctx context.Context, origin string, records ...[]byte) (Answer, error) {
	return p.Ask(ctx, origin, Request{Path: "/peering/v1/attest", Body: fmt.Appendf(nil, `{"records":[%s]}`, bytes.Join(records, []byte(",")))})
}

// Flood repeats the request from q over 16 connections at once, until one is refused with status 429 or
// enough, which is called after each answer, returns true. It returns the last answer.
func (p *Portal) Flood(ctx context.Context, origin string, q func() Request, enough func() bool) (last Answer, err error) {
	const atOnce = 16
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type said struct {
		Answer
		error
	}
	answers := make(chan said)
	var wg sync.WaitGroup
	for range atOnce {
		wg.Go(func() {
			for ctx.Err() == nil {
				a, err := p.Ask(ctx, origin, q())
				select {
				case answers <- said{a, err}:
				case <-ctx.Done():
					return
				}
			}
		})
	}
	go func() { wg.Wait(); close(answers) }()
	for s := range answers {
		if last, err = s.Answer, s.error; err != nil || last.Status == http.StatusTooManyRequests || enough() {
			return last, err
		}
	}
	return last, err
}

// whole returns the card and head that a portal publishes at its well-known address, without a
// signature.
func (p *Portal) whole(ctx context.Context, origin string) (card, head []byte, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, origin+"/.well-known/agentsite", nil)
	if err != nil {
		return nil, nil, err
	}
	a, err := Send(r)
	if err != nil {
		return nil, nil, err
	}
	var v struct{ Card, Head json.RawMessage }
	err = json.Unmarshal(a.Body, &v)
	return v.Card, v.Head, err
}

// heldOf asks a portal for the head that it holds of another portal. It returns nil if it holds none.
func (p *Portal) heldOf(ctx context.Context, origin string, of record.PortalID) ([]byte, error) {
	a, err := p.Ask(ctx, origin, Request{Path: "/peering/v1/portals/" + string(of) + "/head"})
	if err != nil {
		return nil, err
	}
	var v struct{ Head json.RawMessage }
	err = json.Unmarshal(a.Body, &v)
	return v.Head, err
}
