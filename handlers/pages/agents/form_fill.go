package agents

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"agentsite/handlers/api"
	"agentsite/handlers/pages"
	"agentsite/handlers/request"
	"agentsite/internal/a2a"
	"agentsite/internal/agentkind"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/offer"
	"agentsite/internal/weborigin"
	"agentsite/templates"
)

// formOf returns the form filled with an existing agent. Stored credentials are left out.
func formOf(a hub.Agent) templates.AgentFormView {
	description, notes, _ := strings.Cut(a.Description, notesHeading)
	v := templates.AgentFormView{Ref: a.Name, Base: strconv.Itoa(a.Version), Draft: a.Status.State == hub.StatusDraft,
		Kind: string(a.Kind), Name: a.Name, Title: a.Title,
		Description: description, Notes: notes, Endpoint: a.Endpoint, Visibility: string(a.Visibility),
		OwnModel:  a.Endpoint != "",
		Languages: strings.Join(a.Languages, ", "), InputModes: strings.Join(a.InputModes, ", "),
		OutputModes: strings.Join(a.OutputModes, ", "),
		Publisher:   a.Publisher, Icon: a.Icon, Callers: a.Limits.Callers, Listed: strings.Join(a.Limits.Listed, ", "),
		PerMinute: unlessZero(a.Limits.PerMinute), PerDay: unlessZero(a.Limits.PerDay),
		MaxBytes: unlessZero(a.Limits.MaxBytes)}
	secret := agentkind.Of(a.Kind).Secret
	v.HasKey, v.HasToken = a.HasSecret && secret == "key", a.HasSecret && secret == "token"
	switch a.Kind {
	case hub.OpenAI:
		var c hub.OpenAIConfig
		if json.Unmarshal(a.Config, &c) == nil {
			v.Model, v.Instructions = c.Model, c.Instructions
		}
	case hub.A2A:
		var c hub.A2AConfig
		if json.Unmarshal(a.Config, &c) == nil {
			v.AuthHeader, v.PortalTools = c.AuthHeader, portalTools(c.Tools)
		}
	case hub.Link:
		var c hub.LinkConfig
		if json.Unmarshal(a.Config, &c) == nil {
			v.PortalTools = portalTools(c.Tools)
		}
	case hub.MCP:
		var c hub.MCPConfig
		if json.Unmarshal(a.Config, &c) == nil {
			v.AuthHeader, v.Server = c.AuthHeader, c.Server
			for _, t := range c.Tools {
				v.Tools = append(v.Tools, templates.ToolRow{Name: t.Name, Title: t.Title, Description: t.Description,
					ReadOnly: t.ReadOnly})
			}
		}
	case hub.Prompt:
		fillPrompt(&v, a)
	case hub.Wasm:
		var c hub.WasmConfig
		if json.Unmarshal(a.Config, &c) == nil {
			v.Module, v.Hosts, v.ProgramModel = c.Module, strings.Join(c.Hosts, ", "), c.Model
			v.ProgramTools = programTools(c.Tools)
		}
	}
	for _, s := range a.Skills {
		v.Skills = append(v.Skills, templates.SkillRow{ID: s.ID, Name: s.Name, Description: s.Description,
			Tags: strings.Join(s.Tags, ", "), Examples: strings.Join(s.Examples, "\n")})
	}
	return v
}

func fillPrompt(v *templates.AgentFormView, a hub.Agent) {
	var c hub.PromptConfig
	if json.Unmarshal(a.Config, &c) != nil {
		return
	}
	if a.Endpoint == "" {
		v.Chosen, c.Model = c.Model, ""
	}
	v.Model, v.Instructions, v.Unasked, v.OtherTools, v.MaxTokens = c.Model, c.Instructions, c.Unasked,
		strings.Join(c.Tools, ", "), unlessZero(c.MaxTokens)
	if c.Output != nil {
		v.Output = string(*c.Output)
	}
	if c.Temperature != nil {
		v.Temperature = strconv.FormatFloat(*c.Temperature, 'g', 4, 64)
	}
	for _, e := range c.Examples {
		v.Exchanges = append(v.Exchanges, templates.ExchangeRow{User: e.User, Agent: e.Agent})
	}
}

