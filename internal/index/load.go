package index

import (
	"runtime"
	"sync"

	"agentsite/internal/hub"
	"agentsite/internal/index/bm25"
)

const (
	// loadBatch is the number of agents that a Load asks for at once. Known ones
	// are put under one lock, for which searches wait about a millisecond.
	loadBatch = 64
	// loadShare is the number of agents that come before another processor
	// helps: the words of a small segment cost more each.
	loadShare = 1 << 10
	// fitShare is the part of the index that must come at once for the lists to
	// be cut to size afterwards.
	fitShare = 8
	// The first segments are small, so that searches soon find something.
	minSegment = 256
	// segmentSize limits the words of a segment as well as its agents: searches
	// wait until it is in.
	segmentSize = 80 * bm25.MaxSegment
	// lookupCount is the number of words that are looked up under one lock.
	lookupCount = 1024
)

// Load implements hub.Index with all processors. New agents come in by thousands, others one by one.
// Searches find the agents that have come in so far. No agent should come twice: either form might
// stay.
func (x *Index) Load(next func() (hub.Agent, bool)) {
	var (
		mu      sync.Mutex // guards the following fields
		done    bool
		count   int // agents that came
		fillers = 1
		wg      sync.WaitGroup
		fill    func()
	)
	take := func(batch []hub.Agent) []hub.Agent {
		mu.Lock()
		defer mu.Unlock()
		if count >= fillers*loadShare && fillers < runtime.GOMAXPROCS(0) {
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
			count++
		}
		return batch
	}
	fill = func() { x.fillAgents(take) }
	fill()
	wg.Wait()
	x.mu.Lock()
	defer x.mu.Unlock()
	if count >= len(x.docs)/fitShare { // else the copies would cost more than they free
		x.words.Fit()
		x.docs, x.times, x.values = bm25.Fitted(x.docs), bm25.Fitted(x.times), bm25.Fitted(x.values)
		x.fitFacets()
	}
}

// fillAgents puts the agents that take returns, until there are none.
func (x *Index) fillAgents(take func([]hub.Agent) []hub.Agent) {
	s := &segment{x: x, words: x.words.NewSegment(), ids: make(map[string]bool)}
	batch := make([]hub.Agent, 0, loadBatch)
	for {
		if batch = take(batch[:0]); len(batch) == 0 {
			break
		}
		var known []*prepared
		hashes, unknown := x.findUnknown(batch)
		for i := range batch {
			a := &batch[i]
			switch {
			case !isListable(a):
				x.Remove(a.ID)
			case unknown[i] && !s.ids[a.ID]:
				s.addAgent(a, hashes[i])
			default:
				p := prepareAgent(a)
				p.analyze(x.words)
				known = append(known, p)
			}
		}
		x.putAll(known)
		if s.isFull(x.Len()) {
			s.flush()
		}
	}
	s.flush()
}

func (x *Index) putAll(list []*prepared) {
	x.mu.RLock()
	for _, p := range list {
		x.words.Resolve(&p.words)
	}
	x.mu.RUnlock()
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, p := range list {
		x.putAgent(p)
	}
}

// findUnknown returns the hashes of the ids of some agents, and which of the
// agents may be appended: those that are not in the index, once the numbers of
// removed documents are used.
func (x *Index) findUnknown(list []hub.Agent) (hashes []uint64, unknown []bool) {
	hashes, unknown = make([]uint64, len(list)), make([]bool, len(list))
	for i := range list {
		hashes[i] = bm25.HashOf(list[i].ID)
	}
	x.mu.RLock()
	defer x.mu.RUnlock()
	free := len(x.free)
	for i := range list {
		if _, known := x.byID.FindHash(list[i].ID, hashes[i]); !known {
			free--
			unknown[i] = free < 0
		}
	}
	return hashes, unknown
}

// segment is up to some thousand new agents on their way into the index.
type segment struct {
	x      *Index
	words  *bm25.Segment
	ids    map[string]bool
	keys   []string
	hashes []uint64 // of ids
	list   []*prepared
	fields fieldTexts
}

// addAgent adds an agent that is neither in the index nor in the segment.
func (s *segment) addAgent(a *hub.Agent, hash uint64) {
	p := prepareAgent(a)
	p.agent = nil // the caller uses its memory again
	s.ids[idOf(p.key)] = true
	s.keys, s.hashes, s.list = append(s.keys, p.key), append(s.hashes, hash), append(s.list, p)
	s.words.Add(s.fields.of(a)...)
}

func (s *segment) isFull(indexed int) bool {
	return len(s.list) >= min(bm25.MaxSegment, max(minSegment, indexed)) || s.words.Size() >= segmentSize
}

// flush puts the segment into the index and empties it. Its words come first,
// so that a search may for some milliseconds know a word that no agent has. Its
// agents come all at once.
func (s *segment) flush() {
	if len(s.list) == 0 {
		return
	}
	x, words := s.x, s.words
	for from := 0; from < words.Words(); from += lookupCount {
		x.mu.RLock()
		words.Resolve(from, min(from+lookupCount, words.Words()))
		x.mu.RUnlock()
	}
	words.Sort()
	x.mu.Lock()
	x.words.Intern(words)
	x.mu.Unlock()
	words.Build(s.keys)
	x.mu.RLock()
	words.Look()
	x.mu.RUnlock()
	words.Pair()
	x.mu.Lock()
	x.appendSegment(s)
	x.mu.Unlock()
	words.Reset()
	clear(s.ids)
	clear(s.list)
	clear(s.keys)
	s.keys, s.hashes, s.list = s.keys[:0], s.hashes[:0], s.list[:0]
}

// appendSegment adds the agents of a segment; the caller must hold mu.
func (x *Index) appendSegment(s *segment) {
	for i, hash := range s.hashes {
		if doc, known := x.byID.FindHash(idOf(s.keys[i]), hash); known { // came in meanwhile
			x.removeDoc(doc)
		}
	}
	first := len(x.docs)
	x.words.Append(s.words, first)
	x.growDocs(len(s.list))
	for i, p := range s.list {
		doc := uint32(first + i)
		x.byID.InsertHash(doc, s.hashes[i])
		x.setDocument(doc, p)
	}
	x.state.Add(1)
}
