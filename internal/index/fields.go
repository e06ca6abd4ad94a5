package index

import (
	"cmp"
	"slices"

	"agentsite/internal/hub"
	"agentsite/internal/index/bm25"
)

// Numbers of the searched fields. They are the positions in fields and textsOf.
const (
	nameField = iota
	titleField
	skillField
	tagField
	exampleField
	descriptionField
	fieldCount
)

// fields are the searched parts of an agent with their weight in the ranking, the highest first. Length is
// the number of words in an ordinary agent: in a longer text each word scores less.
var fields = []bm25.Field{
	{Name: "name", Weight: 8, Length: 2, Norm: 0.2},
	{Name: "title", Weight: 6, Length: 4, Norm: 0.3},
	{Name: "skills", Weight: 4, Length: 8, Norm: 0.3},
	{Name: "tags", Weight: 4, Length: 8, Norm: 0.3},
	{Name: "examples", Weight: 1.5, Length: 24, Norm: 0.5},
	{Name: "description", Weight: 1, Length: 40, Norm: 0.5},
}

// textsOf returns the texts of an agent for each of fields, in the same order.
func textsOf(a *hub.Agent) [][]string { return new(fieldTexts).of(a) }

// fieldTexts holds the buffers of textsOf, so that filling an index does not allocate them for each
// agent.
type fieldTexts struct {
	lists [fieldCount][]string
	all   [][]string
}

// of is textsOf with the buffers of t. The next call overwrites the result.
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

// Terms calls yield with each word by which an Index finds the agent; a word may repeat. A portal's
// published summary (a Bloom filter) is made of these words.
func Terms(a hub.Agent, yield func(term string)) {
	for _, values := range textsOf(&a) {
		bm25.Terms(values, yield)
	}
}

// sameText reports whether two forms of an agent have the same key and the same searched texts. Put then
// leaves the word index unchanged.
func sameText(a, b *hub.Agent) bool {
	return a.ID == b.ID && a.Name == b.Name && a.Portal == b.Portal &&
		a.Title == b.Title && a.Description == b.Description &&
		slices.EqualFunc(a.Skills, b.Skills, func(s, t hub.Skill) bool {
			return s.ID == t.ID && s.Name == t.Name && s.Description == t.Description &&
				slices.Equal(s.Tags, t.Tags) && slices.Equal(s.Examples, t.Examples)
		})
}
