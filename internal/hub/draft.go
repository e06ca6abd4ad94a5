package hub

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"agentsite/internal/agentkind"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/lookalike"
	"agentsite/internal/plaintext"
	"agentsite/internal/strictjson"
	"agentsite/internal/weborigin"
)

// Limits on the content of a registration.
const (
	maxTitle        = 100  // runes
	maxDescription  = 4000 // runes
	maxEndpoint     = 500
	maxSkills       = 32
	maxSkillName    = 100
	maxSkillText    = 1000
	maxTags         = 10
	maxTag          = 32
	maxExamples     = 5
	maxExample      = 300
	maxModel        = 200
	maxTenant       = 200
	maxInstructions = 8000
	maxSecret       = 4000

	maxStatusMessage = 300
	// MaxAgentsPerOwner is how many agents one account may own.
	MaxAgentsPerOwner = 500
)

// Draft is the requested content of an agent. In an update, a nil field stays as it is.
type Draft struct {
	Name        *string
	Title       *string
	Description *string
	Kind        *Kind
	Endpoint    *string
	Skills      *[]Skill
	Visibility  *Visibility
	InputModes  *[]string
	OutputModes *[]string
	Languages   *[]string
	// Icon is a hash returned by Pictures.Put; "" removes the picture.
	Icon      *string
	Publisher *string
	Limits    *Limits
	// EmbedOrigins replaces the list of sites that may embed the chat; an empty list allows none.
	EmbedOrigins *[]string
	// Note describes the change, for the list of versions.
	Note   string
	Config map[string]json.RawMessage
	// Secret replaces the stored credential; "" removes it.
	Secret *string
	// Status publishes a draft, deprecates or withdraws the agent, or makes it active again.
	Status *Status
	// BaseVersion is the version that the edit is based on: a Conflict fault if it is not the latest; 0
	// skips the check.
	BaseVersion int
}

// rules are the settings of the portal that Draft.apply checks a draft against.
type rules struct {
	kinds     []Kind
	addresses AddressPolicy
	models    Models
	modules   Modules
	names     *lookalike.Names // nil for the portal's own agents
}

func (d Draft) noteLine() string { return plaintext.OneLine(d.Note) }

// apply copies the fields of the draft to a, cleans text, and checks the complete result: the Invalid
// fault names all invalid fields at once.
func (d Draft) apply(a *Agent, rules rules) error {
	kinds := rules.kinds
	var c fault.Check
	set := func(to *string, from *string) {
		if from != nil {
			*to = plaintext.Clean(*from)
		}
	}
	if d.Name != nil {
		a.Name = strings.ToLower(strings.TrimPrefix(strings.TrimSpace(*d.Name), "@"))
	}
	if d.Title != nil {
		a.Title = plaintext.OneLine(*d.Title)
	}
	set(&a.Description, d.Description)
	set(&a.Endpoint, d.Endpoint)
	a.Endpoint = weborigin.ASCIIAddress(weborigin.CompleteAddress(a.Endpoint))
	assign(&a.Kind, d.Kind)
	assign(&a.Visibility, d.Visibility)
	if d.Skills != nil {
		a.Skills = cleanSkills(*d.Skills)
	}
	if d.Status != nil {
		a.Status = Status{State: d.Status.State, Message: plaintext.Clean(d.Status.Message), Held: a.Status.Held}
	}
	if d.InputModes != nil {
		a.InputModes = plaintext.CleanList(*d.InputModes, true)
	}
	if d.OutputModes != nil {
		a.OutputModes = plaintext.CleanList(*d.OutputModes, true)
	}
	if d.Languages != nil {
		a.Languages = plaintext.CleanList(*d.Languages, true)
	}
	assign(&a.Icon, d.Icon)
	if d.Publisher != nil {
		a.Publisher = strings.ToLower(weborigin.ASCIIHost(plaintext.OneLine(*d.Publisher)))
	}
	assign(&a.Limits, d.Limits)
	if d.EmbedOrigins != nil {
		a.EmbedOrigins = cleanOrigins(*d.EmbedOrigins)
	}
	check := ident.CheckName
	if a.Kind == Builtin {
		check = ident.CheckForm
	}
	if err := check(a.Name); err != nil {
		c.Field(false, "name", "%s", err)
	}
	if a.Title == "" {
		a.Title = a.Name
	}
	if a.Visibility == "" {
		a.Visibility = Public
	}
	if a.Status.State == "" {
		a.Status.State = Active
	}
	if a.Proof.State == "" {
		a.Proof = FirstProof(a.Kind)
	}
	c.Field(utf8.RuneCountInString(a.Title) <= maxTitle, "title", "use at most %d characters", maxTitle)
	rules.names.Check(&c, d.Name, d.Title)
	if a.Kind == Prompt && a.Description == "" {
		a.Description = introduceBy(d.Config["instructions"])
	}
	c.Field(a.Description != "", "description", "say in a sentence or two what the agent does")
	c.Field(utf8.RuneCountInString(a.Description) <= maxDescription, "description", "use at most %d characters", maxDescription)
	c.Field(slices.Contains([]Visibility{Public, Unlisted, Private}, a.Visibility), "visibility", "choose public, unlisted or private")
	addStatusChecks(&c, a.Status)
	c.Field(utf8.RuneCountInString(d.noteLine()) <= maxNote, "note", "use at most %d characters", maxNote)
	checkModes(&c, "input_modes", a.InputModes)
	checkModes(&c, "output_modes", a.OutputModes)
	c.Field(len(a.Languages) <= maxLanguages, "languages", "name at most %d languages", maxLanguages)
	for _, l := range a.Languages {
		c.Field(plaintext.IsLanguageTag(l), "languages", "%.40q is no language tag; write for example en, de or pt-br", l)
	}
	c.Field(a.Icon == "" || validIcon(a.Icon), "icon", "send the picture again")
	c.Field(len(a.Publisher) <= 255, "publisher", "use one of your proved domains")
	a.Limits.checkLimits(&c)
	checkOrigins(&c, a.EmbedOrigins)
	if a.Kind == "" {
		c.Field(false, "kind", "choose one of %s", kindNames(kinds))
	} else {
		c.Field(slices.Contains(kinds, a.Kind) || a.Kind == Builtin && a.OwnerID == "", "kind", "%.80q is no kind of agent this portal takes; choose one of %s", a.Kind, kindNames(kinds))
	}
	checkSkills(&c, a.Skills)
	if conf, ok := newSettings(a.Kind); ok {
		a.mergeConfig(&c, d.Config, conf)
		conf.checkSettings(&c, a, rules)
		a.setConfig(&c, conf)
	}
	if d.Secret != nil {
		c.Field(len(*d.Secret) <= maxSecret && !strings.ContainsFunc(*d.Secret, unicode.IsControl), "config.key", "use at most %d characters, on one line", maxSecret)
	}
	return c.Err()
}

