package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"agentsite/agentruntime/builtin/calc"
	"agentsite/docs"
	"agentsite/internal/hub"
	"agentsite/internal/index"
	"agentsite/internal/meaning"
	"agentsite/internal/task"
	"agentsite/internal/team/handover"
	"agentsite/internal/testing/racetest"
)

// now is when the tests take place.
var now = time.Date(2026, 11, 20, 13, 0, 0, 0, time.UTC)

// sink collects what a driver streams, and calls onText after each piece.
type sink struct {
	mu     sync.Mutex
	text   strings.Builder
	pieces int
	onText func()
}

func (s *sink) Text(delta string) {
	s.mu.Lock()
	s.text.WriteString(delta)
	s.pieces++
	s.mu.Unlock()
	if s.onText != nil {
		s.onText()
	}
}

func (s *sink) Replace(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text.Reset()
	s.text.WriteString(text)
}
func (s *sink) Status(string)                                     {}
func (s *sink) Artifact(task.Artifact)                            {}
func (s *sink) Checkpoint(context.Context, json.RawMessage) error { return nil }

func rows(t testing.TB, path string, columns int) [][]string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var out [][]string
	for line := range strings.Lines(string(b)) {
		line = strings.TrimRight(line, "\r\n")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		row := strings.Split(line, "\t")
		if len(row) != columns {
			t.Fatalf("%s: %d columns in %q, want %d", path, len(row), line, columns)
		}
		out = append(out, row)
	}
	return out
}

// directory is an index of about 60 agents and the built-in ones.
func directory(t testing.TB) *index.Index {
	t.Helper()
	x := index.New()
	for _, r := range rows(t, "testdata/directory.tsv", 8) {
		x.Put(hub.Agent{
			ID: r[0], Name: r[0], Title: r[1], Description: r[2], Kind: hub.A2A, Visibility: hub.Public,
			Skills:   []hub.Skill{{ID: "main", Name: r[3], Description: r[4], Tags: strings.Split(r[5], ","), Examples: []string{r[6]}}},
			Liveness: hub.Liveness{State: hub.Live(r[7]), CheckedAt: now.Add(-5 * time.Minute)},
		})
	}
	for _, d := range Drafts() {
		x.Put(hub.Agent{
			ID: *d.Name, Name: *d.Name, Title: *d.Title, Description: *d.Description, Kind: *d.Kind, Visibility: *d.Visibility,
			Skills: *d.Skills, Liveness: hub.Liveness{State: hub.Alive, CheckedAt: now},
		})
	}
	return x
}

func theManual() []Section {
	var list []Section
	for _, s := range docs.Sections() {
		list = append(list, Section{Page: s.Page, PageTitle: s.PageTitle, Title: s.Title, Anchor: s.Anchor, Text: s.Text,
			Asked: docs.Asked(s)})
	}
	return list
}

// model is the model of meanings of the binary.
var model = sync.OnceValue(func() *meaning.Model {
	m, err := meaning.Open()
	if err != nil {
		panic(err)
	}
	return m
})

func config(x hub.Index) Config {
	return Config{
		Search:    searchFunc(func(_ context.Context, q hub.Query) (hub.Page, error) { return x.Search(q) }),
		Manual:    theManual(),
		Encode:    model().Encode,
		PortalURL: "https://portal.example",
		Now:       func() time.Time { return now },
	}
}

func driver(t testing.TB) *Driver {
	t.Helper()
	return New(config(directory(t)))
}

func call(agent, text string, history ...task.Turn) task.Call {
	return task.Call{Agent: task.Target{Name: agent, Kind: "builtin"}, Caller: task.Caller{Kind: "guest"}, Parts: []task.Part{task.TextPart(text)}, History: history}
}

func mine(text string) task.Turn {
	return task.Turn{Mine: true, Speaker: "guide", Parts: []task.Part{task.TextPart(text)}}
}

func theirs(text string) task.Turn {
	return task.Turn{Speaker: "anna", Parts: []task.Part{task.TextPart(text)}}
}

