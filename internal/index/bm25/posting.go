package bm25

import (
	"slices"
	"sort"
)

// posting says how much a document is about a term: impact is the saturated
// weight of all its occurrences in 1/65535, fields the mask of the fields.
type posting struct {
	doc    uint32
	impact uint16
	fields uint16
}

const fullImpact = 1<<16 - 1

// blockSize bounds what an insertion moves.
const blockSize = 256

// postings lists the documents of a term by ascending id, in blocks; the only
// one of a term, as every name brings some, is kept in place. A later form
// can keep the greatest impact of each block to skip blocks that cannot reach
// the first page.
type postings struct {
	n      uint32
	only   [1]posting // when n is 1
	blocks [][]posting
}

// parts and part give the blocks to loops.
func (p *postings) parts() int {
	if p.n == 1 {
		return 1
	}
	return len(p.blocks)
}

func (p *postings) part(i int) []posting {
	if p.n == 1 {
		return p.only[:]
	}
	return p.blocks[i]
}

// find returns the block and the place in it where doc is or belongs; the
// block may be one past the last.
func (p *postings) find(doc uint32) (int, int) {
	b := len(p.blocks) - 1
	if b < 0 {
		return 0, 0
	}
	if last := p.blocks[b]; doc <= last[len(last)-1].doc {
		b = sort.Search(b, func(i int) bool { l := p.blocks[i]; return l[len(l)-1].doc >= doc })
	} else {
		return b + 1, 0
	}
	l := p.blocks[b]
	return b, sort.Search(len(l), func(i int) bool { return l[i].doc >= doc })
}

// put adds or replaces the posting of a document.
func (p *postings) put(e posting) {
	switch {
	case p.n == 0, p.n == 1 && p.only[0].doc == e.doc:
		p.n, p.only[0] = 1, e
		return
	case p.n == 1:
		p.blocks = [][]posting{{p.only[0]}}
	}
	b, i := p.find(e.doc)
	if b == len(p.blocks) {
		p.n++
		if l := p.blocks[b-1]; len(l) < blockSize {
			p.blocks[b-1] = append(grown(l), e)
			return
		}
		p.blocks = append(p.blocks, []posting{e})
		return
	}
	l := p.blocks[b]
	if l[i].doc == e.doc {
		l[i] = e
		return
	}
	p.n++
	l = slices.Insert(grown(l), i, e)
	p.blocks[b] = l
	if len(l) > blockSize {
		half := len(l) / 2
		p.blocks = slices.Insert(p.blocks, b+1, slices.Clone(l[half:]))
		p.blocks[b] = l[:half:half]
	}
}

// grown makes room for one more posting by an eighth instead of doubling:
// most of the memory of an index is here.
func grown(l []posting) []posting {
	if len(l) < cap(l) {
		return l
	}
	return append(make([]posting, 0, len(l)+len(l)/8+1), l...)
}

// remove takes out the posting of a document.
func (p *postings) remove(doc uint32) {
	if p.n == 1 {
		if p.only[0].doc == doc {
			*p = postings{}
		}
		return
	}
	b, i := p.find(doc)
	if b == len(p.blocks) || p.blocks[b][i].doc != doc {
		return
	}
	p.n--
	p.blocks[b] = slices.Delete(p.blocks[b], i, i+1)
	if len(p.blocks[b]) == 0 {
		p.blocks = slices.Delete(p.blocks, b, b+1)
	}
	if p.n == 1 {
		p.only[0], p.blocks = p.blocks[0][0], nil
	}
}

// get returns the posting of a document.
func (p *postings) get(doc uint32) (posting, bool) {
	if p.n == 1 {
		return p.only[0], p.only[0].doc == doc
	}
	b, i := p.find(doc)
	if b == len(p.blocks) || p.blocks[b][i].doc != doc {
		return posting{}, false
	}
	return p.blocks[b][i], true
}

// addTo adds the documents to a set that has room for them.
func (p *postings) addTo(b Bits) {
	for i := range p.parts() {
		for _, e := range p.part(i) {
			b[e.doc>>6] |= 1 << (e.doc & 63)
		}
	}
}
