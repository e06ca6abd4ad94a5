package bm25

import (
	"math/bits"
	"unicode/utf8"
)

// neighbours finds words with a near spelling. Words are grouped by length, each with a bit mask of its
// letters. One edit changes at most two bits of the mask, so most words are excluded by comparing masks,
// and only the rest is compared letter by letter. Words with digits are left out, because they are codes
// for which a near spelling means something else.
type neighbours struct {
	byLength [maxNearLen + 1][]neighbour
}

type neighbour struct {
	mask uint32
	word uint32
}

const maxNearLen = 24 // in runes; near spellings are not searched for longer words

// letterMask returns the mask of the letters of a word and its number of runes. The number is 0 if near
// spellings are not searched for the word.
func letterMask(text string) (mask uint32, n int) {
	for _, r := range text {
		if r >= '0' && r <= '9' {
			return 0, 0
		}
		mask |= 1 << (uint32(r) & 31)
		n++
	}
	if n < 3 || n > maxNearLen {
		return 0, 0
	}
	return mask, n
}

func (x *neighbours) addWord(list []word, id uint32) {
	mask, n := letterMask(list[id].text)
	if n == 0 {
		return
	}
	x.byLength[n] = append(x.byLength[n], neighbour{mask, id})
	list[id].slot = uint32(len(x.byLength[n]))
}

func (x *neighbours) removeWord(list []word, id uint32) {
	slot := list[id].slot
	if slot == 0 {
		return
	}
	n := utf8.RuneCountInString(list[id].text)
	b := x.byLength[n]
	last := b[len(b)-1]
	b[slot-1] = last
	list[last.word].slot = slot
	x.byLength[n] = b[:len(b)-1]
}

// eachNear calls yield with every word, except text itself, whose edit distance to text is at most most.
// The order is not defined. list is words.list.
func (x *neighbours) eachNear(list []word, text string, most int, yield func(id uint32, distance int)) {
	mask, n := letterMask(text)
	if n == 0 {
		return
	}
	var a, b [maxNearLen]rune
	ra := a[:copyRunes(a[:], text)]
	var plain, other [maxNearLen]byte // used if every letter is a single byte
	copy(plain[:], text)
	for l := max(3, n-most); l <= min(maxNearLen, n+most); l++ {
		// Inserting or deleting a letter changes at most one bit, replacing a letter at most two.
		differ := 2*most - max(l-n, n-l)
		for _, c := range x.byLength[l] {
			if bits.OnesCount32(mask^c.mask) > differ {
				continue
			}
			d, word := 0, list[c.word].text
			if len(text) == n && len(word) == l {
				d = editDistance(plain[:n], other[:copy(other[:], word)], most)
			} else {
				d = editDistance(ra, b[:copyRunes(b[:], word)], most)
			}
			if d > 0 && d <= most {
				yield(c.word, d)
			}
		}
	}
}

func copyRunes(dst []rune, s string) int {
	n := 0
	for _, r := range s {
		if n == len(dst) {
			break
		}
		dst[n] = r
		n++
	}
	return n
}

// editDistance returns the number of insertions, deletions, replacements and swaps of adjacent letters that turn a
// into b. It returns most+1 as soon as the distance must exceed most. a and b must have at most maxNearLen runes.
func editDistance[R byte | rune](a, b []R, most int) int {
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	if len(a) == 0 || len(b) == 0 {
		return len(a) + len(b)
	}
	var rows [3][maxNearLen + 1]int
	prev2, prev, cur := &rows[0], &rows[1], &rows[2]
	for j := range len(b) + 1 {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		cur[0] = i
		least := i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			d := min(prev[j]+1, cur[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d = min(d, prev2[j-2]+1)
			}
			cur[j] = d
			least = min(least, d)
		}
		if least > most {
			return most + 1
		}
		prev2, prev, cur = prev, cur, prev2
	}
	return prev[len(b)]
}
