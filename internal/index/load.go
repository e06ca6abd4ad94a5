package index

import (
	"runtime"
	"sync"

	"agentsite/internal/hub"
	"agentsite/internal/index/bm25"
)

// loadBatch is how many agents a Load asks for at once. Those that come in one
// by one enter under one lock: searches wait about a millisecond for them.
const loadBatch = 64

// minShare is how many agents come before another processor helps: the words of
// a segment with fewer cost more each, and others who load have the processor.
const minShare = 1 << 10

// fitShare is which part of the index must come at once for the lists to be cut
// to size afterwards.
const fitShare = 8

// Load puts all agents that next returns, until it returns false, on all
// processors. It calls next from one goroutine at a time. New agents come in
// by thousands, others one by one. Searches find what has come in so far. No
// agent should come twice: either form might stay.
func (x *Index) Load(next func() (hub.Agent, bool)) {
	var (
		mu   sync.Mutex // guards next, done and n
		done bool
		n    int // agents that came
		wg   sync.WaitGroup
	)
	var fill func()
	fillers := 1
	take := func(batch []hub.Agent) []hub.Agent {
		mu.Lock()
		defer mu.Unlock()
		if n >= fillers*minShare && fillers < runtime.GOMAXPROCS(0) {
			fillers++
			wg.Go(fill)
		}
		for !done && len(batch) < loadBatch {
			a, ok := next()
			if !ok {
				done = true
				break
			}
			batch = append(batch, a)
			n++
		}
		return batch
	}
	fill = func() { x.fill(take) }
	fill()
	wg.Wait()
	x.mu.Lock()
	defer x.mu.Unlock()
	if n < len(x.entries)/fitShare {
		return // to copy everything would cost more than it frees
	}
	x.words.Fit()
	x.entries, x.columns = bm25.Fitted(x.entries), bm25.Fitted(x.columns)
	x.facets.values, x.facets.leads = bm25.Fitted(x.facets.values), bm25.Fitted(x.facets.leads)
}

// fill puts the agents that take returns, until there are none.
func (x *Index) fill(take func([]hub.Agent) []hub.Agent) {
	f := x.newFilling()
	batch, list := make([]hub.Agent, 0, loadBatch), make([]*prepared, 0, loadBatch)
	for {
		if batch = take(batch[:0]); len(batch) == 0 {
			break
		}
		list = list[:0]
		for i, fresh := range x.fresh(f, batch) {
			switch a := &batch[i]; {
			case !listable(a):
				x.Remove(a.ID)
			case fresh && f.add(a, f.batch[i]):
			default:
				p := x.prepare(a)
				p.analyze(x)
				list = append(list, p)
			}
		}
		x.putAll(list)
		if f.full(x.Len()) {
			f.flush()
		}
	}
	f.flush()
}

func (x *Index) putAll(list []*prepared) {
	x.mu.RLock()
	for _, p := range list {
		p.resolve(x)
	}
	x.mu.RUnlock()
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, p := range list {
		x.put(p)
	}
}

// fresh notes the hashes of the ids of a batch in f and says which agents get
// a number that nobody had before: those that are not there yet, once the
// numbers of removed ones are used.
func (x *Index) fresh(f *filling, batch []hub.Agent) []bool {
	f.batch, f.isNew = f.batch[:0], f.isNew[:0]
	for i := range batch {
		f.batch = append(f.batch, bm25.HashOf(batch[i].ID))
	}
	x.mu.RLock()
	defer x.mu.RUnlock()
	free := len(x.free)
	for i := range batch {
		_, known := x.byID.FindHash(batch[i].ID, f.batch[i])
		if !known {
			free--
		}
		f.isNew = append(f.isNew, !known && free < 0)
	}
	return f.isNew
}
