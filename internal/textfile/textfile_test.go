package textfile

import (
	"strings"
	"testing"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
	utf "golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"
	"pgregory.net/rapid"
)

const (
	inRussian  = "Съешь же ещё этих мягких французских булок да выпей чаю. Погода сегодня хорошая, и мы идём гулять в парк.\n"
	inGerman   = "Zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich. Die Straße ist gesperrt, Grüße aus Köln.\n"
	inChinese  = "天气很好，我们今天去公园散步。这是一个用来测试编码检测的文本文件，里面有很多常用的汉字。\n"
	inJapanese = "これは文字コードの判定を試すための文章です。今日は天気が良いので、公園へ散歩に行きます。\n"
	inKorean   = "오늘은 날씨가 좋아서 공원에 산책하러 갑니다. 이것은 문자 인코딩을 시험하는 글입니다.\n"
	inTaiwan   = "今天天氣很好，我們去公園散步。這是一個用來測試編碼檢測的文字檔案，裡面有很多常用的漢字。\n"
)

func TestDecode_ReadsOtherEncodings(t *testing.T) {
	for name, tt := range map[string]struct {
		e    encoding.Encoding
		text string
	}{
		"windows-1251": {charmap.Windows1251, inRussian}, "koi8-r": {charmap.KOI8R, inRussian},
		"windows-1252": {charmap.Windows1252, inGerman}, "latin-1": {charmap.ISO8859_1, inGerman},
		"gbk": {simplifiedchinese.GBK, inChinese}, "gb18030": {simplifiedchinese.GB18030, inChinese},
		"big5": {traditionalchinese.Big5, inTaiwan}, "shift_jis": {japanese.ShiftJIS, inJapanese},
		"euc-jp": {japanese.EUCJP, inJapanese}, "euc-kr": {korean.EUCKR, inKorean},
		"utf-16le with mark": {utf.UTF16(utf.LittleEndian, utf.UseBOM), inRussian},
		"utf-16be with mark": {utf.UTF16(utf.BigEndian, utf.UseBOM), inJapanese},
		"utf-16le":           {utf.UTF16(utf.LittleEndian, utf.IgnoreBOM), inGerman},
		"utf-16be":           {utf.UTF16(utf.BigEndian, utf.IgnoreBOM), inGerman},
		"utf-32le":           {utf32.UTF32(utf32.LittleEndian, utf32.UseBOM), inKorean},
		"utf-32be":           {utf32.UTF32(utf32.BigEndian, utf32.UseBOM), inGerman},
		"utf-8 with mark":    {utf.UTF8BOM, inChinese}, "utf-8": {encoding.Nop, inChinese}, "ascii": {encoding.Nop, "hello\n"},
		"empty": {encoding.Nop, ""}, "terminal": {encoding.Nop, "\x1b[31mred\x1b[0m\r\n"},
	} {
		b, err := tt.e.NewEncoder().Bytes([]byte(strings.Repeat(tt.text, 3)))
		if err != nil {
			t.Fatal(name, err)
		}
		got, err := Decode(b, false)
		if err != nil || got != strings.Repeat(tt.text, 3) {
			t.Errorf("%s: %.60q %v", name, got, err)
		}
	}
}

func TestDecode_RefusesWhatIsNoText(t *testing.T) {
	for _, in := range []string{"\x00\x01\x02", "\x89PNG\r\n\x1a\n\x00\x00", "a\x00b", "\xff\xfea", "\xff\xfe\x00\xd8", "a\x01b", "%PDF\x00",
		"\x00\x00\x00\x00", "text \xff\xff\xff\x00"} {
		if got, err := Decode([]byte(in), false); err == nil {
			t.Errorf("%q was read as %q", in, got)
		}
	}
}

// Text in UTF-8 is itself, and the beginning of one ends at a character. No text holds a replacement.
func TestDecode_LosesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Map(func(r rune) rune {
			if r < ' ' || r == 0x7f || r == 0xfffd || r == 0xfeff {
				return 'x'
			}
			return r
		}, rapid.StringMatching(`[\w äöü天気😀]{0,30}`).Draw(t, "text"))
		if got, err := Decode([]byte(text), false); got != text || err != nil {
			t.Fatalf("%q: %q %v", text, got, err)
		}
		n := rapid.IntRange(0, len(text)).Draw(t, "cut")
		got, err := Decode([]byte(text[:n]), true)
		if err != nil || !strings.HasPrefix(text, got) || len(got) < n-3 {
			t.Fatalf("%q cut to %d: %q %v", text, n, got, err)
		}
		b := rapid.SliceOfN(rapid.Byte(), 0, 60).Draw(t, "bytes")
		if got, err := Decode(b, rapid.Bool().Draw(t, "is cut")); err == nil && strings.ContainsRune(got, '\ufffd') {
			t.Fatalf("%q became %q", b, got)
		}
	})
}
