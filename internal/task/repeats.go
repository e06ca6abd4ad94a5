package task

import (
	"bytes"
	"encoding/json"
	"slices"
)

// DropRepeats returns the parts without texts that only repeat the data of another part as JSON, and without data that
// an earlier part has. Servers send both for clients that read only one of them. Spaces and the order of keys do not
// count. The list is changed in place.
func DropRepeats(parts []Part) []Part {
	var known []string
	hasText := false
	for _, p := range parts {
		if len(p.Data) > 0 {
			known = append(known, canonicalJSON(p.Data))
		}
		hasText = hasText || p.Text != ""
	}
	if len(known) == 0 || len(known) == 1 && !hasText {
		return parts
	}
	var said []string
	return slices.DeleteFunc(parts, func(p Part) bool {
		switch {
		case len(p.Data) > 0:
			c := canonicalJSON(p.Data)
			if c != "" && slices.Contains(said, c) {
				return true
			}
			said = append(said, c)
		case p.Text != "" && p.Filename == "":
			c := canonicalJSON([]byte(p.Text))
			return c != "" && slices.Contains(known, c)
		}
		return false
	})
}

// SameJSON reports whether two texts are JSON of the same value. Spaces and the order of keys do not count.
func SameJSON(a, b []byte) bool {
	x := canonicalJSON(a)
	return x != "" && x == canonicalJSON(b)
}

// canonicalJSON returns the value of a JSON text in a form that is equal for equal values; "" for other texts.
func canonicalJSON(b []byte) string {
	b = bytes.TrimSpace(b)
	if len(b) == 0 || !json.Valid(b) {
		return ""
	}
	var v any
	if json.Unmarshal(b, &v) != nil {
		return ""
	}
	out, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return string(out)
}
