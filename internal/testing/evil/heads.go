package evil

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"fmt"
	"strings"
	"time"

	"agentsite/internal/record"
)

// shapes are invalid payloads, made from a valid one, each with the reason for which it must be
// refused.
var shapes = []struct {
	name, why string
	make      func(payload []byte) []byte
}{
	{"member twice", "duplicate", func(p []byte) []byte { return bytes.Replace(p, []byte(`,"epoch":`), []byte(`,"epoch":1,"epoch":`), 1) }},
	{"white space", "canonical", func(p []byte) []byte { return bytes.Replace(p, []byte(`,"epoch"`), []byte(`, "epoch"`), 1) }},
	{"members in another order", "canonical", func(p []byte) []byte {
		return append([]byte(`{"zzz":1,`), p[1:]...)
	}},
	{"too long", "size", func(p []byte) []byte {
		return append(p[:len(p)-1:len(p)-1], `,"zz":"`+strings.Repeat("x", 40<<10)+`"}`...)
	}},
	{"deep", "depth", func(p []byte) []byte {
		return append(p[:len(p)-1:len(p)-1], `,"zz":`+strings.Repeat("[", 20)+strings.Repeat("]", 20)+`}`...)
	}},
	{"NUL", "text", func(p []byte) []byte { return append(p[:len(p)-1:len(p)-1], `,"zz":"\u0000"}`...) }},
	{"no UTF-8", "text", func(p []byte) []byte { return append(p[:len(p)-1:len(p)-1], ",\"zz\":\"\xff\"}"...) }},
	{"null", "null", func(p []byte) []byte { return append(p[:len(p)-1:len(p)-1], `,"zz":null}`...) }},
	{"fraction", "number", func(p []byte) []byte { return append(p[:len(p)-1:len(p)-1], `,"zz":1.5}`...) }},
	{"number too large", "number", func(p []byte) []byte { return append(p[:len(p)-1:len(p)-1], `,"zz":9007199254740993}`...) }},
	{"member in another case", "name", func(p []byte) []byte { return append([]byte(`{"Epoch":1,`), p[1:]...) }},
	{"something behind", "json", func(p []byte) []byte { return append(p, `{}`...) }},
}

