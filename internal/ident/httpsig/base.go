package httpsig

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/dunglas/httpsfv"
)

// maxComponents is the maximum number of components that one signature covers.
const maxComponents = 32

// String returns the component's identifier as written in Signature-Input (RFC 9421 §2).
func (c Component) String() string {
	s, err := httpsfv.Marshal(c.item())
	if err != nil {
		return c.Name
	}
	return s
}

func (c Component) item() httpsfv.Item {
	it := httpsfv.NewItem(c.Name)
	if c.Key != "" {
		it.Params.Add("key", c.Key)
	}
	return it
}

// list returns the components and parameters as the inner list for Signature-Input. It fails for values
// that cannot be written.
func (p Params) list() (httpsfv.InnerList, error) {
	l := httpsfv.InnerList{Params: httpsfv.NewParams()}
	for _, c := range p.Components {
		l.Items = append(l.Items, c.item())
	}
	if !p.Created.IsZero() {
		l.Params.Add("created", p.Created.Unix())
	}
	if !p.Expires.IsZero() {
		l.Params.Add("expires", p.Expires.Unix())
	}
	for _, q := range [][2]string{{"nonce", p.Nonce}, {"keyid", p.KeyID}, {"tag", p.Tag}} {
		if !isPrintable(q[1]) {
			return l, errors.New("nonce, keyid and tag are printable ASCII")
		}
		if q[1] != "" {
			l.Params.Add(q[0], q[1])
		}
	}
	_, err := parseParams(l)
	return l, err
}

// parseParams reads the components and parameters of a signature from its inner list. Unknown parameters
// are errors.
func parseParams(l httpsfv.InnerList) (Params, error) {
	var p Params
	if len(l.Items) > maxComponents || len(l.Params.Names()) > maxParams {
		return p, fmt.Errorf("it covers more than %d components or has more than %d parameters", maxComponents, maxParams)
	}
	p.Components = make([]Component, 0, len(l.Items))
	for _, it := range l.Items {
		name, ok := it.Value.(string)
		if !ok || name == "" || name != strings.ToLower(name) || !isPrintable(name) || strings.ContainsAny(name, " \"\\") {
			return p, errors.New("a component has no name")
		}
		c := Component{Name: name}
		for i, key := range it.Params.Names() {
			v, _ := it.Params.Get(key)
			if c.Key, _ = v.(string); i > 0 || key != "key" || c.Key == "" || name[0] == '@' {
				return p, fmt.Errorf("the component %s has parameters that are not supported", name)
			}
		}
		if slices.Contains(p.Components, c) {
			return p, fmt.Errorf("the component %s is there twice", c)
		}
		p.Components = append(p.Components, c)
	}
	for _, key := range l.Params.Names() {
		v, _ := l.Params.Get(key)
		seconds, isTime := v.(int64)
		text, isText := v.(string)
		switch {
		case (key == "created" || key == "expires") && isTime && seconds >= 0 && seconds < 1<<40:
			at := &p.Created
			if key == "expires" {
				at = &p.Expires
			}
			*at = time.Unix(seconds, 0)
		case key == "nonce" && isText:
			p.Nonce = text
		case key == "keyid" && isText:
			p.KeyID = text
		case key == "tag" && isText:
			p.Tag = text
		case key == "alg" && text == "ed25519":
		default:
			return p, fmt.Errorf("the parameter %s is not supported or has a wrong value", key)
		}
	}
	return p, nil
}

// signatureBase returns the text that is signed (RFC 9421 §2.5). l is the inner list of Signature-Input,
// components its parsed form.
func signatureBase(l httpsfv.InnerList, r *http.Request, to Target, components []Component) ([]byte, error) {
	b := make([]byte, 0, 768)
	for _, c := range components {
		v, err := componentValue(r, to, c)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c, err)
		}
		b = append(append(append(append(b, c.String()...), ": "...), v...), '\n')
	}
	d := httpsfv.NewDictionary()
	d.Add("s", l) // the library writes an inner list only inside another field
	params, err := httpsfv.Marshal(d)
	if err != nil {
		return nil, err
	}
	return append(append(b, `"@signature-params": `...), strings.TrimPrefix(params, "s=")...), nil
}

// componentValue returns the value of a component of a request. The request is either about to be sent,
// or received, in which case its URL has no scheme and host.
func componentValue(r *http.Request, to Target, c Component) (string, error) {
	if c.Name[0] != '@' {
		return fieldValue(r.Header, c)
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

// fieldValue returns the value of a header field (RFC 9421 §2.1), or of one member of a dictionary field
// if c.Key is set.
func fieldValue(h http.Header, c Component) (string, error) {
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
	m, ok := list.Get(c.Key)
	item, isItem := m.(httpsfv.Item)
	if !ok || !isItem {
		return "", errors.New("the field has no such member")
	}
	return httpsfv.Marshal(item)
}
