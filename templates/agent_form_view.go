package templates

import (
	"slices"
	"strconv"
)

// AgentFormView is the form that registers an agent or, with Ref set, edits one. It is shown again
// with Errors after an invalid entry.
type AgentFormView struct {
	Ref         string // ref of the agent being edited; "" for a new one
	Base        string // version of the agent that the edit began with
	Draft       bool   // the agent being edited is a draft
	URL         string // address that was pasted to start with
	URLError    string
	Offers      []AgentOffer // agents elsewhere on the host of URL
	Fetched     string       // sentence with the result of fetching the address or reading the card
	Card        string       // agent card that was pasted to start with
	CardError   string
	Kinds       []KindOption
	Kind        string
	Name        string
	FreeNames   []string // suggestions when the name is taken
	Title       string
	Description string
	Endpoint    string
	Visibility  string // public, unlisted or private
	Model       string
	Models      []string // models that the server of the endpoint offers, if known
	NoModels    bool     // the server was asked for its models and has none
	HasKey      bool     // a key is stored already
	KeyAgain    bool     // a key was typed, and has to be typed again because it is not shown
	AuthHeader  string
	HasToken    bool // a token is stored already
	Skills      []SkillRow
	Notes       string
	Note        string // note for the version history

	// Settings of a prompt agent.
	OwnModel bool // a model at an address of the owner is used
	// Named are the named models to choose from, the portal's default first. Chosen is one of them.
	Named        []Option
	Chosen       string
	Instructions string
	Exchanges    []ExchangeRow
	ToolAgents   []Option // the owner's agents that may be used as tools
	PortalTools  []Option // find and ask, for an agent that runs elsewhere
	// names of agents of other owners that may be used as tools, separated by commas
	OtherTools             string
	Unasked                bool
	Temperature, MaxTokens string
	Output                 string // JSON Schema of the answers

	// Settings of a hosted program: the hash of its module, and the grants. MayNotHost is the reason why the person
	// may not host programs, "" if they may.
	Module, Hosts, ProgramModel string
	ProgramTools                []Option
	MayNotHost                  string

	// Description of an MCP server, as last read.
	Server string
	Tools  []ToolRow

	Languages, InputModes, OutputModes string // separated by commas
	Publisher                          string
	Domains                            []Option // domains that the owner proved
	Icon                               string   // hash of the stored picture
	IconImage                          string   // new picture as a data: URL

	// Limits: the allowed callers, and bounds per caller.
	Callers, Listed             string
	PerMinute, PerDay, MaxBytes string

	Ask     string // message for trying the agent out
	Tries   []TryRow
	Preview *AgentPreview
	Errors  FieldErrors // by field name; for the first skill row "skill_name.0"
}

// AgentOffer is an agent that was found elsewhere on the host of a pasted address.
type AgentOffer struct{ Title, Kind, Address string }

// KindOption is one choice of the kind of agent.
type KindOption struct {
	Value, Label string // for example "a2a" and "A2A agent"
	When         string // one or two sentences on when to choose it
	Example      string // example of an address of this kind, may be empty
}

// SkillRow is one row of the form's skills, as typed: tags separated by commas, one example per line.
type SkillRow struct {
	ID, Name, Description, Tags, Examples string
}

// ExchangeRow is an example of a question and its answer in the instructions of a prompt agent.
type ExchangeRow struct{ User, Agent string }

// ToolRow is one tool of an MCP server, as the server describes it.
type ToolRow struct {
	Name, Title, Description string
	ReadOnly                 bool
}

// TryRow is one question and answer of trying an agent out before it is published.
type TryRow struct {
	Asked, Answer string
	HTML          SafeHTML // answer as rendered Markdown
	Took          string   // duration of the answer, "1.2 s"
	Reason        string   // why the answer is missing or cut
	Log           string   // lines that a hosted program logged
}

// AgentPreview shows the agent of the form as visitors would see it once it is published.
type AgentPreview struct {
	Card        AgentCard
	IconImage   string
	Tagline     string
	Description SafeHTML
	Skills      []Skill
	KindHelp    string
	TextGoesTo  string
	Visibility  string
}

func (v AgentFormView) isEdit() bool { return v.Ref != "" }

func (v AgentFormView) action() string {
	if v.isEdit() {
		return agentHref(v.Ref) + "/edit"
	}
	return "/agents/new"
}

func (v AgentFormView) title() string {
	if v.isEdit() {
		return "Edit " + firstOf(v.Title, v.Name, v.Ref)
	}
	return "Register an agent"
}

func (v AgentFormView) has(kinds ...string) bool {
	for _, k := range v.Kinds {
		for _, kind := range kinds {
			if k.Value == kind {
				return true
			}
		}
	}
	return false
}

// wrong reports whether one of the named fields has an error, so that its part of the form is
// opened.
func (v AgentFormView) wrong(names ...string) bool { return hasError(v.Errors, names...) }

