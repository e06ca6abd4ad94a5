package templates

import (
	"bytes"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// fullForm is a form with everything on it, all of it nasty where it may be.
func fullForm() AgentFormView {
	v := sampleForm()
	v.Kinds = append(v.Kinds, KindOption{"mcp", "MCP server", "It offers tools.", ""}, KindOption{"prompt", "Instructions", "A model does it.", ""})
	v.Kind, v.Named, v.Instructions, v.Exchanges = "mcp", []Option{{Label: "story-1"}, {Value: longName, Label: longWord}}, longWord, []ExchangeRow{{User: arabic, Agent: emoji}, {}}
	v.Server, v.Tools = longWord, []ToolRow{{Name: longWord, Description: longWord, ReadOnly: true}, {Name: "sum"}}
	v.ToolAgents, v.OtherTools = []Option{{Value: "sums", Label: longWord, Hint: longWord, Selected: true}}, "others"
	v.Domains, v.Publisher = []Option{{Value: "", Label: "You"}, {Value: "ada.example", Label: "ada.example", Selected: true}}, "ada.example"
	v.Icon, v.IconImage, v.FreeNames, v.Models = "00", "data:image/png;base64,AA==", []string{"ada-2"}, []string{"llama", longWord}
	v.Tries = []TryRow{{Asked: longWord, Answer: "x", HTML: "<p>x</p>", Took: "1 s"}, {Asked: "y", Reason: longWord}}
	v.Preview = &AgentPreview{Card: AgentCard{Ref: "ada", Title: longWord, Handle: "ada@x", Kind: "prompt"}, IconImage: "data:image/png;base64,AA==", Tagline: longWord,
		Description: "<p>x</p>", Skills: []Skill{{ID: "a", Name: longWord, Tags: []string{longWord}, Examples: []string{longWord}}}, Visibility: "private"}
	v.Errors = FieldErrors{"": "Something else.", "name": "taken; choose another"}
	for _, name := range []string{"endpoint", "model", "key", "token", "auth_header", "instructions", "examples", "tools", "temperature", "max_tokens", "languages", "input_modes", "output_modes",
		"icon", "callers", "listed", "per_minute", "per_day", "max_bytes", "notes", "try"} {
		v.Errors[name] = "wrong: " + name
	}
	return v
}

func TestAgentForm_IsSoundWithEverythingOnIt(t *testing.T) {
	edit := fullForm()
	edit.Ref, edit.Base, edit.Draft = "ada", "3", true
	for name, v := range map[string]AgentFormView{"new": fullForm(), "edit": edit} {
		page := render(t, AgentForm(samplePage("/agents/new", v.title()), v))
		doc, err := html.Parse(bytes.NewReader(page))
		if err != nil {
			t.Fatal(err)
		}
		for _, problem := range check(doc) {
			t.Errorf("%s: %s", name, problem)
		}
		// Every mistake is named in the summary, leads to its field and stands
		// beside it.
		for field, text := range v.Errors {
			if field == "" || field == "name" && name == "edit" {
				continue
			}
			for _, want := range []string{`<a href="#` + field + `">`, `id="` + field + `-error"`, `id="` + field + `"`} {
				if !strings.Contains(string(page), want) {
					t.Errorf("%s: %q (%s) lacks %s", name, field, text, want)
				}
			}
		}
	}
}

func TestConnectAndNextSteps_AreSound(t *testing.T) {
	agent := sampleAgent()
	agent.Next = &NextView{Ref: "ada", Link: true, Live: "unknown", Examples: []string{longWord}, Share: "https://x/" + longWord, Prove: "/agents/ada/owner#proof"}
	for name, page := range map[string][]byte{
		"next":    render(t, Agent(samplePage("/agents/ada", "Ada"), agent)),
		"connect": render(t, Connect(samplePage("/agents/ada/connect", "Connect"), ConnectView{Ref: "ada", Title: longWord, Command: longWord})),
	} {
		doc, err := html.Parse(bytes.NewReader(page))
		if err != nil {
			t.Fatal(err)
		}
		for _, problem := range check(doc) {
			t.Errorf("%s: %s", name, problem)
		}
	}
}
