package evil

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"agentsite/internal/record"
)

// identities returns the lies about who a portal is and at which origin it is.
func identities() []Lie {
	var list []Lie
	const who, where = "identity", "origin"
	// hello adds a lie that makes the request hello with a card that f makes false. f may return the
	// signed card itself; with nil the changed card is signed as usual.
	hello := func(class, name, why string, f func(s *Stage, c *record.Card) (sealed []byte, err error)) {
		list = append(list, Lie{Name: name, Class: class, Goal: counted, Alone: true, Stranger: true, Want: Want{Refusal: strings.Split(why, "|")}, Tell: func(ctx context.Context, s *Stage) (Result, error) {
			c := s.Evil.Card()
			card, err := f(s, c)
			if err == nil && card == nil {
				card, err = s.Evil.Sign(c)
			}
			if err != nil {
				return Result{}, err
			}
			_, head := s.Evil.Current()
			a, err := s.Evil.HelloAs(ctx, s.Victim.Origin(), card, head, Request{})
			return Result{Answer: a}, err
		}})
	}
	hello(who, "hello/card signed by an operational key", "signature", func(s *Stage, c *record.Card) ([]byte, error) { return s.Evil.SignBy(c, s.Evil.Op) })
	hello(who, "hello/card with another's id", "malformed", func(s *Stage, c *record.Card) ([]byte, error) {
		c.Portal, c.Epoch = s.Honest.ID(), c.Issued // later than the honest portal's own epoch
		return nil, nil
	})
	hello(who, "hello/card of another", "malformed", func(s *Stage, _ *record.Card) ([]byte, error) {
		card, _, err := s.Evil.whole(context.Background(), s.Honest.Origin())
		return card, err
	})
	hello(who, "hello/card of the victim", "denied", func(s *Stage, _ *record.Card) ([]byte, error) {
		card, _, err := s.Evil.whole(context.Background(), s.Victim.Origin())
		return card, err
	})
	hello(who, "hello/altered card", "signature", func(s *Stage, c *record.Card) ([]byte, error) {
		wire, err := s.Evil.Sign(c)
		_, sig := Parts(wire)
		c.Name = "Somebody else"
		payload, _ := Payload(c)
		return Envelope(record.KeyIDOf(record.PublicOf(s.Evil.Root)), record.TypeCard, payload, sig), err
	})
	hello(who, "hello/card of another network", "signature", func(s *Stage, c *record.Card) ([]byte, error) {
		payload, err := Payload(c)
		return Seal("elsewhere", record.TypeCard, payload, s.Evil.Root), err
	})
	hello(who, "hello/card without keys", "unknown_portal", func(_ *Stage, c *record.Card) ([]byte, error) { c.Keys = nil; return nil, nil })
	hello(who, "hello/card with the root key as a key", "malformed", func(s *Stage, c *record.Card) ([]byte, error) {
		c.Keys = sorted(c.Keys[0], KeyOf(s.Evil.Root))
		return nil, nil
	})
	hello(who, "hello/card with five keys", "malformed", func(_ *Stage, c *record.Card) ([]byte, error) {
		for range 4 {
			c.Keys = append(c.Keys, KeyOf(key()))
		}
		c.Keys = sorted(c.Keys...)
		return nil, nil
	})
	hello(who, "hello/key that lives a year", "malformed", func(_ *Stage, c *record.Card) ([]byte, error) { c.Keys[0].Until += 365 * day; return nil, nil })
	hello(who, "hello/expired card", "clock", func(_ *Stage, c *record.Card) ([]byte, error) {
		c.Issued, c.Expires = c.Issued-30*60_000, c.Issued-20*60_000
		return nil, nil
	})
	hello(who, "hello/card of the future", "clock", func(_ *Stage, c *record.Card) ([]byte, error) { c.Issued += hour; return nil, nil })
	hello(who, "hello/card that lives too long", "malformed", func(_ *Stage, c *record.Card) ([]byte, error) { c.Expires += 365 * day; return nil, nil })
	hello(who, "hello/weak root key", "malformed", func(s *Stage, c *record.Card) ([]byte, error) {
		c.RootPub = record.Public{1}
		c.Portal = record.PortalOf(c.RootPub)
		s.Evil.ID = c.Portal // anyone can claim this id, because no secret is needed
		payload, err := Payload(c)
		sig := make([]byte, 64)
		sig[0] = 1 // with this weak key the signature is valid for every message
		card := Envelope(record.KeyIDOf(c.RootPub), record.TypeCard, payload, sig)
		s.Evil.ShowCard(card)
		return card, err
	})
	list = append(list, Lie{Name: "hello/card older than the last", Class: "rollback", Goal: counted, Want: Want{Refusal: []string{"malformed"}}, Tell: func(ctx context.Context, s *Stage) (Result, error) {
		old, head := s.Evil.Current()
		card, err := s.Evil.Sign(s.Evil.Card())
		if err != nil {
			return Result{}, err
		}
		s.Evil.ShowCard(card)
		if a, err := s.Evil.Hello(ctx, s.Victim.Origin()); err != nil || a.Status != 200 {
			return Result{}, fmt.Errorf("the newer one is refused: %s %w", a.Body, err)
		}
		a, err := s.Evil.HelloAs(ctx, s.Victim.Origin(), old, head, Request{})
		return Result{Answer: a}, err
	}}, Lie{Name: "hello/two cards of one version", Class: "equivocation", Goal: twoCards, Want: Want{Refusal: []string{"quarantined"}, State: "quarantined"}, Tell: func(ctx context.Context, s *Stage) (Result, error) {
		c := s.Evil.Card()
		_, head := s.Evil.Current()
		one, err := s.Evil.Sign(c)
		if err != nil {
			return Result{}, err
		}
		s.Evil.ShowCard(one)
		if a, err := s.Evil.Hello(ctx, s.Victim.Origin()); err != nil || a.Status != 200 {
			return Result{}, fmt.Errorf("the first is refused: %s %w", a.Body, err)
		}
		c.Name = "Other"
		two, err := s.Evil.Sign(c)
		if err != nil {
			return Result{}, err
		}
		a, err := s.Evil.HelloAs(ctx, s.Victim.Origin(), two, head, Request{})
		return Result{Answer: a}, err
	}})

	hello(where, "hello/origin of another portal", "denied", func(s *Stage, c *record.Card) ([]byte, error) { c.Origin = s.Honest.Origin(); return nil, nil })
	hello(where, "hello/origin of the victim", "denied", func(s *Stage, c *record.Card) ([]byte, error) { c.Origin = s.Victim.Origin(); return nil, nil })
	hello(where, "hello/origin with a path", "malformed", func(s *Stage, c *record.Card) ([]byte, error) { c.Origin = s.Evil.Origin + "/x"; return nil, nil })
	hello(where, "hello/http origin", "malformed", func(_ *Stage, c *record.Card) ([]byte, error) { c.Origin = "http://portal.example"; return nil, nil })
	hello(where, "hello/origin with a user", "malformed", func(_ *Stage, c *record.Card) ([]byte, error) { c.Origin = "https://a@portal.example"; return nil, nil })

	// A known portal can announce a new origin in a hint, and the victim makes no request to that
	// origin to verify it.
	for name, to := range map[string]func(s *Stage) string{"origin/moves to that of another": func(s *Stage) string { return s.Honest.Origin() }, "origin/moves to that of the victim": func(s *Stage) string { return s.Victim.Origin() }} {
		list = append(list, Lie{Name: name, Class: where, Goal: underAnother, Alone: true, Want: Want{Held: true}, Heard: gone, Tell: func(ctx context.Context, s *Stage) (Result, error) {
			if err := s.Evil.List(s.Evil.Agent("bait", s.Bait)); err != nil {
				return Result{}, err
			}
			if err := s.Evil.Publish(); err != nil {
				return Result{}, err
			}
			if _, err := s.Evil.Tell(ctx, s.Victim.Origin()); err != nil {
				return Result{}, err
			}
			if err := s.Found(); err != nil {
				return Result{}, err
			}
			c := s.Evil.Card()
			c.Origin = to(s)
			card, err := s.Evil.Sign(c)
			if err != nil {
				return Result{}, err
			}
			_, head := s.Evil.Current()
			a, err := s.Evil.Hint(ctx, s.Victim.Origin(), card, head)
			return Result{Answer: a}, err
		}})
	}

	// unproved adds a lie whose hello is accepted, but whose origin must not count as proved.
	unproved := func(name string, f func(s *Stage)) {
		list = append(list, Lie{Name: name, Class: where, Goal: proved, Stranger: true, Tell: func(ctx context.Context, s *Stage) (Result, error) {
			f(s)
			a, err := s.Evil.Hello(ctx, s.Victim.Origin())
			if err != nil {
				return Result{}, err
			}
			return Result{Answer: a}, nil
		}})
	}
	const well = "/.well-known/agentsite"
	unproved("origin/well-known of another network", func(s *Stage) {
		s.Evil.On(well, func(w http.ResponseWriter, _ *http.Request) {
			card, head := s.Evil.Current()
			Say(w, map[string]any{"network": "elsewhere", "card": json.RawMessage(card), "head": json.RawMessage(head)})
		})
	})
	unproved("origin/well-known elsewhere by a redirect", func(s *Stage) {
		o := s.More()
		o.ShowCard(first(s.Evil.Current()))
		s.Evil.On(well, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, o.Origin+well, http.StatusFound) })
	})
	unproved("origin/well-known with a member twice", func(s *Stage) {
		s.Evil.On(well, func(w http.ResponseWriter, _ *http.Request) {
			card, _ := s.Evil.Current()
			fmt.Fprintf(w, `{"network":"elsewhere","network":%q,"card":%s}`, s.Network, card)
		})
	})
	unproved("origin/well-known that is a page", func(s *Stage) {
		s.Evil.On(well, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") })
	})
	unproved("origin/well-known with status 500", func(s *Stage) {
		s.Evil.On(well, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(500)
			s.Evil.honest(w, &http.Request{URL: mustURL(well), Body: http.NoBody})
		})
	})
	unproved("origin/well-known of 4 GiB", func(s *Stage) {
		s.Evil.On(well, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "4294967296")
			fill(w, huge)
			s.Evil.swallowed.Store(true)
			panic(http.ErrAbortHandler) // abort, so that the server need not send 4 GiB
		})
	})
	list[len(list)-1].Goal = swallowed
	list = append(list, Lie{Name: "origin/well-known of another", Class: where, Goal: counted, Stranger: true, Want: Want{Refusal: []string{"denied"}}, Tell: func(ctx context.Context, s *Stage) (Result, error) {
		o := s.More()
		card, head := o.Current()
		s.Evil.On(well, func(w http.ResponseWriter, _ *http.Request) {
			Say(w, map[string]any{"network": s.Network, "card": json.RawMessage(card), "head": json.RawMessage(head)})
		})
		a, err := s.Evil.Hello(ctx, s.Victim.Origin())
		return Result{Answer: a}, err
	}})

	// inward adds a lie that makes the victim learn an address inside its own network, which it must
	// not connect to.
	inward := func(name string, tell func(ctx context.Context, s *Stage, origin string) error) {
		list = append(list, Lie{Name: name, Class: "SSRF", Goal: seen("the victim calls an address of its own network"), Tell: func(ctx context.Context, s *Stage) (Result, error) {
			trap, origin, err := newTrap()
			if err != nil {
				return Result{}, err
			}
			defer trap.Close()
			if err := tell(ctx, s, origin); err != nil {
				return Result{}, err
			}
			// The victim asks new portals in order. When it asks this later one, it has dealt with the
			// address.
			o := s.More()
			card, head := o.Current()
			if a, err := s.Evil.Hint(ctx, s.Victim.Origin(), card, head); err != nil || a.Status != http.StatusOK {
				return Result{}, fmt.Errorf("%d %s %w", a.Status, a.Body, err)
			}
			if err := o.Wait(ctx, "/.well-known/agentsite", 1); err != nil {
				return Result{}, err
			}
			if trap.hits.Load() > 0 {
				return Result{Succeeded: "it was called"}, nil
			}
			return Result{}, nil
		}})
	}
	moveTo := func(s *Stage, origin string) error {
		c := s.Evil.Card()
		c.Origin = origin
		card, err := s.Evil.Sign(c)
		s.Evil.ShowCard(card)
		return err
	}
	inward("SSRF/card in hello", func(ctx context.Context, s *Stage, origin string) error {
		if err := moveTo(s, origin); err != nil {
			return err
		}
		_, err := s.Evil.Hello(ctx, s.Victim.Origin())
		return err
	})
	inward("SSRF/card in a hint", func(ctx context.Context, s *Stage, origin string) error {
		if err := moveTo(s, origin); err != nil {
			return err
		}
		card, head := s.Evil.Current()
		_, err := s.Evil.Hint(ctx, s.Victim.Origin(), card, head)
		return err
	})
	inward("SSRF/card of a stranger in a hint", func(ctx context.Context, s *Stage, origin string) error {
		o := s.More()
		c := o.Card()
		c.Origin = origin
		card, err := o.Sign(c)
		if err != nil {
			return err
		}
		_, head := o.Current()
		_, err = s.Evil.Hint(ctx, s.Victim.Origin(), card, head)
		return err
	})
	return list
}

