package evil_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"agentsite/internal/app"
	"agentsite/internal/record"
	"agentsite/internal/testing/apptest"
	"agentsite/internal/testing/evil"
)

// TestMain runs many tests at once: most of a lie is waiting for its consequence.
func TestMain(m *testing.M) { os.Exit(apptest.Main(m)) }

// late is how long a consequence may take before it counts as missing: EVIL_LATE
// or two minutes, which is long because a busy machine must not fail a test.
func late() time.Duration {
	if d, err := time.ParseDuration(os.Getenv("EVIL_LATE")); err == nil {
		return d
	}
	return apptest.WaitTime
}

// honest is a portal that runs as it should.
type honest struct {
	t     testing.TB
	p     *apptest.Portal
	op    *apptest.Client
	guest *apptest.Client
	agent string
	id    record.PortalID

	mu    sync.Mutex // guards calls
	calls []string   // what its agent was given
}

func start(t testing.TB, join ...string) *honest {
	t.Helper()
	h := &honest{t: t, p: apptest.Start(t, func(c *app.Config) { c.Join = strings.Join(join, ",") })}
	h.op, h.guest = h.p.Operator(t, "op"), h.p.Guest(t)
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(io.LimitReader(r.Body, 1<<20)) // what came of it
		h.mu.Lock()
		h.calls = append(h.calls, string(b))
		h.mu.Unlock()
		http.NotFound(w, r)
	}))
	t.Cleanup(model.Close)
	h.agent = h.op.Agent("public", model.URL)
	var who struct{ Portal record.PortalID }
	h.guest.Get(http.MethodGet, "/.well-known/agentsite", nil, http.StatusOK, &who)
	h.id = who.Portal
	return h
}

func (h *honest) Origin() string      { return h.p.URL() }
func (h *honest) ID() record.PortalID { return h.id }
func (h *honest) Agent() string       { return h.agent }

type peer struct {
	ID, State, URL string
	ProvedAt       string `json:"proved_at"`
	Truncated      bool
	Faults         map[string]int
}

func (h *honest) peers() []peer {
	h.t.Helper()
	var out struct{ Peers []peer }
	h.op.Get(http.MethodGet, "/api/v1/peers?limit=1000", nil, http.StatusOK, &out)
	return out.Peers
}

func (h *honest) Look(id record.PortalID) evil.Look {
	a := h.op.Do(http.MethodGet, "/api/v1/peers/"+string(id), nil)
	var p struct{ Peer *peer }
	var flat peer
	json.Unmarshal([]byte(a.Body), &p)
	json.Unmarshal([]byte(a.Body), &flat)
	if p.Peer != nil {
		flat = *p.Peer
	}
	return evil.Look{Known: a.Status == http.StatusOK, State: flat.State, URL: flat.URL, Proved: flat.ProvedAt != "", Truncated: flat.Truncated, Faults: flat.Faults}
}

func (h *honest) Known(word string) (n int) {
	h.t.Helper()
	for _, p := range h.peers() {
		if strings.Contains(p.URL, word) {
			n++
		}
	}
	return n
}

func (h *honest) Finds(word string) bool {
	h.t.Helper()
	var out struct{ Results []json.RawMessage }
	h.guest.Get(http.MethodGet, "/api/v1/search?q="+word, nil, http.StatusOK, &out)
	for _, r := range out.Results {
		if strings.Contains(string(r), word) {
			return true
		}
	}
	return false
}

// Restart stops the portal in order and starts it on the same address.
func (h *honest) Restart() {
	h.t.Helper()
	addr, dir := h.p.Addr().String(), h.p.Dir
	h.p.Stop()
	h.p = apptest.Start(h.t, func(c *app.Config) { c.Listen, c.Data = addr, dir })
	h.op, h.guest = h.p.LogIn(h.t, "op"), h.p.Guest(h.t)
}

// records calls f with all records that are on disk, as they were signed, until
// it returns false.
func (h *honest) records(f func(payload string) bool) (n int, err error) {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(h.p.Dir, "replica.db")+"?mode=ro")
	if err != nil {
		return 0, err
	}
	defer db.Close()
	rows, err := db.Query("SELECT wire FROM wires UNION ALL SELECT wire FROM said WHERE wire IS NOT NULL")
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	for rows.Next() {
		var wire []byte
		if err := rows.Scan(&wire); err != nil {
			return n, err
		}
		n++
		if payload, _ := evil.Parts(wire); !f(string(payload)) {
			return n, nil
		}
	}
	return n, rows.Err()
}

