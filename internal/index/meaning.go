package index

import (
	"context"
	"runtime"
	"slices"
	"strings"
	"sync"

	"agentsite/internal/hub"
	"agentsite/internal/index/bm25"
	"agentsite/internal/index/vector"
)

// Encoder turns a text into a vector of length 1, so that texts of similar meaning have similar directions. It
// returns nil for a text of which it knows nothing. It is safe for concurrent use.
type Encoder interface {
	Encode(text string) []float32
	// Knows reports whether it has every word of a text as a whole, so that none is misspelt.
	Knows(text string) bool
}

// senses holds the vectors of the agents: one of the profile and one of each skill. All methods may be called on
// nil, which is an index that finds by words only.
type senses struct {
	encoder Encoder
	store   *vector.Store // guarded by Index.mu
	wanted  bm25.Bits     // documents whose vectors are still missing; guarded by Index.mu
	turn    uint32        // number of times that EncodeAll added vectors; guarded by Index.mu
	turns   []uint32      // by document: the turn in which EncodeAll added its vectors, 0 for Put; guarded by Index.mu
	woken   chan struct{} // holds a value if wanted may have documents
}

// NewWithMeaning returns an empty index that also finds agents by meaning, with vectors of dims dimensions. Put
// encodes an agent at once; Run encodes those that Load added.
func NewWithMeaning(e Encoder, dims int) *Index {
	x := New()
	x.senses = &senses{encoder: e, store: vector.New(dims), woken: make(chan struct{}, 1)}
	return x
}

// blank returns an empty index of the same kind.
func (x *Index) blank() *Index {
	if x.senses == nil {
		return New()
	}
	y := New()
	y.senses = &senses{encoder: x.senses.encoder, store: x.senses.store.Blank(), woken: make(chan struct{}, 1)}
	x.mu.RLock()
	defer x.mu.RUnlock()
	if x.outer != nil {
		y.outer, y.model = &senses{store: x.outer.store.Blank(), woken: make(chan struct{}, 1)}, x.model
	}
	return y
}

// EncodeText returns the vector of a text as the index compares it; nil if it has no meaning or the index finds by
// words only.
func (x *Index) EncodeText(text string) []float32 {
	if x.senses == nil {
		return nil
	}
	return x.senses.encoder.Encode(text)
}

// maxSenseBytes bounds the text of one part of an agent that is encoded.
const maxSenseBytes = 2000

// encodeAgent returns the vectors of an agent: the first is that of the profile, the others are those of the
// skills, in their order.
func (s *senses) encodeAgent(a *hub.Agent) []vector.Row {
	if s == nil {
		return nil
	}
	list := make([]vector.Row, 0, vector.MaxRows)
	for part := range senseCount(a) {
		list = append(list, vector.NewRow(s.encoder.Encode(senseText(a, part))))
	}
	return list
}

// senseCount returns the number of texts of an agent that are encoded.
func senseCount(a *hub.Agent) int { return min(1+len(a.Skills), vector.MaxRows) }

// senseText returns the text whose meaning is compared for a part: 0 is the profile with all of its skills, others are
// single skills. The title is part of each, because a skill alone often does not name its subject.
func senseText(a *hub.Agent, part int) string {
	list := []string{a.Title}
	if part == 0 {
		list = append(list, a.Description)
		for i := range a.Skills {
			list = append(list, a.Skills[i].Name, a.Skills[i].Description)
		}
	} else {
		k := &a.Skills[part-1]
		list = append(list, k.Name, k.Description)
		list = append(list, k.Tags...)
		list = append(list, k.Examples...)
	}
	text := strings.Join(slices.DeleteFunc(list, func(s string) bool { return s == "" }), ". ")
	if len(text) > maxSenseBytes {
		text = strings.ToValidUTF8(text[:maxSenseBytes], "")
	}
	return text
}

// senseName returns the field and the name that a result shows for a part.
func senseName(a *hub.Agent, part int) (field, name string) {
	if part == 0 || part > len(a.Skills) {
		return "title", a.Title
	}
	if k := &a.Skills[part-1]; k.Name != "" {
		return "skills", k.Name
	}
	return "skills", a.Skills[part-1].ID
}

