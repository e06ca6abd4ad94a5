// Package profiles has the API route of the profiles of people.
package profiles

import (
	"net/http"

	"github.com/go-chi/chi/v5"

	"agentsite/handlers/request"
	"agentsite/handlers/respond"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/profile"
)

// API answers the route. Create it with New.
type API struct {
	profiles *profile.Service
	sessions *request.Sessions
}

// New returns the API over the service of profiles.
func New(profiles *profile.Service, sessions *request.Sessions) *API { return &API{profiles, sessions} }

// Routes declares the route below /api/v1.
func (d *API) Routes(r chi.Router) { r.Get("/people/{name}", d.sessions.API(d.getPerson)) }

// PersonJSON is a person as the caller may see it. DisplayName, Picture and Packages are empty for others unless Shown.
type PersonJSON struct {
	Name        string `json:"name"`
	DisplayName string `json:"display_name,omitempty"`
	// Picture is the path of a PNG on this portal.
	Picture  string   `json:"picture,omitempty"`
	Shown    bool     `json:"shown"`
	Agents   []string `json:"agents"`
	Packages []string `json:"packages"`
}

func (d *API) getPerson(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	if !actor.May(ident.AgentsRead) {
		return fault.New(fault.Forbidden, "%s", ident.AgentsRead.DescribeMissing())
	}
	p, err := d.profiles.Show(r.Context(), actor, request.PathParam(r, "name"))
	if err != nil {
		return err
	}
	out := PersonJSON{Name: p.Name, DisplayName: p.DisplayName, Shown: p.Shown,
		Agents: append([]string{}, p.Agents...), Packages: append([]string{}, p.Packages...)}
	if p.Picture != "" {
		out.Picture = "/people/" + p.Name + "/picture?v=" + p.Picture
	}
	respond.JSON(w, http.StatusOK, out)
	return nil
}
