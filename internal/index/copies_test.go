package index

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"agentsite/internal/hub"

	"pgregory.net/rapid"
)

// of is a built-in agent of a portal, "" for this one.
func of(portal, name string) hub.Agent {
	a := hub.Agent{ID: name, Name: name, Portal: portal, Title: strings.ToUpper(name), Description: "adds numbers", Kind: hub.Builtin, Visibility: hub.Public,
		Skills: []hub.Skill{{ID: "sum", Name: "Sum", Tags: []string{"math"}}}, Status: hub.Status{State: hub.Active}, Liveness: hub.Liveness{State: hub.Alive}, Proof: hub.Proof{State: hub.Hosted}}
	if portal != "" {
		a.ID, a.Verified, a.Proof.State, a.Liveness.State = "p1"+portal+"/"+name, true, hub.Claimed, hub.Unknown
	}
	return a
}

func rows(t testing.TB, x *Index, q hub.Query) []string {
	t.Helper()
	q.Limit = maxLimit
	var list []string
	for _, r := range mustSearch(t, x, q).Results {
		row := r.Agent.Handle()
		if r.Copies > 0 {
			row += fmt.Sprintf(" +%d%v", r.Copies, r.CopiesAt)
		}
		list = append(list, row)
	}
	slices.Sort(list)
	return list
}

