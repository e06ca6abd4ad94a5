package api

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"

	"agentsite/handlers/address"
	"agentsite/handlers/request"
	"agentsite/handlers/respond"
	"agentsite/handlers/search"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/limit"
)

// agentAPI has the API's routes about agents and searches. Its handlers only decode and encode; the
// services check permissions.
type agentAPI struct {
	portal       address.Portal
	hub          *hub.Service
	searches     *search.Searches
	publications Publications
	packages     Packages
	// limits requests for records with a proof per caller, because a proof costs 10 ms or more of CPU
	// time
	proofs *limit.Keyed
}

// agentJSON is an agent in the API's form. Endpoint, config, has_secret, embed_origins and network are
// set only for actors that may edit the agent.
type agentJSON struct {
	Handle       string           `json:"handle"`
	Name         string           `json:"name"`
	Portal       string           `json:"portal"`
	Title        string           `json:"title"`
	Description  string           `json:"description"`
	Kind         hub.Kind         `json:"kind"`
	Skills       []hub.Skill      `json:"skills"`
	Visibility   hub.Visibility   `json:"visibility"`
	Owner        string           `json:"owner"`
	Version      int              `json:"version"`
	Status       statusJSON       `json:"status"`
	Liveness     livenessJSON     `json:"liveness"`
	Verified     bool             `json:"verified"`
	Proof        proofJSON        `json:"proof"`
	Publisher    string           `json:"publisher,omitempty"`
	Languages    []string         `json:"languages"`
	InputModes   []string         `json:"input_modes"`
	OutputModes  []string         `json:"output_modes"`
	Icon         string           `json:"icon,omitempty"`
	Limits       hub.Limits       `json:"limits"`
	Note         string           `json:"note,omitempty"`
	Endpoint     string           `json:"endpoint,omitempty"`
	Config       json.RawMessage  `json:"config,omitempty"`
	HasSecret    bool             `json:"has_secret,omitempty"`
	EmbedOrigins []string         `json:"embed_origins,omitempty"`
	Network      *publicationJSON `json:"network,omitempty"`
	CreatedAt    string           `json:"created_at"`
	UpdatedAt    string           `json:"updated_at"`
	// Source names the portal that lists the agent; nil in search results, which have the source beside
	// the agent.
	Source *sourceJSON `json:"source,omitempty"`
}

type statusJSON struct {
	State   string `json:"state"`
	Message string `json:"message"`
	// Held is true if the operator withdrew the agent; its owner cannot publish it then.
	Held bool `json:"held,omitempty"`
}

type proofJSON struct {
	State  string `json:"state"`
	Method string `json:"method,omitempty"`
	Origin string `json:"origin,omitempty"`
	At     string `json:"at,omitempty"`
}

type livenessJSON struct {
	State     hub.Live `json:"state"`
	CheckedAt string   `json:"checked_at,omitempty"`
	LatencyMS int64    `json:"latency_ms"`
	Reason    string   `json:"reason"`
	// Voices are the liveness reports about the agent, the most trusted portals first. They are set only
	// in the answer for one agent, not in lists.
	Voices []voiceJSON `json:"voices,omitempty"`
}

func (d *agentAPI) agentJSON(actor ident.Actor, a hub.Agent) agentJSON {
	j := agentJSON{
		Handle: a.Handle(), Name: a.Name, Portal: a.Portal, Title: a.Title, Description: a.Description, Kind: a.Kind,
		Skills: a.Skills, Visibility: a.Visibility, Owner: a.OwnerName, Version: a.Version,
		Status: statusJSON{a.Status.State, a.Status.Message, a.Status.Held},
		Liveness: livenessJSON{State: a.Liveness.State, CheckedAt: respond.FormatTime(a.Liveness.CheckedAt),
			LatencyMS: a.Liveness.Latency.Milliseconds(), Reason: a.Liveness.Reason},
		Verified: a.Signed(), CreatedAt: respond.FormatTime(a.CreatedAt), UpdatedAt: respond.FormatTime(a.UpdatedAt),
		Proof:     proofJSON{a.Proof.State, a.Proof.Method, a.Proof.Origin, respond.FormatTime(a.Proof.At)},
		Publisher: a.Publisher, Languages: orEmpty(a.Languages), InputModes: orText(a.InputModes),
		OutputModes: orText(a.OutputModes), Limits: a.Limits, Note: a.Note,
	}
	if a.Icon != "" {
		j.Icon = d.portal.URL + address.IconPath(a)
	}
	if a.Limits.Callers == hub.ListedCallers && !a.MayEdit(actor) {
		j.Limits.Listed = nil // the list of callers is private to the owners
	}
	if j.Portal == "" {
		j.Portal = d.portal.Host
	}
	j.Skills = skillsJSON(j.Skills)
	if a.MayEdit(actor) {
		j.Endpoint, j.Config, j.HasSecret, j.EmbedOrigins = a.Endpoint, a.Config, a.HasSecret, a.EmbedOrigins
		j.Network = d.networkOf(a)
	}
	return j
}

