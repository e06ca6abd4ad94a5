package handlers

import (
	"strings"

	"agentsite/internal/hub"
	"agentsite/templates"
)

// publicationJSON is how an agent stands in the network.
type publicationJSON struct {
	Published bool   `json:"published"`
	Reason    string `json:"reason,omitempty"`
	// Hash, Epoch, Seq and At are of its newest record.
	Hash   string   `json:"hash,omitempty"`
	Epoch  int64    `json:"epoch,omitempty"`
	Seq    int64    `json:"seq,omitempty"`
	At     string   `json:"at,omitempty"`
	Listed bool     `json:"listed,omitempty"`
	Cut    []string `json:"cut,omitempty"`
}

// networkOf is nil where there is no network.
func (d *Door) networkOf(a hub.Agent) *publicationJSON {
	if d.published == nil {
		return nil
	}
	s := d.published(a)
	if s.Why != "" {
		return &publicationJSON{Reason: s.Why}
	}
	return &publicationJSON{Published: true, Hash: s.Hash.String(), Epoch: s.Version.Epoch, Seq: s.Version.Seq, At: stamp(s.At), Listed: s.Listed, Cut: s.Cut}
}

// networkView is networkOf for the agent's owner.
func (d *Door) publicationView(a hub.Agent) templates.PublicationView {
	if d.published == nil {
		return templates.PublicationView{}
	}
	s := d.published(a)
	v := templates.PublicationView{Shown: true, Why: s.Why}
	if s.Why == "" {
		v.At, v.Hash, v.Cut = moment(s.At), s.Hash.String(), strings.Join(s.Cut, "; ")
		v.Soon = !s.Listed
	}
	return v
}
