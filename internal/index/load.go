package index

import (
	"runtime"
	"sync"

	"agentsite/internal/hub"
	"agentsite/internal/index/bm25"
)

// loadBatch is how many agents of a Load enter under one lock: searches wait
// less than a millisecond for them.
const loadBatch = 64

// Load puts all agents that next returns, until it returns false, on all
// processors. It calls next from one goroutine at a time. Searches find what
// has come in so far. No agent should come twice: either form might stay.
func (x *Index) Load(next func() (hub.Agent, bool)) {
	var (
		mu   sync.Mutex // guards next and done
		done bool
		wg   sync.WaitGroup
	)
	take := func(batch []hub.Agent) []hub.Agent {
		mu.Lock()
		defer mu.Unlock()
		for !done && len(batch) < loadBatch {
			a, ok := next()
			if !ok {
				done = true
				break
			}
			batch = append(batch, a)
		}
		return batch
	}
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			batch, list := make([]hub.Agent, 0, loadBatch), make([]*prepared, 0, loadBatch)
			for {
				if batch = take(batch[:0]); len(batch) == 0 {
					return
				}
				list = list[:0]
				for i := range batch {
					if a := &batch[i]; listable(a) {
						p := x.prepare(a)
						p.analyze(x)
						list = append(list, p)
					} else {
						x.Remove(a.ID)
					}
				}
				x.putAll(list)
			}
		})
	}
	wg.Wait()
	x.mu.Lock()
	defer x.mu.Unlock()
	x.words.Fit()
	x.entries, x.columns = bm25.Fitted(x.entries), bm25.Fitted(x.columns)
	x.facets.values, x.facets.leads = bm25.Fitted(x.facets.values), bm25.Fitted(x.facets.leads)
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
