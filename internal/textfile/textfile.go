// Package textfile decodes text files of any encoding to UTF-8: by their byte order mark, else by the
// statistics of chardet. A text is decoded whole or not at all, because a text with parts missing misleads
// its reader.
package textfile

import (
	"bytes"
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/wlynxg/chardet"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/htmlindex"
	utf "golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"
)

// ErrEncoding is the error for bytes that are no text in a known encoding.
var ErrEncoding = errors.New("no text in a known encoding")

// marks are the byte order marks, the longer ones first.
var marks = []struct {
	mark     string
	encoding encoding.Encoding
}{
	{"\xff\xfe\x00\x00", utf32.UTF32(utf32.LittleEndian, utf32.UseBOM)},
	{"\x00\x00\xfe\xff", utf32.UTF32(utf32.BigEndian, utf32.UseBOM)},
	{"\xef\xbb\xbf", utf.UTF8BOM},
	{"\xff\xfe", utf.UTF16(utf.LittleEndian, utf.UseBOM)},
	{"\xfe\xff", utf.UTF16(utf.BigEndian, utf.UseBOM)},
}

// maxSample bounds the bytes by which an encoding is detected.
const maxSample = 64 << 10

// leastSure is the confidence of chardet below which its result does not count.
const leastSure = 0.5

// Decode returns the text in b. With cut set, b is the beginning of a longer file and may end within a
// character.
func Decode(b []byte, cut bool) (string, error) {
	for _, m := range marks {
		if bytes.HasPrefix(b, []byte(m.mark)) {
			return decodeAs(m.encoding, b, cut)
		}
	}
	if s, ok := validUTF8(b, cut); ok {
		return s, nil
	}
	if bytes.IndexByte(b, 0) >= 0 {
		return decodeUTF16(b, cut)
	}
	for _, r := range chardet.DetectAll(b[:min(len(b), maxSample)]) {
		if r.Confidence < leastSure || strings.EqualFold(r.Encoding, "utf-8") || strings.EqualFold(r.Encoding, "ascii") {
			continue
		}
		e, err := htmlindex.Get(r.Encoding)
		if err != nil {
			continue
		}
		if s, err := decodeAs(e, b, cut); err == nil {
			return s, nil
		}
	}
	return "", ErrEncoding
}

// validUTF8 returns b as text, if it is UTF-8 without NUL and other signs of binary data.
func validUTF8(b []byte, cut bool) (string, bool) {
	s := string(b)
	for n := 0; cut && n < utf8.UTFMax-1 && len(s) > 0 && !utf8.ValidString(s); n++ {
		s = s[:len(s)-1]
	}
	return s, utf8.ValidString(s) && isText(s)
}

// decodeUTF16 decodes UTF-16 without a mark: most of its characters have a NUL in the same place.
func decodeUTF16(b []byte, cut bool) (string, error) {
	var at [2]int
	for i, c := range b {
		if c == 0 {
			at[i%2]++
		}
	}
	switch pairs := len(b) / 2; {
	case at[1] > pairs/2 && at[0] == 0:
		return decodeAs(utf.UTF16(utf.LittleEndian, utf.IgnoreBOM), b, cut)
	case at[0] > pairs/2 && at[1] == 0:
		return decodeAs(utf.UTF16(utf.BigEndian, utf.IgnoreBOM), b, cut)
	}
	return "", ErrEncoding
}

func decodeAs(e encoding.Encoding, b []byte, cut bool) (string, error) {
	for n := 0; n < 4 && n <= len(b); n++ {
		out, err := e.NewDecoder().Bytes(b[:len(b)-n])
		if err == nil && isText(string(out)) {
			return strings.TrimPrefix(string(out), "\ufeff"), nil
		}
		if !cut {
			break
		}
	}
	return "", ErrEncoding
}

// isText reports whether s has no mark of a failed conversion and no control characters but those of
// terminals and printers.
func isText(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool {
		return r == utf8.RuneError || unicode.IsControl(r) && !strings.ContainsRune("\t\n\r\f\v\b\x1b\x1a\u0085", r)
	})
}