// say runs a call and checks what holds for every answer.
func say(t testing.TB, d *Driver, c task.Call) string {
	t.Helper()
	var out sink
	result, err := d.Run(t.Context(), c, &out)
	if err != nil || result.State != task.Completed {
		t.Fatalf("%q: %+v, %v", c.Parts[0].Text, result, err)
	}
	text := task.PlainText(result.Parts)
	if out.text.String() != text || text == "" {
		t.Errorf("%q: streamed %q, answered %q", c.Parts[0].Text, out.text.String(), text)
	}
	return text
}

var offered = regexp.MustCompile(`(?m)^- \[.*?\]\(/agents/([^)]+)\)`)

// offers are the agents that an answer hands over to, in its order.
func offers(answer string) []string {
	var names []string
	for _, m := range offered.FindAllStringSubmatch(answer, -1) {
		names = append(names, m[1])
	}
	return names
}

var docLink = regexp.MustCompile(`\]\(/docs/([^)]+)\)`)

// led are the sections that an answer leads to: the links of its last line
// about the manual, not those inside of what it quotes.
func led(answer string) []string {
	i := strings.LastIndex(answer, "\n\nManual: ")
	if i < 0 {
		return nil
	}
	var list []string
	for _, m := range docLink.FindAllStringSubmatch(answer[i:], -1) {
		list = append(list, m[1])
	}
	return list
}

// leading asks all questions and returns the shares that lead to the right
// section: by any link of the answer, and by the first.
func leading(t *testing.T, path string) (any, first float64) {
	t.Helper()
	return leadingBy(t, driver(t), path)
}

func leadingBy(t *testing.T, d *Driver, path string) (any, first float64) {
	t.Helper()
	list := rows(t, path, 3)
	for _, r := range list {
		var want []string
		for a := range strings.SplitSeq(r[2], "|") {
			if !strings.Contains(a, "#") {
				a = r[1] + "#" + a
			}
			want = append(want, strings.TrimPrefix(a, "/docs/"))
		}
		links := led(say(t, d, call("guide", r[0])))
		if len(links) > maxLinks {
			t.Errorf("%q: %d links", r[0], len(links))
		}
		switch i := slices.IndexFunc(links, func(l string) bool {
			return slices.Contains(want, l) || slices.Contains(want, l[strings.IndexByte(l, '#')+1:])
		}); {
		case i == 0:
			any, first = any+1, first+1
		case i > 0:
			any++
		default:
			if testing.Verbose() && !strings.Contains(path, "heldout") {
				t.Logf("missed %q: got %v", r[0], links)
			}
		}
	}
	n := float64(len(list))
	t.Logf("%s: %.0f of %.0f lead to the right section, %.0f first", path, any, n, first)
	return any / n, first / n
}

func TestGuide_LeadsToTheRightSectionInDevelopment(t *testing.T) {
	racetest.Skip(t)
	if any, first := leading(t, "testdata/dev_questions.tsv"); any < 0.96 || first < 0.84 {
		t.Errorf("%.0f%% lead to the right section, %.0f%% first", any*100, first*100)
	}
	if any, first := leading(t, "testdata/lay_questions.tsv"); any < 0.85 || first < 0.6 {
		t.Errorf("%.0f%% of those in lay words lead to the right section, %.0f%% first", any*100, first*100)
	}
}

// The questions of heldout.tsv were written before any answer to them was seen, and are looked at as totals only. Tune
// on testdata/dev_questions.tsv, testdata/lay_questions.tsv and docs/testdata/questions.tsv.
func TestGuide_LeadsToTheRightSection(t *testing.T) {
	racetest.Skip(t)
	if any, _ := leading(t, "../../docs/testdata/questions.tsv"); any < 0.9 {
		t.Errorf("%.0f%% of the old questions lead to the right section", any*100)
	}
	if any, _ := leading(t, "../../docs/testdata/heldout.tsv"); any < 0.9 {
		t.Errorf("%.0f%% lead to the right section", any*100)
	}
}

