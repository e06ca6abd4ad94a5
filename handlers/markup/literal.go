package markup

import (
	"bytes"
	"regexp"
	"slices"
	"strconv"
	"unicode"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// backslashes keeps the backslashes of paths, regular expressions and the like, which CommonMark takes for
// escapes.
type backslashes struct{}

func (backslashes) Trigger() []byte { return []byte{'\\'} }

func (backslashes) Parse(_ ast.Node, block text.Reader, _ parser.Context) ast.Node {
	line, segment := block.PeekLine()
	if !isLiteral(block.Source(), segment.Start) {
		return nil
	}
	n := literalLen(line)
	block.Advance(n)
	return ast.NewRawTextSegment(segment.WithStop(segment.Start + n))
}

// maxLine bounds the bytes before and after a backslash that isLiteral reads.
const maxLine = 512

// literalMark matches the marks of a line in which backslashes are signs: the beginning of a path, or a backslash
// before a letter or digit, where it is no escape.
var literalMark = regexp.MustCompile(`(?:^|[^A-Za-z])[A-Za-z]:\\|(?:^|[\s"'(<=,;:|*]|[^\x00-\x7f])` +
	`\\\\[A-Za-z0-9\[.?]|(?:^|[\s"'(<=,;:|*])(?:\.{1,2}|~)\\|%[A-Za-z0-9_()]+%\\|(?:^|[^\\])\$\w+(?::\w+)?\\[^$\s]|\\[A-Za-z0-9]`)

// codeSpan matches code in a line. Its backslashes say nothing of those outside of it.
var codeSpan = regexp.MustCompile("`[^`]*`")

// isLiteral reports whether the backslash at an index of source is a sign and no escape: its line has a path, a
// regular expression or the like, or the sign behind it needs no escape there.
func isLiteral(source []byte, at int) bool {
	from, to := at, at
	for from > max(0, at-maxLine) && source[from-1] != '\n' {
		from--
	}
	for to < min(len(source), at+maxLine) && source[to] != '\n' {
		to++
	}
	if line := source[from:to]; literalMark.Match(line) &&
		(bytes.IndexByte(line, '`') < 0 || literalMark.Match(codeSpan.ReplaceAll(line, nil))) {
		return true
	}
	return at+1 < to && isPlainSign(source[from:to], at-from)
}

// isPlainSign reports whether the sign behind the backslash at an index of a line is no markup there, so that the
// backslash is no escape.
func isPlainSign(line []byte, at int) bool {
	c := line[at+1]
	before := bytes.TrimLeft(line[:at], " \t>")
	switch {
	case bytes.IndexByte([]byte("*_`[]<>~|\\$"), c) >= 0 || !util.IsPunct(c):
		return false
	case bytes.IndexByte([]byte("#+-="), c) >= 0:
		return len(before) > 0
	case c == '.' || c == ')':
		return len(before) == 0 || len(bytes.Trim(before, "0123456789")) > 0
	case c == '(':
		return len(before) == 0 || before[len(before)-1] != ']'
	case c == '!':
		return at+2 >= len(line) || line[at+2] != '['
	case c == '&':
		return bytes.IndexByte(line[at:], ';') < 0
	}
	return true
}

// literalLen returns the length of the text at the beginning of line that is shown as it is. It ends before
// signs that may close something around the path.
func literalLen(line []byte) int {
	n := 1
	for n < len(line) {
		c := line[n]
		escaped := line[n-1] == '\\'
		if bytes.IndexByte([]byte(" \t\n\"'<>`|]"), c) >= 0 && !(escaped && c == ']') ||
			bytes.HasPrefix(line[n:], []byte("~~")) {
			break
		}
		if c == '*' && (!escaped || n+1 < len(line) && line[n+1] == '*') {
			break
		}
		if c >= utf8.RuneSelf {
			if r, _ := utf8.DecodeRune(line[n:]); !unicode.IsLetter(r) && !unicode.IsMark(r) && !unicode.IsNumber(r) {
				break
			}
		}
		n++
	}
	for n > 1 && line[n-1] == '_' && line[n-2] != '\\' {
		n--
	}
	return n
}

// keepLineEnds is a transformer that shows a backslash at the end of a line if it ends a path or a line of a shell;
// elsewhere it is Markdown's sign for a line break.
type keepLineEnds struct{}

func (keepLineEnds) Transform(doc *ast.Document, reader text.Reader, _ parser.Context) {
	source := reader.Source()
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		t, ok := n.(*ast.Text)
		if !ok || !entering || !t.HardLineBreak() || t.IsRaw() {
			return ast.WalkContinue, nil
		}
		at := t.Segment.Stop
		if at >= len(source) || source[at] != '\\' {
			return ast.WalkContinue, nil
		}
		if at == 0 || source[at-1] == ' ' || isLiteral(source, at) {
			t.Segment = t.Segment.WithStop(at + 1)
		}
		return ast.WalkContinue, nil
	})
}

