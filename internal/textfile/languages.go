package textfile

import (
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
)

// alphabet is a language that is written with an alphabet: its letters beyond ASCII in lower case, and its most
// common words. Latin is true if ASCII letters belong to it.
type alphabet struct {
	latin   bool
	letters string
	signs   string // signs that only this language has
	words   string
}

// family is a group of encodings with the languages that are written in them.
type family struct {
	encodings []encoding.Encoding
	languages []alphabet
}

var (
	english = alphabet{true, "éèêëïöüñáàâçîôûæœ", "",
		"the of and to in is that it for was on are as with be this by not you from"}
	german = alphabet{true, "äöüßéèàç", "",
		"der die das und ist in den von zu mit nicht ein eine auf für im es dem sich auch wir über" +
			" ich sie sind bei aus wird an"}
	french = alphabet{true, "àâæçéèêëîïôœùûüÿ", "",
		"le la les de des et un une est dans que qui pour pas sur avec du au ce il elle nous" +
			" très être à été ou en par sont vous"}
	spanish = alphabet{true, "áéíóúüñç", "¿¡ºª",
		"el la los las de y que en un una es no por con para se del al más está son lo como" +
			" su pero hoy"}
	portuguese = alphabet{true, "áâãàçéêíóôõúü", "ºª",
		"o a os as de e que em um uma não é do da para com por se no na mais está são" +
			" como ao foi"}
	italian = alphabet{true, "àèéìíîòóùú", "ºª",
		"il lo la i gli le di e che in un una è non per con si del della al da sono più" +
			" perché anche come questo"}
	dutch = alphabet{true, "éëïóöüèáê", "",
		"de het een en van is in dat op te zijn voor met niet aan er om ook als bij wij"}
	swedish = alphabet{true, "åäöéü", "", "och att det i en som på är för av med den till inte ett om jag har vi så"}
	danish  = alphabet{true, "æøåéóòô", "",
		"og at det i en som på er for af av med den til ikke et om jeg har vi så ikkje"}
	finnish = alphabet{true, "äöåšž", "", "ja on ei että se hän oli mutta kun niin ovat olen tämä sen myös joka"}
	iceland = alphabet{true, "áðéíóúýþæö", "", "og að er í á sem ekki það um við með til en var ég hann fyrir af"}
	catalan = alphabet{true, "àçéèíïóòúü·", "¿¡", "el la els les de i que en un una és no per amb del al més són com"}
	western = alphabet{true, "äöüßéèêëàâçîïôûùñáíóúåæøãõ", "ºª", ""}

	polish = alphabet{true, "ąćęłńóśźż", "",
		"i w na z się nie do to że jest o jak po za od dla ale jego są przez tak czy był który"}
	czech = alphabet{true, "áčďéěíňóřšťúůýž", "",
		"a je se na v že to s z do o i ve pro za jsem jsou není ale jako který by si jsme" +
			" tak po"}
	slovak = alphabet{true, "áäčďéíĺľňóôŕšťúýž", "",
		"a je sa na v že to s z do o aj vo pre za som sú nie ale ako ktorý by si sme" +
			" tak po"}
	hungarian = alphabet{true, "áéíóöőúüű", "",
		"a az és hogy nem is egy van ez ha de meg csak már mint volt azt el még én"}
	romanian = alphabet{true, "ăâîşţșț", "", "și şi de în a la nu o că cu un pe este din care sunt mai se o pentru"}
	croatian = alphabet{true, "čćđšž", "",
		"i je u na se da su za od što a ne s ali kao o in je v na za ki da so se pa to"}

	turkish = alphabet{true, "çğıi\u0307öşüâîû", "",
		"ve bir bu da de için ile çok en ne gibi daha olarak var o ben mi değil bugün kadar"}

	lithuanian = alphabet{true, "ąčęėįšųūž", "",
		"ir yra kad į iš su o tai kaip bet ne ar nuo už jis jų šiandien labai"}
	latvian = alphabet{true, "āčēģīķļņšūžōŗ", "",
		"un ir ka no uz ar par kas tas bet ne vai arī kā pie šodien ļoti"}
	estonian = alphabet{true, "äöõüšž", "", "ja on ei et see ta oli kui ka aga nii mis ma siis oma väga täna"}

	russian = alphabet{false, "абвгдеёжзийклмнопрстуфхцчшщъыьэюя", "№",
		"и в не на я что с по это как он а к но из у за от о же бы" +
			" для мы вы так все её их был"}
	ukrainian = alphabet{false, "абвгґдеєжзиіїйклмнопрстуфхцчшщьюя", "№",
		"і в не на я що з по це як він а до але із у за від" +
			" про та ми ви є й для їх сьогодні"}
	belarusian = alphabet{false, "абвгдеёжзійклмнопрстуўфхцчшыьэюя", "№",
		"і ў не на я што з па гэта як ён а да але у за ад пра мы" +
			" вы для"}
	bulgarian = alphabet{false, "абвгдежзийклмнопрстуфхцчшщъьюя", "№",
		"и в не на да се е от за с по това като но че са ще до ги той" +
			" му си"}
	serbian = alphabet{false, "абвгдђежзијклљмнњопрстћуфхцчџш", "", "и је у на се да су за од што а не с али као о"}
	macedon = alphabet{false, "абвгдѓежзѕијклљмнњопрстќуфхцчџш", "",
		"и е во на се да со за од што а не но како го ги"}
	greek = alphabet{false, "αβγδεζηθικλμνξοπρσςτυφχψωάέήίόύώϊϋΐΰ", "",
		"και το να η ο του της στο σε με για που είναι δεν τα" +
			" από οι την τον μια ένα"}
	hebrew = alphabet{false, "אבגדהוזחטיךכלםמןנסעףפץצקרשת", "",
		"של את על לא זה אני הוא עם כל גם היא כי אם או אבל מה היום יש"}
	arabic = alphabet{false, "ءآأؤإئابةتثجحخدذرزسشصضطظعغفقكلمنهوىيپچژگی" +
		"\u064b\u064c\u064d\u064e\u064f\u0650\u0651\u0652ـ", "،؛؟", "في من على إلى أن لا ما هذا هذه هو هي مع كان التي الذي" +
		" عن و اليوم او از به در که را این است"}
	thai = alphabet{false, "กขฃคฅฆงจฉชซฌญฎฏฐฑฒณดตถทธนบปผฝพฟภมยรฤลฦวศษสหฬอฮฯะ\u0e31าำ\u0e34\u0e35\u0e36\u0e37\u0e38\u0e39" +
		"\u0e3aเแโใไๅๆ\u0e47\u0e48\u0e49\u0e4a\u0e4b\u0e4c\u0e4d\u0e4e", "฿", thaiWords}
)

