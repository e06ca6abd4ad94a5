package agents

import (
	"encoding/json"
	"io"
	"math"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"agentsite/handlers/request"
	"agentsite/internal/agentkind"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/plaintext"
	"agentsite/templates"
)

const (
	// maxRows bounds the skills in a form, so that a request cannot create any number of rows.
	maxRows         = 64
	maxExchangeRows = 16
	// maxModelRows bounds the models of a server that a form lists.
	maxModelRows = 50
	// maxTries is how many test questions and answers a form keeps.
	maxTries = 3
	// maxTriedText bounds each of these texts in runes.
	maxTriedText = 20_000
)

// agentForm parses the agent form with its optional picture, and room bytes for other files. file is nil without a
// picture.
func agentForm(w http.ResponseWriter, r *http.Request, room int64) (in url.Values, file io.Reader, err error) {
	if t, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || t != "multipart/form-data" {
		in, err := request.Form(w, r)
		return in, nil, err
	}
	if err := multipartForm(w, r, request.MaxForm+hub.MaxIconBytes+1024+room); err != nil {
		return nil, nil, err
	}
	if list := r.MultipartForm.File["icon_file"]; len(list) > 0 && list[0].Size > 0 {
		f, err := list[0].Open() // the file is in memory, so there is nothing to close
		if err != nil {
			return nil, nil, err
		}
		file = f
	}
	return r.PostForm, file, nil
}

// multipartForm parses a form with files into memory; a form larger than max bytes is an error.
func multipartForm(w http.ResponseWriter, r *http.Request, max int64) error {
	r.Body = http.MaxBytesReader(w, r.Body, max)
	if err := r.ParseMultipartForm(max); err != nil {
		if strings.Contains(err.Error(), "too large") {
			return fault.New(fault.Invalid, "What you sent is too large: a picture may have at most 2 MiB, a card "+
				"256 KiB, a program 16 MiB.")
		}
		return fault.Wrap(fault.Invalid, err, "The form could not be read.")
	}
	return nil
}

// typed returns the submitted values as they were typed, to show them again.
func typed(in url.Values) templates.AgentFormView {
	get := func(name string) string { return strings.TrimSpace(in.Get(name)) }
	v := templates.AgentFormView{Kind: in.Get("kind"), Name: in.Get("name"), Title: in.Get("title"),
		Description: request.NormalizeLines(in.Get("description")),
		Endpoint:    get("endpoint"), Visibility: in.Get("visibility"), Model: get("model"), Chosen: get("named"),
		AuthHeader: get("auth_header"), Notes: request.NormalizeLines(in.Get("notes")), Note: get("note"),
		Base: in.Get("base"), Instructions: request.NormalizeLines(in.Get("instructions")), Unasked: in.Has("unasked"),
		Output:      get("output"),
		Temperature: get("temperature"), MaxTokens: get("max_tokens"),
		Languages: get("languages"), InputModes: get("input_modes"), OutputModes: get("output_modes"),
		Publisher: get("publisher"), Icon: get("icon"),
		Callers: get("callers"), Listed: get("listed"), PerMinute: get("per_minute"), PerDay: get("per_day"),
		MaxBytes: get("max_bytes"), Ask: request.NormalizeLines(in.Get("try"))}
	if other := get("model_other"); other != "" {
		v.Model = other
	}
	for _, m := range in["model_list"][:min(len(in["model_list"]), maxModelRows)] {
		v.Models = append(v.Models, cutRunes(m, 200))
	}
	v.Module, v.Hosts, v.ProgramModel = get("module"), get("hosts"), get("program_model")
	v.ProgramTools = programTools(in["program_tools"])
	v.OwnModel = in.Get("brain") == "own" || in.Get("brain") == "" && v.Endpoint != ""
	if in.Has("icon_remove") {
		v.Icon = ""
	}
	v.OtherTools = strings.Join(append(request.SplitValues(in["tools"]), request.SplitValues(in["other_tools"])...),
		", ")
	v.PortalTools = portalTools(in["portal_tools"])
	at := func(name string, i int) string {
		if list := in[name]; i < len(list) {
			return request.NormalizeLines(list[i])
		}
		return ""
	}
	for i := range min(len(in["skill_name"]), maxRows) {
		v.Skills = append(v.Skills, templates.SkillRow{ID: at("skill_id", i), Name: at("skill_name", i),
			Description: at("skill_description", i),
			Tags:        at("skill_tags", i), Examples: at("skill_examples", i)})
	}
	for i := range min(len(in["example_user"]), maxExchangeRows) {
		v.Exchanges = append(v.Exchanges, templates.ExchangeRow{User: at("example_user", i),
			Agent: at("example_agent", i)})
	}
	tried := len(in["tried_asked"])
	for i := max(0, tried-maxTries); i < tried; i++ {
		v.Tries = append(v.Tries, templates.TryRow{Asked: cutRunes(at("tried_asked", i), maxTriedText),
			Answer: cutRunes(at("tried_answer", i), maxTriedText),
			Reason: cutRunes(at("tried_reason", i), 500),
			Log:    cutRunes(at("tried_log", i), maxTriedText), Took: cutRunes(at("tried_took", i), 20)})
	}
	return v
}

