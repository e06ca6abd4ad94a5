package weborigin

import (
	"net/url"
	"testing"
)

func TestASCIIAddress(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ in, want string }{
		{"https://agents.example/a2a", "https://agents.example/a2a"},
		{"https://bücher.example/a2a", "https://xn--bcher-kva.example/a2a"},
		{"https://BÜCHER.example/a2a", "https://xn--bcher-kva.example/a2a"},
		{"https://bu\u0308cher.example/", "https://xn--bcher-kva.example/"}, // composed first
		{"https://straße.example", "https://xn--strae-oqa.example"},
		{"https://例え.jp:8443/%E3%81%82?q=ä#f", "https://xn--r8jz45g.jp:8443/%E3%81%82?q=ä#f"},
		{"https://例え。jp/", "https://xn--r8jz45g.jp/"},
		{"https://агенты.рф", "https://xn--80agg6aza8c.xn--p1ai"},
		{"https://مثال.إختبار/", "https://xn--mgbh0fb.xn--kgbechtv/"},
		{"https://उदाहरण.परीक्षा", "https://xn--p1b6ci4b4b3a.xn--11b5bs3a9aj6g"},
		{"https://agents.example/bücher", "https://agents.example/bücher"},
		{"http://www.bücher.example:80", "http://www.xn--bcher-kva.example:80"},
		{"https://user:pa@bücher.example/", "https://user:pa@xn--bcher-kva.example/"},
		{"bücher.example", "bücher.example"},
		{"https://a\u200bb.example/", "https://ab.example/"}, // a zero-width space is ignored, as in browsers
		{"https://-ü.example/", "https://-ü.example/"},
		{"https://\u0301a.example/", "https://\u0301a.example/"},
		{"https://ü／evil.example/", "https://ü／evil.example/"},
		{"https://ü.example:８０/", "https://ü.example:８０/"},
	} {
		got := ASCIIAddress(tt.in)
		if got != tt.want {
			t.Errorf("%s: %s, want %s", tt.in, got, tt.want)
		}
		if again := ASCIIAddress(got); again != got {
			t.Errorf("%s becomes %s, and then %s", tt.in, got, again)
		}
	}
}

// A host in another script never becomes another part of the address.
func FuzzASCIIAddress(f *testing.F) {
	for _, s := range []string{"https://bücher.example/a?b#c", "https://a@ü:1/", "//ü", "https://ü／x@y/"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		before, err := url.Parse(s)
		if err != nil {
			return
		}
		after, err := url.Parse(ASCIIAddress(s))
		if err != nil {
			t.Fatalf("%q becomes %q: %v", s, ASCIIAddress(s), err)
		}
		if before.Scheme != after.Scheme || before.Path != after.Path || before.RawQuery != after.RawQuery ||
			before.User.String() != after.User.String() || before.Port() != after.Port() {
			t.Fatalf("%q becomes %q", s, after)
		}
	})
}
