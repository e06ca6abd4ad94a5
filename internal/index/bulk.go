package index

import (
	"encoding/binary"
	"slices"
	"strings"

	"agentsite/internal/hub"
	"agentsite/internal/index/bm25"
)

// filling is a segment of new agents on their way into the index, with the
// memory for the next one. The values of facets and the profiles have numbers
// of the segment, as its words have, so that the index hears of each once.
type filling struct {
	x     *Index
	words *bm25.Segment
	ids   map[string]bool

	keys    []string
	hashes  []uint64 // of the ids of agents
	entries []entry
	ups     []bool
	same    []likeness

	values   bm25.Lexicon
	texts    []facetText // of values
	known    []uint32    // values in the index and 1, 0 of unknown ones
	epoch    uint64
	invented []uint32 // values that people invented, agent by agent
	ends     []uint32 // of each agent in invented
	profiles bm25.Lexicon
	profile  []uint32 // of each agent
	portals  []uint32 // values, likewise
	pairs    []uint64 // a value and an agent
	starts   []uint32 // of each value in agents
	agents   []uint32
	global   []uint32

	batch   []uint64 // hashes of ids, see fresh
	isNew   []bool
	fields  fieldTexts
	writer  writer
	packed  []byte
	text    []byte
	numbers []uint32
}

// segmentSize bounds the words of a segment as well as its agents: how long
// searches wait until it is in.
const segmentSize = 80 * bm25.MaxSegment

func (x *Index) newFilling() *filling {
	return &filling{x: x, words: x.words.NewSegment(), ids: make(map[string]bool)}
}

// full reports whether the segment should go in before more comes; the first
// ones are small, so that something is found soon.
func (f *filling) full(indexed int) bool {
	return f.words.Len() >= min(bm25.MaxSegment, max(minSegment, indexed)) || f.words.Size() >= segmentSize
}

const minSegment = 256

func (f *filling) reset() {
	f.words.Reset()
	clear(f.ids)
	clear(f.keys)
	clear(f.entries)
	clear(f.texts)
	f.keys, f.hashes, f.entries, f.ups, f.texts = f.keys[:0], f.hashes[:0], f.entries[:0], f.ups[:0], f.texts[:0]
	f.same = f.same[:0]
	f.values.Reset()
	f.profiles.Reset()
	f.invented, f.ends, f.profile, f.portals, f.pairs = f.invented[:0], f.ends[:0], f.profile[:0], f.portals[:0], f.pairs[:0]
}

// add takes an agent in that is new to the index, with the hash of its id.
// It reports false for one that is in the segment already.
func (f *filling) add(a *hub.Agent, hash uint64) bool {
	if f.ids[a.ID] {
		return false
	}
	f.ids[a.ID] = true
	f.keys, f.hashes, f.ups = append(f.keys, key(a)), append(f.hashes, hash), append(f.ups, up(a))
	f.writer.head, f.writer.text = f.writer.head[:0], f.writer.text[:0]
	f.writer.write(a)
	f.packed = f.x.packer.pack(f.packed[:0], &f.writer)
	f.entries = append(f.entries, entry{rec: string(f.packed), created: nanos(a.CreatedAt), updated: nanos(a.UpdatedAt)})
	if foldable(a) {
		f.same = append(f.same, likeness{member{uint32(len(f.ends)), stateOf(a), strings.Clone(a.Portal)}, sameKeyOf(a)})
	}
	f.words.Add(f.fields.of(a)...)
	f.addValues(a)
	return true
}

func (f *filling) addValues(a *hub.Agent) {
	doc := uint64(len(f.ends))
	list := f.numbers[:0]
	facet, from, invented, portal := 0, 0, 0, -1
	eachFacet(a, func(number int, value string) {
		if number != facet {
			facet, from = number, len(list)
		}
		f.text = appendFacet(f.text[:0], number, value)
		if len(f.text) == 1 || len(list)-from >= maxFacetValues {
			return
		}
		v := f.values.Number(f.text)
		if slices.Contains(list[from:], v) {
			return
		}
		if number == portalFacet && portal < 0 {
			portal = len(list)
		}
		list = append(list, v)
		f.pairs = append(f.pairs, uint64(v)<<32|doc)
		if number < inventedFacets {
			invented = len(list)
		}
	})
	f.numbers = list
	f.invented = append(f.invented, list[:invented]...)
	f.ends = append(f.ends, uint32(len(f.invented)))
	f.text = f.text[:0]
	f.portals = append(f.portals, list[portal]) // every agent is somewhere
	for _, v := range slices.Delete(list[invented:], portal-invented, portal-invented+1) {
		f.text = binary.LittleEndian.AppendUint32(f.text, v)
	}
	f.profile = append(f.profile, f.profiles.Number(f.text))
}

// appendFacet appends a value as the dictionary keeps it, see textOf.
func appendFacet(dst []byte, facet int, value string) []byte {
	dst = append(dst, byte(facet))
	switch facet {
	case tagFacet, skillFacet, languageFacet, publisherFacet:
		for i := range len(value) {
			c := value[i]
			if c >= 0x80 || c <= ' ' && (i == 0 || i == len(value)-1) {
				return append(dst[:1], facetValue(facet, value)...)
			}
			if c >= 'A' && c <= 'Z' {
				c += 'a' - 'A'
			}
			dst = append(dst, c)
		}
		return dst
	}
	return append(dst, facetValue(facet, value)...)
}

