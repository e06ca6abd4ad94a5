package meaning

import (
	"errors"
	"math"
)

// Dims is the number of dimensions of a vector.
const Dims = 256

const (
	magic = "meaning1"
	// parts is the number of vectors in a mixture.
	parts = 4
	// wholeShare is the stored share that means one.
	wholeShare = 128
)

// A Model holds the words of the model and their vectors. It may be used by several goroutines at once.
//
// A word of English or Chinese has a vector of its own. A word of another language has a mixture of the vectors of
// English words with its meaning, because that takes a tenth of the bytes. Rows below own.count are vectors, the
// others mixtures.
type Model struct {
	name       string
	own, mixed table
	// A vector is its scale, of 16 bits, times numbers of 4 bits from -7.5 to 7.5.
	scales, numbers string
	// A mixture is the rows of its parts, of 16 bits each, and their shares, of 8 bits each.
	partRows, partShares string
}

// A table has keys in the order of their bytes.
type table struct {
	count int
	ends  string // 32 bits for each key: its end in keys
	keys  string
}

var errData = errors.New("data of the model is damaged")

// read returns the model in data.
func read(data string) (*Model, error) {
	r := reader{data: data}
	if r.next(len(magic)) != magic || r.number() != Dims {
		return nil, errData
	}
	var m Model
	m.own.count, m.mixed.count = r.number(), r.number()
	m.name = r.next(r.number())
	m.own.read(&r)
	m.mixed.read(&r)
	m.scales = r.next(2 * m.own.count)
	m.numbers = r.next(m.own.count * Dims / 2)
	m.partRows = r.next(2 * parts * m.mixed.count)
	m.partShares = r.next(parts * m.mixed.count)
	if r.damaged || len(r.data) > 0 {
		return nil, errData
	}
	return &m, nil
}

// A reader takes parts from the front of data, and remembers if one was missing.
type reader struct {
	data    string
	damaged bool
}

func (r *reader) next(size int) string {
	if r.damaged || size < 0 || size > len(r.data) {
		r.damaged = true
		return ""
	}
	taken := r.data[:size]
	r.data = r.data[size:]
	return taken
}

func (r *reader) number() int {
	if bytes := r.next(4); bytes != "" {
		return int(readUint32(bytes))
	}
	return 0
}

func readUint16(b string) uint16 { return uint16(b[0]) | uint16(b[1])<<8 }

func readUint32(b string) uint32 {
	return uint32(b[3])<<24 | uint32(b[2])<<16 | uint32(b[1])<<8 | uint32(b[0])
}

func (t *table) read(r *reader) {
	t.ends = r.next(4 * t.count)
	if r.damaged || t.count == 0 {
		return
	}
	t.keys = r.next(t.end(t.count - 1))
}

func (t *table) end(i int) int { return int(readUint32(t.ends[4*i:])) }

func (t *table) key(i int) string {
	start := 0
	if i > 0 {
		start = t.end(i - 1)
	}
	return t.keys[start:t.end(i)]
}

// findLongest returns the row of the longest key that the text starts with, and the length of that key, which is
// zero if there is none.
func (t *table) findLongest(text string) (row, size int) {
	behind := t.count // the keys from here on do not start the text
	for text != "" {
		// The last key that is not behind the text. No longer key can start the text.
		low, high := 0, behind
		for low < high {
			if middle := (low + high) / 2; t.key(middle) <= text {
				low = middle + 1
			} else {
				high = middle
			}
		}
		if low == 0 {
			return 0, 0
		}
		key := t.key(low - 1)
		same := 0
		for same < len(key) && same < len(text) && key[same] == text[same] {
			same++
		}
		if same == len(key) {
			return low - 1, same
		}
		// A key that starts the text is before this one, so it has at most the part that both share.
		text, behind = text[:same], low-1
	}
	return 0, 0
}

// findLongest is like that of a table, for both.
func (m *Model) findLongest(text string) (row, size int) {
	if row, size = m.own.findLongest(text); size == len(text) {
		return row, size
	}
	if other, longer := m.mixed.findLongest(text); longer > size {
		return m.own.count + other, longer
	}
	return row, size
}

// readRow sets row to the vector of a piece times its share.
func (m *Model) readRow(p piece, row *[Dims]float32) {
	*row = [Dims]float32{}
	if p.row < m.own.count {
		m.addVector(p.row, p.share, row)
		return
	}
	first := (p.row - m.own.count) * parts
	for i := first; i < first+parts; i++ {
		share := float32(m.partShares[i]) / wholeShare
		m.addVector(int(readUint16(m.partRows[2*i:])), p.share*share, row)
	}
}

func (m *Model) addVector(vector int, share float32, row *[Dims]float32) {
	scale := math.Float32frombits(uint32(readUint16(m.scales[2*vector:])) << 16)
	scale *= share
	var values [16]float32
	for i := range values {
		values[i] = scale * (float32(i) - 7.5)
	}
	numbers := m.numbers[vector*Dims/2 : (vector+1)*Dims/2]
	for i := 0; i < len(numbers) && i < Dims/2; i++ {
		pair := numbers[i]
		row[2*i] += values[pair&15]
		row[2*i+1] += values[pair>>4]
	}
}
