package grant

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"agentsite/internal/fault"
)

var (
	now   = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	ada   = Person{"person", "p1"}
	facts = Binding{Owner: "ben", Origin: "https://model.example", Needs: "ask find"}
	use   = Use{Person: ada, AgentID: "a1", Tool: Ask, Target: "calc", Public: true, ConversationID: "c1", Binds: facts}
	allow = Grant{ID: "g1", Person: ada, AgentID: "a1", Tool: Ask, Target: "calc", Allow: true, Binds: facts}
)

// change returns a copy of a grant.
func change(g Grant, f func(*Grant)) Grant { f(&g); return g }

func TestDecide(t *testing.T) {
	deny := change(allow, func(g *Grant) { g.ID, g.Allow = "g2", false })
	here := change(allow, func(g *Grant) { g.ID, g.ConversationID = "g3", "c1" })
	public := change(allow, func(g *Grant) { g.ID, g.Target = "g4", AnyPublic })
	for name, c := range map[string]struct {
		list []Grant
		use  Use
		want Decision
		by   string
	}{
		"no grant":                        {nil, use, Undecided, ""},
		"allowed":                         {[]Grant{allow}, use, Allowed, "g1"},
		"denied":                          {[]Grant{deny}, use, Denied, "g2"},
		"a denial wins":                   {[]Grant{allow, here, deny}, use, Denied, "g2"},
		"that of the conversation first":  {[]Grant{allow, here}, use, Allowed, "g3"},
		"another conversation":            {[]Grant{change(here, func(g *Grant) { g.ConversationID = "c2" })}, use, Undecided, ""},
		"another person":                  {[]Grant{change(allow, func(g *Grant) { g.Person.ID = "p2" })}, use, Undecided, ""},
		"the id at another portal":        {[]Grant{change(allow, func(g *Grant) { g.Person.Kind = "portal" })}, use, Undecided, ""},
		"another agent":                   {[]Grant{change(allow, func(g *Grant) { g.AgentID = "a2" })}, use, Undecided, ""},
		"another tool":                    {[]Grant{change(allow, func(g *Grant) { g.Tool = "read" })}, use, Undecided, ""},
		"another target":                  {[]Grant{change(allow, func(g *Grant) { g.Target = "guide" })}, use, Undecided, ""},
		"every public agent":              {[]Grant{public}, use, Allowed, "g4"},
		"a private agent is not public":   {[]Grant{public}, Use{ada, "a1", "", Ask, "calc", false, "c1", facts}, Undecided, ""},
		"a denial of public covers all":   {[]Grant{change(public, func(g *Grant) { g.Allow = false })}, Use{ada, "a1", "", Ask, "calc", false, "c1", facts}, Denied, "g4"},
		"public is no tool of a server":   {[]Grant{change(public, func(g *Grant) { g.Tool = "read" })}, Use{ada, "a1", "", "read", "files", true, "c1", facts}, Undecided, ""},
		"expired":                         {[]Grant{change(allow, func(g *Grant) { g.Until = now })}, use, Undecided, ""},
		"not expired":                     {[]Grant{change(allow, func(g *Grant) { g.Until = now.Add(1) })}, use, Allowed, "g1"},
		"used up":                         {[]Grant{change(allow, func(g *Grant) { g.Calls, g.Used = 2, 2 })}, use, Undecided, ""},
		"calls are left":                  {[]Grant{change(allow, func(g *Grant) { g.Calls, g.Used = 2, 1 })}, use, Allowed, "g1"},
		"the agent was given away":        {[]Grant{change(allow, func(g *Grant) { g.Binds.Owner = "eve" })}, use, Undecided, ""},
		"the agent was moved":             {[]Grant{change(allow, func(g *Grant) { g.Binds.Origin = "https://eve.example" })}, use, Undecided, ""},
		"the agent uses other tools":      {[]Grant{change(allow, func(g *Grant) { g.Binds.Needs = "ask" })}, use, Undecided, ""},
		"a denial outlives such a change": {[]Grant{change(deny, func(g *Grant) { g.Binds.Owner = "eve" })}, use, Denied, "g2"},
	} {
		if got, by := Decide(c.list, c.use, now); got != c.want || by.ID != c.by {
			t.Errorf("%s: %d by %q, want %d by %q", name, got, by.ID, c.want, c.by)
		}
	}
}

