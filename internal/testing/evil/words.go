package evil

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/federation/guard"
	"agentsite/internal/record"
)

// words returns the lies about other portals: attestations, liveness reports and proofs of
// contradiction.
func words() []Lie {
	var list []Lie
	const class = "words"
	add := func(name, unfit string, make func(s *Stage) ([]byte, error)) {
		list = append(list, Lie{Name: name, Class: class, Goal: taken, Want: Want{Unfit: strings.Split(unfit, "|")}, Tell: func(ctx context.Context, s *Stage) (Result, error) {
			wire, err := make(s)
			if err != nil {
				return Result{}, err
			}
			a, err := s.Evil.Attest(ctx, s.Victim.Origin(), wire)
			return Result{Answer: a}, err
		}})
	}
	block := func(s *Stage) *record.Attest {
		return &record.Attest{Header: s.Evil.Header(day), Subject: s.Honest.ID(), Verdict: record.Block}
	}
	alive := func(s *Stage) *record.Live {
		return &record.Live{Header: s.Evil.Header(day), Subject: s.Honest.ID(), Words: record.PackWords([]record.Word{{Agent: record.TagOf("x"), Reach: record.Unreachable}})}
	}
	as := func(s *Stage, b record.Body) ([]byte, error) {
		payload, err := Payload(b)
		card, _, werr := s.Evil.whole(context.Background(), s.Honest.Origin())
		if err == nil {
			err = werr
		}
		if err != nil {
			return nil, err
		}
		r, err := record.Open(s.Network, card)
		if err != nil {
			return nil, err
		}
		id := r.Body.(*record.Card).Keys[0].ID
		return Envelope(id, typeOf(b), payload, ed25519.Sign(s.Evil.Op, record.PAE(s.Network, typeOf(b), payload))), nil
	}
	forged := func(name string, b func(s *Stage) record.Body) {
		add(name, "signature", func(s *Stage) ([]byte, error) {
			payload, err := Payload(b(s))
			sig := make([]byte, 64)
			return Envelope(record.KeyIDOf(record.PublicOf(s.Evil.Op)), typeOf(b(s)), payload, sig), err
		})
	}
	forged("attest/forged", func(s *Stage) record.Body { return block(s) })
	forged("live/forged", func(s *Stage) record.Body { return alive(s) })
	add("attest/in the name of another", "signature", func(s *Stage) ([]byte, error) {
		a := block(s)
		a.Portal, a.Subject, a.Epoch = s.Honest.ID(), s.Evil.ID, a.Issued
		return as(s, a)
	})
	add("live/in the name of another", "signature", func(s *Stage) ([]byte, error) {
		l := alive(s)
		l.Portal, l.Epoch = s.Honest.ID(), l.Issued // later than the honest portal's own epoch
		return as(s, l)
	})
	add("attest/of itself", "field", func(s *Stage) ([]byte, error) {
		a := block(s)
		a.Subject = s.Evil.ID
		return s.Evil.Sign(a)
	})
	add("attest/a verdict that there is not", "field", func(s *Stage) ([]byte, error) {
		a := block(s)
		a.Verdict = "praise"
		return s.Evil.Sign(a)
	})
	add("attest/lives too long", "life", func(s *Stage) ([]byte, error) {
		a := block(s)
		a.Expires += 400 * day
		return s.Evil.Sign(a)
	})
	add("attest/a card", "type", func(s *Stage) ([]byte, error) { return s.Evil.Sign(s.Evil.Card()) })
	add("attest/an agent", "type", func(s *Stage) ([]byte, error) { return s.Evil.Sign(s.Evil.Agent("lie", s.Word)) })
	add("attest/no record", "envelope", func(*Stage) ([]byte, error) { return []byte(`{"k":1}`), nil })
	fork := func(name, unfit string, heads func(s *Stage) (record.PortalID, []byte, []byte, error)) {
		add(name, unfit, func(s *Stage) ([]byte, error) {
			subject, a, b, err := heads(s)
			if err != nil {
				return nil, err
			}
			return s.Evil.Sign(&record.Fork{Header: s.Evil.Header(30 * day), Subject: subject, A: json.RawMessage(a), B: json.RawMessage(b)})
		})
		list[len(list)-1].Goal, list[len(list)-1].Alone = convicted, true
	}
	fork("fork/one head twice", "evidence", func(s *Stage) (record.PortalID, []byte, []byte, error) {
		h, err := headOf(s, s.Honest)
		return s.Honest.ID(), h, h, err
	})
	fork("fork/heads of two versions", "evidence", func(s *Stage) (record.PortalID, []byte, []byte, error) {
		a, err := headOf(s, s.Honest)
		if err != nil {
			return "", nil, nil, err
		}
		b, err := s.forgedHead(1)
		if ra, rb := hashOf(s, a), hashOf(s, b); strings.Compare(string(ra[:]), string(rb[:])) > 0 {
			a, b = b, a
		}
		return s.Honest.ID(), a, b, err
	})
	fork("fork/a head that its portal did not sign", "evidence", func(s *Stage) (record.PortalID, []byte, []byte, error) {
		a, err := headOf(s, s.Honest)
		if err != nil {
			return "", nil, nil, err
		}
		b, err := s.forgedHead(0)
		if ra, rb := hashOf(s, a), hashOf(s, b); strings.Compare(string(ra[:]), string(rb[:])) > 0 {
			a, b = b, a
		}
		return s.Honest.ID(), a, b, err
	})
	fork("fork/the liar's own heads against another", "evidence", func(s *Stage) (record.PortalID, []byte, []byte, error) {
		h := s.Evil.Head(new(record.Tree))
		a, err := s.Evil.Sign(h)
		if err != nil {
			return "", nil, nil, err
		}
		h.LogStart = 2
		b, err := s.Evil.Sign(h)
		if ra, rb := hashOf(s, a), hashOf(s, b); strings.Compare(string(ra[:]), string(rb[:])) > 0 {
			a, b = b, a
		}
		return s.Honest.ID(), a, b, err
	})
	fork("fork/cards", "evidence", func(s *Stage) (record.PortalID, []byte, []byte, error) {
		card, _, err := s.Evil.whole(context.Background(), s.Honest.Origin())
		return s.Honest.ID(), card, card, err
	})
	list = append(list, Lie{Name: "attest/65 at once", Class: class, Goal: answered, Want: Want{Refusal: []string{"malformed"}}, Tell: func(ctx context.Context, s *Stage) (Result, error) {
		many := make([][]byte, 65)
		for i := range many {
			many[i] = []byte("{}")
		}
		a, err := s.Evil.Attest(ctx, s.Victim.Origin(), many...)
		return Result{Answer: a}, err
	}})
	list = append(list, Lie{Name: "attest/about a thousand portals", Class: class, Goal: taken, Want: Want{Unfit: []string{"limit"}}, Tell: func(ctx context.Context, s *Stage) (Result, error) {
		var last Answer
		for range 16 {
			var many [][]byte
			for range 64 {
				a := block(s)
				a.Subject = record.PortalOf(record.PublicOf(key()))
				wire, err := s.Evil.Sign(a)
				if err != nil {
					return Result{}, err
				}
				many = append(many, wire)
			}
			a, err := s.Evil.Attest(ctx, s.Victim.Origin(), many...)
			if err != nil || len(a.Unfit) > 0 {
				return Result{Answer: a}, err
			}
			if a.Status != http.StatusOK {
				return Result{}, fmt.Errorf("status %d %s", a.Status, a.Body)
			}
			last = a
		}
		return Result{Answer: last}, nil
	}})
	return list
}