// addresses links an address that stands right behind a letter or sign beyond ASCII, or behind a sign that
// cannot be part of it. Behind spaces goldmark's own parser links it.
type addresses struct{}

func (addresses) Trigger() []byte { return []byte{':', '.', '@'} }

// Parts of addresses. Letters of every script belong to them, but behind text of a script that is written without
// spaces such letters belong to the text.
const (
	anyLetter   = `\p{L}\p{M}\p{N}`
	otherLetter = `\p{Latin}\p{Cyrillic}\p{Greek}\p{Arabic}\p{Hebrew}\p{Armenian}\p{Georgian}\p{Devanagari}\p{M}\p{Nd}`
	topDomain   = `(?:[A-Za-z]+|xn--[A-Za-z0-9-]+|[^\x00-\x7f\pP\pS\pZ\pC]{2,63})`
)

// asianTop matches the top-level domains of IANA in scripts that are written without spaces. Behind them the text may
// go on without one. A longer name stands before its own beginning.
const asianTop = `(?:中国|中國|香港|台湾|台灣|臺灣|澳門|澳门|新加坡|한국|ไทย|ລາວ|中文网|组织机构|机构|公司|网络|網絡|网址|网站|网店|` +
	`在线|商城|商店|商标|世界|中信|企业|佛山|信息|健康|八卦|公益|嘉里大酒店|嘉里|大众汽车|大拿|天主教|娱乐|家電|工行|广东|微博|慈善|我爱你|` +
	`手机|手表|招聘|政务|政府|新闻|时尚|書籍|淡马锡|游戏|点看|珠宝|移动|联通|谷歌|购物|通販|集团|電訊盈科|飞利浦|食品|餐厅|` +
	`닷컴|닷넷|삼성|みんな|コム|グーグル|クラウド|ストア|セール|ファッション|ポイント|アマゾン|คอม)`

// asianSite matches a host name directly behind text of these scripts. The letters of a label are all of ASCII or all
// beyond it: in https://example.com然后看b.txt the address ends before 然.
const asianSite = `(?:(?:[-A-Za-z0-9]{1,63}|[^\x00-\x7f\pP\pS\pZ\pC]{1,63})\.){1,8}(?:` + asianTop +
	`|[A-Za-z]{2,63})(?::\d+)?`

// siteOf, pathOf and tailOf return expressions for host names, for paths behind them, and for the rest of an address.
func siteOf(letter string) string { return `[-A-Za-z0-9@:%._+~#=` + letter + `]{1,256}` }

func pathOf(letter string) string {
	return `(?:[/#?](?:[-A-Za-z0-9@:%_+.~#$!?&/=();,'{}\[\]` + letter + `]|[–’‐·][A-Za-z0-9` + letter + `])*)?`
}

var (
	webAddress = regexp.MustCompile(`^(?:http|https)://` + siteOf(anyLetter) + `\.` + topDomain + `(?::\d+)?` +
		pathOf(anyLetter))
	siteAddress = regexp.MustCompile(`^www\.` + siteOf(anyLetter) + `\.` + topDomain + `(?::\d+)?` + pathOf(anyLetter))

	addressTail = regexp.MustCompile(`^://[-A-Za-z0-9@:%._+~#=` + otherLetter + `]{1,256}` + pathOf(otherLetter))
	siteTail    = regexp.MustCompile(`^\.[-A-Za-z0-9.` + otherLetter + `]{1,250}\.[A-Za-z]+(:\d+)?` +
		pathOf(otherLetter))
	wideTail      = regexp.MustCompile(`^://[-A-Za-z0-9@:%._+~#=` + anyLetter + `]{1,256}` + pathOf(anyLetter))
	asianTail     = regexp.MustCompile(`^://` + asianSite + pathOf(otherLetter))
	asianSiteTail = regexp.MustCompile(`^\.` + asianSite + pathOf(otherLetter))
	mailTail      = regexp.MustCompile(`^@[A-Za-z0-9-]{1,63}(\.[A-Za-z0-9-]{1,63}){1,5}`)
	mailHead      = regexp.MustCompile(`[A-Za-z0-9.+-]{1,64}$`)
)

