package tools

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

const tablesHelp = notUnderstood + "Send a table as CSV or JSON, and below or above it a query, such as\n\n" +
	"```\nselect city, sum(amount) where amount > 10 group by city order by sum(amount) desc limit 5\n```\n\n" +
	"Without a query you get its columns. A later query without a table is about the last one. " +
	"End with `as csv` to get the rows as a file. " +
	"Functions are count, sum, avg, min and max; comparisons are =, !=, <, <=, >, >= and contains."

// table is a table of texts.
type table struct {
	head []string
	rows [][]string
}

const (
	maxRows = 50_000
	maxCols = 200
	// maxShown bounds the rows of an answer.
	maxShown = 50
)

// answerTables answers a query about the table of the message, or about the last table before it. A query that ends
// with "as csv", and one with more rows than the text shows, returns all of them as a file too.
func answerTables(text string, earlier []string) Reply {
	t, q, err := findTable(text)
	for i := len(earlier) - 1; i >= 0 && t == nil && err == nil; i-- {
		t, _, err = findTable(earlier[i])
	}
	q, asFile := cutFileWish(q)
	switch {
	case err != nil:
		return Reply{Text: "I cannot read the table: " + err.Error() + "."}
	case t == nil:
		return Reply{Text: tablesHelp}
	case q == "" && !asFile:
		return Reply{Text: t.describe()}
	}
	query, err := parseQuery(q)
	if err == nil {
		var out *table
		if out, err = query.run(t); err == nil {
			return out.reply(asFile)
		}
	}
	columns := strings.Join(t.head, ", ")
	return Reply{Text: "I cannot use the query: " + err.Error() + ". The columns are " + columns + "."}
}

// cutFileWish removes the "as csv" at the end of a query.
func cutFileWish(q string) (query string, asFile bool) {
	words := strings.Fields(strings.TrimRight(q, "; ."))
	if n := len(words); n >= 2 && strings.EqualFold(words[n-2], "as") && strings.EqualFold(words[n-1], "csv") {
		return strings.Join(words[:n-2], " "), true
	}
	return q, false
}

// findTable returns the table in a message, nil if there is none, and the query around it.
func findTable(text string) (t *table, query string, err error) {
	blocks, around := cutBlocks(text)
	if len(blocks) > 0 {
		t, err = readTable(blocks[0])
		return t, oneLine(around), err
	}
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		l = strings.TrimSpace(l)
		if strings.HasPrefix(l, "[") || strings.HasPrefix(l, "{") {
			rest := strings.Join(lines[i:], "\n")
			dec := json.NewDecoder(strings.NewReader(rest))
			var raw json.RawMessage
			if dec.Decode(&raw) != nil {
				return nil, "", errors.New("the JSON is not complete")
			}
			t, err = readJSON(string(raw))
			return t, oneLine(strings.Join(lines[:i], " ") + " " + rest[dec.InputOffset():]), err
		}
	}
	from, to := longestRun(lines)
	if to-from < 2 {
		return nil, oneLine(text), nil
	}
	t, err = readTable(strings.Join(lines[from:to], "\n"))
	return t, oneLine(strings.Join(slices.Concat(lines[:from], lines[to:]), " ")), err
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// isQuery reports whether a line starts like a query, so that it is no row of a table in spite of its commas.
func isQuery(line string) bool {
	word, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(line)), " ")
	return word == "select" || word == "where" || word == "group" || word == "order" || word == "limit"
}

// longestRun returns the longest run of lines that have the same separator.
func longestRun(lines []string) (from, to int) {
	start, sep := 0, rune(0)
	for i := 0; i <= len(lines); i++ {
		s := rune(0)
		if i < len(lines) && !isQuery(lines[i]) {
			s = separatorOf(lines[i])
		}
		if s == 0 || s != sep {
			if sep != 0 && i-start > to-from {
				from, to = start, i
			}
			start, sep = i, s
		}
	}
	return from, to
}

// separatorOf returns the most frequent separator of a line, 0 for none.
func separatorOf(line string) rune {
	best, most := rune(0), 0
	for _, sep := range "\t;,|" {
		if n := strings.Count(line, string(sep)); n > most {
			best, most = sep, n
		}
	}
	return best
}

// readTable reads JSON or CSV.
func readTable(text string) (*table, error) {
	text = strings.TrimSpace(text)
	if strings.HasPrefix(text, "[") || strings.HasPrefix(text, "{") {
		return readJSON(text)
	}
	first, _, _ := strings.Cut(text, "\n")
	sep := separatorOf(first)
	if sep == 0 {
		sep = ','
	}
	if sep == '|' { // a table of Markdown
		text = trimPipes(text)
	}
	r := csv.NewReader(strings.NewReader(text))
	r.Comma, r.FieldsPerRecord, r.TrimLeadingSpace, r.LazyQuotes = sep, -1, true, true
	t := &table{}
	for {
		row, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		for i := range row {
			row[i] = strings.TrimSpace(row[i])
		}
		if t.head == nil {
			t.head = row
			continue
		}
		if len(t.rows) >= maxRows {
			return nil, fmt.Errorf("it has more than %d rows", maxRows)
		}
		t.rows = append(t.rows, append(row, make([]string, max(0, len(t.head)-len(row)))...)[:len(t.head)])
	}
	if len(t.head) == 0 || len(t.head) > maxCols {
		return nil, fmt.Errorf("it needs 1 to %d columns", maxCols)
	}
	return t, nil
}

// trimPipes removes the outer bars of a Markdown table and the line below its head.
func trimPipes(text string) string {
	var out []string
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.Trim(strings.TrimSpace(line), "|")
		if strings.Trim(line, "-:| ") != "" {
			out = append(out, line)
		}
	}
	return strings.Join(out, "\n")
}

