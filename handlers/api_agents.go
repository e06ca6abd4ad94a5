package handlers

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/go-chi/chi/v5"

	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
)

// agentJSON is the API's shape of an agent. Endpoint, config and has_secret
// are for those who may edit it.
type agentJSON struct {
	Handle      string          `json:"handle"`
	Name        string          `json:"name"`
	Portal      string          `json:"portal"`
	Title       string          `json:"title"`
	Description string          `json:"description"`
	Kind        hub.Kind        `json:"kind"`
	Skills      []hub.Skill     `json:"skills"`
	Visibility  hub.Visibility  `json:"visibility"`
	Owner       string          `json:"owner"`
	Version     int             `json:"version"`
	Status      statusJSON      `json:"status"`
	Liveness    livenessJSON    `json:"liveness"`
	Verified    bool            `json:"verified"`
	Endpoint    string          `json:"endpoint,omitempty"`
	Config      json.RawMessage `json:"config,omitempty"`
	HasSecret   bool            `json:"has_secret,omitempty"`
	CreatedAt   string          `json:"created_at"`
	UpdatedAt   string          `json:"updated_at"`
}

type statusJSON struct {
	State   string `json:"state"`
	Message string `json:"message"`
}

type livenessJSON struct {
	State     hub.Live `json:"state"`
	CheckedAt string   `json:"checked_at,omitempty"`
	LatencyMS int64    `json:"latency_ms"`
	Reason    string   `json:"reason"`
}

func (d *Door) agentJSON(actor ident.Actor, a hub.Agent) agentJSON {
	j := agentJSON{
		Handle: a.Handle(), Name: a.Name, Portal: a.Portal, Title: a.Title, Description: a.Description, Kind: a.Kind, Skills: a.Skills,
		Visibility: a.Visibility, Owner: a.OwnerName, Version: a.Version, Status: statusJSON{a.Status.State, a.Status.Message},
		Liveness: livenessJSON{a.Liveness.State, stamp(a.Liveness.CheckedAt), a.Liveness.Latency.Milliseconds(), a.Liveness.Reason},
		Verified: a.Portal == "", CreatedAt: stamp(a.CreatedAt), UpdatedAt: stamp(a.UpdatedAt),
	}
	if j.Portal == "" {
		j.Portal = d.cfg.Host
	}
	if j.Skills == nil {
		j.Skills = []hub.Skill{}
	}
	for i := range j.Skills {
		if j.Skills[i].Tags == nil {
			j.Skills[i].Tags = []string{}
		}
	}
	if d.hub.MayEdit(actor, a) {
		j.Endpoint, j.Config, j.HasSecret = a.Endpoint, a.Config, a.HasSecret
	}
	return j
}

// draftJSON is what an agent may be made from.
type draftJSON struct {
	Name        *string                    `json:"name"`
	Title       *string                    `json:"title"`
	Description *string                    `json:"description"`
	Kind        *hub.Kind                  `json:"kind"`
	Endpoint    *string                    `json:"endpoint"`
	Skills      *[]hub.Skill               `json:"skills"`
	Visibility  *hub.Visibility            `json:"visibility"`
	Config      map[string]json.RawMessage `json:"config"`
	Status      *statusJSON                `json:"status"`
	Version     int                        `json:"version"`
}

// draft takes the credential out of the settings: "key" (openai) or "token"
// (a2a) is sealed, never stored or shown among them.
func (j draftJSON) draft() (hub.Draft, error) {
	out := hub.Draft{Name: j.Name, Title: j.Title, Description: j.Description, Kind: j.Kind, Endpoint: j.Endpoint, Skills: j.Skills,
		Visibility: j.Visibility, Config: j.Config, BaseVersion: j.Version}
	for _, name := range []string{"key", "token"} {
		raw, ok := j.Config[name]
		if !ok {
			continue
		}
		var secret *string
		if err := json.Unmarshal(raw, &secret); err != nil {
			return out, &fault.Error{Kind: fault.Invalid, Safe: "config." + name + ": must be text", Fields: map[string]string{"config." + name: "must be text"}}
		}
		delete(j.Config, name)
		if secret == nil {
			secret = new(string)
		}
		out.Secret = secret
	}
	if j.Status != nil {
		out.Status = &hub.Status{State: j.Status.State, Message: j.Status.Message}
	}
	return out, nil
}

func (d *Door) apiPublish(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	var in draftJSON
	if err := decodeKnown(w, r, &in); err != nil {
		return err
	}
	draft, err := in.draft()
	if err != nil {
		return err
	}
	a, err := d.hub.Publish(r.Context(), actor, draft)
	if err != nil {
		return err
	}
	w.Header().Set("Location", "/api/v1/agents/"+a.Name)
	writeJSON(w, http.StatusCreated, d.agentJSON(actor, a))
	return nil
}

func (d *Door) apiAgent(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	a, err := d.hub.Get(r.Context(), actor, chi.URLParam(r, "name"))
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, d.agentJSON(actor, a))
	return nil
}

func (d *Door) apiUpdateAgent(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	var in draftJSON
	if err := decodeKnown(w, r, &in); err != nil {
		return err
	}
	draft, err := in.draft()
	if err != nil {
		return err
	}
	a, err := d.hub.Update(r.Context(), actor, chi.URLParam(r, "name"), draft)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, d.agentJSON(actor, a))
	return nil
}