func cutRunes(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n])
	}
	return s
}

// notesHeading separates the public notes from the description, because an agent card has a single text
// for both.
const notesHeading = "\n\n## Notes\n\n"

// draftOf converts the typed values to a draft of the service. Values that cannot be converted are added
// to bad. rows maps each skill of the draft to its row of the form.
func draftOf(v templates.AgentFormView, in url.Values, bad templates.FieldErrors) (draft hub.Draft, rows []int) {
	kind, visibility := hub.Kind(v.Kind), hub.Visibility(v.Visibility)
	description, notes := strings.TrimSpace(v.Description), strings.TrimSpace(v.Notes)
	if description == "" && kind == hub.Prompt {
		// Missing instructions are reported as such by the service, not as a missing description.
		if description = plaintext.FirstSentence(v.Instructions); description == "" {
			description = v.Name
		}
	}
	if notes != "" && description != "" {
		description += notesHeading + notes
	}
	skills := []hub.Skill{}
	for i, row := range v.Skills {
		if strings.TrimSpace(row.Name+row.ID+row.Description) == "" {
			continue
		}
		rows = append(rows, i)
		skills = append(skills, hub.Skill{ID: row.ID, Name: row.Name, Description: row.Description,
			Tags: strings.Split(row.Tags, ","), Examples: strings.Split(row.Examples, "\n")})
	}
	endpoint := v.Endpoint
	if kind == hub.Link || kind == hub.Wasm || kind == hub.Prompt && !v.OwnModel {
		endpoint = ""
	}
	draft = hub.Draft{Name: &v.Name, Title: &v.Title, Description: &description, Kind: &kind, Endpoint: &endpoint,
		Visibility: &visibility, Skills: &skills,
		Note: v.Note, Config: map[string]json.RawMessage{}}
	switch kind {
	case hub.OpenAI:
		draft.Config["model"] = encoded(v.Model)
		if in.Has("instructions") {
			draft.Config["instructions"] = encoded(strings.TrimSpace(v.Instructions))
		}
	case hub.A2A, hub.MCP:
		draft.Config["auth_header"] = encoded(v.AuthHeader)
	case hub.Prompt:
		promptConfig(v, draft.Config, bad)
	case hub.Wasm:
		draft.Config["module"], draft.Config["model"] = encoded(v.Module), encoded(v.ProgramModel)
		draft.Config["tools"] = encoded(append([]string{}, in["program_tools"]...))
		draft.Config["hosts"] = encoded(append([]string{}, request.SplitValues([]string{v.Hosts})...))
	}
	if (kind == hub.A2A || kind == hub.Link) && in.Has("portal_tools") {
		draft.Config["tools"] = encoded(append([]string{}, request.SplitValues(in["portal_tools"])...))
	}
	secret := ""
	if name := agentkind.Of(kind).Secret; name != "" && (kind != hub.Prompt || v.OwnModel) {
		secret = in.Get(name)
	}
	if secret = strings.TrimSpace(secret); secret != "" {
		draft.Secret = &secret
	}
	list := func(to **[]string, name, text string) {
		if in.Has(name) {
			split := request.SplitValues([]string{text})
			*to = &split
		}
	}
	list(&draft.Languages, "languages", v.Languages)
	list(&draft.InputModes, "input_modes", v.InputModes)
	list(&draft.OutputModes, "output_modes", v.OutputModes)
	if in.Has("publisher") {
		draft.Publisher = &v.Publisher
	}
	if in.Has("icon") || v.Icon != "" {
		draft.Icon = &v.Icon
	}
	if in.Has("callers") {
		draft.Limits = &hub.Limits{Callers: v.Callers, PerMinute: whole0(v.PerMinute, "per_minute", bad),
			PerDay: whole0(v.PerDay, "per_day", bad), MaxBytes: whole0(v.MaxBytes, "max_bytes", bad)}
		if v.Callers == hub.ListedCallers {
			draft.Limits.Listed = request.SplitValues([]string{strings.ReplaceAll(v.Listed, "\n", ",")})
		}
	}
	return draft, rows
}

