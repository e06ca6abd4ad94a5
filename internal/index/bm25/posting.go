package bm25

import "slices"

// posting is the weight of a term in a document, in four bytes: the low 16 bits of the document's id,
// the impact (the saturated weight of all occurrences) in 10 bits, and a mask of the fields in 6 bits.
// The upper bits of the id are in block.base.
type posting uint32

const (
	fieldBits  = 6
	impactBits = 10
	fullImpact = 1<<impactBits - 1
)

func newPosting(doc, impact, fields uint32) posting {
	return posting(doc<<16 | impact<<fieldBits | fields)
}

func (p posting) low() uint32    { return uint32(p) >> 16 }
func (p posting) impact() uint32 { return uint32(p) >> fieldBits & fullImpact }
func (p posting) fields() uint16 { return uint16(p & (1<<fieldBits - 1)) }

// blockSize is the maximum number of postings in a block. An insertion moves at most that many, and a
// search skips a whole block if its best posting cannot reach the page.
const blockSize = 256

// postings lists the documents of a term by ascending id. A single posting is stored in place without a
// block, because most terms, such as names, have only one.
type postings struct {
	n    uint32
	base uint32 // if n is 1: the upper bits of the document's id
	only posting
	slot uint32  // position in neighbours, see word; stored here because padding would waste the bytes
	many *blocks // if n is more than 1, else nil
}

type blocks struct {
	list []block
	end  uint32 // id of the last document
	bits Bits   // set of the documents while the term is common, else nil
	// paired is true while Index.pairs lists the pairs of the term.
	paired bool
}

// block is a sorted run of postings whose documents have the same upper bits.
type block struct {
	base uint32
	top  uint16 // the greatest impact in list
	list []posting
}

func (b *block) firstDoc() uint32 { return b.base | b.list[0].low() }
func (b *block) lastDoc() uint32  { return b.base | b.list[len(b.list)-1].low() }

func (b *block) setTop() {
	b.top = 0
	for _, p := range b.list {
		b.top = max(b.top, uint16(p.impact()))
	}
}

// A term is common if at least commonLeast documents and 1/commonShare of all documents have it. Its documents are
// then also stored as a bit set, which takes less than a quarter of the memory of the postings.
const (
	commonShare = 32
	commonLeast = 512 // in documents
)

// bits returns the documents of a common term, or nil if the term is not common.
func (p *postings) bits() Bits {
	if p.many == nil {
		return nil
	}
	return p.many.bits
}

// findDoc returns the block and the position in it at which doc is or would be inserted. The block is
// len(p.list) if doc is after all documents.
func (p *blocks) findDoc(doc uint32) (int, int) {
	if doc > p.end {
		return len(p.list), 0
	}
	b := p.findBlock(doc)
	l := &p.list[b]
	if doc < l.base {
		return b, 0
	}
	return b, l.findDoc(doc)
}

// findBlock returns the first block whose last document is not before doc, or the last block if there is
// none. It starts at the position that evenly spread ids would have, because that is mostly close.
func (p *blocks) findBlock(doc uint32) int {
	last := len(p.list) - 1
	from := int(uint64(doc) * uint64(last) / (uint64(p.end) + 1))
	to := from
	for step := 1; to < last && p.list[to].lastDoc() < doc; step *= 2 {
		from, to = to+1, min(to+step, last)
	}
	if from == to {
		for step := 1; from > 0 && p.list[from-1].lastDoc() >= doc; step *= 2 {
			from, to = max(from-step, 0), from-1
		}
	}
	for from < to {
		if mid := (from + to) / 2; p.list[mid].lastDoc() < doc {
			from = mid + 1
		} else {
			to = mid
		}
	}
	return from
}

// findDoc returns the position in the block at which doc is or would be inserted; doc must have the base
// of the block. The binary search is written without an unpredictable branch.
func (b *block) findDoc(doc uint32) int {
	low, list, at := doc&0xffff, b.list, 0
	for n := len(list); n > 0; {
		half := (n + 1) / 2
		if list[at+half-1].low() < low {
			at += half
		}
		n -= half
	}
	return at
}

// putDoc adds or replaces the posting of a document. docs is the number of documents in the index, which
// decides whether the term is common.
func (p *postings) putDoc(doc, impact uint32, fields uint16, docs int) {
	e, base := newPosting(doc, impact, uint32(fields)), doc&^0xffff
	switch {
	case p.n == 0, p.n == 1 && p.base|p.only.low() == doc:
		p.n, p.base, p.only = 1, base, e
		return
	case p.n == 1:
		p.many = &blocks{end: p.base | p.only.low(), list: []block{{p.base, uint16(p.only.impact()), append(make([]posting, 0, 4), p.only)}}}
	}
	if p.many.putDoc(doc, e) {
		p.n++
		p.many.markBits(doc, int(p.n), docs)
	}
}

// markBits updates the bit set after doc became the n-th document of the term, or creates it for a common term.
func (p *blocks) markBits(doc uint32, n, docs int) {
	switch {
	case p.bits != nil:
		p.bits.Add(int(doc))
	case n >= commonLeast && n*commonShare >= docs:
		p.bits = make(Bits, (docs+63)/64)
		p.eachPosting(func(doc uint32, _ posting) { p.bits.Add(int(doc)) })
	}
}

