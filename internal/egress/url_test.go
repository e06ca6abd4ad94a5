package egress

import (
	"net/netip"
	"net/url"
	"strings"
	"testing"
)

func TestCheckURL_Normalises(t *testing.T) {
	c := New(Config{})
	for in, want := range map[string]string{
		"HTTPS://Example.COM:443/A?b=c#frag": "https://example.com/A?b=c",
		"http://example.com:80":              "http://example.com",
		"http://example.com:8080/":           "http://example.com:8080/",
		"https://[2606:4700::1111]:443/x":    "https://[2606:4700::1111]/x",
		"http://xn--bcher-kva.example/":      "http://xn--bcher-kva.example/",
	} {
		u, err := c.CheckURL(in)
		if err != nil || u.String() != want {
			t.Errorf("%s: %v %v", in, u, err)
		}
	}
	for _, in := range []string{
		"", "example.com", "//example.com", "javascript:alert(1)", "file:///etc/passwd", "http:example.com", "http://",
		"http://?x", "http://-bücher.example/", "http://example.com:0/", "http://example.com:99999/", "http://example.com:25/",
		"http://exa mple.com", "http://example.com/\r\nX: y", "http://" + strings.Repeat("a.", 200) + "com", "http://" + strings.Repeat("a", 3000),
		"http://u@example.com", "http://u:p@example.com", "gopher://example.com", "http://example..com", "http://.example.com",
	} {
		if u, err := c.CheckURL(in); err == nil {
			t.Errorf("%q passed as %v", in, u)
		} else if Reason(err) == "" || CodeOf(err) != BadURL {
			t.Errorf("%q: %v", in, err)
		}
	}
}

func FuzzCheckURL(f *testing.F) {
	for _, h := range forms {
		f.Add("http://" + h + "/")
	}
	f.Add("https://example.com:8443/a/b?c=d#e")
	c := New(Config{})
	f.Fuzz(func(t *testing.T, s string) {
		u, err := c.CheckURL(s)
		if err != nil {
			if Reason(err) == "" {
				t.Errorf("no reason for %q", s)
			}
			return
		}
		if u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.Hostname() == "" {
			t.Errorf("%q passed as %q", s, u)
		}
		again, err := url.Parse(u.String())
		if err != nil || again.Host != u.Host || again.Scheme != u.Scheme {
			t.Errorf("%q reads differently: %v %v", u, again, err)
		}
		if _, err := c.CheckURL(u.String()); err != nil && len(u.String()) <= maxURL {
			t.Errorf("%q is not stable: %v", u, err)
		}
		if a, err := netip.ParseAddr(u.Hostname()); err == nil && !c.policy.allowsAddr(a) {
			t.Errorf("%q passed with the private address %v", s, a)
		}
	})
}