// put stores the vectors of a document that was changed or, if turn is not 0, was known by its words until then.
func (s *senses) put(doc uint32, rows []vector.Row, turn uint32) {
	if s == nil {
		return
	}
	s.store.Put(doc, rows)
	s.wanted.Drop(int(doc))
	if n := int(doc) + 1 - len(s.turns); n > 0 {
		s.turns = append(s.turns, make([]uint32, n)...)
	}
	s.turns[doc] = turn
}

// dropRows removes the vectors of a document after a change of its text, until it has new ones.
func (s *senses) dropRows(doc uint32) {
	if s != nil {
		s.store.Remove(doc)
		s.wanted.Add(int(doc))
		s.wake()
	}
}

func (s *senses) remove(doc uint32) {
	if s != nil {
		s.store.Remove(doc)
		s.wanted.Drop(int(doc))
	}
}

func (s *senses) want(doc uint32) {
	if s != nil {
		s.wanted.Add(int(doc))
	}
}

func (s *senses) wake() {
	if s == nil {
		return
	}
	select {
	case s.woken <- struct{}{}:
	default: // Run has not seen the last one yet
	}
}

// Run encodes the agents that Load adds, until ctx ends. Searches find them by their words meanwhile.
func (x *Index) Run(ctx context.Context) error {
	if x.senses == nil {
		return nil
	}
	for {
		x.EncodeAll(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-x.senses.woken:
		}
	}
}

// encodeBatch is the number of agents that EncodeAll adds under one lock, for which searches wait half a millisecond.
const encodeBatch = 128

// EncodeAll encodes the agents that Load added, and returns when all have vectors or ctx ends.
func (x *Index) EncodeAll(ctx context.Context) {
	s := x.senses
	if s == nil {
		return
	}
	for ctx.Err() == nil {
		list := x.listWanted(s, encodeBatch)
		if len(list) == 0 {
			return
		}
		var wg sync.WaitGroup
		workers := runtime.GOMAXPROCS(0)
		for first := range workers {
			wg.Go(func() {
				for i := first; i < len(list); i += workers {
					list[i].rows = s.encodeAgent(&list[i].agent)
				}
			})
		}
		wg.Wait()
		x.putWanted(s, list)
	}
}

// wantedAgent is an agent without vectors, and later its vectors.
type wantedAgent struct {
	doc   uint32
	agent hub.Agent
	rows  []vector.Row
}

// listWanted returns at most limit of the agents that have no vectors in s.
func (x *Index) listWanted(s *senses, limit int) (list []wantedAgent) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	for doc := range s.wanted.Each {
		list = append(list, wantedAgent{doc: uint32(doc), agent: x.agentOf(uint32(doc))})
		if len(list) == limit {
			break
		}
	}
	return list
}

// putWanted stores the vectors of agents that have not changed since listWanted returned them.
func (x *Index) putWanted(s *senses, list []wantedAgent) {
	x.mu.Lock()
	defer x.mu.Unlock()
	s.turn++
	for i := range list {
		u := &list[i]
		if !s.wanted.Has(int(u.doc)) {
			continue // changed or removed meanwhile
		}
		// The number may belong to another agent now.
		if now := x.agentOf(u.doc); sameText(&now, &u.agent) {
			s.put(u.doc, u.rows, s.turn)
		}
	}
	x.state.Add(1)
}

// The weights of the fusion of words and meaning, and the bounds from which an agent fits, chosen on the development
// half of bench/recruit and the tuning set of bench/relevance.
const (
	// maxNear is the number of agents that are found by meaning.
	maxNear = 100
	// leastCosine is the cosine from which an agent is found in the mode auto if any agent fits, leastMeaning the one
	// in the mode meaning, leastUnfit the one for a query that need not fit.
	leastCosine  = 0.35
	leastMeaning = 0.25
	leastUnfit   = 0.2
	// belowBest is how much less than the best cosine a similar agent may have.
	belowBest = 0.25
	// leastFit is the cosine from which an agent fits a query. One that has some of the query's words fits with less:
	// with shareWorth less if it has all of them.
	leastFit   = 0.46
	shareWorth = 0.3
	// leastShare is the share of the weight of the query's words from which an agent fits by words alone.
	leastShare = 0.5
	// meaningWeight is the score of a similarity of 1, where 1 is above the score of all words in the best field. An
	// unfinished query counts with unfinishedWeight, because the meaning of its last word is a guess.
	meaningWeight    = 1.0
	unfinishedWeight = 0.25
	// profileWeight is the weight of the similarity of the whole profile, where that of its nearest part has 1: among
	// agents with an equal skill, one that does little else is better.
	profileWeight = 1
)

