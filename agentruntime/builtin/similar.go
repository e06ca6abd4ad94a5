package builtin

// Weights of the meaning of sections, chosen on docs/testdata/questions.tsv and testdata/dev_questions.tsv.
const (
	// wordHits is the number of sections of each kind that are found by words.
	wordHits = 20
	// similarWorth is the worth of a cosine of 1, where the best section by words has 1.
	similarWorth = 1.2
	// questionsWeight is the weight of words in the questions that a section answers; words in its own texts have 1.
	questionsWeight = 0.6
	// leastSimilar is the cosine from which a section without any word of the question is found.
	leastSimilar = 0.2
	// A section with the cosine coversAll covers a question as if it had all words; one with coversNothing does not.
	coversNothing, coversAll = 0.2, 0.8
)

// beginning is the number of bytes of a section's text that are encoded: its first sentences.
const beginning = 300

// encodeText returns the vector of a text; nil if it has no meaning.
func (m *manual) encodeText(text string) []float32 {
	if m.encode == nil {
		return nil
	}
	return m.encode(text)
}

// encodeSection returns the vectors of a section: of its heading, and of the heading with the first sentences.
func (m *manual) encodeSection(s Section) [][]float32 {
	text, _ := cutExcerpt(s.Text, beginning)
	return [][]float32{m.encodeText(s.Title), m.encodeText(s.PageTitle + ". " + s.Title + ". " + text)}
}

// similarity returns the mean of the cosines of a question with the vectors of a section; 0 without a meaning.
func similarity(sought []float32, list [][]float32) float64 {
	sum := 0.0
	for _, v := range list {
		if len(v) != len(sought) {
			continue
		}
		for i, f := range sought {
			sum += float64(f * v[i])
		}
	}
	return sum / float64(max(len(list), 1))
}

// encodeQuestions returns the vectors of questions, in their order.
func (m *manual) encodeQuestions(list []string) [][]float32 {
	out := make([][]float32, len(list))
	for i, q := range list {
		out[i] = m.encodeText(q)
	}
	return out
}

// nearestQuestion returns the greatest cosine of a question with those that a section answers; 0 if none is similar.
func (x *sectionIndex) nearestQuestion(sought []float32, id int) float64 {
	best := 0.0
	for _, v := range x.asked[id] {
		best = max(best, similarity(sought, [][]float32{v}))
	}
	return best
}