// keeps demands that no record on disk has one of the words.
func (h *honest) keeps(t *testing.T, words ...string) {
	t.Helper()
	n, err := h.records(func(payload string) bool {
		for _, w := range words {
			if strings.Contains(payload, w) {
				t.Errorf("SUCCEEDED: the replica keeps %.300s", payload)
			}
		}
		return true
	})
	if err != nil || n == 0 {
		t.Errorf("%d records in the replica, %v", n, err)
	}
}

// Keeps reports whether a record on disk has the word.
func (h *honest) Keeps(word string) (has bool) {
	h.t.Helper()
	_, err := h.records(func(payload string) bool {
		has = has || strings.Contains(payload, word)
		return !has
	})
	if err != nil {
		h.t.Error(err)
	}
	return has
}

// Called reports whether its agent was given the word.
func (h *honest) Called(word string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.ContainsFunc(h.calls, func(c string) bool { return strings.Contains(c, word) })
}

func wait(what string, ok func() bool) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for end := time.After(late()); ; {
		if ok() {
			return nil
		}
		select {
		case <-tick.C:
		case <-end:
			return fmt.Errorf("after %v it is not so that %s", late(), what)
		}
	}
}

// stage is where a lie is told to the victim.
func stage(t *testing.T, l evil.Lie, victim, neighbour *honest, n int) *evil.Stage {
	t.Helper()
	more := func() *evil.Portal {
		p, err := evil.New(app.DefaultNetwork)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Close)
		return p
	}
	return &evil.Stage{Network: app.DefaultNetwork, Evil: more(), Victim: victim, Honest: neighbour, Word: fmt.Sprintf("zqlie%dx", n), Bait: fmt.Sprintf("zqbait%dx", n), More: more, Until: wait}
}

