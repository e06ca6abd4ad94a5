package builtin

import "testing"

// TestFindSections_ByMeaning asks with words that the section does not have, and checks that the list of changes does
// not come before the section that answers.
func TestFindSections_ByMeaning(t *testing.T) {
	sections := []Section{
		{Page: "changes", PageTitle: "Changes", Title: "Which changes are listed?", Anchor: "a",
			Text: "How do I move house: the relocation of belongings was changed."},
		{Page: "one", PageTitle: "One", Title: "Relocation to another town", Anchor: "b", Text: "Pack your belongings."},
		{Page: "two", PageTitle: "Two", Title: "Bread and cakes", Anchor: "c", Text: "Flour, yeast and an oven."},
	}
	for _, c := range []struct {
		encode func(string) []float32
		want   string
	}{{model().Encode, "two"}, {nil, ""}} {
		m := newManual(sections, newThesaurus(""), c.encode)
		list := m.findSections("dessert recipe", []string{"dessert", "recipe"}, 3, nil)
		got := ""
		if len(list) > 0 {
			got = list[0].Page
		}
		if got != c.want {
			t.Errorf("found %q, want %q", got, c.want)
		}
	}
	m := newManual(sections, newThesaurus(""), model().Encode)
	if list := m.findSections("relocation of belongings", []string{"relocation", "belongings"}, 3, nil); len(list) < 2 ||
		list[0].Page != "one" {
		t.Errorf("found %+v first", list)
	}
}

// TestFindSections_ByTermsOfTheManual asks with words of people for which the manual has a term. That an unrelated
// heading has the word must not decide.
func TestFindSections_ByTermsOfTheManual(t *testing.T) {
	m := newManual([]Section{
		{Page: "one", PageTitle: "One", Title: "The site of a building", Anchor: "a", Text: "Plans of the ground."},
		{Page: "two", PageTitle: "Two", Title: "Remove agents of the portal", Anchor: "b", Text: "A button."},
		{Page: "three", PageTitle: "Three", Title: "Remove a file", Anchor: "c", Text: "Another button."},
	}, newThesaurus(""), nil)
	for question, want := range map[string]string{"remove bots from the site": "two", "remove documents": "three"} {
		list := m.findSections(question, contentWords(question), 3, nil)
		if len(list) == 0 || list[0].Page != want {
			t.Errorf("%q: found %+v, want %s first", question, list, want)
		}
	}
}