func TestGuide_FindsWhoFits(t *testing.T) {
	d := driver(t)
	list := rows(t, "testdata/needs.tsv", 2)
	top3, top1 := 0, 0
	for _, r := range list {
		got := offers(say(t, d, call("guide", r[0])))
		i := slices.Index(got, r[1])
		if i == 0 {
			top1++
		}
		if i >= 0 && i < 3 {
			top3++
		} else if testing.Verbose() {
			t.Logf("missed %q: want %s, got %v", r[0], r[1], got)
		}
	}
	t.Logf("%d of %d needs have the right agent among the first three, %d first", top3, len(list), top1)
	if float64(top3) < 0.85*float64(len(list)) {
		t.Errorf("only %d of %d", top3, len(list))
	}
}

func TestGuide_SaysWhyAndHandsOver(t *testing.T) {
	d := driver(t)
	got := say(t, d, call("guide", "I need somebody to translate a letter"))
	for _, want := range []string{
		"- [Lingua Translator](/agents/lingua)", "It fits because its title says “translator”", "“Translate this letter to French”",
		"It was alive when checked 5 minutes ago.", "[Talk to lingua](/agents/lingua?text=I+need+somebody+to+translate+a+letter#talk-title)", "“I need somebody to translate a letter”",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in:\n%s", want, got)
		}
	}
	got = say(t, d, call("guide", "who can shorten a report for me"))
	if !strings.Contains(got, "(for “shorten”)") {
		t.Errorf("the related word is not explained:\n%s", got)
	}
	if got := say(t, d, call("guide", "my kubernetes pods keep crashing, who helps")); !strings.Contains(got, "unreachable when last checked 5 minutes ago") {
		t.Errorf("the state is not told:\n%s", got)
	}
}

func TestGuide_DecidesWhatIsMeant(t *testing.T) {
	d := driver(t)
	for _, c := range []struct{ text, agent, section string }{
		{"who can calculate for me?", "calc", ""},
		{"hi, who can calculate for me?", "calc", ""},
		{"@guide who can calculate for me?", "calc", ""},
		{"who can read my conversation?", "", "talk#who-can-read-my-conversation"},
		{"how do I make a backup?", "", "operate#how-do-i-back-up"},
		{"what is an unlisted agent", "", "register#what-do-public-unlisted-and-private-mean"},
		{"how do I register an agent", "", "register#how-do-i-register-an-agent-with-the-form"},
		{"reset my pasword", "", "accounts#i-forgot-my-password-what-now"},
		{"translate a letter", "lingua", ""},
		{"how can I translate a contract to German", "lingua", ""},
	} {
		got := say(t, d, call("guide", c.text))
		if c.agent != "" && !slices.Contains(offers(got), c.agent) {
			t.Errorf("%q: no %s in:\n%s", c.text, c.agent, got)
		}
		if c.agent == "" && len(offers(got)) > 0 {
			t.Errorf("%q: offers %v", c.text, offers(got))
		}
		if c.section != "" && !slices.Contains(led(got), c.section) {
			t.Errorf("%q: leads to %v", c.text, led(got))
		}
	}
}

// TestGuide_LinksToTheManualBesideAgents asks about the portal in words that fit an agent better.
func TestGuide_LinksToTheManualBesideAgents(t *testing.T) {
	got := say(t, driver(t), call("guide", "one helper in the group gives up, what then"))
	if len(offers(got)) == 0 || !strings.Contains(got, aboutPortal) || len(led(got)) == 0 {
		t.Errorf("no agents with links to the manual in:\n%s", got)
	}
}

func TestGuide_MakesSmallTalk(t *testing.T) {
	d := driver(t)
	for text, want := range map[string]string{
		"hi": "Hello!", "Good morning, guide!": "Hello!", "what can you do?": "I find agents", "help": "I find agents", "": "I find agents",
		"@guide": "I find agents", "thanks a lot!": "You are welcome", "more": "no earlier question",
		"which agents are there?": "64 agents", "who are you": "I find agents",
	} {
		if got := say(t, d, call("guide", text)); !strings.Contains(got, want) {
			t.Errorf("%q: no %q in:\n%s", text, want, got)
		}
	}
}

