package mcp

import (
	"net/http"
	"strings"

	"agentsite/internal/ident"
)

// metadataPath is where a resource says what credentials it takes (RFC 9728):
// alone for the portal, and before the path of each server.
const metadataPath = "/.well-known/oauth-protected-resource"

// metadataURL is where the metadata of a request's server is.
func (d *Door) metadataURL(r *http.Request) string {
	return d.cfg.URL + metadataPath + r.URL.EscapedPath()
}

// metadata says what credentials a server takes: API tokens of this portal,
// which people make on their account page. There is no authorization server
// that hands them out, so none is named. The answer is the same for names
// that are not there.
func (d *Door) metadata(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimPrefix(r.URL.EscapedPath(), metadataPath)
	d.sendCard(w, r, "application/json", map[string]any{
		"resource":                 d.cfg.URL + path,
		"resource_name":            d.cfg.Name,
		"resource_documentation":   d.cfg.URL + "/docs/connect",
		"bearer_methods_supported": []string{"header"},
		"scopes_supported":         []string{string(ident.AgentsRead), string(ident.ChatWrite)},
	})
}