// readJSON reads a list of objects, or an object with such a list. Fields of inner objects get names with dots.
func readJSON(text string) (*table, error) {
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	t := &table{}
	for {
		tok, err := dec.Token()
		if err != nil {
			return nil, errors.New("the JSON is not complete")
		}
		if tok == json.Delim('[') {
			break
		}
	}
	for dec.More() {
		if len(t.rows) >= maxRows {
			return nil, fmt.Errorf("it has more than %d rows", maxRows)
		}
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return nil, errors.New("the JSON is not complete")
		}
		row := make([]string, len(t.head))
		if err := t.addFields(&row, "", raw); err != nil {
			return nil, err
		}
		t.rows = append(t.rows, row)
	}
	for i, r := range t.rows {
		t.rows[i] = append(r, make([]string, len(t.head)-len(r))...)
	}
	if len(t.head) == 0 {
		return nil, errors.New("it has no objects")
	}
	return t, nil
}

// addFields puts the fields of a JSON value into a row, in the order of the text.
func (t *table) addFields(row *[]string, name string, raw json.RawMessage) error {
	raw = json.RawMessage(strings.TrimSpace(string(raw)))
	if len(raw) == 0 || raw[0] != '{' {
		text := string(raw)
		if strings.HasPrefix(text, `"`) {
			_ = json.Unmarshal(raw, &text) // it is a text, as it was decoded before
		} else if text == "null" {
			text = ""
		}
		return t.setField(row, name, text)
	}
	dec := json.NewDecoder(strings.NewReader(string(raw)))
	_, _ = dec.Token() // the brace
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return err
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return err
		}
		inner := fmt.Sprint(key)
		if name != "" {
			inner = name + "." + inner
		}
		if err := t.addFields(row, inner, value); err != nil {
			return err
		}
	}
	return nil
}

func (t *table) setField(row *[]string, name, text string) error {
	if name == "" {
		name = "value"
	}
	at := slices.Index(t.head, name)
	if at < 0 {
		if len(t.head) >= maxCols {
			return fmt.Errorf("it has more than %d columns", maxCols)
		}
		at = len(t.head)
		t.head = append(t.head, name)
	}
	for len(*row) <= at {
		*row = append(*row, "")
	}
	(*row)[at] = text
	return nil
}

// tableFile is the name of the file with the rows of an answer, maxTableFile its greatest size in bytes: no portal
// takes a larger one.
const (
	tableFile    = "table.csv"
	maxTableFile = 512 << 10
)

// reply returns the first rows as Markdown with the number of all, and all rows as a file if that is asked for or the
// text does not show them.
func (t *table) reply(asFile bool) Reply {
	n := len(t.rows)
	shown := min(n, maxShown)
	r := Reply{Text: writeTable(t.head, t.rows[:shown]) + "\n" + countOf(n, "row") + "."}
	if shown < n {
		r.Text = writeTable(t.head, t.rows[:shown]) + fmt.Sprintf("\nThe first %d of %s.", shown, countOf(n, "row"))
	}
	if !asFile && shown == n {
		return r
	}
	r.FileName, r.File = tableFile, t.csv()
	if len(r.File) > maxTableFile {
		r.FileName, r.File = "", ""
		r.Text += fmt.Sprintf(" There is no file of all rows, as it would be larger than %d KiB.", maxTableFile>>10)
	} else {
		r.Text += " All rows are in the file " + tableFile + "."
	}
	return r
}

func (t *table) csv() string {
	var b strings.Builder
	w := csv.NewWriter(&b)
	_ = w.Write(t.head) // a strings.Builder takes everything
	_ = w.WriteAll(t.rows)
	return b.String()
}

// describe returns the columns of the table: the kind of their values, how many different values, and the range.
func (t *table) describe() string {
	var rows [][]string
	for i, name := range t.head {
		seen := make(map[string]bool)
		numbers, filled := 0, 0
		least, most := "", ""
		for _, r := range t.rows {
			v := r[i]
			if v == "" {
				continue
			}
			filled++
			seen[v] = true
			if _, ok := numberOf(v); ok {
				numbers++
			}
			if least == "" || compareValues(v, least) < 0 {
				least = v
			}
			if most == "" || compareValues(v, most) > 0 {
				most = v
			}
		}
		kind := "text"
		if filled > 0 && numbers == filled {
			kind = "numbers"
		}
		rows = append(rows, []string{name, kind, strconv.Itoa(len(seen)), least, most})
	}
	return countOf(len(t.rows), "row") + ", " + countOf(len(t.head), "column") + ".\n\n" +
		writeTable([]string{"column", "holds", "different", "least", "most"}, rows) +
		"\nAsk about it, for example `group by " + t.head[0] + "`."
}

// numberOf reads a number, with commas between thousands.
func numberOf(s string) (float64, bool) {
	v, err := strconv.ParseFloat(strings.ReplaceAll(s, ",", ""), 64)
	return v, err == nil
}

// compareValues compares numbers by value and other texts by letters; numbers come first.
func compareValues(a, b string) int {
	x, xok := numberOf(a)
	y, yok := numberOf(b)
	switch {
	case xok && yok && x < y, xok && !yok:
		return -1
	case xok && yok && x > y, yok && !xok:
		return 1
	case xok && yok:
		return 0
	}
	return strings.Compare(strings.ToLower(a), strings.ToLower(b))
}

// formatNumber writes a number without the noise of binary fractions.
func formatNumber(v float64) string {
	if r, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 14, 64), 64); err == nil {
		v = r
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}
