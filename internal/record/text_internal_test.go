package record

import "testing"

// FuzzPlainAddress has the short way say yes only where the long one does.
func FuzzPlainAddress(f *testing.F) {
	for _, s := range []string{"https://a.example/x/y.json", "https://a.example", "https://1.2.3.4/x", "https://::1/x", "https://[::1]/x", "https://A.example", "https://a.example:443/",
		"https://u@a.example/", "https:///x", "https://a.example/%zz", "https://a.example/x#", "https://a..b/", "https://1.2/", "https://a.example/../.", "http://a.example/"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if _, ok := parseAddress(s); plainAddress(s) && !ok {
			t.Errorf("%q is no address", s)
		}
	})
}

func TestPlainAddress_IsUsed(t *testing.T) {
	if !plainAddress("https://portal-7.example/agents/a-b_c.d/.well-known/agent-card.json") {
		t.Error("an ordinary address goes the long way")
	}
}
