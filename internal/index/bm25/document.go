package bm25

// doc is the stored form of a document in one string: its key, then its words in order as varints. A number above
// wordsFrom is wordsFrom plus the id of a word; 0 and 1 are the marks below. The zero value is no document.
type doc struct {
	rec string
	cut uint32 // offset of the first word in rec; the key is before it
}

const (
	markGap   = 0 // starts another value of the field, or precedes a joined compound
	markField = 1 // starts the next field
	wordsFrom = 1 // added to ids, which start at 1, so that they do not collide with the marks
)

func (d doc) key() string { return d.rec[:d.cut] }

func appendWord(rec []byte, w uint32) []byte {
	for w += wordsFrom; w >= 0x80; w >>= 7 {
		rec = append(rec, byte(w)|0x80)
	}
	return append(rec, byte(w))
}

// nextNumber decodes the varint at offset i and returns it with the offset after it.
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

// eachWord calls yield with the id of every word, in order and repeated as it occurs, until yield returns false.
func (d doc) eachWord(yield func(w uint32) bool) {
	for i := int(d.cut); i < len(d.rec); {
		var n uint32
		if n, i = d.nextNumber(i); n > wordsFrom && !yield(n-wordsFrom) {
			return
		}
	}
}

// eachPlace calls yield with every word and its field number, until yield returns false. Word 0 marks a
// gap between values or fields, across which a phrase does not match.
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

// Doc is an analyzed document, made by Analyze and stored by Put. It belongs to the index that made it.
type Doc struct {
	text   string // the bytes of all words; token and docValue refer to it
	toks   []token
	values []docValue
	// ids holds the id of each token as found by Resolve, 0 if unknown; nil before Resolve. The ids are
	// valid while words.epoch equals epoch.
	ids   []uint32
	epoch uint64
}

// docValue is one value of a field: the tokens toks[from:to].
type docValue struct {
	field    int
	from, to int
	words    int
	joined   bool // true if some tokens are joined compounds
}

func (d *Doc) addWord(t token) string { return d.text[t.from:t.to] }

// Analyze splits a document into words. Each argument holds the values of one field, in the order of the
// fields given to New; further arguments are ignored. A phrase does not match across two values. Analyze
// does not read the changing parts of the index and needs no lock.
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
			t.addDetached(from)
			d.values = append(d.values, docValue{field: f, from: from, to: len(t.toks), words: words, joined: len(t.toks)-from > words})
		}
	}
	d.text, d.toks = string(t.buf), t.toks
	return d
}

// Resolve looks up the words of a document before Put, so that Put, which excludes readers, takes less
// time. It needs read access to the index.
func (x *Index) Resolve(d *Doc) {
	if d.ids == nil {
		d.ids = make([]uint32, len(d.toks))
	}
	for i, t := range d.toks {
		d.ids[i] = x.words.lookUp(d.addWord(t))
	}
	d.epoch = x.words.epoch
}
