package httpsig

import (
	"errors"
	"fmt"
	"strings"

	"github.com/dunglas/httpsfv"
)

// Bounds of one structured field (RFC 9651), because the sender is not verified yet.
const (
	maxField   = 8 << 10 // in bytes
	maxMembers = 8
	maxParams  = 16
)

// parseDictionary reads a structured field that is a dictionary. It refuses a key that occurs twice,
// because the library would keep the last one, and values that are not in canonical form, because the
// signature covers the field as it was written.
func parseDictionary(field string) (*httpsfv.Dictionary, error) {
	if len(field) > maxField {
		return nil, fmt.Errorf("it is longer than %d bytes", maxField)
	}
	d, err := httpsfv.UnmarshalDictionary([]string{field})
	if err != nil {
		return nil, err
	}
	if len(d.Names()) > maxMembers {
		return nil, fmt.Errorf("it has more than %d members", maxMembers)
	}
	written, err := httpsfv.Marshal(d)
	if err != nil {
		return nil, err
	}
	if removeSpaces(written) != removeSpaces(field) {
		return nil, errors.New("a key is there twice, or a value is not written as RFC 9651 does")
	}
	return d, nil
}

// removeSpaces removes spaces and tabs outside of quoted strings, in which the canonical form may
// differ.
func removeSpaces(s string) string {
	var b strings.Builder
	quoted := false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case !quoted && (c == ' ' || c == '\t'):
			continue
		case quoted && c == '\\' && i+1 < len(s):
			b.WriteByte(c)
			i++
		case c == '"':
			quoted = !quoted
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// findBytes returns the byte sequence with that key; the second result is false if there is none.
func findBytes(d *httpsfv.Dictionary, key string) ([]byte, bool) {
	m, _ := d.Get(key)
	item, _ := m.(httpsfv.Item)
	b, ok := item.Value.([]byte)
	return b, ok
}

func isPrintable(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}
