package agents

import (
	"net/http"
	"runtime"
	"time"

	"agentsite/handlers/pages"
	"agentsite/internal/account"
	"agentsite/internal/clock"
	"agentsite/internal/fault"
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

// isLinked reports whether an agent that was just registered needs a program that connects, and may be connected now.
func isLinked(a hub.Agent, actor ident.Actor) bool {
	return a.Kind == hub.Link && a.Status.State == hub.Active && a.OwnedBy(actor)
}

// connectLife is the lifetime of the API token of a connected program. It is long, because no person is
// there to renew it.
const connectLife = 365 * 24 * time.Hour

// connectAgent shows the command that connects the agent's program. The answer itself shows the token in it, because
// the token is not stored.
func (d *Form) connectAgent(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	a, err := d.editable(r, actor)
	if err != nil {
		return err
	}
	if !a.OwnedBy(actor) { // the token would belong to an account that does not own the agent
		return fault.New(fault.Forbidden, "Only an owner of %s may connect its program.", a.Name)
	}
	if a.Kind != hub.Link {
		return fault.New(fault.Invalid, "Only a linked agent is connected by a command; %s is reached at its address.",
			a.Name)
	}
	return d.showCommand(w, r, actor, a, false)
}

// showCommand makes a token that may connect the program of the agent and nothing else, and shows the command with it.
// fresh is true for an agent that was just registered.
func (d *Form) showCommand(w http.ResponseWriter, r *http.Request, actor ident.Actor, a hub.Agent, fresh bool) error {
	token, err := d.accounts.CreateToken(r.Context(), actor,
		account.NewToken{Label: "program of " + a.Name, Program: a.ID, Life: connectLife})
	if err != nil {
		return err
	}
	secret, run := "AGENTSITE_TOKEN="+token+" ", "agentsite agent run --portal "+d.portal.URL+" --name "+a.Name+" -- cat"
	v := templates.ConnectView{Ref: a.Name, Title: a.Title, Fresh: fresh, Command: secret + run}
	if name := systemName(runtime.GOOS); name != "" {
		v.System = name + " (" + runtime.GOARCH + ")"
		v.Fetch = "curl -fsSo agentsite " + d.portal.URL + "/program && chmod +x agentsite && " + secret + "./" + run
	}
	return d.site.Render(w, r, http.StatusOK, templates.Connect(d.site.Frame(r, actor, "Connect "+a.Title), v))
}

// systemName returns the name of a system with a POSIX shell, on which the executable of this portal runs; "" for
// others.
func systemName(system string) string {
	return map[string]string{"darwin": "macOS", "freebsd": "FreeBSD", "linux": "Linux"}[system]
}
