package index

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"agentsite/internal/hub"
	"agentsite/internal/index/bm25"
)

// The numbers of fields.
const (
	nameField = iota
	titleField
	skillField
	tagField
	exampleField
	descriptionField
	fieldCount
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
func texts(a *hub.Agent) [][]string { return new(fieldTexts).of(a) }

// fieldTexts is the memory of texts.
type fieldTexts struct {
	lists [fieldCount][]string
	all   [][]string
}

// of is texts, true until the next call.
func (t *fieldTexts) of(a *hub.Agent) [][]string {
	for i := range t.lists {
		t.lists[i] = t.lists[i][:0]
	}
	add := func(field int, values ...string) { t.lists[field] = append(t.lists[field], values...) }
	add(nameField, a.Name)
	add(titleField, a.Title)
	add(descriptionField, a.Description)
	for i := range a.Skills {
		s := &a.Skills[i]
		add(skillField, cmp.Or(s.Name, s.ID))
		if s.Description != "" {
			add(descriptionField, s.Description)
		}
		for _, tag := range s.Tags {
			if !slices.Contains(t.lists[tagField], tag) {
				add(tagField, tag)
			}
		}
		add(exampleField, s.Examples...)
	}
	t.all = append(t.all[:0], t.lists[:]...)
	return t.all
}

// Terms calls yield for each word that an index finds the agent by, some of
// them more than once.
func Terms(a hub.Agent, yield func(term string)) {
	for _, values := range texts(&a) {
		bm25.Terms(values, yield)
	}
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

// idOf returns the id of a key.
func idOf(key string) string {
	i := len(key)
	for i > 0 && key[i-1] != 0 {
		i--
	}
	return key[i:]
}

// The facets, those first whose values people invent.
const (
	tagFacet = iota
	skillFacet
	publisherFacet
	kindFacet
	portalFacet
	liveFacet
	languageFacet
	modalityFacet
	signedFacet
	proofFacet
	facetCount
)

const inventedFacets = kindFacet // so many

// facetNames are the names in hub.Page.Facets.
var facetNames = [facetCount]string{"tag", "skill", "publisher", "kind", "portal", "live", "language", "modality", "signed", "proof"}

// Those whose values people invent, or of which a network has many, are cut to
// the most frequent.
var facetMost = [facetCount]int{tagFacet: topValues, skillFacet: topValues, publisherFacet: topValues, portalFacet: topValues}

const topValues = hub.MaxFacetValues

// localPortal stands for this portal as a value of the portal facet.
const localPortal = "local"

// maxFacetValues bounds the values counted of one agent in one facet; the
// service allows fewer, an agent from elsewhere may claim more.
const maxFacetValues = 256

// A facetText is a value of a facet: the number of the facet and the value in
// one string, as the dictionary keeps them.
type facetText = string

func textOf(f int, value string) facetText { return string(rune(f)) + value }

// facetTexts appends the distinct values of an agent to dst.
func facetTexts(dst []facetText, a *hub.Agent) []facetText {
	facet, from := 0, len(dst)
	eachFacet(a, func(f int, s string) {
		if f != facet {
			facet, from = f, len(dst)
		}
		if s = facetValue(f, s); s == "" || len(dst)-from >= maxFacetValues {
			return
		}
		for _, have := range dst[from:] {
			if have[1:] == s {
				return
			}
		}
		dst = append(dst, textOf(f, s))
	})
	return dst
}

// eachFacet calls add with the values of an agent as they are written, facet
// by facet, some more than once.
func eachFacet(a *hub.Agent, add func(f int, s string)) {
	for f := range facetCount {
		switch f {
		case kindFacet:
			add(f, string(a.Kind))
		case tagFacet:
			for i := range a.Skills {
				for _, t := range a.Skills[i].Tags {
					add(f, t)
				}
			}
		case skillFacet:
			for i := range a.Skills {
				add(f, cmp.Or(a.Skills[i].Name, a.Skills[i].ID))
			}
		case portalFacet:
			add(f, a.Portal)
			for _, host := range a.Also {
				add(f, host)
			}
		case liveFacet:
			add(f, string(a.Liveness.State))
		case languageFacet:
			for _, l := range a.Languages {
				add(f, l)
				// Who speaks German as in Switzerland speaks German.
				for i := strings.LastIndexByte(l, '-'); i > 0; i = strings.LastIndexByte(l, '-') {
					l = l[:i]
					add(f, l)
				}
			}
		case modalityFacet:
			for _, m := range a.Modalities() {
				add(f, m)
			}
		case signedFacet:
			add(f, strconv.FormatBool(a.Signed()))
		case proofFacet:
			add(f, a.Proof.State)
		case publisherFacet:
			if a.Publisher != "" { // the hub keeps only those that are proved
				add(f, a.Publisher)
			}
		}
	}
}

// facetValue is the form in which a value is counted and filtered by: what
// people write without regard to case, and no state left unsaid.
func facetValue(f int, s string) string {
	switch f {
	case tagFacet, skillFacet, languageFacet, publisherFacet:
		return strings.ToLower(strings.TrimSpace(s))
	case portalFacet:
		return cmp.Or(s, localPortal)
	case liveFacet:
		return cmp.Or(s, string(hub.Unknown))
	case proofFacet:
		return cmp.Or(s, hub.Unproven)
	}
	return s
}
