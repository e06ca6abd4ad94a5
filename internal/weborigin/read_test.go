package weborigin

import "testing"

func TestReadName(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		" bücher.example ": "xn--bcher-kva.example", "BÜCHER.example:8443": "xn--bcher-kva.example:8443",
		"ada@Bücher.example": "ada@xn--bcher-kva.example", "@bücher.example": "@xn--bcher-kva.example",
		"ada@B.example": "ada@b.example", "calc": "calc", "": "", "https://bücher.example/Ä": "https://xn--bcher-kva.example/Ä",
		"https://a@bücher.example": "https://a@xn--bcher-kva.example", "jörg@bücher.example": "jörg@xn--bcher-kva.example",
		"例え。jp": "xn--r8jz45g.jp", "ABCDEF": "ABCDEF", "/ü": "/ü",
	} {
		if got := ReadName(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	for in, want := range map[string]string{" Bücher.Example:80": "xn--bcher-kva.example:80", "A.example": "a.example",
		"api.bücher.example": "api.xn--bcher-kva.example", "": ""} {
		if got := ReadHost(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
