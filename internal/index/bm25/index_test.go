package bm25

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// manual is a small corpus of sections.
func manual() *Index {
	x := New(Field{Name: "title", Weight: 5, Length: 4, Norm: 0.3}, Field{Name: "body", Weight: 1, Length: 12, Norm: 0.5})
	for i, s := range [][2]string{
		{"Register an agent", "Fill in the form, try it, publish. The agent is found at once."},
		{"Chat with an agent", "Open a room and mention agents by name; real-time answers stream in."},
		{"Translating text", "A translator agent turns German into English and back."},
		{"Backups", "Everything is held in one file. Restore with one command."},
		{"Weather example", "Ask the weather agent about Zürich; openAI keys are not needed."},
		{"Limits", "Rooms, messages and files have limits; the operator sets them."},
	} {
		x.Put(i, s[0], x.Analyze([]string{s[0]}, []string{s[1]}))
	}
	return x
}

func ids(hits []Hit) string {
	var s []string
	for _, h := range hits {
		s = append(s, fmt.Sprint(h.ID))
	}
	return strings.Join(s, " ")
}

func TestQuery_FindsByWordsAsPeopleTypeThem(t *testing.T) {
	x := manual()
	for _, c := range []struct{ name, text, want string }{
		{"stem", "translate", "2"},
		{"plural and case", "BACKUP", "3"},
		{"prefix of the last word", "weath", "4"},
		{"typo", "wether", "4"},
		{"two typos in a long word", "tranlsatr", "2"},
		{"diacritics", "zurich", "4"},
		{"joined form of a hyphen", "realtime", "1"},
		{"hyphen", "real-time", "1"},
		{"camel case", "openai", "4"},
		{"written apart", "open ai", "4 1"},
		{"phrase", `"one file"`, "3"},
		{"phrase in the wrong order", `"file one"`, ""},
		{"phrase does not reach across fields", `"backups everything"`, ""},
		{"phrase must occur, the word need not", `weather "one command"`, "3"},
		{"exclusion", "rooms -mention", "5"},
		{"excluded phrase", `agent -"real-time answers" -german -fill`, "4"},
		{"excluded compound", "room -realtime", "5"},
		{"only exclusions list the rest by key", "-agent", "3 5"},
		{"title beats body", "chat agent", "1 0 2 4"},
		{"more words win", "german english text", "2"},
		{"nothing", "quantum", ""},
		{"unknown words do not hurt", "quantum backups", "3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := ids(x.Query(c.text, 10)); got != c.want {
				t.Errorf("%q: found %q, want %q", c.text, got, c.want)
			}
		})
	}
}

func TestQuery_PrefixOnlyForTheLastWord(t *testing.T) {
	x := manual()
	if got := ids(x.Query("ev backups", 10)); got != "3" {
		t.Fatalf("found %q", got)
	}
	if got := ids(x.Query("backups ev", 10)); got != "3" {
		t.Fatalf("found %q", got)
	}
	if a, b := x.Query("ev backups", 1)[0], x.Query("backups ev", 1)[0]; a.Score >= b.Score || len(b.Matched) != 2 {
		t.Errorf("prefix added nothing: %v then %v", a, b)
	}
}

