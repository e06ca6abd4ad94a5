package index

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"agentsite/internal/fault"
	"agentsite/internal/hub"
)

// agent returns a listable agent that is alive.
func agent(name string, change ...func(*hub.Agent)) hub.Agent {
	a := hub.Agent{
		ID: "id-" + name, Name: name, Title: name, Kind: hub.A2A, Visibility: hub.Public,
		Status: hub.Status{State: hub.Active}, Liveness: hub.Liveness{State: hub.Alive},
	}
	for _, c := range change {
		c(&a)
	}
	return a
}

func describe(text string) func(*hub.Agent) { return func(a *hub.Agent) { a.Description = text } }
func live(l hub.Live) func(*hub.Agent)      { return func(a *hub.Agent) { a.Liveness.State = l } }
func portal(host string) func(*hub.Agent) {
	return func(a *hub.Agent) { a.Portal, a.ID = host, a.ID+host }
}
func kind(k hub.Kind) func(*hub.Agent) { return func(a *hub.Agent) { a.Kind = k } }
func skill(name string, tags ...string) func(*hub.Agent) {
	return func(a *hub.Agent) { a.Skills = append(a.Skills, hub.Skill{ID: name, Name: name, Tags: tags}) }
}

func filled(agents ...hub.Agent) *Index {
	x := New()
	for _, a := range agents {
		x.Put(a)
	}
	return x
}

func mustSearch(t testing.TB, x *Index, q hub.Query) hub.Page {
	t.Helper()
	page, err := x.Search(q)
	if err != nil {
		t.Fatalf("search %+v: %v", q, err)
	}
	return page
}

func names(page hub.Page) string {
	var list []string
	for _, r := range page.Results {
		list = append(list, r.Agent.Handle())
	}
	return strings.Join(list, " ")
}

func TestSearch_FindsWhatPeopleMean(t *testing.T) {
	x := filled(
		agent("polyglot", describe("Translates documents between forty languages."), skill("Translate text", "language", "Documents")),
		agent("translator", describe("A fast one.")),
		agent("weather", describe("Forecasts for every city, translated on demand."), skill("forecast", "weather", "climate")),
		agent("sql-writer", describe("Turns questions into SQL for PostgreSQL and SQLite."), skill("Write a query", "database")),
		agent("code-reviewer", describe("Reads your pull request line by line and explains bugs."), skill("review", "code")),
		agent("cafe-finder", describe("Finds the nearest café."), func(a *hub.Agent) {
			a.Skills = []hub.Skill{{ID: "find", Name: "find", Examples: []string{"Where can I drink espresso in Zürich?"}}}
		}),
	)
	for _, c := range []struct{ name, text, want string }{
		{"name beats skill beats description", "translate", "translator polyglot weather"},
		{"prefix", "transl", "translator polyglot weather"},
		{"typo", "wether", "weather"},
		{"typo in a long word", "languagse", "polyglot"},
		{"phrase", `"pull request"`, "code-reviewer"},
		{"phrase not there", `"request pull"`, ""},
		{"exclusion", "translate -fast -city", "polyglot"},
		{"hyphenated name written together", "sqlwriter", "sql-writer"},
		{"hyphenated name", "sql-writer", "sql-writer"},
		{"words apart", "code reviewer", "code-reviewer"},
		{"diacritics", "cafe zurich", "cafe-finder"},
		{"tag", "climate", "weather"},
		{"case", "POSTGRESQL", "sql-writer"},
		{"more words win", "explain database code bugs", "code-reviewer sql-writer"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := names(mustSearch(t, x, hub.Query{Text: c.text})); got != c.want {
				t.Errorf("%q: found %q, want %q", c.text, got, c.want)
			}
		})
	}
}

func TestSearch_StopWordsDecideNothing(t *testing.T) {
	x := New()
	for i := range 30 {
		x.Put(agent(fmt.Sprintf("other%d", i), describe("the one of the many")))
	}
	x.Put(agent("reviewer", describe("a long text about programs and their bugs and what else there is to say of code")))
	if got := mustSearch(t, x, hub.Query{Text: "the bugs of the"}).Results[0].Agent.Name; got != "reviewer" {
		t.Errorf("first is %s", got)
	}
}

