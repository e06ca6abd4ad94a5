package admin

import (
	"net/http"

	"github.com/go-chi/chi/v5"

	"agentsite/handlers/pages"
	"agentsite/handlers/request"
	"agentsite/handlers/respond"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/templates"
)

// reports shows the operator users' reports about agents: open ones, or closed ones.
func (d *Pages) reports(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	return d.showReports(w, r, actor, http.StatusOK, templates.AdminReports{Closed: r.URL.Query().Get("closed") != ""})
}

func (d *Pages) showReports(w http.ResponseWriter, r *http.Request, actor ident.Actor, code int,
	v templates.AdminReports) error {
	list, err := d.hub.Complaints.List(r.Context(), actor, !v.Closed)
	if err != nil {
		return err
	}
	for _, c := range list {
		row := templates.ReportRow{ID: c.ID, Agent: c.AgentName, By: c.ReporterHandle,
			Guest: c.ReporterKind == string(ident.Guest), Reason: pages.ReportReason(c.Reason), Text: c.Text,
			Created: pages.FormatMoment(c.CreatedAt), Closed: pages.FormatMoment(c.ClosedAt), ClosedBy: c.ClosedBy,
			Outcome: c.Outcome}
		if a, err := d.hub.Get(r.Context(), actor, c.AgentName); err == nil {
			row.Title, row.Icon, row.There = a.Title, a.Icon, true
			row.Withdrawn = a.Status.Held
			row.Builtin = a.Kind == hub.Builtin
		}
		v.Rows = append(v.Rows, row)
	}
	return d.showAdmin(w, r, actor, code, templates.AdminView{Tab: "reports", Reports: &v})
}

func (d *Pages) closeReport(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	in, err := request.Form(w, r)
	if err != nil {
		return err
	}
	id := chi.URLParam(r, "id")
	if err := d.hub.Complaints.Close(r.Context(), actor, id, in.Get("outcome")); err != nil {
		messages, code, ok := pages.FieldErrors(w, err)
		if !ok || messages["outcome"] == "" {
			return err
		}
		return d.showReports(w, r, actor, code,
			templates.AdminReports{Wrong: id, Outcome: in.Get("outcome"), Error: messages["outcome"]})
	}
	return respond.SeeOther(w, r, "/admin/reports")
}

// withdrawAgent withdraws an agent as the operator, so that its owner cannot restore it.
func (d *Pages) withdrawAgent(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	return d.holdAgent(w, r, actor, true)
}

func (d *Pages) restoreAgent(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	return d.holdAgent(w, r, actor, false)
}

func (d *Pages) holdAgent(w http.ResponseWriter, r *http.Request, actor ident.Actor, hold bool) error {
	in, err := request.Form(w, r)
	if err != nil {
		return err
	}
	if _, err := d.hub.Hold(r.Context(), actor, request.PathName(r), hold, in.Get("message")); err != nil {
		return err
	}
	if in.Get("back") == "reports" {
		return respond.SeeOther(w, r, "/admin/reports")
	}
	return respond.SeeOther(w, r, "/admin/agents")
}
