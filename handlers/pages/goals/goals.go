// Package goals has the pages on which people give goals to teams of agents, watch them and step in.
package goals

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"agentsite/handlers/api/spending"
	"agentsite/handlers/markup"
	"agentsite/handlers/pages"
	"agentsite/handlers/request"
	"agentsite/handlers/respond"
	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/team"
	"agentsite/internal/team/flow"
	"agentsite/templates"
)

// Pages answers the pages of goals.
type Pages struct {
	teams  *team.Service
	site   *pages.Site
	markup *markup.Renderer
	// examples are goals that the agents of this portal, or of its network, can do.
	examples []string
	url      string // of the portal
}

// New returns the pages over the given service.
func New(t *team.Service, site *pages.Site, m *markup.Renderer, examples []string, url string) *Pages {
	return &Pages{t, site, m, examples, url}
}

// Routes declares the routes of the pages.
func (d *Pages) Routes(r chi.Router) {
	r.Get("/goals", d.site.Page(d.listGoals))
	r.Post("/goals", d.site.Page(d.startGoal))
	r.Get("/goals/new", d.site.Page(d.showForm))
	r.Get("/goals/{id}", d.site.Page(d.showGoal))
	r.Get("/goals/{id}/export.md", d.site.Page(d.exportGoal))
	r.Get("/goals/{id}/shared/{secret}", d.site.Page(request.Listing(d.showShared)))
	r.Post("/goals/{id}/share", d.site.Page(d.shareGoal))
	r.Post("/goals/{id}/unshare", d.site.Page(d.unshareGoal))
	r.Post("/goals/{id}/cancel", d.site.Page(d.cancelGoal))
	r.Post("/goals/{id}/say", d.site.Page(d.sayToTeam))
	r.Post("/goals/{id}/approve", d.site.Page(d.approveCall))
	r.Post("/goals/{id}/reassign", d.site.Page(d.reassignTask))
}

func (d *Pages) listGoals(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	list, next, err := d.teams.List(r.Context(), actor, r.URL.Query().Get("cursor"), 30)
	if err != nil {
		return err
	}
	now := clock.Now()
	v := templates.GoalList{Examples: d.examples}
	for _, g := range list {
		v.Rows = append(v.Rows, templates.GoalRow{ID: g.ID, Text: g.Text, State: newState(g.State, g.Reason),
			Begun: pages.FormatMoment(g.CreatedAt), Age: pages.FormatAge(now.Sub(g.CreatedAt))})
	}
	if next != "" {
		v.Next = "/goals?cursor=" + next
	}
	return d.site.Render(w, r, http.StatusOK, templates.Goals(d.site.Frame(r, actor, "Goals"), v))
}

// showForm shows the form for a goal, filled from the address. With "preview" it also shows the agents that would be
// picked.
func (d *Pages) showForm(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	if !actor.IsPerson() {
		return fault.New(fault.Unauthenticated, "Sign in to give goals to teams of agents.")
	}
	q := r.URL.Query()
	v := readForm(q)
	return d.renderForm(w, r, actor, v, q.Get("preview") != "")
}

// startGoal begins a goal or, with the button "preview", only shows the agents that would be picked.
func (d *Pages) startGoal(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	in, err := request.Form(w, r)
	if err != nil {
		return err
	}
	v := readForm(in)
	if in.Get("preview") != "" {
		return d.renderForm(w, r, actor, v, true)
	}
	draft, err := newDraft(v)
	var g team.Goal
	if err == nil {
		g, _, err = d.teams.Start(r.Context(), actor, draft)
	}
	if err == nil {
		return respond.SeeOther(w, r, "/goals/"+g.ID)
	}
	return d.formError(w, r, actor, v, err)
}

// formError shows the form again with an error and all that was typed.
func (d *Pages) formError(w http.ResponseWriter, r *http.Request, actor ident.Actor, v templates.GoalForm,
	err error) error {
	messages, code, ok := pages.FieldErrors(w, err)
	if !ok || !actor.IsPerson() {
		return err
	}
	v.Errors = messages
	return d.site.Render(w, r, code, templates.GoalNew(d.site.Frame(r, actor, "Give a goal"), v))
}