func TestGuide_IsHonestWhenNothingFits(t *testing.T) {
	d := driver(t)
	got := say(t, d, call("guide", "I need an agent that repairs accordions"))
	if len(offers(got)) != 0 && !strings.Contains(got, "No agent here fits all of it") || !strings.Contains(got, "(/agents/new)") {
		t.Errorf("got:\n%s", got)
	}
	if got = say(t, d, call("guide", "find me a bot for weathr")); !slices.Contains(offers(got), "skycast") {
		t.Errorf("a typing error is not forgiven:\n%s", got)
	}
	if got = say(t, d, call("guide", "an agent that can walk my dog")); !strings.Contains(got, "none mentions “walk”") {
		t.Errorf("what is missing is not told:\n%s", got)
	}
	for _, r := range rows(t, "testdata/needs.tsv", 2) {
		if slices.Contains(offers(say(t, d, call("guide", r[0]))), "guide") {
			t.Errorf("%q: guide recommends itself", r[0])
		}
	}
	empty := New(Config{Now: func() time.Time { return now }})
	for _, text := range []string{"who can translate?", "how do I back up?", "show me all agents"} {
		if got := say(t, empty, call("guide", text)); len(offers(got))+len(led(got)) != 0 {
			t.Errorf("%q: an empty portal gives:\n%s", text, got)
		}
	}
}

func TestGuide_GoesOnWithOtherResults(t *testing.T) {
	d := driver(t)
	question := "who can help with my job application"
	first := say(t, d, call("guide", question))
	second := say(t, d, call("guide", "another one please", theirs(question), mine(first)))
	third := say(t, d, call("guide", "more", theirs(question), mine(first), theirs("another one please"), mine(second)))
	a, b, c := offers(first), offers(second), offers(third)
	if len(a) == 0 {
		t.Fatalf("nothing at first:\n%s", first)
	}
	for _, n := range a {
		if slices.Contains(b, n) || slices.Contains(c, n) {
			t.Errorf("%s comes again: %v, %v, %v", n, a, b, c)
		}
	}
	question = "how do I change my password"
	first = say(t, d, call("guide", question))
	second = say(t, d, call("guide", "something else", theirs(question), mine(first)))
	for _, n := range led(first) {
		if slices.Contains(led(second), n) {
			t.Errorf("section %s comes again", n)
		}
	}
}

func TestGuide_QuotesAgentsSafely(t *testing.T) {
	x := index.New()
	evil := "juggler](https://evil.example) <script>alert(1)</script> **bold** `code` @calc\n\n# heading\n| a | https://evil.example www.evil.example \u202e" + strings.Repeat("x", 5000)
	x.Put(hub.Agent{ID: "1", Name: "evil", Portal: "p(x)", Title: evil, Description: evil, Kind: hub.A2A, Visibility: hub.Public,
		Skills: []hub.Skill{{ID: "a", Name: "juggling " + evil, Description: evil, Tags: []string{"juggle*[x](y)"}, Examples: []string{"juggle " + evil}}}})
	got := say(t, New(config(x)), call("guide", "find me a juggler"))
	if len(got) > 4000 {
		t.Errorf("%d bytes", len(got))
	}
	for _, bad := range []string{"](https://evil", " <script", " **bold", " `code", " @calc", "\n# ", " https://", " www.evil", "\u202e", "(/agents/evil@p(x)"} {
		if strings.Contains(got, bad) {
			t.Errorf("%q in:\n%s", bad, got)
		}
	}
}

