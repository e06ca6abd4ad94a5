package bm25

import (
	"slices"
	"strings"
	"testing"
)

func tokens(s string) []string {
	var t tokenizer
	t.addWords(s, maxFieldWords)
	var list []string
	for _, k := range t.toks {
		w := string(t.tokenText(k))
		if k.joined {
			w = "+" + w
		}
		list = append(list, w)
	}
	return list
}

func TestTokenizer_SplitsWordsAndKeepsCompounds(t *testing.T) {
	for text, want := range map[string]string{
		"":                            "",
		"Hello, World!":               "hello world",
		"real-time data":              "real time +realtime data",
		"openAI":                      "open ai +openai",
		"HTTPServer":                  "http server +httpserver",
		"APIs and LLMs":               "apis and llms",
		"snake_case node.js":          "snake case +snakecase node js +nodejs",
		"end. Start - dash":           "end start dash",
		"Crème brûlée, Ærø, Straße":   "creme brulee aero strasse",
		"cafe\u0301":                  "cafe",
		"Đặng Łódź":                   "dang lodz",
		"it's don’t":                  "its dont",
		"a2a GPT4 v1.2":               "a2a gpt4 v1 2 +v12",
		"東京 weather":                  "東 京 weather",
		"ＦＵＬＬ":                        "full",
		"text/html a,b":               "text html a b",
		"-x- --y":                     "x y",
		"\xff\xfebad\x00utf":          "bad utf",
		"Привет Мир":                  "привет мир",
		strings.Repeat("a", 100):      strings.Repeat("a", maxWordBytes-7),
		"a-b-c-d-e-f-g-h-i-j-k":       "a b c d e f g h i j k",
		"ein iPhone":                  "ein i phone +iphone",
		"\u202eevil\u202c \u200bzero": "evil zero",
	} {
		if got := strings.Join(tokens(text), " "); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestTokenizer_StopsAtTheLimit(t *testing.T) {
	var tok tokenizer
	if n := tok.addWords(strings.Repeat("w ", 50), 7); n != 7 || len(tok.toks) != 7 {
		t.Errorf("%d words, %d tokens, want 7", n, len(tok.toks))
	}
}

func TestStem_MeetsPortersVocabulary(t *testing.T) {
	for word, want := range map[string]string{
		"caresses": "caress", "ponies": "poni", "ties": "ti", "cats": "cat", "feed": "feed", "agreed": "agre",
		"plastered": "plaster", "bled": "bled", "motoring": "motor", "sing": "sing", "conflated": "conflat",
		"troubling": "troubl", "sized": "size", "hopping": "hop", "tanned": "tan", "falling": "fall",
		"hissing": "hiss", "fizzed": "fizz", "failing": "fail", "filing": "file", "happy": "happi", "sky": "sky",
		"relational": "relat", "conditional": "condit", "valenci": "valenc", "digitizer": "digit",
		"radicalli": "radic", "vietnamization": "vietnam", "operator": "oper", "feudalism": "feudal",
		"decisiveness": "decis", "hopefulness": "hope", "formaliti": "formal", "sensibiliti": "sensibl",
		"triplicate": "triplic", "formative": "form", "electrical": "electr", "goodness": "good",
		"revival": "reviv", "allowance": "allow", "inference": "infer", "airliner": "airlin",
		"adjustable": "adjust", "replacement": "replac", "adoption": "adopt", "communism": "commun",
		"effective": "effect", "probate": "probat", "rate": "rate", "cease": "ceas", "controll": "control",
		"roll": "roll", "translate": "translat", "translating": "translat", "translation": "translat",
		"translator": "translat", "agents": "agent", "summaries": "summari", "summary": "summari",
		"été": "été", "gpt4s": "gpt4s", "is": "is",
	} {
		if got := string(stemWord([]byte(word))); got != want {
			t.Errorf("%s: %s, want %s", word, got, want)
		}
	}
}

func TestDistance_CountsEditsAndSwaps(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"same", "same", 0}, {"translate", "tranlsate", 1}, {"weather", "wether", 1}, {"kitten", "sitting", 3},
		{"abc", "abcd", 1}, {"summarise", "sumarize", 2}, {"", "ab", 2}, {"ab", "ba", 1},
	} {
		if got := editDistance([]rune(c.a), []rune(c.b), 3); got != c.want {
			t.Errorf("%s %s: %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

func TestParse_TakesQueriesApart(t *testing.T) {
	show := func(q query) string {
		var parts []string
		for _, c := range q.clauses {
			s := strings.Join(c.parts, "_")
			if c.joined != "" {
				s += "=" + c.joined
			}
			if c.phrase {
				s = "'" + s + "'"
			}
			if c.exclude {
				s = "-" + s
			}
			parts = append(parts, s)
		}
		return strings.Join(parts, " ")
	}
	for text, want := range map[string]string{
		"":                              "",
		"Translate Text":                "translate text",
		`"exact Phrase" more`:           "'exact_phrase' more",
		`-bad -"very bad" good`:         "-bad -'very_bad' good",
		`-“curly quotes”`:               "-'curly_quotes'",
		`real-time -real-time`:          "real_time=realtime -real_time=realtime",
		`"real-time data"`:              "'real_time_data'",
		`"never closed`:                 "never closed",
		`-"never closed`:                "",
		`- -- a`:                        "a",
		`word"glued phrase"`:            "word 'glued_phrase'",
		`a,real-time,b`:                 "a real_time=realtime b",
		`"" "!!"`:                       "",
		strings.Repeat("w ", 40):        strings.TrimSpace(strings.Repeat("w ", maxQueryWords)),
		strings.Repeat("w ", 20) + "-x": strings.Repeat("w ", maxQueryWords) + "-x",
	} {
		if got := show(parseQuery(text)); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestBits_AgreeAcrossLengths(t *testing.T) {
	var a, b Bits
	for _, id := range []int{0, 63, 64, 200} {
		a.Add(id)
	}
	b.Add(63)
	b.Add(64)
	if a.Count() != 4 || a.CountAnd(b) != 2 || b.CountAnd(a) != 2 || a.Has(1000) {
		t.Fatal("counts differ")
	}
	a.AndNot(b)
	if got := slices.Collect(a.Each); !slices.Equal(got, []int{0, 200}) {
		t.Errorf("AndNot: %v", got)
	}
	a.And(b)
	if a.Count() != 0 {
		t.Errorf("And: %d", a.Count())
	}
}
