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

// PathWithQuery returns a path with its query, if there is one.
func PathWithQuery(path string, query url.Values) string {
	if len(query) == 0 {
		return path
	}
	return path + "?" + query.Encode()
}

// facetOptions is the number of values of a facet that a page offers.
const facetOptions = 10

// Filters are the filters of a query, with the address of their page.
type Filters struct{ Q hub.Query }

// FilterNames are the parameters, in the order pages show them.
var FilterNames = [...]struct{ Param, Title string }{{"kind", "Kind"}, {"live", "State"}, {"tag", "Tag"},
	{"language", "Language"},
	{"modality", "Takes and gives"}, {"proof", "Address"}, {"publisher", "Published by"}, {"skill", "Skill"},
	{"portal", "Portal"}, {"signed", "Verified"}}

func (f Filters) Of(param string) []string { return *queryField(&f.Q, param) }

// queryField returns the filter of a query with that parameter.
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

// Without returns the query without one of its filters.
func (f Filters) Without(param string) hub.Query {
	*queryField(&f.Q, param) = nil
	return f.Q
}

// searchTitle returns the name of a saved search, or "" if it lists all agents.
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

// maxSavedTitle is the longest name of a search, in characters.
const maxSavedTitle = 80

// Values returns the query as parameters, without a cursor.
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
	if f.Q.Scope != "" {
		v.Set("scope", f.Q.Scope)
	}
	return v
}

// sortTexts are the possible orders of a list. The first of each list is the default.
var sortTexts = []struct{ value, label string }{{hub.SortRelevance, "best match"}, {hub.SortName, "name"},
	{hub.SortNewest, "newest"}, {hub.SortUpdated, "last changed"}}

func (f Filters) Sorts() []templates.Option {
	now := f.Q.Sort
	if now == "" {
		now = hub.SortName
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

// toggledAddress returns the address with one filter switched on, or off if it is on.
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

// None returns the same search without filters.
func (f Filters) None() Filters {
	return Filters{hub.Query{Text: f.Q.Text, Sort: f.Q.Sort, Limit: f.Q.Limit}}
}

// Here returns the same search on this portal alone, everywhere the one without that filter.
func (f Filters) Here() string {
	f.Q.Scope = hub.ScopePortal
	return f.Address()
}

func (f Filters) everywhereAddress() string {
	f.Q.Scope = ""
	return f.Address()
}

// Address returns the address of the filters' page.
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
		// A skill is as specific as an agent, and a single value is no choice. A value that all results have is no
		// choice either.
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
	for _, h := range []templates.Hidden{{Name: "sort", Value: f.Q.Sort}, {Name: "scope", Value: f.Q.Scope}} {
		if h.Value != "" {
			out = append(out, h)
		}
	}
	return out
}