func expectRows(t testing.TB, x *Index, q hub.Query, want ...string) {
	t.Helper()
	if got := rows(t, x, q); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestSearch_ShowsEqualAgentsOnce(t *testing.T) {
	x := New()
	for _, portal := range []string{"a", "", "b"} {
		x.Put(of(portal, "calc"))
	}
	expectRows(t, x, hub.Query{}, "calc +2[a b]")
	expectRows(t, x, hub.Query{Text: "adds"}, "calc +2[a b]")
	expectRows(t, x, hub.Query{Tags: []string{"math"}, Live: []string{"alive"}}, "calc +2[a b]")
	expectRows(t, x, hub.Query{Portals: []string{"b"}}, "calc@b")
	expectRows(t, x, hub.Query{Copies: true}, "calc", "calc@a", "calc@b")
	expectRows(t, x, hub.Query{Same: "calc"}, "calc", "calc@a", "calc@b")
	expectRows(t, x, hub.Query{Same: "p1a/calc", Live: []string{"unknown"}}, "calc@a", "calc@b")
	expectRows(t, x, hub.Query{Same: "nobody"})
	page := mustSearch(t, x, hub.Query{Limit: 1})
	if page.Total != 1 || page.NextCursor != "" || fmt.Sprint(page.Facets["portal"]) != "[{a 1} {b 1} {local 1}]" || fmt.Sprint(page.Facets["kind"]) != "[{builtin 1}]" {
		t.Errorf("%+v", page)
	}
	if list := x.Suggest("cal", 8); len(list) != 1 || list[0].Handle != "calc" {
		t.Errorf("suggested %v", list)
	}
	x.Remove("calc") // what is left is equal
	expectRows(t, x, hub.Query{}, "calc@a +1[b]")
	page, err := x.Beside([]hub.Agent{of("c", "calc"), of("d", "sort")}, hub.Query{})
	if err != nil || len(page.Results) != 1 || page.Results[0].Agent.Handle() != "sort@d" {
		t.Errorf("beside: %+v, %v", page.Results, err)
	}
	if page, err = x.Beside([]hub.Agent{of("c", "calc")}, hub.Query{Portals: []string{"c"}}); err != nil || len(page.Results) != 1 {
		t.Errorf("of one portal: %+v, %v", page.Results, err)
	}
}

// TestSearch_CopyingHidesNobody has a portal repeat what others say.
func TestSearch_CopyingHidesNobody(t *testing.T) {
	x := New()
	mine, theirs := of("", "helper"), of("good", "tool")
	mine.Kind = hub.Prompt
	x.Put(mine)
	x.Put(theirs)
	for _, name := range []string{"helper", "tool"} {
		x.Put(of("evil", name))
	}
	people := of("good", "notes")
	people.Kind = hub.A2A
	x.Put(people)
	people.ID, people.Portal = "p1evil/notes", "evil"
	x.Put(people)
	bent := of("evil", "tool")
	bent.ID, bent.Description = "p1evil/tool2", "adds other numbers"
	x.Put(bent)
	want := []string{"helper", "helper@evil", "notes@evil", "notes@good", "tool@evil", "tool@good +1[evil]"}
	expectRows(t, x, hub.Query{}, want...)
	// One that is not proved, or does not answer, stands for itself alone.
	fake := of("evil", "tool")
	fake.Verified = false
	x.Put(fake)
	expectRows(t, x, hub.Query{Text: "tool", Signed: []string{"true"}}, "tool@evil", "tool@good +1[evil]")
	expectRows(t, x, hub.Query{Text: "tool", Signed: []string{"false"}}, "tool@evil +1[good]")
	up := of("evil", "tool")
	up.Liveness.State = hub.Alive
	x.Put(up)
	expectRows(t, x, hub.Query{Text: "tool", Live: []string{"unknown"}}, "tool@evil", "tool@good +1[evil]")
	// Who was there first stays first, whatever is heard of it.
	x.Put(of("evil", "tool"))
	theirs.Liveness.State = hub.Unreachable
	x.Put(theirs)
	theirs.Liveness.State = hub.Unknown
	x.Put(theirs)
	expectRows(t, x, hub.Query{}, want...)
}

// TestSearch_CountsOfCopiesHold compares each count of a facet with the search
// that it offers, and all rows with their equals with what there is.
func TestSearch_CountsOfCopiesHold(tt *testing.T) {
	rapid.Check(tt, func(t *rapid.T) {
		pick := func(label string, from ...string) string { return rapid.SampledFrom(from).Draw(t, label) }
		portals, names := []string{"", "a", "b", "c"}, []string{"calc", "guide", "tool"}
		draw := func() hub.Agent {
			a := of(pick("portal", portals...), pick("name", names...))
			a.Description = pick("words", "adds numbers", "adds words")
			if a.Portal != "" {
				a.Liveness.State, a.Verified = hub.Live(pick("live", "alive", "unknown")), pick("verified", "yes", "no") == "yes"
			}
			if pick("kind", "builtin", "builtin", "a2a") == "a2a" {
				a.Kind = hub.A2A
			}
			return a
		}
		x, held := New(), make(map[string]hub.Agent)
		if rapid.Bool().Draw(t, "loaded") {
			list := rapid.SliceOfN(rapid.Custom(func(*rapid.T) hub.Agent { return draw() }), 0, 8).Draw(t, "list")
			n := 0
			x.Load(func() (hub.Agent, bool) {
				for n < len(list) {
					n++
					if _, twice := held[list[n-1].ID]; !twice {
						held[list[n-1].ID] = list[n-1]
						return list[n-1], true
					}
				}
				return hub.Agent{}, false
			})
		}
		for range rapid.IntRange(0, 12).Draw(t, "changes") {
			a := draw()
			if rapid.IntRange(0, 3).Draw(t, "remove") == 0 {
				x.Remove(a.ID)
				delete(held, a.ID)
				continue
			}
			x.Put(a)
			held[a.ID] = a
		}
		q := hub.Query{Text: pick("text", "", "adds", "words"), Limit: maxLimit}
		if rapid.Bool().Draw(t, "narrow") {
			*fieldOf(&q, pick("filter", "live", "signed", "kind", "portal")) = []string{pick("value", "alive", "unknown", "true", "false", "builtin", "a", "b")}
		}
		page := mustSearch(tt, x, q)
		if page.Total != len(page.Results) {
			t.Fatalf("%d rows of %d", len(page.Results), page.Total)
		}
		for _, name := range []string{"live", "signed", "kind", "portal", "tag"} {
			for _, c := range page.Facets[name] {
				asked := q
				*fieldOf(&asked, name) = []string{c.Value}
				if got := mustSearch(tt, x, asked).Total; got != c.Count {
					t.Errorf("%s %q counts %d, and finds %d", name, c.Value, c.Count, got)
				}
			}
		}
		all := q
		all.Copies = true
		shown := make(map[string]bool)
		for _, r := range page.Results {
			shown[r.Agent.ID] = true
			same := all
			same.Same = r.Agent.ID
			for _, s := range mustSearch(tt, x, same).Results {
				if a := held[s.Agent.ID]; s.Agent.ID != r.Agent.ID && (a.Kind != hub.Builtin || a.Name != r.Agent.Name || a.Description != r.Agent.Description) {
					t.Errorf("%s counts as equal to %s", s.Agent.Handle(), r.Agent.Handle())
				}
				shown[s.Agent.ID] = true
			}
		}
		for _, r := range mustSearch(tt, x, all).Results {
			own := r.Agent.Portal == "" && q.Portals == nil
			if !shown[r.Agent.ID] && q.Signed == nil && q.Live == nil || own && !slices.ContainsFunc(page.Results, func(o hub.Result) bool { return o.Agent.ID == r.Agent.ID }) {
				t.Errorf("%s is not to be found", r.Agent.Handle())
			}
		}
	})
}

func fieldOf(q *hub.Query, facet string) *[]string {
	return map[string]*[]string{"live": &q.Live, "signed": &q.Signed, "kind": &q.Kinds, "portal": &q.Portals, "tag": &q.Tags}[facet]
}
