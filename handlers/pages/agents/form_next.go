package agents

import (
	"time"

	"agentsite/handlers/pages"
	"agentsite/internal/clock"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/templates"
)

// isNew is how long after the registration an owner sees the next steps.
const isNew = 15 * time.Minute

// next returns the next steps for the owner of a new agent, nil for an agent older than isNew or another
// actor.
func (d *Profile) next(actor ident.Actor, a hub.Agent) *templates.NextView {
	if a.Status.State != hub.Active || !a.OwnedBy(actor) || !a.MayEdit(actor) ||
		clock.Now().Sub(a.CreatedAt) > isNew {
		return nil
	}
	v := &templates.NextView{Ref: a.Name, Link: a.Kind == hub.Link, Live: string(a.Liveness.State),
		Reason: a.Liveness.Reason}
	if a.Visibility != hub.Private {
		v.Share = d.portal.URL + "/agents/" + a.Name
	}
	if a.Endpoint != "" && a.Kind != hub.Prompt && a.Proof.State != hub.Hosted && a.Proof.State != hub.Proved {
		v.Prove = "/agents/" + a.Name + "/owner#proof"
	}
	// Examples are shown only if the agent is not known to fail. A program that never connected is not known to work.
	if a.Liveness.State != hub.Unreachable && a.Liveness.State != hub.WrongProtocol &&
		(!v.Link || a.Liveness.State == hub.Alive) {
		v.Examples = pages.Examples(a, 2)
	}
	return v
}
