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
)

// encodings are those that people's files have, and some rarer ones.
var encodings = map[string]encoding.Encoding{
	"windows-1250": charmap.Windows1250, "windows-1251": charmap.Windows1251, "windows-1252": charmap.Windows1252,
	"windows-1253": charmap.Windows1253, "windows-1254": charmap.Windows1254, "windows-1255": charmap.Windows1255,
	"windows-1256": charmap.Windows1256, "windows-1257": charmap.Windows1257, "windows-1258": charmap.Windows1258,
	"iso-8859-1": charmap.ISO8859_1, "iso-8859-2": charmap.ISO8859_2, "iso-8859-3": charmap.ISO8859_3,
	"iso-8859-5": charmap.ISO8859_5, "iso-8859-7": charmap.ISO8859_7, "iso-8859-8": charmap.ISO8859_8,
	"iso-8859-9": charmap.ISO8859_9, "iso-8859-10": charmap.ISO8859_10, "iso-8859-14": charmap.ISO8859_14,
	"iso-8859-15": charmap.ISO8859_15, "iso-8859-16": charmap.ISO8859_16, "windows-874": charmap.Windows874,
	"koi8-r": charmap.KOI8R, "koi8-u": charmap.KOI8U, "mac": charmap.Macintosh,
	"mac-cyrillic": charmap.MacintoshCyrillic,
	"cp437":        charmap.CodePage437, "cp850": charmap.CodePage850, "cp852": charmap.CodePage852,
	"cp866":  charmap.CodePage866,
	"ebcdic": charmap.CodePage037, "big5": traditionalchinese.Big5, "gb18030": simplifiedchinese.GB18030,
	"gbk": simplifiedchinese.GBK, "hz": simplifiedchinese.HZGB2312, "euc-kr": korean.EUCKR,
	"shift_jis": japanese.ShiftJIS, "euc-jp": japanese.EUCJP, "iso-2022-jp": japanese.ISO2022JP,
}

// samples are texts of people, with the encodings in which each must be read.
var samples = []struct {
	text string
	must string
}{
	{inRussian, "windows-1251 koi8-r koi8-u cp866 iso-8859-5"},
	{inGerman, "windows-1252 iso-8859-1 iso-8859-15 windows-1250 windows-1254 cp850"},
	{inChinese, "gb18030 gbk hz"}, {inTaiwan, "big5"}, {inJapanese, "shift_jis euc-jp iso-2022-jp"}, {inKorean, "euc-kr"},
	{"Zażółć gęślą jaźń. To jest plik tekstowy, który został zapisany w starym kodowaniu, i nie ma w nim błędów.\n",
		"windows-1250 iso-8859-2 cp852"},
	{"Příliš žluťoučký kůň úpěl ďábelské ódy. Dnes je hezky a my jsme šli na procházku do parku.\n",
		"windows-1250 iso-8859-2"},
	{"Árvíztűrő tükörfúrógép. Ma szép az idő, és a parkban sétálunk, mert nem esik az eső.\n",
		"windows-1250 iso-8859-2"},
	{"Bugün hava çok güzel, bu yüzden parkta yürüyüşe çıktık. İstanbul'da ağaçlar ve çiçekler açtı.\n",
		"windows-1254 iso-8859-9"},
	{"Šiandien labai gražus oras, todėl ėjome pasivaikščioti į parką. Ąžuolai ir liepos jau žydi.\n", "windows-1257"},
	{"Šodien ir ļoti jauks laiks, tāpēc mēs gājām pastaigāties uz parku. Tur bija daudz ķiršu un bērzu.\n",
		"windows-1257"},
	{"Сьогодні гарна погода, і ми йдемо гуляти в парк. Її ім'я Євгенія, а ґанок біля хати.\n", "windows-1251 koi8-u"},
	{"Il fait très beau aujourd’hui, et nous allons nous promener dans le parc. Où êtes-vous ? Ça va être génial.\n",
		"windows-1252 windows-1254"},
	{"El niño comió una piña en la montaña. ¿Cómo está usted? ¡Qué día más bonito para el pingüino!\n",
		"windows-1252 iso-8859-1"},
	{"Não há como negar: o avião chegou às três da manhã, e a estação estava vazia.\n", "windows-1252 iso-8859-1"},
	{"På lördag åker vi till sjön och äter smörgåsar. Det är något som alla tycker om.\n", "windows-1252 iso-8859-1"},
	{"Rødgrød med fløde på, og det er ikke så ringe. Vi går i skoven om søndagen.\n", "windows-1252 iso-8859-1"},
	{"Það er gott veður í dag, og við förum í garðinn. Þetta er skráin sem ég bað um.\n", "windows-1252"},
	{"Η ξεσκεπάζω την ψυχοφθόρα βδελυγμία. Σήμερα ο καιρός είναι καλός και πάμε στο πάρκο.\n",
		"windows-1253 iso-8859-7"},
	{"היום מזג האוויר יפה, ואנחנו הולכים לטייל בפארק. זה קובץ של טקסט עם עברית.\n", "windows-1255"},
	{"الطقس جميل اليوم، ونحن نذهب إلى الحديقة. هذا ملف من النصوص في ترميز قديم.\n", "windows-1256"},
	{"วันนี้อากาศดีมาก เราไปเดินเล่นในสวนกัน\n", "windows-874"},
	{"ﾊﾝｶｸｶﾀｶﾅ ﾉ ﾃｷｽﾄ ﾃﾞｽ。これは半角の文字です。\n", "shift_jis"},
	{"ﾊﾝｶｸｶﾀｶﾅ ﾃｽﾄﾃﾞｰﾀ ﾄｳｷｮｳﾄ ﾁﾖﾀﾞｸ\n", "shift_jis"},
	{"Name;City\nMüller;Köln\nJürgens;Düsseldorf\n", "windows-1252 iso-8859-1"},
	{"café\n",
		"windows-1252"}, {"Зажигай!\n",
		""}, {"ещё\n",
		""}, {"très\n",
		""}, {"Łódź\n",
		""}, {"天氣\n",
		""}, {"你好\n",
		""},
	{"안녕\n", ""}, {"ﾃｽﾄ\n", ""}, {"mañana\n", ""}, {"Žižka\n", ""}, {"İğne\n", ""}, {"ąžuolas\n", ""}, {"Їжак\n", ""},
	{"こんにちは\n",
		"iso-2022-jp"}, {"中文測試\n",
		""}, {"ação, coração\n",
		""}, {"naïve résumé\n",
		""}, {"£5 and €7 – “done”…\n",
		""},
}

