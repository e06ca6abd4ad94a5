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
	return string(c.append(nil))
}

func (c Component) append(b []byte) []byte {
	b = bareItem{kind: stringItem, text: c.Name}.append(b)
	if c.Key != "" {
		b = bareItem{kind: stringItem, text: c.Key}.append(append(b, ";key="...))
	}
	return b
}

// list is the parameters as the inner list that goes into Signature-Input.
func (p Params) list() (innerList, error) {
	l := innerList{items: make([]member, 0, len(p.Components)), params: make([]param, 0, 5)}
	for _, c := range p.Components {
		it := member{item: bareItem{kind: stringItem, text: c.Name}}
		if c.Key != "" {
			it.params = []param{{"key", bareItem{kind: stringItem, text: c.Key}}}
		}
		l.items = append(l.items, it)
	}
	at := func(name string, t time.Time) {
		if !t.IsZero() {
			l.params = append(l.params, param{name, bareItem{kind: integerItem, number: t.Unix()}})
		}
	}
	said := func(name, text string) {
		if text != "" {
			l.params = append(l.params, param{name, bareItem{kind: stringItem, text: text}})
		}
	}
	at("created", p.Created)
	at("expires", p.Expires)
	said("nonce", p.Nonce)
	said("keyid", p.KeyID)
	said("tag", p.Tag)
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
	p.Components = make([]Component, 0, len(l.items))
	for _, it := range l.items {
		c := Component{Name: it.item.text}
		if it.item.kind != stringItem || c.Name != strings.ToLower(c.Name) || !printable(c.Name) ||
			strings.ContainsAny(c.Name, " \"\\") || c.Name == "" {
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
		case (q.key == "created" || q.key == "expires") && kind == integerItem && q.item.number >= 0 &&
			q.item.number < 1<<40:
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

// base is what is signed (RFC 9421 §2.5), given what the list covers.
func (l innerList) base(r *http.Request, to Target, components []Component) ([]byte, error) {
	b := make([]byte, 0, 768)
	for _, c := range components {
		b = append(c.append(b), ": "...)
		v, err := value(r, to, c)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c, err)
		}
		b = append(append(b, v...), '\n')
	}
	return l.append(append(b, `"@signature-params": `...)), nil
}

// value is a component of a request: one to be sent, or one received, whose URL
// holds neither scheme nor host.
func value(r *http.Request, to Target, c Component) (string, error) {
	if c.Name[0] != '@' {
		return field(r.Header, c)
	}
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
		return pathOf(r), nil
	case "@query":
		return "?" + r.URL.RawQuery, nil
	case "@target-uri", "@request-target":
		path, query := pathOf(r), "?"+r.URL.RawQuery
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

func pathOf(r *http.Request) string {
	if path := r.URL.EscapedPath(); path != "" {
		return path
	}
	return "/"
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
	var all string
	for i, v := range values {
		v = strings.Trim(v, " \t")
		if strings.ContainsAny(v, "\r\n\x00") {
			return "", errors.New("the field has a line break in it")
		}
		if i > 0 {
			v = all + ", " + v
		}
		all = v
	}
	if c.Key == "" {
		return all, nil
	}
	list, err := parseDictionary(all)
	if err != nil {
		return "", err
	}
	for _, m := range list {
		if m.key == c.Key {
			return string(m.append(nil)), nil
		}
	}
	return "", errors.New("the field has no such member")
}