// forgedHead returns a head in the honest portal's name with another tree and a seq that is larger by
// later. The lying portal's key signs it.
func (s *Stage) forgedHead(later int64) ([]byte, error) {
	wire, err := headOf(s, s.Honest)
	if err != nil {
		return nil, err
	}
	r, err := record.Open(s.Network, wire)
	if err != nil {
		return nil, err
	}
	h := *r.Body.(*record.Head)
	h.Seq += later
	h.Prev = record.Hash{7}
	payload, err := Payload(&h)
	return Envelope(r.Key, record.TypeHead, payload, ed25519.Sign(s.Evil.Op, record.PAE(s.Network, record.TypeHead, payload))), err
}

func hashOf(s *Stage, wire []byte) record.Hash {
	if r, err := record.Open(s.Network, wire); err == nil {
		return r.Hash
	}
	return record.Hash{}
}

// called is reached when the victim's agent received the text of the call.
var called = Goal{"the victim's agent is asked", func(_ context.Context, s *Stage, _ Result) (bool, error) { return s.Victim.Called(s.Word), nil }, 0}

// calls returns the lies that are calls of an agent on behalf of invented people.
func calls() []Lie {
	var list []Lie
	add := func(name string, why []string, f func(s *Stage, q *Request)) {
		list = append(list, Lie{Name: name, Class: "calls", Goal: called, Want: Want{Refusal: why}, Tell: func(ctx context.Context, s *Stage) (Result, error) {
			q := Request{Path: "/agents/" + s.Victim.Agent() + "/a2a", Header: http.Header{},
				Body: []byte(`{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"m1","role":"ROLE_USER","parts":[{"text":"` + s.Word + `"}]}}}`)}
			q.Header.Set(guard.ForField, `kind=person, id="x", handle="ada@evil.example"`)
			f(s, &q)
			a, err := s.Evil.Ask(ctx, s.Victim.Origin(), q)
			return Result{Answer: a}, err
		}})
	}
	set := func(name, field, value string, why ...string) {
		add(name, why, func(_ *Stage, q *Request) { q.Header.Set(field, value) })
	}
	set("call/for an operator", guard.ForField, `kind=operator, id="x"`, "malformed")
	set("call/for nobody", guard.ForField, `kind=person`, "malformed")
	set("call/for two", guard.ForField, `kind=person, id="x", id="y"`, "malformed")
	set("call/with a token besides", "Authorization", "Bearer ags_x", "malformed")
	set("call/budget that is none", guard.BudgetField, "calls=many", "malformed", "rpc -32602")
	add("call/for another after it was signed", []string{"signature"}, func(_ *Stage, q *Request) {
		q.After = func(r *http.Request) { r.Header.Set(guard.ForField, `kind=person, id="y"`) }
	})
	add("call/hops added after it was signed", []string{"unsigned"}, func(_ *Stage, q *Request) {
		q.After = func(r *http.Request) { r.Header.Set(guard.HopsField, `"a.example/x"`) }
	})
	add("call/budget grown after it was signed", []string{"signature"}, func(_ *Stage, q *Request) {
		q.Header.Set(guard.BudgetField, "calls=1, seconds=10, bytes=1000")
		q.After = func(r *http.Request) { r.Header.Set(guard.BudgetField, "calls=99, seconds=10, bytes=1000") }
	})
	add("call/other words", []string{"signature"}, func(s *Stage, q *Request) {
		signed := strings.ReplaceAll(string(q.Body), s.Word, "other words")
		told := string(q.Body)
		q.Body, q.After = []byte(signed), func(r *http.Request) { swap(r, told) }
	})
	add("call/by another key", []string{"signature"}, func(_ *Stage, q *Request) { q.Key = key() })
	return list
}

