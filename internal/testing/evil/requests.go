package evil

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"agentsite/internal/federation/guard"
	"agentsite/internal/ident/httpsig"
)

// without returns a Before function that removes a component from the signed ones.
func without(name string) func(*http.Request, *httpsig.Params) {
	return func(_ *http.Request, p *httpsig.Params) {
		var list []httpsig.Component
		for _, c := range p.Components {
			if c.Name != name {
				list = append(list, c)
			}
		}
		p.Components = list
	}
}

// signed returns a Before function that changes the signature parameters.
func signed(f func(*httpsig.Params)) func(*http.Request, *httpsig.Params) {
	return func(_ *http.Request, p *httpsig.Params) { f(p) }
}

// requests returns the lies that are requests with a wrong signature, time or body.
func requests() []Lie {
	var list []Lie
	add := func(class, name string, why []string, make func(s *Stage) Request) {
		list = append(list, Lie{Name: name, Class: class, Goal: answered, Want: Want{Refusal: why}, Tell: func(ctx context.Context, s *Stage) (Result, error) {
			a, err := s.Evil.Ask(ctx, s.Victim.Origin(), make(s))
			return Result{Answer: a}, err
		}})
	}
	head := func(s *Stage) Request {
		return Request{Path: "/peering/v1/portals/" + string(s.Victim.ID()) + "/head"}
	}
	before := func(class, name, why string, f func(*http.Request, *httpsig.Params)) {
		add(class, name, strings.Split(why, "|"), func(s *Stage) Request { q := head(s); q.Before = f; return q })
	}
	after := func(class, name, why string, f func(*http.Request)) {
		add(class, name, strings.Split(why, "|"), func(s *Stage) Request { q := head(s); q.After = f; return q })
	}
	post := func(class, name, why string, f func(q *Request)) {
		add(class, name, strings.Split(why, "|"), func(*Stage) Request {
			q := Request{Path: "/peering/v1/heads/hint", Body: []byte(`{"heads":[]}`)}
			f(&q)
			return q
		})
	}

	const sig, cover, when = "signature", "coverage", "time"
	after(sig, "request/unsigned", "unsigned", func(r *http.Request) { r.Header.Del("Signature"); r.Header.Del("Signature-Input") })
	add(sig, "request/other key", []string{"signature"}, func(s *Stage) Request { q := head(s); q.Key = key(); return q })
	after(sig, "request/altered signature", "signature", func(r *http.Request) {
		v := []byte(r.Header.Get("Signature"))
		if v[12]++; !strings.ContainsRune("BCDEFGHIJKLMNOPQRSTUVWXYZbcdefghijklmnopqrstuvwxyz123456789", rune(v[12])) {
			v[12] = 'A' // the result is a letter of base64 and differs from the old one
		}
		r.Header.Set("Signature", string(v))
	})
	add(sig, "request/unknown portal", []string{"unknown_portal"}, func(s *Stage) Request {
		q, o := head(s), s.More()
		q.Key, q.Before = o.Op, signed(func(p *httpsig.Params) { p.KeyID = o.KeyID(o.Op) })
		return q
	})
	add(sig, "request/key that the card does not list", []string{"unknown_portal"}, func(s *Stage) Request {
		q, k := head(s), key()
		q.Key, q.Before = k, signed(func(p *httpsig.Params) { p.KeyID = s.Evil.KeyID(k) })
		return q
	})
	add(sig, "request/swapped keyid", []string{"unknown_portal"}, func(s *Stage) Request {
		q := head(s)
		q.Before = signed(func(p *httpsig.Params) {
			_, id, _ := strings.Cut(p.KeyID, "/")
			p.KeyID = string(s.Honest.ID()) + "/" + id
		})
		return q
	})
	add(sig, "request/root key", []string{"unknown_portal"}, func(s *Stage) Request {
		q := head(s)
		q.Key, q.Before = s.Evil.Root, signed(func(p *httpsig.Params) { p.KeyID = s.Evil.KeyID(s.Evil.Root) })
		return q
	})
	after(sig, "request/two signatures", "unsigned", func(r *http.Request) {
		for _, f := range []string{"Signature", "Signature-Input"} {
			v := r.Header.Get(f)
			r.Header.Set(f, v+", "+strings.Replace(v, "sig1=", "sig2=", 1))
		}
	})
	before(sig, "request/other tag", "unsigned", signed(func(p *httpsig.Params) { p.Tag = "web-bot-auth" }))

	before(when, "request/expired", "clock", signed(func(p *httpsig.Params) {
		p.Created, p.Expires = p.Created.Add(-10*time.Minute), p.Expires.Add(-10*time.Minute)
	}))
	before(when, "request/of the future", "clock", signed(func(p *httpsig.Params) {
		p.Created, p.Expires = p.Created.Add(10*time.Minute), p.Expires.Add(10*time.Minute)
	}))
	before(when, "request/created never", "clock", signed(func(p *httpsig.Params) { p.Created = time.Time{} }))
	before(when, "request/expires never", "unsigned", signed(func(p *httpsig.Params) { p.Expires = time.Time{} }))
	before(when, "request/good for an hour", "unsigned", signed(func(p *httpsig.Params) { p.Expires = p.Created.Add(time.Hour) }))
	before(when, "request/no nonce", "unsigned", signed(func(p *httpsig.Params) { p.Nonce = "" }))
	before(when, "request/short nonce", "unsigned", signed(func(p *httpsig.Params) { p.Nonce = "abc" }))
	replay := func(name string, between func(*Stage)) Lie {
		return Lie{Name: name, Class: "replay", Goal: answered, Want: Want{Refusal: []string{"replayed", "clock"}}, Tell: func(ctx context.Context, s *Stage) (Result, error) {
			r, err := s.Evil.Make(ctx, s.Victim.Origin(), head(s))
			if err != nil {
				return Result{}, err
			}
			a, err := Send(r)
			if err != nil || a.Status != http.StatusOK {
				return Result{}, fmt.Errorf("the first time: %d %s, %w", a.Status, a.Body, err)
			}
			between(s)
			a, err = Send(r.Clone(ctx))
			return Result{Answer: a}, err
		}}
	}
	list = append(list, replay("request/replayed", func(*Stage) {}))
	again := replay("request/replayed after a restart", func(s *Stage) { s.Victim.Restart() })
	again.Heavy = true
	list = append(list, again)

	const aim = "audience"
	add(aim, "request/other audience", []string{"signature"}, func(s *Stage) Request {
		q := head(s)
		q.Before = func(r *http.Request, _ *httpsig.Params) { r.Host = "elsewhere.example" }
		q.After = func(r *http.Request) { r.Host = "" }
		return q
	})
	add(aim, "request/sent on as it came to another portal", []string{""}, func(s *Stage) Request {
		q := head(s)
		q.Before = func(r *http.Request, _ *httpsig.Params) { r.Host = "elsewhere.example" }
		return q
	})
	add(aim, "request/other path", []string{"signature"}, func(s *Stage) Request {
		q := head(s)
		path := q.Path
		q.Path, q.After = "/peering/v1/attests", func(r *http.Request) { r.URL.Path = path }
		return q
	})
	add(aim, "request/other query", []string{"signature"}, func(s *Stage) Request {
		q := head(s)
		q.After = func(r *http.Request) { r.URL.RawQuery = "after=1" }
		return q
	})
	add(aim, "request/other method", []string{"signature"}, func(s *Stage) Request {
		q := Request{Path: "/peering/v1/attests", Method: http.MethodPost}
		q.After = func(r *http.Request) { r.Method = http.MethodGet }
		return q
	})
	before(aim, "request/other network", "network", func(r *http.Request, _ *httpsig.Params) { r.Header.Set(guard.NetworkField, "elsewhere") })
	add(aim, "request/signed for another network", []string{"signature"}, func(s *Stage) Request {
		q := head(s)
		q.Before = func(r *http.Request, _ *httpsig.Params) { r.Header.Set(guard.NetworkField, "elsewhere") }
		q.After = func(r *http.Request) { r.Header.Set(guard.NetworkField, s.Network) }
		return q
	})
	after(aim, "request/no network", "unsigned", func(r *http.Request) { r.Header.Del(guard.NetworkField) })
	for _, c := range []string{"@method", "@authority", "@path", "@query", "agentsite-network"} {
		before(cover, "request/"+c+" not covered", "unsigned", without(c))
	}
	for _, f := range []string{guard.ForField, guard.HopsField, guard.BudgetField, "Authorization"} {
		after(cover, "request/"+f+" added", "unsigned", func(r *http.Request) { r.Header.Set(f, `kind=person, id="x", handle="ada"`) })
	}

	const body = "body"
	post(body, "request/other body", "signature", func(q *Request) {
		q.After = func(r *http.Request) { swap(r, `{"heads":[{}]}`) }
	})
	post(body, "request/other body and digest", "signature", func(q *Request) {
		q.After = func(r *http.Request) {
			swap(r, `{"heads":[{}]}`)
			r.Header.Set("Content-Digest", httpsig.DigestOf(sha256.Sum256([]byte(`{"heads":[{}]}`))))
		}
	})
	post(body, "request/digest not covered", "unsigned", func(q *Request) { q.Before = without("content-digest") })
	post(body, "request/no digest", "unsigned", func(q *Request) {
		q.Before = func(r *http.Request, p *httpsig.Params) {
			without("content-digest")(r, p)
			r.Header.Del("Content-Digest")
		}
	})
	post(body, "request/too long", "size", func(q *Request) { q.Body = []byte(`{"heads":[],"x":"` + strings.Repeat("x", 300<<10) + `"}`) })
	post(body, "request/member twice", "malformed", func(q *Request) { q.Body = []byte(`{"heads":[],"heads":[]}`) })
	post(body, "request/deep", "malformed", func(q *Request) {
		q.Body = []byte(`{"heads":[],"x":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + `}`)
	})
	post(body, "request/no JSON", "malformed", func(q *Request) { q.Body = []byte("\x00\xff heads") })
	post(body, "request/65 heads", "malformed", func(q *Request) {
		q.Body = []byte(`{"heads":[` + strings.TrimSuffix(strings.Repeat(`{"head":{}},`, 65), ",") + `]}`)
	})
	return list
}

// swap replaces the body of a signed request, which its digest then does not match.
func swap(r *http.Request, body string) {
	r.Body, r.ContentLength, r.GetBody = io.NopCloser(strings.NewReader(body)), int64(len(body)), nil
}