func first(a, _ []byte) []byte { return a }

// sorted returns the keys in the order that a card requires.
func sorted(keys ...record.Key) []record.Key {
	slices.SortFunc(keys, func(a, b record.Key) int { return strings.Compare(string(a.ID), string(b.ID)) })
	return keys
}

// twoCards is reached when the victim accepts the second of two cards with one version.
var twoCards = Goal{"two cards of one version stand", func(_ context.Context, s *Stage, r Result) (bool, error) {
	return r.Status == http.StatusOK && s.Victim.Look(s.Evil.ID).State == "active", nil
}, steady}

// underAnother is reached when the victim shows the lying portal's agents under the origin of another
// portal.
var underAnother = Goal{"its agents are shown under the name of another", func(_ context.Context, s *Stage, _ Result) (bool, error) {
	return s.Victim.Look(s.Evil.ID).URL != s.Evil.Origin && s.Victim.Finds(s.Bait), nil
}, steady}

// gone waits until the victim's search no longer finds the agent with the bait.
func gone(s *Stage) error {
	return s.Until("its agents are shown no more", func() bool { return !s.Victim.Finds(s.Bait) })
}

// huge is a number of bytes that no portal needs to read of one answer.
const huge = 64 << 20

// swallowed is reached when the victim read all of an answer of 64 MiB.
var swallowed = Goal{"the victim reads 64 MiB", func(_ context.Context, s *Stage, _ Result) (bool, error) { return s.Evil.swallowed.Load(), nil }, 0}

// trap counts the connections to an address that is not on loopback.
type trap struct {
	net.Listener
	hits atomic.Int64
}

// newTrap listens on an address of this machine that portals must not call, and returns its origin. It
// returns ErrNotHere if the machine has only loopback. The caller must close it.
func newTrap() (*trap, string, error) {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return nil, "", err
	}
	for _, a := range addrs {
		n, ok := a.(*net.IPNet)
		if !ok || n.IP.IsLoopback() || n.IP.To4() == nil {
			continue
		}
		l, err := net.Listen("tcp", net.JoinHostPort(n.IP.String(), "0"))
		if err != nil {
			continue
		}
		t := &trap{Listener: l}
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				t.hits.Add(1)
				c.SetDeadline(time.Now().Add(time.Second))
				c.Close()
			}
		}()
		return t, "https://" + l.Addr().String(), nil
	}
	return nil, "", fmt.Errorf("%w: this machine has no address but loopback", ErrNotHere)
}
