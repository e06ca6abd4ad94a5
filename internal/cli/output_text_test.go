package cli

import (
	"errors"
	"strings"
	"testing"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/unicode"
	"pgregory.net/rapid"
)

// readOutput returns the text of output that arrives in pieces of n bytes, "!" behind it if a rest is no text.
func readOutput(output string, n int) string {
	var o outputText
	var b strings.Builder
	for len(output) > 0 {
		p := output[:min(n, len(output))]
		output = output[len(p):]
		text, ok := o.add([]byte(p))
		b.Write(text)
		if !ok {
			b.WriteString("…")
		}
	}
	text, err := o.end()
	b.Write(text)
	if errors.Is(err, errUndecoded) {
		b.WriteString("!")
	}
	return b.String()
}

func TestOutputText_DecodesWhatProgramsWrite(t *testing.T) {
	german := "Die Brücke über die Straße ist für größere Lastwagen gesperrt, fahren Sie bitte über München."
	russian := "Мост закрыт для грузовых автомобилей, пожалуйста, выберите другую дорогу через город."
	japaneseText := "この橋は大型トラックの通行が禁止されています。別の道を選んでください。"
	for name, c := range map[string]struct {
		encoding encoding.Encoding
		text     string
	}{
		"UTF-8":         {unicode.UTF8, german + russian + japaneseText},
		"UTF-8, mark":   {unicode.UTF8BOM, german + russian},
		"windows-1252":  {charmap.Windows1252, german},
		"ISO 8859-1":    {charmap.ISO8859_1, german},
		"windows-1251":  {charmap.Windows1251, russian},
		"KOI8-R":        {charmap.KOI8R, russian},
		"code page 866": {charmap.CodePage866, russian},
		"Shift JIS":     {japanese.ShiftJIS, japaneseText},
		"EUC-JP":        {japanese.EUCJP, japaneseText},
		"ISO-2022-JP":   {japanese.ISO2022JP, "Result: " + japaneseText},
		"EUC-KR":        {korean.EUCKR, "이 다리는 대형 트럭의 통행이 금지되어 있습니다. 다른 길을 선택해 주십시오."},
		"GBK":           {simplifiedchinese.GBK, "这座桥禁止大型卡车通行，请您选择另外一条穿过城市的道路。"},
		"UTF-16 LE":     {unicode.UTF16(unicode.LittleEndian, unicode.UseBOM), german + japaneseText},
		"UTF-16 BE":     {unicode.UTF16(unicode.BigEndian, unicode.UseBOM), russian},
		"UTF-16, plain": {unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM), german},
	} {
		output, err := c.encoding.NewEncoder().String(c.text)
		if err != nil {
			t.Fatal(name, err)
		}
		for _, n := range []int{1, 3, 7, len(output)} {
			if got := readOutput(output, n); got != c.text {
				t.Errorf("%s in pieces of %d: %q", name, n, got)
			}
		}
	}
}

func TestOutputText_PassesNoBrokenPartsOn(t *testing.T) {
	for output, want := range map[string]string{
		"": "", "a\x00b": "a\x00b", "\x1b": "\x1b", "\x1b[1mx": "\x1b[1mx", "a\x1b$": "a\x1b$", "a\ufffdb": "a\ufffdb",
		"x\xff": "x!", "ok \xc3": "ok !", "\xf0\x9f\x99": "!", "ü\xfc": "ü!", "\xed\xa0\x80": "!",
		"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR": "!", "two\ufeffmarks": "two\ufeffmarks",
	} {
		for n := 1; n <= max(1, len(output)); n++ {
			if got := readOutput(output, n); got != want {
				t.Errorf("%q in pieces of %d: %q, want %q", output, n, got, want)
			}
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		text := strings.TrimPrefix(rapid.String().Draw(t, "text"), "\ufeff")
		if strings.ContainsAny(text, "\x00\x1b") {
			return
		}
		if got := readOutput(text, rapid.IntRange(1, 9).Draw(t, "n")); got != text {
			t.Fatalf("%q", got)
		}
		output := string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes"))
		if got := readOutput(output, rapid.IntRange(1, 9).Draw(t, "n")); strings.Count(got, "\ufffd") >
			strings.Count(output, "\ufffd")+strings.Count(output, "\xff\xfd")+strings.Count(output, "\xfd\xff") {
			t.Fatalf("%q became %q", output, got)
		}
	})
}

func TestOutputText_KeepsABoundedPart(t *testing.T) {
	var o outputText
	line := []byte(strings.Repeat("a", 1<<16))
	for range 100 {
		if text, ok := o.add(line); len(text) != len(line) || !ok || len(o.raw) > maxUndecoded+len(line) {
			t.Fatalf("%d bytes of text, %d are kept", len(text), len(o.raw))
		}
	}
	for range maxUndecoded/len(line) + 2 {
		if _, ok := o.add([]byte("\xff" + string(line))); !ok {
			return
		}
	}
	t.Errorf("%d bytes are kept", len(o.raw))
}
