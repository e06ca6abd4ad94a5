package dht_test

import (
	"context"
	"errors"
	"os"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/internal/testing/racetest"
	"agentsite/peering/dht"
	"agentsite/peering/kademlia"
)

// grow starts so many nodes, one every 20 ms, and lets them settle.
func grow(t *testing.T, nodes int) *memnet {
	m := newNet(t, uint64(nodes), 80*time.Millisecond)
	m.add(nil)
	for len(m.order) < nodes {
		time.Sleep(20 * time.Millisecond)
		m.add(m.any())
	}
	time.Sleep(2 * time.Minute)
	synctest.Wait()
	return m
}

func (m *memnet) value() []byte { id := m.id(); return id[:] }

// live is what lives on the heap and on stacks, in bytes.
func live() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

// TestRunner_ManyNodes is the real code, with goroutines and timers, on a
// network and a clock of its own: all is found, also when a third of all nodes
// refuse or are mute. AGENTSITE_DHT_NODES has it with more of them.
func TestRunner_ManyNodes(t *testing.T) {
	nodes := 200
	if racetest.Enabled {
		nodes = 60
	}
	if n, err := strconv.Atoi(os.Getenv("AGENTSITE_DHT_NODES")); err == nil {
		nodes = n
	}
	synctest.Test(t, func(t *testing.T) {
		before := live()
		m := grow(t, nodes)
		defer m.close()
		t.Logf("%d nodes take %.1f KiB each, with %d goroutines in all", nodes, float64(live()-before)/1024/float64(nodes), runtime.NumGoroutine())
		keys := make([]kademlia.ID, 50)
		for i := range keys {
			keys[i] = m.id()
			n, err := m.any().Put(t.Context(), kademlia.Record{Key: keys[i], Value: m.value()})
			if err != nil || n < 15 {
				t.Fatalf("stored at %d nodes: %v", n, err)
			}
		}
		find := func(when string, most time.Duration) {
			var took []time.Duration
			rpcs := 0
			for range 200 {
				got, trace, err := m.any().Get(t.Context(), keys[m.rand.IntN(len(keys))], 1)
				if err != nil || len(got) != 1 || trace.Took > most {
					t.Errorf("%s: %d values in %v by %d requests: %v", when, len(got), trace.Took, trace.RPCs, err)
				}
				took, rpcs = append(took, trace.Took), rpcs+trace.RPCs
			}
			slices.Sort(took)
			t.Logf("%d nodes, %s: p50 %v, p99 %v, %.1f requests", nodes, when, took[100], took[197], float64(rpcs)/200)
		}
		find("all are up", time.Second)
		for i, n := range m.order {
			switch i % 6 {
			case 0:
				n.state.Store(refuses)
			case 1:
				n.state.Store(silent)
			}
		}
		find("a third is down", 3*time.Second)
		// A full lookup does not wait for those who do not answer.
		for range 20 {
			if trace, err := m.any().FindNodes(t.Context(), m.id()); err != nil || len(trace.Nearest) < 20 || trace.Took > 3*time.Second {
				t.Errorf("%d nodes in %v: %v", len(trace.Nearest), trace.Took, err)
			}
		}
	})
}

// TestRunner_RejoinsFromWhatItRemembers starts a node anew whose seeds are all
// dead, and of which nobody knows any more.
func TestRunner_RejoinsFromWhatItRemembers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := grow(t, 30)
		defer m.close()
		key := m.id()
		if _, err := m.any().Put(t.Context(), kademlia.Record{Key: key, Value: m.value()}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Minute)
		seed := m.order[0]
		back := m.order[slices.IndexFunc(m.order[1:], func(n *memnode) bool {
			held := 0
			n.ViewNode(func(n *kademlia.Node) { held = n.Held() })
			return held == 1
		})+1]
		seed.end()
		back.end()
		kept, held := back.memory.remembers()
		if kept < 20 || held == 0 {
			t.Fatalf("it remembers %d nodes and %d records", kept, held)
		}
		for _, n := range m.order {
			if n != seed && n != back {
				if err := n.Forget(t.Context(), back.self.ID); err != nil {
					t.Fatal(err)
				}
			}
		}
		m.start(back, []*kademlia.Contact{seed.self})
		time.Sleep(time.Minute)
		synctest.Wait()
		known, holds := 0, 0
		back.ViewNode(func(n *kademlia.Node) { known, holds = n.Known(), n.Held() })
		if known < 28 || holds != held {
			t.Errorf("it knows %d nodes and holds %d of %d records", known, holds, held)
		}
		if got, _, err := back.Get(t.Context(), key, 3); err != nil || len(got) != 1 {
			t.Errorf("%d values: %v", len(got), err)
		}
	})
}

// TestRunner_ForgetsForGood is what an operator asks who shuts somebody out.
func TestRunner_ForgetsForGood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := grow(t, 10)
		defer m.close()
		of, at := m.order[3], m.order[4]
		const published = 5 // each portal of ten holds all of them
		for range published {
			r := kademlia.Record{Key: m.id(), Value: slices.Clone(of.self.ID[:])}
			if _, err := of.Put(t.Context(), r); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(10 * time.Minute)
		if _, held := at.memory.remembers(); held != published {
			t.Fatalf("%d are held, want %d", held, published)
		}
		if err := at.Forget(t.Context(), of.self.ID); err != nil {
			t.Fatal(err)
		}
		at.ViewNode(func(n *kademlia.Node) {
			if n.Held() != 0 || slices.ContainsFunc(n.Contacts(), func(c *kademlia.Contact) bool { return c.ID == of.self.ID }) {
				t.Error("it is still held")
			}
		})
		if _, held := at.memory.remembers(); held != 0 {
			t.Error("it would be back after a restart")
		}
	})
}

func TestRunner_GivesUpWithItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := grow(t, 30)
		defer m.close()
		by := m.order[2]
		for _, n := range m.order {
			if n != by {
				n.state.Store(silent)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		if _, _, err := by.Get(ctx, m.id(), 1); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		// Without a deadline it ends by itself.
		if _, trace, err := by.Get(t.Context(), m.id(), 1); err != nil || trace.Took > 9*time.Second {
			t.Errorf("after %v: %v", trace.Took, err)
		}
		by.end()
		if _, _, err := by.Get(t.Context(), m.id(), 1); !errors.Is(err, dht.ErrStopped) {
			t.Error(err)
		}
		if _, err := by.Serve(nil, &kademlia.Request{Kind: kademlia.Ping}); !errors.Is(err, dht.ErrStopped) {
			t.Error(err)
		}
	})
}
