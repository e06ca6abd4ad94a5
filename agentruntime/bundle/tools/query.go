package tools

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// query is a parsed query: select … where … group by … order by … limit ….
type query struct {
	items []item
	// where is a list of alternatives, each a list of conditions that must all hold.
	where [][]condition
	group []string
	order []item
	desc  []bool
	limit int // -1 for none
}

// item is a column, or a function of one.
type item struct{ function, column string }

func (i item) String() string {
	if i.function == "" {
		return i.column
	}
	return i.function + "(" + i.column + ")"
}

type condition struct{ column, op, value string }

// token is a piece of a query. A quoted one is never a keyword.
type token struct {
	text   string
	quoted bool
}

// splitQuery divides a query into tokens.
func splitQuery(s string) ([]token, error) {
	var list []token
	for s = strings.TrimSpace(s); s != ""; s = strings.TrimSpace(s) {
		switch {
		case strings.ContainsRune(`'"`, rune(s[0])):
			end := strings.IndexByte(s[1:], s[0])
			if end < 0 {
				return nil, errors.New("a quotation mark is missing")
			}
			list, s = append(list, token{s[1 : end+1], true}), s[end+2:]
		case len(s) > 1 && slices.Contains([]string{"!=", "<=", ">=", "<>", "=="}, s[:2]):
			list, s = append(list, token{text: s[:2]}), s[2:]
		case strings.ContainsRune("=<>(),*;", rune(s[0])):
			list, s = append(list, token{text: s[:1]}), s[1:]
		default:
			end := strings.IndexAny(s, " =<>!(),*;'\"")
			if end < 0 {
				end = len(s)
			}
			end = max(end, 1)
			list, s = append(list, token{text: s[:end]}), s[end:]
		}
	}
	return list, nil
}

// parser reads the tokens of a query from left to right.
type parser struct {
	list []token
	err  error
}

// take removes the next token if it is the keyword.
func (p *parser) take(word string) bool {
	if len(p.list) > 0 && !p.list[0].quoted && strings.EqualFold(p.list[0].text, word) {
		p.list = p.list[1:]
		return true
	}
	return false
}

func (p *parser) next() string {
	if len(p.list) == 0 {
		if p.err == nil {
			p.err = errors.New("it ends too early")
		}
		return ""
	}
	t := p.list[0]
	p.list = p.list[1:]
	return t.text
}

// item reads a column or a function of one.
func (p *parser) item() item {
	name := p.next()
	if !p.take("(") {
		return item{column: name}
	}
	i := item{function: strings.ToLower(name), column: p.next()}
	if !p.take(")") && p.err == nil {
		p.err = fmt.Errorf("a bracket is missing after %s", i.column)
	}
	if !slices.Contains([]string{"count", "sum", "avg", "min", "max"}, i.function) && p.err == nil {
		p.err = fmt.Errorf("%s is no function", name)
	}
	return i
}

func parseQuery(text string) (q query, err error) {
	list, err := splitQuery(strings.TrimRight(text, "; ."))
	if err != nil {
		return q, err
	}
	p := &parser{list: list}
	q.limit = -1
	if p.take("select") {
		for more := true; more; more = p.take(",") {
			q.items = append(q.items, p.item())
		}
		if p.take("from") {
			p.next() // there is one table, whatever its name
		}
	}
	if p.take("where") {
		q.where = p.conditions()
	}
	if p.take("group") {
		if !p.take("by") {
			return q, errors.New("write group by")
		}
		for more := true; more; more = p.take(",") {
			q.group = append(q.group, p.next())
		}
	}
	if p.take("order") {
		if !p.take("by") {
			return q, errors.New("write order by")
		}
		for more := true; more; more = p.take(",") {
			q.order = append(q.order, p.item())
			q.desc = append(q.desc, p.take("desc"))
			p.take("asc")
		}
	}
	if p.take("limit") {
		if q.limit, err = strconv.Atoi(p.next()); err != nil || q.limit < 0 {
			return q, errors.New("limit needs a number")
		}
	}
	if p.err != nil {
		return q, p.err
	}
	if len(p.list) > 0 {
		return q, fmt.Errorf("%q is not understood", p.list[0].text)
	}
	if len(q.items) == 0 {
		for _, g := range q.group {
			q.items = append(q.items, item{column: g})
		}
		if q.items = append(q.items, item{"", "*"}); len(q.group) > 0 {
			q.items[len(q.items)-1].function = "count"
		}
	}
	return q, nil
}

// conditions reads the words after where. “and” binds closer than “or”.
func (p *parser) conditions() [][]condition {
	var all [][]condition
	for more := true; more; more = p.take("or") {
		var list []condition
		for more := true; more; more = p.take("and") {
			c := condition{column: p.next(), op: strings.ToLower(p.next())}
			c.value = p.next()
			switch c.op {
			case "==", "is":
				c.op = "="
			case "<>":
				c.op = "!="
			case "=", "!=", "<", "<=", ">", ">=", "contains":
			default:
				if p.err == nil {
					p.err = fmt.Errorf("%q is no comparison", c.op)
				}
			}
			list = append(list, c)
		}
		all = append(all, list)
	}
	return all
}