// encodeSettings returns the draft's settings as a JSON object.
func (d Draft) encodeSettings() json.RawMessage {
	b, err := json.Marshal(d.Config)
	if err != nil {
		return nil // cannot happen: all values are valid JSON
	}
	return b
}

// onlyStatus reports whether the status is the only field of the draft that is set.
func (d Draft) onlyStatus() bool {
	return d.Status != nil && d.Name == nil && d.Title == nil && d.Description == nil && d.Kind == nil && d.Endpoint == nil &&
		d.Skills == nil && d.Visibility == nil && len(d.Config) == 0 && d.Secret == nil && d.InputModes == nil && d.OutputModes == nil &&
		d.Languages == nil && d.Icon == nil && d.Publisher == nil && d.Limits == nil && d.EmbedOrigins == nil
}

func addStatusChecks(c *fault.Check, s Status) {
	c.Field(slices.Contains([]string{StatusDraft, Active, Deprecated, Withdrawn}, s.State), "status", "choose draft, active, deprecated or withdrawn")
	c.Field(utf8.RuneCountInString(s.Message) <= maxStatusMessage, "status", "use at most %d characters", maxStatusMessage)
}

func checkStatus(s Status) error {
	var c fault.Check
	addStatusChecks(&c, s)
	return c.Err()
}

// headerName reports whether s is a valid HTTP header name (a token, RFC 9110) of at most 100 bytes.
func headerName(s string) bool {
	for _, r := range s {
		if !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("!#$%&'*+-.^_`|~", r)) {
			return false
		}
	}
	return len(s) <= 100
}

// mergeConfig decodes the stored settings, overlaid with those of the draft, into the kind's type. An
// unknown name in the draft is an error: it is misspelt or belongs to another kind. Unknown names in
// stored settings are dropped, because earlier releases accepted them.
func (a *Agent) mergeConfig(c *fault.Check, with map[string]json.RawMessage, into any) {
	allowed := settingNames(into)
	names := allowed
	if secret := agentkind.Of(a.Kind).Secret; secret != "" {
		names = append(slices.Clone(allowed), secret)
	}
	for _, k := range slices.Sorted(maps.Keys(with)) {
		c.Field(slices.Contains(allowed, k), fmt.Sprintf("config.%.80s", k), "is no setting of an agent of kind %s; it has %s",
			a.Kind, strings.Join(names, ", "))
	}
	merged := make(map[string]json.RawMessage)
	if len(a.Config) > 0 {
		_ = json.Unmarshal(a.Config, &merged) // cannot fail: this portal wrote the JSON
	}
	for k, v := range with {
		merged[k] = v
	}
	b, err := json.Marshal(merged)
	if err == nil {
		err = json.Unmarshal(b, into)
	}
	if err == nil {
		err = unknownInside(with, into)
	}
	if err != nil {
		name := "config"
		if u, ok := errors.AsType[*strictjson.UnknownError](err); ok {
			c.Field(false, name+"."+u.Place, "%s", u.Advice())
			return
		}
		if t, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && t.Field != "" {
			name += "." + t.Field
		}
		c.Field(false, name, "this is not the type of value that belongs here")
	}
	a.setConfig(c, into)
}

