package agents

import (
	"encoding/base64"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/go-chi/chi/v5"

	"agentsite/handlers/pages"
	"agentsite/handlers/request"
	"agentsite/handlers/respond"
	"agentsite/internal/agentkind"
	"agentsite/internal/fault"
	"agentsite/internal/grant"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/models"
	"agentsite/templates"
)

// newAgent shows the empty form to an actor that may register agents. ?kind= preselects the kind.
func (d *Form) newAgent(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	if !actor.IsPerson() {
		return fault.New(fault.Unauthenticated, "Log in to register an agent.")
	}
	v := templates.AgentFormView{}
	if k := hub.Kind(r.URL.Query().Get("kind")); slices.Contains(d.hub.Kinds(), k) {
		v.Kind = string(k)
	}
	return d.showAgentForm(w, r, actor, http.StatusOK, v)
}

// showAgentForm renders the form with the values in v. It adds the choices that are the same for every
// agent.
func (d *Form) showAgentForm(w http.ResponseWriter, r *http.Request, actor ident.Actor, code int,
	v templates.AgentFormView) error {
	for _, k := range d.hub.Kinds() {
		t := agentkind.Of(k)
		v.Kinds = append(v.Kinds, templates.KindOption{Value: string(k), Label: t.Choice, When: t.When,
			Example: t.Example})
	}
	if len(v.Skills) == 0 {
		v.Skills = []templates.SkillRow{{}}
	}
	if len(v.Exchanges) == 0 {
		v.Exchanges = []templates.ExchangeRow{{}}
	}
	if err := d.offerModels(r, actor, &v); err != nil {
		return err
	}
	if v.Icon != "" {
		v.IconImage = d.iconImage(r, v.Icon)
	}
	for i, t := range v.Tries {
		v.Tries[i].HTML = d.markup.Message(t.Answer)
	}
	if actor.IsPerson() {
		if err := d.offer(r, actor, &v); err != nil {
			return err
		}
	}
	if v.ProgramTools == nil {
		v.ProgramTools = programTools(nil)
	}
	if err := d.hosting.MayUpload(r.Context(), actor); err != nil && actor.IsPerson() {
		v.MayNotHost = fault.As(err).Safe
	}
	title := "Register an agent"
	if v.Ref != "" {
		title = "Edit " + v.Ref
	}
	return d.site.Render(w, r, code, templates.AgentForm(d.site.Frame(r, actor, title), v))
}

// offerTools adds the MCP agents among mine to the choices of the form, and returns the chosen names
// that are not among them.
func (d *Form) offerTools(v *templates.AgentFormView, mine []hub.Agent, chosen []string) []string {
	for _, a := range mine {
		if a.Kind != hub.MCP || len(v.ToolAgents) >= maxRows {
			continue
		}
		i := slices.Index(chosen, a.Name)
		if i >= 0 {
			chosen = slices.Delete(chosen, i, i+1)
		}
		v.ToolAgents = append(v.ToolAgents,
			templates.Option{Value: a.Name, Label: a.Title, Hint: d.markup.Line(a.Description), Selected: i >= 0})
	}
	return chosen
}

const rememberHint = "It may keep facts about people who allow it. This portal shows them to no other account; " +
	"a program of yours gets those that it recalls."

const libraryHint = "It may read and write files in the library of people, where they allow it. Each write can be undone."

// portalTools returns the choices of the portal's tools, of which the named ones are selected.
func portalTools(chosen []string) []templates.Option {
	list := []templates.Option{
		{Value: grant.Find, Label: "Find agents", Hint: "It may search for agents, here and on other portals."},
		{Value: grant.Ask, Label: "Ask other agents",
			Hint: "It may give them work, once the person it talks to allows it."},
		{Value: grant.Memory, Label: "Remember people", Hint: rememberHint},
		{Value: grant.Library, Label: "Use people's files", Hint: libraryHint},
	}
	for i := range list {
		list[i].Selected = slices.Contains(chosen, list[i].Value)
	}
	return list
}

// offerPortalTools adds them to the choices, and returns the chosen names without them.
func offerPortalTools(v *templates.AgentFormView, chosen []string) []string {
	for _, o := range portalTools(chosen) {
		chosen = slices.DeleteFunc(chosen, func(name string) bool { return name == o.Value })
		v.ToolAgents = append(v.ToolAgents, o)
	}
	return chosen
}