// tell tells a lie.
func tell(ctx context.Context, t *testing.T, l evil.Lie, s *evil.Stage) evil.Result {
	t.Helper()
	if !l.Stranger {
		if a, err := s.Evil.Hello(ctx, s.Victim.Origin()); err != nil || a.Status != http.StatusOK {
			t.Fatalf("no hello: %d %s %v", a.Status, a.Body, err)
		}
	}
	r, err := l.Tell(ctx, s)
	if errors.Is(err, evil.ErrNotHere) {
		fmt.Printf("\nNOT HERE: %s: %v\n", l.Name, err)
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// one tells a lie to a portal that misses no check.
func one(t *testing.T, l evil.Lie, victim, neighbour *honest, n int) (word string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*apptest.WaitTime)
	defer cancel()
	s := stage(t, l, victim, neighbour, n)
	r := tell(ctx, t, l, s)
	if l.Heard != nil {
		if err := l.Heard(s); err != nil {
			t.Fatal(err)
		}
	}
	if what := s.Judge(l, r); what != "" {
		t.Error(what)
	}
	// What is shown for a moment is taken back.
	lost := func() bool {
		ok, err := l.Goal.Reached(ctx, s, r)
		return !ok || err != nil
	}
	if err := wait("the lie fails", lost); err != nil {
		t.Errorf("SUCCEEDED: %s", l.Goal.What)
	}
	if os.Getenv("EVIL_SAY") != "" && !t.Failed() {
		fmt.Printf("\nREFUSED: %s\n", l.Name)
	}
	return s.Word
}

// TestLies tells every lie to a portal that has an honest neighbour, and then
// looks whether anything of them is left. EVIL names those to tell, with bars
// between them; all without it.
func TestLies(t *testing.T) {
	t.Parallel()
	neighbour, victim := pair(t)
	var mu sync.Mutex // guards words and kept
	var words, kept []string
	t.Run("all", func(t *testing.T) {
		for n, l := range evil.All() {
			if !chosen(l.Name) || l.Heavy {
				continue
			}
			t.Run(l.Name, func(t *testing.T) {
				t.Parallel()
				word := one(t, l, victim, neighbour, n)
				mu.Lock()
				defer mu.Unlock()
				words = append(words, word)
				if !l.Want.Held {
					kept = append(kept, word)
				}
			})
		}
	})
	for _, w := range words {
		if victim.Finds(w) {
			t.Errorf("SUCCEEDED: %s is found in the end", w)
		}
	}
	victim.keeps(t, kept...)
	unharmed(t, victim, neighbour)
}

// unharmed demands that the honest portals still find each other's agents, and
// that the victim holds nothing against its neighbour.
func unharmed(t *testing.T, victim, neighbour *honest) {
	t.Helper()
	if err := wait("the honest portals see each other's agents still", func() bool { return see(victim, neighbour) }); err != nil {
		t.Error(err)
	}
	if s := victim.Look(neighbour.id); s.State != "active" || len(s.Faults) > 0 {
		t.Errorf("SUCCEEDED: an honest portal suffers: %+v", s)
	}
}

// pair starts two honest portals that see each other.
func pair(t *testing.T) (neighbour, victim *honest) {
	t.Helper()
	neighbour = start(t)
	victim = start(t, neighbour.Origin())
	if err := wait("the two find each other's agents", func() bool { return see(victim, neighbour) }); err != nil {
		t.Fatal(err)
	}
	return neighbour, victim
}

func see(a, b *honest) bool { return a.Finds(b.agent) && b.Finds(a.agent) }

// TestLies_Heavy tells those that need a victim of their own.
func TestLies_Heavy(t *testing.T) {
	t.Parallel()
	for n, l := range evil.All() {
		if !chosen(l.Name) || !l.Heavy {
			continue
		}
		t.Run(l.Name, func(t *testing.T) {
			t.Parallel()
			neighbour, victim := pair(t)
			if word := one(t, l, victim, neighbour, 1000+n); !l.Want.Held {
				victim.keeps(t, word)
			}
			unharmed(t, victim, neighbour)
		})
	}
}

// TestLies_Unchecked is for bench/evil, which builds it without checks. It tells
// the lies that EVIL names and says of each whether its goal is seen reached.
func TestLies_Unchecked(t *testing.T) {
	if os.Getenv("EVIL_UNCHECKED") == "" {
		t.Skip("EVIL_UNCHECKED is not set")
	}
	var neighbour, victim *honest
	t.Run("all", func(t *testing.T) {
		for n, l := range evil.All() {
			if !chosen(l.Name) {
				continue
			}
			if !l.Heavy && !l.Alone && victim == nil {
				neighbour, victim = pair(t)
			}
			t.Run(l.Name, func(t *testing.T) {
				t.Parallel()
				neighbour, victim := neighbour, victim
				if l.Heavy || l.Alone {
					neighbour, victim = pair(t)
				}
				ctx, cancel := context.WithTimeout(t.Context(), 2*apptest.WaitTime)
				defer cancel()
				s := stage(t, l, victim, neighbour, n)
				r := tell(ctx, t, l, s)
				won, err := s.Won(ctx, l, r, late()+l.Patience)
				if !won {
					t.Fatalf("not so: %s; status %d, %q, refused %q, %+v, %v", l.Goal.What, r.Status, r.Reason, r.Unfit, victim.Look(s.Evil.ID), err)
				}
				fmt.Printf("\nSUCCEEDED: %s\n", l.Name)
			})
		}
	})
}

// chosen reports whether EVIL names a lie.
func chosen(name string) bool {
	list := os.Getenv("EVIL")
	return list == "" || slices.Contains(strings.Split(list, "|"), name)
}

// TestAll demands that there are as many as are said, each once, with a goal to
// be judged by and with what stops it.
func TestAll(t *testing.T) {
	t.Parallel()
	seen := make(map[string]bool)
	classes := make(map[string]int)
	for _, l := range evil.All() {
		if seen[l.Name] || l.Class == "" || l.Tell == nil || l.Goal.What == "" || l.Goal.Reached == nil {
			t.Errorf("%q", l.Name)
		}
		checks := slices.Clone(l.Stops)
		slices.Sort(checks)
		if (len(checks) == 0) == (l.Unshown == "") || len(slices.Compact(checks)) != len(l.Stops) {
			t.Errorf("%q is stopped by %q, or not: %s", l.Name, l.Stops, l.Unshown)
		}
		seen[l.Name] = true
		classes[l.Class]++
	}
	if len(seen) < 60 {
		t.Errorf("only %d lies", len(seen))
	}
	t.Log(len(seen), "lies:", classes)
}
