package ard

import "strings"

// A filter expression is a list of clauses with AND between them; a clause is a field, an operator
// (=, > or >=) and a value, in single or double quotes if it contains a space. The only grammar is
// Appendix A and the examples of the OpenAPI document.

// Bounds of one filter expression.
const (
	maxFilterBytes = 2000
	maxClauses     = 20
)

type clause struct{ field, operator, value string }

// parseFilter splits an expression into its clauses, in their order. It does not know fields or values;
// the caller checks them.
func parseFilter(s string) ([]clause, error) {
	if len(s) > maxFilterBytes {
		return nil, wrong("filter", "use at most %d bytes", maxFilterBytes)
	}
	broken := wrong("filter", "is not understood; write type = 'application/a2a-agent-card+json' AND createdAfter > '2026-01-31'")
	var out []clause
	rest := strings.TrimSpace(s)
	for rest != "" {
		if len(out) == maxClauses {
			return nil, wrong("filter", "use at most %d clauses", maxClauses)
		}
		var c clause
		i := strings.IndexFunc(rest, func(r rune) bool { return !fieldRune(r) })
		if i <= 0 {
			return nil, broken
		}
		c.field, rest = rest[:i], strings.TrimSpace(rest[i:])
		for _, op := range []string{">=", ">", "="} {
			if after, ok := strings.CutPrefix(rest, op); ok {
				c.operator, rest = op, strings.TrimSpace(after)
				break
			}
		}
		if c.operator == "" || rest == "" {
			return nil, broken
		}
		if quote := rest[:1]; quote == "'" || quote == `"` {
			var closed bool
			if c.value, rest, closed = strings.Cut(rest[1:], quote); !closed {
				return nil, broken
			}
		} else {
			c.value, rest, _ = strings.Cut(rest, " ")
			rest = " " + rest
		}
		out = append(out, c)
		if strings.TrimSpace(rest) == "" {
			break
		}
		word := strings.TrimLeft(rest, " ")
		if len(word) == len(rest) || len(word) < 4 || !strings.EqualFold(word[:4], "and ") {
			return nil, broken
		}
		if rest = strings.TrimSpace(word[4:]); rest == "" {
			return nil, broken
		}
	}
	return out, nil
}

func fieldRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '_'
}
