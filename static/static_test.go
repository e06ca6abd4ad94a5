package static

import (
	"compress/gzip"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
)

func get(path, acceptEncoding string) *http.Response {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	r.Header.Set("Accept-Encoding", acceptEncoding)
	w := httptest.NewRecorder()
	Handler().ServeHTTP(w, r)
	return w.Result()
}

func body(t *testing.T, r *http.Response) string {
	t.Helper()
	defer r.Body.Close()
	var reader io.Reader = r.Body
	if r.Header.Get("Content-Encoding") == "gzip" {
		zipped, err := gzip.NewReader(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		reader = zipped
	}
	content, err := io.ReadAll(reader)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func TestURL_CarriesTheHashOfTheContent(t *testing.T) {
	for _, name := range []string{"css/app.css", "js/app.js", "js/chat.js", "icons/mark.svg"} {
		if got := URL(name); !regexp.MustCompile(`^/static/[a-z]+/[a-z]+\.[0-9a-f]{12}\.(css|js|svg)$`).MatchString(got) {
			t.Errorf("URL(%q) = %q", name, got)
		}
	}
}

func TestHandler_ServesTheSamePlainAndZipped(t *testing.T) {
	types := map[string]string{"css/app.css": "text/css; charset=utf-8", "js/app.js": "text/javascript; charset=utf-8", "icons/mark.svg": "image/svg+xml"}
	for name, want := range types {
		plain, zipped := get(URL(name), ""), get(URL(name), "br, gzip;q=0.8")
		if got := plain.Header.Get("Content-Type"); got != want {
			t.Errorf("%s: Content-Type %q", name, got)
		}
		if got := plain.Header.Get("Cache-Control"); !strings.Contains(got, "immutable") {
			t.Errorf("%s: Cache-Control %q", name, got)
		}
		if plain.Header.Get("Content-Encoding") != "" || zipped.Header.Get("Content-Encoding") != "gzip" {
			t.Errorf("%s: encodings %q and %q", name, plain.Header.Get("Content-Encoding"), zipped.Header.Get("Content-Encoding"))
		}
		if one, other := body(t, plain), body(t, zipped); one == "" || one != other {
			t.Errorf("%s: %d bytes plain, %d unzipped", name, len(one), len(other))
		}
	}
}

func TestHandler_HonoursRefusedGzip(t *testing.T) {
	if got := get(URL("css/app.css"), "gzip;q=0").Header.Get("Content-Encoding"); got != "" {
		t.Errorf("Content-Encoding %q", got)
	}
}

func TestHandler_KnowsOnlyHashedNames(t *testing.T) {
	for _, path := range []string{"/static/", "/static/css/app.css", "/static/css/app.000000000000.css", "/static/static.go", "/static/../go.mod"} {
		if got := get(path, "").StatusCode; got != http.StatusNotFound {
			t.Errorf("%s: %d", path, got)
		}
	}
}

func TestHandler_RefusesOtherMethods(t *testing.T) {
	w := httptest.NewRecorder()
	Handler().ServeHTTP(w, httptest.NewRequest(http.MethodPost, URL("js/app.js"), nil))
	if w.Code != http.StatusMethodNotAllowed {
		t.Error(w.Code)
	}
}

// TestSheets_NeedNothingFromElsewhere keeps the pages within img-src 'self' and style-src 'self'.
func TestSheets_NeedNothingFromElsewhere(t *testing.T) {
	css := body(t, get(URL("css/app.css"), ""))
	for _, word := range []string{"@import", "url("} {
		if strings.Contains(css, word) {
			t.Errorf("the style sheet has %s", word)
		}
	}
	if open, closed := strings.Count(css, "{"), strings.Count(css, "}"); open != closed {
		t.Errorf("%d { and %d }", open, closed)
	}
}

func TestIcon_IsInlineSVG(t *testing.T) {
	if got := Icon("search"); !strings.HasPrefix(got, "<svg ") || !strings.Contains(got, `aria-hidden="true"`) {
		t.Error(got)
	}
	if got := Icon("no-such-icon"); got != "" {
		t.Error(got)
	}
}

func TestScripts_AskOneFunctionAboutInputMethods(t *testing.T) {
	names, err := fs.Glob(embedded, "js/*.js")
	if err != nil {
		t.Fatal(err)
	}
	handler := regexp.MustCompile(`(?s)addEventListener\("keydown", \(event\) => \{(.*?)\n {2,6}\}`)
	handlers := 0
	for _, name := range names {
		script := string(mustRead(name))
		if name == "js/composing.js" {
			continue
		}
		for _, own := range []string{".isComposing", "keyCode", "compositionend"} {
			if strings.Contains(script, own) {
				t.Errorf("%s decides with %q by itself", name, own)
			}
		}
		for _, m := range handler.FindAllStringSubmatch(script, -1) {
			if strings.Contains(m[1], `"Enter"`) {
				handlers++
				if !strings.Contains(m[1], "isComposing(event)") {
					t.Errorf("%s: a handler of Enter does not ask isComposing:%s", name, m[1])
				}
			}
		}
	}
	if handlers < 6 {
		t.Errorf("%d handlers of Enter were found", handlers)
	}
}
