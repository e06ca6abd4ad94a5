package mcp

import (
	"net/http"
	"strings"

	"agentsite/internal/ident"
)

// metadataPath is the path of the metadata about credentials (RFC 9728). The metadata of the portal's
// server is at this path, that of another server at this path followed by the server's.
const metadataPath = "/.well-known/oauth-protected-resource"

// serveMetadata describes the credentials that a server accepts: API tokens of this portal, which
// users create on their account page. No authorization server issues them, so none is named. The
// answer is the same for unknown names.
func (d *Handler) serveMetadata(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimPrefix(r.URL.EscapedPath(), metadataPath)
	d.sendCard(w, r, "application/json", map[string]any{
		"resource":                 d.cfg.URL + path,
		"resource_name":            d.cfg.Live.NameOr(d.cfg.Name),
		"resource_documentation":   d.cfg.URL + "/docs/connect",
		"bearer_methods_supported": []string{"header"},
		"scopes_supported":         []string{string(ident.AgentsRead), string(ident.ChatWrite)},
	})
}
