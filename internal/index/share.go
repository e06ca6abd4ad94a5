package index

import (
	"cmp"
	"slices"
	"strings"

	"agentsite/internal/index/bm25"
)

// On a page that is ranked by words each other portal gets at most a fifth of
// the places, so that no portal fills it by stuffing words into many agents.
// Further hits of the portal are held back: they come on later pages, each once
// and in order, or on this one when nothing else matches. A search in given
// portals is not limited.

// shareOf is how many places of a page one other portal gets.
func shareOf(limit int) int { return max(limit/5, 1) }

// maxBehind is how many portals one search holds back at most, because the
// cursor lists them. Further ones are not held back.
const maxBehind = 8

// excludeFrom is from how many pages of hits on it pays to look for hits without
// those of portals that are held back: to exclude one costs a look at all of
// its agents.
const excludeFrom = 16

// behind is where a portal that was held back goes on.
type behind struct {
	portal string
	rank   int64
	key    string
}

// spot is a place in the ranking; the zero value is its beginning.
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

// compare orders spots as pages do.
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

// stream is a part of a ranking that goes on by itself: that of a portal that
// is held back, or all the rest.
type stream struct {
	portal string
	at     spot // of the last hit that was taken
	seen   spot // of the last hit that is known
	hits   []bm25.Hit
	ended  bool // there are none but hits
}

// fair takes the hits of one page.
type fair struct {
	x      *Index
	m      *bm25.Match
	s      *scratch
	limit  int
	asked  int // hits, last time
	bound  bool
	rest   stream
	held   []*stream
	counts []portalCount // of the page
}

// portalCount is how many hits of a page are of a portal.
type portalCount struct {
	portal string
	n      int
}

// count returns the count of a portal. They are as few as places on a page.
func (f *fair) count(portal string) *portalCount {
	for i := range f.counts {
		if f.counts[i].portal == portal {
			return &f.counts[i]
		}
	}
	f.counts = append(f.counts, portalCount{portal: portal})
	return &f.counts[len(f.counts)-1]
}

// pageFairly returns a page of hits of a match, and the places where to go on;
// more is false at the end. The caller must hold mu.
func (x *Index) pageFairly(m *bm25.Match, limit int, at *place, s *scratch) (page []bm25.Hit, next place, more bool) {
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
	for f.bound = true; len(page) < limit; {
		if h, ok := f.nextHit(); ok {
			page = append(page, h)
		} else if f.bound {
			f.bound = false // nothing else matches
		} else {
			break
		}
	}
	slices.SortFunc(page, func(a, b bm25.Hit) int { return f.spot(a).compare(f.spot(b)) })
	next, more = f.nextPlace()
	return page, next, more
}

func (f *fair) spot(h bm25.Hit) spot { return spot{h.Score, f.x.words.Key(h.ID), true} }

// nextHit takes the best hit that the page has room for.
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
			// At least one of its hits is on the page: it goes on behind the last.
			f.held = append(f.held, &stream{portal: portal, at: f.rest.at, seen: first, hits: []bm25.Hit{h}})
			f.popHit(from, first)
			continue
		}
		f.popHit(from, first)
		f.count(portal).n++
		return h, true
	}
}

// popHit takes the first hit of a stream, at a spot.
func (f *fair) popHit(s *stream, at spot) { s.hits, s.at = s.hits[1:], at }

// fillStream makes sure that a stream of a portal has a hit, if there is one.
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

// fillRest makes sure that the rest has a hit that is of no portal with a
// stream of its own, if there is one.
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
				return bits // hits that are held back are skipped one by one
			}
			f.s.less = append(f.s.less[:0], bits...)
			for _, s := range f.held {
				f.x.eachOf(s.portal, func(doc uint32) { f.s.less.Drop(int(doc)) })
			}
			return f.s.less
		})
	}
}

// extendStream gets further hits of a stream from those of the matches that are its.
func (f *fair) extendStream(s *stream, its func(bm25.Bits) bm25.Bits) {
	least := f.limit + 1
	if f.x.largestPortal()*f.limit*2 >= shareOf(f.limit)*f.x.words.Len() {
		least += shareOf(f.limit) // to ask twice is dearer than for a few that are held back
	}
	f.asked = max(least, 2*f.asked)
	all := f.m.Bits
	f.m.Bits = its(all)
	s.hits = f.m.Top(f.asked, s.seen.after())
	f.m.Bits = all
	s.ended = len(s.hits) < f.asked
	if n := len(s.hits); n > 0 {
		s.seen = f.spot(s.hits[n-1])
	}
}

// largestPortal is how many documents the other portal has that has most; the caller
// must hold mu.
func (x *Index) largestPortal() int {
	portals := x.facets[portalFacet]
	for _, number := range portals.order {
		if v := &portals.values[number]; v.text != localPortal {
			return v.docs.len()
		}
	}
	return 0
}

// nextPlace is where the next page goes on; more is false when there is none.
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

// eachOf calls yield with the documents of a portal, but not with those that it
// lists beside another one; the caller must hold mu.
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
