// Package index finds agents by words and counts them by facet, in memory,
// behind the port hub.Index. It holds the weights of the parts of an agent and
// decides which agents may be listed. Words are found and ranked by its
// subpackage bm25. Neither knows the database: the index is filled with Load at
// start and kept current with Put and Remove by the code that saves agents.
//
//	x := index.New()
//	x.Put(agent)
//	page, err := x.Search(hub.Query{Text: "translat", Kinds: []string{"a2a"}, Limit: 20})
//
// One lock guards everything but the memory of recent counts, which has its
// own. Most of the work of Put, splitting texts into words, happens outside of
// it, and a Put that changes no text (a result of a liveness check) changes the
// facets only, so that searches hardly wait for writes.
package index

import (
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"agentsite/internal/hub"
	"agentsite/internal/index/bm25"
	"agentsite/internal/index/vector"
)

// Index implements hub.Index. It is safe for concurrent use. Create it with New.
type Index struct {
	mu     sync.RWMutex // guards the following fields
	words  *bm25.Index
	docs   []document  // docs, times and values are indexed by document number
	times  []docTimes  // separate from docs: sorting by time reads all of them
	values [][]valueID // separate from docs: counting facets reads all of them
	byID   bm25.Table
	free   []uint32 // document numbers that can be reused
	facets [facetCount]*facet
	up     bm25.Bits // documents that are up, see document.isUp
	senses *senses   // nil if the index finds by words only
	users  users     // by agent id
	outer  *senses   // vectors of a model outside, nil without one; guarded by mu
	model  Model     // that model

	state   atomic.Uint64 // incremented by each change that a search may show
	counted counted
	scratch sync.Pool // of *scratch, the buffers of a search
}

var _ hub.Index = (*Index)(nil)

// docTimes holds when an agent was created and last updated, as timeNumber.
type docTimes struct{ created, updated int64 }

// New returns an empty index. Load or Put fills it.
func New() *Index {
	x := &Index{words: bm25.New(fields...)}
	for f := range x.facets {
		x.facets[f] = newFacet()
	}
	x.byID.Texts = documentIDs{x.words}
	return x
}

// documentIDs gives the table Index.byID the agent id of each document, read from the document's key.
type documentIDs struct{ words *bm25.Index }

// Text implements bm25.Texts for Index.byID.
func (d documentIDs) Text(doc uint32) string { return idOf(d.words.Key(int(doc))) }

// Len implements hub.Index: the number of listed agents.
func (x *Index) Len() int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.words.Len()
}

// State implements hub.Index. It takes no lock.
func (x *Index) State() uint64 { return x.state.Load() }

