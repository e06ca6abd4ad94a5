package openai

import (
	"cmp"
	"net/http"
	"strings"

	"agentsite/handlers/request"
	"agentsite/handlers/respond"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	wire "agentsite/internal/openai"
)

// maxModels bounds the list of models, because programs show it as a menu.
const maxModels = 500

func (d *server) listModels(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	agents, err := d.Hub.TalkableList(r.Context(), actor, maxModels)
	if err != nil {
		return err
	}
	list := wire.ModelList{Object: "list", Data: make([]wire.Model, len(agents))}
	for i, a := range agents {
		list.Data[i] = d.modelOf(a)
	}
	return respond.WriteJSON(w, http.StatusOK, list)
}

func (d *server) serveModel(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	a, err := d.Hub.Talkable(r.Context(), actor, agentName(request.PathParam(r, "id")))
	if err != nil {
		return noModel(err)
	}
	return respond.WriteJSON(w, http.StatusOK, d.modelOf(a))
}

func (d *server) modelOf(a hub.Agent) wire.Model {
	return wire.Model{ID: a.Handle(), Object: "model", Created: a.CreatedAt.Unix(),
		OwnedBy: cmp.Or(a.OwnerName, d.Host), Name: cmp.Or(a.Title, a.Name), Description: a.Description}
}

// agentName returns the handle in the id of a model, with or without the prefix "agent/".
func agentName(model string) string { return strings.TrimPrefix(model, "agent/") }

// noModel converts a NotFound error to the API's error for an unknown model. Hidden agents get the same
// error, so that their existence stays secret.
func noModel(err error) error {
	if !fault.Is(err, fault.NotFound) {
		return err
	}
	return &problem{status: http.StatusNotFound,
		body: wire.Error{Type: invalidRequest, Param: "model", Code: "model_not_found", Message: fault.As(err).Safe}}
}
