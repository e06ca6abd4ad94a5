package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"agentsite/internal/testing/pgtest"
)

const (
	// generation is the number of rounds after which new conversations replace the old ones, so that
	// reading all of them in each round stays fast.
	generation = 10
	// settleTimeout is the longest time that questions may stay without an answer after a restart.
	settleTimeout = 30 * time.Second
	checkTimeout  = 90 * time.Second
	// resends is the number of earlier messages that are sent again, with the same client_id, after
	// each restart.
	resends = 20
)

// world is one run: the portal's data, the accounts, and the results of all their requests.
type world struct {
	cfg   config
	run   string // part of every text, so that texts of two runs differ
	data  string // data folder of the next portal
	work  string // folder for the log, images and mounts
	log   string
	count counter
	// acquainted has for each person the one that it accepted an invitation of.
	acquainted map[*account]*account
	// server has the data of the portals; nil for SQLite.
	server *pgtest.Server

	people        []*account
	rooms, olds   []*room
	mu            sync.Mutex // guards the next two fields while the load runs
	agents        []agent    // all registered by people[0]
	conversations []conversation

	stats stats
}

type conversation struct {
	id, title string
	owner     *account
	at        time.Time
}

type stats struct {
	rounds, kills, terms, cuts int
	serverKills                int
	agents                     int
	reacked, learned           int // acknowledged messages sent again; outcomes that were unknown
	seen                       int // messages received by live readers
	answers                    int
	posted                     int // tasks of mode acts that were acknowledged
	lostBytes                  int64
	slowest                    time.Duration
}

func newWorld(cfg config) (*world, error) {
	work, err := os.MkdirTemp(cfg.temp, "chaos-")
	if err != nil {
		return nil, err
	}
	w := &world{cfg: cfg, work: work, run: fmt.Sprintf("s%d", cfg.seed), data: cfg.data, log: filepath.Join(work, "portal.log"),
		acquainted: make(map[*account]*account)}
	if w.data == "" {
		w.data = filepath.Join(work, "data")
	}
	if err := os.MkdirAll(w.data, 0o700); err != nil {
		return nil, err
	}
	if list, err := os.ReadDir(w.data); err != nil || len(list) > 0 {
		return nil, fmt.Errorf("the folder %s must be empty (%v)", w.data, err)
	}
	return w, nil
}

// populate creates accounts and tokens by commands on the folder of a running portal. Success of a
// command counts as acknowledged.
func (w *world) populate(data string) error {
	for _, name := range []string{"ann", "bob", "cat", "dan"} {
		if _, err := command(w.cfg.binary, "correct horse battery "+name+"\n", "user", "add", name, "--password-stdin", "--data", data); err != nil {
			return err
		}
		out, err := command(w.cfg.binary, "", "token", "add", "--user", name, "--data", data)
		if err != nil {
			return err
		}
		lines := strings.Split(strings.TrimSpace(out), "\n")
		w.people = append(w.people, newAccount(name, lines[len(lines)-1]))
	}
	return nil
}

// newRooms creates new conversations: of one person, of one person with the calculator, of two people,
// and of two people with the calculator. The previous conversations become old ones.
func (w *world) newRooms(ctx context.Context, base string) error {
	w.olds = append(w.olds, w.rooms...)
	w.rooms = nil
	p := w.people
	for _, r := range []*room{
		{kind: "notes", people: p[0:1]}, {kind: "notes", people: p[1:2]},
		{kind: "calc", people: p[0:1], asks: true}, {kind: "calc", people: p[2:3], asks: true},
		{kind: "people", people: p[2:4]}, {kind: "people and calc", people: p[0:2], asks: true},
	} {
		members := []string{}
		for _, a := range r.people[1:] {
			members = append(members, a.name)
		}
		if r.asks {
			members = append(members, "calc")
		}
		var out struct {
			ID string `json:"id"`
		}
		for _, a := range r.people[1:] {
			if err := w.acquaint(ctx, base, r.people[0], a); err != nil {
				return err
			}
		}
		if err := r.people[0].want(ctx, 201, "POST", base+"/api/v1/conversations", map[string]any{"title": r.kind, "members": members}, &out); err != nil {
			return err
		}
		r.id = out.ID
		w.rooms = append(w.rooms, r)
	}
	return nil
}

