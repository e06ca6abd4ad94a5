package agents

import (
	"strings"

	"agentsite/handlers/pages"
	"agentsite/internal/hub"
	"agentsite/templates"
)

// networkView is networkOf for the agent's owner.
func (d *Owner) publicationView(a hub.Agent) templates.PublicationView {
	if d.published == nil {
		return templates.PublicationView{}
	}
	s := d.published(a)
	v := templates.PublicationView{Shown: true, Why: s.Why}
	if s.Why == "" {
		v.At, v.Hash, v.Cut = pages.FormatMoment(s.At), s.Hash.String(), strings.Join(s.Cut, "; ")
		v.Soon = !s.Listed
	}
	return v
}
