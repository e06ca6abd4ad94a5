package builtin

// Weights of words and meaning of sections, chosen on docs/testdata/questions.tsv, testdata/dev_questions.tsv and
// testdata/lay_questions.tsv.
const (
	// wordHits is the number of sections of each kind that are found by words.
	wordHits = 20
	// textWorth is the worth of the section with the best words, questionsWorth that of the one that answers the questions
	// with the best words.
	textWorth, questionsWorth = 0.6, 0.6
	// similarWorth is the worth of a section with a cosine of 1, askedWorth that of one that answers a question with it,
	// and furtherWorth that of one that answers two more of these.
	similarWorth, askedWorth, furtherWorth = 1, 1.2, 0.6
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

// nearestQuestions returns the greatest cosine of a question with those that a section answers, and the mean of the
// second and third; each is 0 if there are none as similar.
func (x *sectionIndex) nearestQuestions(sought []float32, id int) (first, further float64) {
	var best [3]float64
	for _, v := range x.asked[id] {
		for c, i := similarity(sought, [][]float32{v}), 0; i < len(best); i++ {
			if c > best[i] {
				c, best[i] = best[i], c
			}
		}
	}
	return best[0], (best[1] + best[2]) / 2
}
