package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"agentsite/internal/hub"
)

// does is the task for which an agent is made. Its values are indexes into the vocabulary. The
// generator knows them, so relevance follows from them and not from words.
type does struct {
	function, domain int // domain -1: the agent works in every domain
	language         string
}

// judged is a set of agents and queries, with the task of each agent and the task that each query asks
// for.
type judged struct {
	vocabulary *vocabulary
	plain      *plain
	agents     []hub.Agent
	does       []does
	queries    []query
}

type query struct {
	kind string
	text string
	want does   // function -1: any function
	one  string // id of the one agent that the query names; its other agents are not right
}

// queryKinds are the kinds of queries, in the order of the report.
var queryKinds = []string{
	"keywords", "question", "paraphrase", "misspelt", "unfinished", "language", "topic",
	"name", "phrase", "plain", "chinese",
}

// Sizes of a set of agents and queries.
const (
	perPair    = 9  // most agents for each pair of function and domain
	perKind    = 40 // queries of each kind
	generalist = 12 // agents of each function that work in every domain
)

// build generates the set for a vocabulary. The same seed gives the same set.
func build(v *vocabulary, p *plain, seed uint64) *judged {
	r := rand.New(rand.NewPCG(seed, 17))
	j := &judged{vocabulary: v, plain: p}
	for f := range v.functions {
		for d := range v.domains {
			for range r.IntN(perPair + 1) {
				if r.IntN(3) > 0 {
					j.agent(r, does{f, d, j.language(r)})
				}
			}
		}
		for range generalist {
			j.agent(r, does{f, -1, j.language(r)})
		}
	}
	for len(j.agents) < 2000 {
		j.agent(r, does{r.IntN(len(v.functions)), r.IntN(len(v.domains)), j.language(r)})
	}
	r.Shuffle(len(j.agents), func(a, b int) {
		j.agents[a], j.agents[b] = j.agents[b], j.agents[a]
		j.does[a], j.does[b] = j.does[b], j.does[a]
	})
	for i := range j.agents { // ids after the shuffle, so that their order says nothing about the tasks
		j.agents[i].ID = fmt.Sprintf("01J%023d", i)
	}
	for _, kind := range queryKinds {
		for n := 0; n < perKind; {
			if q := j.query(r, kind); j.answerable(q) {
				j.queries = append(j.queries, q)
				n++
			}
		}
	}
	return j
}

func pick(r *rand.Rand, list []string) string { return list[r.IntN(len(list))] }

// often returns the first of the list half of the time, because one way to say a thing is the common
// one.
func often(r *rand.Rand, list []string) string {
	if r.IntN(2) == 0 {
		return list[0]
	}
	return pick(r, list)
}

// language returns the language of an agent, "" for half of them.
func (j *judged) language(r *rand.Rand) string {
	if r.IntN(2) == 0 {
		return ""
	}
	return j.vocabulary.languages[r.IntN(len(j.vocabulary.languages))][0]
}

func fill(template, verb, noun, domain string) string {
	return strings.NewReplacer("%v", verb, "%n", noun, "%d", domain).Replace(template)
}

