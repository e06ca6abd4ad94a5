package account

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/internal/fault"
)

func TestLine_Order(t *testing.T) {
	t.Parallel()
	clean, named, network, once, often := rank{}, rank{name: 5}, rank{prefix: 2}, rank{address: 1, name: 1}, rank{address: 5, name: 5}
	for _, c := range []struct {
		name    string
		most    int
		arrive  []rank
		refused []int // by arrival, from 1
		starts  []int
	}{
		{"as they come", 9, []rank{clean, clean, clean}, nil, []int{1, 2, 3}},
		{"failures of the address weigh most", 9, []rank{often, once, network, named, clean}, nil, []int{5, 4, 3, 1, 2}},
		{"the owner of an attacked name is before the attackers", 9, []rank{often, often, named}, nil, []int{3, 1, 2}},
		{"a few slips are before a flood", 9, []rank{often, often, once}, nil, []int{3, 1, 2}},
		{"the oldest in every fourth turn", 9, []rank{often, clean, clean, clean, clean, clean, clean}, nil, []int{2, 3, 4, 1, 5, 6, 7}},
		{"a full line refuses the last of equals", 2, []rank{clean, clean, clean}, []int{3}, []int{1, 2}},
		{"and the worst for a better one", 2, []rank{often, often, clean}, []int{2}, []int{3, 1}},
		{"but no better one", 2, []rank{named, clean, often}, []int{3}, []int{2, 1}},
	} {
		l := line{most: c.most}
		var refused, starts []int
		for _, r := range c.arrive {
			if _, out := l.join(r); out != nil {
				refused = append(refused, out.arrival)
			}
		}
		for one := l.next(); one != nil; one = l.next() {
			starts = append(starts, one.arrival)
		}
		if !slices.Equal(refused, c.refused) || !slices.Equal(starts, c.starts) {
			t.Errorf("%s: refused %v, starts %v; want %v, %v", c.name, refused, starts, c.refused, c.starts)
		}
	}
}

// Whatever comes: the line keeps its bound, refuses only when it is full and then one of the worst, and
// each check begins or is refused within a bounded number of turns, also one with many failures.
func TestLine_StarvesNobody(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		most := 1 + rnd.IntN(20)
		l, turn := line{most: most}, 0
		since := make(map[*ticket]int)
		for range 2000 {
			if rnd.IntN(2*most) < most+1 { // more come than begin
				r := rank{address: uint8(rnd.IntN(maxLevel + 1)), prefix: uint8(rnd.IntN(maxLevel + 1)), name: uint8(rnd.IntN(maxLevel + 1))}
				full := len(l.waiting) == most
				joined, refused := l.join(r)
				since[joined] = turn
				if (refused != nil) != full {
					t.Fatalf("seed %d: refused %v from a line with %d of %d", seed, refused, len(l.waiting), most)
				}
				if refused != nil {
					delete(since, refused)
					for _, w := range l.waiting {
						if w.compare(refused.rank) > 0 {
							t.Fatalf("seed %d: %+v was refused, and %+v waits", seed, refused, w)
						}
					}
				}
			} else if one := l.next(); one != nil {
				turn++
				delete(since, one)
			}
			if len(l.waiting) > most || len(since) != len(l.waiting) {
				t.Fatalf("seed %d: %d wait, %d are known, the bound is %d", seed, len(l.waiting), len(since), most)
			}
		}
		for one := range since {
			if turn-since[one] > oldestEvery*(most+1) {
				t.Fatalf("seed %d: a check with %+v waits for %d turns", seed, one.rank, turn-since[one])
			}
		}
	}
}

// hashTime is about the time of one computation on a small machine.
const hashTime = 40 * time.Millisecond

// attempt checks a password, which takes hashTime, and returns the wait before.
func attempt(g *gate, c client, right bool) (time.Duration, error) {
	begin := time.Now()
	if err := g.acquire(context.Background(), c); err != nil {
		return 0, err
	}
	waited := time.Since(begin)
	time.Sleep(hashTime)
	g.release(c)
	if right {
		g.succeeded(c)
	} else {
		g.fail(c)
	}
	return waited, nil
}

// A flood of guesses from 150 addresses at one name, as fast as each gets answers, keeps neither the
// person of that name nor others waiting.
func TestGate_FloodOfGuesses(t *testing.T) {
	for _, network := range []string{"10.0.%d.7", "10.0.0.%d"} { // networks of their own, and one
		synctest.Test(t, func(t *testing.T) {
			g := newGate(defaultMaxWaiting)
			ctx, stop := context.WithCancel(t.Context())
			var flood sync.WaitGroup
			for i := range 150 {
				for range 3 { // connections of each
					flood.Go(func() {
						for ctx.Err() == nil {
							if _, err := attempt(g, client{"ada", fmt.Sprintf(network, i)}, false); err != nil {
								time.Sleep(time.Second)
							}
						}
					})
				}
			}
			for _, person := range []client{{"ada", "192.0.2.1"}, {"bob", "192.0.2.2"}, {"ada", "10.0.0.200"}, {"bob", "10.0.0.201"}} {
				time.Sleep(15 * time.Second)
				waited, err := attempt(g, person, true)
				if err != nil || waited > time.Second {
					t.Errorf("%v waits %v: %v", person, waited, err)
				}
			}
			// A new browser of a person who mistyped the password twice.
			slips := client{"ada", "198.51.100.1"}
			for range 2 {
				if _, err := attempt(g, slips, false); err != nil {
					t.Error(err)
				}
			}
			if waited, err := attempt(g, slips, true); err != nil || waited > time.Second {
				t.Errorf("after two slips: %v %v", waited, err)
			}
			stop()
			flood.Wait()
			if len(g.pending) != 0 || g.free != hashesAtOnce || len(g.line.waiting) != 0 {
				t.Errorf("after the flood: %+v", g)
			}
		})
	}
}

