// Package static serves the files that a browser loads for the pages: one style sheet, the scripts
// and the icons. They are embedded and have names that contain a hash of their content, so that
// browsers may cache them for ever.
//
// The package does not depend on pages or agents and reads no disk. Pages ask URL for an address
// and Icon for inline SVG; the router mounts Handler at Prefix.
package static

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
)

// Prefix is the path below which Handler answers requests.
const Prefix = "/static/"

// hashLength is the number of hex digits of the SHA-256 in a name: 48 bits distinguish versions of one
// file.
const hashLength = 12

//go:embed css/*.css js/*.js icons/*.svg
var embedded embed.FS

// sheets are joined into one file, css/app.css, in this order. Each begins with its own @layer, and
// the order decides which rule wins.
var sheets = []string{"css/tokens.css", "css/base.css", "css/components.css", "css/pages.css", "css/form.css", "css/directory.css", "css/agent.css", "css/network.css", "css/goals.css", "css/chat.css", "css/embed.css", "css/print.css"}

// bundle is the name that URL takes for all sheets together.
const bundle = "css/app.css"

// scripts are joined into one file per list, with the name of the first. All other scripts are
// served alone.
var scripts = [][]string{
	{"js/app.js", "js/composing.js", "js/live.js", "js/palette.js", "js/notify.js", "js/share.js"},
	{"js/chat.js", "js/chat-scroll.js", "js/chat-transcript.js", "js/chat-window.js", "js/chat-answers.js", "js/chat-people.js", "js/chat-list.js", "js/chat-outbox.js",
		"js/chat-files.js", "js/chat-mention.js", "js/chat-compose.js", "js/chat-actions.js", "js/chat-last.js", "js/chat-pictures.js", "js/chat-keys.js", "js/chat-start.js"},
	{"js/embed.js", "js/composing.js"},
}

type asset struct {
	url         string
	contentType string
	plain       []byte
	gzipped     []byte // nil when compression does not make it smaller
}

type assets struct {
	byName map[string]*asset // by name, for example "css/app.css"
	byURL  map[string]*asset // by path, for example "/static/css/app.0123456789ab.css"
	icons  map[string]string // SVG source by name, "search" → "<svg …>"
}

// load reads the embedded files once and prepares their answers. The files are part of the binary,
// so an error is a mistake in the source and panics.
var load = sync.OnceValue(func() *assets {
	all := &assets{byName: map[string]*asset{}, byURL: map[string]*asset{}, icons: map[string]string{}}
	all.addAsset(bundle, joinFiles(sheets))
	parts := map[string]bool{}
	for _, names := range scripts {
		all.addAsset(names[0], joinFiles(names))
		for _, name := range names {
			parts[name] = true
		}
	}
	for _, pattern := range []string{"js/*.js", "icons/*.svg"} {
		names, err := fs.Glob(embedded, pattern)
		if err != nil {
			panic("static: " + err.Error())
		}
		for _, name := range names {
			if parts[name] {
				continue
			}
			content := mustRead(name)
			all.addAsset(name, content)
			if strings.HasPrefix(name, "icons/") {
				all.icons[strings.TrimSuffix(path.Base(name), ".svg")] = strings.TrimSpace(string(content))
			}
		}
	}
	return all
})

// joinFiles returns the content of the files in order, each followed by a line end.
func joinFiles(names []string) []byte {
	var b bytes.Buffer
	for _, name := range names {
		b.Write(mustRead(name))
		b.WriteByte('\n')
	}
	return b.Bytes()
}

// Script returns the content of a script, for a handler that serves it at another address. It panics for an unknown name.
func Script(name string) []byte { return mustRead("js/" + name) }

func mustRead(name string) []byte {
	content, err := embedded.ReadFile(name)
	if err != nil {
		panic("static: " + err.Error())
	}
	return content
}

func (all *assets) addAsset(name string, content []byte) {
	sum := sha256.Sum256(content)
	ext := path.Ext(name)
	a := &asset{
		url:         Prefix + strings.TrimSuffix(name, ext) + "." + hex.EncodeToString(sum[:])[:hashLength] + ext,
		contentType: contentType(ext),
		plain:       content,
	}
	var zipped bytes.Buffer
	w, _ := gzip.NewWriterLevel(&zipped, gzip.BestCompression) // neither the constant level nor a Buffer can fail
	_, _ = w.Write(content)
	_ = w.Close()
	if zipped.Len() < len(content) {
		a.gzipped = zipped.Bytes()
	}
	all.byName[name] = a
	all.byURL[a.url] = a
}

// contentType returns the media type of a file suffix. It does not use package mime, because its
// table depends on the machine.
func contentType(ext string) string {
	switch ext {
	case ".css":
		return "text/css; charset=utf-8"
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	default:
		return "application/octet-stream"
	}
}

// URL returns the address of the embedded file name, for example URL("css/app.css") =
// "/static/css/app.0123456789ab.css". It panics when there is no such file, because the name is written
// in our own source.
func URL(name string) string {
	a, ok := load().byName[name]
	if !ok {
		panic("static: no file " + strconv.Quote(name))
	}
	return a.url
}

// Icon returns the SVG source of icons/<name>.svg for inline use in a page, and "" when there is none.
// The icons are decorative: they are hidden from screen readers and take the colour of the text around
// them.
func Icon(name string) string { return load().icons[name] }

// Handler serves the embedded files under the names URL returns, and 404 for every other path. It is safe for
// concurrent use.
func Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a, ok := load().byURL[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, http.StatusText(http.StatusMethodNotAllowed), http.StatusMethodNotAllowed)
			return
		}
		body := a.plain
		h := w.Header()
		h.Set("Content-Type", a.contentType)
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Vary", "Accept-Encoding")
		if a.gzipped != nil && acceptsGzip(r.Header.Get("Accept-Encoding")) {
			h.Set("Content-Encoding", "gzip")
			body = a.gzipped
		}
		h.Set("Content-Length", strconv.Itoa(len(body)))
		if r.Method == http.MethodHead {
			return
		}
		_, _ = w.Write(body) // the client may have disconnected
	})
}

func acceptsGzip(header string) bool {
	for offer := range strings.SplitSeq(header, ",") {
		coding, weight, _ := strings.Cut(strings.TrimSpace(offer), ";")
		if !strings.EqualFold(strings.TrimSpace(coding), "gzip") {
			continue
		}
		q, found := strings.CutPrefix(strings.ReplaceAll(weight, " ", ""), "q=")
		if !found {
			return true
		}
		value, err := strconv.ParseFloat(q, 64)
		return err == nil && value > 0
	}
	return false
}
