package spending

import (
	"net/http"

	"agentsite/handlers/request"
	"agentsite/handlers/respond"
	"agentsite/internal/ident"
	"agentsite/internal/models"
	"agentsite/internal/usage"
)

// ModelJSON is a model as the API shows it, without its key.
type ModelJSON struct {
	Name      string       `json:"name"`
	Provider  string       `json:"provider"`
	URL       string       `json:"url,omitempty"`
	Model     string       `json:"model"`
	Fallback  string       `json:"fallback,omitempty"`
	Price     *usage.Price `json:"price,omitempty"`
	Portal    bool         `json:"portal"`
	HasKey    bool         `json:"has_key"`
	CreatedAt string       `json:"created_at,omitempty"`
	UpdatedAt string       `json:"updated_at,omitempty"`
}

func toJSON(m models.Model) ModelJSON {
	j := ModelJSON{Name: m.Name, Provider: string(m.Provider), URL: m.URL, Model: m.Model, Fallback: m.Fallback,
		Portal: m.IsPortal(), HasKey: m.HasKey, CreatedAt: respond.FormatTime(m.CreatedAt),
		UpdatedAt: respond.FormatTime(m.UpdatedAt)}
	if m.Price != (usage.Price{}) {
		j.Price = &m.Price
	}
	return j
}

// ModelBody is a change of a model: fields that are left out stay as they are.
type ModelBody struct {
	Name     *string          `json:"name"`
	Provider *models.Provider `json:"provider"`
	URL      *string          `json:"url"`
	Model    *string          `json:"model"`
	Fallback *string          `json:"fallback"`
	Price    *usage.Price     `json:"price"`
	Key      *string          `json:"key"`
}

func (b ModelBody) draft() models.Draft {
	return models.Draft{Name: b.Name, Provider: b.Provider, URL: b.URL, Model: b.Model, Fallback: b.Fallback,
		Price: b.Price, Key: b.Key}
}

// NewModelBody is a new model.
type NewModelBody struct {
	ModelBody
	// Portal makes it a model of the portal, which only an operator may.
	Portal bool `json:"portal"`
}

func (a *API) list(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	list, err := a.models.List(r.Context(), actor)
	if err != nil {
		return err
	}
	out := make([]ModelJSON, len(list))
	for i, m := range list {
		out[i] = toJSON(m)
	}
	respond.JSON(w, http.StatusOK, map[string]any{"models": out, "next_cursor": ""})
	return nil
}

func (a *API) create(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	var in NewModelBody
	if err := request.DecodeBody(w, r, &in); err != nil {
		return err
	}
	m, err := a.models.Create(r.Context(), actor, in.draft(), in.Portal)
	if err != nil {
		return err
	}
	respond.JSON(w, http.StatusCreated, toJSON(m))
	return nil
}

func (a *API) change(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	var in ModelBody
	if err := request.DecodeBody(w, r, &in); err != nil {
		return err
	}
	m, err := a.models.Update(r.Context(), actor, request.PathParam(r, "name"), in.draft())
	if err != nil {
		return err
	}
	respond.JSON(w, http.StatusOK, toJSON(m))
	return nil
}

func (a *API) remove(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	err := a.models.Delete(r.Context(), actor, request.PathParam(r, "name"))
	if err == nil {
		w.WriteHeader(http.StatusNoContent)
	}
	return err
}
