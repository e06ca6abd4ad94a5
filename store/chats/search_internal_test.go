package chats

import "testing"

// One or two letters are the beginning of a word in the rooms that changed last, up to a number of messages; longer
// beginnings are in all.
func TestWordGroups_BoundShortBeginnings(t *testing.T) {
	t.Parallel()
	list := []searchedRoom{{ID: "a", LastSeq: shortPrefixes - 1}, {ID: "b", LastSeq: 1}, {ID: "c", LastSeq: 1}}
	for word, want := range map[string][]bool{"f": {true, true, false}, "ел": {true, true, false}, "fer": {true, true, true}} {
		for i, g := range wordGroups(list, []string{"the", word}) {
			if g.Prefix != want[i] || len(g.Phrases) != 2 || g.Phrases[1] != list[i].ID+word {
				t.Errorf("%s in room %d: %+v", word, i, g)
			}
		}
	}
}