// skillsJSON returns the skills with empty lists instead of nil ones, because the API promises arrays and
// not null.
func skillsJSON(list []hub.Skill) []hub.Skill {
	if list == nil {
		return []hub.Skill{}
	}
	if slices.ContainsFunc(list, func(s hub.Skill) bool { return s.Tags == nil }) {
		list = slices.Clone(list) // cloned, because the list belongs to the search index
		for i := range list {
			list[i].Tags = orEmpty(list[i].Tags)
		}
	}
	return list
}

func orEmpty(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

// orText returns the media types of an agent, or text/plain if modes is empty.
func orText(modes []string) []string {
	if len(modes) == 0 {
		return []string{"text/plain"}
	}
	return modes
}

// DraftJSON is the body that creates or changes an agent. A nil pointer leaves the field unchanged.
type DraftJSON struct {
	Name        *string                    `json:"name"`
	Title       *string                    `json:"title"`
	Description *string                    `json:"description"`
	Kind        *hub.Kind                  `json:"kind"`
	Endpoint    *string                    `json:"endpoint"`
	Skills      *[]hub.Skill               `json:"skills"`
	Visibility  *hub.Visibility            `json:"visibility"`
	Config      map[string]json.RawMessage `json:"config"`
	InputModes  *[]string                  `json:"input_modes"`
	OutputModes *[]string                  `json:"output_modes"`
	Languages   *[]string                  `json:"languages"`
	// Icon is a picture, in JSON as base64; an empty one removes the picture.
	Icon         *[]byte     `json:"icon"`
	Publisher    *string     `json:"publisher"`
	Limits       *hub.Limits `json:"limits"`
	EmbedOrigins *[]string   `json:"embed_origins"`
	Note         string      `json:"note"`
	Status       *statusJSON `json:"status"`
	Version      int         `json:"version"`
}

// Draft converts the body to a draft. It moves the credential, "key" (openai) or "token" (a2a), out of
// j.Config, because the configuration is returned to clients; null deletes a stored credential.
func (j DraftJSON) Draft() (hub.Draft, error) {
	out := hub.Draft{Name: j.Name, Title: j.Title, Description: j.Description, Kind: j.Kind, Endpoint: j.Endpoint,
		Skills: j.Skills, Visibility: j.Visibility, Config: j.Config, BaseVersion: j.Version, InputModes: j.InputModes,
		OutputModes: j.OutputModes, Languages: j.Languages, Publisher: j.Publisher, Limits: j.Limits,
		EmbedOrigins: j.EmbedOrigins, Note: j.Note}
	for _, name := range []string{"key", "token"} {
		raw, ok := j.Config[name]
		if !ok {
			continue
		}
		var secret *string
		if err := json.Unmarshal(raw, &secret); err != nil {
			return out, fault.Field("config."+name, "must be text")
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

// draft converts the body to a draft, and stores its picture first if it has one.
func (d *agentAPI) draft(ctx context.Context, actor ident.Actor, in DraftJSON) (hub.Draft, error) {
	out, err := in.Draft()
	if err != nil || in.Icon == nil {
		return out, err
	}
	hash := ""
	if len(*in.Icon) > 0 {
		if hash, err = d.hub.Icons.Put(ctx, actor, bytes.NewReader(*in.Icon)); err != nil {
			return out, err
		}
	}
	out.Icon = &hash
	return out, nil
}

func (d *agentAPI) apiPublish(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	in, err := d.readAgent(w, r, actor)
	if err != nil {
		return err
	}
	draft, err := d.draft(r.Context(), actor, in)
	if err != nil {
		return err
	}
	a, err := d.hub.Publish(r.Context(), actor, draft)
	if err != nil {
		return err
	}
	w.Header().Set("Location", "/api/v1/agents/"+a.Name)
	respond.JSON(w, http.StatusCreated, d.agentJSON(actor, a))
	return nil
}

func (d *agentAPI) apiAgent(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	a, err := d.hub.Anywhere(r.Context(), actor, request.PathName(r))
	if err != nil {
		return err
	}
	out := d.agentJSON(actor, a)
	l, list := d.hub.Voices(a)
	out.Liveness.Voices = voicesJSON(list)
	if a.Elsewhere() {
		if len(list) > 0 {
			out.Liveness.State, out.Liveness.CheckedAt, out.Liveness.Reason = l.State, respond.FormatTime(l.CheckedAt),
				l.Reason
		}
		source := d.source(&a)
		out.Source = &source
	}
	respond.JSON(w, http.StatusOK, out)
	return nil
}

func (d *agentAPI) apiUpdateAgent(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	in, err := d.readAgent(w, r, actor)
	if err != nil {
		return err
	}
	draft, err := d.draft(r.Context(), actor, in)
	if err != nil {
		return err
	}
	a, err := d.hub.Update(r.Context(), actor, request.PathName(r), draft)
	if err != nil {
		return err
	}
	respond.JSON(w, http.StatusOK, d.agentJSON(actor, a))
	return nil
}

func (d *agentAPI) apiDeleteAgent(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	if err := d.hub.Delete(r.Context(), actor, request.PathName(r)); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (d *agentAPI) apiCheckAgent(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	a, err := d.hub.Check(r.Context(), actor, request.PathName(r))
	if err != nil {
		return err
	}
	respond.JSON(w, http.StatusOK, d.agentJSON(actor, a))
	return nil
}

type versionJSON struct {
	Version     int            `json:"version"`
	Title       string         `json:"title"`
	Description string         `json:"description"`
	Skills      []hub.Skill    `json:"skills"`
	Visibility  hub.Visibility `json:"visibility"`
	Kind        hub.Kind       `json:"kind"`
	Status      string         `json:"status"`
	Note        string         `json:"note"`
	Author      string         `json:"author"`
	CreatedAt   string         `json:"created_at"`
}

func (d *agentAPI) apiVersions(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	before, err := request.QueryInt(r, "cursor", 0)
	if err != nil {
		return err
	}
	list, next, err := d.hub.Versions(r.Context(), actor, request.PathName(r), int(before))
	if err != nil {
		return err
	}
	cursor := ""
	if next > 0 {
		cursor = strconv.Itoa(next)
	}
	out := make([]versionJSON, len(list))
	for i, a := range list {
		out[i] = versionJSON{a.Version, a.Title, a.Description, skillsJSON(a.Skills), a.Visibility, a.Kind,
			a.Status.State, a.Note, a.Author, respond.FormatTime(a.UpdatedAt)}
	}
	respond.JSON(w, http.StatusOK, map[string]any{"versions": out, "next_cursor": cursor})
	return nil
}

func (d *agentAPI) apiSearch(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	q, err := d.searches.Query(r)
	if err != nil {
		return err
	}
	q.Wide = true
	w.Header().Set("Vary", "Accept")
	if request.WantsEvents(r) {
		return d.apiSearchEach(w, r, actor, q)
	}
	page, err := d.hub.Search(r.Context(), actor, q)
	if err != nil {
		return err
	}
	return d.writeSearch(w, &page)
}

func (d *agentAPI) apiAgents(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	if r.URL.Query().Get("owner") == "me" {
		list, next, err := d.hub.Mine(r.Context(), actor, r.URL.Query().Get("cursor"))
		if err != nil {
			return err
		}
		out := make([]agentJSON, len(list))
		for i, a := range list {
			out[i] = d.agentJSON(actor, a)
		}
		respond.JSON(w, http.StatusOK, map[string]any{"agents": out, "next_cursor": next})
		return nil
	}
	q, err := d.searches.Query(r)
	if err != nil {
		return err
	}
	page, err := d.hub.Search(r.Context(), actor, q)
	if err != nil {
		return err
	}
	out := make([]agentJSON, len(page.Results))
	for i, res := range page.Results {
		out[i] = d.agentJSON(ident.Actor{}, res.Agent)
	}
	respond.JSON(w, http.StatusOK, map[string]any{"agents": out, "next_cursor": page.NextCursor})
	return nil
}