func TestQuery_NamesTheFieldsThatMatched(t *testing.T) {
	for text, want := range map[string]string{"weather": "title body", "zurich": "body", "limits rooms": "title body"} {
		if got := strings.Join(manual().Query(text, 1)[0].Matched, " "); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

func TestQuery_AnExactWordBeatsItsPrefixesAndNeighbours(t *testing.T) {
	x := New(Field{Name: "f", Weight: 1, Length: 1})
	for i, s := range []string{"card", "car", "cart", "care"} {
		x.Put(i, s, x.Analyze([]string{s}))
	}
	if got := ids(x.Query("car", 10)); got != "1 0 3 2" {
		t.Errorf("found %q", got)
	}
	// "cart" is in the dictionary: its neighbour "card" is not meant.
	if got := ids(x.Query("cart", 10)); got != "2" {
		t.Errorf("found %q", got)
	}
}

func TestQuery_TiesAreOrderedByKeyWhateverTheOrderOfPuts(t *testing.T) {
	x := New(Field{Name: "f", Weight: 1, Length: 1})
	perm := rand.New(rand.NewPCG(1, 2)).Perm(2000)
	for _, i := range perm {
		x.Put(i, fmt.Sprintf("k%05d", i), x.Analyze([]string{"same words"}))
	}
	for _, text := range []string{"same", "same words"} {
		for i, h := range x.Query(text, 700) {
			if h.ID != i {
				t.Fatalf("%s: place %d has %d", text, i, h.ID)
			}
		}
	}
}

func TestPutAndRemove_LeaveNoTrace(t *testing.T) {
	x := manual()
	words := x.words.byText.Len()
	for round := range 50 {
		for i := range 20 {
			text := fmt.Sprintf("temporary-%d words of round%d agent", i, round)
			x.Put(100+i, text, x.Analyze([]string{text}, []string{text, "weather"}))
			x.Put(100+i, text, x.Analyze([]string{"other " + text}, nil))
		}
		for i := range 20 {
			x.Remove(100 + i)
			x.Remove(100 + i)
		}
	}
	if x.Len() != 6 || x.words.byText.Len() != words {
		t.Errorf("%d documents, %d words, want 6 and %d", x.Len(), x.words.byText.Len(), words)
	}
	if len(x.words.list) > words+1000 {
		t.Errorf("%d word entries: freed ones are not used again", len(x.words.list))
	}
	near := 0
	for _, b := range x.words.near.byLength {
		near += len(b)
	}
	if near > words {
		t.Errorf("%d neighbours of %d words", near, words)
	}
	fresh := manual()
	for _, text := range []string{"agent", "weather", "temporary", "round7", "translate text"} {
		if a, b := fmt.Sprint(x.Query(text, 10)), fmt.Sprint(fresh.Query(text, 10)); a != b {
			t.Errorf("%s: %s, in a fresh index %s", text, a, b)
		}
	}
}

func TestPut_ReplacesTheEarlierForm(t *testing.T) {
	x := manual()
	x.Put(3, "Backups", x.Analyze([]string{"Restoring"}, []string{"From a copy."}))
	if got := ids(x.Query("backup", 5)) + ids(x.Query("file", 5)); got != "5" {
		t.Errorf("old words found: %q", got)
	}
	if got := ids(x.Query("restore", 5)); got != "3" {
		t.Errorf("new words: %q", got)
	}
}

func TestSuggest_OffersTheClosestWords(t *testing.T) {
	x := manual()
	for text, want := range map[string]string{"wxxther": "weather", "backuuups": "backups", "opxxator": "operator", "weather": ""} {
		got := x.Suggest(text, 3)
		if want == "" && len(got) > 0 || want != "" && !slices.Contains(got, want) {
			t.Errorf("%s: %v, want %q", text, got, want)
		}
	}
}

func TestMeant_UnfinishedIsTheBeginningOfAWord(t *testing.T) {
	x := manual()
	knows := func(word string) bool { return word == "weath" }
	for text, want := range map[string]bool{
		"backups operato": true, "operato backups": false, "operator": false, "opxxator": false, "weath": false,
		"-operato": false, "": false,
	} {
		m := x.Match(text)
		if _, got := m.Meant(text, knows); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
		m.Close()
	}
}

func TestSorted_StaysInOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	keys := make([]string, 5000)
	s := sorted{texts: textsFunc(func(id uint32) string { return keys[id] })}
	in := map[uint32]bool{}
	for range 30000 {
		id := uint32(r.IntN(len(keys)))
		if in[id] {
			s.removeID(id)
			delete(in, id)
		} else {
			keys[id] = fmt.Sprintf("%04d-%d", r.IntN(9999), id)
			s.insertID(id)
			in[id] = true
		}
	}
	var got []string
	s.eachFrom("", func(id uint32) bool { got = append(got, keys[id]); return true })
	if len(got) != len(in) || !slices.IsSorted(got) {
		t.Errorf("%d of %d ids, sorted: %v", len(got), len(in), slices.IsSorted(got))
	}
}

func FuzzQuery(f *testing.F) {
	for _, s := range []string{"agent", `"one file" -x`, `-"`, "real-time", "\xff", "－ＡＢ", strings.Repeat("-a\"", 99)} {
		f.Add(s)
	}
	x := manual()
	f.Fuzz(func(t *testing.T, text string) {
		hits := x.Query(text, 10)
		for i := 1; i < len(hits); i++ {
			if hits[i].Score > hits[i-1].Score || hits[i].ID == hits[i-1].ID {
				t.Fatalf("%q: order of %v", text, hits)
			}
		}
		x.Suggest(text, 5)
		y := New(Field{Name: "f", Weight: 1, Length: 1})
		y.Put(0, text, y.Analyze([]string{text, text}))
		y.Remove(0)
		if y.words.byText.Len() != 0 {
			t.Fatalf("%q left words behind", text)
		}
	})
}

func TestWords_KnowWhereAPrefixEnds(t *testing.T) {
	x, _ := crowd(200)
	x.Put(500, "k500", x.Analyze([]string{"water watts wb x zürich zürcher"}, nil))
	var all []uint32
	x.words.order.eachFrom("", func(id uint32) bool { all = append(all, id); return true })
	for _, prefix := range []string{"w", "wa", "wat", "wb", "wz", "x", "z", "zü", "zür", "a", "zz"} {
		want := uint32(0)
		for _, id := range slices.Backward(all) {
			if w := x.words.list[id].text; w < prefix || strings.HasPrefix(w, prefix) {
				break
			}
			want = id
		}
		if got := x.words.prefixEnd(prefix); got != want {
			t.Errorf("%q ends before word %d, want %d", prefix, got, want)
		}
	}
}

// textsFunc implements Texts.
type textsFunc func(id uint32) string

func (f textsFunc) Text(id uint32) string { return f(id) }
