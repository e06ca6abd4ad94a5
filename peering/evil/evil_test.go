package evil_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"agentsite/internal/app"
	"agentsite/internal/app/apptest"
	"agentsite/internal/record"
	"agentsite/peering/evil"
)

// late is how long a consequence may take before it counts as missing: EVIL_LATE
// or half a minute.
func late() time.Duration {
	if d, err := time.ParseDuration(os.Getenv("EVIL_LATE")); err == nil {
		return d
	}
	return 30 * time.Second
}

// honest is a portal that runs as it should.
type honest struct {
	t     testing.TB
	p     *apptest.Portal
	op    *apptest.Client
	guest *apptest.Client
	agent string
	id    record.PortalID
}

func start(t testing.TB, join ...string) *honest {
	t.Helper()
	h := &honest{t: t, p: apptest.Start(t, func(c *app.Config) { c.Join = strings.Join(join, ",") })}
	h.op, h.guest = h.p.Operator(t, "op"), h.p.Guest(t)
	model := httptest.NewServer(http.NotFoundHandler())
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
	h.op.Get(http.MethodGet, "/api/v1/peers", nil, http.StatusOK, &out)
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

func (h *honest) Known() int { return len(h.peers()) }

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

// keeps looks for a word in all records that are on disk.
func (h *honest) keeps(t *testing.T, words ...string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(h.p.Dir, "replica.db")+"?mode=ro")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rows, err := db.Query("SELECT wire FROM wires UNION ALL SELECT wire FROM said WHERE wire IS NOT NULL")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	n := 0
	for rows.Next() {
		var wire []byte
		if err := rows.Scan(&wire); err != nil {
			t.Fatal(err)
		}
		n++
		payload, _ := evil.Parts(wire)
		for _, w := range words {
			if strings.Contains(string(payload), w) {
				t.Errorf("SUCCEEDED: the replica keeps %.300s", payload)
			}
		}
	}
	if err := rows.Err(); err != nil || n == 0 {
		t.Errorf("%d records in the replica, %v", n, err)
	}
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

// one tells a lie.
func one(t *testing.T, l evil.Lie, victim, neighbour *honest, n int) (word string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	more := func() *evil.Portal {
		p, err := evil.New(app.DefaultNetwork)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Close)
		return p
	}
	s := &evil.Stage{Network: app.DefaultNetwork, Evil: more(), Victim: victim, Honest: neighbour, Word: fmt.Sprintf("zqlie%dx", n), Bait: fmt.Sprintf("zqbait%dx", n), More: more, Until: wait}
	if !l.Stranger {
		if a, err := s.Evil.Hello(ctx, victim.Origin()); err != nil || a.Status != http.StatusOK {
			t.Fatalf("no hello: %d %s %v", a.Status, a.Body, err)
		}
	}
	r, err := l.Tell(ctx, s)
	if errors.Is(err, evil.ErrNotHere) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if what := s.Judge(l, r); what != "" && l.Known != "" {
		t.Logf("known: %s: %s", l.Known, what)
	} else if what != "" {
		t.Errorf("SUCCEEDED: %s", what)
	}
	return s.Word
}