// putDoc adds or replaces the posting e of doc. It reports whether the document is new.
func (p *blocks) putDoc(doc uint32, e posting) bool {
	base := doc &^ 0xffff
	b, i := p.findDoc(doc)
	if b == len(p.list) {
		p.end = doc
		if l := &p.list[b-1]; l.base == base && len(l.list) < blockSize {
			l.list = append(growPostings(l.list), e)
			l.top = max(l.top, uint16(e.impact()))
			return true
		}
		p.list = append(p.list, block{base, uint16(e.impact()), append(make([]posting, 0, 4), e)})
		return true
	}
	l := &p.list[b]
	switch {
	case l.base == base && i < len(l.list) && l.list[i].low() == doc&0xffff:
		was := l.list[i]
		l.list[i] = e
		if e.impact() >= uint32(l.top) {
			l.top = uint16(e.impact())
		} else if was.impact() == uint32(l.top) {
			l.setTop()
		}
		return false
	case l.base == base:
	case b > 0 && p.list[b-1].base == base:
		b--
		l = &p.list[b]
		i = len(l.list)
	default:
		p.list = slices.Insert(p.list, b, block{base, uint16(e.impact()), append(make([]posting, 0, 4), e)})
		return true
	}
	l.list = slices.Insert(growPostings(l.list), i, e)
	l.top = max(l.top, uint16(e.impact()))
	if len(l.list) > blockSize {
		half := len(l.list) / 2
		tail := block{base: base, list: slices.Clone(l.list[half:])}
		l.list = slices.Clone(l.list[:half])
		tail.setTop()
		l.setTop()
		p.list = slices.Insert(p.list, b+1, tail)
	}
	return true
}

// growPostings returns l with room for one more posting. It grows by half, or by a quarter if l is long,
// instead of doubling, because postings take much of the memory of an index.
func growPostings(l []posting) []posting {
	if len(l) < cap(l) {
		return l
	}
	more := len(l) / 2
	if len(l) >= 64 {
		more = len(l) / 4
	}
	return append(make([]posting, 0, min((len(l)+more+4)&^3, max(blockSize, len(l)+1))), l...)
}

// removeDoc removes the posting of a document, if there is one. docs is the number of documents in the index.
func (p *postings) removeDoc(doc uint32, docs int) {
	if p.n == 1 {
		if p.base|p.only.low() == doc {
			p.n = 0
		}
		return
	}
	if p.n == 0 {
		return
	}
	m := p.many
	b, i := m.findDoc(doc)
	if b == len(m.list) || m.list[b].base != doc&^0xffff || m.list[b].list[i].low() != doc&0xffff {
		return
	}
	p.n--
	l := &m.list[b]
	was := l.list[i]
	l.list = slices.Delete(l.list, i, i+1)
	if len(l.list) == 0 {
		m.list = slices.Delete(m.list, b, b+1)
	} else if was.impact() == uint32(l.top) {
		l.setTop()
	}
	if doc == m.end {
		m.end = m.list[len(m.list)-1].lastDoc()
	}
	if p.n == 1 {
		p.base, p.only, p.many = m.list[0].base, m.list[0].list[0], nil
		return
	}
	if m.bits != nil {
		m.bits.Drop(int(doc))
		if n := int(p.n); n < commonLeast/2 || n*commonShare*4 < docs { // well below the threshold of markBits
			m.bits = nil
		}
	}
}

// getPosting returns the posting of a document; the second result is false if the document does not have the term.
func (p *postings) getPosting(doc uint32) (posting, bool) {
	switch {
	case p.n == 0:
		return 0, false
	case p.n == 1:
		return p.only, p.base|p.only.low() == doc
	case p.many.bits != nil && !p.many.bits.Has(int(doc)):
		return 0, false
	}
	b, i := p.many.findDoc(doc)
	if b == len(p.many.list) {
		return 0, false
	}
	l := &p.many.list[b]
	if l.base != doc&^0xffff || l.list[i].low() != doc&0xffff {
		return 0, false
	}
	return l.list[i], true
}

// eachPosting calls yield with all postings by ascending document id.
func (p *postings) eachPosting(yield func(doc uint32, e posting)) {
	switch {
	case p.n == 1:
		yield(p.base|p.only.low(), p.only)
	case p.n > 1:
		p.many.eachPosting(yield)
	}
}

func (p *blocks) eachPosting(yield func(doc uint32, e posting)) {
	for i := range p.list {
		for _, e := range p.list[i].list {
			yield(p.list[i].base|e.low(), e)
		}
	}
}

// addTo adds the documents to b, which must have room for their ids.
func (p *postings) addTo(b Bits) {
	if bits := p.bits(); bits != nil {
		for i, w := range bits[:min(len(bits), len(b))] {
			b[i] |= w
		}
		return
	}
	if p.n == 1 {
		b.Add(int(p.base | p.only.low()))
		return
	}
	if p.n == 0 {
		return
	}
	for i := range p.many.list {
		l := &p.many.list[i]
		for _, e := range l.list {
			doc := l.base | e.low()
			b[doc>>6] |= 1 << (doc & 63)
		}
	}
}
