package bm25

import "strings"

// words is the dictionary: every word as written and every stem; each stem has the postings of its
// words. A word that is its own stem, as most rare words are, is one entry. An entry is removed with the
// last document that uses it. Id 0 is not used.
type words struct {
	list   []word
	termID []uint32 // stem of each word; a separate slice because phrase searches read it often
	free   []uint32
	byText Table
	order  sorted     // all words by text, without entries that are only stems
	near   neighbours // the same words by spelling
	// epoch changes when a word is removed. Ids that were looked up before may then denote another word.
	epoch uint64

	stemBuf []byte
}

type word struct {
	text  string
	refs  uint32 // occurrences in all documents; 0 if the entry is only a stem
	stems uint32 // number of words with this stem; 0 if the entry is not a stem
	// The embedded slot is the word's position, from 1, among the neighbours of its length.
	postings
}

func newWords() *words {
	w := &words{list: make([]word, 1), termID: make([]uint32, 1)}
	w.order.texts, w.byText.Texts = w, w
	return w
}

// Text implements Texts. It returns "" for a free id.
func (w *words) Text(id uint32) string { return w.list[id].text }

// lookUp returns the id of a word that some document has, or 0. An entry that is only a stem does not count.
func (w *words) lookUp(text string) uint32 { return w.lookupHash(text, HashOf(text)) }

func (w *words) lookupHash(text string, h uint64) uint32 {
	if id, ok := w.byText.FindHash(text, h); ok && w.list[id].refs > 0 {
		return id
	}
	return 0
}

// internWord returns the id of a word, adds the word if it is new, and counts one use.
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

// addEntry adds a copy of text as an entry without uses and returns its id.
func (w *words) addEntry(text string) uint32 { return w.enterHash(strings.Clone(text), HashOf(text)) }

// enterHash is addEntry with h, the HashOf of text, and keeps text without a copy.
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

// makeRoom reserves capacity for n more entries.
func (w *words) makeRoom(n int) {
	w.list, w.termID = roomWith(w.list, max(0, n), 3), roomWith(w.termID, max(0, n), 3)
}

// releaseUse takes back one use of a word and removes the word with its last use. The postings of the
// word's documents must be removed before.
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

// dropEntry removes an entry, unless it is still used as a word or as a stem.
func (w *words) dropEntry(id uint32) {
	if e := &w.list[id]; e.refs == 0 && e.stems == 0 {
		w.byText.Delete(id)
		*e = word{}
		w.free = append(w.free, id)
	}
}

// termOf returns the id of the stem of a typed word, or 0 if no document has a word with that stem.
func (w *words) termOf(text string) uint32 {
	if id := w.lookUp(text); id != 0 {
		return w.termID[id]
	}
	var buf [maxWordBytes]byte
	return w.lookUpTerm(string(stemWord(append(buf[:0], text...))))
}

// lookUpTerm returns the id of a stem, or 0 if no document has a word with that stem.
func (w *words) lookUpTerm(stem string) uint32 {
	if id, ok := w.byText.Find(stem); ok && w.list[id].stems > 0 {
		return id
	}
	return 0
}

// postingsOf returns the postings of a stem; term 0 has none.
func (w *words) postingsOf(term uint32) *postings { return &w.list[term].postings }

// docFreq returns the number of documents with a stem.
func (w *words) docFreq(term uint32) int { return int(w.list[term].n) }

// Words returns the number of entries in the dictionary, stems included, for tests.
func (x *Index) Words() int { return x.words.byText.Len() }

// Pairs returns the number of listed pairs of common terms, for tests.
func (x *Index) Pairs() int { return len(x.pairs) }
