package postgres

import (
	"database/sql/driver"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// indexHint is SQLite's way to choose an index.
var indexHint = regexp.MustCompile(` INDEXED BY \w+`)

// translate returns a query and its arguments in the form that PostgreSQL takes: ? and ?1 become $1, each
// with a cast to the type of its Go value, because the server would guess another one for some, and
// truth values are the numbers 0 and 1, which the columns hold on both engines. Hints for SQLite are left out.
func translate(query string, args []any) (string, []any, error) {
	out := make([]any, len(args))
	for i, a := range args {
		v, err := driver.DefaultParameterConverter.ConvertValue(a)
		if err != nil {
			return "", nil, fmt.Errorf("argument %d of %q: %w", i+1, query, err)
		}
		if b, ok := v.(bool); ok {
			v = int64(0)
			if b {
				v = int64(1)
			}
		}
		out[i] = v
	}
	if strings.Contains(query, " INDEXED BY ") {
		query = indexHint.ReplaceAllString(query, "")
	}
	if !strings.Contains(query, "?") {
		return query, out, nil
	}
	var b strings.Builder
	b.Grow(len(query) + 16*len(args))
	quoted, next := false, 0
	for i := 0; i < len(query); i++ {
		c := query[i]
		if c == '\'' {
			quoted = !quoted
		}
		if c != '?' || quoted {
			b.WriteByte(c)
			continue
		}
		end := i + 1
		for end < len(query) && query[end] >= '0' && query[end] <= '9' {
			end++
		}
		n := next
		if end > i+1 {
			n, _ = strconv.Atoi(query[i+1 : end])
			n-- // cannot fail: digits only
		} else {
			next++
		}
		if n < 0 || n >= len(args) {
			return "", nil, fmt.Errorf("%q has more parameters than the %d arguments", query, len(args))
		}
		b.WriteByte('$')
		b.WriteString(strconv.Itoa(n + 1))
		b.WriteString(castOf(out[n]))
		i = end - 1
	}
	return b.String(), out, nil
}

func castOf(v driver.Value) string {
	switch v.(type) {
	case int64:
		return "::bigint"
	case float64:
		return "::float8"
	case string:
		return "::text"
	case []byte:
		return "::bytea"
	case time.Time:
		return "::timestamptz"
	}
	return "" // NULL has no type of its own
}

// hasBadText reports whether an argument is text that PostgreSQL cannot store, so that no row has it.
func hasBadText(args []any) bool {
	for _, a := range args {
		if s, ok := a.(string); ok && (strings.Contains(s, "\x00") || !utf8.ValidString(s)) {
			return true
		}
	}
	return false
}
