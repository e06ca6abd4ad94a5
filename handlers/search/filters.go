package search

import (
	"net/url"
	"slices"
	"strings"

	"agentsite/handlers/pages"
	"agentsite/internal/agentkind"
	"agentsite/internal/hub"
	"agentsite/templates"
)

// PathWithQuery returns a path followed by a query, without the question mark if the query is empty.
func PathWithQuery(path string, query url.Values) string {
	if len(query) == 0 {
		return path
	}
	return path + "?" + query.Encode()
}

// facetOptions is the number of values of one facet that a page shows.
const facetOptions = 10

// Filters is a query as a page shows and changes it. Its methods return addresses of the list of agents.
type Filters struct{ Q hub.Query }

// FilterNames are the parameters of the filters with their titles, in the order in which pages show them.
var FilterNames = [...]struct{ Param, Title string }{{"kind", "Kind"}, {"live", "State"}, {"tag", "Tag"},
	{"language", "Language"},
	{"modality", "Takes and gives"}, {"proof", "Address"}, {"publisher", "Published by"}, {"skill", "Skill"},
	{"portal", "Portal"}, {"signed", "Verified"}}

func (f Filters) Of(param string) []string { return *queryField(&f.Q, param) }

// queryField returns the field of a query that a parameter filters by; portals for an unknown parameter.
func queryField(q *hub.Query, param string) *[]string {
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

// Without returns the query with the filter of a parameter removed.
func (f Filters) Without(param string) hub.Query {
	*queryField(&f.Q, param) = nil
	return f.Q
}

// searchTitle returns the default name of a saved search, made of its words and filters; "" for a search
// without either.
func (f Filters) searchTitle() string {
	var out []string
	if f.Q.Text != "" {
		out = append(out, f.Q.Text)
	}
	for _, a := range f.Active() {
		out = append(out, a.Value)
	}
	title := strings.Join(out, ", ")
	if r := []rune(title); len(r) > maxSavedTitle {
		title = string(r[:maxSavedTitle-1]) + "…"
	}
	return title
}

// maxSavedTitle bounds the name of a saved search in runes.
const maxSavedTitle = 80

// Values returns the query as URL parameters, without the cursor.
func (f Filters) Values() url.Values {
	v := url.Values{}
	if f.Q.Text != "" {
		v.Set("q", f.Q.Text)
	}
	for _, n := range FilterNames {
		if list := f.Of(n.Param); len(list) > 0 {
			v[n.Param] = slices.Clone(list)
		}
	}
	if f.Q.Sort != "" {
		v.Set("sort", f.Q.Sort)
	}
	if f.Q.Mode != "" && f.Q.Mode != hub.ModeAuto {
		v.Set("mode", f.Q.Mode)
	}
	if f.Q.Scope != "" {
		v.Set("scope", f.Q.Scope)
	}
	return v
}

// sortTexts are the sort orders with their labels. The first is the default.
var sortTexts = []struct{ value, label string }{{hub.SortRelevance, "best match"},
	{hub.SortUsed, "most used"}, {hub.SortName, "name"},
	{hub.SortNewest, "newest"}, {hub.SortUpdated, "last changed"}}

func (f Filters) Sorts() []templates.Option {
	now := f.Q.Sort
	if now == "" {
		now = hub.SortUsed
		if f.Q.Text != "" {
			now = hub.SortRelevance
		}
	}
	var out []templates.Option
	for _, s := range sortTexts {
		if s.value == hub.SortRelevance && f.Q.Text == "" {
			continue
		}
		out = append(out, templates.Option{Value: s.value, Label: s.label, Selected: s.value == now})
	}
	return out
}

// modeTexts are the modes of a search with their labels. The first is the default.
var modeTexts = []struct{ value, label string }{{hub.ModeAuto, "words and meaning"}, {hub.ModeWords, "words only"},
	{hub.ModeMeaning, "meaning only"}}

// Modes returns the modes of a search with words.
func (f Filters) Modes() []templates.Option {
	if f.Q.Text == "" {
		return nil
	}
	var out []templates.Option
	for _, m := range modeTexts {
		out = append(out, templates.Option{Value: m.value, Label: m.label, Selected: m.value == f.Q.Mode})
	}
	return out
}

// toggledAddress returns the address of the list with one filter value added, or removed if it is set.
func (f Filters) toggledAddress(param, value string) string {
	v := f.Values()
	if i := slices.Index(v[param], value); i >= 0 {
		v[param] = slices.Delete(v[param], i, i+1)
	} else {
		v[param] = append(v[param], value)
	}
	if len(v[param]) == 0 {
		delete(v, param)
	}
	return BrowseAddress(v)
}

// None returns a search with the same words and order and without filters.
func (f Filters) None() Filters {
	return Filters{hub.Query{Text: f.Q.Text, Sort: f.Q.Sort, Mode: f.Q.Mode, Limit: f.Q.Limit}}
}

// Here returns the address of the same search restricted to this portal, everywhereAddress without that
// restriction.
func (f Filters) Here() string {
	f.Q.Scope = hub.ScopePortal
	return f.Address()
}

func (f Filters) everywhereAddress() string {
	f.Q.Scope = ""
	return f.Address()
}

// Address returns the address of the list of agents with these filters.
func (f Filters) Address() string { return BrowseAddress(f.Values()) }

func BrowseAddress(v url.Values) string {
	if len(v) == 0 {
		return "/agents"
	}
	return "/agents?" + v.Encode()
}

func FilterLabel(param, value string) string {
	switch {
	case param == "kind":
		return agentkind.Of(hub.Kind(value)).Label
	case param == "live":
		return strings.ReplaceAll(value, "_", " ")
	case param == "portal" && value == "local":
		return "here"
	case param == "language":
		return pages.LanguageName(value)
	case param == "signed":
		return map[string]string{"true": "verified", "false": "portal not proved"}[value]
	case param == "proof":
		return map[string]string{hub.Hosted: "runs here", hub.Proved: "proved", hub.Claimed: "says its portal",
			hub.Unproven: "unproven"}[value]
	}
	return value
}

func (f Filters) Facets(counts map[string][]hub.FacetCount) []templates.Facet {
	var out []templates.Facet
	for _, n := range FilterNames {
		on := f.Of(n.Param)
		values := counts[n.Param]
		// Skills are offered only if one is set, because they are as numerous as agents. These facets are
		// also left out with fewer than two values, because a single value narrows nothing.
		single := n.Param == "portal" || n.Param == "language" || n.Param == "modality" || n.Param == "proof" ||
			n.Param == "signed"
		if len(on) == 0 && (n.Param == "skill" || single && len(values) < 2) {
			continue
		}
		facet := templates.Facet{Name: n.Title}
		add := func(value string, count int) {
			facet.Options = append(facet.Options,
				templates.FacetOption{Label: FilterLabel(n.Param, value), Count: count,
					Href: f.toggledAddress(n.Param, value), Active: slices.Contains(on, value)})
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

func (f Filters) Active() []templates.ActiveFilter {
	var out []templates.ActiveFilter
	for _, n := range FilterNames {
		for _, value := range f.Of(n.Param) {
			out = append(out, templates.ActiveFilter{Name: n.Title, Value: FilterLabel(n.Param, value),
				RemoveHref: f.toggledAddress(n.Param, value)})
		}
	}
	if f.Q.Scope == hub.ScopePortal {
		out = append(out, templates.ActiveFilter{Name: "Where", Value: "this portal only",
			RemoveHref: f.everywhereAddress()})
	}
	return out
}

func (f Filters) Kept() []templates.Hidden {
	var out []templates.Hidden
	for _, n := range FilterNames {
		for _, value := range f.Of(n.Param) {
			out = append(out, templates.Hidden{Name: n.Param, Value: value})
		}
	}
	for _, h := range []templates.Hidden{{Name: "sort", Value: f.Q.Sort}, {Name: "mode", Value: f.Q.Mode},
		{Name: "scope", Value: f.Q.Scope}} {
		if h.Value != "" {
			out = append(out, h)
		}
	}
	return out
}
