package ident_test

import (
	"strings"
	"testing"

	"agentsite/internal/ident"
)

func TestCheckName(t *testing.T) {
	t.Parallel()
	for name, ok := range map[string]bool{
		"ada": true, "a1": true, "a-": true, "a--b": true, "x" + strings.Repeat("y", 39): true,
		"": false, "a": false, "x" + strings.Repeat("y", 40): false,
		"Ada": false, "1ada": false, "-ada": false, "a_b": false, "a.b": false, "a b": false, "a@b": false, "a/b": false, "ada\n": false, "ad\x00a": false,
		"admin": false, "api": false, "me": false, "well-known": false, "everyone": false, "login": false, "agentsite": false,
		"admins":            true,
		"аdа":               false, // Cyrillic
		"a\u200bda":         false, // zero width space
		"ada\u0301":         false, // combining mark
		"ａｄａ":               false, // full width
		"\u212aate":         false, // Kelvin sign
		"ſam":               false, // long s
		"\u202eada":         false,
		"\xffada":           false,
		"adminı":            false,
		"a\u00adda":         false,
		"a" + "\u2010" + "": false,
	} {
		if err := ident.CheckName(name); (err == nil) != ok {
			t.Errorf("%+q: %v", name, err)
		}
	}
}

func TestParseHandle(t *testing.T) {
	t.Parallel()
	const own = "home.example:8443"
	for in, want := range map[string]string{
		"ada": "ada", "@ada": "ada", " ADA ": "ada", "ada@" + own: "ada", "@Ada@HOME.example:8443": "ada",
		"ada@other.example": "ada@other.example", "@ada@Other.Example": "ada@other.example", "ada@home.example": "ada@home.example",
		"ada@home.example:8443@evil.example": "ada@home.example:8443@evil.example",
	} {
		h, ok := ident.ParseHandle(in, own)
		if !ok || h.String() != want {
			t.Errorf("%q: %v %v, want %s", in, h, ok, want)
		}
	}
	for _, in := range []string{"", "@", "  ", "@@x", "@home.example@", strings.Repeat("x", 297)} {
		if h, ok := ident.ParseHandle(in, own); ok && h.Portal == "" && ident.CheckName(h.Name) == nil {
			t.Errorf("%q was read as %v", in, h)
		}
	}
}
