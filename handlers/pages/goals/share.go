package goals

import (
	"net/http"
	"strconv"
	"time"

	"agentsite/handlers/pages"
	"agentsite/handlers/request"
	"agentsite/handlers/respond"
	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/team/flow"
	"agentsite/templates"
)

// shareGoal makes a link for readers and shows it, once, because only its hash is stored.
func (d *Pages) shareGoal(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	in, err := request.Form(w, r)
	if err != nil {
		return err
	}
	days, err := strconv.Atoi(in.Get("days"))
	if err != nil || days < 1 || days > 365 {
		err = fault.Field("days", "use 1 to 365")
	}
	id, secret := request.PathParam(r, "id"), ""
	if err == nil {
		secret, err = d.teams.Share(r.Context(), actor, id, time.Duration(days)*24*time.Hour)
	}
	if err != nil {
		return d.answerAction(w, r, actor, templates.GoalView{}, err)
	}
	respond.SetUnlisted(w)
	return d.renderGoal(w, r, actor, templates.GoalView{Link: d.url + "/goals/" + id + "/shared/" + secret},
		http.StatusOK)
}

func (d *Pages) unshareGoal(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	in, err := request.Form(w, r)
	if err != nil {
		return err
	}
	err = d.teams.Unshare(r.Context(), actor, request.PathParam(r, "id"), in.Get("link"))
	return d.answerAction(w, r, actor, templates.GoalView{}, err)
}

// showShared shows a goal to a reader with a link: the work of the team, without forms and without addresses of the
// owner's conversations.
func (d *Pages) showShared(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	v, events, err := d.teams.GetShared(r.Context(), request.PathParam(r, "id"), request.PathParam(r, "secret"),
		shownEvents)
	if err != nil {
		return err
	}
	respond.SetUnlisted(w)
	view := d.newView(v, events)
	view.Past, view.Live, view.MaySay, view.Again, view.Parent = true, false, false, "", ""
	for i := range view.Tasks {
		view.Tasks[i].Chat, view.Tasks[i].Goal = "", ""
	}
	frame := d.site.Frame(r, actor, templates.GoalTitle(v.Text))
	frame.Head = templates.NoIndex()
	return d.site.Render(w, r, http.StatusOK, templates.GoalShared(frame, view))
}

// newShares returns the links that are valid now.
func newShares(s flow.State) (list []templates.GoalShare) {
	now := clock.Now()
	for _, k := range s.Shares {
		if now.Before(k.Until) {
			list = append(list, templates.GoalShare{Link: k.Hash, Until: pages.FormatMoment(k.Until)})
		}
	}
	return list
}
