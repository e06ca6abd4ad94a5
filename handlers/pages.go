package handlers

import (
	"io"
	"net/http"

	"github.com/go-chi/chi/v5"

	"agentsite/handlers/request"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/static"
)

// Pages declares the routes of the portal's pages. What changes something is
// a POST, and nothing else is.
func (d *Door) Pages(r chi.Router) {
	d.declareDirectory(r)
	d.declareProfile(r)
	d.declareForm(r)
	d.declareOwner(r)
	d.declareLists(r)
	d.declareFiles(r)
	d.declareAdmin(r)
	d.declareAccount(r)
	d.declareManual(r)
	d.embedPages(r)
	d.conversationPages(r)
	d.peerPages(r)
	r.NotFound(d.page(d.noPage))
	r.MethodNotAllowed(d.page(d.noPage))
}

func (d *Door) noPage(http.ResponseWriter, *http.Request, ident.Actor) error {
	return fault.New(fault.NotFound, "There is no such page. It may have been moved or removed.")
}

// pathName is an agent's or person's name from the path.
func pathName(r *http.Request) string { return request.PathParam(r, "name") }

// robots keeps crawlers out of what is personal or endless, and tells those
// that look for agents where the catalog is.
func (d *Door) robots(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "public, max-age=86400")
	io.WriteString(w, "User-agent: *\nDisallow: /chat\nDisallow: /join\nDisallow: /shared\nDisallow: /files\nDisallow: /account\nDisallow: /admin\nDisallow: /api/\nDisallow: /login\nDisallow: /signup\nDisallow: /reset\nDisallow: /agents?\n\nAgentmap: "+d.portal.URL+"/.well-known/ard.json\n")
}

func favicon(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "public, max-age=3600")
	http.Redirect(w, r, static.URL("icons/mark.svg"), http.StatusFound)
}
