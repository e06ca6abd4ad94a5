package bm25

import "hash/maphash"

// Texts gives the text of each number in a Table or a sorted list.
type Texts interface {
	Text(id uint32) string
}

// Table is a hash table from texts to numbers that does not store the texts: it reads them from Texts, where the
// owner keeps them anyway. It takes 8 bytes for each entry where a map takes 40. Texts must be set before use.
type Table struct {
	Texts Texts
	slots []uint32 // number+1; 0 is a free slot
	tags  []uint8  // some bits of each slot's hash, so that few texts are compared in vain
	n     int
}

var tableSeed = maphash.MakeSeed()

func (t *Table) findSlot(h uint64) (int, uint8) {
	return int((h >> 32) * uint64(len(t.slots)) >> 32), uint8(h)
}

// HashOf returns the hash of a text for FindHash and InsertHash. It differs from process to process.
func HashOf(text string) uint64 { return maphash.String(tableSeed, text) }

// Len returns the number of entries.
func (t *Table) Len() int { return t.n }

// Find returns the number of a text, or false if the text is not in the table.
func (t *Table) Find(text string) (uint32, bool) {
	if t.n == 0 {
		return 0, false
	}
	return t.FindHash(text, HashOf(text))
}

// FindHash is Find with h, the HashOf of text, for callers that need the hash more than once.
func (t *Table) FindHash(text string, h uint64) (uint32, bool) {
	if t.n == 0 {
		return 0, false
	}
	for i, tag := t.findSlot(h); ; {
		s := t.slots[i]
		if s == 0 {
			return 0, false
		}
		if t.tags[i] == tag && t.Texts.Text(s-1) == text {
			return s - 1, true
		}
		if i++; i == len(t.slots) {
			i = 0
		}
	}
}

// Insert adds a number. Its text, read from Texts, must not be in the table.
func (t *Table) Insert(id uint32) { t.InsertHash(id, HashOf(t.Texts.Text(id))) }

// InsertHash is Insert with h, the HashOf of the number's text.
func (t *Table) InsertHash(id uint32, h uint64) {
	if t.n++; t.n*4 > len(t.slots)*3 {
		old := t.slots
		n := len(old) + len(old)/2 + 16
		t.slots, t.tags = make([]uint32, n), make([]uint8, n)
		for _, s := range old {
			if s != 0 {
				t.putSlot(s, HashOf(t.Texts.Text(s-1)))
			}
		}
	}
	t.putSlot(id+1, h)
}

func (t *Table) putSlot(s uint32, h uint64) {
	i, tag := t.findSlot(h)
	for t.slots[i] != 0 {
		if i++; i == len(t.slots) {
			i = 0
		}
	}
	t.slots[i], t.tags[i] = s, tag
}

// Delete removes a number, which must be in the table. Texts must still return the text with which it was inserted.
func (t *Table) Delete(id uint32) {
	i, _ := t.findSlot(HashOf(t.Texts.Text(id)))
	for t.slots[i] != id+1 {
		if i++; i == len(t.slots) {
			i = 0
		}
	}
	t.n--
	// Entries after the gap are moved into it, because a search stops at a free slot.
	for j := i; ; {
		t.slots[i] = 0
		for {
			if j++; j == len(t.slots) {
				j = 0
			}
			if t.slots[j] == 0 {
				return
			}
			home, _ := t.findSlot(HashOf(t.Texts.Text(t.slots[j] - 1)))
			// Keep the entry at j if a search for it begins after the gap at i (home in i+1..j); else move it to i.
			if i <= j && (home <= i || home > j) || i > j && home <= i && home > j {
				break
			}
		}
		t.slots[i], t.tags[i] = t.slots[j], t.tags[j]
		i = j
	}
}
