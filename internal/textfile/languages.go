package textfile

import (
	_ "embed"
	"strings"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
)

// alphabet is a language that is written with an alphabet: its letters beyond ASCII in lower case, and its most
// common words. It is latin if ASCII letters belong to it.
type alphabet struct {
	latin   bool
	letters string
	signs   string // signs that only this language has
	words   string
}

// family is a group of encodings with the names of the languages that are written in them.
type family struct {
	encodings []encoding.Encoding
	languages string
}

//go:embed languages.txt
var languagesText string

// alphabets are the languages of languages.txt by name, and commonOf the common characters of the others.
var alphabets, commonOf = readLanguages(languagesText)

func readLanguages(text string) (map[string]alphabet, map[string]string) {
	alphabets, common := make(map[string]alphabet), make(map[string]string)
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		switch {
		case f[0] == "#":
		case len(f) == 2:
			common[f[0]] = f[1]
		default:
			alphabets[f[0]] = alphabet{latin: f[1] == "latin", letters: f[2], signs: strings.Trim(f[3], "-"),
				words: strings.Join(f[4:], " ")}
		}
	}
	return alphabets, common
}

// thai is written without spaces between words.
const thai = "thai"

// families are the encodings that are tried, with the languages that they may have.
var families = []family{
	{[]encoding.Encoding{charmap.Windows1252, charmap.CodePage850, charmap.Macintosh},
		"english german french spanish portuguese italian dutch swedish danish finnish iceland catalan western"},
	{[]encoding.Encoding{charmap.ISO8859_15}, "english german french spanish italian finnish estonian"},
	{[]encoding.Encoding{charmap.Windows1250, charmap.ISO8859_2, charmap.CodePage852},
		"polish czech slovak hungarian romanian croatian german"},
	{[]encoding.Encoding{charmap.ISO8859_16}, "romanian polish hungarian"},
	{[]encoding.Encoding{charmap.Windows1254}, "turkish"},
	{[]encoding.Encoding{charmap.Windows1257, charmap.ISO8859_13, charmap.ISO8859_4},
		"lithuanian latvian estonian polish german danish swedish finnish"},
	{[]encoding.Encoding{charmap.Windows1251, charmap.ISO8859_5, charmap.KOI8U, charmap.MacintoshCyrillic},
		"russian ukrainian belarusian bulgarian serbian macedon"},
	{[]encoding.Encoding{charmap.KOI8R, charmap.CodePage866}, "russian belarusian bulgarian"},
	{[]encoding.Encoding{charmap.Windows1253, charmap.ISO8859_7}, "greek"},
	{[]encoding.Encoding{charmap.Windows1255, charmap.ISO8859_8, charmap.CodePage862}, "hebrew"},
	{[]encoding.Encoding{charmap.Windows1256, charmap.ISO8859_6}, "arabic"},
	{[]encoding.Encoding{charmap.Windows874}, "thai"},
}