func TestSearch_SaysWhichFieldsMatched(t *testing.T) {
	x := filled(agent("poet", describe("Writes verse."), skill("rhyme", "verse")))
	r := mustSearch(t, x, hub.Query{Text: "poet verse"}).Results[0]
	if got := strings.Join(r.Matched, " "); got != "name title tags description" || r.Score <= 0 {
		t.Errorf("matched %q with score %v", got, r.Score)
	}
	if r := mustSearch(t, x, hub.Query{}).Results[0]; r.Matched != nil || r.Score != 0 {
		t.Errorf("a listing has matched %v with score %v", r.Matched, r.Score)
	}
}

func TestSearch_ListsAliveFirstThenByName(t *testing.T) {
	x := filled(agent("d"), agent("b", live(hub.Unreachable)), agent("a", live("")), agent("c", portal("x.example")), agent("c"))
	if got := names(mustSearch(t, x, hub.Query{})); got != "c c@x.example d a b" {
		t.Errorf("listed %q", got)
	}
	if got := names(mustSearch(t, x, hub.Query{Text: "-d"})); got != "c c@x.example a b" {
		t.Errorf("listed %q", got)
	}
}

func TestSearch_SinksTheDeadWithinThePageOnly(t *testing.T) {
	x := filled(agent("echo", live(hub.Unreachable)), agent("one", describe("echo")), agent("two", describe("echo")))
	if got := names(mustSearch(t, x, hub.Query{Text: "echo", Limit: 2})); got != "one echo" {
		t.Errorf("first page %q: the dead one belongs on it, at its end", got)
	}
	if a, b := mustSearch(t, x, hub.Query{Text: "echo"}).Results[2], "echo"; a.Agent.Name != b {
		t.Errorf("last is %q", a.Agent.Name)
	}
}

func TestPut_ListsOnlyWhatMayBeListed(t *testing.T) {
	hidden := map[string]func(*hub.Agent){
		"unlisted":  func(a *hub.Agent) { a.Visibility = hub.Unlisted },
		"private":   func(a *hub.Agent) { a.Visibility = hub.Private },
		"withdrawn": func(a *hub.Agent) { a.Status.State = hub.Withdrawn },
	}
	for name, hide := range hidden {
		x := filled(agent("spy"))
		x.Put(agent("spy", hide))
		if page := mustSearch(t, x, hub.Query{Text: "spy"}); page.Total != 0 || x.Len() != 0 {
			t.Errorf("%s: still found", name)
		}
		x.Put(agent("spy"))
		if x.Len() != 1 {
			t.Errorf("%s: not found again", name)
		}
	}
}

func TestPutAndRemove_LeaveNoTrace(t *testing.T) {
	keep := agent("keeper", describe("stays"), skill("keep", "kept"))
	x := filled(keep)
	for round := range 30 {
		for i := range 40 {
			a := agent(fmt.Sprintf("temp-%d-%d", round, i), describe("fleeting"), func(a *hub.Agent) { a.Portal = fmt.Sprintf("p%d", round) },
				skill(fmt.Sprintf("skill %d", i), "kept", fmt.Sprintf("tag%d", i)), live(hub.Unreachable), kind(hub.OpenAI))
			x.Put(a)
			a.Skills = nil
			a.Portal = "moved.example"
			x.Put(a)
		}
		for i := range 40 {
			x.Remove(fmt.Sprintf("id-temp-%d-%d", round, i))
		}
	}
	x.Remove("unknown")
	if x.Len() != 1 {
		t.Fatalf("%d agents", x.Len())
	}
	for _, q := range []hub.Query{{}, {Text: "fleeting"}, {Text: "kept"}, {Text: "temp"}, {Portals: []string{"p3"}}} {
		got, want := mustSearch(t, x, q), mustSearch(t, filled(keep), q)
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%+v:\n got %+v\nwant %+v", q, got, want)
		}
	}
	for f, facet := range x.facets {
		if n := facet.byText.Len(); n > 2 || len(facet.values) > 100 {
			t.Errorf("facet %s: %d values in %d places", facetNames[f], n, len(facet.values))
		}
	}
	if len(x.docs) > 41 {
		t.Errorf("%d documents: numbers of removed ones are not used again", len(x.docs))
	}
}

func TestPut_OfANewVerdictMovesTheAgent(t *testing.T) {
	x := filled(agent("a"), agent("b"))
	x.Put(agent("a", live(hub.WrongProtocol)))
	page := mustSearch(t, x, hub.Query{})
	if got := names(page); got != "b a" || page.Results[1].Agent.Liveness.State != hub.WrongProtocol {
		t.Errorf("listed %q", got)
	}
	if got := fmt.Sprint(page.Facets["live"]); got != "[{alive 1} {wrong_protocol 1}]" {
		t.Errorf("live facet %s", got)
	}
}

