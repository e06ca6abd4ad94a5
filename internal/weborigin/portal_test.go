package weborigin

import (
	"slices"
	"strings"
	"testing"
)

func TestPortalOrigins(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ in, want string }{
		{"example.org", "https://example.org"},
		{" Example.org/ ", "https://example.org"},
		{"example.org:8443", "https://example.org:8443"},
		{"example.org:443", "https://example.org"},
		{"https://example.org:443", "https://example.org"},
		{"http://example.org:80/", "http://example.org"},
		{"http://example.org:8080", "http://example.org:8080"},
		{"bücher.example", "https://xn--bcher-kva.example"},
		{"127.0.0.1:8081", "https://127.0.0.1:8081 http://127.0.0.1:8081"},
		{"127.0.0.1", "https://127.0.0.1 http://127.0.0.1"},
		{"localhost:8081", "https://localhost:8081 http://localhost:8081"},
		{"[::1]:8081", "https://[::1]:8081 http://[::1]:8081"},
		{"::1", "https://[::1] http://[::1]"},
		{"https://127.0.0.1:8081", "https://127.0.0.1:8081"},
		{"10.0.0.1:8081", "https://10.0.0.1:8081"},
		{"localhost.example:80", "https://localhost.example:80"},
		{"", ""},
		{"ftp://example.org", ""},
		{"https://", ""},
		{"https://example.org/path", ""},
		{"example.org/path", ""},
		{"example.org?q=1", ""},
		{"me@example.org", ""},
		{"https://me:secret@example.org", ""},
		{"example.org:port", ""},
		{"two words", ""},
		{"javascript:alert(1)", ""},
	} {
		if got := strings.Join(PortalOrigins(tt.in), " "); got != tt.want {
			t.Errorf("%q: %q instead of %q", tt.in, got, tt.want)
		}
	}
	if got := PortalOrigins("example.org"); !slices.Equal(got, []string{"https://example.org"}) {
		t.Error(got)
	}
}
