package agents

import (
	"net/http"
	"strings"

	"agentsite/handlers/pages"
	"agentsite/internal/agentkind"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/templates"
)

// tryNew sends a test question to an agent that is not registered yet, and shows the form again with the
// answer.
func (d *Form) tryNew(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	if !actor.IsPerson() {
		return fault.New(fault.Unauthenticated, "Log in to register an agent.")
	}
	return d.try(w, r, actor, nil)
}

// tryEdit sends a test question to an agent with the edit applied, and shows the form again with the
// answer.
func (d *Form) tryEdit(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	a, err := d.editable(r, actor)
	if err != nil {
		return err
	}
	return d.try(w, r, actor, &a)
}

func (d *Form) try(w http.ResponseWriter, r *http.Request, actor ident.Actor, a *hub.Agent) error {
	s, err := d.readSheet(w, r, actor, a)
	if err != nil {
		return err
	}
	if err := d.flawed(r, actor, s); err != nil {
		return d.agentFormAgain(w, r, actor, s, err)
	}
	draft, plain := s.draft, "a-draft"
	if a == nil {
		draft.Name = &plain // a placeholder: the test needs no name yet, and none that is free
		if d.hub.Names.Resembles(value(draft.Title)) != "" {
			draft.Title = nil
		}
	}
	if text := strings.TrimSpace(value(draft.Description)); text == "" {
		draft.Description = &plain // a placeholder: the test needs no description yet
	}
	out, err := d.hub.Try(r.Context(), actor, s.name, draft, s.view.Ask)
	if err != nil {
		return d.agentFormAgain(w, r, actor, s, err)
	}
	row := templates.TryRow{Asked: strings.TrimSpace(s.view.Ask), Answer: out.Text, Took: pages.FormatLatency(out.Took),
		Reason: out.Reason, Log: strings.Join(out.Log, "\n")}
	if row.Reason == "" && out.Text == "" {
		row.Reason = "It answered nothing."
	}
	s.view.Tries = append(s.view.Tries, row)
	s.view.Tries = s.view.Tries[max(0, len(s.view.Tries)-maxTries):]
	s.view.Ask = ""
	return d.showAgentForm(w, r, actor, http.StatusOK, s.view)
}

// previewAgent shows the agent as other users would see it, above the form with the typed values.
func (d *Form) previewAgent(w http.ResponseWriter, r *http.Request, actor ident.Actor, s sheet) error {
	if err := d.flawed(r, actor, s); err != nil {
		return d.agentFormAgain(w, r, actor, s, err)
	}
	a, err := d.hub.Preview(r.Context(), actor, s.name, unasked(s.draft))
	if err != nil {
		return d.agentFormAgain(w, r, actor, s, err)
	}
	kind := agentkind.Of(a.Kind)
	p := &templates.AgentPreview{Card: d.site.Card(a), KindHelp: kind.Help, TextGoesTo: d.site.TextGoesTo(a),
		Visibility: string(a.Visibility)}
	p.Tagline, p.Description = d.site.Describe(a.Description)
	if p.Card.Icon = ""; a.Icon != "" { // the new picture is stored, but no agent refers to it yet
		p.IconImage = d.iconImage(r, a.Icon)
	}
	for _, sk := range a.Skills {
		p.Skills = append(p.Skills, templates.Skill{ID: sk.ID, Name: sk.Name, Description: sk.Description,
			Tags: sk.Tags, Examples: sk.Examples})
	}
	s.view.Preview = p
	return d.showAgentForm(w, r, actor, http.StatusOK, s.view)
}