// No list of grants allows a use that no single one of them allows, and every removal of an allowing grant only
// narrows: a use that fewer grants allow is allowed by more, unless one denies.
func TestDecide_NeverWidens(t *testing.T) {
	words := rapid.SampledFrom([]string{"calc", "guide", AnyPublic})
	tools := rapid.SampledFrom([]string{Ask, Find, "read"})
	rooms := rapid.SampledFrom([]string{"", "c1", "c2"})
	rapid.Check(t, func(t *rapid.T) {
		var list []Grant
		for i := range rapid.IntRange(0, 6).Draw(t, "grants") {
			list = append(list, Grant{ID: string(rune('a' + i)), Person: ada, AgentID: rapid.SampledFrom([]string{"a1", "a2"}).Draw(t, "agent"),
				Tool: tools.Draw(t, "tool"), Target: words.Draw(t, "target"), ConversationID: rooms.Draw(t, "room"),
				Allow: rapid.IntRange(0, 3).Draw(t, "allow") > 0, Calls: rapid.IntRange(0, 2).Draw(t, "calls"), Used: 1, Binds: facts})
		}
		u := use
		u.Tool, u.Target, u.Public = tools.Draw(t, "used"), words.Draw(t, "on"), rapid.Bool().Draw(t, "public")
		d, by := Decide(list, u, now)
		alone, denied := false, false
		for _, g := range list {
			one, _ := Decide([]Grant{g}, u, now)
			alone, denied = alone || one == Allowed, denied || one == Denied
		}
		switch {
		case denied && d != Denied, !denied && alone && d != Allowed, !denied && !alone && d != Undecided:
			t.Fatalf("%d by %+v; one alone allows: %v, denies: %v", d, by, alone, denied)
		case d == Allowed && (by.Calls == 1 || !by.Allow):
			t.Fatalf("allowed by %+v", by)
		}
	})
}

func TestGrant_SaysWhyItLapsed(t *testing.T) {
	for want, b := range map[string]Binding{
		"":                                       facts,
		"The agent has another owner now.":       {Owner: "eve", Origin: "x"},
		"The agent runs at another address now.": {Owner: "ben", Origin: "x"},
		"The agent uses other tools now.":        {Owner: "ben", Origin: facts.Origin},
	} {
		if got := allow.Lapsed(b); got != want {
			t.Errorf("%+v: %q, want %q", b, got, want)
		}
	}
	if got := NeedsOf([]string{"find", "ask", "find"}); got != "ask find" {
		t.Errorf("needs %q", got)
	}
}

// A denial covers a file and the folder of its name, a permission only the named one.
func TestDecide_Files(t *testing.T) {
	read := Use{Person: ada, AgentID: "a1", Tool: LibraryRead, Binds: facts}
	for _, c := range []struct {
		target string
		allow  bool
		path   string
		want   Decision
	}{
		{"secret", false, "secret", Denied},
		{"secret", false, "secret/a.txt", Denied},
		{"secret", false, "secret/", Denied},
		{"secret", false, "secrets.txt", Undecided},
		{"secret/", false, "secret/deep/a.txt", Denied},
		{"secret", true, "secret/a.txt", Undecided},
		{"secret", true, "secret", Allowed},
		{"secret/", true, "secret/a.txt", Allowed},
		{WholeLibrary, true, "secret/a.txt", Allowed},
	} {
		u := read
		u.Target = c.path
		g := Grant{ID: "g1", Person: ada, AgentID: "a1", Tool: LibraryRead, Target: c.target, Allow: c.allow, Binds: facts}
		if got, _ := Decide([]Grant{g}, u, now); got != c.want {
			t.Errorf("%q (allow: %v) for %q: %d, want %d", c.target, c.allow, c.path, got, c.want)
		}
	}
}

// The target of a grant for the library has one form, that of paths.
func TestCheckTarget(t *testing.T) {
	for _, c := range []struct{ tool, target, want, wrong string }{
		{LibraryRead, "notes/", "notes/", ""},
		{LibraryRead, "cafe\u0301/", "caf\u00e9/", ""},
		{LibraryWrite, WholeLibrary, WholeLibrary, ""},
		{LibraryWrite, "", "", "name a folder"},
		{LibraryRead, "/notes/", "", "name a folder"},
		{LibraryRead, "notes//tea.md", "", "name a folder"},
		{LibraryRead, "//", "", "name a folder"},
		{LibraryRead, strings.Repeat("\u00e9", 300), strings.Repeat("\u00e9", 300), ""},
		{LibraryRead, strings.Repeat("a", 301), "", "is longer than 300 characters"},
		{Ask, "", "", "name the agent"},
		{Find, "x", "", "leave it out"},
	} {
		var check fault.Check
		got := checkTarget(&check, c.tool, c.target)
		err := check.Err()
		if c.wrong == "" && (err != nil || got != c.want) || c.wrong != "" &&
			(err == nil || !strings.HasPrefix(fault.As(err).Fields["scope"], c.wrong)) {
			t.Errorf("%s %q: %q, %v", c.tool, c.target, got, err)
		}
	}
}
