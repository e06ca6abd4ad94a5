package replication_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/federation"
	"agentsite/internal/record"
	"agentsite/internal/testing/federationtest"
	"agentsite/internal/testing/recordtest"
)

// altered lets next answer, and changes the lines of what is asked about path.
func altered(w http.ResponseWriter, r *http.Request, next http.Handler, path string, change func(lines [][]byte) [][]byte) {
	if !strings.HasSuffix(r.URL.Path, path) {
		next.ServeHTTP(w, r)
		return
	}
	r.Header.Del("Accept-Encoding")
	rec := httptest.NewRecorder()
	next.ServeHTTP(rec, r)
	for name, v := range rec.Header() {
		w.Header()[name] = v
	}
	w.WriteHeader(rec.Code)
	lines := bytes.SplitAfter(rec.Body.Bytes(), []byte("\n"))
	for _, line := range change(lines[:len(lines)-1]) {
		w.Write(line)
	}
}

// dark cuts a portal off.
func (w *world) dark(n *node) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = func(from, to *node) bool { return from == n || to == n }
}

func (w *world) light() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = nil
}

func TestSyncer_DetectsWhatALiarLeavesOut(t *testing.T) {
	t.Parallel()
	seeds := uint64(2)
	if os.Getenv("AGENTSITE_TEST_FULL") != "" {
		seeds = 5
	}
	for seed := range seeds {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			defer w.end()
			honest := w.add()
			honest.register(names("a", 1000)...)
			honest.publish()
			liar := w.add(honest)
			w.until(time.Minute, "settled", w.settled)
			drop := rand.New(rand.NewPCG(seed, 1)).IntN(1000)
			var told atomic.Bool
			liar.lie = func(rw http.ResponseWriter, r *http.Request, next http.Handler) {
				if strings.Contains(r.URL.Path, string(honest.ID)) {
					altered(rw, r, next, "/log", func(lines [][]byte) [][]byte {
						if len(lines) < 1001 {
							return lines
						}
						told.Store(true)
						return append(lines[:1+drop:1+drop], lines[2+drop:]...)
					})
					return
				}
				next.ServeHTTP(rw, r)
			}
			// The newcomer can ask the liar alone until the log is in. Then the portal is back, and its log has
			// the entry.
			honest.lie = func(rw http.ResponseWriter, r *http.Request, next http.Handler) {
				if strings.HasSuffix(r.URL.Path, "/log") && !told.Load() {
					rw.WriteHeader(http.StatusServiceUnavailable)
					return
				}
				next.ServeHTTP(rw, r)
			}
			c := w.add(liar)
			w.until(10*time.Second, "whole", func() bool { return c.holds(honest) })
			if got := c.faults(liar)["omitted"]; got != 1 {
				t.Errorf("seed %d: %d faults for leaving out entry %d", seed, got, drop)
			}
			if got := c.faults(honest)["omitted"]; got != 0 {
				t.Errorf("seed %d: the portal itself is blamed", seed)
			}
		})
	}
}

func TestSyncer_GoesOnWhereItWasKilled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.end()
		a := w.add()
		a.register(names("a", 3000)...)
		a.publish()
		var mu sync.Mutex // guards asked
		asked := []string{}
		a.lie = func(rw http.ResponseWriter, r *http.Request, next http.Handler) {
			if strings.HasSuffix(r.URL.Path, "/log") {
				mu.Lock()
				asked = append(asked, r.URL.Query().Get("after"))
				third := len(asked) == 3
				mu.Unlock()
				q := r.URL.Query()
				q.Set("limit", "1000")
				r.URL.RawQuery = q.Encode()
				if third {
					<-r.Context().Done() // it is killed here
					return
				}
			}
			next.ServeHTTP(rw, r)
		}
		b := w.add(a)
		w.until(time.Minute, "in the middle", func() bool {
			mu.Lock()
			defer mu.Unlock()
			return len(asked) == 3
		})
		b.halt()
		if n := b.directory.size(); n != 0 {
			t.Errorf("%d agents are shown of a log that is not whole", n)
		}
		b.start(a)
		w.until(time.Minute, "whole", func() bool { return b.holds(a) && b.directory.size() == 3000 })
		mu.Lock()
		defer mu.Unlock()
		if len(asked) < 4 || asked[3] != asked[2] || asked[3] == "0" {
			t.Errorf("asked after %v: not from where it was", asked)
		}
	})
}

