package agents

import (
	"context"
	"net/http"
	"net/url"
	"slices"

	"agentsite/handlers/pages"
	"agentsite/handlers/search"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/templates"
)

const (
	homeAgents = 6
	homeNew    = 3
	homeTags   = 10
	// leastUsed is the number of agents with users from which on the list is one of the most used.
	leastUsed = 3
)

// homeLists are the lists of the start page. They are the same for all readers, because the index holds only agents
// that all may see.
type homeLists struct {
	alive       int
	agents, new []templates.AgentCard
	used        bool // the agents are the most used ones
	tags        []templates.Link
}

// homeLists returns the lists of the start page. They are made once for each state of the index, so that the page costs
// the same for any number of agents.
func (d *Directory) homeLists(ctx context.Context, actor ident.Actor) (*homeLists, error) {
	q := hub.Query{Live: []string{string(hub.Alive)}, Limit: homeAgents}
	state := pages.SharedKey(d.hub.State(), search.CoverageText(d.hub.Coverage(q)))
	if kept := d.kept.Load(); kept != nil && kept.state == state {
		return kept.lists, nil
	}
	alive, err := d.hub.Search(ctx, actor, q)
	if err != nil {
		return nil, err
	}
	newest, err := d.hub.Search(ctx, actor, hub.Query{Live: []string{string(hub.Alive)}, Sort: hub.SortNewest,
		Limit: homeAgents + homeNew, Bare: true})
	if err != nil {
		return nil, err
	}
	l := &homeLists{alive: alive.Total}
	shown := make(map[string]bool)
	used := 0
	for _, res := range alive.Results {
		if res.Users > 0 {
			used++
		}
		shown[res.Agent.ID] = true
	}
	l.agents, l.used = d.cards(alive.Results), used >= leastUsed
	fresh := slices.DeleteFunc(newest.Results, func(r hub.Result) bool {
		return shown[r.Agent.ID] || r.Agent.Kind == hub.Builtin && !r.Agent.Elsewhere() // they came with the portal
	})
	l.new = d.cards(fresh[:min(len(fresh), homeNew)])
	tags := alive.Facets["tag"]
	for _, t := range tags[:min(len(tags), homeTags)] {
		l.tags = append(l.tags, templates.Link{Label: t.Value, Href: "/agents?" + url.Values{"tag": {t.Value}}.Encode()})
	}
	d.kept.Store(&keptHome{state, l})
	return l, nil
}

// keptHome is the lists of the start page for a state of the index.
type keptHome struct {
	state string
	lists *homeLists
}

func (d *Directory) home(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	lists, err := d.homeLists(r.Context(), actor)
	if err != nil {
		return err
	}
	own := d.hub.Own()
	v := templates.HomeView{Here: own, Alive: lists.alive, Goals: d.portal.Goals, Agents: lists.agents, New: lists.new,
		Used: lists.used, Tags: lists.tags}
	if elsewhere := d.hub.Count() - own; elsewhere > 0 { // the built-in agents of other portals are not counted
		v.Elsewhere = pages.FormatNumber(int64(elsewhere))
	}
	if portals, _ := d.peers.Counts(); portals > 1 {
		v.Portals = pages.FormatCounted(portals-1, "other portal", "other portals")
	}
	calc, err := d.hub.Get(r.Context(), actor, "calc")
	v.Example = err == nil && calc.Kind == hub.Builtin && calc.Status.State != hub.Withdrawn
	if a, ok := d.site.FindAssistant(r.Context(), actor); ok {
		v.Assistant = &templates.AssistantView{Ref: a.Name, GoesTo: d.site.TextGoesTo(a), Examples: pages.Examples(a, 2)}
	} else if guide, ok := d.site.Guide(r.Context(), actor); ok {
		v.Guide, v.GuideExamples = true, guideQuestions(guide, v.Example)
	}
	p := d.site.Frame(r, actor, "")
	p.Feed = "/agents/feed"
	p.Description = "Find AI agents and talk to them right away, on " + d.portal.Name() + "."
	return d.site.Render(w, r, http.StatusOK, templates.Home(p, v))
}

// guideQuestions returns example questions that the guide can answer on this portal. Examples about an
// agent use the calculator and are left out if the operator withdrew it.
func guideQuestions(guide hub.Agent, calc bool) []string {
	if !calc {
		guide.Skills = slices.DeleteFunc(slices.Clone(guide.Skills), func(s hub.Skill) bool { return s.ID == "find" })
	}
	return pages.Examples(guide, 3)
}
