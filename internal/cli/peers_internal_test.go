package cli

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"
)

func TestCalm_SaysTheSameAndSteersNothing(t *testing.T) {
	t.Parallel()
	const name = "a\u009b31mb\u0085c\u007fd\u202ee\u2066 é"
	raw := `{"name":"` + name + "\"}\n"
	out := calm(raw)
	if strings.ContainsFunc(out, func(r rune) bool { return r != '\n' && unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) }) {
		t.Errorf("%q", out)
	}
	var p peer
	if err := json.Unmarshal([]byte(out), &p); err != nil || p.Name != name {
		t.Errorf("%q, %v", p.Name, err)
	}
}
