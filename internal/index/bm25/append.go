package bm25

import "slices"

// Append adds the documents of a segment with the ids first, first+1 and so on. All ids must be greater
// than any id that was ever in use, so that postings are only appended. The segment must have passed the
// steps listed at Segment.
func (x *Index) Append(s *Segment, first int) {
	n := s.Len()
	for len(x.docs) < first {
		x.docs = append(x.docs, doc{})
	}
	x.docs = append(Room(x.docs, n), s.docs...)
	s.orderIDs = s.orderIDs[:0]
	for _, k := range s.keyed {
		s.orderIDs = append(s.orderIDs, uint32(first)+k.doc)
	}
	x.order.mergeIDs(s.orderIDs)
	for id := first; id < first+n; id++ {
		x.all.Add(id)
	}
	x.n += n
	x.fresh = x.fresh[:0]
	same := true // false if a term became paired, or stopped being, since Look
	for i, t := range s.terms {
		p := x.words.postingsOf(t)
		p.extendRun(uint32(first), s.runs[s.starts[i]:s.starts[i+1]], len(x.docs))
		m := p.many
		if paired := m != nil && m.paired; paired != s.paired[i] {
			s.paired[i], same = paired, false
		}
		if m != nil && m.bits != nil && !m.paired {
			x.fresh = append(x.fresh, t)
		}
	}
	if !same {
		s.Pair()
	}
	s.addPairs(uint32(first))
	x.side = x.side[:0]
	x.pairs.addDoc(x, 0) // lists the pairs of the terms in x.fresh
}

// Look records for each term of the segment whether its pairs are listed, see pairs. Append checks the
// result again, because other writers may come in between.
func (s *Segment) Look() {
	s.paired = s.paired[:0]
	for _, t := range s.terms {
		s.paired = append(s.paired, s.x.words.hasPairs(t))
	}
}

// Pair collects the pairs of adjacent terms in the documents of the segment, for the terms that Look
// found to be paired.
func (s *Segment) Pair() {
	s.pairOf.reset()
	s.found = s.found[:0]
	from := uint32(0)
	for d, end := range s.ends {
		// last is 1 + the number of the previous term if that term is paired, else 0.
		last := uint32(0)
		for _, w := range s.stream[from:end] {
			if w <= wordsFrom {
				last = 0
				continue
			}
			t := s.termOf[w-wordsFrom-1]
			if !s.paired[t] {
				last = 0
				continue
			}
			if last != 0 {
				n := s.pairOf.numberOf(uint64(last-1)<<32 | uint64(t))
				s.found = append(s.found, uint64(n)<<32|uint64(d))
			}
			last = t + 1
		}
		from = end
	}
	s.pairStarts = append(s.pairStarts[:0], make([]uint32, len(s.pairOf.keys)+1)...)
	for _, f := range s.found {
		s.pairStarts[f>>32]++
	}
	at := uint32(0)
	for i, n := range s.pairStarts {
		s.pairStarts[i] = at
		at += n
	}
	s.pairDocs = slices.Grow(s.pairDocs[:0], len(s.found))[:len(s.found)]
	for _, f := range s.found {
		s.pairDocs[s.pairStarts[f>>32]] = newPosting(uint32(f), 0, 0)
		s.pairStarts[f>>32]++
	}
}

// addPairs appends to the index the pairs that Pair collected; first is the id of the segment's first document.
func (s *Segment) addPairs(first uint32) {
	from := uint32(0)
	p := s.x.pairs
	for i, key := range s.pairOf.keys {
		run := slices.Compact(s.pairDocs[from:s.pairStarts[i]])
		from = s.pairStarts[i]
		pair := pairOf(s.terms[key>>32], s.terms[uint32(key)])
		list := p[pair]
		if list == nil {
			list = new(postings)
			p[pair] = list
		}
		list.extendRun(first, run, len(s.x.docs))
	}
}

