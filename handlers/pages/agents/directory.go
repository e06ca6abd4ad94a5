package agents

import (
	"context"
	"net/http"
	"net/url"

	"github.com/go-chi/chi/v5"

	"agentsite/handlers/pages"
	"agentsite/handlers/request"
	"agentsite/handlers/search"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/templates"
)

// browse shows the list of agents for a search and its filters. Other portals are searched after the page
// has arrived, see searchFirst.
func (d *Directory) browse(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	q, err := d.searches.Query(r)
	if err != nil {
		return err
	}
	// Only lists without search words are cached, because words vary too much, and only if no other
	// portal has to be asked.
	keep := pages.Anonymous(actor) && q.Text == "" && (len(q.Portals) == 0 || d.hub.Asks(q) == 0)
	key := ""
	if keep {
		key = pages.SharedKey(d.hub.State(), r.URL.RequestURI()+" "+search.CoverageText(d.hub.Coverage(q)))
		if d.site.RenderKept(w, key) {
			return nil
		}
	}
	asking := 0
	if !keep {
		w.Header().Set("Vary", "Accept")
		if request.WantsEvents(r) {
			return d.browseEach(w, r, actor, q)
		}
		if q.Wide = true; !waits(r.URL.Query()) {
			asking = d.hub.Asks(q)
		}
	}
	page, err := d.searchFirst(r.Context(), actor, q, &asking)
	if err != nil {
		return err
	}
	v := templates.AgentsView{Query: q.Text, Total: page.Total, Coverage: search.CoverageText(page.Coverage),
		Folded: page.Coverage.Folded}
	f := search.Filters{Q: q}
	v.Results = d.cards(page.Results)
	if asking > 0 {
		v.Late = lateView(f, asking)
	}
	v.Facets, v.Filters, v.Kept = f.Facets(page.Facets), f.Active(), f.Kept()
	v.Sorts, v.Modes = f.Sorts(), f.Modes()
	v.FeedHref, v.SaveQuery, v.CanSave = search.PathWithQuery("/agents/feed", f.Values()), f.Values().Encode(),
		actor.IsPerson()
	v.ClearHref = f.None().Address()
	if v.Coverage != "" && q.Scope != hub.ScopePortal {
		v.HereHref = f.Here()
	}
	v.LoginHref = "/login?" + url.Values{"next": {f.Address()}}.Encode()
	if page.NextCursor != "" {
		more := f.Values()
		more.Set("cursor", page.NextCursor)
		v.MoreHref = "/agents?" + more.Encode()
	}
	if q.Cursor != "" {
		v.FirstHref = f.Address()
	}
	p := d.site.Frame(r, actor, "Agents")
	p.Feed = v.FeedHref
	if actor.IsPerson() && r.URL.Query().Get("done") == "saved" {
		p.Flash = "The search is saved. Your account page shows new results."
	}
	if len(v.Results) == 0 {
		_, v.Guide = d.site.Guide(r.Context(), actor)
		if v.Ways, err = d.ways(r.Context(), actor, q, page.Suggestions); err != nil {
			return err
		}
	} else if keep {
		return d.site.RenderShared(w, r, key, templates.Agents(p, v))
	}
	return d.site.Render(w, r, http.StatusOK, templates.Agents(p, v))
}

// searchFirst searches the agents held here. *asking is the number of other portals that the page could
// ask later. If nothing was found here, or the query resolves a single agent, it waits for the other
// portals instead and sets *asking to 0.
func (d *Directory) searchFirst(ctx context.Context, actor ident.Actor, q hub.Query, asking *int) (hub.Page, error) {
	if *asking > 0 && d.hub.Seeks(q) {
		*asking = 0
	}
	if *asking > 0 {
		here := q
		here.Wide = false
		page, err := d.hub.Search(ctx, actor, here)
		if err != nil || page.Total > 0 {
			return page, err
		}
		*asking = 0
	}
	return d.hub.Search(ctx, actor, q)
}

// declareRoutes declares the routes of the home page, the list of agents, feeds and saved searches.
func (d *Directory) declareRoutes(r chi.Router) {
	r.Get("/", d.site.Page(d.home))
	r.Get("/agents", d.site.Page(d.browse))
	r.Get("/agents/feed", d.site.Page(d.agentFeed))
	r.Post("/searches", d.site.Page(d.saveSearch))
	r.Post("/searches/{id}", d.site.Page(d.openSearch))
	r.Post("/searches/{id}/delete", d.site.Page(d.deleteSearch))
}
