package pages

import (
	"strings"
	"sync"

	"golang.org/x/text/language"
)

// LanguageName returns the English name of a language tag with its script and region, such as "German
// (CH)", or the tag if the name is unknown. The tables of golang.org/x/text/language/display know more
// names, but would be a sixteenth of the binary.
func LanguageName(tag string) string {
	t, err := language.Parse(tag)
	if err != nil {
		return tag
	}
	base, script, region := t.Raw()
	name := englishNames()[base.String()]
	if name == "" {
		return tag
	}
	var more []string
	if s := script.String(); s != "Zzzz" {
		more = append(more, s)
	}
	if r := region.String(); r != "ZZ" {
		more = append(more, r)
	}
	if len(more) == 0 {
		return name
	}
	return name + " (" + strings.Join(more, ", ") + ")"
}

// englishNames maps the codes of ISO 639-1 to English names. It is built at the first use.
var englishNames = sync.OnceValue(func() map[string]string {
	m := make(map[string]string)
	for entry := range strings.SplitSeq(languagesInEnglish, ",") {
		code, name, _ := strings.Cut(strings.TrimSpace(entry), " ")
		m[code] = name
	}
	return m
})

const languagesInEnglish = `
	aa Afar, ab Abkhazian, af Afrikaans, ak Akan, am Amharic, an Aragonese, ar Arabic, as Assamese, av Avaric,
	ay Aymara, az Azerbaijani, ba Bashkir, be Belarusian, bg Bulgarian, bi Bislama, bm Bambara, bn Bangla, bo Tibetan,
	br Breton, bs Bosnian, ca Catalan, ce Chechen, ch Chamorro, co Corsican, cr Cree, cs Czech, cu Church Slavic,
	cv Chuvash, cy Welsh, da Danish, de German, dv Divehi, dz Dzongkha, ee Ewe, el Greek, en English, eo Esperanto,
	es Spanish, et Estonian, eu Basque, fa Persian, ff Fula, fi Finnish, fil Filipino, fj Fijian, fo Faroese,
	fr French, fy Western Frisian, ga Irish, gd Scottish Gaelic, gl Galician, gn Guarani, gsw Swiss German,
	gu Gujarati, gv Manx, ha Hausa, haw Hawaiian, he Hebrew, hi Hindi, ho Hiri Motu, hr Croatian, ht Haitian Creole,
	hu Hungarian, hy Armenian, hz Herero, ia Interlingua, id Indonesian, ie Interlingue, ig Igbo, ii Sichuan Yi,
	ik Inupiaq, io Ido, is Icelandic, it Italian, iu Inuktitut, ja Japanese, jv Javanese, ka Georgian, kg Kongo,
	ki Kikuyu, kj Kuanyama, kk Kazakh, kl Kalaallisut, km Khmer, kn Kannada, ko Korean, kr Kanuri, ks Kashmiri,
	ku Kurdish, kv Komi, kw Cornish, ky Kyrgyz, la Latin, lb Luxembourgish, lg Ganda, li Limburgish, ln Lingala,
	lo Lao, lt Lithuanian, lu Luba-Katanga, lv Latvian, mg Malagasy, mh Marshallese, mi Māori, mk Macedonian,
	ml Malayalam, mn Mongolian, mr Marathi, ms Malay, mt Maltese, my Burmese, na Nauru, nb Norwegian Bokmål,
	nd North Ndebele, ne Nepali, ng Ndonga, nl Dutch, nn Norwegian Nynorsk, no Norwegian, nr South Ndebele, nv Navajo,
	ny Nyanja, oc Occitan, oj Ojibwe, om Oromo, or Odia, os Ossetic, pa Punjabi, pi Pali, pl Polish, ps Pashto,
	pt Portuguese, qu Quechua, rm Romansh, rn Rundi, ro Romanian, ru Russian, rw Kinyarwanda, sa Sanskrit,
	sc Sardinian, sd Sindhi, se Northern Sami, sg Sango, si Sinhala, sk Slovak, sl Slovenian, sm Samoan, sn Shona,
	so Somali, sq Albanian, sr Serbian, ss Swati, st Southern Sotho, su Sundanese, sv Swedish, sw Swahili, ta Tamil,
	te Telugu, tg Tajik, th Thai, ti Tigrinya, tk Turkmen, tl Tagalog, tn Tswana, to Tongan, tr Turkish, ts Tsonga,
	tt Tatar, tw Twi, ty Tahitian, ug Uyghur, uk Ukrainian, ur Urdu, uz Uzbek, ve Venda, vi Vietnamese, vo Volapük,
	wa Walloon, wo Wolof, xh Xhosa, yi Yiddish, yo Yoruba, yue Cantonese, za Zhuang, zh Chinese, zu Zulu`
