package handlers

import (
	"net/http"

	"github.com/go-chi/chi/v5"

	"agentsite/docs"
	"agentsite/internal/account"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/templates"
)

// manual shows a page of the manual; /docs is its first.
func (d *Door) manual(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	stem := chi.URLParam(r, "page")
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
	p := d.frame(r, actor, page.Title)
	p.Description = d.markup.Line(string(afterTitle(page.Source)))
	return d.render(w, r, http.StatusOK, templates.Docs(p, v))
}

// afterTitle is a page's source below its first line.
func afterTitle(source string) string {
	for i := range len(source) {
		if source[i] == '\n' {
			return source[i+1:]
		}
	}
	return ""
}

func (d *Door) about(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	policy := map[account.Policy]string{account.Open: "open to everybody", account.Invite: "by invitation", account.Closed: "closed"}[d.accounts.Policy()]
	visitors := "may talk to public agents without an account"
	if !d.accounts.Guests() {
		visitors = "may look around; talking takes an account"
	}
	v := templates.AboutView{Address: d.portal.URL, Key: d.portal.PublicKey, Facts: []templates.Fact{
		{Label: "Agents", Value: whole(int64(d.hub.Own())), Href: "/agents"},
		{Label: "Sign-up", Value: policy},
		{Label: "Visitors", Value: visitors},
	}}
	return d.render(w, r, http.StatusOK, templates.About(d.frame(r, actor, "About"), v))
}

// declareManual declares the routes of the manual, the page about the portal, and what crawlers ask for.
func (d *Door) declareManual(r chi.Router) {
	r.Get("/about", d.page(d.about))
	r.Get("/docs", d.page(d.manual))
	r.Get("/docs/{page}", d.page(d.manual))
	r.Get("/robots.txt", d.robots)
	r.Get("/favicon.svg", favicon)
	r.Get("/favicon.ico", favicon)
}