// promptConfig returns the config of an agent of kind prompt. Values that cannot be converted are added
// to bad.
func promptConfig(v templates.AgentFormView, config map[string]json.RawMessage, bad templates.FieldErrors) {
	exchanges := []hub.Exchange{}
	for _, e := range v.Exchanges {
		if user, agent := strings.TrimSpace(e.User), strings.TrimSpace(e.Agent); user+agent != "" {
			exchanges = append(exchanges, hub.Exchange{User: user, Agent: agent})
		}
	}
	tools := request.SplitValues([]string{v.OtherTools})
	if tools == nil {
		tools = []string{}
	}
	model := v.Chosen
	if v.OwnModel {
		model = v.Model
	}
	config["instructions"], config["model"], config["examples"] = encoded(v.Instructions), encoded(model),
		encoded(exchanges)
	config["tools"], config["unasked"], config["max_tokens"] = encoded(tools), encoded(v.Unasked),
		encoded(whole0(v.MaxTokens, "max_tokens", bad))
	config["temperature"], config["output"] = encoded(nil), encoded(nil)
	if json.Valid([]byte(v.Output)) {
		config["output"] = json.RawMessage(v.Output)
	} else if v.Output != "" {
		bad["config.output"] = "is no JSON"
	}
	if v.Temperature != "" {
		t, err := strconv.ParseFloat(strings.Replace(v.Temperature, ",", ".", 1), 64)
		if err != nil || math.IsNaN(t) || math.IsInf(t, 0) {
			bad["config.temperature"] = "use a number from 0 to 2"
		} else {
			config["temperature"] = encoded(t)
		}
	}
}

// whole0 parses a whole number, an empty field is 0; an error is added to bad.
func whole0(s, field string, bad templates.FieldErrors) int {
	if s == "" {
		return 0
	}
	n, err := strconv.Atoi(strings.NewReplacer(",", "", " ", "").Replace(s))
	if err != nil {
		bad[field] = "write a whole number, or nothing"
	}
	return n
}

func encoded(v any) json.RawMessage {
	b, _ := json.Marshal(v) // strings, numbers and lists of these always encode
	return b
}

// formFields renames the fields in the service's errors to the fields of the form. Errors without a field
// of their own are joined under "". rows maps skills to rows of the form.
func formFields(messages templates.FieldErrors, kind string, rows []int) templates.FieldErrors {
	out := templates.FieldErrors{}
	also := func(text string) {
		if out[""] != "" {
			text = out[""] + " " + text
		}
		out[""] = text
	}
	for name, text := range messages {
		if field, ok := strings.CutPrefix(name, "limits."); ok {
			name = field
		} else if field, ok := strings.CutPrefix(name, "config."); ok {
			name = field
			if field == "tools" && (kind == string(hub.A2A) || kind == string(hub.Link)) {
				name = "portal_tools"
			}
			if field == "model" && hub.Kind(kind) == hub.Wasm {
				name = "program_model"
			}
			if field == "key" && agentkind.Of(hub.Kind(kind)).Secret == "token" {
				name = "token"
			}
		}
		switch name {
		case "", "name", "title", "description", "kind", "endpoint", "visibility", "model", "key", "token",
			"auth_header", "instructions", "examples", "tools", "portal_tools",
			"temperature", "max_tokens", "output", "languages", "input_modes", "output_modes", "icon", "publisher", "callers",
			"listed", "per_minute", "per_day", "max_bytes", "note", "try", "module", "hosts", "program_model":
			out[name] = text
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

// skillField parses a field of the form "skills[2].name"; ok is false for other fields.
func skillField(name string) (i int, field string, ok bool) {
	rest, ok := strings.CutPrefix(name, "skills[")
	if !ok {
		return 0, "", false
	}
	num, field, ok := strings.Cut(rest, "].")
	i, err := strconv.Atoi(num)
	return i, field, ok && err == nil && i >= 0
}
