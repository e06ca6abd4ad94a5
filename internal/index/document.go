package index

import (
	"cmp"
	"slices"
	"strings"

	"agentsite/internal/hub"
	"agentsite/internal/index/bm25"
)

// fields are the searched parts of an agent, best first. Lengths are those
// of ordinary agents: a much longer text counts less a word.
var fields = []bm25.Field{
	{Name: "name", Weight: 8, Length: 2, Norm: 0.2},
	{Name: "title", Weight: 6, Length: 4, Norm: 0.3},
	{Name: "skills", Weight: 4, Length: 8, Norm: 0.3},
	{Name: "tags", Weight: 4, Length: 8, Norm: 0.3},
	{Name: "examples", Weight: 1.5, Length: 24, Norm: 0.5},
	{Name: "description", Weight: 1, Length: 40, Norm: 0.5},
}

// texts returns the values of fields, in their order.
func texts(a *hub.Agent) [][]string {
	var skills, tags, examples []string
	description := []string{a.Description}
	for _, s := range a.Skills {
		skills = append(skills, cmp.Or(s.Name, s.ID))
		if s.Description != "" {
			description = append(description, s.Description)
		}
		for _, t := range s.Tags {
			if !slices.Contains(tags, t) {
				tags = append(tags, t)
			}
		}
		examples = append(examples, s.Examples...)
	}
	return [][]string{{a.Name}, {a.Title}, skills, tags, examples, description}
}

// sameText reports whether two forms of an agent are found by the same words
// in the same place of the order.
func sameText(a, b *hub.Agent) bool {
	return a.ID == b.ID && a.Name == b.Name && a.Portal == b.Portal &&
		a.Title == b.Title && a.Description == b.Description &&
		slices.EqualFunc(a.Skills, b.Skills, func(s, t hub.Skill) bool {
			return s.ID == t.ID && s.Name == t.Name && s.Description == t.Description &&
				slices.Equal(s.Tags, t.Tags) && slices.Equal(s.Examples, t.Examples)
		})
}

// key orders agents by name, those of one name by portal.
func key(a *hub.Agent) string { return a.Name + "\x00" + a.Portal + "\x00" + a.ID }

// The facets, in the order of their values in an entry.
const (
	kindFacet = iota
	tagFacet
	skillFacet
	portalFacet
	liveFacet
	facetCount
)

// facetNames are the names in hub.Page.Facets. The two whose values people
// invent are cut to the most frequent.
var facetNames = [facetCount]string{"kind", "tag", "skill", "portal", "live"}

const topValues = 30

// localPortal stands for this portal as a value of the portal facet.
const localPortal = "local"

// maxFacetValues bounds the tags and the skills counted of one agent; the
// service allows fewer, an agent from elsewhere may claim more.
const maxFacetValues = 256

// facetValues returns the distinct values of an agent.
func facetValues(a *hub.Agent) [facetCount][]string {
	var v [facetCount][]string
	v[kindFacet] = []string{string(a.Kind)}
	v[portalFacet] = []string{facetValue(portalFacet, a.Portal)}
	v[liveFacet] = []string{facetValue(liveFacet, string(a.Liveness.State))}
	add := func(f int, s string) {
		s = facetValue(f, s)
		if s != "" && len(v[f]) < maxFacetValues && !slices.Contains(v[f], s) {
			v[f] = append(v[f], s)
		}
	}
	for _, s := range a.Skills {
		add(skillFacet, cmp.Or(s.Name, s.ID))
		for _, t := range s.Tags {
			add(tagFacet, t)
		}
	}
	return v
}

// facetValue is the form in which a value is counted and filtered by: tags
// and skills without regard to case, and no value left unsaid.
func facetValue(f int, s string) string {
	switch f {
	case tagFacet, skillFacet:
		return strings.ToLower(strings.TrimSpace(s))
	case portalFacet:
		return cmp.Or(s, localPortal)
	case liveFacet:
		return cmp.Or(s, string(hub.Unknown))
	}
	return s
}
