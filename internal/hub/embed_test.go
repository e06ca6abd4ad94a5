package hub_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"agentsite/internal/fault"
	"agentsite/internal/hub"
)

func TestEmbedOrigins_AreExactSites(t *testing.T) {
	t.Parallel()
	w := open(t)
	ctx := t.Context()
	w.publish(w.ada, draft("helper"))
	for in, want := range map[string]string{
		"https://www.example.org":        "https://www.example.org",
		" HTTPS://Shop.Example.ORG:443/": "https://shop.example.org",
		"https://intranet":               "https://intranet",
		"https://xn--bcher-kva.example":  "https://xn--bcher-kva.example",
		"https://example.org:8443":       "https://example.org:8443",
		"http://localhost:3000":          "http://localhost:3000",
		"http://app.localhost":           "http://app.localhost",
		"http://127.0.0.1:9":             "http://127.0.0.1:9",
		"https://bücher.example":         "https://xn--bcher-kva.example",
	} {
		a, err := w.Update(ctx, w.ada, "helper", hub.Draft{EmbedOrigins: &[]string{in, "", want}})
		if err != nil || !slices.Equal(a.EmbedOrigins, []string{want}) {
			t.Errorf("%q became %q (%v), want %q", in, a.EmbedOrigins, err, want)
		}
	}
	for _, bad := range []string{
		"example.org", "http://example.org", "https://", "*", "https://*", "https://*.example.org", "'self'", "'none'", "https:", "data:", "null", "ftp://localhost",
		"https://example.org/shop", "https://example.org?x", "https://example.org?", "https://example.org#", "https://a@example.org", "https://example.org; script-src *",
		"https://example.org,https://evil.example", "https://example.org https://evil.example", "https://example.org\nX-Header: 1", "https://example.org:0", "https://example.org:99999",
		"https://example.org:", "https://example.org:1x", "https://192.0.2.7", "https://[2001:db8::1]", "http://[::1]", "http://127.0.0.2", "https://0x7f.1", "https://2130706433",
		"https://example.org.", "https://exa%6dple.org", "https://" + strings.Repeat("a", 300) + ".example", "https://example.org\\@evil.example", "javascript://localhost", "https://-bücher.example", "https://-a.example", "https://a..example",
	} {
		if _, err := w.Update(ctx, w.ada, "helper", hub.Draft{EmbedOrigins: &[]string{bad}}); !fault.Is(err, fault.Invalid) || fault.As(err).Fields["embed_origins"] == "" {
			t.Errorf("%q: %v", bad, err)
		}
	}
	var many []string
	for i := range 21 {
		many = append(many, fmt.Sprintf("https://%d.example.org", i))
	}
	if _, err := w.Update(ctx, w.ada, "helper", hub.Draft{EmbedOrigins: &many}); !fault.Is(err, fault.Invalid) {
		t.Errorf("21 of them: %v", err)
	}
}

func TestEmbeddable_PublicAgentsWhoseOwnerAllowsIt(t *testing.T) {
	t.Parallel()
	w := open(t)
	ctx := t.Context()
	w.publish(w.ada, draft("helper"))
	sites := &[]string{"https://example.org"}
	update := func(d hub.Draft) hub.Agent {
		t.Helper()
		a, err := w.Update(ctx, w.ada, "helper", d)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	refused := func(why string) {
		t.Helper()
		if _, err := w.Embeddable(ctx, "helper"); !fault.Is(err, fault.NotFound) {
			t.Errorf("%s: %v", why, err)
		}
	}
	refused("nobody allowed it")
	allowed := update(hub.Draft{EmbedOrigins: sites})
	if a, err := w.Embeddable(ctx, "helper"); err != nil || a.ID != allowed.ID {
		t.Errorf("allowed: %v", err)
	}
	for _, v := range []hub.Visibility{hub.Unlisted, hub.Private} {
		update(hub.Draft{Visibility: &v})
		refused(string(v))
	}
	public := hub.Public
	update(hub.Draft{Visibility: &public})
	off := update(hub.Draft{EmbedOrigins: &[]string{}})
	refused("it was taken back")
	// An older version does not bring back what was taken off the list.
	back, err := w.Rollback(ctx, w.ada, "helper", allowed.Version, off.Version)
	if err == nil && len(back.EmbedOrigins) > 0 {
		t.Errorf("going back allows %q again", back.EmbedOrigins)
	}
	refused("after going back")
	if _, err := w.Embeddable(ctx, "nobody"); !fault.Is(err, fault.NotFound) {
		t.Errorf("of nobody: %v", err)
	}
}
