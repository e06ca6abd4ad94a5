package hub

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"agentsite/internal/fault"
	"agentsite/internal/ident"
)

// Bounds of what a registration may say.
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
	// MaxAgentsPerOwner bounds how many agents an account registers.
	MaxAgentsPerOwner = 500
)

// Draft is what somebody wants an agent to be. In an update, nil leaves a
// field as it is.
type Draft struct {
	Name        *string
	Title       *string
	Description *string
	Kind        *Kind
	Endpoint    *string
	Skills      *[]Skill
	Visibility  *Visibility
	Config      map[string]json.RawMessage
	// Secret replaces the stored credential; "" removes it.
	Secret *string
	// Status withdraws the agent from the directory, or puts it back.
	Status *Status
	// BaseVersion, when set, is the version the edit was made from.
	BaseVersion int
}

// apply puts the draft over a, cleaning text, and checks every field of the
// outcome at once.
func (d Draft) apply(a *Agent, kinds []Kind, checkURL func(string) error) error {
	var c fault.Check
	set := func(to *string, from *string) {
		if from != nil {
			*to = clean(*from)
		}
	}
	if d.Name != nil {
		a.Name = strings.ToLower(strings.TrimPrefix(strings.TrimSpace(*d.Name), "@"))
	}
	if d.Title != nil {
		a.Title = oneLine(*d.Title)
	}
	set(&a.Description, d.Description)
	set(&a.Endpoint, d.Endpoint)
	if d.Kind != nil {
		a.Kind = *d.Kind
	}
	if d.Visibility != nil {
		a.Visibility = *d.Visibility
	}
	if d.Skills != nil {
		a.Skills = cleanSkills(*d.Skills)
	}
	if d.Status != nil {
		a.Status = *d.Status
	}
	if err := ident.CheckName(a.Name); err != nil {
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
	c.Field(utf8.RuneCountInString(a.Title) <= maxTitle, "title", "use at most %d characters", maxTitle)
	c.Field(a.Description != "", "description", "say in a sentence or two what the agent does")
	c.Field(utf8.RuneCountInString(a.Description) <= maxDescription, "description", "use at most %d characters", maxDescription)
	c.Field(slices.Contains([]Visibility{Public, Unlisted, Private}, a.Visibility), "visibility", "choose public, unlisted or private")
	status(&c, a.Status)
	if a.Kind == "" {
		c.Field(false, "kind", "choose one of %s", kindNames(kinds))
	} else {
		c.Field(slices.Contains(kinds, a.Kind) || a.Kind == Builtin && a.OwnerID == "", "kind", "%.80q is no kind of agent this portal takes; choose one of %s", a.Kind, kindNames(kinds))
	}
	checkSkills(&c, a.Skills)
	switch a.Kind {
	case A2A:
		checkEndpoint(&c, checkURL, a.Endpoint, "https://example.org/a2a")
		conf := new(A2AConfig)
		a.config(&c, d.Config, conf)
		c.Field(headerName(conf.AuthHeader), "config.auth_header", "name one HTTP header, for example X-API-Key")
		c.Field(len(conf.CardURL) <= maxEndpoint, "config.card_url", "use at most %d characters", maxEndpoint)
		c.Field(len(conf.Tenant) <= maxTenant && conf.Tenant == oneLine(conf.Tenant), "config.tenant", "use at most %d characters, on one line", maxTenant)
		c.Field(slices.Contains([]string{"", "JSONRPC", "HTTP+JSON"}, conf.Binding), "config.binding", "choose JSONRPC or HTTP+JSON")
		c.Field(slices.Contains([]string{"", "1.0", "0.3"}, conf.Version), "config.version", "choose 1.0 or 0.3")
		c.Field(!slices.Contains([]string{"host", "content-length", "content-type", "transfer-encoding", "connection"}, strings.ToLower(conf.AuthHeader)), "config.auth_header", "this header has another use; choose the one the agent asks for")
	case OpenAI:
		a.Endpoint = strings.TrimRight(a.Endpoint, "/")
		checkEndpoint(&c, checkURL, a.Endpoint, "http://127.0.0.1:11434/v1")
		conf := new(OpenAIConfig)
		a.config(&c, d.Config, conf)
		c.Field(conf.Model == oneLine(conf.Model), "config.model", "write the name on one line, without control characters")
		c.Field(conf.Model != "", "config.model", "name the model, for example llama3.2")
		c.Field(len(conf.Model) <= maxModel, "config.model", "use at most %d characters", maxModel)
		c.Field(utf8.RuneCountInString(conf.Instructions) <= maxInstructions, "config.instructions", "use at most %d characters", maxInstructions)
	}
	if d.Secret != nil {
		c.Field(len(*d.Secret) <= maxSecret && !strings.ContainsFunc(*d.Secret, unicode.IsControl), "config.key", "use at most %d characters, on one line", maxSecret)
	}
	return c.Err()
}

// onlyStatus reports whether the draft changes nothing but the status.
func (d Draft) onlyStatus() bool {
	return d.Status != nil && d.Name == nil && d.Title == nil && d.Description == nil && d.Kind == nil && d.Endpoint == nil &&
		d.Skills == nil && d.Visibility == nil && len(d.Config) == 0 && d.Secret == nil
}

func status(c *fault.Check, s Status) {
	c.Field(slices.Contains([]string{Active, Withdrawn}, s.State), "status", "choose active or withdrawn")
	c.Field(utf8.RuneCountInString(s.Message) <= 300, "status", "use at most 300 characters")
}

func checkStatus(s Status) error {
	var c fault.Check
	status(&c, s)
	return c.Err()
}

// headerName matches what may name an HTTP header.
func headerName(s string) bool {
	for _, r := range s {
		if !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("!#$%&'*+-.^_`|~", r)) {
			return false
		}
	}
	return len(s) <= 100
}

