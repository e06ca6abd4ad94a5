package agents

import (
	"context"
	"net/http"
	"net/url"
	"slices"

	"agentsite/handlers/pages"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/templates"
)

const (
	homeAgents = 6
	homeTags   = 5
)

func (d *Directory) home(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	alive, err := d.hub.Search(r.Context(), actor, hub.Query{Live: []string{string(hub.Alive)}, Limit: homeAgents})
	if err != nil {
		return err
	}
	own := d.hub.Own()
	v := templates.HomeView{Here: own, Alive: alive.Total, Goals: d.portal.Goals,
		Elsewhere: pages.FormatNumber(int64(max(d.hub.Count()-own, 0)))}
	if portals, _ := d.peers.Counts(); portals > 1 {
		v.Portals = pages.FormatCounted(portals-1, "other portal", "other portals")
	}
	for _, res := range alive.Results {
		v.Agents = append(v.Agents, d.site.Card(res.Agent))
	}
	tags := alive.Facets["tag"]
	for _, t := range tags[:min(len(tags), homeTags)] {
		v.Tags = append(v.Tags, templates.Link{Label: t.Value,
			Href: "/agents?" + url.Values{"tag": {t.Value}}.Encode()})
	}
	if a, ok := d.site.FindAssistant(r.Context(), actor); ok {
		v.Assistant = &templates.AssistantView{Ref: a.Name, GoesTo: d.site.TextGoesTo(a), Examples: pages.Examples(a, 2)}
	} else if guide, ok := d.site.Guide(r.Context(), actor); ok {
		v.Guide, v.GuideExamples = true, d.guideQuestions(r.Context(), actor, guide)
	}
	p := d.site.Frame(r, actor, "")
	p.Feed = "/agents/feed"
	p.Description = "Find AI agents and talk to them right away, on " + d.portal.Name + "."
	return d.site.Render(w, r, http.StatusOK, templates.Home(p, v))
}

// guideQuestions returns example questions that the guide can answer on this portal. Examples about an
// agent use the calculator and are left out if the operator withdrew it.
func (d *Directory) guideQuestions(ctx context.Context, actor ident.Actor, guide hub.Agent) []string {
	calc, err := d.hub.Get(ctx, actor, "calc")
	if err != nil || calc.Kind != hub.Builtin || calc.Status.State == hub.Withdrawn {
		guide.Skills = slices.DeleteFunc(slices.Clone(guide.Skills), func(s hub.Skill) bool { return s.ID == "find" })
	}
	return pages.Examples(guide, 3)
}
