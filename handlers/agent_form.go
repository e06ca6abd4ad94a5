package handlers

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/templates"
)

// maxRows bounds the rows of skills a form is read with.
const maxRows = 64

// newAgent shows the empty form to whoever may register.
func (d *Door) newAgent(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	if !actor.IsPerson() {
		return fault.New(fault.Unauthenticated, "Log in to register an agent.")
	}
	return d.showAgentForm(w, r, actor, http.StatusOK, templates.AgentFormView{})
}

// showAgentForm renders the form, with what every one has.
func (d *Door) showAgentForm(w http.ResponseWriter, r *http.Request, actor ident.Actor, code int, v templates.AgentFormView) error {
	for _, k := range d.hub.Kinds() {
		t := textOf(k)
		v.Kinds = append(v.Kinds, templates.KindOption{Value: string(k), Label: t.choice, When: t.when, Example: t.example})
	}
	if len(v.Skills) == 0 {
		v.Skills = []templates.SkillRow{{}}
	}
	title := "Register an agent"
	if v.Ref != "" {
		title = "Edit " + v.Ref
	}
	return d.render(w, r, code, templates.AgentForm(d.frame(r, actor, title), v))
}

// typed reads the form as it was filled in, to be shown again.
func typed(in url.Values) templates.AgentFormView {
	v := templates.AgentFormView{Kind: in.Get("kind"), Name: in.Get("name"), Title: in.Get("title"), Description: lines(in.Get("description")),
		Endpoint: strings.TrimSpace(in.Get("endpoint")), Visibility: in.Get("visibility"), Model: strings.TrimSpace(in.Get("model")),
		AuthHeader: strings.TrimSpace(in.Get("auth_header")), Notes: lines(in.Get("notes"))}
	at := func(name string, i int) string {
		if list := in[name]; i < len(list) {
			return lines(list[i])
		}
		return ""
	}
	for i := range min(len(in["skill_name"]), maxRows) {
		v.Skills = append(v.Skills, templates.SkillRow{ID: at("skill_id", i), Name: at("skill_name", i), Description: at("skill_description", i),
			Tags: at("skill_tags", i), Examples: at("skill_examples", i)})
	}
	return v
}

