// Package index finds agents by words and counts them by facet, in memory,
// behind the port hub.Index. It knows which parts of an agent matter how
// much and which of them may be listed; how words are found and ranked is
// the business of its subpackage bm25, and neither knows the database: the
// index is filled with Load at start and kept current with Put and Remove by
// whoever saves.
//
//	x := index.New()
//	x.Put(agent)
//	page, err := x.Search(hub.Query{Text: "translat", Kinds: []string{"a2a"}, Limit: 20})
//
// One lock guards everything but the memory of recent counts and of codecs,
// which have their own. Splitting texts into words and packing the agent, which
// is most of the work of Put, happens outside of it, and a Put that changes no
// text (a probe's verdict) touches only the facets, so searches hardly notice
// writes.
package index

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"agentsite/internal/hub"
	"agentsite/internal/index/bm25"
)

// Index implements hub.Index. Make one with New.
type Index struct {
	mu       sync.RWMutex // guards everything below
	words    *bm25.Index
	entries  []entry  // by document id
	columns  []column // likewise, 64 documents each
	byID     bm25.Table
	free     []uint32
	facets   *facets
	profiles *profiles
	up       bm25.Bits // alive and not deprecated
	copies   *copies
	restIDs  []uint32 // scratch of setEntry
	oldIDs   []uint32 // likewise

	state   atomic.Uint64 // counts changes that a search may show
	packer  packer
	counted counted
	scratch sync.Pool // of *scratch
}

var _ hub.Index = (*Index)(nil)

// entry is one indexed agent but for its facets, which the columns hold.
type entry struct {
	rec              string // the agent, packed
	created, updated int64  // see nanos
}

// New returns an empty index.
func New() *Index {
	x := &Index{words: bm25.New(fields...), facets: newFacets(), profiles: newProfiles(), copies: newCopies()}
	x.byID.Text = func(doc uint32) string { return idOf(x.words.Key(int(doc))) }
	return x
}

// Len implements hub.Index.
func (x *Index) Len() int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.words.Len()
}

// State implements hub.Index.
func (x *Index) State() uint64 { return x.state.Load() }

