package team

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"agentsite/internal/hub"
	"agentsite/internal/team/flow"
	"agentsite/internal/team/rules"
)

const (
	// candidatesOf is the number of agents that are kept for one part.
	candidatesOf = 6
	// leastShare is the least score of a candidate, as a share of the best score of the part.
	leastShare = 0.2
	// maxQuery bounds the text of one search, in bytes; the directory refuses more than 500.
	maxQuery = 480
)

// searchMembers finds agents for each part of a text.
func (w work) searchMembers(ctx context.Context) {
	parts := rules.Split(w.effect.Text)
	if len(parts) == 0 {
		parts = []rules.Part{{Text: w.effect.Text}}
	}
	first := len(w.state.Parts)
	e := flow.Event{Kind: flow.Found}
	for i, p := range parts {
		out := flow.Part{N: first + i + 1, Text: p.Text}
		for _, need := range p.Needs {
			out.Needs = append(out.Needs, first+need)
		}
		err := retryCall(ctx, func() (err error) {
			out.Candidates, err = w.findCandidates(ctx, p.Text)
			return err
		})
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			w.s.cfg.Log.Warn("search for members of a team", "goal", w.goal.ID, "error", err)
		}
		e.Parts = append(e.Parts, out)
	}
	w.reportEvent(e)
}

// findCandidates returns the agents that may do a part, best first: members that the person named, and agents of the
// search with a word of the part that says something, or with a similar meaning.
func (w work) findCandidates(ctx context.Context, text string) (list []flow.Candidate, err error) {
	// Parts of a goal are long, and the search can hardly say whether an agent fits one; the person and the leader
	// judge the best that there are.
	q := hub.Query{Text: searchText(text), Limit: 20, Unfit: true}
	switch w.state.Open.Recruit {
	case flow.RecruitHere:
		q.Scope = hub.ScopePortal
	case flow.RecruitNetwork:
		q.Wide = true
	case flow.RecruitMembers:
		return w.namedCandidates(ctx, q, text)
	}
	page, err := w.s.Directory.Search(ctx, w.actor, q)
	if err != nil {
		return nil, err
	}
	// The page lists agents first that are known to be alive, such as those of this portal. A part goes to the fittest.
	slices.SortStableFunc(page.Results, func(a, b hub.Result) int { return cmp.Compare(b.Score, a.Score) })
	best := 0.0
	if len(page.Results) > 0 {
		best = page.Results[0].Score
	}
	if !w.state.Open.ByModel {
		// Servers of tools come last, because rules cannot turn a part into arguments of a tool.
		tools := func(r hub.Result) int {
			if r.Agent.Kind == hub.MCP {
				return 1
			}
			return 0
		}
		slices.SortStableFunc(page.Results, func(a, b hub.Result) int { return tools(a) - tools(b) })
	}
	for _, r := range page.Results {
		why := reasonOf(r)
		if why == "" || r.Score < leastShare*best || isDown(r.Agent) {
			continue
		}
		list = append(list, flow.Candidate{Handle: r.Agent.Handle(), Why: why, Live: string(r.Agent.Liveness.State)})
		if len(list) == candidatesOf {
			break
		}
	}
	list = addPeople(w.state, list, text)
	// Members that the person named come first, because the person wants them in the team.
	for _, k := range slices.Backward(w.state.Members) {
		i := slices.IndexFunc(list, func(c flow.Candidate) bool { return c.Handle == k.Handle })
		if k.Named && !k.Person && i > 0 {
			c := list[i]
			list = slices.Insert(slices.Delete(list, i, i+1), 0, c)
		}
	}
	return list, nil
}