// extendRun appends the postings of a run of documents, whose ids are greater than all in p. The low bits of each
// posting hold the distance of its document from first. docs is the number of documents in the index.
func (p *postings) extendRun(first uint32, run []posting, docs int) {
	if p.n == 0 && len(run) == 1 {
		doc := first + run[0].low()
		p.n, p.base, p.only = 1, doc&^0xffff, run[0].at(doc)
		return
	}
	m := p.many
	if m == nil {
		m = &blocks{list: make([]block, 0, 1)}
		if p.n == 1 {
			m.list = append(m.list, block{p.base, uint16(p.only.impact()), append(make([]posting, 0, roomFor(1+len(run))), p.only)})
		}
		p.many = m
	}
	for rest := run; len(rest) > 0; {
		base := (first + rest[0].low()) &^ 0xffff
		b := len(m.list) - 1
		if b < 0 || m.list[b].base != base || len(m.list[b].list) >= blockSize {
			m.list = append(m.list, block{base: base})
			b++
		}
		l := &m.list[b]
		n := min(len(rest), blockSize-len(l.list))
		if need := len(l.list) + n; need > cap(l.list) {
			l.list = append(make([]posting, 0, roomFor(need)), l.list...)
		}
		for i, e := range rest[:n] {
			doc := first + e.low()
			if doc&^0xffff != base {
				n = i
				break
			}
			l.list = append(l.list, e.at(doc))
			l.top = max(l.top, uint16(e.impact()))
		}
		rest = rest[n:]
	}
	p.n += uint32(len(run))
	m.end = first + run[len(run)-1].low()
	if m.bits == nil {
		m.markBits(m.end, int(p.n), docs)
		return
	}
	for _, e := range run {
		m.bits.Add(int(first + e.low()))
	}
}

// at returns the posting with the low bits of another document; impact and fields stay.
func (p posting) at(doc uint32) posting { return posting(doc<<16 | uint32(p)&0xffff) }

// roomFor returns the capacity of a block with n postings. It adds little spare room, because a block
// that grows by runs is reallocated rarely.
func roomFor(n int) int {
	if n >= blockSize/2 {
		return max(blockSize, n)
	}
	return (n + n/8 + 3) &^ 3
}

// Room returns list with capacity for n more elements, and an eighth beyond that if it must be reallocated.
func Room[T any](list []T, n int) []T { return roomWith(list, n, 8) }

// roomWith is Room with spare capacity of 1/share of the new length.
func roomWith[T any](list []T, n, share int) []T {
	if need := len(list) + n; need > cap(list) {
		return append(make([]T, 0, need+need/share), list...)
	}
	return list
}

// mergeIDs inserts ids, which must be sorted by key. It moves each chunk only once for all of them.
func (s *sorted) mergeIDs(ids []uint32) {
	for len(ids) > 0 {
		c, _ := s.findKey(s.texts.Text(ids[0]), ids[0])
		if c == len(s.chunks) { // all keys are after the last chunk
			if c > 0 {
				c--
			} else {
				s.chunks, s.lasts = append(s.chunks, chunk{}), append(s.lasts, 0)
			}
			s.insertRun(c, ids)
			return
		}
		n := 1
		for k := &s.chunks[c]; n < len(ids); n++ {
			key, end := s.texts.Text(ids[n]), len(k.ids)-1
			if s.comparePlace(k.heads[end], k.ids[end], keyHead(key), key, ids[n]) < 0 {
				break
			}
		}
		s.insertRun(c, ids[:n])
		ids = ids[n:]
	}
}

// insertRun inserts sorted ids into chunk c and splits the chunk if it gets longer than chunkSize.
func (s *sorted) insertRun(c int, ids []uint32) {
	k := &s.chunks[c]
	old, n := len(k.ids), len(k.ids)+len(ids)
	k.heads, k.ids = Room(k.heads, len(ids))[:n], Room(k.ids, len(ids))[:n]
	for i := len(ids) - 1; i >= 0; i-- {
		key := s.texts.Text(ids[i])
		h := keyHead(key)
		from, to := 0, old
		for from < to {
			mid := int(uint(from+to) >> 1)
			if s.comparePlace(k.heads[mid], k.ids[mid], h, key, ids[i]) < 0 {
				from = mid + 1
			} else {
				to = mid
			}
		}
		copy(k.heads[from+i+1:], k.heads[from:old])
		copy(k.ids[from+i+1:], k.ids[from:old])
		k.heads[from+i], k.ids[from+i] = h, ids[i]
		old = from
	}
	if n > chunkSize {
		parts := (n + chunkSize*3/4 - 1) / (chunkSize * 3 / 4)
		heads, all := k.heads, k.ids
		s.chunks = slices.Insert(s.chunks, c+1, make([]chunk, parts-1)...)
		s.lasts = slices.Insert(s.lasts, c+1, make([]uint64, parts-1)...)
		for p := range parts {
			from, to := p*n/parts, (p+1)*n/parts
			s.chunks[c+p] = chunk{slices.Clone(heads[from:to]), slices.Clone(all[from:to])}
			s.setLast(c + p)
		}
		return
	}
	s.setLast(c)
}