// offer fills in the choices of the form that depend on the actor: the actor's MCP agents, whose tools
// the new agent may use, and the actor's verified domains.
func (d *Form) offer(r *http.Request, actor ident.Actor, v *templates.AgentFormView) error {
	chosen := request.SplitValues([]string{v.OtherTools})
	chosen = offerPortalTools(v, chosen)
	if v.PortalTools == nil {
		v.PortalTools = portalTools(nil)
	}
	if slices.Contains(d.hub.Kinds(), hub.Prompt) && slices.Contains(d.hub.Kinds(), hub.MCP) {
		for next, first := "", true; first || next != ""; first = false {
			var mine []hub.Agent
			var err error
			if mine, next, err = d.hub.Mine(r.Context(), actor, next); err != nil {
				return err
			}
			chosen = d.offerTools(v, mine, chosen)
		}
	}
	v.OtherTools = strings.Join(chosen, ", ")
	domains, err := d.hub.Proofs.Domains(r.Context(), actor)
	if err != nil {
		return err
	}
	if len(domains) > 0 || v.Publisher != "" {
		v.Domains = []templates.Option{{Value: "", Label: "Your name on this portal"}}
	}
	for _, dom := range domains {
		v.Domains = append(v.Domains, templates.Option{Value: dom.Domain, Label: dom.Domain,
			Selected: dom.Domain == v.Publisher})
	}
	if v.Publisher != "" && !slices.ContainsFunc(domains,
		func(dom hub.Domain) bool { return dom.Domain == v.Publisher }) {
		v.Domains = append(v.Domains, templates.Option{Value: v.Publisher, Label: v.Publisher, Selected: true})
	}
	return nil
}

// iconImage returns a stored picture as a data URL, because a picture of an unpublished agent has no
// route; "" if it is missing.
func (d *Form) iconImage(r *http.Request, hash string) string {
	b, err := d.hub.Icons.Get(r.Context(), hash)
	if err != nil {
		return ""
	}
	return "data:image/png;base64," + base64.StdEncoding.EncodeToString(b)
}

// sheet is a submitted agent form: the values as typed, for showing them again, and the draft made of
// them.
type sheet struct {
	view  templates.AgentFormView
	draft hub.Draft
	rows  []int // row of the form for each skill of the draft, because empty rows are skipped
	// bad holds the errors of values that could not be converted for the draft, by field.
	bad templates.FieldErrors
	// name is the name of the edited agent, "" for a new one.
	name string
	// pressed names the button: save, draft, publish, preview, more, models, reread.
	pressed string
}

// readSheet parses the submitted form. a is the agent to be edited, nil for a new one.
func (d *Form) readSheet(w http.ResponseWriter, r *http.Request, actor ident.Actor, a *hub.Agent) (sheet, error) {
	in, file, err := agentForm(w, r, d.programRoom(r, actor))
	if err != nil {
		return sheet{}, err
	}
	s := sheet{view: typed(in), bad: templates.FieldErrors{}}
	if err := d.storeProgram(w, r, actor, &s); err != nil {
		return s, err
	}
	if a != nil {
		now := formOf(*a)
		s.name, s.view.Ref, s.view.Name, s.view.HasKey, s.view.HasToken = a.Name, a.Name, a.Name, now.HasKey,
			now.HasToken
		s.view.Draft, s.view.Server, s.view.Tools = now.Draft, now.Server, now.Tools
	}
	for _, button := range []string{"more", "models", "preview", "reread", "publish", "draft", "save"} {
		if in.Has(button) {
			s.pressed = button
			break
		}
	}
	if file != nil {
		hash, err := d.hub.Icons.Put(r.Context(), actor, file)
		if err != nil {
			messages, _, ok := pages.FieldErrors(w, err)
			if !ok {
				return s, err
			}
			s.bad["icon"] = messages["icon"]
			if s.bad["icon"] == "" {
				s.bad["icon"] = messages[""]
			}
		} else {
			s.view.Icon = hash
		}
	}
	s.draft, s.rows = draftOf(s.view, in, s.bad)
	switch {
	case s.name != "":
		s.draft.Name = nil
		s.draft.BaseVersion, _ = strconv.Atoi(s.view.Base)
		if s.pressed == "publish" {
			s.draft.Status = &hub.Status{State: hub.Active}
		}
	case s.pressed == "draft":
		s.draft.Status = &hub.Status{State: hub.StatusDraft}
	}
	switch in.Get("more") {
	case "", "kind":
	case "example":
		s.view.Exchanges = append(s.view.Exchanges, templates.ExchangeRow{})
	default:
		s.view.Skills = append(s.view.Skills, templates.SkillRow{})
	}
	return s, nil
}

// flawed returns all errors of a sheet at once if some values could not be converted, including those
// that the service finds; otherwise nil.
func (d *Form) flawed(r *http.Request, actor ident.Actor, s sheet) error {
	if len(s.bad) == 0 {
		return nil
	}
	f := &fault.Error{Kind: fault.Invalid, Safe: "Some fields need another look.", Fields: map[string]string{}}
	if _, err := d.hub.Preview(r.Context(), actor, s.name, unasked(s.draft)); err != nil {
		for name, text := range fault.As(err).Fields {
			f.Fields[name] = text
		}
	}
	for name, text := range s.bad {
		f.Fields[name] = text
	}
	return f
}