// Put implements hub.Index. An agent that may not be listed is removed.
func (x *Index) Put(a hub.Agent) {
	if !listable(&a) {
		x.Remove(a.ID)
		return
	}
	p := x.prepare(&a)
	x.mu.RLock()
	same := false
	if doc, known := x.byID.Find(a.ID); known {
		old := x.agent(doc)
		same = sameText(&old, &a)
	}
	x.mu.RUnlock()
	if !same {
		p.analyze(x)
		x.mu.RLock()
		p.resolve(x)
		x.mu.RUnlock()
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.put(p)
}

// prepared is an agent on its way into the index: all that can be done about
// it without the lock.
type prepared struct {
	agent    *hub.Agent
	key      string
	packed   []byte
	values   []facetText
	ids      []uint32 // of values, as far as they were known in that epoch
	epoch    uint64
	doc      bm25.Doc
	analyzed bool
}

func (x *Index) prepare(a *hub.Agent) *prepared {
	p := &prepared{agent: a, key: key(a)}
	w := writer{head: make([]byte, 0, 96), text: make([]byte, 0, 768)}
	w.write(a)
	p.packed = x.packer.pack(make([]byte, 0, len(w.head)+len(w.text)), &w)
	p.values = facetTexts(make([]facetText, 0, 16), a)
	return p
}

func (p *prepared) analyze(x *Index) {
	p.doc, p.analyzed = x.words.Analyze(texts(p.agent)...), true
}

// resolve looks up words and values, so that put has less to do; the caller
// must hold mu for reading.
func (p *prepared) resolve(x *Index) {
	if p.analyzed {
		x.words.Resolve(&p.doc)
	}
	p.ids = make([]uint32, len(p.values))
	for i, v := range p.values {
		if id, ok := x.facets.byText.Find(v); ok {
			p.ids[i] = id + 1
		}
	}
	p.epoch = x.facets.epoch
}

// put adds or replaces an agent; the caller must hold mu.
func (x *Index) put(p *prepared) {
	id, known := x.byID.Find(p.agent.ID)
	moved, shown := !known, !known
	if known {
		old := x.agent(id)
		moved, shown = !sameText(&old, p.agent), !sameLook(&old, p.agent)
	} else {
		id = x.newID()
	}
	if moved {
		if !p.analyzed { // somebody else's Put came between
			p.analyze(x)
		}
		if known {
			x.byID.Delete(id)
		}
		x.words.Put(int(id), p.key, p.doc)
		x.byID.Insert(id)
	}
	if shown {
		x.state.Add(1)
	}
	x.setEntry(id, p)
	if up(p.agent) {
		x.up.Add(int(id))
	} else {
		x.up.Drop(int(id))
	}
	x.copies.put(id, p.agent)
}

// setEntry replaces the entry and its facet values; the caller must hold mu.
func (x *Index) setEntry(id uint32, p *prepared) {
	var ids []uint32
	if fresh := p.ids != nil && p.epoch == x.facets.epoch; fresh {
		ids = p.ids
	} else {
		ids = make([]uint32, len(p.values))
	}
	invented, portal := 0, uint32(noPortal)
	rest := x.restIDs[:0] // what the profile is of
	for i, v := range ids {
		if v == 0 {
			ids[i] = x.facets.intern(p.values[i])
		} else {
			ids[i] = v - 1
		}
		switch f := int(p.values[i][0]); {
		case f < inventedFacets:
			invented = i + 1
		case f == portalFacet && portal == noPortal:
			portal = x.facets.values[ids[i]].number
		default:
			rest = append(rest, ids[i])
		}
		x.facets.add(ids[i], id, len(x.entries))
	}
	x.restIDs = rest
	x.oldIDs = x.valuesOf(x.oldIDs[:0], id)
	c, i := &x.columns[id/columnSize], id%columnSize
	c.set(i, ids[:invented])
	was := c.stands[i].profile
	c.stands[i] = standing{x.profiles.take(rest), portal}
	x.profiles.drop(was)
	x.entries[id] = entry{rec: string(p.packed), created: nanos(p.agent.CreatedAt), updated: nanos(p.agent.UpdatedAt)}
	for _, v := range x.oldIDs {
		if !slices.Contains(ids, v) {
			x.facets.remove(v, id, len(x.entries))
		}
	}
	c.sort(i, x.facets)
	x.sortMoved()
}

// sortMoved sorts the values of the documents of those that became frequent
// or no longer are; the caller must hold mu.
func (x *Index) sortMoved() {
	for _, v := range x.facets.moved {
		x.facets.values[v].docs.each(func(doc uint32) { x.columns[doc/columnSize].sort(doc%columnSize, x.facets) })
	}
	x.facets.moved = x.facets.moved[:0]
}

// invented appends the values that people invented of a document to dst, and
// valuesOf all of its values; the caller must hold mu.
func (x *Index) invented(dst []uint32, doc uint32) []uint32 {
	return x.columns[doc/columnSize].of(dst, doc%columnSize, x.facets)
}

func (x *Index) valuesOf(dst []uint32, doc uint32) []uint32 {
	dst = x.invented(dst, doc)
	c, i := &x.columns[doc/columnSize], doc%columnSize
	if v := c.stands[i].portal; v != noPortal {
		dst = append(dst, x.facets.portals[v])
	}
	return append(dst, x.profiles.list[c.stands[i].profile].values...)
}

// Remove implements hub.Index.
func (x *Index) Remove(id string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if doc, known := x.byID.Find(id); known {
		x.remove(doc)
	}
}

// remove forgets a document; the caller must hold mu.
func (x *Index) remove(doc uint32) {
	x.byID.Delete(doc)
	x.copies.remove(doc)
	x.words.Remove(int(doc))
	x.oldIDs = x.valuesOf(x.oldIDs[:0], doc)
	for _, v := range x.oldIDs {
		x.facets.remove(v, doc, len(x.entries))
	}
	c, i := &x.columns[doc/columnSize], doc%columnSize
	c.set(i, nil)
	c.sort(i, x.facets)
	x.sortMoved()
	x.profiles.drop(c.stands[i].profile)
	c.stands[i] = standing{portal: noPortal}
	x.entries[doc] = entry{}
	x.up.Drop(int(doc))
	x.free = append(x.free, doc)
	x.state.Add(1)
}

// agent returns an agent of the index; the caller must hold mu.
func (x *Index) agent(doc uint32) (a hub.Agent) {
	var buf []byte
	x.unpack(&a, doc, &buf)
	return a
}

// unpack is agent into a, which is empty, with the memory to read texts into.
func (x *Index) unpack(a *hub.Agent, doc uint32, buf *[]byte) {
	e := &x.entries[doc]
	x.packer.unpack(a, x.words.Key(int(doc)), e.rec, buf)
	a.CreatedAt, a.UpdatedAt = fromNanos(e.created), fromNanos(e.updated)
}

// listable reports whether an agent may be found. No id has a zero byte,
// which ends the parts of a key.
func listable(a *hub.Agent) bool {
	return a.Listable() && !strings.Contains(a.ID, "\x00")
}

// up reports whether an agent is worth a visit now. Others sink.
func up(a *hub.Agent) bool {
	return a.Liveness.State == hub.Alive && a.Status.State != hub.Deprecated
}

// sameLook reports whether two forms of an agent are shown alike.
func sameLook(a, b *hub.Agent) bool {
	if nanos(a.CreatedAt) != nanos(b.CreatedAt) || nanos(a.UpdatedAt) != nanos(b.UpdatedAt) {
		return false
	}
	var w [2]writer
	for i, a := range []hub.Agent{*a, *b} {
		a.Liveness.CheckedAt, a.Liveness.Latency = time.Time{}, 0
		w[i].write(&a)
	}
	return string(w[0].head) == string(w[1].head) && string(w[0].text) == string(w[1].text)
}

// newID returns an unused document id; the caller must hold mu.
func (x *Index) newID() uint32 {
	if n := len(x.free); n > 0 {
		id := x.free[n-1]
		x.free = x.free[:n-1]
		return id
	}
	if len(x.entries)%columnSize == 0 {
		if n := len(x.columns); n > 0 {
			x.columns[n-1].fit()
		}
		x.columns = append(x.columns, newColumn())
	}
	x.entries = append(x.entries, entry{})
	return uint32(len(x.entries) - 1)
}
