package terminal

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func clean(pieces ...string) string {
	var f Filter
	var out []byte
	for _, p := range pieces {
		out = append(out, f.Add([]byte(p))...)
	}
	return string(append(out, f.Flush()...))
}

func TestFilter(t *testing.T) {
	for in, want := range map[string]string{
		"hello\n": "hello\n", "a\r\nb\r\n": "a\nb\n", "": "", "no end": "no end", "\n\n": "\n\n",
		"\x1b[31mred\x1b[0m\n":                                "red\n",
		"\x1b[38;5;196mx\x1b[m":                               "x",
		"\x1b]0;title\x07x\n":                                 "x\n",
		"\x1b]8;;https://a.example\x1b\\link\x1b]8;;\x1b\\\n": "link\n",
		"\x1b[?25lx\x1b[?25h\x1b[2K\n":                        "x\n",
		"\x1b(Bx\x1b7\x1b8\x1b=\n":                            "x\n",
		"10%\r50%\r100%\n":                                    "100%\n",
		"10%\r50%\r100%":                                      "100%",
		"10%\r100%\r\ndone\n":                                 "100%\ndone\n",
		"\r[##  ]\r[####]\r\x1b[K\nok":                        "[####]\nok",
		"\x07bell\x00\n":                                      "bell\n",
		"tab\tstays 😀\n":                                      "tab\tstays 😀\n",
		"10%\x1b[1G50%\x1b[1G100%\n":                          "100%\n", "10%\x1b[G50%\n": "50%\n", "10%\x1b[0G50%": "50%", "10%\u009b1G50%\n": "50%\n",
		"\u009b31mred\u009b0m\n": "red\n", "\u009d0;title\u009cx\n": "x\n", "\x1b]0;title\u009cx\n": "x\n",
		"\x1b]0;title without an end\nx\n": "\nx\n", "\u0090data\x1b\\x\n": "x\n", "\x1bPdata\u009cx\n": "x\n", "a\u0084b\n": "ab\n",
		"|\b/\b-\b\n": "\n", "|\b/\b-\b done\n": " done\n",
		"\x1b]0;half": "", "é and Â\n": "é and Â\n", "x\u009b5Cy\n": "xy\n", "12\b\b34\n": "34\n", "ok\x1b[2;1Hgo\n": "okgo\n",
		"a\x1b":                    "a",
		"⠋ work\r⠙ work\r✓ done\n": "✓ done\n",
	} {
		if got := clean(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
		if got := clean(strings.Split(in, "")...); got != want {
			t.Errorf("%q in pieces: %q, want %q", in, got, want)
		}
	}
}

// Words are passed on as they arrive, and lines that look like progress at their end.
func TestFilter_PassesWordsOn(t *testing.T) {
	for _, x := range []struct {
		pieces []string
		want   []string // after each piece
	}{
		{[]string{"The ", "sum ", "is 5.", "\n", "And"}, []string{"The ", "sum ", "is 5.", "\n", "And"}},
		{[]string{"10%", " of 240", " is 24"}, []string{"", "", ""}},
		{[]string{"Wait...", " what?"}, []string{"", "Wait... what?"}},
		{[]string{"Loading", "\r", "done", "\nok"}, []string{"Loading", "", "", "\ndone\nok"}},
		{[]string{"Loading", "\r\n"}, []string{"Loading", "\n"}},
		{[]string{"a\x1b", "[1mb"}, []string{"a", "b"}},
		{[]string{"\x1b", "[1mb"}, []string{"", "b"}},
	} {
		var f Filter
		for i, p := range x.pieces {
			if got := string(f.Add([]byte(p))); got != x.want[i] {
				t.Errorf("%q, piece %d: %q, want %q", x.pieces, i, got, x.want[i])
			}
		}
	}
}

// Text without sequences arrives as it is, at once and in any pieces; no sequence is left.
func TestFilter_InPieces(t *testing.T) {
	word := rapid.SampledFrom([]string{"a", "é", " ", "\n", "\r\n", "\x1b[1m", "\x1b]0;t\x07", "\x1b(B", "50%", "[0m"})
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(word, 0, 20).Draw(t, "words")
		all := strings.Join(words, "")
		got := clean(words...)
		if strings.ContainsAny(got, "\x1b\r") {
			t.Fatalf("%q: %q", words, got)
		}
		if !strings.ContainsAny(all, "\x1b\r") && got != all {
			t.Fatalf("%q: %q", words, got)
		}
	})
}

func TestLastText_ErasesWhatIsWrittenOver(t *testing.T) {
	for in, want := range map[string]string{"N\bNA\bAM\bM_\bE": "NAME", "abc\b\b\bxyz": "xyz", "\b\bx": "x", "é\be": "e",
		"a\r\bb": "b", "10%\b\b\b20%": "20%"} {
		if got := LastText(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
