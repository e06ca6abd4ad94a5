// Package meaning turns a text into a vector whose direction is the meaning of the text: texts about the same
// thing have a high dot product even if they share no word. The model is part of the binary: one vector for each
// of its words, made from sentence models by bench/meaning. The package knows nothing of agents or searches.
//
//	model, err := meaning.Open()
//	query := model.Encode("my puppy has a fever")
//
// The data is searched in place, so opening it costs no time and no memory of the heap.
package meaning

import (
	_ "embed"
	"math"
	"unicode/utf8"
)

// Limits of one text, because texts of peers may be long on purpose. What lies behind them is not read.
const (
	maxTextBytes = 4096
	maxPieces    = 256
)

const (
	// maxSpanRunes bounds a piece in a script that has no spaces between words.
	maxSpanRunes = 8
	// minPieceBytes is the shortest part of an unknown word that counts. Shorter ones occur in random letters.
	minPieceBytes = 3
	// pieceShare is the weight of a part of an unknown word, because such parts often mean something else.
	pieceShare = 0.5
	// minLength is that of a sum of vectors below which its direction means nothing.
	minLength = 1e-6
)

//go:embed model.bin
var embedded string

// Open returns the model that is part of the binary.
func Open() (*Model, error) { return read(embedded) }

// Name returns the name and version of the data. Vectors of models with different names must not be compared.
func (m *Model) Name() string { return m.name }

// Encode returns a vector of length one that points to the meaning of the text, or nil if the model knows no word
// of the text.
func (m *Model) Encode(text string) []float32 {
	vector, _ := m.EncodeWeighted(text)
	return vector
}

// EncodeWeighted is like Encode and also returns the weight of the known words: about one for each word with a
// meaning of its own, little for one like "the", and zero for random letters. A text of low weight has no meaning
// to search by, although its vector has a direction.
func (m *Model) EncodeWeighted(text string) (vector []float32, weight float32) {
	var sum, row [Dims]float32
	left := maxPieces
	for run := range splitRuns(normalizeText(cutText(text))) {
		for piece := range m.pieces(run) {
			if left--; left < 0 {
				break
			}
			m.readRow(piece, &row)
			for i, value := range row {
				sum[i] += value
			}
			weight += vectorLength(&row)
		}
	}
	size := vectorLength(&sum)
	if size < minLength {
		return nil, weight
	}
	vector = make([]float32, Dims)
	for i := range vector {
		vector[i] = sum[i] / size
	}
	return vector, weight
}

// cutText returns the first bytes of a text, without part of a rune at the end.
func cutText(text string) string {
	if len(text) <= maxTextBytes {
		return text
	}
	end := maxTextBytes
	for end > maxTextBytes-utf8.UTFMax && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end]
}

func vectorLength(vector *[Dims]float32) float32 {
	// Four sums do not wait for each other.
	var a, b, c, d float32
	for i := 0; i < Dims; i += 4 {
		a += vector[i] * vector[i]
		b += vector[i+1] * vector[i+1]
		c += vector[i+2] * vector[i+2]
		d += vector[i+3] * vector[i+3]
	}
	return float32(math.Sqrt(float64(a + b + c + d)))
}
