package api

import (
	"net/http"

	"agentsite/handlers/request"
	"agentsite/handlers/respond"
	"agentsite/internal/halt"
	"agentsite/internal/ident"
)

// haltAPI answers the routes that pause agents, and stop owners and providers.
type haltAPI struct{ halts *halt.Service }

type haltJSON struct {
	Kind      string `json:"kind"`
	Name      string `json:"name"`
	Operator  bool   `json:"operator"`
	Reason    string `json:"reason,omitempty"`
	CreatedAt string `json:"created_at"`
}

type haltBody struct {
	Reason string `json:"reason"`
}

func (d haltAPI) list(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	list, err := d.halts.List(r.Context(), actor)
	if err != nil {
		return err
	}
	out := make([]haltJSON, len(list))
	for i, h := range list {
		out[i] = haltJSON{string(h.Kind), h.Name, h.Operator, h.Reason, respond.FormatTime(h.CreatedAt)}
	}
	respond.JSON(w, http.StatusOK, map[string]any{"halts": out, "next_cursor": ""})
	return nil
}

// readReason reads the reason in the body, which may be empty.
func readReason(w http.ResponseWriter, r *http.Request) (string, error) {
	var in haltBody
	if r.ContentLength == 0 {
		return "", nil
	}
	err := request.DecodeBody(w, r, &in)
	return in.Reason, err
}

func (d haltAPI) pause(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	reason, err := readReason(w, r)
	if err != nil {
		return err
	}
	return nothing(w, d.halts.Pause(r.Context(), actor, request.PathName(r), reason))
}

func (d haltAPI) resume(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	return nothing(w, d.halts.Resume(r.Context(), actor, request.PathName(r)))
}

// stop returns the handler that stops an owner or a provider, which the parameter of the path names.
func (d haltAPI) stop(kind halt.Kind, param string) request.Handler {
	return func(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
		reason, err := readReason(w, r)
		if err != nil {
			return err
		}
		return nothing(w, d.halts.Stop(r.Context(), actor, kind, request.PathParam(r, param), reason))
	}
}

// keep returns the handler that lets an owner or a provider work again.
func (d haltAPI) keep(kind halt.Kind, param string) request.Handler {
	return func(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
		return nothing(w, d.halts.Continue(r.Context(), actor, kind, request.PathParam(r, param)))
	}
}
