package handlers

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/templates"

	"github.com/go-chi/chi/v5"
)

// facetOptions is how many values of a facet a page offers.
const facetOptions = 10

// browse lists agents by what is searched and filtered.
func (d *Door) browse(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	q, err := d.searchQuery(r)
	if err != nil {
		return err
	}
	// Lists without words are kept: of words there are too many. That of a portal
	// that has to be asked is not.
	keep := anonymous(actor) && q.Text == "" && (len(q.Portals) == 0 || d.hub.Asks(q) == 0)
	key := ""
	if keep {
		key = sharedKey(d.hub.State(), r.URL.RequestURI()+" "+coverageText(d.hub.Coverage(q)))
		if d.renderKept(w, key) {
			return nil
		}
	}
	asking := 0
	if !keep {
		w.Header().Set("Vary", "Accept")
		if wantsEvents(r) {
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
	v := templates.AgentsView{Query: q.Text, Total: page.Total, Coverage: coverageText(page.Coverage), Folded: page.Coverage.Folded}
	f := filters{q}
	v.Results = d.cards(page.Results)
	if asking > 0 {
		v.Late = lateView(f, asking)
	}
	v.Facets, v.Filters, v.Kept, v.Sorts = f.facets(page.Facets), f.active(), f.kept(), f.sorts()
	v.FeedHref, v.SaveQuery, v.CanSave = address("/agents/feed", f.values()), f.values().Encode(), actor.IsPerson()
	v.ClearHref = f.none().address()
	if v.Coverage != "" && q.Scope != hub.ScopePortal {
		v.HereHref = f.here()
	}
	v.LoginHref = "/login?" + url.Values{"next": {f.address()}}.Encode()
	if page.NextCursor != "" {
		more := f.values()
		more.Set("cursor", page.NextCursor)
		v.MoreHref = "/agents?" + more.Encode()
	}
	if q.Cursor != "" {
		v.FirstHref = f.address()
	}
	p := d.frame(r, actor, "Agents")
	p.Feed = v.FeedHref
	if actor.IsPerson() && r.URL.Query().Get("done") == "saved" {
		p.Flash = "The search is saved. Your account page says when it finds somebody new."
	}
	if len(v.Results) == 0 {
		_, v.Guide = d.guide(r.Context(), actor)
		if v.Ways, err = d.ways(r.Context(), actor, q, page.Suggestions); err != nil {
			return err
		}
	} else if keep {
		return d.renderShared(w, r, key, templates.Agents(p, v))
	}
	return d.render(w, r, http.StatusOK, templates.Agents(p, v))
}

// searchFirst searches in what is held here, if that finds something and
// others are asked later. Where nothing is to be shown meanwhile, or one agent is
// meant that has to be looked for, it waits for them; nobody is asked later then.
func (d *Door) searchFirst(ctx context.Context, actor ident.Actor, q hub.Query, asking *int) (hub.Page, error) {
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

// filters are those of a query as addresses of the page.
type filters struct{ q hub.Query }

// filterNames are the parameters, in the order pages show them.
var filterNames = [...]struct{ param, title string }{{"kind", "Kind"}, {"live", "State"}, {"tag", "Tag"}, {"language", "Language"},
	{"modality", "Takes and gives"}, {"proof", "Address"}, {"publisher", "Published by"}, {"skill", "Skill"}, {"portal", "Portal"}, {"signed", "Verified"}}

func (f filters) of(param string) []string { return *field(&f.q, param) }

// field is the filter of a query with that parameter.
func field(q *hub.Query, param string) *[]string {
	switch param {
	case "kind":
		return &q.Kinds
	case "live":
		return &q.Live
	case "tag":
		return &q.Tags
	case "skill":
		return &q.Skills
	case "language":
		return &q.Languages
	case "modality":
		return &q.Modalities
	case "proof":
		return &q.Proofs
	case "publisher":
		return &q.Publishers
	case "signed":
		return &q.Signed
	}
	return &q.Portals
}

// without is the query without one of its filters.
func (f filters) without(param string) hub.Query {
	*field(&f.q, param) = nil
	return f.q
}

// title names a search for those who keep it; "" when it is all agents.
func (f filters) title() string {
	var out []string
	if f.q.Text != "" {
		out = append(out, f.q.Text)
	}
	for _, a := range f.active() {
		out = append(out, a.Value)
	}
	title := strings.Join(out, ", ")
	if r := []rune(title); len(r) > maxSavedTitle {
		title = string(r[:maxSavedTitle-1]) + "…"
	}
	return title
}

// maxSavedTitle is how many characters of a search name it.
const maxSavedTitle = 80

// values are the query as parameters, without a cursor.
func (f filters) values() url.Values {
	v := url.Values{}
	if f.q.Text != "" {
		v.Set("q", f.q.Text)
	}
	for _, n := range filterNames {
		if list := f.of(n.param); len(list) > 0 {
			v[n.param] = slices.Clone(list)
		}
	}
	if f.q.Sort != "" {
		v.Set("sort", f.q.Sort)
	}
	for name, value := range map[string]string{"scope": f.q.Scope, "same": f.q.Same} {
		if value != "" {
			v.Set(name, value)
		}
	}
	if f.q.Copies {
		v.Set("copies", "true")
	}
	return v
}

// sortTexts are the orders a list can have; the first of each is the usual.
var sortTexts = []struct{ value, label string }{{hub.SortRelevance, "best match"}, {hub.SortName, "name"}, {hub.SortNewest, "newest"}, {hub.SortUpdated, "last changed"}}

func (f filters) sorts() []templates.Option {
	now := f.q.Sort
	if now == "" {
		now = hub.SortName
		if f.q.Text != "" {
			now = hub.SortRelevance
		}
	}
	var out []templates.Option
	for _, s := range sortTexts {
		if s.value == hub.SortRelevance && f.q.Text == "" {
			continue
		}
		out = append(out, templates.Option{Value: s.value, Label: s.label, Selected: s.value == now})
	}
	return out
}

// toggled is the address with one filter switched on, or off when it is on.
func (f filters) toggled(param, value string) string {
	v := f.values()
	if i := slices.Index(v[param], value); i >= 0 {
		v[param] = slices.Delete(v[param], i, i+1)
	} else {
		v[param] = append(v[param], value)
	}
	if len(v[param]) == 0 {
		delete(v, param)
	}
	return browseAddress(v)
}

// none is the same search without filters.
func (f filters) none() filters {
	return filters{hub.Query{Text: f.q.Text, Sort: f.q.Sort, Limit: f.q.Limit}}
}

// here is the same search on this portal alone, everywhere the one without that
// bound.
func (f filters) here() string {
	f.q.Scope = hub.ScopePortal
	return f.address()
}

func (f filters) everywhere() string {
	f.q.Scope = ""
	return f.address()
}

// sameAs lists the equals of an agent.
func sameAs(handle string) string {
	return filters{hub.Query{Same: handle}}.address()
}

// address is that of the page the filters are from.
func (f filters) address() string { return browseAddress(f.values()) }

func browseAddress(v url.Values) string {
	if len(v) == 0 {
		return "/agents"
	}
	return "/agents?" + v.Encode()
}

func filterLabel(param, value string) string {
	switch {
	case param == "kind":
		return textOf(hub.Kind(value)).label
	case param == "live":
		return strings.ReplaceAll(value, "_", " ")
	case param == "portal" && value == "local":
		return "here"
	case param == "language":
		return languageName(value)
	case param == "signed":
		return map[string]string{"true": "verified", "false": "portal not proved"}[value]
	case param == "proof":
		return map[string]string{hub.Hosted: "runs here", hub.Proved: "proved", hub.Claimed: "says its portal", hub.Unproven: "unproven"}[value]
	}
	return value
}

func (f filters) facets(counts map[string][]hub.FacetCount) []templates.Facet {
	var out []templates.Facet
	for _, n := range filterNames {
		on := f.of(n.param)
		values := counts[n.param]
		// A skill is as particular as an agent, and one portal is no choice.
		// So is what all of them have.
		single := n.param == "portal" || n.param == "language" || n.param == "modality" || n.param == "proof" || n.param == "signed"
		if len(on) == 0 && (n.param == "skill" || single && len(values) < 2) {
			continue
		}
		facet := templates.Facet{Name: n.title}
		add := func(value string, count int) {
			facet.Options = append(facet.Options, templates.FacetOption{Label: filterLabel(n.param, value), Count: count,
				Href: f.toggled(n.param, value), Active: slices.Contains(on, value)})
		}
		shown := make(map[string]bool)
		for _, c := range values {
			if slices.Contains(on, c.Value) || len(facet.Options) < facetOptions {
				add(c.Value, c.Count)
				shown[c.Value] = true
			}
		}
		for _, value := range on {
			if !shown[value] {
				add(value, 0)
			}
		}
		if len(facet.Options) > 0 {
			out = append(out, facet)
		}
	}
	return out
}

func (f filters) active() []templates.ActiveFilter {
	var out []templates.ActiveFilter
	for _, n := range filterNames {
		for _, value := range f.of(n.param) {
			out = append(out, templates.ActiveFilter{Name: n.title, Value: filterLabel(n.param, value), RemoveHref: f.toggled(n.param, value)})
		}
	}
	if f.q.Same != "" {
		other := f
		other.q.Same = ""
		out = append(out, templates.ActiveFilter{Name: "The same as", Value: f.q.Same, RemoveHref: other.address()})
	}
	if f.q.Scope == hub.ScopePortal {
		out = append(out, templates.ActiveFilter{Name: "Where", Value: "this portal only", RemoveHref: f.everywhere()})
	}
	return out
}

func (f filters) kept() []templates.Hidden {
	var out []templates.Hidden
	for _, n := range filterNames {
		for _, value := range f.of(n.param) {
			out = append(out, templates.Hidden{Name: n.param, Value: value})
		}
	}
	for _, h := range []templates.Hidden{{Name: "sort", Value: f.q.Sort}, {Name: "scope", Value: f.q.Scope}, {Name: "same", Value: f.q.Same}} {
		if h.Value != "" {
			out = append(out, h)
		}
	}
	return out
}

// declareDirectory declares the routes of the home page, the list of agents, feeds and saved searches.
func (d *Door) declareDirectory(r chi.Router) {
	r.Get("/", d.page(d.home))
	r.Get("/agents", d.page(d.browse))
	r.Get("/agents/feed", d.page(d.agentFeed))
	r.Post("/searches", d.page(d.saveSearch))
	r.Post("/searches/{id}", d.page(d.openSearch))
	r.Post("/searches/{id}/delete", d.page(d.deleteSearch))
}
