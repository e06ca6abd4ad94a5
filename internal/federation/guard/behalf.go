package guard

import (
	"agentsite/internal/federation"
	"strings"
)

// OnBehalfOf is the person for whom a portal makes a request, as stated in the header ForField. The zero
// value means that the portal acts for itself.
type OnBehalfOf struct {
	// Kind is person or guest; empty for the zero value.
	Kind string
	// ID is stable for one person and one asked portal, and has no meaning to other portals.
	ID string
	// Handle is the person's handle as the asking portal states it. Only the name before the @ may be
	// used: the host must come from the verified portal.
	Handle string
	// Own is true if the portal states that the message has the person's own words, although agents pass it on.
	Own bool
}

const maxFor = 1 << 10

// ParseOnBehalfOf parses the value of ForField: an RFC 9651 dictionary of a token and two strings.
// Unknown members are ignored. Errors are Refusals.
func ParseOnBehalfOf(s string) (OnBehalfOf, error) {
	var b OnBehalfOf
	bad := func(what string) (OnBehalfOf, error) {
		return OnBehalfOf{}, federation.Refuse(federation.ReasonMalformed,
			`%s: %s; write it like kind=person, id="…", handle="ada@a.example".`, ForField, what)
	}
	if s = strings.Trim(s, " \t"); s == "" {
		return b, nil
	}
	if len(s) > maxFor {
		return bad("it is too long")
	}
	seen := make(map[string]bool)
	for {
		name, rest, ok := strings.Cut(s, "=")
		if !ok || seen[name] {
			return bad("a member has no value, or comes twice")
		}
		seen[name] = true
		value, after, ok := readValue(rest)
		if !ok {
			return bad("a value cannot be read")
		}
		switch name {
		case "kind":
			b.Kind = value
		case "id":
			b.ID = value
		case "handle":
			b.Handle = value
		case "words":
			b.Own = value == "own"
		}
		if s = strings.TrimLeft(after, " \t"); s == "" {
			break
		}
		if s, ok = strings.CutPrefix(s, ","); !ok {
			return bad("members are not separated")
		}
		s = strings.TrimLeft(s, " \t")
	}
	if b.Kind != "person" && b.Kind != "guest" || b.ID == "" || len(b.ID) > 200 {
		return bad("it names nobody")
	}
	return b, nil
}

// readValue reads a token or a quoted string of printable ASCII from the front of s and returns the rest
// in after; ok is false if there is none.
func readValue(s string) (v, after string, ok bool) {
	quoted := strings.HasPrefix(s, `"`)
	var b strings.Builder
	i := 0
	if quoted {
		i = 1
	}
	for ; i < len(s); i++ {
		c := s[i]
		switch {
		case c < ' ' || c > '~':
			return "", "", false
		case quoted && c == '\\':
			if i++; i == len(s) || s[i] != '"' && s[i] != '\\' {
				return "", "", false
			}
			b.WriteByte(s[i])
			continue
		case quoted && c == '"':
			return b.String(), s[i+1:], true
		case !quoted && (c == ',' || c == ' '):
			return b.String(), s[i:], b.Len() > 0
		}
		b.WriteByte(c)
	}
	return b.String(), "", !quoted && b.Len() > 0
}
