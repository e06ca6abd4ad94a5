package httpsig

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// maxComponents bounds what one signature covers.
const maxComponents = 32

// String is the component's identifier as it is written (RFC 9421 §2).
func (c Component) String() string {
	s := bareItem{kind: stringItem, text: c.Name}.String()
	if c.Key != "" {
		s += ";key=" + bareItem{kind: stringItem, text: c.Key}.String()
	}
	return s
}

// list is the parameters as the inner list that goes into Signature-Input.
func (p Params) list() (innerList, error) {
	var l innerList
	for _, c := range p.Components {
		it := member{item: bareItem{kind: stringItem, text: c.Name}}
		if c.Key != "" {
			it.params = []param{{"key", bareItem{kind: stringItem, text: c.Key}}}
		}
		l.items = append(l.items, it)
	}
	for _, t := range []struct {
		name string
		at   time.Time
	}{{"created", p.Created}, {"expires", p.Expires}} {
		if !t.at.IsZero() {
			l.params = append(l.params, param{t.name, bareItem{kind: integerItem, number: t.at.Unix()}})
		}
	}
	for _, t := range []struct{ name, text string }{{"nonce", p.Nonce}, {"keyid", p.KeyID}, {"tag", p.Tag}} {
		if t.text != "" {
			l.params = append(l.params, param{t.name, bareItem{kind: stringItem, text: t.text}})
		}
	}
	if !printable(p.Nonce) || !printable(p.KeyID) || !printable(p.Tag) {
		return l, errors.New("nonce, keyid and tag are printable ASCII")
	}
	_, err := l.parsed()
	return l, err
}

// parsed reads what a signature says of itself.
func (l innerList) parsed() (Params, error) {
	var p Params
	if len(l.items) > maxComponents {
		return p, fmt.Errorf("it covers more than %d components", maxComponents)
	}
	for _, it := range l.items {
		c := Component{Name: it.item.text}
		if it.item.kind != stringItem || c.Name != strings.ToLower(c.Name) || !printable(c.Name) || strings.ContainsAny(c.Name, " \"\\") || c.Name == "" {
			return p, errors.New("a component has no name")
		}
		for _, q := range it.params {
			if q.key != "key" || q.item.kind != stringItem || q.item.text == "" || c.Key != "" || c.Name[0] == '@' {
				return p, fmt.Errorf("the component %s has parameters that are not supported", c.Name)
			}
			c.Key = q.item.text
		}
		if slices.Contains(p.Components, c) {
			return p, fmt.Errorf("the component %s is there twice", c)
		}
		p.Components = append(p.Components, c)
	}
	for _, q := range l.params {
		switch kind := q.item.kind; {
		case (q.key == "created" || q.key == "expires") && kind == integerItem && q.item.number >= 0 && q.item.number < 1<<40:
			at := time.Unix(q.item.number, 0)
			if q.key == "created" {
				p.Created = at
			} else {
				p.Expires = at
			}
		case q.key == "nonce" && kind == stringItem:
			p.Nonce = q.item.text
		case q.key == "keyid" && kind == stringItem:
			p.KeyID = q.item.text
		case q.key == "tag" && kind == stringItem:
			p.Tag = q.item.text
		case q.key == "alg" && kind == stringItem && q.item.text == "ed25519":
		default:
			return p, fmt.Errorf("the parameter %s is not supported or has a wrong value", q.key)
		}
	}
	return p, nil
}

// base is what is signed (RFC 9421 §2.5).
func (l innerList) base(r *http.Request, to Target) ([]byte, error) {
	p, err := l.parsed()
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	for _, c := range p.Components {
		v, err := value(r, to, c)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c, err)
		}
		b.WriteString(c.String() + ": " + v + "\n")
	}
	b.WriteString(`"@signature-params": ` + l.String())
	return []byte(b.String()), nil
}

// value is a component of a request: one to be sent, or one received, whose URL
// holds neither scheme nor host.
func value(r *http.Request, to Target, c Component) (string, error) {
	if c.Name[0] != '@' {
		return field(r.Header, c)
	}
	path := r.URL.EscapedPath()
	if path == "" {
		path = "/"
	}
	query := "?" + r.URL.RawQuery
	switch c.Name {
	case "@method":
		if r.Method == "" {
			return http.MethodGet, nil
		}
		return r.Method, nil
	case "@authority":
		return to.authority(r), nil
	case "@scheme":
		return to.scheme(r), nil
	case "@path":
		return path, nil
	case "@query":
		return query, nil
	case "@target-uri", "@request-target":
		if query == "?" && !r.URL.ForceQuery {
			query = ""
		}
		if c.Name == "@request-target" {
			return path + query, nil
		}
		return to.scheme(r) + "://" + to.authority(r) + path + query, nil
	}
	return "", errors.New("is not supported")
}

func (to Target) scheme(r *http.Request) string {
	switch {
	case to.Scheme != "":
		return to.Scheme
	case r.URL.Scheme != "":
		return strings.ToLower(r.URL.Scheme)
	case r.TLS != nil:
		return "https"
	}
	return "http"
}

func (to Target) authority(r *http.Request) string {
	host := to.Authority
	if host == "" {
		host = r.Host
	}
	if host == "" {
		host = r.URL.Host
	}
	port := ":80"
	if to.scheme(r) == "https" {
		port = ":443"
	}
	return strings.TrimSuffix(strings.ToLower(host), port)
}

// field is the value of a header field (RFC 9421 §2.1), of one member if that
// is meant.
func field(h http.Header, c Component) (string, error) {
	values := h.Values(c.Name)
	if len(values) == 0 {
		return "", errors.New("the request has no such field")
	}
	lines := make([]string, len(values))
	for i, v := range values {
		lines[i] = strings.Trim(v, " \t")
		if strings.ContainsAny(lines[i], "\r\n\x00") {
			return "", errors.New("the field has a line break in it")
		}
	}
	all := strings.Join(lines, ", ")
	if c.Key == "" {
		return all, nil
	}
	list, err := parseDictionary(all)
	if err != nil {
		return "", err
	}
	for _, m := range list {
		if m.key == c.Key {
			return m.String(), nil
		}
	}
	return "", errors.New("the field has no such member")
}