// heads returns the lies that are invalid heads, sent as hints.
func heads() []Lie {
	var list []Lie
	add := func(class, name, unfit string, make func(s *Stage) ([]byte, error)) {
		w := Want{Unfit: strings.Split(unfit, "|")}
		if unfit == "" {
			w.Unfit = nil
		}
		list = append(list, Lie{Name: name, Class: class, Goal: held, Alone: class == "foreign", Want: w, Tell: func(ctx context.Context, s *Stage) (Result, error) {
			wire, err := make(s)
			if err != nil {
				return Result{}, err
			}
			a, err := s.Evil.Hint(ctx, s.Victim.Origin(), nil, wire)
			r := Result{Answer: a, Told: wire}
			if class == "foreign" {
				r.Of = s.Honest.ID()
			}
			return r, err
		}})
	}
	// changed adds a lie with a head that f makes false. f returns the key that signs it, nil for the
	// right one.
	changed := func(class, name, unfit string, f func(s *Stage, h *record.Head) ed25519.PrivateKey) {
		add(class, name, unfit, func(s *Stage) ([]byte, error) {
			h := s.Evil.Head(new(record.Tree))
			k := f(s, h)
			if k == nil {
				k = s.Evil.Op
			}
			return s.Evil.SignBy(h, k)
		})
	}
	const keys, form, times = "keys", "form", "time"
	add(keys, "head/altered signature", "signature", func(s *Stage) ([]byte, error) {
		wire, err := s.Evil.Sign(s.Evil.Head(new(record.Tree)))
		payload, sig := Parts(wire)
		sig[5] ^= 1
		return Envelope(record.KeyIDOf(record.PublicOf(s.Evil.Op)), record.TypeHead, payload, sig), err
	})
	add(keys, "head/altered", "signature", func(s *Stage) ([]byte, error) {
		h := s.Evil.Head(new(record.Tree))
		wire, err := s.Evil.Sign(h)
		_, sig := Parts(wire)
		h.Seq++
		payload, _ := Payload(h)
		return Envelope(record.KeyIDOf(record.PublicOf(s.Evil.Op)), record.TypeHead, payload, sig), err
	})
	changed(keys, "head/other key", "key", func(*Stage, *record.Head) ed25519.PrivateKey { return key() })
	changed(keys, "head/root key", "key", func(s *Stage, _ *record.Head) ed25519.PrivateKey { return s.Evil.Root })
	add(keys, "head/other key under the name of the right one", "signature", func(s *Stage) ([]byte, error) {
		payload, err := Payload(s.Evil.Head(new(record.Tree)))
		return Envelope(record.KeyIDOf(record.PublicOf(s.Evil.Op)), record.TypeHead, payload, ed25519.Sign(key(), record.PAE(s.Network, record.TypeHead, payload))), err
	})
	add(keys, "head/of another network", "signature", func(s *Stage) ([]byte, error) {
		payload, err := Payload(s.Evil.Head(new(record.Tree)))
		return Seal("elsewhere", record.TypeHead, payload, s.Evil.Op), err
	})
	add(keys, "head/signed as another type", "signature", func(s *Stage) ([]byte, error) {
		payload, err := Payload(s.Evil.Head(new(record.Tree)))
		return Envelope(record.KeyIDOf(record.PublicOf(s.Evil.Op)), record.TypeHead, payload, ed25519.Sign(s.Evil.Op, record.PAE(s.Network, record.TypeAgent, payload))), err
	})
	// rekeyed adds a lie with a head that is signed by an old key, after a card that replaces or limits
	// this key.
	rekeyed := func(name, unfit string, cards ...func(old ed25519.PrivateKey) []record.Key) {
		list = append(list, Lie{Name: name, Class: keys, Goal: held, Want: Want{Unfit: strings.Split(unfit, "|")}, Tell: func(ctx context.Context, s *Stage) (Result, error) {
			old, fresh := s.Evil.Op, key()
			card := s.Evil.Card()
			card.Keys = cards[0](old)
			if len(card.Keys) == 0 {
				card.Keys = []record.Key{KeyOf(fresh)}
				s.Evil.Op = fresh
			}
			wire, err := s.Evil.Sign(card)
			if err != nil {
				return Result{}, err
			}
			s.Evil.ShowCard(wire)
			if err := s.Evil.Publish(); err != nil {
				return Result{}, err
			}
			_, head := s.Evil.Current()
			if a, err := s.Evil.HelloAs(ctx, s.Victim.Origin(), wire, head, Request{}); err != nil || a.Status != 200 {
				return Result{}, fmt.Errorf("no hello with the new card: %d %s %w", a.Status, a.Body, err)
			}
			h, err := s.Evil.SignBy(s.Evil.Head(new(record.Tree)), old)
			if err != nil {
				return Result{}, err
			}
			a, err := s.Evil.Hint(ctx, s.Victim.Origin(), nil, h)
			return Result{Answer: a, Told: h}, err
		}})
	}
	rekeyed("head/revoked key", "key", func(ed25519.PrivateKey) []record.Key { return nil })
	rekeyed("head/key whose time ends first", "key_time", func(old ed25519.PrivateKey) []record.Key {
		k := KeyOf(old)
		k.Until = now() + hour
		return []record.Key{k}
	})
	rekeyed("head/key whose time has not begun", "key_time", func(old ed25519.PrivateKey) []record.Key {
		k := KeyOf(old)
		k.From, k.Until = now()+30_000, now()+80*day
		return []record.Key{k}
	})

	add(form, "head/truncated", "envelope", func(s *Stage) ([]byte, error) {
		wire, err := s.Evil.Sign(s.Evil.Head(new(record.Tree)))
		return append(bytes.TrimSuffix(wire, []byte(`","t":"head/1"}`)), `"}`...), err
	})
	add(form, "head/members of the envelope in another order", "envelope", func(s *Stage) ([]byte, error) {
		wire, err := s.Evil.Sign(s.Evil.Head(new(record.Tree)))
		return append([]byte(`{"t":"head/1",`), append(bytes.TrimSuffix(wire[1:], []byte(`,"t":"head/1"}`)), '}')...), err
	})
	add(form, "head/no record", "envelope", func(*Stage) ([]byte, error) { return []byte(`{}`), nil })
	for _, c := range shapes {
		add(form, "head/"+c.name, c.why, func(s *Stage) ([]byte, error) {
			payload, err := Payload(s.Evil.Head(new(record.Tree)))
			return Seal(s.Network, record.TypeHead, c.make(payload), s.Evil.Op), err
		})
	}
	add(form, "head/another type", "inconsistent", func(s *Stage) ([]byte, error) {
		return s.Evil.Sign(&record.Attest{Header: s.Evil.Header(day), Subject: s.Honest.ID(), Verdict: record.Block})
	})
	list[len(list)-1].Goal = taken
	add(form, "head/type that nobody knows", "type", func(s *Stage) ([]byte, error) {
		payload, err := Payload(s.Evil.Head(new(record.Tree)))
		return Seal(s.Network, "head/2", payload, s.Evil.Op), err
	})
	changed(form, "head/agents without a root", "field", func(_ *Stage, h *record.Head) ed25519.PrivateKey { h.Count = 5; return nil })
	changed(form, "head/epoch of the future", "field", func(_ *Stage, h *record.Head) ed25519.PrivateKey { h.Epoch = h.Issued + day; return nil })

	changed(times, "head/expired", "expired", func(_ *Stage, h *record.Head) ed25519.PrivateKey {
		h.Issued, h.Expires = h.Issued-30*60_000, h.Issued-20*60_000
		return nil
	})
	changed(times, "head/of the future", "future", func(_ *Stage, h *record.Head) ed25519.PrivateKey {
		h.Issued += hour
		return nil
	})
	changed(times, "head/lives too long", "life", func(_ *Stage, h *record.Head) ed25519.PrivateKey {
		h.Expires = h.Issued + 49*hour
		return nil
	})

	const foreign = "foreign"
	changed(foreign, "head/of another portal", "key", func(s *Stage, h *record.Head) ed25519.PrivateKey {
		h.Portal = s.Honest.ID()
		h.Epoch = h.Issued // later than the honest portal's own epoch
		return nil
	})
	add(foreign, "head/of another portal under its key's name", "signature", func(s *Stage) ([]byte, error) {
		wire, err := headOf(s, s.Honest)
		if err != nil {
			return nil, err
		}
		r, err := record.Open(s.Network, wire)
		if err != nil {
			return nil, err
		}
		h := *r.Body.(*record.Head)
		h.Seq += 1000
		payload, err := Payload(&h)
		return Envelope(r.Key, record.TypeHead, payload, ed25519.Sign(s.Evil.Op, record.PAE(s.Network, record.TypeHead, payload))), err
	})
	changed(foreign, "head/of nobody", "portal", func(_ *Stage, h *record.Head) ed25519.PrivateKey {
		h.Portal = record.PortalOf(record.PublicOf(key()))
		return nil
	})
	list = append(list, Lie{Name: "head/of the victim itself", Class: foreign, Goal: itsOwn, Alone: true, Tell: func(ctx context.Context, s *Stage) (Result, error) {
		h := s.Evil.Head(new(record.Tree))
		h.Portal, h.Seq, h.Epoch = s.Victim.ID(), 1<<40, h.Issued
		wire, err := s.Evil.Sign(h)
		if err != nil {
			return Result{}, err
		}
		a, err := s.Evil.Hint(ctx, s.Victim.Origin(), nil, wire)
		if err != nil {
			return Result{}, err
		}
		return Result{Answer: a, Told: wire}, nil
	}})

	const back = "rollback"
	list = append(list, Lie{Name: "head/older than the last", Class: back, Goal: held, Tell: func(ctx context.Context, s *Stage) (Result, error) {
		_, old := s.Evil.Current()
		if err := s.Evil.Publish(); err != nil {
			return Result{}, err
		}
		if a, err := s.Evil.Tell(ctx, s.Victim.Origin()); err != nil || len(a.Unfit) > 0 {
			return Result{}, fmt.Errorf("the newer one is refused: %s %w", a.Body, err)
		}
		a, err := s.Evil.Hint(ctx, s.Victim.Origin(), nil, old)
		return Result{Answer: a, Told: old}, err
	}}, Lie{Name: "head/of an older epoch", Class: back, Goal: held, Tell: func(ctx context.Context, s *Stage) (Result, error) {
		if a, err := s.Evil.Tell(ctx, s.Victim.Origin()); err != nil || len(a.Unfit) > 0 {
			return Result{}, fmt.Errorf("the newer one is refused: %s %w", a.Body, err)
		}
		h := s.Evil.Head(new(record.Tree))
		h.Epoch, h.Seq = h.Epoch-hour, h.Seq+1000
		wire, err := s.Evil.Sign(h)
		if err != nil {
			return Result{}, err
		}
		a, err := s.Evil.Hint(ctx, s.Victim.Origin(), nil, wire)
		return Result{Answer: a, Told: wire}, err
	}})

	const fork = "equivocation"
	two := func(s *Stage) (a, b []byte, err error) {
		h := s.Evil.Head(new(record.Tree))
		if a, err = s.Evil.Sign(h); err != nil {
			return nil, nil, err
		}
		h.LogStart, h.Expires = 2, h.Expires-1000
		b, err = s.Evil.Sign(h)
		return a, b, err
	}
	list = append(list, Lie{Name: "head/two of one version", Class: fork, Goal: believed(2 * time.Second), Want: Want{State: "quarantined"}, Tell: func(ctx context.Context, s *Stage) (Result, error) {
		one, other, err := two(s)
		if err != nil {
			return Result{}, err
		}
		if a, err := s.Evil.Hint(ctx, s.Victim.Origin(), nil, one); err != nil || len(a.Unfit) > 0 {
			return Result{}, fmt.Errorf("the first is refused: %s %w", a.Body, err)
		}
		a, err := s.Evil.Hint(ctx, s.Victim.Origin(), nil, other)
		return Result{Answer: a}, err
	}}, Lie{Name: "head/two of one version to two portals", Class: fork, Goal: believed(10 * time.Second), Want: Want{State: "quarantined"}, Tell: func(ctx context.Context, s *Stage) (Result, error) {
		one, other, err := two(s)
		if err != nil {
			return Result{}, err
		}
		if a, err := s.Evil.Hello(ctx, s.Honest.Origin()); err != nil || a.Status != 200 {
			return Result{}, fmt.Errorf("%s %w", a.Body, err)
		}
		if a, err := s.Evil.Hint(ctx, s.Victim.Origin(), nil, one); err != nil || len(a.Unfit) > 0 {
			return Result{}, fmt.Errorf("the first is refused: %s %w", a.Body, err)
		}
		s.Evil.Show(one)
		a, err := s.Evil.Hint(ctx, s.Honest.Origin(), nil, other)
		return Result{Answer: a}, err
	}})
	return list
}

// headOf asks an honest portal for its own head.
func headOf(s *Stage, v Victim) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_, head, err := s.Evil.whole(ctx, v.Origin())
	return head, err
}

// itsOwn is reached when the victim publishes a head for itself that it did not sign.
var itsOwn = Goal{"the victim shows a head that it did not sign", func(_ context.Context, s *Stage, r Result) (bool, error) {
	head, err := headOf(s, s.Victim)
	return err == nil && bytes.Equal(head, r.Told), err
}, 0}
