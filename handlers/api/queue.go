package api

import (
	"context"
	"net/http"

	"agentsite/handlers/request"
	"agentsite/handlers/respond"
	"agentsite/internal/ident"
	"agentsite/internal/scheduler"
)

// Queue returns the state of the queue of tasks, with names for people. Only the operator may read it.
type Queue interface {
	Queue(ctx context.Context, actor ident.Actor) (scheduler.Snapshot, error)
}

type queueJSON struct {
	Running int `json:"running"`
	Waiting int `json:"waiting"`
	// RunningLimit and WaitingLimit are the bounds of the portal.
	RunningLimit int              `json:"running_limit"`
	WaitingLimit int              `json:"waiting_limit"`
	Refused      int              `json:"refused"`
	Classes      []queueClassJSON `json:"classes"`
	Accounts     []queueCallJSON  `json:"accounts"`
	Agents       []queuePlaceJSON `json:"agents"`
	Providers    []queuePlaceJSON `json:"providers"`
}

type queueClassJSON struct {
	Class        string  `json:"class"`
	Running      int     `json:"running"`
	Waiting      int     `json:"waiting"`
	Share        float64 `json:"share"`
	Refused      int     `json:"refused"`
	RefusedTotal int     `json:"refused_total"`
	SecondsTotal float64 `json:"seconds_total"`
}

type queueCallJSON struct {
	Class   string  `json:"class"`
	Account string  `json:"account"`
	Running int     `json:"running"`
	Waiting int     `json:"waiting"`
	Share   float64 `json:"share"`
	Refused int     `json:"refused"`
}

type queuePlaceJSON struct {
	Name    string `json:"name"`
	Running int    `json:"running"`
	Waiting int    `json:"waiting"`
}

// answerQueue answers with the tasks that run and wait, for the operator.
func answerQueue(queue Queue) request.Handler {
	return func(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
		s, err := queue.Queue(r.Context(), actor)
		if err == nil {
			respond.JSON(w, http.StatusOK, newQueueJSON(s))
		}
		return err
	}
}

func newQueueJSON(s scheduler.Snapshot) queueJSON {
	out := queueJSON{Running: s.Running, Waiting: s.Waiting,
		RunningLimit: s.Limits.Running, WaitingLimit: s.Limits.Waiting,
		Classes: make([]queueClassJSON, 0, len(s.Classes)), Accounts: make([]queueCallJSON, 0, len(s.Accounts)),
		Agents: queuePlaces(s.Agents), Providers: queuePlaces(s.Providers)}
	for _, c := range s.Classes {
		out.Refused += c.Lately
		out.Classes = append(out.Classes, queueClassJSON{Class: c.Class.String(), Running: c.Running, Waiting: c.Waiting,
			Share: c.Share, Refused: c.Lately, RefusedTotal: c.Refused, SecondsTotal: c.Seconds})
	}
	for _, a := range s.Accounts {
		out.Accounts = append(out.Accounts, queueCallJSON{Class: a.Class.String(), Account: a.Name, Running: a.Running,
			Waiting: a.Waiting, Share: a.Share, Refused: a.Refused})
	}
	return out
}

func queuePlaces(list []scheduler.PlaceState) []queuePlaceJSON {
	out := make([]queuePlaceJSON, 0, len(list))
	for _, p := range list {
		out = append(out, queuePlaceJSON{p.Name, p.Running, p.Waiting})
	}
	return out
}