// No address has failed yet when a flood begins: the first checks of 150 addresses are done within two
// seconds and a half, and a person who signed in from their address before waits for none of them.
func TestGate_BeginOfAFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(defaultMaxWaiting)
		home := client{"ada", "192.0.2.1"}
		if _, err := attempt(g, home, true); err != nil {
			t.Fatal(err)
		}
		var flood sync.WaitGroup
		for i := range 150 {
			flood.Go(func() { attempt(g, client{"ada", fmt.Sprintf("10.0.%d.7", i)}, false) })
		}
		synctest.Wait()
		if waited, err := attempt(g, home, true); err != nil || waited > 2*hashTime {
			t.Errorf("at home: %v %v", waited, err)
		}
		if waited, err := attempt(g, client{"ada", "192.0.2.9"}, true); err != nil || waited > 75*hashTime {
			t.Errorf("elsewhere: %v %v", waited, err)
		}
		flood.Wait()
	})
}

// An account that signs in with its right password from 150 addresses, as fast as it can, keeps no other
// person waiting: right passwords cost as much time as wrong ones.
func TestGate_FloodOfRightPasswords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(defaultMaxWaiting)
		home := client{"bob", "192.0.2.2"}
		if _, err := attempt(g, home, true); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		var flood sync.WaitGroup
		for i := range 150 {
			for range 3 {
				flood.Go(func() {
					for ctx.Err() == nil {
						if _, err := attempt(g, client{"eve", fmt.Sprintf("10.0.%d.7", i)}, true); err != nil {
							time.Sleep(time.Second)
						}
					}
				})
			}
		}
		for _, person := range []client{home, {"ada", "198.51.100.1"}, {"ada", "10.0.3.9"}} {
			time.Sleep(15 * time.Second)
			if waited, err := attempt(g, person, true); err != nil || waited > time.Second {
				t.Errorf("%v waits %v: %v", person, waited, err)
			}
		}
		stop()
		flood.Wait()
	})
}

// Beyond its bound the line refuses, with the time after which to try again, and who gives up leaves it.
func TestGate_RefusesBeyondItsBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(2)
		ctx, stop := context.WithCancel(t.Context())
		var waiting sync.WaitGroup
		for i := range hashesAtOnce {
			if err := g.acquire(t.Context(), client{"", fmt.Sprint(i)}); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 2 {
			waiting.Go(func() {
				if err := g.acquire(ctx, client{"", fmt.Sprint("w", i)}); err != context.Canceled {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		err := g.acquire(ctx, client{"", "more"})
		if f := fault.As(err); f.Kind != fault.RateLimited || f.RetryAfter != fullWait || !strings.Contains(f.Safe, "Many people") {
			t.Error(err)
		}
		stop()
		waiting.Wait()
		for i := range hashesAtOnce {
			g.release(client{"", fmt.Sprint(i)})
		}
		if len(g.pending) != 0 || g.free != hashesAtOnce || len(g.line.waiting) != 0 {
			t.Errorf("%+v", g)
		}
	})
}

func TestGate_ForgetsFailuresAndBoundsThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(2)
		c := client{"ada", "192.0.2.1"}
		warned := 0
		for range 40 {
			if g.fail(c) {
				warned++
			}
		}
		if r := g.rankOf(c, time.Now()); warned != 1 || r != (rank{maxLevel, maxLevel, maxLevel}) {
			t.Errorf("%d warnings, %+v", warned, r)
		}
		if r := g.rankOf(client{"ada", "192.0.2.9"}, time.Now()); r != (rank{0, maxLevel, maxLevel}) {
			t.Errorf("the person at a neighbour's address: %+v", r)
		}
		time.Sleep(2 * time.Hour)
		if r := g.rankOf(c, time.Now()); r != (rank{}) {
			t.Errorf("two hours later: %+v", r)
		}
		g.succeeded(c)
		if !g.knows(c) || g.knows(client{"ada", "192.0.2.2"}) {
			t.Error("the address of a sign-in is not known, or another is")
		}
		for i := range 3 * maxGeneration {
			g.fail(client{fmt.Sprint(i), "192.0.2.1"})
		}
		if n := len(g.failed.young) + len(g.failed.old); n > 2*maxGeneration {
			t.Errorf("%d counts are kept", n)
		}
		time.Sleep(knownFor)
		if g.knows(c) {
			t.Error("an address is known for ever")
		}
	})
}

func TestNetworkOf(t *testing.T) {
	t.Parallel()
	for addr, want := range map[string]string{"192.0.2.77": "192.0.2.0/24", "2001:db8:1:2::/64": "2001:db8:1::/48", "2001:db8:1:2::9": "2001:db8:1::/48", "unknown": "unknown", "": ""} {
		if got := networkOf(addr); got != want {
			t.Errorf("%s: %s, want %s", addr, got, want)
		}
	}
}