// lookups is how many words are looked up before somebody else gets the lock.
const lookups = 1024

// flush puts the segment into the index and empties it. Its words come first,
// so that a search may for some milliseconds know a word that no agent has; its
// agents come all at once.
func (f *filling) flush() {
	if f.words.Len() == 0 {
		return
	}
	x, s := f.x, f.words
	f.texts = f.values.Texts(f.texts[:0])
	f.known = append(f.known[:0], make([]uint32, len(f.texts))...)
	for from := 0; from < s.Words(); from += lookups {
		x.mu.RLock()
		s.Resolve(from, min(from+lookups, s.Words()))
		x.mu.RUnlock()
	}
	f.resolve()
	s.Sort()
	f.group()
	x.mu.Lock()
	x.words.Intern(s)
	x.mu.Unlock()
	s.Build(f.keys)
	x.mu.RLock()
	s.Look()
	x.mu.RUnlock()
	s.Pair()
	x.mu.Lock()
	x.append(f)
	x.mu.Unlock()
	f.reset()
}

// resolve looks up the values.
func (f *filling) resolve() {
	f.x.mu.RLock()
	defer f.x.mu.RUnlock()
	f.epoch = f.x.facets.epoch
	for n, text := range f.texts {
		if id, ok := f.x.facets.byText.FindHash(text, f.values.Hash(uint32(n))); ok {
			f.known[n] = id + 1
		} else {
			f.texts[n] = strings.Clone(text)
		}
	}
}

// group lists the agents of each value.
func (f *filling) group() {
	f.starts = append(f.starts[:0], make([]uint32, len(f.texts)+1)...)
	for _, p := range f.pairs {
		f.starts[p>>32]++
	}
	at := uint32(0)
	for v, n := range f.starts {
		f.starts[v] = at
		at += n
	}
	f.agents = slices.Grow(f.agents[:0], len(f.pairs))[:len(f.pairs)]
	for _, p := range f.pairs {
		f.agents[f.starts[p>>32]] = uint32(p)
		f.starts[p>>32]++
	}
	copy(f.starts[1:], f.starts)
	f.starts[0] = 0
}

// append adds the agents of a segment; the caller must hold mu.
func (x *Index) append(f *filling) {
	for i, h := range f.hashes {
		id := idOf(f.keys[i])
		if doc, known := x.byID.FindHash(id, h); known { // came in meanwhile
			x.remove(doc)
		}
	}
	first := len(x.entries)
	x.words.Append(f.words, first)
	x.entries = append(bm25.Room(x.entries, len(f.entries)), f.entries...)
	for i, h := range f.hashes {
		x.byID.InsertHash(uint32(first+i), h)
		if f.ups[i] {
			x.up.Add(first + i)
		}
	}
	for _, l := range f.same {
		l.doc += uint32(first)
		x.copies.add(l)
	}
	f.global = f.global[:0]
	for n, text := range f.texts {
		id := f.known[n]
		if id == 0 {
			id = x.facets.internHash(text, f.values.Hash(uint32(n))) + 1
		} else if f.epoch != x.facets.epoch {
			id = x.facets.intern(text) + 1
		}
		f.global = append(f.global, id-1)
		x.facets.addRun(id-1, uint32(first), f.agents[f.starts[n]:f.starts[n+1]], len(x.entries))
	}
	x.addColumns(f, first)
	x.sortMoved()
	x.state.Add(1)
}

// addColumns appends the values of the agents of a segment; the caller must
// hold mu.
func (x *Index) addColumns(f *filling, first int) {
	profiles := make([]uint32, f.profiles.Len())
	for n, text := range f.profiles.Texts(nil) {
		f.numbers = f.numbers[:0]
		for ; text != ""; text = text[4:] {
			f.numbers = append(f.numbers, f.global[binary.LittleEndian.Uint32([]byte(text[:4]))])
		}
		profiles[n] = x.profiles.take(f.numbers)
		x.profiles.list[profiles[n]].docs-- // each agent counts below
	}
	from := uint32(0)
	for i, end := range f.ends {
		for k := from; k < end; k++ {
			f.invented[k] = f.global[f.invented[k]]
		}
		doc := first + i
		if doc%columnSize == 0 {
			if n := len(x.columns); n > 0 {
				x.columns[n-1].fit()
			}
			x.columns = append(x.columns, newColumn())
		}
		c := &x.columns[len(x.columns)-1]
		c.push(uint32(doc%columnSize), f.invented[from:end], x.facets)
		c.stands[doc%columnSize] = standing{profiles[f.profile[i]], x.facets.values[f.global[f.portals[i]]].number}
		x.profiles.list[profiles[f.profile[i]]].docs++
		from = end
	}
	x.columns[len(x.columns)-1].pushed(uint32(len(x.entries)-1) % columnSize)
}
