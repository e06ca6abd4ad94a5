package main

import (
	_ "embed"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"agentsite/internal/hub"
)

// The texts of the profiles. A line of labels.txt is the id, domain and name of a capability. A line of
// profiles.txt is the id, then titles, descriptions of the work and skills, as professionals word them. The
// needs were written from the labels alone, by an author who did not see profiles.txt, and the other way
// around.
var (
	//go:embed data/labels.txt
	labelLines string
	//go:embed data/profiles.txt
	profileLines string
)

// agentsEach is the number of agents with each capability.
const agentsEach = 6

// capability is one thing that agents can do, with several wordings of it.
type capability struct {
	id, domain, label string
	titles, works     []string
	skills            []hub.Skill
}

// readCapabilities parses both files.
func readCapabilities() ([]capability, error) {
	var list []capability
	at := make(map[string]int)
	for line := range strings.Lines(labelLines) {
		f := strings.Split(strings.TrimSpace(line), "\t")
		if len(f) != 3 {
			return nil, fmt.Errorf("labels.txt: %q has %d columns, not 3", line, len(f))
		}
		at[f[0]] = len(list)
		list = append(list, capability{id: f[0], domain: f[1], label: f[2]})
	}
	for line := range strings.Lines(profileLines) {
		f := strings.Split(strings.TrimSpace(line), "|")
		i, known := at[f[0]]
		if len(f) != 4 || !known {
			return nil, fmt.Errorf("profiles.txt: %q has %d columns, or an unknown id", line, len(f))
		}
		c := &list[i]
		c.titles, c.works = split(f[1]), split(f[2])
		for n, s := range split(f[3]) {
			name, text, ok := strings.Cut(s, ": ")
			if !ok {
				return nil, fmt.Errorf("profiles.txt: skill %q of %s has no description", s, c.id)
			}
			c.skills = append(c.skills, hub.Skill{ID: fmt.Sprint(n), Name: name, Description: capital(text) + "."})
		}
	}
	return list, nil
}

func split(s string) []string {
	list := strings.Split(s, "/ ")
	for i := range list {
		list[i] = strings.TrimSpace(list[i])
	}
	return list
}

func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// voices are ways in which owners word the description of an agent: %w is the work, %t a title, %l another
// capability of the same domain, which this agent does not have.
var voices = [agentsEach]string{
	"A specialist that %w.",
	"%W. Every answer states its sources and how certain it is.",
	"We are a small practice. Our agent %w, and hands difficult cases to a colleague.",
	"%T for private persons and companies. The service %w. Requests for %l are declined.",
	"Trained on the records of twenty years of practice, this agent %w.",
	"%W. Works in several languages, asks back when details are missing, and keeps nothing afterwards.",
}

// brands are names of agents that say nothing of their work.
var brands = [...]string{
	"Alder", "Basalt", "Cobalt", "Dune", "Ember", "Fjord", "Garnet", "Heron", "Indigo", "Jasper", "Krypton",
	"Larch", "Marlin", "Nimbus", "Opal", "Pinnacle", "Quartz", "Raven", "Sable", "Topaz", "Umber", "Vesper",
}

// buildAgents makes six agents with each capability. owns is the index of the capability of each. The same
// seed makes the same agents.
func buildAgents(list []capability, seed uint64) (agents []hub.Agent, owns []int) {
	r := rand.New(rand.NewPCG(seed, 29))
	for i := range list {
		c := &list[i]
		for n := range agentsEach {
			agents, owns = append(agents, buildAgent(r, list, c, n)), append(owns, i)
		}
	}
	r.Shuffle(len(agents), func(a, b int) {
		agents[a], agents[b] = agents[b], agents[a]
		owns[a], owns[b] = owns[b], owns[a]
	})
	for i := range agents { // after the shuffle, so that ids and names say nothing of the capability
		a := &agents[i]
		a.ID = fmt.Sprintf("01K%023d", i)
		a.Name = fmt.Sprintf("%s-%d", strings.ToLower(brands[i%len(brands)]), i)
		a.CreatedAt = time.Date(2026, 1, 1, 0, i, 0, 0, time.UTC)
		a.UpdatedAt = a.CreatedAt
	}
	return agents, owns
}

// buildAgent makes the n-th agent with capability c: each has another mix of title, voice, work and skills.
func buildAgent(r *rand.Rand, list []capability, c *capability, n int) hub.Agent {
	titles := append([]string{c.label}, c.titles...)
	title := titles[n%len(titles)]
	other := list[r.IntN(len(list))]
	for other.domain != c.domain || other.id == c.id {
		other = list[r.IntN(len(list))]
	}
	work := c.works[n%len(c.works)]
	a := hub.Agent{
		Kind: hub.A2A, Visibility: hub.Public, Version: 1,
		Status:   hub.Status{State: hub.Active},
		Liveness: hub.Liveness{State: hub.Alive},
		Title:    title,
		Description: strings.NewReplacer("%w", work, "%W", capital(work), "%T", title,
			"%l", strings.ToLower(other.label)).Replace(voices[n]),
	}
	if n%2 == 1 {
		a.Title = brands[r.IntN(len(brands))] + ": " + title
	}
	for k := range 2 + r.IntN(2) {
		a.Skills = append(a.Skills, c.skills[(n+k)%len(c.skills)])
	}
	return a
}
