package task

import (
	"errors"
	"slices"
	"strings"

	"agentsite/internal/fault"
)

// Hop names an agent in a Chain: the host of its portal, a slash, and a token that only that portal
// can map to the agent, so that a chain reveals no private agents.
type Hop string

// Chain lists the agents that led to some work, first one first. It is passed on with every request
// that agents make, from portal to portal, so that agents that call each other in a circle are stopped.
type Chain []Hop

// HopsField is the header field that holds a chain. An endpoint that makes requests to this or another
// portal while it answers copies the field from the request that it answers.
const HopsField = "Agentsite-Hops"

// MaxChain is the maximum length of the chain of a request that comes in through a protocol endpoint.
const MaxChain = 8

// Bounds of a chain that is parsed. Inside conversations agents may call each other a few times
// more often than MaxChain.
const (
	maxHops     = 32
	maxHopBytes = 320 // host name, port and token
)

// ErrLoop is wrapped by the faults of CheckEntry, so that each protocol endpoint can answer with its
// own error.
var ErrLoop = errors.New("agents call each other in a circle")

// CheckEntry checks that an agent may be called at the end of the chain: it must not be in the chain,
// and the chain must not be too long. The error is a fault that wraps ErrLoop.
func (c Chain) CheckEntry(agent Hop, handle string) error {
	switch {
	case slices.Contains(c, agent):
		return fault.Wrap(fault.Invalid, ErrLoop,
			"%s was not asked: it waits for this very answer, so agents call each other in a circle here.", handle)
	case len(c) >= MaxChain:
		return fault.Wrap(fault.Invalid, ErrLoop,
			"%s was not asked: %d agents have asked each other for this already, which is the most there may be.",
			handle, len(c))
	}
	return nil
}

// AppendHop returns the chain for the requests of agent, which the chain led to. c is not changed.
func (c Chain) AppendHop(agent Hop) Chain { return append(slices.Clip(c), agent) }

// String formats the chain for storage, with spaces between the hops. ParseChain parses the result.
func (c Chain) String() string {
	var b strings.Builder
	for i, h := range c {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(string(h))
	}
	return b.String()
}

// ParseChain is the inverse of String. It returns an error for an invalid hop or too many of them.
func ParseChain(s string) (Chain, error) {
	var out Chain
	for f := range strings.FieldsSeq(s) {
		if len(out) == maxHops {
			return nil, errors.New("a chain of too many agents")
		}
		h := Hop(f)
		if !h.isValid() {
			return nil, errors.New("a chain with something that is no agent in it")
		}
		out = append(out, h)
	}
	return out, nil
}

// isValid reports whether h has a host and a token and can be written as a quoted string in a
// header field.
func (h Hop) isValid() bool {
	host, mark, ok := strings.Cut(string(h), "/")
	return ok && host != "" && mark != "" && len(h) <= maxHopBytes &&
		!strings.ContainsFunc(string(h), func(r rune) bool {
			return r <= ' ' || r > '~' || strings.ContainsRune(`"\,`, r)
		})
}

// Field formats the chain as the value of a header field, a list of strings (RFC 9651); "" for none.
func (c Chain) Field() string {
	if len(c) == 0 {
		return ""
	}
	return `"` + strings.ReplaceAll(c.String(), " ", `", "`) + `"`
}

// ParseField is the inverse of Field, for the lines of a header field. No lines give an empty
// chain.
func ParseField(lines []string) (Chain, error) {
	bad := errors.New(`write a list of quoted strings, like "portal.example/abc", "other.example/def"`)
	if len(lines) == 0 {
		return Chain{}, nil
	}
	var out Chain
	for _, item := range strings.Split(strings.Join(lines, ","), ",") {
		item = strings.Trim(item, " \t")
		h, opened := strings.CutPrefix(item, `"`)
		h, closed := strings.CutSuffix(h, `"`)
		if !opened || !closed || !Hop(h).isValid() {
			return nil, bad
		}
		if len(out) == maxHops {
			return nil, errors.New("it names too many agents")
		}
		out = append(out, Hop(h))
	}
	return out, nil
}