// settingNames returns the JSON names of the fields of conf, a pointer to a settings type.
func settingNames(conf any) []string {
	t := reflect.TypeOf(conf).Elem()
	var names []string
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}

// unknownInside returns an error if the value of a known setting contains a field that the setting's
// type does not have.
func unknownInside(with map[string]json.RawMessage, into any) error {
	known := make(map[string]json.RawMessage)
	for _, k := range settingNames(into) {
		if v, ok := with[k]; ok {
			known[k] = v
		}
	}
	b, err := json.Marshal(known)
	if err != nil {
		return err
	}
	return strictjson.Decode(b, reflect.New(reflect.TypeOf(into).Elem()).Interface())
}

// setConfig replaces the stored settings by conf, which holds the checked and cleaned values.
func (a *Agent) setConfig(c *fault.Check, conf any) {
	var err error
	if a.Config, err = json.Marshal(conf); err != nil {
		c.Field(false, "config", "%s", err)
	}
}

// assign copies a value that a draft has.
func assign[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}

func kindNames(kinds []Kind) string {
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = string(k)
	}
	return strings.Join(names, ", ")
}

// checkEndpoint checks the address of an agent: its presence according to the kind, its form, and the
// portal's AddressPolicy.
func checkEndpoint(c *fault.Check, addresses AddressPolicy, endpoint string, kind Kind) {
	if endpoint == "" {
		c.Field(false, "endpoint", "give the agent's address, for example %s", agentkind.Of(kind).Address)
		return
	}
	c.Field(len(endpoint) <= maxEndpoint, "endpoint", "use at most %d characters", maxEndpoint)
	if err := addresses.CheckURL(endpoint); err != nil {
		c.Field(false, "endpoint", "%s", err)
	}
}

func checkSkills(c *fault.Check, skills []Skill) {
	c.Field(len(skills) <= maxSkills, "skills", "list at most %d skills", maxSkills)
	seen := make(map[string]bool)
	for i, s := range skills {
		// Field names are formatted only on failure: formatting costs more than all checks of a valid skill.
		check := func(ok bool, field, format string, args ...any) {
			if !ok {
				c.Field(false, fmt.Sprintf("skills[%d].%s", i, field), format, args...)
			}
		}
		check(s.Name != "", "name", "give the skill a name")
		check(utf8.RuneCountInString(s.Name) <= maxSkillName, "name", "use at most %d characters", maxSkillName)
		check(utf8.RuneCountInString(s.ID) <= maxSkillName, "id", "use at most %d characters", maxSkillName)
		check(!seen[s.ID], "id", "is used twice")
		seen[s.ID] = true
		check(utf8.RuneCountInString(s.Description) <= maxSkillText, "description", "use at most %d characters", maxSkillText)
		check(len(s.Tags) <= maxTags, "tags", "use at most %d tags", maxTags)
		for _, t := range s.Tags {
			check(utf8.RuneCountInString(t) <= maxTag, "tags", "keep each tag within %d characters", maxTag)
		}
		check(len(s.Examples) <= maxExamples, "examples", "give at most %d examples", maxExamples)
		for _, e := range s.Examples {
			check(utf8.RuneCountInString(e) <= maxExample, "examples", "keep each example within %d characters", maxExample)
		}
	}
}

// introduceBy returns the first sentence of a prompt agent's instructions, used as its description if
// there is none; instructions is a JSON string.
func introduceBy(instructions json.RawMessage) string {
	var text string
	if json.Unmarshal(instructions, &text) != nil {
		return ""
	}
	return plaintext.FirstSentence(text)
}

func cleanSkills(in []Skill) []Skill {
	var out []Skill
	ids := make(map[string]bool) // used ids, given and generated
	for _, s := range in {
		ids[plaintext.OneLine(s.ID)] = true
	}
	for _, s := range in {
		s.ID, s.Name, s.Description = plaintext.OneLine(s.ID), plaintext.OneLine(s.Name), plaintext.Clean(s.Description)
		if s.Name == "" && s.ID == "" && s.Description == "" {
			continue // The form has empty rows for new skills.
		}
		if s.Name == "" {
			s.Name = s.ID
		}
		if s.ID == "" {
			s.ID = freeID(plaintext.Slug(s.Name), ids)
		}
		s.Tags, s.Examples = plaintext.CleanList(s.Tags, true), plaintext.CleanList(s.Examples, false)
		out = append(out, s)
	}
	return out
}

// freeID returns base, or base with a number, so that it is not in ids, and adds the result to ids.
func freeID(base string, ids map[string]bool) string {
	if base == "" {
		base = "skill"
	}
	if r := []rune(base); len(r) > maxSkillName-3 { // leave room for the suffix
		base = string(r[:maxSkillName-3])
	}
	id := base
	for n := 2; ids[id]; n++ {
		id = fmt.Sprintf("%s-%d", base, n)
	}
	ids[id] = true
	return id
}
