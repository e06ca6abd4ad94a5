package index

import (
	"runtime"
	"sync"

	"agentsite/internal/hub"
	"agentsite/internal/index/bm25"
)

const (
	// loadBatch is the number of agents that a goroutine of Load fetches at once. Agents that are in the
	// index already are put under one lock, for which searches wait about a millisecond.
	loadBatch = 64
	// loadShare is the number of agents after which Load starts another goroutine. Fewer agents would
	// make small segments, in which each word costs more.
	loadShare = 1 << 10
	// fitShare: Load copies the lists to their exact size if it added at least 1/fitShare of the index.
	// Below that, the copies cost more than they free.
	fitShare = 8
	// minSegment is the size of the first segments, which are small so that searches soon find
	// something.
	minSegment = 256
	// segmentSize bounds the words of a segment, because searches wait while a segment is appended.
	segmentSize = 80 * bm25.MaxSegment
	// lookupCount is the number of words that are looked up under one read lock.
	lookupCount = 1024
)

// Load implements hub.Index with one goroutine for each processor. New agents are added in segments of
// thousands, known ones one by one. Searches find the agents that were added so far. If next returns an
// agent twice, either form may stay.
func (x *Index) Load(next func() (hub.Agent, bool)) {
	var (
		mu      sync.Mutex // guards the next three variables and next
		done    bool
		count   int // agents fetched so far
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
	if count >= len(x.docs)/fitShare { // see fitShare
		x.words.Fit()
		x.docs, x.times, x.values = bm25.Fitted(x.docs), bm25.Fitted(x.times), bm25.Fitted(x.values)
		x.fitFacets()
	}
}

// fillAgents adds the agents that take returns until take returns none. Several goroutines of Load run
// it, each with a segment of its own.
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
				p.read(x)
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

// findUnknown returns the hash of each agent's id, and whether the agent can be added in a segment: it
// is not in the index, and no free document number is left for it. Free numbers are used first, by Put,
// because segments are always appended.
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

// segment collects up to bm25.MaxSegment new agents, which are added to the index together.
type segment struct {
	x      *Index
	words  *bm25.Segment
	ids    map[string]bool
	keys   []string
	hashes []uint64 // of the agents' ids
	list   []*prepared
	fields fieldTexts
}

// addAgent adds an agent that is neither in the index nor in the segment. hash is bm25.HashOf of its id.
func (s *segment) addAgent(a *hub.Agent, hash uint64) {
	p := prepareAgent(a)
	p.agent = nil // the caller reuses the memory of the agent
	s.ids[idOf(p.key)] = true
	s.keys, s.hashes, s.list = append(s.keys, p.key), append(s.hashes, hash), append(s.list, p)
	s.words.Add(s.fields.of(a)...)
}

func (s *segment) isFull(indexed int) bool {
	return len(s.list) >= min(bm25.MaxSegment, max(minSegment, indexed)) || s.words.Size() >= segmentSize
}

// flush adds the segment to the index and empties it. The words are added first and all agents later, in
// one step: in between, for some milliseconds, the dictionary has words that no agent has.
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

// appendSegment adds the documents of a segment, whose words are already interned; the caller must hold
// mu.
func (x *Index) appendSegment(s *segment) {
	for i, hash := range s.hashes {
		if doc, known := x.byID.FindHash(idOf(s.keys[i]), hash); known { // added by a concurrent Put
			x.removeDoc(doc)
		}
	}
	first := len(x.docs)
	x.words.Append(s.words, first)
	x.growDocs(len(s.list))
	for i, p := range s.list {
		doc := uint32(first + i)
		x.byID.InsertHash(doc, s.hashes[i])
		x.senses.want(doc)
		x.outer.want(doc)
		x.setDocument(doc, p)
	}
	x.senses.wake()
	x.outer.wake()
	x.state.Add(1)
}
