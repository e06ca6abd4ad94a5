package wordsplit

import (
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"
)

// split returns the words of text; a word that joins the one before begins with +.
func split(text string) string {
	var out []string
	for w := range Split(text) {
		if w.Joined {
			w.Text = "+" + w.Text
		}
		out = append(out, w.Text)
	}
	return strings.Join(out, " ")
}

func TestSplit_DividesEveryScript(t *testing.T) {
	for text, want := range map[string]string{
		"":                         "",
		"Hello, World! 12.50":      "hello world 12 50",
		"it's don’t":               "its dont",
		"Crème brûlée, Ærø":        "creme brulee aero",
		"cafe\u0301 Straße":        "cafe strasse",
		"ＦＵＬＬ m² Ⅳ":                "full m² iv",
		"①②⑳ ❸x ⅷ. Ⓐ⒞ 𝟗 ⒈":         "1 +2 +20 3 +x viii ac 9 1",
		"می\u200cروم کتاب\u200cها": "مي روم كتاب ها",
		"㈱テスト 5㎏ 3㎡ ㊤㋐ ㊷":          "株 +テ +ス +ト 5kg 3m2 上 +ア 42",
		"auf\u200clage क्\u200cष":  "auflage कष",
		"a\u200c ب\u200c \u200cج":  "a ب ج",
		"Привет, мир":              "привет мир",
		"Ελλάδα":                   "ελλαδα",
		"北京abc 天":                  "北 +京 +abc 天",
		"학교에서":                     "학 +교 +에 +서",
		"สวัสดี":                   "ส +ว +ส +ด",
		"हिन्दी हु":                "हिनदी हु",
		"தமிழ்":                    "தமிழ",
		"مُحَمَّد مـحـمـد":         "محمد محمد",
		"שָׁלוֹם":                  "שלום",
		"a\u200bb \u202eevil":      "a b evil",
		"1\ufe0f\u20e3 ☃ 🙂":        "1",
		"\xff\xfebad\x00utf":       "bad utf",
		strings.Repeat("a", 100):   strings.Repeat("a", MaxBytes-7),
		strings.Repeat("и", 100):   strings.Repeat("и", (MaxBytes-7+1)/2),
		"'quoted' l'eau d\u00adé":  "quoted leau de",
	} {
		if got := split(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestSplit_JoinsCompounds(t *testing.T) {
	for text, want := range map[string]string{
		"co-operate": "cooperate", "real-time, node.js": "realtime nodejs", "a-b-c": "ab abc", "snake_case": "snakecase",
		"e\u2010mail e\u2011mail": "email email", "ко-оператив": "кооператив", "می\u200cروم": "ميروم", "12.50": "1250",
		"co- operate": "", "co -operate": "", "-a b- c_": "", "a--b": "", "北京-a b-北": "", "a\u200cb": "", "it's-a": "itsa",
		"Crème-brûlée": "cremebrulee", "x-\xff\xfe a.\xe2\x80": "", "end-": "", ".": "",
		strings.Repeat("a-", 1000) + "b":            wholes("a", MaxBytes),
		strings.Repeat("x", 40) + "-yyyyyyyyyy-z-a": "",
	} {
		var got []string
		for w := range Split(text) {
			if w.Whole != "" {
				got = append(got, w.Whole)
			}
		}
		if s := strings.Join(got, " "); s != want {
			t.Errorf("%q: %q, want %q", text, s, want)
		}
	}
}

// wholes returns two to n times the letter.
func wholes(letter string, n int) string {
	var out []string
	for i := 2; i <= n; i++ {
		out = append(out, strings.Repeat(letter, i))
	}
	return strings.Join(out, " ")
}

func TestSplit_SaysWhereAWordBegins(t *testing.T) {
	text := " né «ЖУК» 北京!"
	var got []string
	for w := range Split(text) {
		r, _ := utf8.DecodeRuneInString(text[w.At:])
		got = append(got, string(r))
	}
	if s := strings.Join(got, " "); s != "n Ж 北 京" {
		t.Errorf("words begin with %s", s)
	}
}

// FuzzSplit checks that no word changes when it is divided again, and that words are within the bounds.
// A text of parts of one Arabic word takes memory in proportion to its length.
func TestSplit_BoundsParts(t *testing.T) {
	bytesOf := func(n int) uint64 {
		text := strings.Repeat("ا\u200c", n)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for w := range Split(text) {
			if len(w.Text) > MaxBytes || len(w.Whole) > MaxBytes {
				t.Fatalf("a word of %d and %d bytes", len(w.Text), len(w.Whole))
			}
		}
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	if one, four := bytesOf(2000), bytesOf(8000); four > 6*one {
		t.Errorf("%d bytes for 2,000 parts, %d for 8,000", one, four)
	}
}

func FuzzSplit(f *testing.F) {
	for _, s := range []string{"Hello, World", "北京 ﬃ İ", "हिन्दी\u0300", "\xff\u0345"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		last := -1
		for w := range Split(text) {
			if w.Text == "" || len(w.Text) > MaxBytes || len(w.Whole) > MaxBytes || w.At <= last || strings.ContainsAny(w.Text, " \x00\"'") {
				t.Fatalf("word %+v after index %d", w, last)
			}
			last = w.At
			if again := split(w.Text); again != w.Text {
				t.Fatalf("%q is divided again: %q", w.Text, again)
			}
		}
	})
}
