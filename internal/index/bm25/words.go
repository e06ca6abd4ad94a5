package bm25

import "strings"

// words is the dictionary: every word as it was written and every stem, with
// the postings of each stem. A word that is its own stem, as most rare ones
// are, takes one entry. Entries live as long as some document uses them. Id 0
// is no word.
type words struct {
	list   []word
	termID []uint32 // of each word its stem, apart because phrases read it a lot
	free   []uint32
	byText Table
	order  sorted     // of the words, not of mere stems
	near   neighbours // likewise
	// epoch changes when a word is forgotten: ids looked up before may mean
	// something else.
	epoch uint64

	stemBuf []byte
}

type word struct {
	text     string
	refs     uint32 // occurrences in all documents, 0 of a mere stem
	stems    uint32 // words of which this is the stem, 0 of a mere word
	postings        // and slot, the place among the neighbours of its length, from 1
}

func newWords() *words {
	w := &words{list: make([]word, 1), termID: make([]uint32, 1)}
	w.order.texts, w.byText.Texts = w, w
	return w
}

// Text implements Texts.
func (w *words) Text(id uint32) string { return w.list[id].text }

// lookUp returns the id of a word that some document has, or 0.
func (w *words) lookUp(text string) uint32 { return w.lookupHash(text, HashOf(text)) }

func (w *words) lookupHash(text string, h uint64) uint32 {
	if id, ok := w.byText.FindHash(text, h); ok && w.list[id].refs > 0 {
		return id
	}
	return 0
}

// internWord returns the id of a word, adding it when new, and counts one use.
func (w *words) internWord(text string) uint32 {
	id, ok := w.byText.Find(text)
	if ok && w.list[id].refs > 0 {
		w.list[id].refs++
		return id
	}
	if !ok {
		id = w.addEntry(text)
	}
	w.list[id].refs = 1
	w.order.insertID(id)
	w.near.addWord(w.list, id)

	w.stemBuf = append(w.stemBuf[:0], text...)
	t := id
	if st := stemWord(w.stemBuf); string(st) != text {
		if t, ok = w.byText.Find(string(st)); !ok {
			t = w.addEntry(string(st))
		}
	}
	w.list[t].stems++
	w.termID[id] = t
	return id
}

// addEntry adds an entry that nothing uses yet.
func (w *words) addEntry(text string) uint32 { return w.enterHash(strings.Clone(text), HashOf(text)) }

// enterHash is enter for a text of which the hash is known, and which is kept.
func (w *words) enterHash(text string, h uint64) uint32 {
	var id uint32
	if n := len(w.free); n > 0 {
		id, w.free = w.free[n-1], w.free[:n-1]
	} else {
		id = uint32(len(w.list))
		w.list = append(w.list, word{})
		w.termID = append(w.termID, 0)
	}
	w.list[id].text = text
	w.byText.InsertHash(id, h)
	return id
}

// makeRoom makes room for n more entries.
func (w *words) makeRoom(n int) {
	w.list, w.termID = roomWith(w.list, max(0, n), 3), roomWith(w.termID, max(0, n), 3)
}

// releaseUse takes back one use of a word and forgets it with the last one. The
// postings of its documents must be gone before.
func (w *words) releaseUse(id uint32) {
	if w.list[id].refs--; w.list[id].refs > 0 {
		return
	}
	w.epoch++
	w.near.removeWord(w.list, id)
	w.order.removeID(id)
	t := w.termID[id]
	w.termID[id] = 0
	w.list[t].stems--
	w.dropEntry(t)
	if id != t {
		w.dropEntry(id)
	}
}

// dropEntry forgets an entry unless something uses it.
func (w *words) dropEntry(id uint32) {
	if e := &w.list[id]; e.refs == 0 && e.stems == 0 {
		w.byText.Delete(id)
		*e = word{}
		w.free = append(w.free, id)
	}
}

// termOf returns the stem of a typed word, or 0 if no document has a word of that stem.
func (w *words) termOf(text string) uint32 {
	if id := w.lookUp(text); id != 0 {
		return w.termID[id]
	}
	var buf [maxWordBytes]byte
	return w.lookUpTerm(string(stemWord(append(buf[:0], text...))))
}

// lookUpTerm returns the id of a stem, or 0 if no document has a word of it.
func (w *words) lookUpTerm(stem string) uint32 {
	if id, ok := w.byText.Find(stem); ok && w.list[id].stems > 0 {
		return id
	}
	return 0
}

// postingsOf returns the documents of a stem.
func (w *words) postingsOf(term uint32) *postings { return &w.list[term].postings }

// docFreq is the number of documents of a stem.
func (w *words) docFreq(term uint32) int { return int(w.list[term].n) }

// Words is the size of the dictionary, stems included; Pairs is how many pairs
// of common terms are listed.
func (x *Index) Words() int { return x.words.byText.Len() }

// Pairs is described with Words.
func (x *Index) Pairs() int { return len(x.pairs) }
