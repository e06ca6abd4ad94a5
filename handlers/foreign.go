package handlers

import (
	"net/http"
	"slices"
	"strings"

	"agentsite/handlers/respond"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
)

// Foreign refuses a cross-site browser request with 403 in the error form of the protocol that the path
// belongs to. It is called before routing, so the protocol is found from the path alone.
func (h *Routes) Foreign(w http.ResponseWriter, r *http.Request) {
	err := fault.New(fault.Forbidden, "Another site asked for this, so it was refused. Open this portal itself and try again, or ask from a program that is no web page.")
	switch doorAt(r.URL.Path) {
	case pageDoor:
		h.site.PageError(w, r, ident.Actor{Kind: ident.Guest}, err)
	case rpcDoor: // the request's id is null, because the body was not read
		h.foreign(w, r, err, map[string]any{"jsonrpc": "2.0", "id": nil,
			"error": map[string]any{"code": -32600, "message": err.Safe}})
	case peerDoor:
		h.foreign(w, r, err, map[string]any{"error": map[string]string{"kind": string(err.Kind), "reason": "denied",
			"message": err.Safe}})
	case ardDoor:
		h.foreign(w, r, err, map[string]string{"errorCode": "UNAUTHENTICATED", "message": err.Safe})
	default:
		respond.Error(w, r, h.log, err)
	}
}

func (h *Routes) foreign(w http.ResponseWriter, r *http.Request, err error, body any) {
	_, code := respond.PrepareError(w, r, h.log, err)
	respond.JSON(w, code, body)
}

type doorKind int

const (
	pageDoor doorKind = iota
	apiDoor           // the error form of the API, which OpenAI clients understand too
	rpcDoor           // JSON-RPC error objects
	ardDoor
	peerDoor
)

// doorAt returns the protocol of a path, which decides the form of its errors. Unknown paths are pages.
func doorAt(path string) doorKind {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	if parts[0] == "agents" && len(parts) >= 3 && (parts[2] == "a2a" || parts[2] == "mcp") {
		parts = parts[2:]
	}
	switch first := parts[0]; {
	case first == "mcp", first == "a2a" && len(parts) == 1:
		return rpcDoor
	case first == "ard":
		return ardDoor
	case first == "peering":
		return peerDoor
	case slices.Contains([]string{"api", "v1", "a2a", "v0", "v0.1", "link", ".well-known"}, first):
		return apiDoor
	}
	return pageDoor
}