func (addresses) Parse(parent ast.Node, block text.Reader, pc parser.Context) ast.Node {
	line, segment := block.PeekLine()
	last, ok := parent.LastChild().(*ast.Text)
	if pc.IsInLinkLabel() || !ok || last.IsRaw() || last.Segment.Stop != segment.Start || last.SoftLineBreak() ||
		last.HardLineBreak() {
		return nil
	}
	before := last.Segment.Value(block.Source())
	head, tail, kind := 0, []byte(nil), ast.AutoLinkURL
	switch line[0] {
	case ':':
		for _, scheme := range []string{"https", "http"} {
			if head == 0 && bytes.HasSuffix(before, []byte(scheme)) {
				head = len(scheme)
			}
		}
		tail = longer(addressTail.Find(line), asianTail.Find(line))
		if before = before[:len(before)-head]; len(before) > 0 && before[len(before)-1] < utf8.RuneSelf {
			tail = wideTail.Find(line)
		}
		before = last.Segment.Value(block.Source())
	case '.':
		if bytes.HasSuffix(before, []byte("www")) {
			head, tail = len("www"), longer(siteTail.Find(line), asianSiteTail.Find(line))
		}
	case '@':
		kind = ast.AutoLinkEmail
		head, tail = len(mailHead.Find(before)), mailTail.Find(line)
	}
	if head == 0 || tail == nil || !mayPrecede(before[:len(before)-head]) {
		return nil
	}
	tail = trimAddress(tail)
	start := segment.Start - head
	last.Segment = last.Segment.WithStop(start)
	block.Advance(len(tail))
	link := ast.NewAutoLink(kind, ast.NewTextSegment(text.NewSegment(start, segment.Start+len(tail))))
	if line[0] == '.' {
		link.Protocol = []byte("http")
	}
	link.SetPos(start)
	return link
}

func longer(a, b []byte) []byte {
	if len(b) > len(a) {
		return b
	}
	return a
}

// mayPrecede reports whether an address may begin behind a text.
func mayPrecede(before []byte) bool {
	r, _ := utf8.DecodeLastRune(before)
	switch {
	case len(before) == 0 || r == utf8.RuneError:
		return false
	case r < utf8.RuneSelf:
		return bytes.IndexByte([]byte(`"'=:;,|>[{`), byte(r)) >= 0
	}
	return true
}

// trimAddress cuts the signs at the end of an address that belong to the sentence around it.
func trimAddress(b []byte) []byte {
	for len(b) > 1 {
		c := b[len(b)-1]
		closes := c == ')' && bytes.Count(b, []byte{')'}) > bytes.Count(b, []byte{'('}) ||
			c == ']' && bytes.Count(b, []byte{']'}) > bytes.Count(b, []byte{'['}) ||
			c == '}' && bytes.Count(b, []byte{'}'}) > bytes.Count(b, []byte{'{'})
		if !closes && bytes.IndexByte([]byte("?!.,:;*_~'"), c) < 0 {
			break
		}
		b = b[:len(b)-1]
	}
	return b
}

// breaks parses <br> in a cell of a table, which has no other form of a line break.
type breaks struct{}

var breakTag = regexp.MustCompile(`^<[bB][rR] {0,2}/?>`)

func (breaks) Trigger() []byte { return []byte{'<'} }

func (breaks) Parse(parent ast.Node, block text.Reader, _ parser.Context) ast.Node {
	if parent.Kind() != extast.KindTableCell {
		return nil
	}
	line, _ := block.PeekLine()
	m := breakTag.Find(line)
	if m == nil {
		return nil
	}
	block.Advance(len(m))
	n := ast.NewString([]byte("<br>"))
	n.SetCode(true)
	return n
}

// tables parses tables. Cells of a row beyond the number of columns stand in its last cell, because GitHub's
// rule drops them.
type tables struct{ parser.ParagraphTransformer }

func newTables() parser.ParagraphTransformer { return tables{extension.NewTableParagraphTransformer()} }

func (t tables) Transform(node *ast.Paragraph, reader text.Reader, pc parser.Context) {
	last, parent := node.PreviousSibling(), node.Parent()
	t.ParagraphTransformer.Transform(node, reader, pc)
	first := parent.FirstChild()
	if last != nil {
		first = last.NextSibling()
	}
	source := reader.Source()
	for n := first; n != nil; n = n.NextSibling() {
		if n.Kind() != extast.KindTable {
			continue
		}
		for row := n.FirstChild(); row != nil; row = row.NextSibling() {
			if cell := row.LastChild(); cell != nil && cell.Lines().Len() == 1 {
				extendCell(cell.Lines(), source)
			}
		}
	}
}

// extendCell extends the last cell of a row to the end of the line if there are more cells.
func extendCell(lines *text.Segments, source []byte) {
	s := lines.At(0)
	end := len(source)
	if i := bytes.IndexByte(source[s.Stop:], '\n'); i >= 0 {
		end = s.Stop + i
	}
	rest := bytes.TrimRight(source[s.Stop:end], " \t")
	rest = bytes.TrimRight(bytes.TrimSuffix(rest, []byte("|")), " \t")
	if len(bytes.Trim(rest, "| \t")) > 0 {
		lines.Set(0, s.WithStop(s.Stop+len(rest)))
	}
}

