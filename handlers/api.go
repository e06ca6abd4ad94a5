package handlers

import (
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"

	"agentsite/internal/chat"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
)

// API declares the routes of /api/v1. Each has an operation in one of the
// openapi_*.go, which describe says together.
func (d *Door) API(r chi.Router) {
	r.Get("/openapi.json", d.api(d.apiOpenAPI))

	r.Get("/search", d.api(d.apiSearch))
	r.Get("/suggest", d.api(d.apiSuggest))
	r.Get("/searches", d.api(d.apiSearches))
	r.Post("/searches", d.api(d.apiSaveSearch))
	r.Delete("/searches/{id}", d.api(d.apiDeleteSearch))
	r.Get("/notices", d.api(d.apiNotices))
	r.Post("/notices/read", d.api(d.apiReadNotices))
	r.Get("/domains", d.api(d.apiDomains))
	r.Post("/domains", d.api(d.apiProveDomain))
	r.Delete("/domains/{domain}", d.api(d.apiRemoveDomain))
	r.Post("/import", d.api(d.apiImport))
	r.Get("/agents", d.api(d.apiAgents))
	r.Post("/agents", d.api(d.apiPublish))
	r.Get("/agents/{name}", d.api(d.apiAgent))
	r.Put("/agents/{name}", d.api(d.apiPutAgent))
	r.Patch("/agents/{name}", d.api(d.apiUpdateAgent))
	r.Delete("/agents/{name}", d.api(d.apiDeleteAgent))
	r.Get("/agents/{name}/versions", d.api(d.apiVersions))
	r.Post("/agents/{name}/check", d.api(d.apiCheckAgent))
	r.Get("/agents/{name}/versions/{version}", d.api(d.apiVersion))
	r.Post("/agents/{name}/rollback", d.api(d.apiRollback))
	r.Get("/agents/{name}/history", d.api(d.apiHistory))
	r.Get("/agents/{name}/record", d.api(d.apiRecord))
	r.Get("/agents/{name}/stats", d.api(d.apiStats))
	r.Get("/agents/{name}/calls/{task}", d.api(d.apiCall))
	r.Get("/agents/{name}/owners", d.api(d.apiOwners))
	r.Post("/agents/{name}/owners", d.api(d.apiAddOwner))
	r.Delete("/agents/{name}/owners/{owner}", d.api(d.apiRemoveOwner))
	r.Post("/agents/{name}/offer", d.api(d.apiOffer))
	r.Get("/agents/{name}/proof", d.api(d.apiProof))
	r.Post("/agents/{name}/prove", d.api(d.apiProve))
	r.Post("/agents/{name}/report", d.api(d.apiReport))
	r.Post("/agents/{name}/try", d.api(d.apiTry))
	r.Get("/offers", d.api(d.apiOffers))
	r.Post("/offers/{name}", d.api(d.apiAnswerOffer))

	d.chatAPI(r)
	d.liveAPI(r)

	r.Get("/tasks", d.api(d.apiTasks))
	r.Get("/tasks/{id}", d.api(d.apiTask))
	r.Post("/tasks/{id}/cancel", d.api(d.apiCancelTask))
	r.Post("/tasks/{id}/input", d.api(d.apiTaskInput))

	r.Get("/webhooks", d.api(d.apiWebhooks))
	r.Post("/webhooks", d.api(d.apiAddWebhook))
	r.Get("/webhooks/{id}", d.api(d.apiWebhook))
	r.Patch("/webhooks/{id}", d.api(d.apiSetWebhook))
	r.Delete("/webhooks/{id}", d.api(d.apiDropWebhook))
	r.Post("/webhooks/{id}/test", d.api(d.apiTestWebhook))
	r.Get("/webhooks/{id}/deliveries", d.api(d.apiDeliveries))

	Peers{d.peers}.routes(r, d.api)
	r.Get("/network", d.api(d.apiNetwork))

	r.Get("/me", d.api(d.apiMe))
	r.Get("/tokens", d.api(d.apiTokens))
	r.Post("/tokens", d.api(d.apiCreateToken))
	r.Delete("/tokens/{id}", d.api(d.apiRevokeToken))

	r.NotFound(d.api(d.apiNotFound))
	r.MethodNotAllowed(d.api(d.apiMethod))
}