// Put implements hub.Index. An agent that may not be listed (isListable) is removed instead.
func (x *Index) Put(a hub.Agent) {
	if !isListable(&a) {
		x.Remove(a.ID)
		return
	}
	p := prepareAgent(&a)
	x.mu.RLock()
	same := false
	if doc, known := x.byID.Find(a.ID); known {
		old := x.agentOf(doc)
		same = sameText(&old, &a)
	}
	x.mu.RUnlock()
	if !same {
		p.read(x)
		x.mu.RLock()
		x.words.Resolve(&p.words)
		x.mu.RUnlock()
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.putAgent(p)
}

// prepared is an agent for which all work that needs no lock is done, before putAgent adds it to the
// index.
type prepared struct {
	agent    *hub.Agent
	key      string
	doc      document
	times    docTimes
	values   []facetValue
	words    bm25.Doc
	rows     []vector.Row
	analyzed bool // true if words and rows are set
}

func prepareAgent(a *hub.Agent) *prepared {
	return &prepared{
		agent: a, key: keyOf(a), doc: newDocument(a), times: timesOf(a),
		values: facetValues(make([]facetValue, 0, 16), a),
	}
}

func timesOf(a *hub.Agent) docTimes {
	return docTimes{timeNumber(a.CreatedAt), timeNumber(a.UpdatedAt)}
}

func (p *prepared) analyze(words *bm25.Index) {
	p.words, p.analyzed = words.Analyze(textsOf(p.agent)...), true
}

// read does the work of a Put that depends on the texts and needs no lock.
func (p *prepared) read(x *Index) {
	p.analyze(x.words)
	p.rows = x.senses.encodeAgent(p.agent)
}

// putAgent adds an agent or replaces its earlier form; the caller must hold mu.
func (x *Index) putAgent(p *prepared) {
	doc, known := x.byID.Find(p.agent.ID)
	moved, shown := !known, !known
	if known {
		old := x.agentOf(doc)
		moved, shown = !sameText(&old, p.agent), !sameLook(&old, p.agent)
	} else {
		doc = x.newNumber()
	}
	if moved {
		if !p.analyzed { // another Put changed the agent after the texts were compared
			p.read(x)
		}
		if known {
			x.byID.Delete(doc)
		}
		x.words.Put(int(doc), p.key, p.words)
		x.byID.Insert(doc)
		x.senses.put(doc, p.rows, 0)
		x.outer.dropRows(doc)
	}
	if shown {
		x.state.Add(1)
	}
	x.setDocument(doc, p)
}

// setDocument stores everything of a prepared agent except its words; the caller must hold mu.
func (x *Index) setDocument(doc uint32, p *prepared) {
	x.docs[doc], x.times[doc] = p.doc, p.times
	x.setValues(doc, p.values)
	if p.doc.isUp() {
		x.up.Add(int(doc))
	} else {
		x.up.Drop(int(doc))
	}
}

// Remove implements hub.Index. An unknown id does nothing.
func (x *Index) Remove(id string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if doc, known := x.byID.Find(id); known {
		x.removeDoc(doc)
	}
}

// removeDoc deletes a document and makes its number free; the caller must hold mu.
func (x *Index) removeDoc(doc uint32) {
	x.byID.Delete(doc)
	x.words.Remove(int(doc))
	x.senses.remove(doc)
	x.outer.remove(doc)
	x.setValues(doc, nil)
	x.docs[doc], x.times[doc] = document{}, docTimes{}
	x.up.Drop(int(doc))
	x.free = append(x.free, doc)
	x.state.Add(1)
}

// newNumber returns a free document number, growing the slices if necessary; the caller must hold mu.
func (x *Index) newNumber() uint32 {
	if n := len(x.free); n > 0 {
		doc := x.free[n-1]
		x.free = x.free[:n-1]
		return doc
	}
	x.growDocs(1)
	return uint32(len(x.docs) - 1)
}

// growDocs appends n empty documents; the caller must hold mu.
func (x *Index) growDocs(n int) {
	x.docs = append(bm25.Room(x.docs, n), make([]document, n)...)
	x.times = append(bm25.Room(x.times, n), make([]docTimes, n)...)
	x.values = append(bm25.Room(x.values, n), make([][]valueID, n)...)
}

// agentOf returns the agent of a document; the caller must hold mu. The lists in the result are shared
// with the index and must not be changed.
func (x *Index) agentOf(doc uint32) (a hub.Agent) {
	x.readAgent(&a, doc)
	return a
}

// readAgent fills a, which must be zero, with the agent of a document; the caller must hold mu. The
// lists in a are shared with the index and must not be changed.
func (x *Index) readAgent(a *hub.Agent, doc uint32) {
	x.docs[doc].readAgent(a, x.words.Key(int(doc)))
	a.CreatedAt, a.UpdatedAt = timeOf(x.times[doc].created), timeOf(x.times[doc].updated)
}

// isListable reports whether searches may find an agent. An id with a zero byte is refused, because zero
// bytes separate the parts of a key.
func isListable(a *hub.Agent) bool {
	return a.Listable() && !strings.Contains(a.ID, "\x00")
}

// sameLook reports whether search results show two forms of an agent alike. Then State need not change.
func sameLook(a, b *hub.Agent) bool {
	if timesOf(a) != timesOf(b) {
		return false
	}
	list := [2]hub.Agent{*a, *b}
	for i := range list {
		list[i].CreatedAt, list[i].UpdatedAt, list[i].Liveness.CheckedAt = time.Time{}, time.Time{}, time.Time{}
		list[i].Liveness.Latency = 0
	}
	return reflect.DeepEqual(list[0], list[1])
}
