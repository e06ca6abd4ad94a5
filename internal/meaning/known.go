package meaning

// Knows reports whether the model has every word of a text as a whole, not only parts of it, as of a misspelt word.
func (m *Model) Knows(text string) bool {
	for run := range splitRuns(normalizeText(cutText(text))) {
		if _, size := m.findLongest(run.text); !run.spaceless && size != len(run.text) {
			return false
		}
	}
	return true
}