// columnOf returns the place of a column, by its name in any case.
func (t *table) columnOf(name string) (int, error) {
	if i := slices.IndexFunc(t.head, func(h string) bool { return strings.EqualFold(h, name) }); i >= 0 {
		return i, nil
	}
	return 0, fmt.Errorf("there is no column %q", name)
}

func (c condition) holds(v string) bool {
	d := compareValues(v, c.value)
	switch c.op {
	case "=":
		return d == 0
	case "!=":
		return d != 0
	case "<":
		return v != "" && d < 0
	case "<=":
		return v != "" && d <= 0
	case ">":
		return v != "" && d > 0
	case ">=":
		return v != "" && d >= 0
	}
	return strings.Contains(strings.ToLower(v), strings.ToLower(c.value))
}

// filter returns the rows for which the conditions hold.
func (q query) filter(t *table) ([][]string, error) {
	for _, list := range q.where {
		for _, c := range list {
			if _, err := t.columnOf(c.column); err != nil {
				return nil, err
			}
		}
	}
	if len(q.where) == 0 {
		return slices.Clone(t.rows), nil
	}
	var rows [][]string
	for _, r := range t.rows {
		if slices.ContainsFunc(q.where, func(list []condition) bool {
			return !slices.ContainsFunc(list, func(c condition) bool {
				at, _ := t.columnOf(c.column) // was checked above
				return !c.holds(r[at])
			})
		}) {
			rows = append(rows, r)
		}
	}
	return rows, nil
}

// run returns the table that the query asks for.
func (q query) run(t *table) (*table, error) {
	rows, err := q.filter(t)
	if err != nil {
		return nil, err
	}
	var items []item
	for _, i := range q.items {
		if i.function == "" && i.column == "*" {
			for _, h := range t.head {
				items = append(items, item{column: h})
			}
			continue
		}
		items = append(items, i)
	}
	shown := len(items)
	items = append(items, q.order...) // they may be columns that are not shown
	grouped := len(q.group) > 0 || slices.ContainsFunc(items, func(i item) bool { return i.function != "" })
	out := &table{}
	for _, i := range items[:shown] {
		out.head = append(out.head, i.String())
	}
	groups := [][][]string{}
	if !grouped {
		for _, r := range rows {
			groups = append(groups, [][]string{r})
		}
	} else if groups, err = q.groupRows(t, rows); err != nil {
		return nil, err
	}
	for _, g := range groups {
		row := make([]string, 0, len(items))
		for _, i := range items {
			v, err := t.valueOf(i, g)
			if err != nil {
				return nil, err
			}
			row = append(row, v)
		}
		out.rows = append(out.rows, row)
	}
	slices.SortStableFunc(out.rows, func(a, b []string) int {
		for i := range q.order {
			if d := compareValues(a[shown+i], b[shown+i]); d != 0 {
				if q.desc[i] {
					return -d
				}
				return d
			}
		}
		return 0
	})
	if q.limit >= 0 && len(out.rows) > q.limit {
		out.rows = out.rows[:q.limit]
	}
	for i := range out.rows {
		out.rows[i] = out.rows[i][:shown]
	}
	return out, nil
}

// groupRows divides rows by the columns of group by, in the order of their first row. Without such columns all rows are
// one group.
func (q query) groupRows(t *table, rows [][]string) ([][][]string, error) {
	if len(q.group) == 0 {
		return [][][]string{rows}, nil
	}
	var places []int
	for _, name := range q.group {
		at, err := t.columnOf(name)
		if err != nil {
			return nil, err
		}
		places = append(places, at)
	}
	var groups [][][]string
	known := make(map[string]int)
	for _, r := range rows {
		var key strings.Builder
		for _, at := range places {
			key.WriteString(r[at] + "\x00")
		}
		at, ok := known[key.String()]
		if !ok {
			at = len(groups)
			known[key.String()] = at
			groups = append(groups, nil)
		}
		groups[at] = append(groups[at], r)
	}
	return groups, nil
}

// valueOf returns the value of an item for a group of rows: a column has that of the first row.
func (t *table) valueOf(i item, rows [][]string) (string, error) {
	if i.function == "count" && i.column == "*" {
		return strconv.Itoa(len(rows)), nil
	}
	at, err := t.columnOf(i.column)
	if err != nil {
		return "", err
	}
	if i.function == "" {
		if len(rows) == 0 {
			return "", nil
		}
		return rows[0][at], nil
	}
	best, sum, count, filled := "", 0.0, 0, 0
	for _, r := range rows {
		v := r[at]
		if v == "" {
			continue
		}
		if filled++; filled == 1 || i.function == "min" && compareValues(v, best) < 0 ||
			i.function == "max" && compareValues(v, best) > 0 {
			best = v
		}
		if n, ok := numberOf(v); ok {
			sum, count = sum+n, count+1
		}
	}
	switch {
	case i.function == "count":
		return strconv.Itoa(filled), nil
	case i.function == "sum":
		return formatNumber(sum), nil
	case i.function == "avg" && count == 0:
		return "", nil
	case i.function == "avg":
		return formatNumber(sum / float64(count)), nil
	}
	return best, nil
}
