package index

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"agentsite/internal/hub"
)

func suggested(x *Index, text string, n int) string {
	var list []string
	for _, s := range x.Suggest(text, n) {
		what := s.Handle
		if s.Kind != "agent" {
			what = fmt.Sprintf("%s(%d)", s.Text, s.Count)
		}
		list = append(list, s.Kind+":"+what)
	}
	return strings.Join(list, " ")
}

func TestSuggest_CompletesWhatIsTyped(t *testing.T) {
	x := filled(
		agent("translator", func(a *hub.Agent) { a.Title = "Übersetzer" }, skill("Translate text", "translation", "Text")),
		agent("trans-dead", live(hub.Unreachable), skill("Transcribe", "translation")),
		agent("weather", describe("transparent"), portal("x.example"), skill("Forecast", "climate", "text")),
	)
	for _, c := range []struct{ text, want string }{
		{"trans", "agent:translator agent:trans-dead tag:translation(2) skill:transcribe(1) skill:translate text(1)"},
		{"TRANSLATOR", "agent:translator"},
		{"uber", "agent:translator"},
		{"weather", "agent:weather@x.example"},
		{"tex", "tag:text(2) skill:translate text(1)"},
		{"ubersetzer trans", "agent:translator"},
		{"zzz", ""}, {"", ""}, {"  ", ""},
	} {
		if got := suggested(x, c.text, 8); got != c.want {
			t.Errorf("%q: %s\nwant %s", c.text, got, c.want)
		}
	}
	if got := suggested(x, "trans", 3); got != "agent:translator agent:trans-dead tag:translation(2)" {
		t.Errorf("three: %s", got)
	}
	if got := x.Suggest("trans", 0); got != nil {
		t.Errorf("none: %v", got)
	}
}

// TestSuggest_FindsWhatBeginsSo compares with plain code.
func TestSuggest_FindsWhatBeginsSo(t *testing.T) {
	x, c := New(), newCorpus()
	var agents []hub.Agent
	for i := range 3000 {
		agents = append(agents, c.agent(i))
		x.Put(agents[i])
	}
	for _, w := range []string{c.words[0], c.words[7][:3], c.words[40], c.words[500][:4]} {
		want := 0
		for _, a := range agents {
			if slices.ContainsFunc(strings.FieldsFunc(strings.ToLower(a.Name+" "+a.Title), func(r rune) bool { return r < 'a' }),
				func(o string) bool { return strings.HasPrefix(o, w) }) {
				want++
			}
		}
		got := 0
		dead := false
		for _, s := range x.Suggest(w, maxSuggest) {
			if s.Kind != "agent" {
				continue
			}
			got++
			i := slices.IndexFunc(agents, func(a hub.Agent) bool { return a.Handle() == s.Handle })
			if !strings.Contains(" "+strings.ReplaceAll(agents[i].Name, "-", " ")+" "+strings.ToLower(s.Text), " "+w) {
				t.Errorf("%s: %+v", w, s)
			}
			if alive := agents[i].Liveness.State == hub.Alive; alive && dead {
				t.Errorf("%s: %s comes behind one that is not alive", w, s.Handle)
			} else if !alive {
				dead = true
			}
		}
		if got < min(want, maxSuggest-maxSuggest/3) {
			t.Errorf("%s: %d of %d agents", w, got, want)
		}
	}
}

func TestSearch_SuggestsWhatFindsSomething(t *testing.T) {
	x := filled(
		agent("weather", describe("storms and rain"), kind(hub.A2A)),
		agent("translator", describe("pull the request"), kind(hub.OpenAI)),
	)
	for _, c := range []struct {
		q    hub.Query
		want []string
	}{
		{hub.Query{Text: "wxxther"}, []string{"weather"}},
		{hub.Query{Text: `"pull request"`}, []string{"pull request"}},
		{hub.Query{Text: `weather "pull request"`}, []string{`weather pull request`, "weather"}},
		{hub.Query{Text: "storms -rain"}, []string{"storms"}},
		{hub.Query{Text: "wxxther", Kinds: []string{"openai"}}, []string{"weather"}}, // without the filter
		{hub.Query{Text: "weather", Kinds: []string{"openai"}}, nil},
		{hub.Query{Text: "qqqqqq"}, nil},
		{hub.Query{Text: "pxxl"}, nil},            // half of its letters are others than those of "pull"
		{hub.Query{Text: "wxxther rxxuest"}, nil}, // weather request has no word of it
	} {
		page := mustSearch(t, x, c.q)
		if page.Total != 0 || !slices.Equal(page.Suggestions, c.want) {
			t.Errorf("%+v: %d found, %q suggested, want %q", c.q, page.Total, page.Suggestions, c.want)
		}
		for _, s := range page.Suggestions {
			if mustSearch(t, x, hub.Query{Text: s}).Total == 0 {
				t.Errorf("%q finds nothing either", s)
			}
		}
	}
}

// TestLoad_IsLikePut fills one index in batches while it is searched and one
// by one.
func TestLoad_IsLikePut(t *testing.T) {
	const n = 800
	c := newCorpus()
	agents := make([]hub.Agent, n)
	one, x := New(), New()
	for i := range agents {
		agents[i] = c.agent(i)
		if i%10 == 0 {
			agents[i].Visibility = hub.Private
		}
		one.Put(agents[i])
	}
	x.Put(agents[3])
	x.Put(c.agent(10)) // private in what is loaded
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				x.Search(hub.Query{Text: c.words[i%50]})
				x.Put(c.agent(5000 + i%10)) // so that ids are looked up in vain
				x.Remove(c.agent(5000 + i%10).ID)
			}
		}
	})
	i := 0
	x.Load(func() (hub.Agent, bool) {
		if i++; i > n {
			return hub.Agent{}, false
		}
		return agents[i-1], true
	})
	close(stop)
	wg.Wait()
	if x.Len() != one.Len() {
		t.Fatalf("%d agents, want %d", x.Len(), one.Len())
	}
	for i := range 60 {
		for _, q := range []hub.Query{{Text: c.words[i]}, {Text: c.words[i] + " " + c.words[2*i]}, {Tags: []string{c.tags[i]}}, {Text: `"` + c.words[i%4] + " " + c.words[i%7] + `"`}} {
			if got, want := fmt.Sprint(mustSearch(t, x, q)), fmt.Sprint(mustSearch(t, one, q)); got != want {
				t.Fatalf("%+v:\n got %s\nwant %s", q, got, want)
			}
		}
	}
}