var families = []family{
	{[]encoding.Encoding{charmap.Windows1252, charmap.CodePage850, charmap.Macintosh},
		[]alphabet{english, german, french, spanish, portuguese, italian, dutch, swedish, danish, finnish, iceland, catalan,
			western}},
	{[]encoding.Encoding{charmap.ISO8859_15}, []alphabet{english, german, french, spanish, italian, finnish, estonian}},
	{[]encoding.Encoding{charmap.Windows1250, charmap.ISO8859_2, charmap.CodePage852},
		[]alphabet{polish, czech, slovak, hungarian, romanian, croatian, german}},
	{[]encoding.Encoding{charmap.ISO8859_16}, []alphabet{romanian, polish, hungarian}},
	{[]encoding.Encoding{charmap.Windows1254}, []alphabet{turkish}},
	{[]encoding.Encoding{charmap.Windows1257, charmap.ISO8859_13, charmap.ISO8859_4},
		[]alphabet{lithuanian, latvian, estonian, polish, german, danish, swedish, finnish}},
	{[]encoding.Encoding{charmap.Windows1251, charmap.ISO8859_5, charmap.KOI8U, charmap.MacintoshCyrillic},
		[]alphabet{russian, ukrainian, belarusian, bulgarian, serbian, macedon}},
	{[]encoding.Encoding{charmap.KOI8R, charmap.CodePage866}, []alphabet{russian, belarusian, bulgarian}},
	{[]encoding.Encoding{charmap.Windows1253, charmap.ISO8859_7}, []alphabet{greek}},
	{[]encoding.Encoding{charmap.Windows1255, charmap.ISO8859_8, charmap.CodePage862}, []alphabet{hebrew}},
	{[]encoding.Encoding{charmap.Windows1256, charmap.ISO8859_6}, []alphabet{arabic}},
	{[]encoding.Encoding{charmap.Windows874}, []alphabet{thai}},
}

const thaiWords = "ที่ การ และ ใน เป็น ไม่ ได้ วัน นี้ มาก มา ไป ว่า ให้ คน มี จะ ของ กับ เรา ความ ครับ ค่ะ"

// Common characters of languages that are written with thousands of them, and of Japanese the hiragana.
const (
	commonSimplified = "的一是不了在人有我他这个们中来上大为和国地到以说时要就出会可也你对生能而子那得于着下自之年过发后作里" +
		"用道行所然家种事成方多经么去法学如都同现当没动面起看定天分还进好小部其些主样理心她本前开但因只从想实日军者意无" +
		"力它与长把机十民第公此已工使情明性知全三又关点正业外将两高间由问很最重并物手应战向头文体政美相见被利什二等产或" +
		"新己制身果加西斯月话合回特代内信表化老给世位次度门任常先海通教儿原东声提立及比员解水名真论处走义各入几口认条平" +
		"系气题活尔更别打女变四神总何电数安少报才结反受目太量再感建务做接必场件计管期市直德资命山金指克许统区保至队形社" +
		"便空决治展马科司五基眼书非则听白却界达光放强即像难且权思王象完设式色路记南品住告类求据程北边死张该交规万取拉格" +
		"望觉术领共确传师观清今切院让识候带导争运测试编码检字件请谢您班早午晚饭吃喝汉档错误户输"
	commonTraditional = "的一是不了在人有我他這個們中來上大為和國地到以說時要就出會可也你對生能而子那得於著下自之年過發後作裡裏" +
		"用道行所然家種事成方多經麼去法學如都同現當沒動面起看定天分還進好小部其些主樣理心她本前開但因只從想實日軍者意無" +
		"力它與長把機十民第公此已工使情明性知全三又關點正業外將兩高間由問很最重並物手應戰向頭文體政美相見被利什二等產或" +
		"新己制身果加西月話合回特代內信表化老給世位次度門任常先海通教兒原東聲提立及比員解水名真論處走義各入幾口認條平" +
		"系氣題活更別打女變四神總何電數安少報才結反受目太量再感建務做接必場件計管期市直德資命山金指克許統區保至隊形社" +
		"便空決治展馬科司五基眼書非則聽白卻界達光放強即像難且權思王象完設式色路記南品住告類求據程北邊死張該交規萬取拉格" +
		"望覺術領共確傳師觀清今切院讓識候帶導爭運測試編碼檢字請謝您早午晚飯吃喝漢檔錯誤戶輸"
	commonKorean = "이다는을를가에의하고지기은도로한사리어나인자서대해시아수들라일그있만여게장정으보스전원부제것면주오과" +
		"비구상니안우거트동성유경신관실소기공무문내연세생중화미습없합물방와할선용위적요때러했된되저모국및진음말입까"
)
