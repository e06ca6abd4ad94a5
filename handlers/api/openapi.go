package api

import (
	"cmp"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"go.yaml.in/yaml/v3"

	"agentsite/handlers/address"
	"agentsite/internal/ident"
)

// openapiYAML is the OpenAPI document. The comment at its start names the parts that loadTemplate leaves out and that
// newDocument fills in.
//
//go:embed openapi.yaml
var openapiYAML []byte

// loadTemplate returns the OpenAPI document as JSON with its placeholders. Reading YAML takes some milliseconds and few
// callers ask for the document, so it is read when it is first needed.
var loadTemplate = sync.OnceValues(func() (string, error) {
	var fields map[string]any
	if err := yaml.Unmarshal(openapiYAML, &fields); err != nil {
		return "", err
	}
	delete(fields, "x-errors")
	b, err := json.Marshal(fields)
	return string(b), err
})

// document is the OpenAPI document with its entity tag, so that clients can ask whether it changed.
type document struct {
	json string
	tag  string
	err  error
}

// newDocument fills in the address and the version of a portal and the name of its session cookie.
func newDocument(portal address.Portal, cookieName string) document {
	template, err := loadTemplate()
	if err != nil {
		return document{err: fmt.Errorf("read openapi.yaml: %w", err)}
	}
	text := strings.NewReplacer(
		"${portal}", escapeJSON(portal.URL),
		"${version}", escapeJSON(cmp.Or(portal.Version, "0")),
		"${cookie}", escapeJSON(cmp.Or(cookieName, "session")),
	).Replace(template)
	sum := sha256.Sum256([]byte(text))
	return document{json: text, tag: `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`}
}

// escapeJSON returns text with JSON escapes but without quotes, to be put into a JSON string.
func escapeJSON(text string) string {
	b, _ := json.Marshal(text) // encoding a string cannot fail
	return string(b[1 : len(b)-1])
}

// apiOpenAPI answers with the OpenAPI document, which is the same for all callers.
func (d *API) apiOpenAPI(w http.ResponseWriter, r *http.Request, _ ident.Actor) error {
	d.describing.Do(func() { d.document = newDocument(d.portal, d.cookieName) })
	doc := d.document
	if doc.err != nil {
		return fmt.Errorf("describe the API: %w", doc.err)
	}
	h := w.Header()
	h.Set("Content-Type", "application/json; charset=utf-8")
	h.Set("Cache-Control", "public, max-age=300")
	h.Set("ETag", doc.tag)
	http.ServeContent(w, r, "", time.Time{}, strings.NewReader(doc.json))
	return nil
}
