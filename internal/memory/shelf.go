package memory

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"unicode"

	"agentsite/internal/index/bm25"
	"agentsite/internal/index/vector"
	"agentsite/internal/meaning"
)

const (
	// The least cosines of a memory that is found by its meaning alone. A person searches for few and good ones. The
	// model of an agent can leave aside the ones that do not fit. None is found so in a search by words.
	personCosine, agentCosine, noCosine = 0.25, 0, 2
	// rankShift weighs the first places of the two rankings, by words and by meaning, against the later ones.
	rankShift = 10
	// keptTexts and keptShelves bound the shelves in memory.
	keptTexts, keptShelves = 250_000, 512
)

// Encoder turns a text into a vector of length 1, nil for a text without a meaning.
type Encoder interface{ Encode(text string) []float32 }

// shelf finds the memories of a person, or of an agent in a room, by words and meaning. It holds ids, words and
// vectors; the store has the last word on which memories exist.
type shelf struct {
	encoder Encoder

	mu      sync.Mutex // guards the fields below
	loaded  bool
	ids     []string       // by number, "" for one that was removed
	numbers map[string]int // by id
	words   *bm25.Index
	vectors *vector.Store
	tags    map[string]*bm25.Bits
}

func newShelf(e Encoder) *shelf { return &shelf{encoder: e} }

// tagOf names the memories of a place on the shelf of its person.
func tagOf(p Place) string { return p.AgentID + " " + p.RoomID }

// loadFrom fills the shelf if it is empty; the caller holds mu.
func (s *shelf) loadFrom(read func(yield func(Memory)) error) error {
	if s.loaded {
		return nil
	}
	s.ids, s.numbers, s.tags = nil, make(map[string]int), make(map[string]*bm25.Bits)
	s.words, s.vectors = bm25.New(bm25.Field{Name: "text", Weight: 1, Length: 12, Norm: 0.3}), vector.New(meaning.Dims)
	if err := read(s.putMemory); err != nil {
		return err
	}
	s.loaded = true
	return nil
}

// putMemory adds a memory or replaces its text; the caller holds mu.
func (s *shelf) putMemory(m Memory) {
	n, ok := s.numbers[m.ID]
	if !ok {
		n = len(s.ids)
		s.ids = append(s.ids, m.ID)
		s.numbers[m.ID] = n
	}
	s.words.Put(n, m.ID, s.words.Analyze([]string{m.Text}))
	s.vectors.Put(uint32(n), []vector.Row{vector.NewRow(s.encoder.Encode(m.Text))})
	tag := tagOf(m.Place)
	if s.tags[tag] == nil {
		s.tags[tag] = new(bm25.Bits)
	}
	s.tags[tag].Add(n)
}

// removeMemory takes a memory off the shelf; the caller holds mu.
func (s *shelf) removeMemory(id string) {
	n, ok := s.numbers[id]
	if !ok {
		return
	}
	delete(s.numbers, id)
	s.ids[n] = ""
	s.words.Remove(n)
	s.vectors.Remove(uint32(n))
	for _, bits := range s.tags {
		bits.Drop(n)
	}
}

// searchTexts returns the ids of up to n memories that fit a query, the best first; if tag is not "", only those of
// that place. least is the cosine of those that are found by meaning alone. The caller holds mu.
func (s *shelf) searchTexts(query, tag string, n int, least float32) []string {
	allowed := s.words.All()
	if tag != "" {
		if s.tags[tag] == nil {
			return nil
		}
		allowed = *s.tags[tag]
	}
	scores := make(map[int]float64)
	m := s.words.Match(plainQuery(query))
	m.Narrow(allowed)
	for i, hit := range m.Top(n, nil) {
		scores[hit.ID] += 1 / float64(rankShift+i)
	}
	m.Close()
	if v := s.encoder.Encode(query); v != nil && least < noCosine {
		near, _ := s.vectors.Nearest(vector.NewQuery(v), n, allowed, new(vector.Scratch))
		for i, hit := range near {
			if hit.Cosine >= least {
				scores[int(hit.Doc)] += 1 / float64(rankShift+i)
			}
		}
	}
	found := make([]int, 0, len(scores))
	for doc := range scores {
		found = append(found, doc)
	}
	slices.SortFunc(found, func(a, b int) int { return cmp.Or(cmp.Compare(scores[b], scores[a]), cmp.Compare(b, a)) })
	out := make([]string, 0, min(len(found), n))
	for _, doc := range found[:min(len(found), n)] {
		out = append(out, s.ids[doc])
	}
	return out
}

// newestOf returns the ids of a place, the newest first, if there are at most n; otherwise none. The caller holds mu.
func (s *shelf) newestOf(tag string, n int) []string {
	bits := s.tags[tag]
	if bits == nil || bits.Count() > n {
		return nil
	}
	var out []string
	bits.Each(func(doc int) bool {
		out = append(out, s.ids[doc])
		return true
	})
	slices.Sort(out) // ids begin with the time
	slices.Reverse(out)
	return out
}

// plainQuery takes the signs out of a text that a search would read as orders, such as quotes.
func plainQuery(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r)
	}), " ")
}

// shelves are the shelves in memory, by the person or the room and agent.
type shelves struct {
	store   Store
	encoder Encoder

	mu    sync.Mutex // guards the fields below
	all   map[string]*shelf
	order []string // keys, the one used last at the end
}

// shelfKey returns the key of a place. Memories of a room are also on the shelf of their person, which finds them for
// that person's page.
func shelfKey(p Place, room bool) string {
	if room {
		return "room " + p.RoomID + " " + p.AgentID
	}
	return "person " + p.PersonID
}

// getShelf returns the shelf with a key, an empty one if it is not in memory. It drops those that were not used for
// long.
func (c *shelves) getShelf(key string) *shelf {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, ok := c.all[key]
	if !ok {
		s = newShelf(c.encoder)
		c.all[key] = s
	} else {
		c.order = slices.DeleteFunc(c.order, func(k string) bool { return k == key })
	}
	c.order = append(c.order, key)
	texts := 0
	for i, k := range slices.Backward(c.order) {
		if other := c.all[k]; other != s && other.mu.TryLock() {
			texts += len(other.ids)
			other.mu.Unlock()
		}
		if texts > keptTexts || len(c.order)-i > keptShelves {
			for _, old := range c.order[:i+1] {
				delete(c.all, old)
			}
			c.order = slices.Clone(c.order[i+1:])
			break
		}
	}
	return s
}

// useShelf calls fn with the filled shelf of a place, of a room if room is set.
func (c *shelves) useShelf(ctx context.Context, p Place, room bool, fn func(*shelf)) error {
	s := c.getShelf(shelfKey(p, room))
	s.mu.Lock()
	defer s.mu.Unlock()
	roomID, agentID := "", ""
	if room {
		roomID, agentID = p.RoomID, p.AgentID
	}
	err := s.loadFrom(func(yield func(Memory)) error {
		return c.store.EachText(ctx, p.PersonID, roomID, agentID, yield)
	})
	if err == nil {
		fn(s)
	}
	return err
}

// changeShelves calls fn with the shelves in memory that a change of a memory concerns.
func (c *shelves) changeShelves(p Place, fn func(*shelf)) {
	keys := []string{shelfKey(p, false)}
	if p.RoomID != "" {
		keys = append(keys, shelfKey(p, true))
	}
	for _, key := range keys {
		c.mu.Lock()
		s := c.all[key]
		c.mu.Unlock()
		if s == nil {
			continue
		}
		s.mu.Lock()
		if s.loaded {
			fn(s)
		}
		s.mu.Unlock()
	}
}