// A text is read as it is, or not at all: never otherwise.
func TestDecode_NeverReadsAnotherText(t *testing.T) {
	t.Parallel()
	for _, sample := range samples {
		for name, e := range encodings {
			for _, text := range []string{sample.text, strings.Repeat(sample.text, 3)} {
				if name == "hz" && !strings.Contains(sample.must, "hz") {
					continue // there its bytes are ASCII, as those of a text with tildes and braces
				}
				b, err := e.NewEncoder().Bytes([]byte(text))
				if err != nil {
					if strings.Contains(" "+sample.must+" ", " "+name+" ") {
						t.Errorf("%.30q has no form in %s: %v", text, name, err)
					}
					continue
				}
				got, err := Decode(b, false)
				must := strings.Contains(" "+sample.must+" ", " "+name+" ")
				if err != nil && must || err == nil && got != text {
					t.Errorf("%s: %.50q: got %.50q %v", name, text, got, err)
				}
			}
		}
	}
}

func TestDecode_KnowsSevenBitEncodings(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"\x1b$B:#F|\x1b(B\n": "今日\n", "a ~{foo} b": "a ~{foo} b", "cp ~{a,b}~}\n": "cp ~{a,b}~}\n",
		"\x1b[31mred\x1b[0m": "\x1b[31mred\x1b[0m", "\x1b$)C\x0e!!\x0f": "", "\x1b$A!!\x0f": "", "~{VPND~}": "",
		"\xed\xa0\xbd\xed\xb8\x80!": "😀!", "\xed\xa0\xbd!": "", "ok \xed\xb8\x80": "",
		"é\xed\xa0\xbd\xed\xb8\x80": "é😀",
	} {
		got, err := Decode([]byte(in), false)
		if want == "" && err == nil || want != "" && got != want {
			t.Errorf("%q: %q %v, want %q", in, got, err, want)
		}
	}
}

// Bytes that were cut within a character are read up to it, in every encoding.
func TestDecode_ReadsTheBeginning(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{"shift_jis": inJapanese, "gb18030": inChinese, "big5": inTaiwan, "euc-kr": inKorean} {
		b, err := encodings[name].NewEncoder().Bytes([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		for n := len(b) / 2; n <= len(b); n++ {
			got, err := Decode(b[:n], true)
			if err != nil || !strings.HasPrefix(text, got) {
				t.Errorf("%s, %d bytes: %q %v", name, n, got, err)
			}
		}
	}
}

func TestFamilies_NameKnownLanguages(t *testing.T) {
	t.Parallel()
	used := make(map[string]bool)
	for _, f := range families {
		for name := range strings.FieldsSeq(f.languages) {
			used[name] = true
			if alphabets[name].letters == "" {
				t.Errorf("%s is no language of languages.txt", name)
			}
		}
	}
	if len(used) != len(alphabets) || len(commonOf) != 3 {
		t.Errorf("%d of %d languages are used; %d have common characters", len(used), len(alphabets), len(commonOf))
	}
}

func BenchmarkDecode(b *testing.B) {
	in, _ := encodings["windows-1252"].NewEncoder().Bytes([]byte(strings.Repeat(inGerman, 1200)))
	b.SetBytes(int64(len(in)))
	for b.Loop() {
		if _, err := Decode(in, false); err != nil {
			b.Fatal(err)
		}
	}
}
