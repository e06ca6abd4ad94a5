package goals

import (
	"net/http"
	"slices"
	"time"

	"agentsite/handlers/request"
	"agentsite/handlers/respond"
	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/team"
	"agentsite/internal/team/flow"
)

// Link is a link with which anyone may read a goal. URL contains the secret, so it is set only in the answer that
// makes the link.
type Link struct {
	ID        string `json:"id"`
	CreatedAt string `json:"created_at"`
	ExpiresAt string `json:"expires_at"`
	URL       string `json:"url,omitempty"`
}

// LinkBody asks for a link. Life is a duration, for example 24h; "" for a week.
type LinkBody struct {
	Life string `json:"life"`
}

func newLink(s flow.Share) Link {
	return Link{ID: s.Hash, CreatedAt: respond.FormatTime(s.Created), ExpiresAt: respond.FormatTime(s.Until)}
}

// validLinks returns the links that have not ended.
func validLinks(v team.View) (list []flow.Share) {
	now := clock.Now()
	for _, s := range v.State.Shares {
		if now.Before(s.Until) {
			list = append(list, s)
		}
	}
	return list
}

func (a *API) listLinks(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	v, err := a.teams.Get(r.Context(), actor, request.PathParam(r, "id"))
	if err != nil {
		return err
	}
	out := []Link{}
	for _, s := range validLinks(v) {
		out = append(out, newLink(s))
	}
	respond.JSON(w, http.StatusOK, map[string]any{"links": out})
	return nil
}

func (a *API) createLink(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	var in LinkBody
	if err := request.DecodeBody(w, r, &in); err != nil {
		return err
	}
	life := team.DefaultShareLife
	if in.Life != "" {
		var err error
		if life, err = time.ParseDuration(in.Life); err != nil || life < time.Minute || life > team.MaxShareLife {
			return fault.Field("life", "write a time like 24h, at most a year")
		}
	}
	id := request.PathParam(r, "id")
	secret, err := a.teams.Share(r.Context(), actor, id, life)
	if err != nil {
		return err
	}
	now := clock.Now()
	j := newLink(flow.Share{Hash: ident.HashSecret(secret), Created: now, Until: now.Add(life)})
	j.URL = a.url + "/goals/" + id + "/shared/" + secret
	respond.SetUnlisted(w)
	respond.JSON(w, http.StatusCreated, j)
	return nil
}

func (a *API) endLink(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	id, link := request.PathParam(r, "id"), request.PathParam(r, "link")
	v, err := a.teams.Get(r.Context(), actor, id)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(validLinks(v), func(s flow.Share) bool { return s.Hash == link }) {
		return fault.New(fault.NotFound, "There is no such link: it has ended, or there never was one.")
	}
	if err := a.teams.Unshare(r.Context(), actor, id, link); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// sharedEvents is the number of the last events that a reader with a link gets.
const sharedEvents = 200

// readShared answers with a goal and its last events to anyone with a link, without the conversations, tasks and teams
// of its owner. The secret alone gives access, so the caller is ignored.
func (a *API) readShared(w http.ResponseWriter, r *http.Request, _ ident.Actor) error {
	v, events, err := a.teams.GetShared(r.Context(), request.PathParam(r, "id"), request.PathParam(r, "secret"),
		sharedEvents)
	if err != nil {
		return err
	}
	g := NewGoal(v)
	g.Parent = nil
	hideGoals(g.Team)
	for i := range g.Tasks {
		g.Tasks[i].TaskID, g.Tasks[i].ConversationID, g.Tasks[i].Goal = "", "", ""
	}
	out := make([]Event, 0, len(events))
	for _, e := range events {
		j := NewEvent(e)
		j.TaskID, j.ConversationID, j.Goal = "", "", ""
		out = append(out, j)
	}
	respond.SetUnlisted(w)
	respond.JSON(w, http.StatusOK, map[string]any{"goal": g, "events": out})
	return nil
}

// hideGoals removes the ids of the teams below.
func hideGoals(list []Member) {
	for i := range list {
		list[i].Goal = ""
		hideGoals(list[i].Children)
	}
}
