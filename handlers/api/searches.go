package api

import (
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"

	"agentsite/handlers/request"
	"agentsite/handlers/respond"
	"agentsite/internal/clock"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
)

// apiSearches lists the actor's saved searches, each with its number of new results.
func (d *agentAPI) apiSearches(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	list, err := d.hub.Searches.List(r.Context(), actor,
		func(q string, since time.Time) int { return d.searches.CountNew(r, q, since) })
	if err != nil {
		return err
	}
	out := make([]savedJSON, len(list))
	for i, s := range list {
		out[i] = d.savedJSON(s)
	}
	respond.JSON(w, http.StatusOK, map[string]any{"searches": out, "next_cursor": ""})
	return nil
}

type savedJSON struct {
	ID        string `json:"id"`
	Title     string `json:"title"`
	Query     string `json:"query"`
	Feed      string `json:"feed"`
	New       int    `json:"new"`
	SeenAt    string `json:"seen_at"`
	CreatedAt string `json:"created_at"`
}

func (d *agentAPI) savedJSON(s hub.Saved) savedJSON {
	return savedJSON{s.ID, s.Title, s.Query, d.portal.URL + "/agents/feed?" + s.Query, s.New,
		respond.FormatTime(s.SeenAt), respond.FormatTime(s.CreatedAt)}
}

type saveSearchBody struct {
	Title string `json:"title"`
	Query string `json:"query"`
}

// apiSaveSearch saves a search: {title?, query}. query has the form of the parameters of /search. A
// search that is saved already is answered with 200 instead of 201.
func (d *agentAPI) apiSaveSearch(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	var in saveSearchBody
	if err := request.DecodeBody(w, r, &in); err != nil {
		return err
	}
	s, err := d.searches.Save(r, actor, in.Title, in.Query)
	if err != nil {
		return err
	}
	code := http.StatusCreated
	if clock.Now().Sub(s.CreatedAt) > time.Minute {
		code = http.StatusOK // the service returned an earlier saved search
	}
	respond.JSON(w, code, d.savedJSON(s))
	return nil
}

func (d *agentAPI) apiDeleteSearch(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	if err := d.hub.Searches.Delete(r.Context(), actor, chi.URLParam(r, "id")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