func (v AgentFormView) summary() []wrong {
	list := summary(v.Errors, "kind", "Kind", "name", "Name", "instructions", "Instructions", "endpoint", "Address",
		"model", "Model", "key", "Key",
		"auth_header", "Header", "token", "Token", "examples", "Examples", "tools", "Tools", "temperature",
		"Temperature", "max_tokens", "Longest answer", "output", "Form of the answers",
		"title", "Title", "description", "Description", "notes", "Notes", "icon", "Picture")
	for i := range v.Skills {
		n := strconv.Itoa(i)
		for _, f := range []string{"skill_id", "skill_name", "skill_description", "skill_tags", "skill_examples"} {
			if m := v.Errors[f+"."+n]; m != "" {
				list = append(list, wrong{ID: f + "." + n, Label: "Skill " + strconv.Itoa(i+1), Message: m})
			}
		}
	}
	rest := FieldErrors{}
	for name, m := range v.Errors {
		if name != "" {
			rest[name] = m
		}
	}
	return append(list, summary(rest, "visibility", "Visibility", "callers", "Callers", "listed", "Accounts",
		"per_minute", "Calls a minute",
		"per_day", "Calls a day", "max_bytes", "Longest message", "languages", "Languages", "input_modes", "Takes",
		"output_modes", "Gives", "publisher", "Publisher",
		"note", "Changes", "status", "Status", "try", "Try it")...)
}

// rowWrong reports whether a field of a skill's row has an error.
func (v AgentFormView) rowWrong(i int) bool {
	n := "." + strconv.Itoa(i)
	return v.wrong("skill_id"+n, "skill_name"+n, "skill_description"+n, "skill_tags"+n, "skill_examples"+n)
}

// isStart reports whether the form still asks what the agent is.
func (v AgentFormView) isStart() bool {
	return !v.isEdit() && v.Kind == "" && len(v.Errors) == 0 && v.Preview == nil && v.Name == ""
}

// kindLabel returns the name of the chosen kind, "" for none.
func (v AgentFormView) kindLabel() string {
	for _, k := range v.Kinds {
		if k.Value == v.Kind {
			return k.Label
		}
	}
	return ""
}

// addressKinds returns the kinds that are known by an address.
func (v AgentFormView) addressKinds() (list []KindOption) {
	for _, k := range v.Kinds {
		if k.Value == "a2a" || k.Value == "mcp" || k.Value == "openai" {
			list = append(list, k)
		}
	}
	return list
}

func (v AgentFormView) secondStep() string {
	switch v.Kind {
	case "prompt":
		return "Name and instructions"
	case "":
		return "Name"
	}
	return "Name and address"
}

// needsModel reports whether a prompt agent has no model to choose from.
func (v AgentFormView) needsModel() bool { return v.Kind == "prompt" && len(v.Named) == 0 }

// modelIsGiven reports whether a prompt agent works with a model of the portal unless another one is chosen.
func (v AgentFormView) modelIsGiven() bool {
	return v.Kind == "prompt" && len(v.Named) > 0 && !v.OwnModel && !v.wrong("endpoint", "model", "key", "named")
}

// modelOptions returns the models of the server, with the chosen one even if the server does not list it.
func (v AgentFormView) modelOptions() []Option {
	list, models := []Option{}, v.Models
	if v.Model != "" && !slices.Contains(models, v.Model) {
		models = append([]string{v.Model}, models...)
	}
	for _, m := range models {
		list = append(list, Option{Value: m, Label: m, Selected: m == v.Model})
	}
	return list
}

// isMoreOpen reports whether the folded part of the form is shown: at an edit, or when something in it was typed by
// the person or is wrong.
func (v AgentFormView) isMoreOpen() bool {
	switch {
	case v.isEdit(), v.isLimited(), v.moreSaid() && v.Fetched == "", v.morePrompt(), len(v.Skills) > 1 && v.Fetched == "":
		return true
	case v.Fetched == "" && (v.Title+v.Notes+v.Icon+v.Chosen != "" || v.Kind == "prompt" && v.Description != "" ||
		len(v.Skills) == 1 && v.Skills[0] != (SkillRow{})):
		return true
	}
	for i := range v.Skills {
		if v.rowWrong(i) {
			return true
		}
	}
	return v.wrong("", "title", "notes", "icon", "portal_tools") || v.Kind == "prompt" && v.wrong("description")
}

func (v AgentFormView) moreHint() string {
	if v.modelIsGiven() {
		return "Model, title, picture, tools, skills, limits"
	}
	return "Title, picture, tools, skills, limits"
}

func (v AgentFormView) morePrompt() bool {
	return len(v.Exchanges) > 1 || len(v.Exchanges) == 1 && v.Exchanges[0] != (ExchangeRow{}) || v.OtherTools != "" ||
		v.Unasked || v.Output != "" || v.Temperature != "" || v.MaxTokens != "" ||
		v.wrong("examples", "tools", "temperature", "max_tokens", "output")
}

func (v AgentFormView) isLimited() bool {
	return v.Callers != "" || v.Listed != "" || v.PerMinute+v.PerDay+v.MaxBytes != "" ||
		v.wrong("callers", "listed", "per_minute", "per_day", "max_bytes")
}

func (v AgentFormView) moreSaid() bool {
	return v.Languages+v.InputModes+v.OutputModes+v.Publisher != "" ||
		v.wrong("languages", "input_modes", "output_modes", "publisher")
}

func (v AgentFormView) keyHint() string {
	if v.KeyAgain {
		return "Type the key again before you register: the portal never shows one."
	}
	return keyHint(v.HasKey, "key")
}

func keyHint(stored bool, what string) string {
	if stored {
		return "A " + what + " is stored and never shown again. Leave this empty to keep it."
	}
	return "Stored on this portal, sent only to that address, never shown again."
}

func describedURL(v AgentFormView) string {
	if v.URLError != "" {
		return "url-error url-hint"
	}
	return "url-hint"
}
