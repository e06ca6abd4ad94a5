// Package textfile decodes text files of other encodings to UTF-8: by their byte order mark, else by their letters and
// common words, and by chardet where these leave a choice. A text is decoded whole or not at all, and not if its
// encoding is uncertain, because a text with parts missing or changed misleads its reader.
package textfile

import (
	"bytes"
	"errors"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/simplifiedchinese"
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

// Decode returns the text in b. With cut set, b is the beginning of a longer file and may end within a
// character.
func Decode(b []byte, cut bool) (string, error) {
	for _, m := range marks {
		if bytes.HasPrefix(b, []byte(m.mark)) {
			return decodeAs(m.encoding, b, cut)
		}
	}
	if e := detectEscapes(b); e != nil {
		return decodeAs(e, b, cut)
	}
	if s, ok := validUTF8(joinSurrogates(b), cut); ok {
		return s, nil
	}
	if bytes.IndexByte(b, 0) >= 0 {
		return decodeUTF16(b, cut)
	}
	if e := detect(b); e != nil {
		return decodeAs(e, b, cut)
	}
	return "", ErrEncoding
}

// shifts matches the sequences of 7-bit encodings that begin text in another character set.
var (
	japaneseShift = regexp.MustCompile(`\x1b\$[@B]|\x1b\([IJ]`)
	chineseShift  = regexp.MustCompile(`~\{(?:[!-w][!-~])+~\}`)
	otherShift    = regexp.MustCompile(`\x1b\$(?:A|\(D|[)*+][A-HC])|\x1b&@\x1b`)
)

// detectEscapes returns the encoding of a text that is all ASCII and has the sequences of ISO-2022-JP or HZ; nil for
// other texts. The decoder of encoding.Replacement fails: there is none for the other forms of ISO-2022.
func detectEscapes(b []byte) encoding.Encoding {
	if bytes.ContainsFunc(b, func(r rune) bool { return r >= utf8.RuneSelf }) {
		return nil
	}
	switch {
	case otherShift.Match(b):
		return encoding.Replacement
	case japaneseShift.Match(b):
		return japanese.ISO2022JP
	case chineseShift.Match(b):
		s, err := decodeAs(simplifiedchinese.HZGB2312, b, true)
		switch {
		case err != nil:
		case shareOfCommon(s, commonOf["simplified"]) >= leastHan:
			return simplifiedchinese.HZGB2312
		case strings.ContainsAny(s, commonOf["simplified"]): // too short to be sure
			return encoding.Replacement
		}
	}
	return nil
}

// joinSurrogates returns b with the characters of CESU-8, two surrogates of three bytes each, in UTF-8.
func joinSurrogates(b []byte) []byte {
	if utf8.Valid(b) || bytes.IndexByte(b, 0xed) < 0 {
		return b
	}
	surrogate := func(at int) rune {
		if at+3 > len(b) || b[at] != 0xed || b[at+1] < 0xa0 || b[at+1] > 0xbf || b[at+2]&0xc0 != 0x80 {
			return 0
		}
		return 0xd000 | rune(b[at+1]&0x3f)<<6 | rune(b[at+2]&0x3f)
	}
	out := make([]byte, 0, len(b))
	for i := 0; i < len(b); i++ {
		if b[i] == 0xed {
			if r := utf16.DecodeRune(surrogate(i), surrogate(i+3)); r != utf8.RuneError {
				out = utf8.AppendRune(out, r)
				i += 5
				continue
			}
		}
		out = append(out, b[i])
	}
	return out
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