func TestSyncer_TakesAnotherSourceWhenOneDies(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.end()
		a := w.add()
		a.register(names("a", 3000)...)
		a.publish()
		b := w.add(a)
		w.until(time.Minute, "settled", w.settled)
		var n atomic.Int64
		b.lie = func(rw http.ResponseWriter, r *http.Request, next http.Handler) {
			if strings.HasSuffix(r.URL.Path, "/log") && strings.Contains(r.URL.Path, string(a.ID)) {
				if n.Add(1) > 1 {
					<-r.Context().Done()
					return
				}
				q := r.URL.Query()
				q.Set("limit", "1000")
				r.URL.RawQuery = q.Encode()
			}
			next.ServeHTTP(rw, r)
		}
		c := w.add(b)
		w.until(time.Minute, "whole", func() bool { return c.holds(a) })
	})
}

func TestSyncer_DropsWhatTheHeadDoesNotCover(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.end()
		a := w.add()
		a.register("x", "y")
		a.publish()
		b, c := w.add(a), w.add(a)
		w.until(time.Minute, "settled", w.settled)
		w.dark(c)
		a.unregister("x")
		a.publish()
		w.until(time.Minute, "followed", func() bool { return b.holds(a) })
		// b keeps the tombstone back, so that c goes on to show what is gone.
		hide := func(rw http.ResponseWriter, r *http.Request, next http.Handler) {
			if !strings.Contains(r.URL.Path, string(a.ID)) {
				next.ServeHTTP(rw, r)
				return
			}
			altered(rw, r, next, "/log", func(lines [][]byte) [][]byte { return lines[:1] })
		}
		b.lie, a.lie = hide, hide
		w.light()
		w.until(2*time.Minute, "followed", func() bool { return c.holds(a) })
		if c.directory.has(a.id("x")) {
			t.Error("it still shows what is gone")
		}
	})
}

func TestSyncer_NewEpochReplacesWhatWas(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.end()
		a := w.add()
		a.register("x", "y")
		a.publish()
		b := w.add(a)
		w.until(time.Minute, "settled", w.settled)
		a.halt()
		*a.replica = federationtest.Replica{}
		a.admit(a.Sign(t, a.Card()))
		a.card, _ = a.replica.Card(t.Context(), a.ID)
		a.tree = record.Tree{}
		a.Epoch, a.Seq = time.Now().UnixMilli(), 0
		a.register("y", "z")
		a.start()
		a.publish()
		w.until(3*time.Minute, "followed", func() bool { return b.holds(a) && !b.directory.has(a.id("x")) && b.directory.has(a.id("z")) })
	})
}

func TestSyncer_FollowsAPortalThatMoves(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.end()
		a := w.add()
		a.register("x")
		a.publish()
		b, c := w.add(a), w.add(a)
		w.until(time.Minute, "settled", w.settled)
		// The old address is gone at once; only c is told of the new one.
		w.mu.Lock()
		delete(w.at, a.origin)
		a.origin = "https://moved.example"
		w.at[a.origin] = a
		w.mu.Unlock()
		a.Now = time.Now().UnixMilli()
		card := a.Portal.Card()
		card.Origin = a.origin
		r := a.Sign(t, card)
		a.admit(r)
		a.card = r.Wire
		a.register("y")
		a.publish()
		head, _ := a.replica.Head(t.Context(), a.ID)
		if _, err := c.syncer.Take(t.Context(), a.ID, []federation.Told{{Card: r.Wire, Head: head}}); err != nil {
			t.Fatal(err)
		}
		w.until(3*time.Minute, "followed", func() bool { return b.holds(a) && c.holds(a) })
	})
}

func TestSyncer_IgnoresAnOldHead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.end()
		a := w.add()
		a.register("x")
		a.publish()
		old, _ := a.replica.Head(t.Context(), a.ID)
		a.register("y")
		a.publish()
		b := w.add(a)
		w.until(time.Minute, "settled", w.settled)
		refused, err := b.syncer.Take(t.Context(), a.ID, []federation.Told{{Head: old}})
		if err != nil || len(refused) != 0 {
			t.Errorf("refused %v, %v", refused, err)
		}
		// As a log too.
		a.lie = func(rw http.ResponseWriter, r *http.Request, next http.Handler) {
			altered(rw, r, next, "/log", func(lines [][]byte) [][]byte { return append([][]byte{append(bytes.Clone(old), '\n')}, lines[1:]...) })
		}
		a.register("z")
		a.publish()
		time.Sleep(time.Minute)
		synctest.Wait()
		if b.directory.has(a.id("z")) {
			t.Error("a log with an old head was taken")
		}
		a.lie = nil
		w.until(11*time.Minute, "followed", func() bool { return b.holds(a) })
	})
}

