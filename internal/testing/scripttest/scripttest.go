// Package scripttest has sentences in many scripts with searches that must find them, for the tests of both searches.
package scripttest

// Sentence is a text with searches that find it: words, their beginnings, and other forms of their characters.
type Sentence struct {
	Script, Text string
	Finds        []string
}

// Sentences returns one sentence for each script; no search of one finds another.
func Sentences() []Sentence {
	return []Sentence{
		{"Latin", "The ferry crosses the café terrace", []string{"ferry", "ferr", "terra", "fe", "cafe", "cafe\u0301", "ＦＥＲＲＹ"}},
		{"compounds", "They co-operate on real-time node.js with snake_case and post\u2010modern e\u2011mail", []string{"cooperate",
			"coop", "co-operate", "operate", "realtime", "real-time", "real time", "nodejs", "node.js", "snakecase", "postmodern",
			"post-mod", "email", "e-mail", "CO\u2010OPER"}},
		{"compounds written together", "Coworkers preprocess lifecycles", []string{"co-workers", "coworkers", "co-work", "pre-process",
			"life-cycle", "life_cycles"}},
		{"Vietnamese", "Chúng tôi nghiên cứu ngôn ngữ", []string{"nghiên", "nghien", "nghie", "nghie\u0302n"}},
		{"French", "Je regarde l’eau avec l'agent, d’accord et jusqu’ici", []string{"eau", "agent", "age", "accord", "acc", "l'eau",
			"l’agent", "leau", "ici"}},
		{"Italian", "Dell’acqua e un’amica", []string{"acqua", "amica", "dell'acqua"}},
		{"Greek", "Η Ελλάδα είναι όμορφη χώρα ο λόγος", []string{"Ελλάδα", "ελλα", "ομορφη", "λόγοσ"}},
		{"Cyrillic", "Украшенная ёлка стоит дома", []string{"ёлка", "елка", "укра", "ук", "украшен"}},
		{"Chinese", "明天去北京吃烤鸭", []string{"北京", "北", "烤鸭", "京吃"}},
		{"Japanese", "新しいテストデータを確認してガイドを読む", []string{"テスト", "ﾃｽﾄ", "ﾃｽﾄﾃﾞｰﾀ", "データ", "ガイド", "ｶﾞｲﾄﾞ", "カ\u3099イト\u3099", "確認", "テス"}},
		{"Japanese in half-width", "ﾊﾞｯｸｱｯﾌﾟの手順", []string{"バックアップ", "ﾊﾞｯｸ", "バック", "手順"}},
		{"Korean", "한국어를 배웁니다", []string{"한국어", "한국", "\u1112\u1161\u11ab\u1100\u116e\u11a8\u110b\u1165", "배웁"}},
		{"Thai", "สวัสดีครับ ยินดีต้อนรับ", []string{"สวัสดี", "สวัส", "ยินดี", "ต้อนรับ"}},
		{"Lao", "ພາສາລາວແມ່ນງ່າຍ", []string{"ພາສາ", "ລາວ", "ງ່າຍ", "ພາສ"}},
		{"Khmer", "ភាសាខ្មែរស្អាត", []string{"ភាសា", "ខ្មែរ", "ភាស"}},
		{"Burmese", "မြန်မာစာကိုလေ့လာသည်", []string{"မြန်မာ", "မြန်", "လေ့လာ"}},
		{"Tibetan", "བོད་ཡིག་སློབ་སྦྱོང་", []string{"བོད", "བོད་ཡིག", "སློབ", "སྦྱོང"}},
		{"Javanese", "ꦧꦱꦗꦮ", []string{"ꦧꦱ", "ꦗꦮ"}},
		{"Arabic", "قرأت والكتاب مفيد للطالب وبالمدرسة أيضا", []string{"كتاب", "الكتاب", "والكتاب", "كتا", "الكتا", "طالب", "مدرسة", "مدرسه", "المدر", "ﻛﺘﺎﺏ", "ايضا", "كـتـاب"}},
		{"Arabic, attached", "فبالسيارة وصلنا ولمدينتها القديمة أبواب كالجبال", []string{"سيارة", "السيارة", "بالسيارة", "سياره",
			"مدينتها", "مدينت", "قديمه", "جبال", "الجبال", "ابواب", "أبواب وصلنا"}},
		{"Persian", "او یک خودکار دارد", []string{"خودكار", "خودک"}},
		{"Persian, divided", "آن\u200cها می\u200cخواهند نامه\u200cهای قدیمی را بفرستند", []string{"می\u200cخواهند", "میخواهند", "می خواهند",
			"خواهند", "مي\u200cخواه", "نامه", "نامه قدیمی", "نامه\u200cها", "نامههای", "نامه های"}},
		{"Persian, with spaces", "شما نمی نویسید و پنجره ها بسته اند", []string{"نمی\u200cنویسید", "نمی نویسید", "نویسید", "پنجره\u200cها", "پنجرهٔ"}},
		{"Persian, together", "ما میدانیم که درختهای بلند سبزند", []string{"می\u200cدانیم", "میدانیم", "می دانیم", "دانیم", "درخت\u200cهای بلند",
			"درختهای", "درخت بلند", "درخت های"}},
		{"Urdu", "یہ ہمارے شہر کی پرانی لائبریری ہے", []string{"شہر", "لائبریری", "لائبر", "پرانی", "پراني"}},
		{"Kurdish", "پەرتووک لەسەر مێزەکەیە", []string{"پەرتووک", "پەرتو", "مێزەکەیە"}},
		{"numbers in circles", "Schritt ④ und ⑰, ❻, ㊿, ⒀ und ⓸", []string{"④", "17", "⑰", "6", "❻", "50", "㊿", "13", "⒀"}},
		{"numbers in a row", "①②③ 第⑨章", []string{"②", "③", "第9章", "⑨章", "第⑨"}},
		{"units and firms", "㈱山川 ㊞ 8㎏ 9㎡", []string{"株", "(株)", "㈱山川", "8kg", "8㎏", "9m2", "㊞", "印"}},
		{"Roman numerals", "Kapitel Ⅷ, Band ⅻ, Ludwig ⅩⅣ", []string{"Ⅷ", "viii", "VIII", "ⅷ", "ⅻ", "XII", "xiv", "ⅩⅣ", "Ludwig XIV"}},
		{"letters of typefaces", "𝐁𝐨𝐥𝐝 𝒸𝓊𝓇𝓈𝒾𝓋𝑒 ⓒⓘⓡⓒⓛⓔⓓ 🄱🄾🅇🄴🄳 𝟟𝟟", []string{"bold", "cursive", "circled", "circ", "𝐜𝐢𝐫𝐜𝐥𝐞𝐝", "77", "boxed"}},
		{"Hebrew", "ראיתי את הספרים ושבמכתבים החדשים", []string{"ספרים", "הספרים", "ספר", "מכתבים", "מכתב", "חדשים", "סְפָרִים"}},
		{"Devanagari", "मुझे हिन्दी आती है १२३४", []string{"हिन्दी", "हिन्द", "1234", "१२३"}},
		{"Tamil", "தமிழ் மொழி இனிமையானது", []string{"தமிழ்", "இனிமை"}},
		{"Amharic", "የኢትዮጵያ ቋንቋዎች", []string{"የኢትዮጵያ", "የኢትዮ"}},
	}
}
