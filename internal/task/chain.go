package task

import (
	"errors"
	"slices"
	"strings"

	"agentsite/internal/fault"
)

// Hop names an agent that asked for work in the course of other work: the host
// of its portal, a slash, and a mark that only that portal can tie to the
// agent.
type Hop string

// Chain is the agents whose work led to some work, the first of them first. It
// goes along with what they ask for, from portal to portal, so that agents that
// call each other in a circle are stopped.
type Chain []Hop

// HopsField is the header field that holds a chain. An endpoint that asks this
// or another portal for something in the course of an answer sends it along as
// it came.
const HopsField = "Agentsite-Hops"

// MaxChain is the most agents that work which comes in through a door may have
// passed.
const MaxChain = 8

// Bounds of a chain that is read. Rooms let agents call each other a few times
// more often than doors do.
const (
	maxHops     = 32
	maxHopBytes = 320 // a host name and port, and the mark
)

// ErrLoop is in the chain of the faults that Enter returns: doors say it in
// their protocol's words.
var ErrLoop = errors.New("agents call each other in a circle")

// Enter checks that an agent may be asked by who has come along the chain: it
// is not one of them, and they are not too many. The error is a fault with
// ErrLoop.
func (c Chain) Enter(agent Hop, handle string) error {
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

// With is the chain of what agent asks for in the course of its work.
func (c Chain) With(agent Hop) Chain { return append(slices.Clip(c), agent) }

// String is the chain as it is stored, and as ParseChain reads it.
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

// ParseChain is the inverse of String.
func ParseChain(s string) (Chain, error) {
	var out Chain
	for f := range strings.FieldsSeq(s) {
		if len(out) == maxHops {
			return nil, errors.New("a chain of too many agents")
		}
		h := Hop(f)
		if !h.valid() {
			return nil, errors.New("a chain with something that is no agent in it")
		}
		out = append(out, h)
	}
	return out, nil
}

// valid reports whether h can be written in a list of quoted strings.
func (h Hop) valid() bool {
	host, mark, ok := strings.Cut(string(h), "/")
	return ok && host != "" && mark != "" && len(h) <= maxHopBytes &&
		!strings.ContainsFunc(string(h), func(r rune) bool {
			return r <= ' ' || r > '~' || strings.ContainsRune(`"\,`, r)
		})
}

// Field is the chain as the value of a header field, a list of strings (RFC
// 9651); "" for none.
func (c Chain) Field() string {
	if len(c) == 0 {
		return ""
	}
	return `"` + strings.ReplaceAll(c.String(), " ", `", "`) + `"`
}

// ParseField is the inverse of Field, for the lines of a header field.
func ParseField(lines []string) (Chain, error) {
	bad := errors.New(`write a list of quoted strings, like "portal.example/abc", "other.example/def"`)
	var out Chain
	for _, item := range strings.Split(strings.Join(lines, ","), ",") {
		item = strings.Trim(item, " \t")
		if item == "" && len(lines) == 0 {
			return nil, nil
		}
		h, opened := strings.CutPrefix(item, `"`)
		h, closed := strings.CutSuffix(h, `"`)
		if !opened || !closed || !Hop(h).valid() {
			return nil, bad
		}
		if len(out) == maxHops {
			return nil, errors.New("it names too many agents")
		}
		out = append(out, Hop(h))
	}
	return out, nil
}
