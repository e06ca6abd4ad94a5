package api

import (
	"net/http"

	"github.com/go-chi/chi/v5"

	"agentsite/handlers/request"
	"agentsite/handlers/respond"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
)

type changeJSON struct {
	Field  string `json:"field"`
	Before string `json:"before"`
	After  string `json:"after"`
}

type agentVersionJSON struct {
	agentJSON
	Note    string       `json:"note"`
	Author  string       `json:"author"`
	Changes []changeJSON `json:"changes"`
}

// apiVersion answers with an agent as it was in version n, and with the differences from the version
// before.
func (d *agentAPI) apiVersion(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	now, err := d.hub.Get(r.Context(), actor, request.PathName(r))
	if err != nil {
		return err
	}
	n, err := request.ParseVersion(chi.URLParam(r, "version"))
	if err != nil {
		return err
	}
	at, before, err := d.hub.VersionOf(r.Context(), actor, now.Name, n)
	if err != nil {
		return err
	}
	list := VisibleChanges(d.hub, actor, now, at, before)
	changes := make([]changeJSON, len(list))
	for i, c := range list {
		changes[i] = changeJSON{c.Field, c.Before, c.After}
	}
	// Ownership, liveness and proof of the current agent are shown, because they are not part of a
	// version; permissions follow the current owners.
	at.OwnerID, at.OwnerName, at.CoOwnerIDs, at.CreatedAt = now.OwnerID, now.OwnerName, now.CoOwnerIDs, now.CreatedAt
	at.Liveness, at.Proof = now.Liveness, now.Proof
	if at.Publisher != now.Publisher {
		at.Publisher = "" // the domain was verified for the owner of that time
	}
	respond.JSON(w, http.StatusOK, agentVersionJSON{d.agentJSON(actor, at), at.Note, at.Author, changes})
	return nil
}

type rollbackBody struct {
	Version int `json:"version"`
	Base    int `json:"base"`
}

func (d *agentAPI) apiRollback(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	var in rollbackBody
	if err := request.DecodeBody(w, r, &in); err != nil {
		return err
	}
	a, err := d.hub.Rollback(r.Context(), actor, request.PathName(r), in.Version, in.Base)
	if err != nil {
		return err
	}
	respond.JSON(w, http.StatusOK, d.agentJSON(actor, a))
	return nil
}

type contactJSON struct {
	At        string   `json:"at"`
	State     hub.Live `json:"state"`
	LatencyMS int64    `json:"latency_ms"`
}

// apiHistory answers with the results of the last exchanges with an agent, oldest first.
func (d *agentAPI) apiHistory(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	list, err := d.hub.History(r.Context(), actor, request.PathName(r))
	if err != nil {
		return err
	}
	out := make([]contactJSON, len(list))
	for i, c := range list {
		out[i] = contactJSON{respond.FormatTime(c.At), c.State, c.Latency.Milliseconds()}
	}
	respond.JSON(w, http.StatusOK, map[string]any{"contacts": out, "next_cursor": ""})
	return nil
}

type dayJSON struct {
	Day       string `json:"day"`
	Calls     int    `json:"calls"`
	Completed int    `json:"completed"`
	Failed    int    `json:"failed"`
	Canceled  int    `json:"canceled"`
	Guests    int    `json:"guests"`
	TookMS    int64  `json:"took_ms"`
}

type callJSON struct {
	Task       string `json:"task"`
	Own        bool   `json:"own"`
	CallerKind string `json:"caller_kind"`
	Face       string `json:"face"`
	State      string `json:"state"`
	Reason     string `json:"reason"`
	At         string `json:"at"`
	TookMS     int64  `json:"took_ms"`
}

// apiStats answers with the usage counts of an agent. Only its owners may read them.
func (d *agentAPI) apiStats(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	s, err := d.hub.Usage.Stats(r.Context(), actor, request.PathName(r))
	if err != nil {
		return err
	}
	days, calls := make([]dayJSON, len(s.Days)), make([]callJSON, len(s.Calls))
	for i, x := range s.Days {
		days[i] = dayJSON{x.Day.UTC().Format("2006-01-02"), x.Calls, x.Completed, x.Failed, x.Canceled, x.Guests,
			x.Took.Milliseconds()}
	}
	for i, c := range s.Calls {
		calls[i] = callJSON{c.TaskID, c.Own, c.CallerKind, c.Face, c.State, c.Reason, respond.FormatTime(c.At),
			c.Took.Milliseconds()}
	}
	respond.JSON(w, http.StatusOK, map[string]any{"days": days, "calls": calls, "p50_ms": s.P50.Milliseconds(),
		"p95_ms": s.P95.Milliseconds()})
	return nil
}

type traceJSON struct {
	At   string `json:"at"`
	Sent bool   `json:"sent"`
	Head string `json:"head"`
	Body string `json:"body"`
	Size int64  `json:"size"`
}

// apiCall answers with the recorded requests and responses of one call of an agent. Only its owners may
// read them.
func (d *agentAPI) apiCall(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	list, err := d.hub.Usage.Traces(r.Context(), actor, request.PathName(r), chi.URLParam(r, "task"))
	if err != nil {
		return err
	}
	out := make([]traceJSON, len(list))
	for i, t := range list {
		out[i] = traceJSON{respond.FormatTime(t.At), t.Sent, t.Head, t.Body, t.Size}
	}
	respond.JSON(w, http.StatusOK, map[string]any{"traces": out})
	return nil
}

type reportBody struct {
	Reason string `json:"reason"`
	Text   string `json:"text"`
}

// apiReport stores a user's report about an agent, which the operator reads on the admin pages.
func (d *agentAPI) apiReport(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	var in reportBody
	if err := request.DecodeBody(w, r, &in); err != nil {
		return err
	}
	if err := d.hub.Complaints.Submit(r.Context(), actor, request.PathName(r), in.Reason, in.Text); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

type tryBody struct {
	DraftJSON
	Text string `json:"text"`
}

// apiTry sends one question to an agent with an edit applied, and answers with the reply. Neither the
// edit nor the reply is stored.
func (d *agentAPI) apiTry(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	var in tryBody
	if err := request.DecodeBody(w, r, &in); err != nil {
		return err
	}
	draft, err := in.Draft()
	if err != nil {
		return err
	}
	t, err := d.hub.Try(r.Context(), actor, request.PathName(r), draft, in.Text)
	if err != nil {
		return tryField(err)
	}
	respond.JSON(w, http.StatusOK, map[string]any{"state": t.State, "text": t.Text, "reason": t.Reason,
		"took_ms": t.Took.Milliseconds()})
	return nil
}

// tryField renames the field in an error about the question, so that it names the field of the request
// body.
func tryField(err error) error {
	f := fault.As(err)
	text, ok := f.Fields["try"]
	if !ok || len(f.Fields) != 1 {
		return err
	}
	return &fault.Error{Kind: f.Kind, Safe: "text: " + text, Fields: map[string]string{"text": text}, Err: err}
}
