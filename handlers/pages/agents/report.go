package agents

import (
	"net/http"

	"agentsite/handlers/pages"
	"agentsite/handlers/request"
	"agentsite/handlers/respond"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/templates"
)

// reportable returns the agent in the path if the actor may report it to the operator, otherwise an
// error.
func (d *Profile) reportable(r *http.Request, actor ident.Actor) (hub.Agent, error) {
	a, err := d.hub.Get(r.Context(), actor, request.PathName(r))
	if err == nil && actor.ID == "" && !d.accounts.Guests() {
		err = fault.New(fault.Unauthenticated, "Log in to report an agent.")
	}
	return a, err
}

func (d *Profile) reportForm(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	a, err := d.reportable(r, actor)
	if err != nil {
		return err
	}
	return d.showReport(w, r, actor, http.StatusOK, a, templates.ReportView{Done: r.URL.Query().Get("done") != ""})
}

func (d *Profile) showReport(w http.ResponseWriter, r *http.Request, actor ident.Actor, code int, a hub.Agent,
	v templates.ReportView) error {
	v.Ref, v.Title = a.Handle(), a.Title
	for _, reason := range hub.ReportReasons {
		t := pages.ReasonTexts[reason]
		v.Reasons = append(v.Reasons, templates.Option{Value: reason, Label: pages.ReportReason(reason), Hint: t[1],
			Selected: reason == v.Reason})
	}
	return d.site.Render(w, r, code, templates.Report(d.site.Frame(r, actor, "Report "+a.Title), v))
}

func (d *Profile) reportAgent(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	a, err := d.reportable(r, actor)
	if err != nil {
		return err
	}
	in, err := request.Form(w, r)
	if err != nil {
		return err
	}
	v := templates.ReportView{Reason: in.Get("reason"), Text: request.NormalizeLines(in.Get("text"))}
	actor, err = d.sessions.EnsureGuest(w, r, actor)
	if err == nil {
		err = d.hub.Complaints.Submit(r.Context(), actor, a.Name, v.Reason, v.Text)
	}
	if err != nil {
		messages, code, ok := pages.FieldErrors(w, err)
		if !ok {
			return err
		}
		v.Errors = messages
		return d.showReport(w, r, actor, code, a, v)
	}
	return respond.SeeOther(w, r, "/agents/"+a.Name+"/report?done=1")
}
