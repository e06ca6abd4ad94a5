package evil

import (
	"compress/gzip"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"agentsite/internal/record"
)

// ErrNotHere is returned by Tell when this machine lacks something that the lie needs.
var ErrNotHere = errors.New("cannot be told here")

func mustURL(path string) *url.URL { return &url.URL{Path: path} }

// fill writes about n zero bytes, and aborts the request when the client stops reading.
func fill(w http.ResponseWriter, n int) {
	b := make([]byte, 64<<10)
	for ; n > 0; n -= len(b) {
		if _, err := w.Write(b); err != nil {
			panic(http.ErrAbortHandler)
		}
	}
}

// patience is longer than any portal should wait for an answer.
const patience = 40 * time.Second

func second(_, b []byte) []byte { return b }

// pulled is reached when the victim reads the log although the head says that it is larger than its
// quota.
var pulled = Goal{"the victim reads the log of more agents than it takes", func(_ context.Context, s *Stage, _ Result) (bool, error) {
	return s.Evil.Asked("/log") > 0 && !s.Victim.Look(s.Evil.ID).Truncated, nil
}, steady}

// compare makes the victim compare heads with the lying portal. The victim does so with every portal
// that was unreachable and is back, but with few new ones; so the log fails once first.
func (s *Stage) compare(ctx context.Context) error {
	s.Evil.On("/log", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	if err := s.Evil.List(s.Evil.Agent("bait", s.Bait)); err != nil {
		return err
	}
	if err := s.Evil.Publish(); err != nil {
		return err
	}
	if _, err := s.Evil.Tell(ctx, s.Victim.Origin()); err != nil {
		return err
	}
	if err := s.Evil.Wait(ctx, "/log", 1); err != nil {
		return err
	}
	return s.Until("heads are compared", func() bool {
		if _, err := s.Evil.Tell(ctx, s.Victim.Origin()); err != nil {
			return false
		}
		return s.Evil.Asked("/heads/diff") > 0
	})
}

// logs returns the lies whose log or records differ from what the published head says.
func logs() []Lie {
	var list []Lie
	const rec, shape, rest = "record", "answer", "log"
	// lists adds a lie with a wrong entry in a log that is otherwise right. A right agent with the bait
	// is listed too: when the victim finds it, it has read the log.
	lists := func(class, name, fault string, put func(s *Stage) error) {
		w := Want{}
		if fault != "" {
			w.Fault = strings.Split(fault, "|")
		}
		list = append(list, Lie{Name: name, Class: class, Goal: found, Want: w, Heard: (*Stage).Found, Tell: func(ctx context.Context, s *Stage) (Result, error) {
			if err := put(s); err != nil {
				return Result{}, err
			}
			if err := s.Evil.List(s.Evil.Agent("bait", s.Bait)); err != nil {
				return Result{}, err
			}
			if err := s.Evil.Publish(); err != nil {
				return Result{}, err
			}
			a, err := s.Evil.Tell(ctx, s.Victim.Origin())
			if err != nil || len(a.Unfit) > 0 {
				return Result{}, fmt.Errorf("the head is refused: %s %w", a.Body, err)
			}
			return Result{}, nil
		}})
	}
	// goal replaces the goal of the last lie in the list.
	goal := func(g Goal) { list[len(list)-1].Goal = g }
	// agent adds a lie with an agent in the log that f makes false. f returns the key that signs it,
	// nil for the right one.
	agent := func(class, name, fault string, f func(s *Stage, a *record.Agent) ed25519.PrivateKey) {
		lists(class, name, fault, func(s *Stage) error {
			a := s.Evil.Agent("lie", s.Word)
			k := f(s, a)
			if k == nil {
				k = s.Evil.Op
			}
			wire, err := s.Evil.SignBy(a, k)
			s.Evil.Put(a, wire)
			return err
		})
	}
	sealed := func(class, name, fault string, f func(s *Stage, payload []byte) []byte) {
		lists(class, name, fault, func(s *Stage) error {
			a := s.Evil.Agent("lie", s.Word)
			payload, err := Payload(a)
			s.Evil.Put(a, f(s, payload))
			return err
		})
	}
	id := func(s *Stage) record.KeyID { return record.KeyIDOf(record.PublicOf(s.Evil.Op)) }
	sealed(rec, "agent/altered signature", "signature", func(s *Stage, p []byte) []byte {
		sig := ed25519.Sign(s.Evil.Op, record.PAE(s.Network, record.TypeAgent, p))
		sig[7] ^= 1
		return Envelope(id(s), record.TypeAgent, p, sig)
	})
	sealed(rec, "agent/other key under the name of the right one", "signature", func(s *Stage, p []byte) []byte {
		return Envelope(id(s), record.TypeAgent, p, ed25519.Sign(key(), record.PAE(s.Network, record.TypeAgent, p)))
	})
	agent(rec, "agent/other key", "key", func(*Stage, *record.Agent) ed25519.PrivateKey { return key() })
	sealed(rec, "agent/of another network", "signature", func(s *Stage, p []byte) []byte { return Seal("elsewhere", record.TypeAgent, p, s.Evil.Op) })
	sealed(rec, "agent/signed as a head", "signature", func(s *Stage, p []byte) []byte {
		return Envelope(id(s), record.TypeAgent, p, ed25519.Sign(s.Evil.Op, record.PAE(s.Network, record.TypeHead, p)))
	})
	for _, c := range shapes {
		sealed(rec, "agent/"+c.name, c.why, func(s *Stage, p []byte) []byte { return Seal(s.Network, record.TypeAgent, c.make(p), s.Evil.Op) })
	}
	agent(rec, "agent/description too long", "field|size", func(s *Stage, a *record.Agent) ed25519.PrivateKey {
		a.Description = strings.Repeat(s.Word+" ", 200)
		return nil
	})
	agent(rec, "agent/address that is none", "field", func(s *Stage, a *record.Agent) ed25519.PrivateKey {
		a.Endpoints[0].URL = "javascript:alert(1)"
		return nil
	})
	agent(rec, "agent/deleted and still there", "field", func(_ *Stage, a *record.Agent) ed25519.PrivateKey { a.Deleted = true; return nil })
	goal(kept)
	agent(rec, "agent/expired", "", func(_ *Stage, a *record.Agent) ed25519.PrivateKey {
		a.Issued, a.Expires = a.Issued-30*60_000, a.Issued-20*60_000
		return nil
	})
	agent(rec, "agent/of the future", "future", func(_ *Stage, a *record.Agent) ed25519.PrivateKey { a.Issued += hour; return nil })
	agent(rec, "agent/lives too long", "life", func(_ *Stage, a *record.Agent) ed25519.PrivateKey { a.Expires += 40 * day; return nil })
	agent(rec, "agent/lives longer than its key", "key_time", func(s *Stage, a *record.Agent) ed25519.PrivateKey {
		a.Issued, a.Expires = a.Issued-11*day, a.Issued+day
		return nil
	})

	const foreign = "foreign"
	agent(foreign, "agent/of another portal", "portal", func(s *Stage, a *record.Agent) ed25519.PrivateKey {
		a.Portal, a.Epoch = s.Honest.ID(), a.Issued // later than the honest portal's own epoch
		return nil
	})
	goal(kept)
	list[len(list)-1].Alone = true
	lists(foreign, "agent/with a key of its own that did not agree", "signature", func(s *Stage) error {
		a := s.Evil.Agent("lie", s.Word)
		own := key()
		a.ID, a.AgentPub = record.PortableID(record.PublicOf(own)), record.PublicOf(own)
		copy(a.AgentSig[:], ed25519.Sign(s.Evil.Op, []byte("it agreed")))
		wire, err := s.Evil.Sign(a)
		s.Evil.Put(a, wire)
		return err
	})
	lists(foreign, "agent/under the id of another's key", "field", func(s *Stage) error {
		a := s.Evil.Agent("lie", s.Word)
		a.ID = record.PortableID(record.PublicOf(key()))
		wire, err := s.Evil.Sign(a)
		s.Evil.Put(a, wire)
		return err
	})
	lists(foreign, "log/genuine agents of another portal", "portal", func(s *Stage) error {
		o := s.More()
		if a, err := o.Hello(context.Background(), s.Victim.Origin()); err != nil || a.Status != http.StatusOK {
			return fmt.Errorf("%s %w", a.Body, err)
		}
		a := o.Agent("lie", s.Word)
		wire, err := o.Sign(a)
		if err != nil {
			return err
		}
		a.Seq = s.Evil.Header(1).Seq
		s.Evil.Put(a, wire)
		return nil
	})
	goal(kept)
	lists(rest, "log/agent that no head covers", "", func(s *Stage) error {
		a := s.Evil.Agent("lie", s.Word)
		wire, err := s.Evil.Sign(a)
		s.Evil.Add(a, wire)
		return err
	})
	lists(rest, "log/leaf without an agent", "", func(s *Stage) error {
		s.Evil.mu.Lock()
		defer s.Evil.mu.Unlock()
		s.Evil.tree.Set(record.Hash{5}, record.Hash{6})
		return nil
	})
	goal(busied("/log", 25))
	list = append(list, Lie{Name: "log/agent that no head covers, after a piece that failed", Class: rest, Goal: kept, Tell: func(ctx context.Context, s *Stage) (Result, error) {
		if err := s.Evil.List(s.Evil.Agent("first", s.Bait)); err != nil {
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
		if err := s.Evil.Publish(); err != nil {
			return Result{}, err
		}
		wire, err := s.Evil.Sign(s.Evil.Agent("lie", s.Word)) // its seq is later than that of the head
		if err != nil {
			return Result{}, err
		}
		s.Evil.On("/log", func(w http.ResponseWriter, _ *http.Request) {
			_, head := s.Evil.Current()
			Lines(w, false, head, wire)
		})
		if _, err := s.Evil.Tell(ctx, s.Victim.Origin()); err != nil {
			return Result{}, err
		}
		if err := s.Faulted(); err != nil {
			return Result{}, err
		}
		s.Evil.On("/log", s.Evil.honest)
		if err := s.Evil.List(s.Evil.Agent("bait", s.Bait+"2")); err != nil {
			return Result{}, err
		}
		if err := s.Evil.Publish(); err != nil {
			return Result{}, err
		}
		if _, err := s.Evil.Tell(ctx, s.Victim.Origin()); err != nil {
			return Result{}, err
		}
		return Result{}, s.Until("the second bait is found", func() bool { return s.Victim.Finds(s.Bait + "2") })
	}}, Lie{Name: "log/2,100 agents that no head covers", Class: rest, Goal: found, Want: Want{Held: true}, Tell: func(ctx context.Context, s *Stage) (Result, error) {
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
		n := s.Evil.Asked("/leaves")
		for i := range 2100 {
			a := s.Evil.Agent(fmt.Sprint("lie-", i), s.Word)
			wire, err := s.Evil.Sign(a)
			if err != nil {
				return Result{}, err
			}
			s.Evil.Add(a, wire)
		}
		if err := s.Evil.Publish(); err != nil {
			return Result{}, err
		}
		if _, err := s.Evil.Tell(ctx, s.Victim.Origin()); err != nil {
			return Result{}, err
		}
		err := s.Until("it asks what is covered", func() bool { return s.Evil.Asked("/leaves") > n || s.Victim.Finds(s.Word) })
		return Result{}, err
	}})
	list = append(list, Lie{Name: "log/older agent after the newer", Class: "rollback", Goal: found, Tell: func(ctx context.Context, s *Stage) (Result, error) {
		old := s.Evil.Agent("same", s.Word)
		oldWire, err := s.Evil.Sign(old)
		if err != nil {
			return Result{}, err
		}
		if err := s.Evil.List(s.Evil.Agent("same", s.Bait)); err != nil {
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
		n := s.Evil.Asked("/log")
		forged := *old
		forged.Seq = s.Evil.Header(1).Seq
		s.Evil.Put(&forged, oldWire) // after the newer record, and in the tree
		if err := s.Evil.Publish(); err != nil {
			return Result{}, err
		}
		if _, err := s.Evil.Tell(ctx, s.Victim.Origin()); err != nil {
			return Result{}, err
		}
		return Result{}, s.Evil.Wait(ctx, "/log", n+1)
	}})

	// answers adds a lie with a wrong answer to the request for the log.
	answers := func(class, name, fault string, w Want, h func(s *Stage) http.HandlerFunc) {
		if fault != "" {
			w.Fault = strings.Split(fault, "|")
		}
		list = append(list, Lie{Name: name, Class: class, Goal: unblamed("/log"), Want: w, Tell: func(ctx context.Context, s *Stage) (Result, error) {
			word := s.Word
			if w.Held { // the record is true, only its transport is wrong
				word = s.Bait
			}
			if err := s.Evil.List(s.Evil.Agent("lie", word)); err != nil {
				return Result{}, err
			}
			// Until the lie is ready, the request must wait: a victim that compares heads now would get
			// the right log.
			var lie http.HandlerFunc
			ready := make(chan struct{})
			s.Evil.On("/log", func(w http.ResponseWriter, r *http.Request) {
				select {
				case <-ready:
					lie(w, r)
				case <-r.Context().Done():
				}
			})
			if err := s.Evil.Publish(); err != nil {
				return Result{}, err
			}
			lie = h(s)
			close(ready)
			if a, err := s.Evil.Tell(ctx, s.Victim.Origin()); err != nil || len(a.Unfit) > 0 {
				return Result{}, fmt.Errorf("the head is refused: %s %w", a.Body, err)
			}
			return Result{}, s.Evil.Wait(ctx, "/log", 1)
		}})
	}
	raw := func(name, fault, body string) {
		answers(shape, name, fault, Want{}, func(*Stage) http.HandlerFunc {
			return func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, body) }
		})
	}
	raw("log/nothing", "malformed", "")
	raw("log/garbage", "malformed|inconsistent", "\x00\x01\xff")
	raw("log/a page", "inconsistent", "<html>\n")
	raw("log/only line ends", "malformed|inconsistent", strings.Repeat("\n", 20_000))
	answers(shape, "log/cut off", "malformed", Want{Held: true}, func(s *Stage) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			lines := s.Evil.Log(r)
			Lines(w, false, lines[:len(lines)-1]...)
			w.Write(lines[len(lines)-1][:50])
		}
	})
	answers(shape, "log/too many lines", "malformed", Want{}, func(s *Stage) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			_, head := s.Evil.Current()
			Lines(w, false, slices.Concat([][]byte{head}, slices.Repeat([][]byte{[]byte("{}")}, 10_001))...)
		}
	})
	goal(readOut("inconsistent"))
	answers(shape, "log/without an end", "malformed|inconsistent", Want{Held: true}, func(s *Stage) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) { Lines(w, true, s.Evil.Log(r)...) }
	})
	goal(busied("/log", 25))
	answers(shape, "log/gzip bomb", "", Want{}, func(s *Stage) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			fmt.Fprintf(z, "%s\n", second(s.Evil.Current()))
			b := make([]byte, 1<<20)
			for range huge >> 20 {
				if _, err := z.Write(b); err != nil {
					return
				}
			}
			fmt.Fprintln(z) // an invalid line, so a victim that reads this far counts a fault
			z.Close()
		}
	})
	goal(readOut("inconsistent"))
	answers(shape, "log/4 GiB announced", "", Want{}, func(s *Stage) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "4294967296")
			fill(w, huge)
			s.Evil.swallowed.Store(true)
			panic(http.ErrAbortHandler) // abort, so that the server need not send 4 GiB
		}
	})
	goal(swallowed)
	answers(shape, "log/drop by drop", "", Want{}, func(s *Stage) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			s.Evil.mu.Lock()
			s.Evil.asked["/log"]++ // count the request now, because it ends late
			close(s.Evil.rung)
			s.Evil.rung = make(chan struct{})
			s.Evil.mu.Unlock()
			fmt.Fprint(w, "{")
			w.(http.Flusher).Flush()
			select {
			case <-time.After(patience):
				s.Evil.swallowed.Store(true)
			case <-r.Context().Done():
			}
		}
	})
	goal(Goal{"the victim waits for longer than it should", swallowed.Reached, 0})
	list[len(list)-1].Patience = patience
	answers(shape, "log/elsewhere by a redirect", "", Want{}, func(s *Stage) http.HandlerFunc {
		o := s.More()
		o.On("/log", func(w http.ResponseWriter, r *http.Request) { Lines(w, false, s.Evil.Log(r)...) })
		return func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, o.Origin+r.URL.RequestURI(), http.StatusTemporaryRedirect)
		}
	})
	goal(found)
	answers(rest, "log/begins with the head of another", "inconsistent", Want{}, func(s *Stage) http.HandlerFunc {
		o := s.More()
		return func(w http.ResponseWriter, r *http.Request) {
			_, head := o.Current()
			Lines(w, false, append([][]byte{head}, s.Evil.Log(r)[1:]...)...)
		}
	})
	answers(rest, "log/begins with no head", "inconsistent", Want{}, func(s *Stage) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) { Lines(w, false, s.Evil.Log(r)[1:]...) }
	})
	answers(rest, "log/out of order", "inconsistent", Want{Held: true}, func(s *Stage) http.HandlerFunc {
		late := s.Evil.Agent("late", s.Word)
		wire, _ := s.Evil.Sign(late) // an agent that the head does not cover
		return func(w http.ResponseWriter, r *http.Request) {
			lines := s.Evil.Log(r)
			first, _ := s.Evil.Sign(s.Evil.Head(new(record.Tree)))
			Lines(w, false, append([][]byte{first, wire}, lines[1:]...)...)
		}
	})
	goal(found)
	// The head covers an agent that no log has, so the victim must not show the agents it has until a
	// later head. After a restart a victim without the check would show them.
	list = append(list, Lie{Name: "log/head of a tree that is not there", Class: rest, Goal: found, Want: Want{Held: true}, Heavy: true, Tell: func(ctx context.Context, s *Stage) (Result, error) {
		if err := s.Evil.List(s.Evil.Agent("lie", s.Word)); err != nil {
			return Result{}, err
		}
		var t record.Tree
		t.Set(record.Hash{1}, record.Hash{2})
		h := s.Evil.Head(&t)
		wire, err := s.Evil.Sign(h)
		if err != nil {
			return Result{}, err
		}
		s.Evil.Show(wire)
		if _, err := s.Evil.Tell(ctx, s.Victim.Origin()); err != nil {
			return Result{}, err
		}
		return Result{}, nil
	}, Heard: func(s *Stage) error {
		err := s.Until("its leaves are held against it", func() bool { return s.Victim.Look(s.Evil.ID).Faults["inconsistent"] > 0 })
		s.Victim.Restart() // a restart forgets the counted faults
		return err
	}})
	list = append(list, Lie{Name: "log/50,001 agents", Class: "quota", Goal: pulled, Want: Want{Truncated: true}, Tell: func(ctx context.Context, s *Stage) (Result, error) {
		if err := s.Evil.List(s.Evil.Agent("lie", s.Word)); err != nil {
			return Result{}, err
		}
		var t record.Tree
		t.Set(record.Hash{1}, record.Hash{2})
		h := s.Evil.Head(&t)
		h.Count = 50_001
		wire, err := s.Evil.Sign(h)
		s.Evil.Show(wire)
		if err != nil {
			return Result{}, err
		}
		_, err = s.Evil.Tell(ctx, s.Victim.Origin())
		return Result{}, err
	}})

	// compared adds a lie with a wrong answer to the comparison of heads.
	compared := func(name, fault string, h func(s *Stage) http.HandlerFunc) {
		list = append(list, Lie{Name: name, Class: shape, Goal: unblamed("/heads/diff"), Want: Want{Fault: []string{fault}}, Tell: func(ctx context.Context, s *Stage) (Result, error) {
			s.Evil.On("/heads/diff", h(s))
			return Result{}, s.compare(ctx)
		}})
	}
	diff := func(name, fault, body string) {
		compared(name, fault, func(*Stage) http.HandlerFunc {
			return func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, body) }
		})
	}
	diff("heads/garbage", "malformed", "[[[")
	diff("heads/member twice", "malformed", `{"heads":[],"heads":[]}`)
	diff("heads/1,001", "size", `{"heads":[`+strings.TrimSuffix(strings.Repeat(`{"head":{}},`, 1001), ",")+`]}`)
	goal(readOut("envelope"))
	diff("heads/no records", "envelope", `{"heads":[{"head":{}}]}`)
	return list
}