// chatAPI declares the routes of conversations.
func (d *Door) chatAPI(r chi.Router) {
	r.Get("/conversations", d.api(d.apiConversations))
	r.Post("/conversations", d.api(d.apiCreateConversation))
	r.Get("/conversations/search", d.api(d.apiSearchMessages))
	r.Get("/conversations/{id}", d.api(d.apiConversation))
	r.Patch("/conversations/{id}", d.api(d.apiSetConversation))
	r.Delete("/conversations/{id}", d.api(d.apiDeleteConversation))
	r.Get("/conversations/{id}/messages", d.api(d.apiMessages))
	r.Post("/conversations/{id}/messages", d.api(d.apiPost))
	r.Get("/conversations/{id}/messages/{seq}", d.api(d.apiMessage))
	r.Patch("/conversations/{id}/messages/{seq}", d.api(d.apiEdit))
	r.Delete("/conversations/{id}/messages/{seq}", d.api(d.apiUnsay))
	r.Get("/conversations/{id}/messages/{seq}/edits", d.api(d.apiEdits))
	r.Put("/conversations/{id}/messages/{seq}/reactions/{emoji}", d.api(d.apiReact))
	r.Delete("/conversations/{id}/messages/{seq}/reactions/{emoji}", d.api(d.apiReact))
	r.Post("/conversations/{id}/messages/{seq}/again", d.api(d.apiAgain))
	r.Post("/conversations/{id}/branch", d.api(d.apiBranch))
	r.Post("/conversations/{id}/members", d.api(d.apiInvite))
	r.Delete("/conversations/{id}/members", d.api(d.apiRemoveMember))
	r.Patch("/conversations/{id}/members/{handle}", d.api(d.apiSetRole))
	r.Delete("/conversations/{id}/members/{handle}", d.api(d.apiRemoveMember))
	r.Get("/conversations/{id}/links", d.api(d.apiLinks))
	r.Post("/conversations/{id}/links", d.api(d.apiNewLink))
	r.Delete("/conversations/{id}/links/{link}", d.api(d.apiDropLink))
	r.Get("/conversations/{id}/disclosures", d.api(d.apiDisclosures))
	r.Post("/conversations/{id}/disclosures", d.api(d.apiDisclose))
	r.Post("/conversations/{id}/read", d.api(d.apiMarkRead))
	r.Post("/conversations/{id}/typing", d.api(d.apiTyping))
	r.Post("/conversations/{id}/stop", d.api(d.apiStop))
	r.Get("/conversations/{id}/export", d.api(d.apiExport))

	r.Get("/join/{secret}", d.api(d.apiInvitation))
	r.Post("/join/{secret}", d.api(d.apiJoin))
	r.Get("/shared/{secret}", d.api(d.apiShared))

	r.Post("/files", d.api(d.apiPutFile))
	r.Get("/files/{hash}", d.api(d.file))
	r.Get("/files/{hash}/preview", d.api(d.filePreview))
	r.Get("/account/chat", d.api(d.apiPrefs))
	r.Put("/account/chat", d.api(d.apiSetPrefs))
}

func (d *Door) apiMethod(w http.ResponseWriter, r *http.Request, _ ident.Actor) error {
	w.Header().Set("Cache-Control", "no-store")
	var b errorBody
	b.Error.RequestID = middleware.GetReqID(r.Context())
	b.Error.Kind, b.Error.Message = fault.Invalid, r.Method+" is not possible here. The API is described at "+d.portal.URL+"/docs/api."
	writeJSON(w, http.StatusMethodNotAllowed, b)
	return nil
}

// pointCursor encodes a place in a list ordered by time and id.
func pointCursor(p chat.Point) string {
	return base64.RawURLEncoding.EncodeToString([]byte(strconv.FormatInt(p.At.UnixMilli(), 10) + " " + p.ID))
}

func parsePoint(s string) (chat.Point, error) {
	if s == "" {
		return chat.Point{}, nil
	}
	bad := fault.Field("cursor", "is not a cursor of this list")
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil {
		return chat.Point{}, bad
	}
	at, id, _ := strings.Cut(string(b), " ")
	ms, err := strconv.ParseInt(at, 10, 64)
	if err != nil || !ident.ValidID(id) {
		return chat.Point{}, bad
	}
	return chat.Point{At: time.UnixMilli(ms), ID: id}, nil
}
