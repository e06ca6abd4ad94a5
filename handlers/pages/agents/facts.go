package agents

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"agentsite/handlers/pages"
	"agentsite/internal/a2a"
	"agentsite/internal/hub"
	"agentsite/templates"
)

// proofText returns a sentence about whether the owner has proved control of the agent's address.
func proofText(a hub.Agent) string {
	switch {
	case a.Elsewhere() && a.Proof.State == hub.Claimed && a.Proof.Method == hub.Hosted:
		return "Its portal says that it runs it itself."
	case a.Elsewhere() && a.Proof.State == hub.Claimed:
		return "Its portal says that " + originName(a.Proof.Origin) + " names this owner. This portal has not looked."
	case a.Elsewhere() && a.Kind == hub.Builtin:
		return "Its portal says that it is part of it."
	case a.Elsewhere():
		return "Its portal does not say that its owner may list it."
	case a.Kind == hub.Builtin:
		return "It is part of this portal."
	case a.Proof.State == hub.Hosted && a.Kind == hub.Link:
		return "It connects with its owner's token, so no other program can answer for it."
	case a.Proof.State == hub.Hosted:
		return "This portal runs it itself."
	case a.Proof.State == hub.Proved && a.Proof.Method == hub.ProofCard:
		return "Proved: " + originName(a.Proof.Origin) + " signed the agent card that is listed here."
	case a.Proof.State == hub.Proved:
		return "Proved: " + originName(a.Proof.Origin) + " names this owner."
	case a.OwnerName == "" && a.Publisher != "":
		return "Unproven: nothing at its address says that " + a.Publisher + " may list it."
	case a.OwnerName == "":
		return "Unproven: no publisher is proved, and nothing at its address confirms the listing."
	}
	return "Unproven: nothing at its address says that this owner may list it."
}

func originName(origin string) string { return strings.TrimPrefix(origin, "https://") }

// limitTexts returns the limits of an agent as sentences: the permitted callers and their quotas.
func (d *Profile) limitTexts(a hub.Agent) []string {
	var out []string
	switch {
	case a.Elsewhere():
		return []string{"Its portal decides which callers may talk to it and how much. People from here are visitors there."}
	case a.Status.State == hub.Withdrawn:
		return []string{"It takes no messages while it is withdrawn."}
	case a.Visibility == hub.Private || a.Status.State == hub.StatusDraft:
		out = append(out, "Only its owners may talk to it.")
	case a.Limits.Callers == hub.ListedCallers:
		out = append(out, "Only people its owner named may talk to it.")
	case a.Limits.Callers == hub.AccountCallers || a.Visibility != hub.Public || !d.accounts.Guests():
		out = append(out, "People with an account here may talk to it.")
	default:
		out = append(out, "Anyone may talk to it, also without an account.")
	}
	var rates []string
	if n := a.Limits.PerMinute; n > 0 {
		rates = append(rates, pages.FormatCounted(n, "message", "messages")+" a minute from each")
	}
	if n := a.Limits.PerDay; n > 0 {
		rates = append(rates, pages.FormatNumber(int64(n))+" a day from all together")
	}
	if len(rates) > 0 {
		out = append(out, "It takes at most "+strings.Join(rates, ", ")+".")
	}
	if n := a.Limits.MaxBytes; n > 0 {
		out = append(out, "A message may have at most "+pages.FormatBytes(int64(n))+".")
	}
	return out
}

func usedText(u hub.Usage) string {
	switch {
	case u.Calls == 0:
		return "not yet"
	case u.Week == 0:
		return pages.FormatCounted(u.Calls, "call", "calls") + ", none this week"
	case u.Week == u.Calls:
		return pages.FormatCounted(u.Calls, "call", "calls") + ", all this week"
	}
	return pages.FormatCounted(u.Calls, "call", "calls") + ", " + pages.FormatNumber(int64(u.Week)) + " this week"
}

// modeTexts returns readable names of media types; text if there are none, which is the default.
func modeTexts(modes []string) string {
	if len(modes) == 0 {
		return "text"
	}
	one := hub.Agent{InputModes: modes}
	kinds := one.Modalities()
	for i, k := range kinds {
		if k == "data" {
			kinds[i] = "data (JSON)"
		}
		if k == "file" {
			kinds[i] = "files"
		}
		if k == "image" {
			kinds[i] = "images"
		}
	}
	return strings.Join(kinds, ", ")
}

// toolsOf returns the tools of an MCP server, with the examples of the skill of the same name.
func toolsOf(a hub.Agent) []templates.ToolView {
	var conf hub.MCPConfig
	if a.Kind != hub.MCP || json.Unmarshal(a.Config, &conf) != nil {
		return nil
	}
	var out []templates.ToolView
	for _, t := range conf.Tools {
		v := templates.ToolView{Name: t.Name, Title: t.Title, Description: t.Description, ReadOnly: t.ReadOnly,
			Inputs: toolInputs(t.InputSchema)}
		if i := slices.IndexFunc(a.Skills, func(s hub.Skill) bool { return s.ID == t.Name }); i >= 0 {
			v.Examples = a.Skills[i].Examples
		}
		out = append(out, v)
	}
	return out
}

// maxInputs bounds the arguments of one tool that a profile lists.
const maxInputs = 12

// toolInputs returns the arguments in a tool's schema, the required ones first.
func toolInputs(schema json.RawMessage) []templates.ToolInput {
	var s struct {
		Properties map[string]json.RawMessage `json:"properties"`
		Required   []string                   `json:"required"`
	}
	if json.Unmarshal(schema, &s) != nil {
		return nil
	}
	names := slices.SortedFunc(maps.Keys(s.Properties), func(x, y string) int {
		if rx, ry := slices.Contains(s.Required, x), slices.Contains(s.Required, y); rx != ry {
			if rx {
				return -1
			}
			return 1
		}
		return strings.Compare(x, y)
	})
	var out []templates.ToolInput
	for _, n := range names[:min(len(names), maxInputs)] {
		out = append(out, templates.ToolInput{Name: a2a.Line(n, 100), Required: slices.Contains(s.Required, n)})
	}
	return out
}

// statusBanners returns the banners about an agent's status; mine is true for a reader that may edit the
// agent.
func statusBanners(a hub.Agent, mine bool) []templates.Banner {
	switch a.Status.State {
	case hub.StatusDraft:
		text := "This is a draft: only its owners see it."
		if mine {
			text = "This is a draft: only its owners see it. Try it, then publish it."
		}
		return []templates.Banner{{Kind: "info", Text: text}}
	case hub.Deprecated:
		return []templates.Banner{{Kind: "warn",
			Text:    "It is deprecated: it still works, but its owner wants you to use something else.",
			Message: a.Status.Message}}
	case hub.Withdrawn:
		text := "It was withdrawn by its owner and takes no work."
		if a.Status.Held {
			text = "The operator of this portal withdrew it. It takes no work."
			if mine {
				text += " Only the operator can give it back."
			}
		}
		return []templates.Banner{{Kind: "error", Text: text, Message: a.Status.Message}}
	}
	return nil
}

// startCommand returns the shell command that connects the program of an agent of kind link.
func (d *Profile) startCommand(a hub.Agent) string {
	return "AGENTSITE_TOKEN=ags_… agentsite agent run --portal " + d.portal.URL + " --name " + a.Name + " -- COMMAND"
}

func languageNames(tags []string) string {
	names := make([]string, len(tags))
	for i, t := range tags {
		names[i] = pages.LanguageName(t)
	}
	return strings.Join(names, ", ")
}
