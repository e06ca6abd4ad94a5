package hub

import (
	"strings"
	"testing"
)

func TestToolChanges_InWords(t *testing.T) {
	t.Parallel()
	a, b := Tool{Name: "a", InputSchema: []byte(`{"type":"object","a":1}`)}, Tool{Name: "b"}
	reordered := Tool{Name: "a", InputSchema: []byte(`{"a": 1, "type": "object"}`)}
	for _, tt := range []struct {
		had, has []Tool
		want     string
	}{
		{[]Tool{a, b}, []Tool{b, a}, ""},
		{[]Tool{a}, []Tool{reordered}, ""},
		{[]Tool{a}, []Tool{a, b}, "Its tools changed: added b"},
		{[]Tool{a, b}, nil, "Its tools changed: removed a, b"},
		{[]Tool{a, b}, []Tool{{Name: "a"}, {Name: "c"}}, "Its tools changed: added c; removed b; changed a"},
		{nil, []Tool{{Name: strings.Repeat("x", 128)}, {Name: strings.Repeat("y", 128)}, {Name: strings.Repeat("z", 128)}},
			"Its tools changed: added " + strings.Repeat("x", 128) + ", " + strings.Repeat("y", 128) + ", " + strings.Repeat("z", 14) + "…"},
	} {
		if got := toolChanges(tt.had, tt.has); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}