func TestGuide_GivesProgramsWholeAddresses(t *testing.T) {
	d := driver(t)
	for _, text := range []string{"who can calculate?", "how do I page through a long list", "hello"} {
		c := call("guide", text)
		c.Caller.Kind = "agent"
		if got := say(t, d, c); strings.Contains(got, "](/") || strings.Contains(got, "](#") || !strings.Contains(got, "](https://portal.example/") {
			t.Errorf("%q:\n%s", text, got)
		}
	}
}

func TestGuide_BoundsWhatItShows(t *testing.T) {
	d := driver(t)
	for _, s := range theManual() {
		text, _ := cutExcerpt(s.Text, maxExcerpt)
		if text == "" || len([]rune(text)) > maxExcerpt+4 || strings.Count(text, "```")%2 != 0 {
			t.Errorf("%s: %d characters, code not closed or empty", s.urlPath(), len([]rune(text)))
		}
	}
	for _, text := range []string{strings.Repeat("find translate backup ", 5000), strings.Repeat("\"", 3000), "-a -b \"", "\xff\xfe", strings.Repeat("é", 9000), "???", "@guide@x"} {
		if got := say(t, d, call("guide", text)); len(got) > 8000 {
			t.Errorf("%.20q: %d bytes", text, len(got))
		}
	}
}

func TestCalc_Answers(t *testing.T) {
	d := driver(t)
	for _, c := range []struct{ text, want string }{
		{"15% of 240", "**36**"},
		{"@calc 15% of 240", "**36**"},
		{"@calc: 15% of 240", "**36**"},
		{"@calc@portal.example 15% of 240", "**36**"},
		{"@calc", "These work"},
		{"help", "These work"},
		{"paint my house", "I did not understand"},
		{"1/0", "Division by zero"},
	} {
		if got := say(t, d, call("calc", c.text)); !strings.Contains(got, c.want) {
			t.Errorf("%q: no %q in:\n%s", c.text, c.want, got)
		}
	}
}

func TestCalc_GoesOnFromItsLastResult(t *testing.T) {
	d := driver(t)
	ask := func(text string, before ...string) string {
		var history []task.Turn
		for _, q := range before {
			history = append(history, theirs(q), mine(say(t, d, call("calc", q, history...))))
		}
		return say(t, d, call("calc", text, history...))
	}
	for _, c := range []struct {
		before []string
		text   string
		want   string
	}{
		{[]string{"5 miles in km"}, "and in m?", "**8046.72 m**"},
		{[]string{"240"}, "plus 10%", "**264**"},
		{[]string{"240"}, "half of that", "**120**"},
		{[]string{"240"}, "+ 1", "**241**"},
		{[]string{"240"}, "- 1", "**239**"},
		{[]string{"240"}, "-1 + 5", "**4**"},
		{[]string{"240", "plus 10%"}, "now divided by 2", "**132**"},
		{[]string{"what is 6 * 7", "what is love"}, "times 2", "**84**"},
		{[]string{"5 km in miles"}, "in km", "**5 km**"},
		{[]string{"1/3"}, "that * 3", "**1**"},
		{[]string{"90 days from 2026-01-01"}, "what weekday is it", "**Wednesday**"},
		{[]string{"240"}, "in 3 weeks", "**2026-12-11**"},
		{[]string{"240"}, "15% of 80", "**12**"},
		{nil, "half of that", "I did not understand"},
		{[]string{"240"}, "in km", "I took 240 from before"},
	} {
		if got := ask(c.text, c.before...); !strings.Contains(got, c.want) {
			t.Errorf("%v, %q: no %q in:\n%s", c.before, c.text, c.want, got)
		}
	}
}