func (d *Pages) renderForm(w http.ResponseWriter, r *http.Request, actor ident.Actor, v templates.GoalForm,
	preview bool) error {
	if preview {
		draft, err := newDraft(v)
		var parts []flow.Part
		if err == nil {
			parts, err = d.teams.Preview(r.Context(), actor, draft)
		}
		if err != nil {
			return d.formError(w, r, actor, v, err)
		}
		v.Previewed = true
		for _, p := range parts {
			v.Parts = append(v.Parts, newPart(p))
		}
	}
	x, err := d.teams.Experience(r.Context(), actor)
	if err != nil {
		return err
	}
	v.Expected = describeExperience(x)
	v.Examples = d.examples
	return d.site.Render(w, r, http.StatusOK, templates.GoalNew(d.site.Frame(r, actor, "Give a goal"), v))
}

func newPart(p flow.Part) templates.GoalPart {
	out := templates.GoalPart{N: p.N, Text: p.Text, After: joinNumbers(p.Needs)}
	for i, c := range p.Candidates {
		pick := templates.GoalPick{Handle: c.Handle, Why: c.Why, Provenance: templates.Provenance{
			Portal: portalOf(c.Handle), Live: c.Live}}
		if i == 0 {
			out.Pick = &pick
		} else {
			out.Others = append(out.Others, pick)
		}
	}
	return out
}

// portalOf returns the host of a handle, "" for an agent of this portal.
func portalOf(handle string) string {
	_, host, _ := strings.Cut(handle, "@")
	return host
}

func joinNumbers(list []int) string {
	var out []string
	for _, n := range list {
		out = append(out, strconv.Itoa(n))
	}
	return strings.Join(out, ", ")
}

// readForm returns the values of the form. Fields without a value have the defaults of the service.
func readForm(in url.Values) templates.GoalForm {
	v := templates.GoalForm{Goal: request.NormalizeLines(in.Get("goal")), Members: in.Get("members"),
		RequireAll: in.Get("require_all") != "", Recruit: in.Get("recruit"), MaxMembers: in.Get("max_members"),
		MaxTurns: in.Get("max_turns"), MaxDepth: in.Get("max_depth"), Minutes: in.Get("minutes"), Tokens: in.Get("tokens"),
		PersonMinutes: in.Get("person_minutes"), Cost: in.Get("cost"), Key: in.Get("key")}
	v.More = v.Members != "" || v.RequireAll || v.Tokens != "" || v.Cost != ""
	for field, usual := range map[*string]string{&v.Recruit: recruitAuto,
		&v.MaxMembers: strconv.Itoa(team.DefaultMembers), &v.MaxTurns: strconv.Itoa(team.DefaultTurns), &v.MaxDepth: strconv.Itoa(team.DefaultDepth), &v.Minutes: "30",
		&v.PersonMinutes: "10"} {
		*field = cmp.Or(*field, usual)
		v.More = v.More || *field != usual
	}
	v.Key = cmp.Or(v.Key, ident.NewID())
	return v
}

// recruitAuto is the choice to search everywhere, unless members are named.
const recruitAuto = "auto"

// newDraft converts the values of the form.
func newDraft(v templates.GoalForm) (team.Draft, error) {
	var c fault.Check
	number := func(s, name string) *int {
		n, err := strconv.Atoi(strings.TrimSpace(s))
		c.Field(err == nil, name, "use a whole number")
		return &n
	}
	d := team.Draft{Goal: v.Goal, Recruit: flow.Recruit(v.Recruit), RequireAll: v.RequireAll, Key: v.Key,
		Members:    strings.FieldsFunc(v.Members, func(r rune) bool { return strings.ContainsRune(", \t\r\n;", r) }),
		MaxMembers: number(v.MaxMembers, "max_members"), MaxTurns: number(v.MaxTurns, "max_turns"),
		MaxDepth: number(v.MaxDepth, "max_depth")}
	if v.Recruit == recruitAuto {
		d.Recruit = ""
	}
	if v.Tokens != "" {
		d.Tokens = int64(*number(v.Tokens, "tokens"))
		c.Field(d.Tokens > 0, "tokens", "use a number above 0, or none")
	}
	wait := number(v.PersonMinutes, "person_minutes")
	c.Field(*wait >= 1 && *wait <= 24*60, "person_minutes", "use 1 to 1440")
	d.PersonTime = time.Duration(*wait) * time.Minute
	money, err := spending.ParseCost(v.Cost)
	c.Field(err == nil, "cost", "use a sum such as 2.50")
	d.Money = money
	minutes := number(v.Minutes, "minutes")
	c.Field(*minutes >= 1 && *minutes <= 24*60, "minutes", "use 1 to 1440")
	d.Deadline = clock.Now().Add(time.Duration(*minutes) * time.Minute)
	return d, c.Err()
}

func (d *Pages) showGoal(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	return d.renderGoal(w, r, actor, templates.GoalView{}, http.StatusOK)
}

