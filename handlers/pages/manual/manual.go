// Package manual has the pages of the manual, the page about the portal, and files for crawlers and
// browsers such as robots.txt.
package manual

import (
	"io"
	"net/http"

	"github.com/go-chi/chi/v5"

	"agentsite/docs"
	"agentsite/handlers/address"
	"agentsite/handlers/markup"
	"agentsite/handlers/pages"
	"agentsite/internal/account"
	"agentsite/internal/adjust"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/static"
	"agentsite/templates"
)

// Pages has the manual, the page about the portal, and files for crawlers and browsers. Create it with
// New.
type Pages struct {
	portal   address.Portal
	accounts *account.Service
	hub      *hub.Service
	site     *pages.Site
	markup   *markup.Renderer
	live     *adjust.Snapshot
}

// New returns the pages of the manual. Their routes are declared by Routes.
func New(portal address.Portal, accounts *account.Service, agents *hub.Service, site *pages.Site,
	renderer *markup.Renderer, live *adjust.Snapshot) *Pages {
	return &Pages{portal: portal, accounts: accounts, hub: agents, site: site, markup: renderer, live: live}
}

// showManual shows a page of the manual; /docs shows the first one. An unknown page is NotFound.
func (d *Pages) showManual(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	stem := chi.URLParam(r, "*")
	if stem == "" {
		stem = "index"
	}
	page, ok := docs.FindPage(stem)
	if !ok {
		return fault.New(fault.NotFound, "The manual has no page %.80q. Its pages are listed at /docs.", stem)
	}
	source := docs.WithAddress(page.Stem, page.Source, d.portal.URL)
	v := templates.DocsView{Title: page.Title, Content: d.markup.Doc(source), Headings: d.markup.Headings(source)}
	all := docs.Pages()
	link := func(p docs.Page) templates.Link {
		if p.Stem == "index" {
			return templates.Link{Label: p.Title, Href: "/docs"}
		}
		return templates.Link{Label: p.Title, Href: "/docs/" + p.Stem}
	}
	for i, p := range all {
		l := link(p)
		v.Pages = append(v.Pages, templates.DocLink{Label: l.Label, Href: l.Href, Current: p.Stem == stem})
		if p.Stem != stem {
			continue
		}
		if i > 0 {
			prev := link(all[i-1])
			v.Prev = &prev
		}
		if i+1 < len(all) {
			next := link(all[i+1])
			v.Next = &next
		}
	}
	p := d.site.Frame(r, actor, page.Title)
	p.Description = d.markup.Line(string(afterTitle(page.Source)))
	return d.site.Render(w, r, http.StatusOK, templates.Docs(p, v))
}

// afterTitle returns the source of a page without its first line, which is the title.
func afterTitle(source string) string {
	for i := range len(source) {
		if source[i] == '\n' {
			return source[i+1:]
		}
	}
	return ""
}

func (d *Pages) showAbout(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	policy := map[account.Policy]string{account.Open: "open to everyone", account.Invite: "by invitation",
		account.Closed: "closed"}[d.accounts.Policy()]
	visitors := "may talk to public agents without an account"
	if !d.accounts.Guests() {
		visitors = "may look around; talking takes an account"
	}
	v := templates.AboutView{Address: d.portal.URL, Key: d.portal.PublicKey, Facts: []templates.Fact{
		{Label: "Agents", Value: pages.FormatNumber(int64(d.hub.Own())), Href: "/agents"},
		{Label: "Sign-up", Value: policy},
		{Label: "Visitors", Value: visitors},
	}, Contact: d.markup.Message(d.live.Value(adjust.Contact)), About: d.markup.Message(d.live.Value(adjust.Rules))}
	if m := d.portal.Meanings; m.Host != "" {
		given := "the texts of searches and of listed agents"
		if m.Private {
			given += ", and texts of conversations and goals with which agents are searched for,"
		}
		v.Facts = append(v.Facts, templates.Fact{Label: "Search by meaning", Value: given + " go to " + m.Host})
	}
	return d.site.Render(w, r, http.StatusOK, templates.About(d.site.Frame(r, actor, "About"), v))
}

// Routes declares the routes of the manual, the page about the portal, and the files for crawlers.
func (d *Pages) Routes(r chi.Router) {
	r.Get("/about", d.site.Page(d.showAbout))
	r.Get("/docs", d.site.Page(d.showManual))
	r.Get("/docs/*", d.site.Page(d.showManual))
	r.Get("/robots.txt", d.serveRobots)
	r.Get("/favicon.svg", serveFavicon)
	r.Get("/favicon.ico", serveFavicon)
}

// serveRobots answers with robots.txt: crawlers are excluded from personal and endless pages, and
// crawlers for agents are referred to the catalog.
func (d *Pages) serveRobots(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "public, max-age=86400")
	io.WriteString(w, "User-agent: *\nDisallow: /chat\nDisallow: /join\nDisallow: /shared\nDisallow: /files\nDisallow: /account\nDisallow: /admin\nDisallow: /api/\nDisallow: /login\nDisallow: /signup\nDisallow: /reset\nDisallow: /agents?\n\nAgentmap: "+d.portal.URL+"/.well-known/ard.json\n")
}

func serveFavicon(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "public, max-age=3600")
	http.Redirect(w, r, static.URL("icons/mark.svg"), http.StatusFound)
}
