package handlers

import (
	"net/http"

	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/templates"
)

// reasonTexts say the reasons of a report in words.
var reasonTexts = map[string][2]string{
	"broken":        {"It does not work", "It fails, or answers with nonsense."},
	"misleading":    {"It is not what it says", "It does something else than its page promises."},
	"harmful":       {"It does harm", "It says or does what hurts people, or asks for what it must not."},
	"spam":          {"It is advertising", "It is there to sell or to fill the directory."},
	"impersonation": {"It pretends to be somebody", "It uses a name, picture or domain that is not its owner's."},
	"other":         {"Something else", "Say what, below."},
}

// reasonLabel is a reason of a report in a few words.
func reasonLabel(reason string) string {
	if t, ok := reasonTexts[reason]; ok {
		return t[0]
	}
	return reason
}

// reportable is an agent that the visitor may tell the operator of.
func (d *Door) reportable(r *http.Request, actor ident.Actor) (hub.Agent, error) {
	a, err := d.hub.Get(r.Context(), actor, pathName(r))
	if err == nil && actor.ID == "" && !d.accounts.Guests() {
		err = fault.New(fault.Unauthenticated, "Log in to report an agent.")
	}
	return a, err
}

func (d *Door) reportForm(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	a, err := d.reportable(r, actor)
	if err != nil {
		return err
	}
	return d.showReport(w, r, actor, http.StatusOK, a, templates.ReportView{Done: r.URL.Query().Get("done") != ""})
}

func (d *Door) showReport(w http.ResponseWriter, r *http.Request, actor ident.Actor, code int, a hub.Agent, v templates.ReportView) error {
	v.Ref, v.Title = a.Handle(), a.Title
	for _, reason := range hub.ReportReasons {
		t := reasonTexts[reason]
		v.Reasons = append(v.Reasons, templates.Option{Value: reason, Label: reasonLabel(reason), Hint: t[1], Selected: reason == v.Reason})
	}
	return d.render(w, r, code, templates.Report(d.frame(r, actor, "Report "+a.Title), v))
}

func (d *Door) reportAgent(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	a, err := d.reportable(r, actor)
	if err != nil {
		return err
	}
	in, err := form(w, r)
	if err != nil {
		return err
	}
	v := templates.ReportView{Reason: in.Get("reason"), Text: lines(in.Get("text"))}
	actor, err = d.asGuest(w, r, actor)
	if err == nil {
		err = d.hub.Report(r.Context(), actor, a.Name, v.Reason, v.Text)
	}
	if err != nil {
		messages, code, ok := fieldErrors(w, err)
		if !ok {
			return err
		}
		v.Errors = messages
		return d.showReport(w, r, actor, code, a, v)
	}
	return see(w, r, "/agents/"+a.Name+"/report?done=1")
}