// floods returns the lies that consist of honest requests, but more of them than the limits allow.
func floods() []Lie {
	// many adds a lie that repeats a request until it is refused, or until twice as many were answered
	// as the limit allows: burst at once and one more after each.
	many := func(name string, burst int, each time.Duration, q func(s *Stage) Request) Lie {
		return Lie{Name: name, Class: "flood", Goal: seen("far more is answered than is allowed"), Want: Want{Refusal: []string{"limit"}}, Tell: func(ctx context.Context, s *Stage) (Result, error) {
			began, n := clock.Now(), 0
			a, err := s.Evil.Flood(ctx, s.Victim.Origin(), func() Request { return q(s) }, func() bool {
				n++
				return n > 2*(burst+int(clock.Now().Sub(began)/each))
			})
			r := Result{Answer: a}
			if err == nil && a.Status == http.StatusOK {
				r.Succeeded = fmt.Sprint(n, " were answered")
			}
			return r, err
		}}
	}
	return []Lie{
		many("flood/requests", 200, time.Second/50, func(s *Stage) Request {
			return Request{Path: "/peering/v1/portals/" + string(s.Victim.ID()) + "/head"}
		}),
		many("flood/hints", 30, time.Second/5, func(*Stage) Request { return Request{Path: "/peering/v1/heads/hint", Body: []byte(`{"heads":[]}`)} }),
		many("flood/comparisons", 3, 10*time.Second, func(*Stage) Request { return Request{Path: "/peering/v1/heads/diff", Body: []byte(`{"have":""}`)} }),
		many("flood/attestations", 50, time.Second/5, func(*Stage) Request { return Request{Path: "/peering/v1/attest", Body: []byte(`{"records":[]}`)} }),
		{Name: "flood/portals that are not there", Class: "flood", Goal: crowded, Heavy: true, Tell: func(ctx context.Context, s *Stage) (Result, error) {
			for range 4 {
				if err := s.names(ctx, s.Evil, false); err != nil {
					return Result{}, err
				}
			}
			return Result{}, nil
		}},
		{Name: "flood/portals of one site, by many", Class: "flood", Goal: crowded, Heavy: true, Tell: func(ctx context.Context, s *Stage) (Result, error) {
			for range 4 {
				o := s.More()
				if a, err := o.Hello(ctx, s.Victim.Origin()); err != nil || a.Status != http.StatusOK {
					return Result{}, fmt.Errorf("no hello: %d %s %w", a.Status, a.Body, err)
				}
				if err := s.names(ctx, o, true); err != nil {
					return Result{}, err
				}
			}
			return Result{}, nil
		}},
	}
}

// names sends a hint about 64 invented portals, each with an origin in a domain of its own, or all in
// one domain if oneSite is set.
func (s *Stage) names(ctx context.Context, by *Portal, oneSite bool) error {
	var heads [][]byte
	for range 64 {
		o := &Portal{Network: s.Network, Root: key(), Op: key(), epoch: now() - hour}
		o.ID = record.PortalOf(record.PublicOf(o.Root))
		name := strings.ToLower(string(o.ID[2:12]))
		if o.Origin = "https://" + s.Word + "-" + name + ".example"; oneSite {
			o.Origin = "https://" + name + "." + s.Word + ".example"
		}
		card, err := o.Sign(o.Card())
		if err != nil {
			return err
		}
		head, err := o.Sign(o.Head(new(record.Tree)))
		if err != nil {
			return err
		}
		heads = append(heads, fmt.Appendf(nil, `{"card":%s,"head":%s}`, card, head))
	}
	body := []byte(`{"heads":[` + strings.Join(texts(heads), ",") + `]}`)
	_, err := by.Ask(ctx, s.Victim.Origin(), Request{Path: "/peering/v1/heads/hint", Body: body})
	return err
}

func texts(list [][]byte) []string {
	out := make([]string, len(list))
	for i, b := range list {
		out[i] = string(b)
	}
	return out
}