func TestSyncer_QuarantinesWhoSignsTwoHeads(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.end()
		a := w.add()
		a.register("x")
		a.publish()
		b, c := w.add(a), w.add(a)
		w.until(time.Minute, "settled", w.settled)
		a.Now = time.Now().UnixMilli()
		one := a.Portal.Head(&a.tree)
		two := *one
		two.Count, two.Root = 0, new(record.Tree).Root()
		r1, r2 := a.Sign(t, one), a.Sign(t, &two)
		for _, r := range []*record.Record{r1, r2} {
			if _, err := b.syncer.Take(t.Context(), a.ID, []federation.Told{{Head: r.Wire}}); err != nil {
				t.Fatal(err)
			}
		}
		forks, err := b.replica.Others(t.Context(), []record.Type{record.TypeFork}, 0, 10)
		if err != nil || len(forks) != 1 {
			t.Fatalf("%d proofs, %v", len(forks), err)
		}
		fork, err := record.Open(recordtest.Network, forks[0].Wire)
		if err != nil || fork.Portal != b.ID || fork.Body.(*record.Fork).Subject != a.ID {
			t.Fatal(fork, err)
		}
		// Another portal needs nobody's word for it.
		if _, _, err := c.gate.Admit(t.Context(), fork.Wire, time.Now()); err != nil {
			t.Error(err)
		}
		rec := httptest.NewRecorder()
		ctx := context.WithValue(t.Context(), askedBy{}, c)
		b.door.ServeHTTP(rec, httptest.NewRequestWithContext(ctx, "GET", "/peering/v1/portals/"+string(a.ID)+"/log", nil))
		if rec.Code != http.StatusNotFound {
			t.Errorf("the log of a portal that lied is served with status %d", rec.Code)
		}
	})
}

func TestSyncer_SurvivesGarbage(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("x", 5<<20)
	for name, answer := range map[string]func(http.ResponseWriter, *http.Request, http.Handler){
		"nothing":  func(http.ResponseWriter, *http.Request, http.Handler) {},
		"text":     func(w http.ResponseWriter, _ *http.Request, _ http.Handler) { fmt.Fprint(w, "hello\nworld\n") },
		"one line": func(w http.ResponseWriter, _ *http.Request, _ http.Handler) { fmt.Fprint(w, big) },
		"lines": func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
			fmt.Fprint(w, strings.Repeat("{}\n", 1<<20))
		},
		"deep": func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
			fmt.Fprint(w, strings.Repeat("[", 100_000))
		},
		"refusal": func(w http.ResponseWriter, _ *http.Request, _ http.Handler) { refuse(w, 403, big) },
		"wait long": func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
			w.Header().Set("Retry-After", "99999999999")
			refuse(w, 429, "limit")
		},
		"endless": func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			w.Header().Set("Agentsite-More", "true")
			next.ServeHTTP(w, r)
		},
		"mute": func(_ http.ResponseWriter, r *http.Request, _ http.Handler) { <-r.Context().Done() },
		"no keys": func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
			fmt.Fprint(w, `{"heads":[{"head":{}},{"head":null},{}],"behind":["ffffffffffffffff"]}`)
		},
		"others": func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			altered(w, r, next, "/log", func(lines [][]byte) [][]byte {
				o := recordtest.NewPortal("stranger")
				o.Now = time.Now().UnixMilli()
				r, err := record.Sign(recordtest.Network, o.Agent("x"), o.Op)
				if err != nil {
					return lines
				}
				return append(lines, append(r.Wire, '\n'))
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				defer w.end()
				a := w.add()
				evil := w.add(a)
				b := w.add(a)
				w.until(time.Minute, "settled", w.settled)
				evil.lie = answer
				evil.register("e")
				evil.publish()
				for i := range 10 {
					a.register(fmt.Sprintf("x%d", i))
					a.publish()
					w.until(15*time.Second, "followed", func() bool { return b.holds(a) })
					time.Sleep(30 * time.Second)
				}
			})
		})
	}
}

