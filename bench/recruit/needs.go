package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"

	"agentsite/internal/hub"
	"agentsite/internal/index"
)

var (
	//go:embed data/needs.json
	needsJSON []byte
	//go:embed data/nested.json
	goalsJSON []byte
	//go:embed data/unfit.json
	unfitJSON []byte
)

// need is the request of a person, and the capability that answers it.
type need struct {
	Text       string `json:"need"`
	Capability string `json:"capability"`
	// Plain is set if the need was written without the words of the capability's name.
	Plain bool   `json:"plain"`
	Lang  string `json:"lang"`
}

// goal is a task of several parts. Each part is searched for by itself.
type goal struct {
	Goal  string `json:"goal"`
	Parts []need `json:"parts"`
}

// readNeeds parses the regular needs, the nested goals and the queries that no agent can answer.
func readNeeds() (needs []need, goals []goal, unfit []string, err error) {
	for name, f := range map[string]struct {
		data []byte
		into any
	}{"needs": {needsJSON, &needs}, "nested": {goalsJSON, &goals}, "unfit": {unfitJSON, &unfit}} {
		if err := json.Unmarshal(f.data, f.into); err != nil {
			return nil, nil, nil, fmt.Errorf("%s.json: %w", name, err)
		}
	}
	return needs, goals, unfit, nil
}

// isDevelopment reports whether the i-th need or query may be used to choose weights and thresholds: every
// second one. The figures that count come from the others.
func isDevelopment(i int) bool { return i%2 == 0 }

// stopWords are words that say nothing of a task. A need and a profile may share them.
const stopWords = `a about above after again all also am an and another any anyone are around as ask at away back
be because been before being below between big both but by can come comes could day days did different do does done
down each else every everything far few find first for from full further get gets give given go goes going good got
had hand has have having he help her here him his how i if in into is it its just keep keeps know large last leave
less let like little long look make makes many may me mean might mine more most much must my need needs never new
next no not nothing now of off often old on once one only or other our out over own part people person place please
point put right same say see set several she should show side since small so some something stay still such
take taken tell than that the their them then there these they thing things this those three through time to
together too two under until up us use used very want was way we well were what when where which while who why will
with without work works would year years yes yet you your s t don ve ll re m d`

// dullShare: a word that agents of more than this many capabilities use does not distinguish one of them.
const dullShare = 5

// commonWords returns the stop words and the stems that agents with more than dullShare capabilities use.
func commonWords(agents []hub.Agent, owns []int) map[string]bool {
	used := make(map[string]map[int]bool)
	for i := range agents {
		only := hub.Agent{Title: agents[i].Title, Description: agents[i].Description, Skills: agents[i].Skills}
		index.Terms(only, func(term string) {
			if used[term] == nil {
				used[term] = make(map[int]bool)
			}
			used[term][owns[i]] = true
		})
	}
	set := makeSet(stopWords)
	for term, by := range used {
		if len(by) > dullShare {
			set[term] = true
		}
	}
	return set
}

// makeSet returns the stems of the words of a text.
func makeSet(text string) map[string]bool {
	set := make(map[string]bool)
	index.Terms(hub.Agent{Description: text}, func(term string) { set[term] = true })
	return set
}

// shared returns the stems that a need has in common with an agent, other than common words.
func shared(text string, a *hub.Agent, common map[string]bool) []string {
	in := makeSet(text)
	var list []string
	only := hub.Agent{Title: a.Title, Description: a.Description, Skills: a.Skills}
	index.Terms(only, func(term string) {
		if in[term] && !common[term] && !slices.Contains(list, term) {
			list = append(list, term)
		}
	})
	return list
}
