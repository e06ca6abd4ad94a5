package federation

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strconv"
)

// Append appends the answer in wire form. Records, proofs, heads and cards are copied byte by byte,
// which keeps their signatures valid; each entry of Heads must have its card.
func (a *SearchAnswer) Append(b []byte) []byte {
	const around, each = 64, 64 // estimated bytes of separators around the list and for each result
	size := len(a.Head) + around
	for _, h := range a.Results {
		size += len(h.Record) + len(h.Proof) + each
	}
	for _, t := range a.Heads {
		size += len(t.Card) + len(t.Head) + each
	}
	b = slices.Grow(b, size)
	b = append(b, `{"head":`...)
	b = append(b, a.Head...)
	b = append(b, `,"total":`...)
	b = strconv.AppendInt(b, int64(a.Total), 10)
	b = append(b, `,"results":[`...)
	for i, h := range a.Results {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"record":`...)
		b = append(b, h.Record...)
		b = append(b, `,"proof":`...)
		b = append(b, h.Proof...)
		b = append(b, `,"score":`...)
		if math.IsNaN(h.Score) || math.IsInf(h.Score, 0) {
			h.Score = 0
		}
		b = strconv.AppendFloat(b, h.Score, 'g', -1, 64)
		b = append(b, '}')
	}
	for i, t := range a.Heads {
		if i == 0 {
			b = append(b, `],"heads":[`...)
		} else {
			b = append(b, ',')
		}
		b = append(b, `{"card":`...)
		b = append(b, t.Card...)
		b = append(b, `,"head":`...)
		b = append(b, t.Head...)
		b = append(b, '}')
	}
	return append(b, "]}\n"...)
}

// ParseSearchAnswer parses an answer of at most MaxFound results. Records and proofs are returned unverified and may
// even be invalid JSON. Answers in another form than Append's are parsed by the general JSON decoder.
func ParseSearchAnswer(b []byte) (*SearchAnswer, error) {
	if a, ok := parseAppended(b); ok {
		return a, nil
	}
	var a SearchAnswer
	if err := json.Unmarshal(b, &a); err != nil {
		return nil, err
	}
	if len(a.Results) > MaxFound || len(a.Heads) > MaxFound {
		return nil, Refuse(ReasonSize, "An answer has at most %d results, and heads.", MaxFound)
	}
	return &a, nil
}

// parseAppended parses the output of Append quickly; false for any other input.
func parseAppended(b []byte) (*SearchAnswer, bool) {
	a := &SearchAnswer{Results: []Hit{}}
	var ok bool
	if a.Head, ok = cutValue(&b, `{"head":`); !ok {
		return nil, false
	}
	total, ok := cutNumber(&b, `,"total":`)
	if !ok || total < 0 || total > math.MaxInt32 || total != math.Trunc(total) || !cutPrefix(&b, `,"results":[`) {
		return nil, false
	}
	a.Total = int(total)
	for open := `{"record":`; !cutPrefix(&b, `]`); open = `,{"record":` {
		var h Hit
		if len(a.Results) == MaxFound {
			return nil, false
		}
		if h.Record, ok = cutValue(&b, open); !ok {
			return nil, false
		}
		if h.Proof, ok = cutValue(&b, `,"proof":`); !ok {
			return nil, false
		}
		if h.Score, ok = cutNumber(&b, `,"score":`); !ok || !cutPrefix(&b, `}`) {
			return nil, false
		}
		a.Results = append(a.Results, h)
	}
	if cutPrefix(&b, `,"heads":[`) {
		for open := `{"card":`; !cutPrefix(&b, `]`); open = `,{"card":` {
			var t Told
			if len(a.Heads) == MaxFound {
				return nil, false
			}
			if t.Card, ok = cutValue(&b, open); !ok {
				return nil, false
			}
			if t.Head, ok = cutValue(&b, `,"head":`); !ok || !cutPrefix(&b, `}`) {
				return nil, false
			}
			a.Heads = append(a.Heads, t)
		}
	}
	return a, cutPrefix(&b, `}`) && len(bytes.TrimSpace(b)) == 0
}

func cutPrefix(b *[]byte, what string) bool {
	rest, ok := bytes.CutPrefix(*b, []byte(what))
	*b = rest
	return ok
}

// cutValue cuts a field with the given name and an object as value from the front of b; false if there is none.
func cutValue(b *[]byte, name string) (json.RawMessage, bool) {
	if !cutPrefix(b, name) || len(*b) == 0 || (*b)[0] != '{' {
		return nil, false
	}
	s, depth := *b, 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '"':
			for i++; i < len(s) && s[i] != '"'; i++ {
				if s[i] == '\\' {
					i++
				}
			}
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				*b = s[i+1:]
				return json.RawMessage(s[: i+1 : i+1]), true
			}
		}
	}
	return nil, false
}

// cutNumber cuts a field with the given name and a number as value from the front of b; false if there is none.
func cutNumber(b *[]byte, name string) (float64, bool) {
	if !cutPrefix(b, name) {
		return 0, false
	}
	n := 0
	for n < len(*b) && n < 32 && bytes.IndexByte([]byte("0123456789+-.eE"), (*b)[n]) >= 0 {
		n++
	}
	v, err := strconv.ParseFloat(string((*b)[:n]), 64)
	*b = (*b)[n:]
	return v, err == nil
}