// renderGoal shows a goal. typed has the fields that a person filled in before an error.
func (d *Pages) renderGoal(w http.ResponseWriter, r *http.Request, actor ident.Actor, typed templates.GoalView,
	code int) error {
	id := request.PathParam(r, "id")
	at, err := request.QueryInt(r, "at", 0)
	if err != nil {
		return err
	}
	v, err := d.teams.Get(r.Context(), actor, id)
	last := v.State.Seq
	if err == nil && at > 0 {
		v, err = d.teams.GetAt(r.Context(), actor, id, at)
	}
	if err != nil {
		return err
	}
	after := max(0, v.State.Seq-shownEvents)
	events, err := d.teams.Events(r.Context(), actor, id, after, int(v.State.Seq-after))
	if err != nil {
		return err
	}
	view := d.newView(v, events)
	view.Last, view.At = last, v.State.Seq
	if at > 0 {
		view.Past = true
	}
	view.Link, view.Shares = typed.Link, newShares(v.State)
	view.Left, view.Say, view.Errors, view.Answered = int(after), typed.Say, typed.Errors, typed.Answered
	if r.URL.Query().Get("part") == "live" {
		return d.site.Render(w, r, code, templates.GoalLive(view))
	}
	return d.site.Render(w, r, code, templates.Goal(d.site.Frame(r, actor, templates.GoalTitle(v.Text)), view))
}

// shownEvents is the number of events on the page of a goal, the last ones. The API has all.
const shownEvents = 200

func (d *Pages) cancelGoal(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	id := request.PathParam(r, "id")
	if _, err := d.teams.Cancel(r.Context(), actor, id); err != nil && !fault.Is(err, fault.Conflict) {
		return err // a goal that has ended meanwhile is no error
	}
	return respond.SeeOther(w, r, "/goals/"+url.PathEscape(id))
}

func (d *Pages) sayToTeam(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	in, err := request.Form(w, r)
	if err != nil {
		return err
	}
	text := request.NormalizeLines(in.Get("text"))
	_, err = d.teams.Say(r.Context(), actor, request.PathParam(r, "id"), text)
	return d.answerAction(w, r, actor, templates.GoalView{Say: text}, err)
}

func (d *Pages) approveCall(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	in, n, err := readTaskForm(w, r)
	if err != nil {
		return err
	}
	// A button has the answer yes or no; otherwise the answer is the text of the field.
	text := request.NormalizeLines(cmp.Or(in.Get("choice"), in.Get("answer")))
	_, err = d.teams.Approve(r.Context(), actor, request.PathParam(r, "id"), n, text)
	return d.answerAction(w, r, actor, templates.GoalView{Answered: map[int]string{n: text}}, err)
}

func (d *Pages) reassignTask(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	in, n, err := readTaskForm(w, r)
	if err != nil {
		return err
	}
	_, err = d.teams.Reassign(r.Context(), actor, request.PathParam(r, "id"), n, in.Get("to"))
	return d.answerAction(w, r, actor, templates.GoalView{}, err)
}

// answerAction goes back to the page of a goal, or shows it with an error and all that was typed.
func (d *Pages) answerAction(w http.ResponseWriter, r *http.Request, actor ident.Actor, typed templates.GoalView,
	err error) error {
	if err == nil {
		return respond.SeeOther(w, r, "/goals/"+url.PathEscape(request.PathParam(r, "id")))
	}
	messages, code, ok := pages.FieldErrors(w, err)
	if !ok || fault.Is(err, fault.NotFound) || !actor.IsPerson() {
		return err
	}
	typed.Errors = messages
	return d.renderGoal(w, r, actor, typed, code)
}

// exportGoal answers with a goal as Markdown.
func (d *Pages) exportGoal(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	v, err := d.teams.Get(r.Context(), actor, request.PathParam(r, "id"))
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/markdown; charset=utf-8")
	w.Header().Set("Content-Disposition", fmt.Sprintf(`attachment; filename="goal-%s.md"`, v.ID))
	_, err = w.Write([]byte(formatMarkdown(v)))
	return err
}

// readTaskForm returns a form about a task of a goal, and the number of the task; 0, which no task has, if it is no
// number.
func readTaskForm(w http.ResponseWriter, r *http.Request) (in url.Values, n int, err error) {
	in, err = request.Form(w, r)
	if err != nil {
		return nil, 0, err
	}
	n, _ = strconv.Atoi(in.Get("task"))
	return in, max(n, 0), nil
}
