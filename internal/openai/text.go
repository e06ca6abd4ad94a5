package openai

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// unquoteText returns the text of a JSON string. Half of a surrogate pair becomes three bytes as in WTF-8,
// and bytes that are not UTF-8 are kept, because the rest of the character may be in the next piece.
func unquoteText(raw []byte) string {
	s := strings.TrimSuffix(strings.TrimPrefix(string(raw), `"`), `"`)
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		switch s[i] {
		case 'n':
			b.WriteByte('\n')
		case 't':
			b.WriteByte('\t')
		case 'r':
			b.WriteByte('\r')
		case 'b':
			b.WriteByte('\b')
		case 'f':
			b.WriteByte('\f')
		case 'u':
			n, err := strconv.ParseUint(s[i+1:min(i+5, len(s))], 16, 16)
			if err != nil {
				continue
			}
			i += 4
			if utf16.IsSurrogate(rune(n)) {
				b.Write([]byte{0xE0 | byte(n>>12), 0x80 | byte(n>>6)&0x3F, 0x80 | byte(n)&0x3F})
				continue
			}
			b.WriteRune(rune(n))
		default:
			b.WriteByte(s[i])
		}
	}
	return b.String()
}

// Joiner puts characters together that come in two pieces: surrogate halves, and the bytes of one
// character. The zero value is ready for use.
type Joiner struct{ rest string }

// Add returns the text of the rest before and s, as far as its characters are complete, in valid UTF-8.
func (j *Joiner) Add(s string) string {
	s, j.rest = j.rest+s, ""
	if utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		high := surrogateHalf(s[i:], 0xA0)
		switch {
		case r != utf8.RuneError || n != 1:
			b.WriteString(s[i : i+n])
			i += n
		case high != 0 && surrogateHalf(s[i+3:], 0xB0) != 0:
			b.WriteRune(utf16.DecodeRune(high, surrogateHalf(s[i+3:], 0xB0)))
			i += 6
		case high != 0 && i+3 == len(s), !utf8.FullRuneInString(s[i:]):
			j.rest = s[i:]
			return b.String()
		default:
			b.WriteRune(utf8.RuneError)
			if i++; high != 0 || surrogateHalf(s[i-1:], 0xB0) != 0 {
				i += 2
			}
		}
	}
	return b.String()
}

// Flush returns a mark for the rest, because its other half did not come; "" if there is none.
func (j *Joiner) Flush() string {
	if j.rest == "" {
		return ""
	}
	j.rest = ""
	return string(utf8.RuneError)
}

// JoinHalves returns s with its characters put together, and marks in place of bytes that are none.
func JoinHalves(s string) string {
	var j Joiner
	return j.Add(s) + j.Flush()
}

// surrogateHalf returns the half of a surrogate pair that s begins with, 0 for none. from is the second byte of
// the first one of its kind.
func surrogateHalf(s string, from byte) rune {
	if len(s) < 3 || s[0] != 0xED || s[1] < from || s[1] > from+0x0F || s[2]&0xC0 != 0x80 {
		return 0
	}
	return 0xD000 | rune(s[1]&0x3F)<<6 | rune(s[2]&0x3F)
}