// lines ends lines as we do, not as forms send them.
func lines(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") }

// notesHeading is where the notes begin within a stored description: an agent
// card knows one text only.
const notesHeading = "\n\n## Notes\n\n"

// draftOf is what was typed as the service takes it. rows tells which row of
// the form each skill came from.
func draftOf(v templates.AgentFormView, in url.Values) (draft hub.Draft, rows []int) {
	description, notes := strings.TrimSpace(v.Description), strings.TrimSpace(v.Notes)
	if notes != "" && description != "" {
		description += notesHeading + notes
	}
	kind, visibility := hub.Kind(v.Kind), hub.Visibility(v.Visibility)
	skills := []hub.Skill{}
	for i, row := range v.Skills {
		if strings.TrimSpace(row.Name+row.ID+row.Description) == "" {
			continue
		}
		rows = append(rows, i)
		skills = append(skills, hub.Skill{ID: row.ID, Name: row.Name, Description: row.Description,
			Tags: strings.Split(row.Tags, ","), Examples: strings.Split(row.Examples, "\n")})
	}
	draft = hub.Draft{Name: &v.Name, Title: &v.Title, Description: &description, Kind: &kind, Endpoint: &v.Endpoint, Visibility: &visibility, Skills: &skills,
		Config: map[string]json.RawMessage{}}
	secret := ""
	switch kind {
	case hub.OpenAI:
		draft.Config["model"] = quoted(v.Model)
		secret = in.Get("key")
	case hub.A2A:
		draft.Config["auth_header"] = quoted(v.AuthHeader)
		secret = in.Get("token")
	}
	if secret = strings.TrimSpace(secret); secret != "" {
		draft.Secret = &secret
	}
	return draft, rows
}

func quoted(s string) json.RawMessage {
	b, _ := json.Marshal(s) // a string always encodes
	return b
}

// formFields names the service's fields as the form does.
func formFields(messages templates.FieldErrors, kind string, rows []int) templates.FieldErrors {
	out := templates.FieldErrors{}
	also := func(text string) {
		if out[""] != "" {
			text = out[""] + " " + text
		}
		out[""] = text
	}
	for name, text := range messages {
		switch name {
		case "", "name", "title", "description", "kind", "endpoint", "visibility":
			out[name] = text
		case "config.model":
			out["model"] = text
		case "config.key":
			if kind == string(hub.A2A) {
				out["token"] = text
			} else {
				out["key"] = text
			}
		case "config.auth_header":
			out["auth_header"] = text
		case "skills":
			also("Skills: " + text + ".")
		default:
			if i, field, ok := skillField(name); ok && i < len(rows) {
				out["skill_"+field+"."+strconv.Itoa(rows[i])] = text
			} else {
				also(name + ": " + text + ".")
			}
		}
	}
	return out
}

// skillField reads "skills[2].name".
func skillField(name string) (i int, field string, ok bool) {
	rest, ok := strings.CutPrefix(name, "skills[")
	if !ok {
		return 0, "", false
	}
	num, field, ok := strings.Cut(rest, "].")
	i, err := strconv.Atoi(num)
	return i, field, ok && err == nil && i >= 0
}

func (d *Door) registerAgent(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	in, err := form(w, r)
	if err != nil {
		return err
	}
	v := typed(in)
	if in.Has("more") {
		v.Skills = append(v.Skills, templates.SkillRow{})
		return d.showAgentForm(w, r, actor, http.StatusOK, v)
	}
	draft, rows := draftOf(v, in)
	a, err := d.hub.Publish(r.Context(), actor, draft)
	if err != nil {
		return d.agentFormAgain(w, r, actor, v, rows, err)
	}
	return see(w, r, "/agents/"+a.Name)
}

// agentFormAgain shows the form with what was typed and what is wrong with it.
func (d *Door) agentFormAgain(w http.ResponseWriter, r *http.Request, actor ident.Actor, v templates.AgentFormView, rows []int, err error) error {
	messages, code, ok := d.wrong(w, err)
	if !ok {
		return err
	}
	v.Errors = formFields(messages, v.Kind, rows)
	return d.showAgentForm(w, r, actor, code, v)
}

// fetchAgent fills the form from what an address says of itself.
func (d *Door) fetchAgent(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	in, err := form(w, r)
	if err != nil {
		return err
	}
	v := templates.AgentFormView{URL: strings.TrimSpace(in.Get("url"))}
	found, err := d.hub.Read(r.Context(), actor, v.URL)
	if err != nil {
		messages, code, ok := d.wrong(w, err)
		if !ok {
			return err
		}
		if v.URLError = messages["endpoint"]; v.URLError == "" {
			v.URLError = messages[""]
		}
		// The address may be right for a kind that describes nothing.
		v.Endpoint = v.URL
		if strings.HasSuffix(strings.TrimRight(v.URL, "/"), "/v1") {
			v.Kind = string(hub.OpenAI)
		}
		return d.showAgentForm(w, r, actor, code, v)
	}
	url := v.URL
	v = formOf(hub.Agent{Name: found.Name, Title: found.Title, Description: found.Description, Kind: found.Kind, Endpoint: found.Endpoint,
		Config: found.Config, Skills: found.Skills, Visibility: hub.Public})
	v.URL = url
	name := found.Title
	if name == "" {
		name = found.Name
	}
	v.Fetched = "Found “" + name + "”. Check what it says below, then register it."
	return d.showAgentForm(w, r, actor, http.StatusOK, v)
}

// formOf fills the form with an agent as it is.
func formOf(a hub.Agent) templates.AgentFormView {
	description, notes, _ := strings.Cut(a.Description, notesHeading)
	v := templates.AgentFormView{Kind: string(a.Kind), Name: a.Name, Title: a.Title, Description: description, Notes: notes, Endpoint: a.Endpoint, Visibility: string(a.Visibility)}
	switch a.Kind {
	case hub.OpenAI:
		var c hub.OpenAIConfig
		if json.Unmarshal(a.Config, &c) == nil {
			v.Model = c.Model
		}
		v.HasKey = a.HasSecret
	case hub.A2A:
		var c hub.A2AConfig
		if json.Unmarshal(a.Config, &c) == nil {
			v.AuthHeader = c.AuthHeader
		}
		v.HasToken = a.HasSecret
	}
	for _, s := range a.Skills {
		v.Skills = append(v.Skills, templates.SkillRow{ID: s.ID, Name: s.Name, Description: s.Description,
			Tags: strings.Join(s.Tags, ", "), Examples: strings.Join(s.Examples, "\n")})
	}
	return v
}

// editable is an agent that the actor may change.
func (d *Door) editable(r *http.Request, actor ident.Actor) (hub.Agent, error) {
	a, err := d.hub.Get(r.Context(), actor, pathName(r))
	if err != nil {
		return a, err
	}
	if !actor.IsPerson() {
		return a, fault.New(fault.Unauthenticated, "Log in to change this agent.")
	}
	if !d.hub.MayEdit(actor, a) {
		return a, fault.New(fault.Forbidden, "Only the owner of %s may do that.", a.Name)
	}
	return a, nil
}

func (d *Door) editAgent(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	a, err := d.editable(r, actor)
	if err != nil {
		return err
	}
	v := formOf(a)
	v.Ref = a.Name
	return d.showAgentForm(w, r, actor, http.StatusOK, v)
}

func (d *Door) saveAgent(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	a, err := d.editable(r, actor)
	if err != nil {
		return err
	}
	in, err := form(w, r)
	if err != nil {
		return err
	}
	v := typed(in)
	now := formOf(a)
	v.Ref, v.Name, v.HasKey, v.HasToken = a.Name, a.Name, now.HasKey, now.HasToken
	if in.Has("more") {
		v.Skills = append(v.Skills, templates.SkillRow{})
		return d.showAgentForm(w, r, actor, http.StatusOK, v)
	}
	draft, rows := draftOf(v, in)
	draft.Name = nil
	if _, err := d.hub.Update(r.Context(), actor, a.Name, draft); err != nil {
		return d.agentFormAgain(w, r, actor, v, rows, err)
	}
	return see(w, r, "/agents/"+a.Name)
}