// acquaint makes b accept an invitation of a, so that b is a member of later conversations at once. It does
// nothing the second time.
func (w *world) acquaint(ctx context.Context, base string, a, b *account) error {
	if w.acquainted[b] == a {
		return nil
	}
	var out struct {
		ID string `json:"id"`
	}
	err := a.want(ctx, 201, "POST", base+"/api/v1/conversations", map[string]any{"members": []string{b.name}}, &out)
	if err != nil {
		return err
	}
	status, err := b.call(ctx, "POST", base+"/api/v1/conversations/"+out.ID+"/accept", map[string]any{}, nil)
	if err == nil && status >= 300 {
		err = fmt.Errorf("status %d", status)
	}
	if err != nil {
		return fmt.Errorf("%s accepts an invitation: %w", b.name, err)
	}
	w.acquainted[b] = a
	return nil
}

// load starts all clients and returns a function that stops them and waits for them.
func (w *world) load(base string, rng *rand.Rand) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	source := func() *rand.Rand { return rand.New(rand.NewPCG(rng.Uint64(), rng.Uint64())) }
	long := rng.IntN(4) == 0
	for _, r := range w.rooms {
		r.long = long
		var stranger *account
		for _, a := range w.people {
			in := false
			for _, m := range r.people {
				in = in || m == a
			}
			if !in {
				stranger = a
			}
		}
		for _, who := range r.people {
			workers := 2
			if r.asks {
				workers = 1
			}
			for range workers {
				own := source()
				wg.Go(func() { r.work(ctx, who, stranger, base, w.run, &w.count, own) })
			}
		}
		for _, how := range []string{"sse", "websocket"} {
			who, own, after := r.people[rng.IntN(len(r.people))], source(), r.position()
			if rng.IntN(4) == 0 && r.verified > 0 {
				after = rng.Int64N(r.verified + 1)
			}
			wg.Go(func() { r.watch(ctx, who, base, how, after, own, w.server != nil) })
		}
	}
	own := source()
	wg.Go(func() { w.others(ctx, base, own) })
	return func() { cancel(); wg.Wait() }
}

// others registers agents and creates conversations while other clients post messages, until ctx ends.
func (w *world) others(ctx context.Context, base string, rng *rand.Rand) {
	for range 4 {
		select {
		case <-time.After(time.Duration(rng.IntN(300)) * time.Millisecond):
		case <-ctx.Done():
			return
		}
		n := w.count.next()
		if rng.IntN(2) == 0 && w.stats.agents < 480 {
			a, err := register(ctx, w.people[0], base, fmt.Sprintf("chaos-%d", n))
			w.mu.Lock()
			w.agents = append(w.agents, a)
			w.stats.agents++
			w.mu.Unlock()
			if f, ok := errors.AsType[failure](err); ok {
				w.rooms[0].blame(f.kind, "%s", f.text)
			}
			continue
		}
		c := conversation{title: fmt.Sprintf("conversation %d of %s", n, w.run), owner: w.people[3]}
		var out struct {
			ID string `json:"id"`
		}
		status, err := c.owner.call(ctx, "POST", base+"/api/v1/conversations", map[string]any{"title": c.title, "members": []string{"calc"}}, &out)
		if c.at = time.Now(); err == nil && status == 201 {
			c.id = out.ID
			w.mu.Lock()
			w.conversations = append(w.conversations, c)
			w.mu.Unlock()
		}
	}
}

// position returns the last seq that the last reader of r received.
func (r *room) position() int64 {
	if len(r.streams) == 0 {
		return r.verified
	}
	s := r.streams[len(r.streams)-1]
	if len(s.seen) > 0 {
		return s.seen[len(s.seen)-1].seq
	}
	return s.after
}

// forget resets everything that clients learned at or after a power cut.
func (w *world) forget(cut time.Time) {
	for _, r := range w.rooms {
		r.streams = forget(r.ops, r.streams, cut)
	}
	for i := range w.agents {
		if a := &w.agents[i]; a.outcome == acked && !a.at.Before(cut) {
			a.outcome = unknown
		}
	}
	kept := w.conversations[:0]
	for _, c := range w.conversations {
		if c.at.Before(cut) {
			kept = append(kept, c)
		}
	}
	w.conversations = kept
}

// note changes the statistics. Several conversations are checked at once, so it locks mu.
func (w *world) note(f func(*stats)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f(&w.stats)
}