// config merges the draft's settings over the stored ones, into the kind's
// own type, and stores them without what the type does not know.
func (a *Agent) config(c *fault.Check, with map[string]json.RawMessage, into any) {
	merged := make(map[string]json.RawMessage)
	if len(a.Config) > 0 {
		_ = json.Unmarshal(a.Config, &merged) // our own JSON
	}
	for k, v := range with {
		merged[k] = v
	}
	b, err := json.Marshal(merged)
	if err == nil {
		err = json.Unmarshal(b, into)
	}
	if err != nil {
		name := "config"
		if t, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && t.Field != "" {
			name += "." + t.Field
		}
		c.Field(false, name, "this is not the type of value that belongs here")
	}
	if a.Config, err = json.Marshal(into); err != nil {
		c.Field(false, "config", "%s", err)
	}
}

func kindNames(kinds []Kind) string {
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = string(k)
	}
	return strings.Join(names, ", ")
}

func checkEndpoint(c *fault.Check, checkURL func(string) error, endpoint, example string) {
	if endpoint == "" {
		c.Field(false, "endpoint", "give the agent's address, for example %s", example)
		return
	}
	c.Field(len(endpoint) <= maxEndpoint, "endpoint", "use at most %d characters", maxEndpoint)
	if err := checkURL(endpoint); err != nil {
		c.Field(false, "endpoint", "%s", err)
	}
}

func checkSkills(c *fault.Check, skills []Skill) {
	c.Field(len(skills) <= maxSkills, "skills", "list at most %d skills", maxSkills)
	seen := make(map[string]bool)
	for i, s := range skills {
		name := func(f string) string { return fmt.Sprintf("skills[%d].%s", i, f) }
		c.Field(s.Name != "", name("name"), "give the skill a name")
		c.Field(utf8.RuneCountInString(s.Name) <= maxSkillName, name("name"), "use at most %d characters", maxSkillName)
		c.Field(utf8.RuneCountInString(s.ID) <= maxSkillName, name("id"), "use at most %d characters", maxSkillName)
		c.Field(!seen[s.ID], name("id"), "is used twice")
		seen[s.ID] = true
		c.Field(utf8.RuneCountInString(s.Description) <= maxSkillText, name("description"), "use at most %d characters", maxSkillText)
		c.Field(len(s.Tags) <= maxTags, name("tags"), "use at most %d tags", maxTags)
		for _, t := range s.Tags {
			c.Field(utf8.RuneCountInString(t) <= maxTag, name("tags"), "keep each tag within %d characters", maxTag)
		}
		c.Field(len(s.Examples) <= maxExamples, name("examples"), "give at most %d examples", maxExamples)
		for _, e := range s.Examples {
			c.Field(utf8.RuneCountInString(e) <= maxExample, name("examples"), "keep each example within %d characters", maxExample)
		}
	}
}

// clean removes what no reader should meet in a name or description: control
// characters and the marks that reorder text on screen.
func clean(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r == '\u2028', r == '\u2029':
			return '\n'
		case unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r), r == 0xFEFF:
			return -1
		}
		return r
	}, s)
	return strings.TrimSpace(s)
}

func cleanSkills(in []Skill) []Skill {
	var out []Skill
	ids := make(map[string]bool) // those that are written down, and those made
	for _, s := range in {
		ids[oneLine(s.ID)] = true
	}
	for _, s := range in {
		s.ID, s.Name, s.Description = oneLine(s.ID), oneLine(s.Name), clean(s.Description)
		if s.Name == "" && s.ID == "" && s.Description == "" {
			continue // an empty row of the form
		}
		if s.Name == "" {
			s.Name = s.ID
		}
		if s.ID == "" {
			s.ID = freeID(slug(s.Name), ids)
		}
		s.Tags, s.Examples = cleanList(s.Tags, true), cleanList(s.Examples, false)
		out = append(out, s)
	}
	return out
}

// freeID returns an id made of base that none of ids is, and adds it to them.
func freeID(base string, ids map[string]bool) string {
	if base == "" {
		base = "skill"
	}
	if r := []rune(base); len(r) > maxSkillName-3 { // leave room for the number
		base = string(r[:maxSkillName-3])
	}
	id := base
	for n := 2; ids[id]; n++ {
		id = fmt.Sprintf("%s-%d", base, n)
	}
	ids[id] = true
	return id
}

func cleanList(in []string, lower bool) []string {
	out := []string{}
	for _, s := range in {
		s = oneLine(s)
		if lower {
			s = strings.ToLower(s)
		}
		if s != "" && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

func oneLine(s string) string { return strings.Join(strings.Fields(clean(s)), " ") }

func slug(s string) string {
	return strings.Trim(strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return '-'
	}, s), "-")
}

// Host is where an agent's text goes, or "" when it stays on this portal.
func (a Agent) Host() string {
	if a.Portal != "" {
		return a.Portal
	}
	if a.Endpoint == "" {
		return ""
	}
	u, err := url.Parse(a.Endpoint)
	if err != nil {
		return ""
	}
	return u.Host
}
