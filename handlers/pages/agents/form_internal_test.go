package agents

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"testing"

	"agentsite/internal/hub"
	"agentsite/templates"
)

func TestCardAddress(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{"url":"https://a.example/rpc?x=1#y"}`:                                                   "https://a.example/.well-known/agent-card.json",
		`{"supportedInterfaces":[{"url":"http://127.0.0.1:9/v1"}],"url":"https://other.example"}`: "http://127.0.0.1:9/.well-known/agent-card.json",
		`{"name":"poet","endpoint":"https://a.example"}`:                                          "",
		`{"url":"javascript:alert(1)"}`:                                                           "",
		`{"url":7}`:                                                                               "",
		`[]`:                                                                                      "",
	} {
		if got := cardAddress([]byte(in)); got != want {
			t.Errorf("%s: %q, want %q", in, got, want)
		}
	}
}

func TestMergeSkills_KeepsWhatTheOwnerWrote(t *testing.T) {
	t.Parallel()
	typed := []hub.Skill{{ID: "sum", Name: "Adds up"}, {ID: "gone", Name: "Gone"}, {ID: "own", Name: "My own"}}
	got := mergeSkills(typed, []hub.Skill{{ID: "sum", Name: "sum"}, {ID: "new", Name: "new"}}, []hub.Tool{{Name: "sum"}, {Name: "gone"}})
	var names []string
	for _, s := range got {
		names = append(names, s.Name)
	}
	if want := []string{"Adds up", "My own", "new"}; !slices.Equal(names, want) {
		t.Errorf("%q, want %q", names, want)
	}
	if typed[1].ID != "gone" {
		t.Error("what was typed is changed")
	}
}

// TestForm_SaysOfAnAgentWhatItReads fills the form with an agent of each kind
// and reads it back: nothing is lost by an edit that changes nothing.
func TestForm_SaysOfAnAgentWhatItReads(t *testing.T) {
	t.Parallel()
	config := func(v any) json.RawMessage { b, _ := json.Marshal(v); return b }
	warm, object := 0.7, json.RawMessage(`{"type":"object"}`)
	for _, a := range []hub.Agent{
		{Kind: hub.OpenAI, Endpoint: "https://a.example/v1", Config: config(hub.OpenAIConfig{Model: "m", Instructions: "Be kind."})},
		{Kind: hub.A2A, Endpoint: "https://a.example", Config: config(hub.A2AConfig{AuthHeader: "X-Key", Tools: []string{"find", "ask"}})},
		{Kind: hub.MCP, Endpoint: "https://a.example/mcp", Config: config(hub.MCPConfig{AuthHeader: "X-Key"})},
		{Kind: hub.Prompt, Config: config(hub.PromptConfig{Instructions: "Rhyme.", Examples: []hub.Exchange{{User: "u", Agent: "a"}}, Tools: []string{"sums"}, Unasked: true, Temperature: &warm, MaxTokens: 100, Output: &object})},
		{Kind: hub.Prompt, Endpoint: "https://a.example/v1", Config: config(hub.PromptConfig{Instructions: "Rhyme.", Model: "m", Examples: []hub.Exchange{}, Tools: []string{}})},
		{Kind: hub.Link, Config: config(hub.LinkConfig{Tools: []string{"ask"}})},
	} {
		a.Name, a.Title, a.Description, a.Visibility = "ada", "Ada", "Says things."+notesHeading+"Free.", hub.Unlisted
		a.Languages, a.InputModes, a.OutputModes, a.Icon = []string{"de", "en"}, []string{"text/plain"}, []string{"image/png"}, strings.Repeat("0", 32)
		a.Limits = hub.Limits{Callers: hub.ListedCallers, Listed: []string{"bob", "eve"}, PerMinute: 3, PerDay: 40, MaxBytes: 5000}
		a.Skills = []hub.Skill{{ID: "s", Name: "S", Description: "D", Tags: []string{"x"}, Examples: []string{"e"}}}
		v := formOf(a)
		in := url.Values{"kind": {v.Kind}, "name": {v.Name}, "title": {v.Title}, "description": {v.Description}, "notes": {v.Notes}, "endpoint": {v.Endpoint}, "visibility": {v.Visibility},
			"model": {v.Model}, "auth_header": {v.AuthHeader}, "instructions": {v.Instructions}, "other_tools": {v.OtherTools}, "temperature": {v.Temperature}, "max_tokens": {v.MaxTokens}, "output": {v.Output}, "named": {v.Chosen},
			"languages": {v.Languages}, "input_modes": {v.InputModes}, "output_modes": {v.OutputModes}, "icon": {v.Icon}, "callers": {v.Callers}, "listed": {v.Listed},
			"per_minute": {v.PerMinute}, "per_day": {v.PerDay}, "max_bytes": {v.MaxBytes}, "brain": {"portal"}}
		if v.OwnModel {
			in.Set("brain", "own")
		}
		if v.Unasked {
			in.Set("unasked", "1")
		}
		in.Add("portal_tools", "")
		for _, o := range v.PortalTools {
			if o.Selected {
				in.Add("portal_tools", o.Value)
			}
		}
		for _, e := range v.Exchanges {
			in.Add("example_user", e.User)
			in.Add("example_agent", e.Agent)
		}
		for _, s := range v.Skills {
			in.Add("skill_id", s.ID)
			in.Add("skill_name", s.Name)
			in.Add("skill_description", s.Description)
			in.Add("skill_tags", s.Tags)
			in.Add("skill_examples", s.Examples)
		}
		bad := templates.FieldErrors{}
		d, _ := draftOf(typed(in), in, bad)
		if len(bad) > 0 {
			t.Errorf("%s: %v", a.Kind, bad)
		}
		got := hub.Agent{Name: *d.Name, Title: *d.Title, Description: *d.Description, Kind: *d.Kind, Endpoint: *d.Endpoint, Visibility: *d.Visibility, Skills: *d.Skills,
			Languages: *d.Languages, InputModes: *d.InputModes, OutputModes: *d.OutputModes, Icon: *d.Icon, Limits: *d.Limits}
		x, y := plainJSON(got), plainJSON(a)
		if x != y {
			t.Errorf("%s:\n%s, want\n%s", a.Kind, x, y)
		}
		var have, want map[string]any
		json.Unmarshal(config(d.Config), &have)
		if a.Config != nil {
			json.Unmarshal(a.Config, &want)
		}
		for key, value := range want {
			if plainJSON(have[key]) != plainJSON(value) {
				t.Errorf("%s: config.%s is %v, want %v", a.Kind, key, have[key], value)
			}
		}
	}
}

func plainJSON(v any) string {
	if a, ok := v.(hub.Agent); ok {
		a.Config = nil
		v = a
	}
	b, _ := json.Marshal(v)
	return string(b)
}

func TestDraftOf_NamesWhatIsNoNumber(t *testing.T) {
	t.Parallel()
	in := url.Values{"kind": {"prompt"}, "callers": {""}, "per_minute": {"many"}, "per_day": {"1,000"}, "max_bytes": {""}, "temperature": {"NaN"}, "max_tokens": {"1e9"}, "output": {"{"}}
	bad := templates.FieldErrors{}
	d, _ := draftOf(typed(in), in, bad)
	if len(bad) != 4 || bad["config.output"] == "" || bad["per_minute"] == "" || bad["max_tokens"] == "" || bad["config.temperature"] == "" {
		t.Errorf("%v", bad)
	}
	if d.Limits.PerDay != 1000 {
		t.Errorf("a thousand is read as %d", d.Limits.PerDay)
	}
}