// A task of a team comes with the results of earlier ones.
func TestCalc_TakesTheResultsOfATeam(t *testing.T) {
	d := driver(t)
	for _, c := range []struct{ text, result, want string }{
		{"Add 19% VAT to the result.", "**12**\n\n15% × 80", "**14.28**"},
		{"Multiply it by 3", "**26 days** lie between Monday and Friday", "**78"},
		{"Half of that", "It is 240.", "**120**"},
		{"Times 2", "**5 km**", "**10 km**"},
		{"Add 10.", "**12**\n\n15% × 80", "**22**"},
		{"Subtract 1.5 km", "**5 km**", "**3.5 km**"},
		{"Take away 25%", "**80**", "**60**"},
		{"Divide by 4", "**26 days** lie between Monday and Friday", "**6.5"},
		{"Add 10 to 20", "**12**", "**30**"},
		{"15% of 80", "none", "**12**"},
		{"Convert it to miles", "**5 km**", "3.1"},
		{"Paint the result", "**3**", "I did not understand"},
	} {
		message := handover.Join(c.text, []handover.Result{{Owner: "x", Text: c.result}})
		if got := say(t, d, call("calc", message)); !strings.Contains(got, c.want) {
			t.Errorf("%q of %q: no %q in:\n%s", c.text, c.result, c.want, got)
		}
	}
}

func TestDrafts_HaveExamplesThatWork(t *testing.T) {
	d := driver(t)
	for _, draft := range Drafts() {
		if *draft.Kind != hub.Builtin || *draft.Description == "" || len(*draft.Skills) == 0 {
			t.Errorf("incomplete draft %s", *draft.Name)
		}
		for _, s := range *draft.Skills {
			if s.ID == "" || s.Name == "" || s.Description == "" || len(s.Tags) == 0 || len(s.Examples) == 0 || len(s.Examples) > 5 {
				t.Errorf("incomplete skill %s of %s", s.ID, *draft.Name)
			}
			for _, e := range s.Examples {
				got := say(t, d, call(*draft.Name, e))
				if strings.Contains(got, "did not understand") || *draft.Name == "guide" && len(offers(got))+len(led(got)) == 0 {
					t.Errorf("%s: %q is answered:\n%s", *draft.Name, e, got)
				}
			}
		}
	}
	for _, e := range calc.Examples() {
		if got := say(t, d, call("calc", e)); !strings.HasPrefix(got, "**") {
			t.Errorf("calc: %q is answered:\n%s", e, got)
		}
	}
}

func TestRun_FailsForAnUnknownAgent(t *testing.T) {
	result, err := driver(t).Run(t.Context(), call("oracle", "hello"), new(sink))
	if err != nil || result.State != task.Failed || !strings.Contains(result.Reason, "oracle") {
		t.Errorf("%+v, %v", result, err)
	}
}

func TestRun_ReportsAFailedSearch(t *testing.T) {
	broken := errors.New("disk on fire")
	cfg := config(index.New())
	cfg.Search = searchFunc(func(context.Context, hub.Query) (hub.Page, error) { return hub.Page{}, broken })
	if _, err := New(cfg).Run(t.Context(), call("guide", "who can translate?"), new(sink)); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
}

func TestRun_EndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	d := driver(t)
	for _, name := range []string{"guide", "calc"} {
		if _, err := d.Run(ctx, call(name, "15% of 240"), new(sink)); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// In the middle of the answer.
	ctx, cancel = context.WithCancel(t.Context())
	out := &sink{}
	out.onText = cancel
	if _, err := d.Run(ctx, call("guide", "how do I back up"), out); !errors.Is(err, context.Canceled) || out.pieces != 1 {
		t.Errorf("%v after %d pieces", err, out.pieces)
	}
	// While the directory does not answer.
	ctx, cancel = context.WithCancel(t.Context())
	cfg := config(index.New())
	cfg.Search = searchFunc(func(ctx context.Context, _ hub.Query) (hub.Page, error) {
		cancel()
		<-ctx.Done()
		return hub.Page{}, ctx.Err()
	})
	if _, err := New(cfg).Run(ctx, call("guide", "who can translate?"), new(sink)); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestRun_ServesManyAtOnce(t *testing.T) {
	d := driver(t)
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for _, r := range rows(t, "testdata/needs.tsv", 2)[:8] {
				say(t, d, call("guide", r[0]))
				say(t, d, call("calc", "15% of 240"))
			}
		})
	}
	wg.Wait()
}

