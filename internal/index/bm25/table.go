package bm25

import "hash/maphash"

// Texts returns the texts of numbers.
type Texts interface {
	Text(id uint32) string
}

// Table finds numbers by their texts. The texts stay with the owner: a table
// takes eight bytes an entry where a map of strings takes forty, and an index
// has several entries for every document. The zero value needs Texts.
type Table struct {
	Texts Texts
	slots []uint32 // id+1, 0 where free
	tags  []uint8  // of each slot some bits of the hash, so that few texts are read in vain
	n     int
}

var tableSeed = maphash.MakeSeed()

func (t *Table) findSlot(h uint64) (int, uint8) {
	return int((h >> 32) * uint64(len(t.slots)) >> 32), uint8(h)
}

// HashOf is the hash by which tables find a text.
func HashOf(text string) uint64 { return maphash.String(tableSeed, text) }

// Len is the number of entries.
func (t *Table) Len() int { return t.n }

// Find returns the id with that text.
func (t *Table) Find(text string) (uint32, bool) {
	if t.n == 0 {
		return 0, false
	}
	return t.FindHash(text, HashOf(text))
}

// FindHash is Find for a text of which the hash is known.
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

// Insert adds an id with a text that is not in the table.
func (t *Table) Insert(id uint32) { t.InsertHash(id, HashOf(t.Texts.Text(id))) }

// InsertHash is Insert for a text of which the hash is known.
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

// Delete takes out an id, which must be in with the text it still has.
func (t *Table) Delete(id uint32) {
	i, _ := t.findSlot(HashOf(t.Texts.Text(id)))
	for t.slots[i] != id+1 {
		if i++; i == len(t.slots) {
			i = 0
		}
	}
	t.n--
	// Close the gap, so that no search stops before the entries behind it.
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
			// The entry at j may move to i unless its home lies between.
			if i <= j && (home <= i || home > j) || i > j && home <= i && home > j {
				break
			}
		}
		t.slots[i], t.tags[i] = t.slots[j], t.tags[j]
		i = j
	}
}
