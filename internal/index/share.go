package index

import (
	"cmp"
	"slices"
	"strings"

	"agentsite/internal/hub"
	"agentsite/internal/index/bm25"
)

// On a page that is ranked by words each other portal gets at most a fifth of
// the places, so that no portal fills it by stuffing words into many agents.
// Further hits of the portal are held back: they come on later pages, each once
// and in order, or on this one when nothing else matches. A search in given
// portals is not limited.

// shareOf returns the number of hits that one other portal may have on a page of limit hits.
func shareOf(limit int) int { return max(limit/5, 1) }

// maxBehind is the maximum number of portals that one search holds back, because the cursor lists them.
// Portals beyond that number are not limited.
const maxBehind = 8

// excludeFrom is the number of pages of hits that must have been read before the hits of held-back
// portals are excluded in advance. Excluding a portal reads all of its agents, which is slower than
// skipping a few hits.
const excludeFrom = 16

// behind is the position after which the hits of a held-back portal continue on the next page.
type behind struct {
	portal string
	rank   int64
	key    string
}

// spot is a position in the ranking by score; the zero value is the start.
type spot struct {
	score float64
	key   string
	some  bool
}

func (s spot) after() *bm25.After {
	if !s.some {
		return nil
	}
	return &bm25.After{Score: s.score, Key: s.key}
}

// compare orders spots by descending score and then by key, as on a page.
func (s spot) compare(o spot) int {
	switch {
	case s.some != o.some:
		if o.some {
			return -1
		}
		return 1
	case !s.some:
		return 0
	}
	return cmp.Or(cmp.Compare(o.score, s.score), strings.Compare(s.key, o.key))
}

// stream is a part of the ranking that is read separately: the hits of one held-back portal, or all
// other hits (portal is then "").
type stream struct {
	portal string
	at     spot // position of the last hit that was taken
	seen   spot // position of the last hit that was read into hits
	hits   []bm25.Hit
	ended  bool // true if there are no further hits after hits
}

// fair selects the hits of one page so that no other portal exceeds its share. It lives for one call of
// pageFairly.
type fair struct {
	x      *Index
	m      *ranking
	s      *scratch
	limit  int
	asked  int // number of hits requested by the last extendStream
	bound  bool
	rest   stream
	held   []*stream
	counts []portalCount // hits on the page by portal
}

// portalCount is the number of hits of one portal on the page.
type portalCount struct {
	portal string
	n      int
}

// count returns the counter of a portal, which is added if missing. A linear search is enough: there are
// at most as many counters as hits on a page.
func (f *fair) count(portal string) *portalCount {
	for i := range f.counts {
		if f.counts[i].portal == portal {
			return &f.counts[i]
		}
	}
	f.counts = append(f.counts, portalCount{portal: portal})
	return &f.counts[len(f.counts)-1]
}

// pageFairly returns up to limit hits of m, each other portal limited to shareOf(limit) unless nothing
// else matches, and the position of the next page; more is false if there is none. at is the position
// after which the page begins, nil for the start. The caller must hold mu.
func (x *Index) pageFairly(m *ranking, limit int, at *place, s *scratch) (page []bm25.Hit, next place, more bool) {
	f := &fair{x: x, m: m, s: s, limit: limit, bound: true, counts: make([]portalCount, 0, limit)}
	if at != nil {
		f.rest.at = spot{at.after().Score, at.key, true}
		f.rest.seen = f.rest.at
		for _, b := range at.behind {
			to := spot{scoreOf(b.rank), b.key, true}
			f.held = append(f.held, &stream{portal: b.portal, at: to, seen: to})
		}
	}
	page = make([]bm25.Hit, 0, limit)
	size := 0
	for f.bound = true; len(page) < limit && size <= hub.PageBytes; {
		if h, ok := f.nextHit(); ok {
			page, size = append(page, h), size+x.docs[h.ID].size()
		} else if f.bound {
			f.bound = false // nothing else matches: fill the page with held-back hits
		} else {
			break
		}
	}
	slices.SortFunc(page, func(a, b bm25.Hit) int { return f.spot(a).compare(f.spot(b)) })
	next, more = f.nextPlace()
	return page, next, more
}

func (f *fair) spot(h bm25.Hit) spot { return spot{h.Score, f.x.words.Key(h.ID), true} }