func (d *Door) apiDeleteAgent(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	if err := d.hub.Delete(r.Context(), actor, chi.URLParam(r, "name")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (d *Door) apiCheckAgent(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	a, err := d.hub.Check(r.Context(), actor, chi.URLParam(r, "name"))
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, d.agentJSON(actor, a))
	return nil
}

func (d *Door) apiVersions(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	list, err := d.hub.Versions(r.Context(), actor, chi.URLParam(r, "name"))
	if err != nil {
		return err
	}
	type versionJSON struct {
		Version     int            `json:"version"`
		Title       string         `json:"title"`
		Description string         `json:"description"`
		Skills      []hub.Skill    `json:"skills"`
		Visibility  hub.Visibility `json:"visibility"`
		CreatedAt   string         `json:"created_at"`
	}
	out := make([]versionJSON, len(list))
	for i, a := range list {
		out[i] = versionJSON{a.Version, a.Title, a.Description, a.Skills, a.Visibility, stamp(a.UpdatedAt)}
	}
	writeJSON(w, http.StatusOK, map[string]any{"versions": out, "next_cursor": ""})
	return nil
}

// searchQuery reads the filters of search and browse.
func (d *Door) searchQuery(r *http.Request) (hub.Query, error) {
	v := r.URL.Query()
	limit, err := number(r, "limit", 20)
	if err != nil {
		return hub.Query{}, err
	}
	q := hub.Query{Text: strings.TrimSpace(v.Get("q")), Kinds: values(v["kind"]), Tags: values(v["tag"]), Skills: values(v["skill"]),
		Portals: values(v["portal"]), Live: values(v["live"]), Limit: int(limit), Cursor: v.Get("cursor")}
	for i, p := range q.Portals {
		if strings.EqualFold(p, d.cfg.Host) {
			q.Portals[i] = "local"
		}
	}
	// live=true asks for agents that are alive, live=false for the others.
	if len(q.Live) == 1 {
		switch q.Live[0] {
		case "true", "1", "yes":
			q.Live = []string{string(hub.Alive)}
		case "false", "0", "no":
			q.Live = []string{string(hub.NeedsAuth), string(hub.WrongProtocol), string(hub.Unreachable), string(hub.Unknown)}
		}
	}
	switch s := v.Get("scope"); s {
	case "", "portal", "federation":
	default:
		return q, &fault.Error{Kind: fault.Invalid, Safe: "scope: use portal or federation", Fields: map[string]string{"scope": "use portal or federation"}}
	}
	return q, nil
}

// values splits repeated and comma-separated parameters, leaving out empty
// ones.
func values(in []string) []string {
	var out []string
	for _, s := range in {
		for _, v := range strings.Split(s, ",") {
			if v = strings.TrimSpace(v); v != "" {
				out = append(out, v)
			}
		}
	}
	return out
}

type sourceJSON struct {
	Portal string `json:"portal"`
	URL    string `json:"url"`
}

type resultJSON struct {
	Agent    agentJSON    `json:"agent"`
	Score    float64      `json:"score"`
	Matched  []string     `json:"matched"`
	Liveness livenessJSON `json:"liveness"`
	Verified bool         `json:"verified"`
	Source   sourceJSON   `json:"source"`
}

func (d *Door) apiSearch(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	q, err := d.searchQuery(r)
	if err != nil {
		return err
	}
	page, err := d.search(r, actor, q)
	if err != nil {
		return err
	}
	results := make([]resultJSON, len(page.Results))
	for i, res := range page.Results {
		a := d.agentJSON(ident.Actor{}, res.Agent)
		matched := res.Matched
		if matched == nil {
			matched = []string{}
		}
		results[i] = resultJSON{a, res.Score, matched, a.Liveness, a.Verified, sourceJSON{d.cfg.Host, d.cfg.URL}}
	}
	facets := page.Facets
	if facets == nil {
		facets = map[string][]hub.FacetCount{}
	}
	writeJSON(w, http.StatusOK, map[string]any{
		"results": results, "total": page.Total, "facets": facets, "suggestions": page.Suggestions, "next_cursor": page.NextCursor,
		// One portal answers until portals know each other.
		"portals": map[string]any{"known": 1, "asked": 1, "answered": 1, "silent": []string{}},
	})
	return nil
}

// search asks for agents; an empty answer to signed=false is right: every
// agent of this portal is signed by it.
func (d *Door) search(r *http.Request, actor ident.Actor, q hub.Query) (hub.Page, error) {
	switch r.URL.Query().Get("signed") {
	case "false", "0", "no":
		return hub.Page{}, nil
	}
	return d.hub.Search(r.Context(), actor, q)
}

func (d *Door) apiAgents(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	if r.URL.Query().Get("owner") == "me" {
		list, err := d.hub.Mine(r.Context(), actor)
		if err != nil {
			return err
		}
		out := make([]agentJSON, len(list))
		for i, a := range list {
			out[i] = d.agentJSON(actor, a)
		}
		writeJSON(w, http.StatusOK, map[string]any{"agents": out, "next_cursor": ""})
		return nil
	}
	q, err := d.searchQuery(r)
	if err != nil {
		return err
	}
	page, err := d.search(r, actor, q)
	if err != nil {
		return err
	}
	out := make([]agentJSON, len(page.Results))
	for i, res := range page.Results {
		out[i] = d.agentJSON(ident.Actor{}, res.Agent)
	}
	writeJSON(w, http.StatusOK, map[string]any{"agents": out, "next_cursor": page.NextCursor})
	return nil
}
