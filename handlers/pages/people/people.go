// Package people contains the pages about people: their profile and their picture. The parts that an actor may see are
// decided by package profile.
package people

import (
	"net/http"
	"strconv"

	"github.com/go-chi/chi/v5"

	"agentsite/handlers/pages"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/profile"
	"agentsite/templates"
)

// Pages are the pages about people. Create them with New.
type Pages struct {
	profiles *profile.Service
	hub      *hub.Service
	site     *pages.Site
}

// New returns the pages about people.
func New(profiles *profile.Service, agents *hub.Service, site *pages.Site) *Pages {
	return &Pages{profiles: profiles, hub: agents, site: site}
}

// Routes declares the routes about people.
func (d *Pages) Routes(r chi.Router) {
	r.Get("/people/{name}", d.site.Page(d.showPerson))
	r.Get("/people/{name}/picture", d.site.Page(d.sendPicture))
}

func (d *Pages) showPerson(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	p, err := d.profiles.Show(r.Context(), actor, chi.URLParam(r, "name"))
	if err != nil {
		return err
	}
	v := templates.PersonView{Name: p.Name, DisplayName: p.DisplayName, Handle: d.site.FullHandle(p.Name),
		Own: p.Own, Shown: p.Shown, Packages: p.Packages}
	if p.Picture != "" {
		v.Picture = templates.PersonPictureHref(p.Name, p.Picture)
	}
	for _, name := range p.Agents {
		a, err := d.hub.Get(r.Context(), actor, name)
		if fault.Is(err, fault.NotFound) {
			continue // it was removed meanwhile
		}
		if err != nil {
			return err
		}
		v.Agents = append(v.Agents, d.site.Card(a))
	}
	title := p.Name
	if p.DisplayName != "" {
		title = p.DisplayName
	}
	return d.site.Render(w, r, http.StatusOK, templates.Person(d.site.Frame(r, actor, title), v))
}

// sendPicture answers with the picture of a person. Caches keep it for an hour, so that a hidden picture disappears.
func (d *Pages) sendPicture(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	png, hash, err := d.profiles.OpenPicture(r.Context(), actor, chi.URLParam(r, "name"))
	if err != nil {
		return err
	}
	age := "private, max-age=60"
	if r.URL.Query().Get("v") == hash {
		age = "private, max-age=3600"
	}
	h := w.Header()
	h.Set("Content-Type", "image/png")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox; frame-ancestors 'none'")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", age)
	h.Set("Content-Length", strconv.Itoa(len(png)))
	w.Write(png) // an error means that the client has disconnected
	return nil
}