// nextHit returns the best remaining hit that may be on the page. A portal that reaches its share gets a
// stream of its own, which is skipped while f.bound is true. The second result is false if no hit is
// left.
func (f *fair) nextHit() (bm25.Hit, bool) {
	share := shareOf(f.limit)
	for {
		var from *stream
		var first spot
		for _, s := range f.held {
			if f.bound && f.count(s.portal).n >= share || !f.fillStream(s) {
				continue
			}
			if to := f.spot(s.hits[0]); from == nil || to.compare(first) < 0 {
				from, first = s, to
			}
		}
		if f.fillRest() {
			if to := f.spot(f.rest.hits[0]); from == nil || to.compare(first) < 0 {
				from, first = &f.rest, to
			}
		}
		if from == nil {
			return bm25.Hit{}, false
		}
		h := from.hits[0]
		portal := portalOf(first.key)
		if from == &f.rest && portal != "" && f.bound && f.count(portal).n >= share && len(f.held) < maxBehind {
			// The portal already has a hit on the page; its stream continues after that one.
			f.held = append(f.held, &stream{portal: portal, at: f.rest.at, seen: first, hits: []bm25.Hit{h}})
			f.popHit(from, first)
			continue
		}
		f.popHit(from, first)
		f.count(portal).n++
		return h, true
	}
}

// popHit removes the first hit of a stream; at is the position of that hit.
func (f *fair) popHit(s *stream, at spot) { s.hits, s.at = s.hits[1:], at }

// fillStream reads further hits of a held-back portal if none are buffered. It returns false if there
// are none.
func (f *fair) fillStream(s *stream) bool {
	if len(s.hits) == 0 && !s.ended {
		f.extendStream(s, func(bits bm25.Bits) bm25.Bits {
			only := make(bm25.Bits, len(bits))
			f.x.eachOf(s.portal, func(doc uint32) {
				if bits.Has(int(doc)) {
					only.Add(int(doc))
				}
			})
			return only
		})
	}
	return len(s.hits) > 0
}

// fillRest reads hits until the first buffered one belongs to no held-back portal. It returns false if
// there is no such hit.
func (f *fair) fillRest() bool {
	for {
		for len(f.rest.hits) > 0 {
			at := f.spot(f.rest.hits[0])
			portal := portalOf(at.key)
			if portal == "" || !slices.ContainsFunc(f.held, func(s *stream) bool { return s.portal == portal }) {
				return true
			}
			f.popHit(&f.rest, at)
		}
		if f.rest.ended {
			return false
		}
		f.extendStream(&f.rest, func(bits bm25.Bits) bm25.Bits {
			if len(f.held) == 0 || f.asked < excludeFrom*f.limit {
				return bits // the loop above skips held-back hits one by one
			}
			f.s.less = append(f.s.less[:0], bits...)
			for _, s := range f.held {
				f.x.eachOf(s.portal, func(doc uint32) { f.s.less.Drop(int(doc)) })
			}
			return f.s.less
		})
	}
}

// extendStream reads further hits of a stream into s.hits. its reduces all matches to those of the
// stream. Each call requests at least twice as many hits as the one before.
func (f *fair) extendStream(s *stream, its func(bm25.Bits) bm25.Bits) {
	least := f.limit + 1
	if f.x.largestPortal()*f.limit*2 >= shareOf(f.limit)*f.x.words.Len() {
		least += shareOf(f.limit) // a second request costs more than some hits that are held back
	}
	f.asked = max(least, 2*f.asked)
	all := f.m.m.Bits
	f.m.m.Bits = its(all)
	s.hits = f.m.Top(f.asked, s.seen.after())
	f.m.m.Bits = all
	s.ended = len(s.hits) < f.asked
	if n := len(s.hits); n > 0 {
		s.seen = f.spot(s.hits[n-1])
	}
}

// largestPortal returns the number of documents of the other portal that has most; the caller must hold
// mu.
func (x *Index) largestPortal() int {
	portals := x.facets[portalFacet]
	for _, number := range portals.order {
		if v := &portals.values[number]; v.text != localPortal {
			return v.docs.len()
		}
	}
	return 0
}

// nextPlace returns the position after the page; more is false if there are no further hits.
func (f *fair) nextPlace() (next place, more bool) {
	more = f.fillRest()
	at := f.rest.at
	next = place{rank: scoreRank(at.score), key: at.key}
	for _, s := range f.held {
		left := f.fillStream(s)
		more = more || left
		ahead := s.at.compare(at) > 0
		if ahead || left && f.spot(s.hits[0]).compare(at) <= 0 {
			next.behind = append(next.behind, behind{s.portal, scoreRank(s.at.score), s.at.key})
		}
	}
	return next, more
}

// eachOf calls yield with the documents whose own portal (in the key) is portal. Documents that portal
// lists in addition to the agent's own portal are skipped. The caller must hold mu.
func (x *Index) eachOf(portal string, yield func(doc uint32)) {
	docs := x.docsOf(portal)
	if docs == nil {
		return
	}
	for doc := range docs.eachDoc {
		if portalOf(x.words.Key(int(doc))) == portal {
			yield(doc)
		}
	}
}
