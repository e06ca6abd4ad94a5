package agents

import (
	"strings"

	"agentsite/handlers/pages"
	"agentsite/internal/federation"
	"agentsite/internal/hub"
	"agentsite/templates"
)

// Publications returns the publication state of this portal's agents in the network.
type Publications interface {
	Published(a hub.Agent) federation.Published
}

// publicationView returns the publication state of an agent for its owner, empty without federation.
func (d *Owner) publicationView(a hub.Agent) templates.PublicationView {
	if d.publications == nil {
		return templates.PublicationView{}
	}
	s := d.publications.Published(a)
	v := templates.PublicationView{Shown: true, Why: s.Why}
	if s.Why == "" {
		v.At, v.Hash, v.Cut = pages.FormatMoment(s.At), s.Hash.String(), strings.Join(s.Cut, "; ")
		v.Soon = !s.Listed
	}
	return v
}