// usedAttribute marks the definitions of references that a link or image uses.
const usedAttribute = "used"

// keepUnused is a transformer that marks used link definitions. The others are shown: they may be lines of a log,
// such as "[INFO]: started", or footnotes.
type keepUnused struct{}

func (keepUnused) Transform(doc *ast.Document, _ text.Reader, pc parser.Context) {
	used := make(map[string]bool)
	var definitions []*ast.LinkReferenceDefinition
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		var ref *ast.ReferenceLink
		switch n := n.(type) {
		case *ast.LinkReferenceDefinition:
			if entering {
				definitions = append(definitions, n)
			}
		case *ast.Link:
			ref = n.Reference
		case *ast.Image:
			ref = n.Reference
		}
		if entering && ref != nil && isFootnote(ref) {
			n.SetAttributeString(footnoteAttribute, true)
		} else if entering && ref != nil {
			used[util.ToLinkReference(ref.Value)] = true
		}
		return ast.WalkContinue, nil
	})
	for _, d := range definitions {
		label := util.ToLinkReference(d.Label)
		if used[label] {
			d.SetAttributeString(usedAttribute, true)
		}
		delete(used, label) // a second definition of a label has no effect
	}
}

// footnoteAttribute marks the links that are marks of footnotes, such as [^1]. They are shown as text.
const footnoteAttribute = "footnote"

func isFootnote(ref *ast.ReferenceLink) bool { return bytes.HasPrefix(ref.Value, []byte("^")) }

func isUnused(n ast.Node) bool {
	if n == nil || n.Kind() != ast.KindLinkReferenceDefinition {
		return false
	}
	_, ok := n.AttributeString(usedAttribute)
	return !ok
}

// writeDefinition renders the lines of a definition that nothing uses.
func writeDefinition(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering || !isUnused(node) {
		return ast.WalkSkipChildren, nil
	}
	d := node.(*ast.LinkReferenceDefinition)
	if isUnused(node.PreviousSibling()) {
		w.WriteString("<br>\n")
	} else {
		w.WriteString("<p>")
	}
	words := bytes.TrimRight(d.Lines().Value(source), "\n")
	address := d.Destination
	i := bytes.Index(words, address)
	if len(address) == 0 || i < 0 {
		i, address = len(words), nil
	}
	writeText(w, words[:i])
	opened := len(address) > 0 && openLink(w, escapeDestination(address), nil)
	writeText(w, address)
	if opened {
		w.WriteString("</a>")
	}
	writeText(w, words[i+len(address):])
	if !isUnused(node.NextSibling()) {
		w.WriteString("</p>\n")
	}
	return ast.WalkSkipChildren, nil
}

func writeText(w util.BufWriter, b []byte) {
	w.Write(bytes.ReplaceAll(util.EscapeHTML(b), []byte("\n"), []byte("<br>\n")))
}

// numbers is a transformer that keeps the numbers of list items: HTML counts on from the first.
type numbers struct{}

var itemMarker = regexp.MustCompile(`([0-9]{1,9})[.)][ \t]*$`)

func (numbers) Transform(doc *ast.Document, reader text.Reader, _ parser.Context) {
	source := reader.Source()
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		list, ok := n.(*ast.List)
		if !ok || !entering || !list.IsOrdered() {
			return ast.WalkContinue, nil
		}
		next := list.Start
		for item := list.FirstChild(); item != nil; item = item.NextSibling() {
			if number, ok := itemNumber(item, source); ok && number != next {
				item.SetAttributeString("value", []byte(strconv.Itoa(number)))
				next = number
			}
			next++
		}
		return ast.WalkContinue, nil
	})
}

// itemNumber reads the number of a list item from the source before its first text.
func itemNumber(item ast.Node, source []byte) (int, bool) {
	n := item.FirstChild()
	for n != nil && (n.Type() != ast.TypeBlock || n.Lines().Len() == 0) {
		n = n.FirstChild()
	}
	if n == nil || n.Kind() == ast.KindFencedCodeBlock {
		return 0, false
	}
	at := n.Lines().At(0).Start
	from := max(0, at-32)
	m := itemMarker.FindSubmatch(source[from:at])
	if m == nil {
		return 0, false
	}
	number, err := strconv.Atoi(string(m[1]))
	return number, err == nil
}

// codeInfo returns the words behind the opening fence of a code block that are not the name of its language.
func codeInfo(b *ast.FencedCodeBlock, source []byte) []byte {
	if b.Info == nil {
		return nil
	}
	info := bytes.TrimSpace(b.Info.Segment.Value(source))
	if name := b.Language(source); languageName.Match(name) {
		info = bytes.TrimSpace(info[len(name):])
	}
	return slices.Clip(info)
}
