package httpsig

import (
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Structured fields (RFC 9651), as far as signatures need them: dictionaries
// whose members are bare items, or inner lists of bare items. Floats, dates
// and inner lists within dictionaries of other fields are refused, and so is a
// key that is there twice.

// Bounds of one field.
const (
	maxField   = 8 << 10 // bytes
	maxMembers = 8
	maxParams  = 16
)

type itemKind byte

const (
	integerItem itemKind = iota + 1
	stringItem
	tokenItem
	bytesItem
	boolItem
)

// bareItem is a value; text holds strings, tokens and bytes, number integers
// and booleans.
type bareItem struct {
	kind   itemKind
	text   string
	number int64
}

// append adds the item to b as it is written.
func (i bareItem) append(b []byte) []byte {
	switch i.kind {
	case integerItem:
		return strconv.AppendInt(b, i.number, 10)
	case stringItem:
		b = append(b, '"')
		for n := range len(i.text) {
			if c := i.text[n]; c == '"' || c == '\\' {
				b = append(b, '\\')
			}
			b = append(b, i.text[n])
		}
		return append(b, '"')
	case bytesItem:
		b = append(b, ':')
		b = base64.StdEncoding.AppendEncode(b, []byte(i.text))
		return append(b, ':')
	case boolItem:
		return strconv.AppendInt(append(b, '?'), i.number, 10)
	}
	return append(b, i.text...)
}

type param struct {
	key  string
	item bareItem
}

func appendParams(b []byte, list []param) []byte {
	for _, p := range list {
		b = append(append(b, ';'), p.key...)
		if p.item.kind != boolItem || p.item.number != 1 {
			b = p.item.append(append(b, '='))
		}
	}
	return b
}

// member is a bare item with parameters, under a key where it is in a
// dictionary.
type member struct {
	key    string
	item   bareItem
	params []param
}

// append adds the member's value to b, without its key.
func (m member) append(b []byte) []byte { return appendParams(m.item.append(b), m.params) }

type innerList struct {
	items  []member
	params []param
}

// append adds the list to b as it is written.
func (l innerList) append(b []byte) []byte {
	b = append(b, '(')
	for i, it := range l.items {
		if i > 0 {
			b = append(b, ' ')
		}
		b = it.append(b)
	}
	return appendParams(append(b, ')'), l.params)
}

func (l innerList) param(key string) (bareItem, bool) {
	i := slices.IndexFunc(l.params, func(p param) bool { return p.key == key })
	if i < 0 {
		return bareItem{}, false
	}
	return l.params[i].item, true
}

type input struct {
	key  string
	list innerList
}

// parseInputs reads a dictionary of inner lists.
func parseInputs(s string) ([]input, error) {
	var out []input
	err := eachMember(s, func(p *parser, key string) error {
		l, err := p.innerList()
		out = append(out, input{key, l})
		return err
	})
	return out, err
}

// parseDictionary reads a dictionary of items.
func parseDictionary(s string) ([]member, error) {
	var out []member
	err := eachMember(s, func(p *parser, key string) error {
		m := member{key: key}
		var err error
		if m.item, err = p.bareItem(); err == nil {
			m.params, err = p.params()
		}
		out = append(out, m)
		return err
	})
	return out, err
}

func eachMember(s string, value func(p *parser, key string) error) error {
	if len(s) > maxField {
		return fmt.Errorf("it is longer than %d bytes", maxField)
	}
	p := &parser{strings.Trim(s, " ")}
	var seen []string
	for p.rest != "" {
		key, err := p.key()
		switch {
		case err != nil:
			return err
		case slices.Contains(seen, key):
			return fmt.Errorf("%s is there twice", key)
		case len(seen) == maxMembers:
			return fmt.Errorf("it has more than %d members", maxMembers)
		case !p.take('='):
			return fmt.Errorf("%s has no value", key)
		}
		seen = append(seen, key)
		if err := value(p, key); err != nil {
			return err
		}
		p.rest = strings.TrimLeft(p.rest, " \t")
		if p.rest == "" {
			return nil
		}
		if !p.take(',') {
			return errors.New("its members are not separated by commas")
		}
		if p.rest = strings.TrimLeft(p.rest, " \t"); p.rest == "" {
			return errors.New("it ends with a comma")
		}
	}
	return nil
}

// parser reads from the front of rest.
type parser struct{ rest string }

func (p *parser) take(c byte) bool {
	if p.rest == "" || p.rest[0] != c {
		return false
	}
	p.rest = p.rest[1:]
	return true
}

// while cuts off the longest prefix whose bytes are all ok.
func (p *parser) while(ok func(c byte) bool) string {
	n := 0
	for n < len(p.rest) && ok(p.rest[n]) {
		n++
	}
	out := p.rest[:n]
	p.rest = p.rest[n:]
	return out
}

func lower(c byte) bool { return c >= 'a' && c <= 'z' }
func digit(c byte) bool { return c >= '0' && c <= '9' }
func alpha(c byte) bool { return lower(c) || c >= 'A' && c <= 'Z' }

func keyByte(c byte) bool { return lower(c) || digit(c) || strings.IndexByte("_-.*", c) >= 0 }

func validKey(s string) bool {
	p := parser{s}
	_, err := p.key()
	return err == nil && p.rest == ""
}

func printable(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

func (p *parser) key() (string, error) {
	if p.rest == "" || !lower(p.rest[0]) && p.rest[0] != '*' {
		return "", errors.New("a key is missing")
	}
	return p.while(keyByte), nil
}

func (p *parser) innerList() (l innerList, err error) {
	if !p.take('(') {
		return l, errors.New("a list in brackets is missing")
	}
	for {
		spaces := p.while(func(c byte) bool { return c == ' ' })
		if p.take(')') {
			l.params, err = p.params()
			return l, err
		}
		if len(l.items) > 0 && spaces == "" {
			return l, errors.New("the items of a list are not separated by spaces")
		}
		if len(l.items) == maxComponents {
			return l, fmt.Errorf("a list has more than %d items", maxComponents)
		}
		var m member
		if m.item, err = p.bareItem(); err != nil {
			return l, err
		}
		if m.params, err = p.params(); err != nil {
			return l, err
		}
		if l.items == nil {
			l.items = make([]member, 0, 8)
		}
		l.items = append(l.items, m)
	}
}

func (p *parser) params() (out []param, err error) {
	for p.take(';') {
		p.while(func(c byte) bool { return c == ' ' })
		q := param{item: bareItem{kind: boolItem, number: 1}}
		if q.key, err = p.key(); err != nil {
			return nil, err
		}
		if p.take('=') {
			if q.item, err = p.bareItem(); err != nil {
				return nil, err
			}
		}
		if slices.ContainsFunc(out, func(o param) bool { return o.key == q.key }) {
			return nil, fmt.Errorf("the parameter %s is there twice", q.key)
		}
		if out == nil {
			out = make([]param, 0, 6)
		}
		if len(out) == maxParams {
			return nil, fmt.Errorf("there are more than %d parameters", maxParams)
		}
		out = append(out, q)
	}
	return out, nil
}

func (p *parser) bareItem() (bareItem, error) {
	if p.rest == "" {
		return bareItem{}, errors.New("a value is missing")
	}
	switch c := p.rest[0]; {
	case c == '"':
		return p.text()
	case c == ':':
		raw, rest, ok := strings.Cut(p.rest[1:], ":")
		b, err := base64.StdEncoding.Strict().DecodeString(raw)
		if !ok || err != nil || strings.ContainsAny(raw, "\r\n") {
			return bareItem{}, errors.New("a byte sequence is not base64 between colons")
		}
		p.rest = rest
		return bareItem{kind: bytesItem, text: string(b)}, nil
	case c == '?':
		p.rest = p.rest[1:]
		switch {
		case p.take('1'):
			return bareItem{kind: boolItem, number: 1}, nil
		case p.take('0'):
			return bareItem{kind: boolItem}, nil
		}
		return bareItem{}, errors.New("a boolean is neither ?0 nor ?1")
	case c == '-' || digit(c):
		sign := ""
		if p.take('-') {
			sign = "-"
		}
		digits := p.while(digit)
		n, err := strconv.ParseInt(sign+digits, 10, 64)
		// What is read must be written as it was: 007 is not.
		if err != nil || len(digits) > 15 || strconv.FormatInt(n, 10) != sign+digits || strings.HasPrefix(p.rest, ".") {
			return bareItem{}, errors.New("a number is no whole number of at most 15 digits")
		}
		return bareItem{kind: integerItem, number: n}, nil
	case alpha(c) || c == '*':
		return bareItem{kind: tokenItem, text: p.while(func(c byte) bool {
			return alpha(c) || digit(c) ||
				strings.IndexByte("!#$%&'*+-.^_`|~:/", c) >= 0
		})}, nil
	}
	return bareItem{}, errors.New("a value is of no known type")
}

func (p *parser) text() (bareItem, error) {
	if end := strings.IndexByte(p.rest[1:], '"'); end >= 0 && printable(p.rest[1:1+end]) &&
		strings.IndexByte(p.rest[1:1+end], '\\') < 0 {
		out := bareItem{kind: stringItem, text: p.rest[1 : 1+end]} // nothing is escaped
		p.rest = p.rest[end+2:]
		return out, nil
	}
	var b strings.Builder
	for i := 1; i < len(p.rest); i++ {
		switch c := p.rest[i]; {
		case c == '"':
			p.rest = p.rest[i+1:]
			return bareItem{kind: stringItem, text: b.String()}, nil
		case c == '\\':
			if i++; i == len(p.rest) || p.rest[i] != '"' && p.rest[i] != '\\' {
				return bareItem{}, errors.New("a string has a backslash before something else than a quote")
			}
			b.WriteByte(p.rest[i])
		case c < ' ' || c > '~':
			return bareItem{}, errors.New("a string holds something else than printable ASCII")
		default:
			b.WriteByte(c)
		}
	}
	return bareItem{}, errors.New("a string does not end")
}
