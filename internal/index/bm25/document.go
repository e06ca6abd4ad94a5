package bm25

// doc is the stored form of a document: its key and then its words in order, in one string. A word is
// its id plus words-from, as a varint; the smaller numbers are marks.
type doc struct {
	rec string
	cut uint32 // where the words start
}

const (
	markGap   = 0 // before the next value, and before a joined compound
	markField = 1 // before the next field
	wordsFrom = 1 // ids start at 1, marks end at 1
)

func (d doc) key() string { return d.rec[:d.cut] }

func appendWord(rec []byte, w uint32) []byte {
	for w += wordsFrom; w >= 0x80; w >>= 7 {
		rec = append(rec, byte(w)|0x80)
	}
	return append(rec, byte(w))
}

// nextNumber returns the number at i and the place behind it.
func (d doc) nextNumber(i int) (uint32, int) {
	n := uint32(d.rec[i])
	if n < 0x80 {
		return n, i + 1
	}
	n &= 0x7f
	for shift := 7; ; shift += 7 {
		i++
		b := uint32(d.rec[i])
		n |= b & 0x7f << shift
		if b < 0x80 {
			return n, i + 1
		}
	}
}

// eachWord calls yield with every word, in order, as often as it occurs.
func (d doc) eachWord(yield func(w uint32) bool) {
	for i := int(d.cut); i < len(d.rec); {
		var n uint32
		if n, i = d.nextNumber(i); n > wordsFrom && !yield(n-wordsFrom) {
			return
		}
	}
}

// eachPlace calls yield with every word and its field; a gap is word 0.
func (d doc) eachPlace(yield func(field int, w uint32) bool) {
	field := 0
	for i := int(d.cut); i < len(d.rec); {
		var n uint32
		switch n, i = d.nextNumber(i); {
		case n > wordsFrom:
			if !yield(field, n-wordsFrom) {
				return
			}
		case n == markField:
			field++
			fallthrough
		default:
			if !yield(field, 0) {
				return
			}
		}
	}
}

// Doc is an analyzed document on its way into an index.
type Doc struct {
	text   string // of all words, one after the other
	toks   []token
	values []docValue
	// ids are the words as far as Resolve knew them, true until epoch ends.
	ids   []uint32
	epoch uint64
}

// docValue is one value of a field: toks[from:to].
type docValue struct {
	field    int
	from, to int
	words    int
	joined   bool // some of the words are compounds
}

func (d *Doc) addWord(t token) string { return d.text[t.from:t.to] }

// Analyze splits a document into words. Each argument holds the values of
// one field, in the order given to New; phrases do not reach across values.
// It reads nothing that changes and needs no lock.
func (x *Index) Analyze(fields ...[]string) Doc {
	size, values := 0, 0
	for _, list := range fields {
		values += len(list)
		for _, v := range list {
			size += len(v)
		}
	}
	t := tokenizer{buf: make([]byte, 0, size+size/8+8), toks: make([]token, 0, size/5+8)}
	d := Doc{values: make([]docValue, 0, values)}
	for f, list := range fields[:min(len(fields), len(x.fields))] {
		left := maxFieldWords
		for _, v := range list {
			from := len(t.toks)
			words := t.addWords(v, left)
			left -= words
			d.values = append(d.values, docValue{field: f, from: from, to: len(t.toks), words: words, joined: len(t.toks)-from > words})
		}
	}
	d.text, d.toks = string(t.buf), t.toks
	return d
}

// Resolve looks up the words of a document that is soon to be put, so that
// Put has less to do while others wait. It reads the index.
func (x *Index) Resolve(d *Doc) {
	if d.ids == nil {
		d.ids = make([]uint32, len(d.toks))
	}
	for i, t := range d.toks {
		d.ids[i] = x.words.lookUp(d.addWord(t))
	}
	d.epoch = x.words.epoch
}
