package account

import (
	"net/http"
	"net/url"

	"agentsite/handlers/pages"
	"agentsite/handlers/request"
	"agentsite/handlers/respond"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/task"
	"agentsite/templates"
)

// runningWords are the states of tasks for people.
var runningWords = map[task.State]string{task.Submitted: "waits for its turn", task.Working: "works",
	task.InputRequired: "waits for your answer", task.AuthRequired: "waits for a login"}

func (d *Pages) running(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	if actor.ID == "" { // visitors with a session have tasks too
		return respond.SeeOther(w, r, "/login?next="+url.QueryEscape("/account/running"))
	}
	list, err := d.tasks.Running(r.Context(), actor)
	if err != nil {
		return err
	}
	rows := make([]templates.RunningRow, len(list))
	for i, t := range list {
		rows[i] = templates.RunningRow{ID: t.ID, Agent: t.AgentHandle, State: runningWords[t.State],
			ChatID: t.ConversationID, Since: pages.FormatMoment(t.CreatedAt)}
		if wait, ok := d.tasks.WaitOf(t); ok {
			rows[i].Wait = wait.String()
		}
		c, err := d.chat.Get(r.Context(), actor, t.ConversationID)
		if err == nil {
			rows[i].Chat = c.Title
		} else if !fault.Is(err, fault.NotFound) {
			return err
		}
	}
	p := d.site.Frame(r, actor, "What runs for you")
	if r.URL.Query().Get("done") == "stopped" {
		p.Flash = "Stopped."
	}
	return d.site.Render(w, r, http.StatusOK, templates.Running(p, rows))
}

// stopOne stops one task of the actor. A task that has ended meanwhile is no error.
func (d *Pages) stopOne(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	_, err := d.tasks.Cancel(r.Context(), actor, request.PathParam(r, "id"))
	if err != nil && !fault.Is(err, fault.Conflict) {
		return err
	}
	return respond.SeeOther(w, r, "/account/running?done=stopped")
}

// stopAll stops all tasks of the actor.
func (d *Pages) stopAll(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	if _, err := d.tasks.StopRunning(r.Context(), actor); err != nil {
		return err
	}
	return respond.SeeOther(w, r, "/account/running?done=stopped")
}