// blend is how words and meaning are fused for one query. A cursor carries it, so that the score of an agent that
// stays unchanged is the same on all pages, whichever other agents come, go and get their vectors meanwhile.
type blend struct {
	unit  float32      // the score of a meaning with weight 1
	reach vector.Reach // which agents are found by meaning
	turn  uint32       // vectors that EncodeAll adds in later turns do not count
	model uint32       // Model.ID of the vectors, 0 for those of the index itself
}

// isValid reports whether a blend from a cursor is one that a search can use.
func (b blend) isValid() bool {
	return b.unit > 0 && b.unit < 1e6 && b.reach.Cosine >= -2 && b.reach.Cosine <= 2
}

// ranking is the order by score of the agents that match a query. near are the agents that are similar in meaning,
// sorted by their fused score and then by key; the scores of all others are those of their words.
type ranking struct {
	m     *bm25.Match
	x     *Index
	by    *senses // the vectors that are compared
	near  []bm25.Hit
	parts map[int]vector.Near // by document, of near
	among bm25.Bits           // the documents of near
	less  bm25.Bits
	blend blend
}

// Top returns the first limit documents of r.m.Bits after a position, like bm25.Match.Top.
func (r *ranking) Top(limit int, after *bm25.After) []bm25.Hit {
	if len(r.near) == 0 {
		return r.m.Top(limit, after)
	}
	all := r.m.Bits
	r.less = append(r.less[:0], all...)
	r.less.AndNot(r.among)
	r.m.Bits = r.less
	words := r.m.Top(limit, after)
	r.m.Bits = all
	list := make([]bm25.Hit, 0, limit)
	near := r.near
	for len(list) < limit && len(near)+len(words) > 0 {
		switch {
		case len(near) > 0 && (!all.Has(near[0].ID) ||
			after != nil && r.compare(near[0], after.Score, after.Key) <= 0):
			near = near[1:]
		case len(near) == 0 ||
			len(words) > 0 && r.compare(near[0], words[0].Score, r.x.words.Key(words[0].ID)) > 0:
			list, words = append(list, words[0]), words[1:]
		default:
			list, near = append(list, near[0]), near[1:]
		}
	}
	return list
}

// compare orders a hit and a position as on a page: by descending score, then by key.
func (r *ranking) compare(h bm25.Hit, score float64, key string) int {
	switch {
	case h.Score > score:
		return -1
	case h.Score < score:
		return 1
	}
	return strings.Compare(r.x.words.Key(h.ID), key)
}

// soughtVector returns the vector of a query's text; nil if the query is not searched by meaning. It is that of a
// model outside if by has one. content is false if the query has only words of grammar.
func (x *Index) soughtVector(q *hub.Query, m *bm25.Match, by Sought) (v *vector.Query, content, unfinished bool) {
	text, unfinished := m.Meant(q.Text, x.senses.encoder.Knows)
	if text == "" || m.HasPhrase() {
		return nil, text != "", false
	}
	f := by.Vector
	if by.Model == 0 {
		f = x.senses.encoder.Encode(text)
	}
	if f != nil {
		v = vector.NewQuery(f)
	}
	return v, true, unfinished
}

// rankMatches adds to m.Bits the agents that are similar in meaning to the query and returns the order of all. In the
// mode auto it removes all if none fits, unless q.Unfit is set: neither by meaning nor by its share of the query's
// words. at is the position of the page. The caller must hold mu.
func (x *Index) rankMatches(q *hub.Query, m *bm25.Match, at *place, by Sought, s *scratch) *ranking {
	r := &ranking{m: m, x: x, by: x.senses}
	if m.Any || q.Mode == hub.ModeWords || x.senses == nil {
		return r
	}
	if by.Model != 0 {
		r.by = x.outer
	}
	v, content, unfinished := x.soughtVector(q, m, by)
	if at != nil {
		r.blend = at.blend
	} else {
		r.blend = blend{unit: float32(max(m.Wish(), 1) * meaningWeight), turn: r.by.turn, model: by.Model}
		if unfinished {
			r.blend.unit *= unfinishedWeight
		}
	}
	fits := at != nil || q.Unfit || m.HasPhrase()
	if q.Mode == hub.ModeMeaning {
		clear(m.Bits)
	}
	if v != nil && r.blend.unit > 0 {
		fits = x.addNear(q, r, v, at == nil, s) || fits
	}
	if !fits && q.Mode != hub.ModeMeaning && !(content && x.fitsByWords(m)) {
		clear(m.Bits)
	}
	return r
}