// namedCandidates orders the members that the person named by their fit for a part. All of them may do it.
func (w work) namedCandidates(ctx context.Context, q hub.Query, text string) (list []flow.Candidate, err error) {
	type fit struct {
		flow.Candidate
		words int
	}
	var fits []fit
	for _, k := range w.state.Members {
		if k.Person {
			continue
		}
		f := fit{Candidate: flow.Candidate{Handle: k.Handle, Why: "named by the person"}}
		a, err := w.s.Directory.Callable(ctx, w.actor, k.Handle)
		if err == nil {
			f.Live = string(a.Liveness.State)
			var found []string
			if found = sharedWords(q.Text, describeAgent(a)); len(found) > 0 {
				f.words = len(found)
				f.Why = fmt.Sprintf("named by the person; fits %s", quoteList(found))
			}
		}
		fits = append(fits, f)
	}
	slices.SortStableFunc(fits, func(a, b fit) int { return b.words - a.words })
	for _, f := range fits {
		list = append(list, f.Candidate)
	}
	return addPeople(w.state, list, text), nil
}

func isDown(a hub.Agent) bool {
	return a.Liveness.State == hub.Unreachable || a.Liveness.State == hub.WrongProtocol ||
		a.Liveness.State == hub.NeedsAuth
}

// searchText returns the beginning of a part for a search, without marks that a search reads as operators.
func searchText(s string) string {
	s = strings.Map(func(r rune) rune {
		if strings.ContainsRune(`"-:*()`, r) {
			return ' '
		}
		return r
	}, s)
	s = strings.Join(strings.Fields(s), " ")
	for len(s) > maxQuery {
		_, size := utf8.DecodeLastRuneInString(s[:maxQuery])
		s = s[:maxQuery-size]
	}
	return s
}

// reasonOf returns the reason for which a result fits, "" if only words without meaning match.
func reasonOf(r hub.Result) string {
	var words []string
	similar := ""
	for _, m := range r.Why {
		if m.How == hub.ByMeaning {
			similar = "similar in meaning to “" + m.Found + "”"
			continue
		}
		if isContent(m.Word) && m.How != "typo" && !slices.Contains(words, m.Found) {
			words = append(words, m.Found)
		}
	}
	if len(words) == 0 {
		return similar
	}
	return "fits " + quoteList(words[:min(len(words), 5)])
}

func quoteList(words []string) string { return "“" + strings.Join(words, "”, “") + "”" }

// isContent reports whether a word says something about the work: it is no word of grammar.
func isContent(w string) bool {
	return utf8.RuneCountInString(w) > 1 && !grammar[strings.ToLower(w)]
}

// grammar are frequent words that say nothing about the work.
var grammar = wordSet(`a about above after again all also an and any are as at be been before between both but by can
	could did do does each few for from give get had has have he her here him his how i if in into is it its just know
	let like make many may me more most much must my need no not now of off on one only or other our out over own please
	same she should show so some such tell than that the their them then there these they this those through to too
	under up us use very want was we were what when where which while who why will with would you your das der die ein
	eine einen für ich im in ist mit nach oder und von wie wir zu zum zur le la les de des du et un une pour avec el los
	las y con para por`)

func wordSet(s string) map[string]bool {
	set := make(map[string]bool)
	for w := range strings.FieldsSeq(s) {
		set[w] = true
	}
	return set
}

// describeAgent returns the texts about the work of an agent.
func describeAgent(a hub.Agent) string {
	parts := []string{a.Name, a.Title, a.Description}
	for _, s := range a.Skills {
		parts = append(parts, s.Name, s.Description, strings.Join(s.Tags, " "), strings.Join(s.Examples, " "))
	}
	return strings.Join(parts, " ")
}

// sharedWords returns the words with meaning of text that also stand in other.
func sharedWords(text, other string) (list []string) {
	split := func(s string) []string {
		return strings.FieldsFunc(strings.ToLower(s), func(r rune) bool {
			return !unicode.IsLetter(r) && !unicode.IsDigit(r)
		})
	}
	have := make(map[string]bool)
	for _, w := range split(other) {
		have[w] = true
	}
	for _, w := range split(text) {
		if have[w] && isContent(w) && !slices.Contains(list, w) && len(list) < 5 {
			list = append(list, w)
		}
	}
	return list
}