func unlessZero(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// foundForm returns the form filled with a description that was found at an address or in a card.
func foundForm(in hub.Described) templates.AgentFormView {
	v := formOf(hub.Agent{Name: in.Name, Title: in.Title, Description: in.Description, Kind: in.Kind,
		Endpoint: in.Endpoint, Config: in.Config,
		Skills: in.Skills, InputModes: in.InputModes, OutputModes: in.OutputModes, Visibility: hub.Public})
	v.Ref, v.Base, v.Models = "", "", in.Models
	return v
}

// fetchAgent shows the form filled with the description that it fetches from an address.
func (d *Form) fetchAgent(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	in, err := request.Form(w, r)
	if err != nil {
		return err
	}
	address := strings.TrimSpace(in.Get("url"))
	found, err := d.hub.Read(r.Context(), actor, "", hub.Target{Endpoint: address})
	if err != nil {
		messages, code, ok := pages.FieldErrors(w, err)
		if !ok {
			return err
		}
		v := templates.AgentFormView{URL: address, Endpoint: weborigin.CompleteAddress(address),
			URLError: messages["endpoint"]}
		if v.URLError == "" {
			v.URLError = messages[""]
		}
		if other, ok := errors.AsType[*offer.ElsewhereError](err); ok {
			v.URLError = "No agent answers at " + other.Address + "."
			for _, f := range other.Found {
				v.Offers = append(v.Offers, templates.AgentOffer{Title: f.Title, Kind: agentkind.Of(f.Kind).Choice,
					Address: f.Address})
			}
		}
		return d.showAgentForm(w, r, actor, code, v)
	}
	v := foundForm(found.TellApart(&d.hub.Names))
	v.URL = address
	name := found.Title
	if name == "" {
		name = found.Name
	}
	v.Fetched = "Found “" + name + "” at " + found.Endpoint + ". Check what it says, then register it."
	d.freshName(r, actor, &v)
	return d.showAgentForm(w, r, actor, http.StatusOK, v)
}

// listModels shows the form again with the models that the server at its address offers to the credential of the form.
// The credential is sent there once; it is not stored and not shown again.
func (d *Form) listModels(w http.ResponseWriter, r *http.Request, actor ident.Actor, s sheet) error {
	found, err := d.hub.Read(r.Context(), actor, s.name,
		hub.Target{Kind: hub.OpenAI, Endpoint: s.view.Endpoint, Secret: value(s.draft.Secret)})
	s.view.KeyAgain = value(s.draft.Secret) != ""
	code := http.StatusOK
	if err != nil {
		var ok bool
		if s.view.Errors, code, ok = pages.FieldErrors(w, err); !ok {
			return err
		}
		if text := s.view.Errors[""]; text != "" {
			field := "endpoint"
			if fault.Is(err, fault.Unauthenticated) {
				field = "key"
			}
			s.view.Errors = templates.FieldErrors{field: text}
		}
		return d.showAgentForm(w, r, actor, code, s.view)
	}
	s.view.Models, s.view.NoModels = found.Models, len(found.Models) == 0
	if !slices.Contains(found.Models, s.view.Model) {
		s.view.Model = ""
	}
	return d.showAgentForm(w, r, actor, code, s.view)
}

// freshName replaces a proposed name that the agent cannot have by a free one.
func (d *Form) freshName(r *http.Request, actor ident.Actor, v *templates.AgentFormView) {
	if v.Name == "" {
		return
	}
	if free, err := d.hub.NameFree(r.Context(), actor, v.Name); err == nil && !free {
		if list := d.freeNames(r.Context(), actor, v.Name); len(list) > 0 {
			v.Name = list[0]
		}
	}
}

// maxCardFile bounds an uploaded or pasted card in bytes.
const maxCardFile = 256 << 10

// cardAgent shows the form filled from an uploaded or pasted card: an A2A agent card, or a registration
// in the API's form.
func (d *Form) cardAgent(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	if !actor.IsPerson() {
		return fault.New(fault.Unauthenticated, "Log in to register an agent.")
	}
	text, pasted, err := cardText(w, r)
	v := templates.AgentFormView{}
	if err == nil {
		v, err = fromCard(r, text)
	}
	if err != nil {
		messages, code, ok := pages.FieldErrors(w, err)
		if !ok {
			return err
		}
		v = templates.AgentFormView{Card: pasted, CardError: messages["endpoint"]}
		if v.CardError == "" {
			v.CardError = messages[""]
		}
		return d.showAgentForm(w, r, actor, code, v)
	}
	d.freshName(r, actor, &v)
	return d.showAgentForm(w, r, actor, http.StatusOK, v)
}

// cardText returns the content of the uploaded file, otherwise the pasted text. pasted is the text to
// show again in the form.
func cardText(w http.ResponseWriter, r *http.Request) (text []byte, pasted string, err error) {
	in, _, err := agentForm(w, r, 0)
	if err != nil {
		return nil, "", err
	}
	pasted = strings.TrimSpace(in.Get("card"))
	text = []byte(pasted)
	if r.MultipartForm != nil && len(r.MultipartForm.File["card_file"]) > 0 &&
		r.MultipartForm.File["card_file"][0].Size > 0 {
		f, err := r.MultipartForm.File["card_file"][0].Open()
		if err != nil {
			return nil, pasted, err
		}
		defer f.Close()
		if text, err = io.ReadAll(io.LimitReader(f, maxCardFile+1)); err != nil {
			return nil, pasted, err
		}
	}
	switch {
	case len(text) == 0:
		return nil, pasted, fault.New(fault.Invalid, "Choose a file or paste its text.")
	case len(text) > maxCardFile:
		return nil, "", fault.New(fault.Invalid, "A card may have at most 256 KiB.")
	case !json.Valid(text):
		return nil, pasted, fault.New(fault.Invalid, "This is not JSON. A card begins with { and ends with }.")
	}
	return text, pasted, nil
}

// fromCard returns the form filled from a card in the API's form or in A2A's.
func fromCard(r *http.Request, text []byte) (templates.AgentFormView, error) {
	if address := cardAddress(text); address != "" {
		_, described, err := a2a.ReadCard(r.Context(), paper(text), address)
		if err != nil {
			return templates.AgentFormView{}, err
		}
		v := foundForm(described)
		v.Fetched = "The card describes “" + described.Title + "”. Check what it says below, then register it."
		return v, nil
	}
	var in api.DraftJSON
	if err := json.Unmarshal(text, &in); err != nil {
		return templates.AgentFormView{}, fault.Wrap(fault.Invalid, err, "This is no registration: %.200s.",
			strings.TrimPrefix(err.Error(), "json: "))
	}
	if in.Name == nil && in.Description == nil && in.Endpoint == nil {
		return templates.AgentFormView{}, fault.New(fault.Invalid,
			"This is neither an A2A agent card nor a registration: it has no name, no description and no address.")
	}
	draft, err := in.Draft()
	if err != nil {
		return templates.AgentFormView{}, err
	}
	v := draftForm(draft)
	v.Fetched = "The file describes “" + v.Name + "”. Check what it says below, then register it."
	if draft.Secret != nil && *draft.Secret != "" {
		v.Fetched += " Its credential was not taken over: type it again."
	}
	return v, nil
}

func draftForm(in hub.Draft) templates.AgentFormView {
	a := hub.Agent{Name: value(in.Name), Title: value(in.Title), Description: value(in.Description),
		Kind: value(in.Kind), Endpoint: value(in.Endpoint),
		Visibility: value(in.Visibility), Publisher: value(in.Publisher), Languages: value(in.Languages),
		InputModes:  value(in.InputModes),
		OutputModes: value(in.OutputModes), Limits: value(in.Limits), Config: encoded(in.Config)}
	skills := value(in.Skills)
	a.Skills = skills[:min(len(skills), maxRows)]
	v := formOf(a)
	v.Ref, v.Base = "", ""
	return v
}

// value returns *p, or the zero value if p is nil.
func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// cardAddress returns the well-known address on the host of the first URL in an A2A card, "" if text is
// no A2A card.
func cardAddress(text []byte) string {
	var c struct {
		URL        string `json:"url"`
		Interfaces []struct {
			URL string `json:"url"`
		} `json:"supportedInterfaces"`
	}
	if json.Unmarshal(text, &c) != nil {
		return ""
	}
	for _, i := range c.Interfaces {
		c.URL = i.URL
		break
	}
	u, err := url.Parse(c.URL)
	if err != nil || u.Host == "" {
		return ""
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: "/.well-known/agent-card.json"}).String()
}