func TestSearch_CountsAFacetWithoutItsOwnFilter(t *testing.T) {
	x := filled(agent("a", kind(hub.A2A), skill("s", "X")), agent("b", kind(hub.OpenAI), skill("s", "x")),
		agent("c", kind(hub.OpenAI), skill("S", "y"), portal("p.example")))
	page := mustSearch(t, x, hub.Query{Kinds: []string{"openai"}, Tags: []string{"x"}})
	got := fmt.Sprint(page.Total, page.Facets["kind"], page.Facets["tag"], page.Facets["skill"], page.Facets["portal"])
	if want := "1 [{a2a 1} {openai 1}] [{x 1} {y 1}] [{s 1}] [{local 1}]"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := names(mustSearch(t, x, hub.Query{Portals: []string{""}})); got != "a b" {
		t.Errorf("local portal: %q", got)
	}
}

func TestSearch_SuggestsWordsWhenNothingIsFound(t *testing.T) {
	x := filled(agent("weather"), agent("translator"))
	page := mustSearch(t, x, hub.Query{Text: "wxxther"})
	if page.Total != 0 || !slices.Contains(page.Suggestions, "weather") {
		t.Errorf("suggested %v", page.Suggestions)
	}
	if page := mustSearch(t, x, hub.Query{Text: "weather"}); page.Suggestions != nil {
		t.Errorf("suggested %v beside results", page.Suggestions)
	}
}

func TestSearch_RefusesACursorItDidNotMake(t *testing.T) {
	x := filled(agent("a"), agent("b"))
	good := mustSearch(t, x, hub.Query{Limit: 1}).NextCursor
	for _, q := range []hub.Query{
		{Cursor: "???"}, {Cursor: "AAAA"}, {Cursor: strings.Repeat("A", 5000)}, {Cursor: good[:5]},
		{Text: "other", Cursor: good}, {Kinds: []string{"a2a"}, Cursor: good},
	} {
		_, err := x.Search(q)
		if !fault.Is(err, fault.Invalid) || fault.As(err).Fields["cursor"] == "" {
			t.Errorf("%+v: %v", q, err)
		}
	}
}

func TestSearch_BringsTheLimitIntoBounds(t *testing.T) {
	x := New()
	for i := range 150 {
		x.Put(agent(fmt.Sprintf("a%03d", i)))
	}
	for limit, want := range map[int]int{0: 20, -5: 1, 7: 7, 1000: 100} {
		if got := len(mustSearch(t, x, hub.Query{Limit: limit}).Results); got != want {
			t.Errorf("limit %d: %d results, want %d", limit, got, want)
		}
	}
}

func TestIndex_IsSafeForConcurrentUse(t *testing.T) {
	x := New()
	c := newCorpus()
	for i := range 200 {
		x.Put(c.agent(i))
	}
	var wg sync.WaitGroup
	for g := range 3 {
		wg.Go(func() {
			for i := range 300 {
				a := c.agent(1000*g + i)
				x.Put(a)
				page, err := x.Search(hub.Query{Text: `"` + a.Name + `"`})
				if err != nil || !slices.ContainsFunc(page.Results, func(r hub.Result) bool { return r.Agent.ID == a.ID }) {
					t.Errorf("%s not found right after Put: %v", a.Name, err)
				}
				if i%3 == 0 {
					x.Remove(a.ID)
				}
			}
		})
		wg.Go(func() {
			for i := range 300 {
				x.Search(hub.Query{Text: c.words[i%50] + " " + c.words[i], Kinds: []string{"a2a"}})
				x.Search(hub.Query{Limit: 5})
				x.Len()
			}
		})
	}
	wg.Wait()
}

func FuzzSearch(f *testing.F) {
	for _, s := range []string{"", "weather", `"a b" -c`, "-", `"`, "real-time", "\xff\x00", "東京"} {
		f.Add(s, "")
	}
	x := filled(agent("weather", describe("real-time data, 東京")), agent("b-c", describe("a b c")))
	f.Fuzz(func(t *testing.T, text, cursor string) {
		page, err := x.Search(hub.Query{Text: text, Cursor: cursor, Limit: 1})
		if err != nil {
			if !fault.Is(err, fault.Invalid) {
				t.Fatal(err)
			}
			return
		}
		if page.Total > 2 || len(page.Results) > 1 {
			t.Fatalf("%q: %+v", text, page)
		}
	})
}
