package meaning

import "testing"

func TestKnows_TellsWordsFromParts(t *testing.T) {
	m, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{
		"translation": true, "Translation of a contract": true, "": true, "tranlsatoin": false, "conrtact": false,
	} {
		if got := m.Knows(text); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}