func BenchmarkGuide(b *testing.B) {
	d := driver(b)
	say(b, d, call("guide", "hello"))
	for name, text := range map[string]string{"agents": "I need somebody to translate a letter", "manual": "how do I make a backup?"} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				say(b, d, call("guide", text))
			}
		})
	}
	b.Run("first", func(b *testing.B) {
		for b.Loop() {
			New(Config{Manual: theManual()}).guide()
		}
	})
}

// searchFunc is a Searcher by a function.
type searchFunc func(context.Context, hub.Query) (hub.Page, error)

func (f searchFunc) Search(ctx context.Context, q hub.Query) (hub.Page, error) { return f(ctx, q) }

// TestGuide_FindsByMeaning asks for agents in words that they do not use.
func TestGuide_FindsByMeaning(t *testing.T) {
	model, err := meaning.Open()
	if err != nil {
		t.Fatal(err)
	}
	x := index.NewWithMeaning(model, meaning.Dims)
	for _, a := range []hub.Agent{
		{ID: "vet", Name: "vet", Title: "Small Animal Practice", Description: "Veterinary advice.",
			Skills: []hub.Skill{{ID: "a", Name: "Canine illness", Description: "Assesses symptoms of dogs."}}},
		{ID: "pipes", Name: "pipes", Title: "Plumber on Call", Description: "Repairs of household plumbing.",
			Skills: []hub.Skill{{ID: "a", Name: "Pipe leak repair", Description: "Seals leaking pipes."}}},
	} {
		a.Kind, a.Visibility, a.Liveness.State = hub.A2A, hub.Public, hub.Alive
		x.Put(a)
	}
	d := New(config(x))
	for asked, want := range map[string]string{
		"my puppy has a fever":            "/agents/vet",
		"water is dripping under my sink": "/agents/pipes",
	} {
		if got := say(t, d, call("guide", asked)); !strings.Contains(got, want) || strings.Contains(got, "/docs/") {
			t.Errorf("%q: %s", asked, got)
		}
	}
}

// TestGuide_OffersNoAgentByANearWordInItsLongText asks for words that stand in no agent, but near ones in long texts.
func TestGuide_OffersNoAgentByANearWordInItsLongText(t *testing.T) {
	long := hub.Agent{Name: "harbour", Title: "Harbour", Kind: hub.A2A, Liveness: hub.Liveness{State: hub.Alive},
		Description: "Tells tides. It was made for sailors who plan a passage, and for the painters of seascapes."}
	short := hub.Agent{Name: "paintings", Title: "Painters", Kind: hub.A2A, Liveness: hub.Liveness{State: hub.Alive},
		Description: "Restores old pictures."}
	for need, offered := range map[string]string{
		"I need a pessage": "", "I need paimters": "/agents/paintings", "a passage": "/agents/harbour",
	} {
		s := &search{words: contentWords(need, seekWords), alike: map[string]hub.Result{}}
		s.rankCandidates([]hub.Agent{long, short}, map[string][]string{})
		var got []string
		for _, o := range s.offers {
			got = append(got, agentPath(o.agent))
		}
		if strings.Join(got, " ") != offered {
			t.Errorf("%q offers %q, want %q", need, got, offered)
		}
	}
}

// TestGuide_SaysHonestlyWhatItCannotDo compares a portal without a model with one that has a model.
func TestGuide_SaysHonestlyWhatItCannotDo(t *testing.T) {
	for _, has := range []bool{false, true} {
		g := newGuide(Config{HasModel: func() bool { return has }}.withDefaults())
		for _, message := range []string{"help", "write a sonnet about xylophones"} {
			call := task.Call{Agent: task.Target{Name: guideName}, Parts: []task.Part{task.TextPart(message)}}
			answer, err := g.writeAnswer(t.Context(), call, &sink{})
			if err != nil {
				t.Fatal(err)
			}
			if says := strings.Contains(answer, "has no language model"); says == has {
				t.Errorf("with a model %t, %q is answered by %q", has, message, answer)
			}
		}
	}
}