func sentence(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// agent adds an agent with texts as its owner might write them: its name says all of its task, half of
// it, or nothing; its texts use some of the words for the task and not others.
func (j *judged) agent(r *rand.Rand, is does) {
	v := j.vocabulary
	f := v.functions[is.function]
	things := []string{"all kinds of material", "anything", "general tasks"}
	if is.domain >= 0 {
		things = v.domains[is.domain].names
	}
	thing := func() string { return often(r, things) }
	n := len(j.agents)
	slug := func(s string) string { return strings.ReplaceAll(strings.ToLower(s), " ", "-") }
	brand := pick(r, v.brands)
	a := hub.Agent{
		Kind: hub.A2A, Visibility: hub.Public, Version: 1,
		Status:   hub.Status{State: hub.Active},
		Liveness: hub.Liveness{State: hub.Alive},
	}
	a.CreatedAt = time.Date(2026, 1, 1, 0, n, 0, 0, time.UTC)
	a.UpdatedAt = a.CreatedAt
	switch r.IntN(4) {
	case 0:
		a.Name, a.Title = fmt.Sprintf("%s-%d", slug(brand), n), brand
	case 1:
		a.Name, a.Title = fmt.Sprintf("%s-%s-%d", slug(strings.Fields(thing())[0]), slug(strings.Fields(often(r, f.nouns))[0]), n), sentence(thing()+" "+often(r, f.nouns))
	case 2:
		a.Name, a.Title = fmt.Sprintf("%s-%d", slug(often(r, f.nouns)), n), brand+" "+often(r, f.nouns)
	case 3:
		a.Name, a.Title = fmt.Sprintf("%s-%s-%d", slug(brand), slug(strings.Fields(thing())[0]), n), brand+" for "+thing()
	}
	// Two sentences describe the task, mostly with different words. Others have no information or
	// mention another task.
	text := []string{fill(pick(r, v.about), often(r, f.verbs), often(r, f.nouns), thing()), fill(pick(r, v.about), pick(r, f.verbs), pick(r, f.nouns), pick(r, things))}
	for range r.IntN(3) {
		text = append(text, pick(r, v.filler))
	}
	if r.IntN(2) == 0 {
		of, od := v.functions[r.IntN(len(v.functions))], v.domains[r.IntN(len(v.domains))]
		text = append(text, fill(pick(r, v.asides), often(r, of.verbs), often(r, of.nouns), often(r, od.names)))
	}
	if is.language != "" {
		a.Languages = []string{j.tag(is.language)}
		text = append(text, pick(r, []string{"It speaks " + is.language + ".", "Made for " + is.language + " texts.", is.language + " and English."}))
	}
	r.Shuffle(len(text)-1, func(a, b int) { text[a+1], text[b+1] = text[b+1], text[a+1] })
	for i := range text {
		text[i] = sentence(text[i])
	}
	a.Description = strings.Join(text, " ")
	for i := range 1 + r.IntN(2) {
		s := hub.Skill{ID: fmt.Sprint(i), Name: sentence(pick(r, f.verbs) + " " + thing())}
		if r.IntN(2) == 0 {
			s.Description = sentence(fill(pick(r, v.about), pick(r, f.verbs), pick(r, f.nouns), pick(r, things)))
		}
		for _, t := range []string{often(r, f.nouns), thing()} {
			if r.IntN(3) > 0 {
				s.Tags = append(s.Tags, slug(t))
			}
		}
		if r.IntN(2) == 0 {
			s.Examples = append(s.Examples, sentence(pick(r, f.verbs)+" my "+thing()+", please"))
		}
		a.Skills = append(a.Skills, s)
	}
	j.agents, j.does = append(j.agents, a), append(j.does, is)
}

func (j *judged) tag(language string) string {
	i := slices.IndexFunc(j.vocabulary.languages, func(l [2]string) bool { return l[0] == language })
	return j.vocabulary.languages[i][1]
}

// query returns a random query of a kind.
func (j *judged) query(r *rand.Rand, kind string) query {
	v := j.vocabulary
	want := does{r.IntN(len(v.functions)), r.IntN(len(v.domains)), ""}
	f, d := v.functions[want.function], v.domains[want.domain]
	keywords := v.keywords[:len(v.keywords)-1] // the last template has the domain only
	q := query{kind: kind, want: want}
	switch kind {
	case "keywords":
		q.text = fill(pick(r, keywords), f.verbs[0], f.nouns[0], d.names[0])
	case "question":
		q.text = fill(pick(r, v.questions), often(r, f.verbs), often(r, f.nouns), often(r, d.names))
	case "paraphrase":
		q.text = fill(pick(r, keywords), pick(r, f.verbs[1:]), pick(r, f.nouns[1:]), pick(r, d.names[1:]))
	case "misspelt":
		q.text = misspell(r, fill(pick(r, keywords), f.verbs[0], f.nouns[0], d.names[0]))
	case "unfinished":
		q.text = fill(pick(r, keywords), f.verbs[0], f.nouns[0], d.names[0])
		if words := strings.Fields(q.text); len(words[len(words)-1]) > 4 {
			cut := 2 + r.IntN(2)
			q.text = q.text[:len(q.text)-min(cut, len(words[len(words)-1])-3)]
		}
	case "language":
		q.want.language = j.vocabulary.languages[r.IntN(len(v.languages))][0]
		q.text = fill(pick(r, keywords), f.verbs[0], f.nouns[0], d.names[0]) + pick(r, []string{" in ", " "}) + strings.ToLower(q.want.language)
	case "topic":
		q.want.function = -1
		q.text = pick(r, d.names)
	case "name":
		a := r.IntN(len(j.agents))
		q.want, q.one, q.text = j.does[a], j.agents[a].ID, j.agents[a].Name
	case "phrase":
		q.want.function = -1
		q.text = `"` + pick(r, d.names) + `"`
	case "plain":
		q.text = j.plain.functions[want.function].english + " " + j.plain.domains[want.domain].english
	case "chinese":
		q.text = j.plain.domains[want.domain].chinese + j.plain.functions[want.function].chinese
	}
	return q
}

// misspell makes one typing error in the longest word.
func misspell(r *rand.Rand, text string) string {
	words := strings.Fields(text)
	longest := 0
	for i, w := range words {
		if len(w) > len(words[longest]) {
			longest = i
		}
	}
	w := []byte(words[longest])
	at := 1 + r.IntN(len(w)-2)
	switch r.IntN(4) {
	case 0:
		w[at], w[at+1] = w[at+1], w[at]
	case 1:
		w = slices.Delete(w, at, at+1)
	case 2:
		w = slices.Insert(w, at, w[at])
	case 3:
		w[at] = "aeiou"[r.IntN(5)]
	}
	words[longest] = string(w)
	return strings.Join(words, " ")
}

// grade returns the relevance of an agent for a query: 3 is exactly the requested task, 2 mostly, 1
// related, 0 irrelevant. For a name it is 3 for the agent with that name.
func (j *judged) grade(q *query, id string, is does) int {
	v := j.vocabulary
	if q.one != "" {
		if q.one == id {
			return 3
		}
		return 0
	}
	near := func(a, b int) bool { return a >= 0 && b >= 0 && v.domains[a].area == v.domains[b].area }
	if q.want.function < 0 {
		switch {
		case is.domain == q.want.domain:
			return 3
		case near(is.domain, q.want.domain):
			return 1
		}
		return 0
	}
	same := is.function == q.want.function
	akin := v.functions[is.function].group == v.functions[q.want.function].group
	grade := 0
	switch {
	case same && is.domain == q.want.domain:
		grade = 3
	case akin && is.domain == q.want.domain, same && is.domain < 0:
		grade = 2
	case is.domain == q.want.domain, same && near(is.domain, q.want.domain):
		grade = 1
	}
	// An agent that does the task in another language has one grade less.
	if q.want.language != "" && is.language != q.want.language && grade > 0 {
		grade--
	}
	return grade
}

// answerable reports whether at least one agent has grade 3 for the query.
func (j *judged) answerable(q query) bool {
	for i, is := range j.does {
		if j.grade(&q, j.agents[i].ID, is) == 3 {
			return true
		}
	}
	return false
}