// TestLies tells every lie to a portal that has an honest neighbour, and then
// looks whether anything of them is left. EVIL names those to tell, by their
// beginnings; all without it.
func TestLies(t *testing.T) {
	t.Parallel()
	only := strings.Split(os.Getenv("EVIL"), ",")
	neighbour := start(t)
	victim := start(t, neighbour.Origin())
	see := func() bool { return victim.Finds(neighbour.agent) && neighbour.Finds(victim.agent) }
	if err := wait("the two find each other's agents", see); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex // guards words and kept
	var words, kept []string
	t.Run("all", func(t *testing.T) {
		for n, l := range evil.All() {
			if !chosen(l.Name, only) || l.Heavy {
				continue
			}
			t.Run(l.Name, func(t *testing.T) {
				t.Parallel()
				word := one(t, l, victim, neighbour, n)
				mu.Lock()
				defer mu.Unlock()
				if l.Known == "" {
					words = append(words, word)
				}
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
	if err := wait("the honest portals see each other's agents still", see); err != nil {
		t.Error(err)
	}
	if s := victim.Look(neighbour.id); s.State != "active" || len(s.Faults) > 0 {
		t.Errorf("SUCCEEDED: an honest portal suffers: %+v", s)
	}
}

// TestLies_Heavy tells those that need a victim of their own.
func TestLies_Heavy(t *testing.T) {
	t.Parallel()
	only := strings.Split(os.Getenv("EVIL"), ",")
	for n, l := range evil.All() {
		if !chosen(l.Name, only) || !l.Heavy {
			continue
		}
		t.Run(l.Name, func(t *testing.T) {
			t.Parallel()
			neighbour := start(t)
			victim := start(t, neighbour.Origin())
			victim.keeps(t, one(t, l, victim, neighbour, 1000+n))
		})
	}
}

func chosen(name string, only []string) bool {
	for _, o := range only {
		if strings.HasPrefix(name, o) {
			return true
		}
	}
	return false
}

// TestAll demands that there are as many as are said, each once, and each with
// something to be judged by.
func TestAll(t *testing.T) {
	t.Parallel()
	seen := make(map[string]bool)
	classes := make(map[string]int)
	for _, l := range evil.All() {
		if seen[l.Name] || l.Class == "" || l.Tell == nil {
			t.Errorf("%q", l.Name)
		}
		seen[l.Name] = true
		classes[l.Class]++
	}
	if len(seen) < 60 {
		t.Errorf("only %d lies", len(seen))
	}
	t.Log(len(seen), "lies:", classes)
}

// TestHonest_WhileItFloods measures, when EVIL_FLOOD is a number of seconds, how
// long an honest visitor and an honest portal wait for answers while nobody and
// while a liar floods the portal. bench/evil says what is allowed.
func TestHonest_WhileItFloods(t *testing.T) {
	secs, err := strconv.Atoi(os.Getenv("EVIL_FLOOD"))
	if err != nil {
		t.Skip("EVIL_FLOOD is not set")
	}
	victim := start(t)
	ctx := t.Context()
	begin := func() *evil.Portal {
		p, err := evil.New(app.DefaultNetwork)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Close)
		if a, err := p.Hello(ctx, victim.Origin()); err != nil || a.Status != http.StatusOK {
			t.Fatal(err, string(a.Body))
		}
		return p
	}
	other, liar := begin(), begin()
	measure := func() (visitor, portal []time.Duration) {
		tick := time.NewTicker(25 * time.Millisecond)
		defer tick.Stop()
		for end := time.Now().Add(time.Duration(secs) * time.Second); time.Now().Before(end); <-tick.C {
			at := time.Now()
			victim.guest.Must(http.MethodGet, "/api/v1/search?q=agent", nil, http.StatusOK)
			visitor = append(visitor, time.Since(at))
			at = time.Now()
			a, err := other.Ask(ctx, victim.Origin(), evil.Request{Path: "/peering/v1/portals/" + string(victim.id) + "/head"})
			if err != nil || a.Status != http.StatusOK {
				t.Fatal(err, a.Status, string(a.Body))
			}
			portal = append(portal, time.Since(at))
		}
		return visitor, portal
	}
	v0, p0 := measure()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var sent, refused atomic.Int64
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for ctx.Err() == nil {
				a, err := liar.Ask(ctx, victim.Origin(), evil.Request{Path: "/peering/v1/heads/hint", Body: []byte(`{"heads":[]}`)})
				if err != nil {
					return
				}
				sent.Add(1)
				if a.Status == http.StatusTooManyRequests {
					refused.Add(1)
				}
			}
		})
	}
	v1, p1 := measure()
	cancel()
	wg.Wait()
	if refused.Load() == 0 {
		t.Error("no request of the flood was refused")
	}
	fmt.Printf("FLOOD %d requests a second, %d %% refused; p99 of visitors %v, then %v, ratio %.2f; of an honest portal %v, then %v, ratio %.2f\n",
		sent.Load()/int64(secs), 100*refused.Load()/max(sent.Load(), 1), p99(v0), p99(v1), float64(p99(v1))/float64(p99(v0)), p99(p0), p99(p1), float64(p99(p1))/float64(p99(p0)))
}

func p99(list []time.Duration) time.Duration {
	slices.Sort(list)
	return list[len(list)*99/100].Round(10 * time.Microsecond)
}