func (d *Form) registerAgent(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	s, err := d.readSheet(w, r, actor, nil)
	if err != nil {
		return err
	}
	switch s.pressed {
	case "more":
		return d.showAgentForm(w, r, actor, http.StatusOK, s.view)
	case "models":
		return d.listModels(w, r, actor, s)
	case "preview":
		return d.previewAgent(w, r, actor, s)
	}
	if err := d.flawed(r, actor, s); err != nil {
		return d.agentFormAgain(w, r, actor, s, err)
	}
	a, err := d.hub.Publish(r.Context(), actor, s.draft)
	if err != nil {
		return d.agentFormAgain(w, r, actor, s, err)
	}
	if a.Kind == hub.Link && a.Status.State == hub.Active && a.OwnedBy(actor) { // its program may be connected now
		return d.commands.MakeCommand(w, r, actor, a)
	}
	return respond.SeeOther(w, r, "/agents/"+a.Name)
}

// agentFormAgain shows the form again with the submitted values and their errors. Errors that do not
// concern the form are returned.
func (d *Form) agentFormAgain(w http.ResponseWriter, r *http.Request, actor ident.Actor, s sheet, err error) error {
	messages, code, ok := pages.FieldErrors(w, err)
	if !ok {
		return err
	}
	s.view.Errors = formFields(messages, s.view.Kind, s.rows)
	if s.name == "" && s.view.Errors["name"] != "" {
		s.view.FreeNames = d.freeNames(r.Context(), actor, s.view.Name)
	}
	return d.showAgentForm(w, r, actor, code, s.view)
}

// editable returns the agent in the path if the actor may edit it, otherwise an error.
func (d *Form) editable(r *http.Request, actor ident.Actor) (hub.Agent, error) {
	a, err := d.hub.Get(r.Context(), actor, request.PathName(r))
	if err != nil {
		return a, err
	}
	if !actor.IsPerson() {
		return a, fault.New(fault.Unauthenticated, "Log in to change this agent.")
	}
	if !a.MayEdit(actor) {
		return a, fault.New(fault.Forbidden, "Only the owner of %s may do that.", a.Name)
	}
	return a, nil
}

func (d *Form) editAgent(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	a, err := d.editable(r, actor)
	if err != nil {
		return err
	}
	return d.showAgentForm(w, r, actor, http.StatusOK, formOf(a))
}

func (d *Form) saveAgent(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	a, err := d.editable(r, actor)
	if err != nil {
		return err
	}
	s, err := d.readSheet(w, r, actor, &a)
	if err != nil {
		return err
	}
	next := "/agents/" + a.Name
	switch s.pressed {
	case "more":
		return d.showAgentForm(w, r, actor, http.StatusOK, s.view)
	case "models":
		return d.listModels(w, r, actor, s)
	case "preview":
		return d.previewAgent(w, r, actor, s)
	case "reread":
		if err := d.reread(r, actor, a, &s); err != nil {
			return d.agentFormAgain(w, r, actor, s, err)
		}
		next += "/edit"
	}
	if err := d.flawed(r, actor, s); err != nil {
		return d.agentFormAgain(w, r, actor, s, err)
	}
	if _, err := d.hub.Update(r.Context(), actor, a.Name, s.draft); err != nil {
		return d.agentFormAgain(w, r, actor, s, err)
	}
	return respond.SeeOther(w, r, next)
}

// declareRoutes declares the routes of registering and editing an agent.
func (d *Form) declareRoutes(r chi.Router) {
	r.Get("/agents/new", d.site.Page(request.Listing(d.newAgent)))
	r.Post("/agents/new", d.site.Page(d.registerAgent))
	r.Post("/agents/new/fetch", d.site.Page(d.fetchAgent))
	r.Post("/agents/new/card", d.site.Page(d.cardAgent))
	r.Post("/agents/new/check", d.site.Page(d.checkForm))
	r.Post("/agents/new/try", d.site.Page(d.tryNew))
	r.Get("/agents/{name}/edit", d.site.Page(request.Listing(d.editAgent)))
	r.Post("/agents/{name}/edit", d.site.Page(d.saveAgent))
	r.Post("/agents/{name}/edit/check", d.site.Page(d.checkEdit))
	r.Post("/agents/{name}/edit/try", d.site.Page(d.tryEdit))
}

// offerModels adds the named models that the actor's agents may use.
func (d *Form) offerModels(r *http.Request, actor ident.Actor, v *templates.AgentFormView) error {
	standard := d.hub.Model()
	if standard != "" {
		v.Named = []templates.Option{{Label: standard, Selected: v.Chosen == ""}}
	}
	var list []models.Model
	if actor.IsPerson() && d.models != nil && actor.May(ident.AccountAll) {
		var err error
		if list, err = d.models.List(r.Context(), actor); err != nil {
			return err
		}
	}
	for _, m := range list {
		if m.IsPortal() && m.Name == models.Default {
			continue
		}
		v.Named = append(v.Named, templates.Option{Value: m.Name, Label: m.Name + " (" + m.Model + ")",
			Selected: v.Chosen == m.Name})
	}
	if len(v.Named) == 0 {
		v.OwnModel = true
	}
	return nil
}