func TestSyncer_HasNothingToDoWithWhomIsDenied(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.end()
		a := w.add()
		bad := w.add(a)
		bad.register("e")
		bad.publish()
		b := w.add(a)
		w.until(time.Minute, "settled", w.settled)
		if !a.directory.has(bad.id("e")) {
			t.Fatal("it was not there at all")
		}
		a.registry.Say(bad.ID, federation.Decision{State: federation.Denied, Reason: "no"})
		if err := a.syncer.Drop(t.Context(), bad.ID); err != nil {
			t.Fatal(err)
		}
		if n, _, _ := a.replica.Holding(t.Context(), bad.ID); n != 0 || a.directory.has(bad.id("e")) {
			t.Error("it is still held")
		}
		rec := httptest.NewRecorder()
		ctx := context.WithValue(t.Context(), askedBy{}, b)
		for _, path := range []string{"/portals/" + string(bad.ID) + "/head", "/portals/" + string(bad.ID) + "/log", "/agents/" + string(bad.ID) + "/e"} {
			a.door.ServeHTTP(rec, httptest.NewRequestWithContext(ctx, "GET", "/peering/v1"+path, nil))
			if rec.Code != http.StatusNotFound {
				t.Errorf("%s answers %d", path, rec.Code)
			}
		}
		var asked atomic.Int64
		bad.lie = func(rw http.ResponseWriter, r *http.Request, next http.Handler) {
			if r.Context().Value(askedBy{}) == a {
				asked.Add(1)
			}
			next.ServeHTTP(rw, r)
		}
		bad.register("f")
		bad.publish()
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if n, _, _ := a.replica.Holding(t.Context(), bad.ID); n != 0 || asked.Load() != 0 {
			t.Errorf("%d agents of it are held, it was asked %d times", n, asked.Load())
		}
		if !b.holds(bad) {
			t.Error("others do not hold it any more")
		}
		a.registry.Say(bad.ID, federationtest.In)
		w.until(5*time.Minute, "back", func() bool { return a.holds(bad) && a.directory.has(bad.id("f")) })
	})
}

func TestSyncer_KeepsWhatIsHeldOfWhomIsOutForATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.end()
		a := w.add()
		b := w.add(a)
		b.register("x", "y")
		b.publish()
		w.until(time.Minute, "settled", w.settled)
		a.registry.Say(b.ID, federation.Decision{State: federation.Denied, Reason: "refused for an hour", Keep: true})
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if n, _, _ := a.replica.Holding(t.Context(), b.ID); n != 2 {
			t.Errorf("%d agents of it are held", n)
		}
	})
}

// Who is denied and let in again while its log is pulled is held whole in the
// end, and not passed on before.
func TestSyncer_DropsBesideAPull(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.end()
		a := w.add()
		b := w.add(a)
		b.register("x", "y", "z")
		b.publish()
		w.until(time.Minute, "settled", w.settled)
		var done atomic.Bool
		b.lie = func(rw http.ResponseWriter, r *http.Request, next http.Handler) {
			next.ServeHTTP(rw, r)
			if !done.Load() && strings.HasSuffix(r.URL.Path, "/log") {
				done.Store(true) // the answer is on its way
				a.registry.Say(b.ID, federation.Decision{State: federation.Denied, Reason: "no"})
				if err := a.syncer.Drop(t.Context(), b.ID); err != nil {
					t.Error(err)
				}
				a.registry.Say(b.ID, federationtest.In)
			}
		}
		b.register("new")
		b.publish()
		w.until(5*time.Minute, "asked", done.Load)
		w.until(5*time.Minute, "held again", func() bool { return a.holds(b) && a.directory.has(b.id("x")) && a.directory.has(b.id("new")) })
	})
}

func TestSyncer_KeepsNothingAboveTheQuota(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.end()
		a := w.add()
		a.register(names("a", 20)...)
		a.publish()
		b := w.add()
		d := federationtest.In
		d.MaxAgents = 10
		b.registry.Say(a.ID, d)
		b.registry.Heard(a.origin, "")
		w.until(time.Minute, "truncated", func() bool {
			list := b.registry.Portals(t.Context())
			return len(list) == 1 && list[0].Truncated && list[0].Listed == 20
		})
		if n := b.directory.size(); n != 0 {
			t.Errorf("%d agents are shown", n)
		}
		d.MaxAgents = 30
		b.registry.Say(a.ID, d)
		a.register("one-more")
		a.publish()
		w.until(2*time.Minute, "whole", func() bool { return b.holds(a) && b.directory.size() == 21 })
	})
}