// paper is an HTTP transport that answers every request with one card, so that an uploaded card is parsed
// like a fetched one.
type paper []byte

// RoundTrip implements http.RoundTripper.
func (p paper) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}},
		Body:   io.NopCloser(bytes.NewReader(p)), ContentLength: int64(len(p)), Request: r}, nil
}

// reread fetches the tools of an MCP server again and stores them and their skills in the sheet.
func (d *Form) reread(r *http.Request, actor ident.Actor, a hub.Agent, s *sheet) error {
	if *s.draft.Kind != hub.MCP {
		return fault.New(fault.Invalid, "Only an MCP server has tools to be read.")
	}
	found, err := d.hub.Reread(r.Context(), actor, a.Name, s.draft)
	if err != nil {
		return err
	}
	if found.Kind != hub.MCP {
		text := "there is no MCP server there any more"
		return fault.Field("endpoint", text)
	}
	var before, now hub.MCPConfig
	config := map[string]json.RawMessage{}
	if json.Unmarshal(found.Config, &config) != nil || json.Unmarshal(found.Config, &now) != nil {
		return fault.New(fault.Unavailable, "What the server says of its tools could not be read.")
	}
	_ = json.Unmarshal(a.Config, &before) // the stored config is valid, because this portal wrote it
	for _, key := range []string{"version", "server", "instructions", "tools"} {
		if s.draft.Config[key] = config[key]; config[key] == nil {
			s.draft.Config[key] = encoded(nil)
		}
	}
	skills := mergeSkills(*s.draft.Skills, found.Skills, before.Tools)
	s.draft.Skills = &skills
	if s.draft.Note == "" {
		s.draft.Note = fmt.Sprintf("Read %d tools from the server", len(now.Tools))
	}
	return nil
}

// mergeSkills returns the typed skills without those of removed tools and with skills for new tools. The
// owner's texts about remaining tools are kept. before are the tools before the change, found the skills
// after it.
func mergeSkills(typed, found []hub.Skill, before []hub.Tool) []hub.Skill {
	out := slices.DeleteFunc(slices.Clone(typed), func(s hub.Skill) bool {
		was := slices.ContainsFunc(before, func(t hub.Tool) bool { return t.Name == s.ID })
		return was && !slices.ContainsFunc(found, func(f hub.Skill) bool { return f.ID == s.ID })
	})
	for _, f := range found {
		if !slices.ContainsFunc(out, func(s hub.Skill) bool { return s.ID == f.ID }) {
			out = append(out, f)
		}
	}
	return out
}