// findNear returns the agents that are similar in meaning, the nearest first. On the first page it sets
// r.blend.reach.
func (x *Index) findNear(q *hub.Query, r *ranking, v *vector.Query, first bool, s *scratch) []vector.Near {
	allowed := x.allowed(q, r.m, s)
	if !first {
		return r.by.store.Within(v, r.blend.reach, allowed, &s.nearest)
	}
	near, reach := r.by.store.Nearest(v, maxNear, allowed, &s.nearest)
	switch {
	case q.Unfit:
		reach.Cosine = max(reach.Cosine, leastUnfit)
	case len(near) > 0:
		least := float32(leastCosine)
		if q.Mode == hub.ModeMeaning {
			least = leastMeaning
		}
		reach.Cosine = max(reach.Cosine, least, near[0].Cosine-belowBest)
	}
	r.blend.reach = reach
	return near
}

// addNear sets r.near and reports whether one of them fits.
func (x *Index) addNear(q *hub.Query, r *ranking, v *vector.Query, first bool, s *scratch) (fits bool) {
	r.parts = make(map[int]vector.Near)
	for _, n := range x.findNear(q, r, v, first, s) {
		if n.Cosine < r.blend.reach.Cosine {
			break
		}
		if r.by.turns[n.Doc] > r.blend.turn {
			continue
		}
		id := int(n.Doc)
		var h bm25.Hit
		share := 0.0
		h.Score, share, h.Matched = r.m.Weigh(id)
		fits = fits || float64(n.Cosine)+shareWorth*share >= leastFit
		similar := n.Cosine
		if whole, ok := r.by.store.Part(v, n.Doc, 0); ok {
			similar = (n.Cosine + profileWeight*whole) / (1 + profileWeight)
		}
		h.ID = id
		h.Score = float64(float32(h.Score) + r.blend.unit*similar)
		h.Matched = append(slices.Clip(h.Matched), hub.ByMeaning)
		r.near, r.parts[id] = append(r.near, h), n
		r.among.Add(id)
		r.m.Bits.Add(id)
	}
	slices.SortFunc(r.near, func(a, b bm25.Hit) int { return r.compare(a, b.Score, x.words.Key(b.ID)) })
	return fits
}

// allowed returns the documents that pass the filters of a query and its excluded words, for a search by meaning;
// nil if it has neither.
func (x *Index) allowed(q *hub.Query, m *bm25.Match, s *scratch) bm25.Bits {
	asked := filtersOf(q)
	narrowed := m.Excludes() || !q.CreatedAfter.IsZero() || !q.UpdatedAfter.IsZero()
	for _, values := range asked {
		narrowed = narrowed || len(values) > 0
	}
	if !narrowed {
		return nil
	}
	s.allowed = append(s.allowed[:0], x.words.All()...)
	for f, values := range asked {
		if len(values) > 0 {
			s.filters[f] = append(s.filters[f][:0], make(bm25.Bits, len(s.allowed))...)
			x.facets[f].unionDocs(f, values, &s.filters[f])
			s.allowed.And(s.filters[f])
		}
	}
	m.Narrow(s.allowed)
	dropOlder(x, s.allowed, q)
	return s.allowed
}

// fitHits is the number of the best hits by words of which one must fit.
const fitHits = 5

// fitsByWords reports whether one of the best hits has enough of the query's words.
func (x *Index) fitsByWords(m *bm25.Match) bool {
	for _, h := range m.Top(fitHits, nil) {
		if _, share, _ := m.Weigh(h.ID); share >= leastShare {
			return true
		}
	}
	return false
}

// explain adds to a result why it is similar in meaning, if it is.
func (r *ranking) explain(res *hub.Result, id int) {
	n, ok := r.parts[id]
	if !ok {
		return
	}
	res.Meaning = float64(n.Cosine)
	field, name := senseName(&res.Agent, n.Part)
	res.Why = append(res.Why, hub.Match{Found: name, How: hub.ByMeaning, Field: field})
}