func TestSyncer_OneBadRecordIsSkipped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.end()
		a := w.add()
		a.register(names("a", 10)...)
		a.publish()
		// Nobody ever gets one of them as it was signed.
		spoil := func(lines [][]byte) [][]byte {
			for i, line := range lines {
				if r, err := record.Open(recordtest.Network, bytes.TrimSuffix(line, []byte("\n"))); err == nil && r.Type == record.TypeAgent && r.Body.(*record.Agent).ID == "a3" {
					lines[i] = bytes.Replace(line, []byte(`"s":"`), []byte(`"s":"AAAA`), 1)
				}
			}
			return lines
		}
		a.lie = func(rw http.ResponseWriter, r *http.Request, next http.Handler) {
			path := "/log"
			if strings.HasSuffix(r.URL.Path, "/agents") {
				path = "/agents"
			}
			altered(rw, r, next, path, spoil)
		}
		b := w.add(a)
		w.until(time.Minute, "nine held", func() bool { return b.directory.size() == 9 })
		// What comes later comes.
		a.register("b")
		a.publish()
		w.until(time.Minute, "ten held", func() bool { return b.directory.size() == 10 })
		if got := b.faults(a)["omitted"]; got != 0 {
			t.Errorf("%d faults for leaving out what was there, but spoilt", got)
		}
		a.lie = nil
		w.until(2*time.Hour, "mended", func() bool { return b.holds(a) && b.directory.size() == 11 })
	})
}

// A log that never adds up costs its source one whole log and one list of leaves an hour.
func TestSyncer_ReadsWholeLogSeldom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.end()
		a := w.add()
		a.register(names("a", 10)...)
		a.publish()
		var whole, leaves atomic.Int64
		a.lie = func(rw http.ResponseWriter, r *http.Request, next http.Handler) {
			switch {
			case strings.HasSuffix(r.URL.Path, "/leaves"):
				leaves.Add(1)
			case strings.HasSuffix(r.URL.Path, "/log") && r.URL.Query().Get("after") == "0":
				whole.Add(1)
			}
			altered(rw, r, next, "/log", func(lines [][]byte) [][]byte {
				return slices.DeleteFunc(lines, func(line []byte) bool {
					r, err := record.Open(recordtest.Network, bytes.TrimSuffix(line, []byte("\n")))
					return err == nil && r.Type == record.TypeAgent && r.Body.(*record.Agent).ID == "a3"
				})
			})
		}
		b := w.add(a)
		w.until(time.Minute, "nine held", func() bool { return b.directory.size() == 9 })
		began := time.Now()
		for i := range 36 { // every five minutes for three hours
			time.Sleep(5 * time.Minute)
			a.register(fmt.Sprint("b", i))
			a.publish()
			w.until(time.Minute, "the new one held", func() bool { return b.directory.size() == 10+i })
		}
		hours := int64(time.Since(began)/time.Hour) + 1
		if whole.Load() > hours || leaves.Load() > hours {
			t.Errorf("in %d hours it read %d whole logs and %d times the leaves", hours, whole.Load(), leaves.Load())
		}
		if got := b.faults(a)["omitted"]; got != 0 {
			t.Errorf("%d faults for an omission that nothing proves", got)
		}
	})
}

// A hint that brings a stranger's card where that of a known portal should be
// has nothing of it kept: its origin was not asked.
func TestSyncer_KeepsNoCardOfAnother(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.end()
		a := w.add()
		a.register("x")
		a.publish()
		b := w.add(a)
		w.until(time.Minute, "settled", w.settled)
		stranger := recordtest.NewPortal("stranger")
		stranger.Now = clock.Now().UnixMilli()
		stranger.Epoch = stranger.Now
		head, _ := a.replica.Head(t.Context(), a.ID)
		for _, r := range []*record.Record{stranger.Sign(t, stranger.Card()), a.Sign(t, a.Agent("hidden"))} {
			refused, err := b.syncer.Take(t.Context(), a.ID, []federation.Told{{Card: r.Wire, Head: head}})
			if err != nil || len(refused) != 1 {
				t.Errorf("a %s in place of a card: %v %v", r.Type, refused, err)
			}
		}
		if card, _ := b.replica.Card(context.Background(), stranger.ID); card != nil {
			t.Error("the card of a stranger is kept")
		}
		if wire, _ := b.replica.Agent(context.Background(), a.ID, record.AgentKey(a.id("hidden"))); wire != nil {
			t.Error("an agent came in past the log and its quota")
		}
	})
}
