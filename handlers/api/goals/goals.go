// Package goals has the API routes of goals and of the teams that work on them.
package goals

import (
	"context"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"

	"agentsite/handlers/api/spending"
	"agentsite/handlers/request"
	"agentsite/handlers/respond"
	"agentsite/internal/ident"
	"agentsite/internal/team"
	"agentsite/internal/team/flow"
)

// Guard bounds streams: the context that it returns ends with the right of the actor, which prove reads anew.
type Guard interface {
	GuardedBy(base context.Context, actor ident.Actor, prove func() (ident.Actor, error)) (ctx context.Context,
		stop func(), err error)
}

// API answers the routes of goals.
type API struct {
	teams    *team.Service
	sessions *request.Sessions
	guard    Guard
	url      string // of the portal
}

// New returns an API over the given service. url is the address of the portal.
func New(t *team.Service, sessions *request.Sessions, g Guard, url string) *API {
	return &API{t, sessions, g, url}
}

// Routes declares the routes below /api/v1.
func (a *API) Routes(r chi.Router) {
	r.Get("/goals", a.sessions.Listing(a.listGoals))
	r.Post("/goals", a.sessions.API(a.startGoal))
	r.Get("/goals/{id}", a.sessions.Listing(a.readGoal))
	r.Get("/goals/{id}/events", a.sessions.API(a.readEvents))
	r.Post("/goals/{id}/cancel", a.sessions.API(a.cancelGoal))
	r.Post("/goals/{id}/say", a.sessions.API(a.steerGoal))
	r.Post("/goals/{id}/approve", a.sessions.API(a.answerTask))
	r.Post("/goals/{id}/tasks/{task}/reassign", a.sessions.API(a.reassignTask))
	r.Get("/goals/{id}/links", a.sessions.Listing(a.listLinks))
	r.Post("/goals/{id}/links", a.sessions.API(a.createLink))
	r.Delete("/goals/{id}/links/{link}", a.sessions.API(a.endLink))
	r.Get("/goals/{id}/shared/{secret}", a.sessions.Listing(a.readShared))
}

// BudgetBody bounds the models of a team. Cost is a decimal number.
type BudgetBody struct {
	Tokens int64  `json:"tokens"`
	Cost   string `json:"cost"`
}

// StartBody is a new goal.
type StartBody struct {
	Goal           string       `json:"goal"`
	Members        []string     `json:"members"`
	Recruit        flow.Recruit `json:"recruit"`
	RequireAll     bool         `json:"require_all"`
	Deadline       *time.Time   `json:"deadline"`
	MaxMembers     *int         `json:"max_members"`
	MaxTurns       *int         `json:"max_turns"`
	MaxDepth       *int         `json:"max_depth"`
	PersonSeconds  int          `json:"person_seconds"`
	Budget         *BudgetBody  `json:"budget"`
	IdempotencyKey string       `json:"idempotency_key"`
}

func (a *API) startGoal(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	var in StartBody
	if err := request.DecodeBody(w, r, &in); err != nil {
		return err
	}
	d := team.Draft{Goal: in.Goal, Members: in.Members, Recruit: in.Recruit, RequireAll: in.RequireAll,
		MaxMembers: in.MaxMembers, MaxTurns: in.MaxTurns, MaxDepth: in.MaxDepth, Key: in.IdempotencyKey,
		PersonTime: time.Duration(in.PersonSeconds) * time.Second}
	if in.Deadline != nil {
		d.Deadline = *in.Deadline
	}
	if in.Budget != nil {
		var err error
		if d.Money, err = spending.ParseCost(in.Budget.Cost); err != nil {
			return err
		}
		d.Tokens = in.Budget.Tokens
	}
	g, _, err := a.teams.Start(r.Context(), actor, d)
	if err != nil {
		return err
	}
	respond.JSON(w, http.StatusAccepted, map[string]string{"id": g.ID})
	return nil
}

func (a *API) listGoals(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	limit, err := request.QueryInt(r, "limit", 50)
	if err != nil {
		return err
	}
	if limit == 0 { // the service takes 0 for "no limit given", but a client that sends 0 gets an error
		limit = -1
	}
	list, next, err := a.teams.List(r.Context(), actor, r.URL.Query().Get("cursor"), int(limit))
	if err != nil {
		return err
	}
	out := make([]Summary, len(list))
	for i, g := range list {
		out[i] = newSummary(g)
	}
	respond.JSON(w, http.StatusOK, map[string]any{"goals": out, "next_cursor": next})
	return nil
}

func (a *API) readGoal(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	v, err := a.teams.Get(r.Context(), actor, request.PathParam(r, "id"))
	return writeGoal(w, v, err)
}

// writeGoal writes a goal, unless there is an error.
func writeGoal(w http.ResponseWriter, v team.View, err error) error {
	if err != nil {
		return err
	}
	respond.JSON(w, http.StatusOK, NewGoal(v))
	return nil
}

func (a *API) cancelGoal(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	v, err := a.teams.Cancel(r.Context(), actor, request.PathParam(r, "id"))
	return writeGoal(w, v, err)
}

func (a *API) steerGoal(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	var in SayBody
	if err := request.DecodeBody(w, r, &in); err != nil {
		return err
	}
	v, err := a.teams.Say(r.Context(), actor, request.PathParam(r, "id"), in.Text)
	return writeGoal(w, v, err)
}

// SayBody is a message of the person to the team.
type SayBody struct {
	Text string `json:"text"`
}

// ReassignBody names the new owner of a task.
type ReassignBody struct {
	To string `json:"to"`
}

// ApproveBody answers the question of a task. Answer is a text such as yes, no, or the information that was asked for.
type ApproveBody struct {
	Task   int    `json:"task"`
	Answer string `json:"answer"`
}

func (a *API) answerTask(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	var in ApproveBody
	if err := request.DecodeBody(w, r, &in); err != nil {
		return err
	}
	v, err := a.teams.Approve(r.Context(), actor, request.PathParam(r, "id"), in.Task, in.Answer)
	return writeGoal(w, v, err)
}

func (a *API) reassignTask(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	var in ReassignBody
	if err := request.DecodeBody(w, r, &in); err != nil {
		return err
	}
	v, err := a.teams.Reassign(r.Context(), actor, request.PathParam(r, "id"), parseTask(request.PathParam(r, "task")),
		in.To)
	return writeGoal(w, v, err)
}
