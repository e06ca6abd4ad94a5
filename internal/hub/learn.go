package hub

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"agentsite/internal/ident"
	"agentsite/internal/plaintext"
)

// Notes of the versions that are made from an agent's own description.
const (
	noteCard  = "Learnt from its card"
	noteTools = "Learnt from its list of tools"
)

// LearnCard reads the description of an agent whose protocol is still unknown, because the agent did not
// answer at registration. Changes are stored as a new version; without an answer the agent stays as it
// is. Probes call it when an agent answers.
func (s *Service) LearnCard(ctx context.Context, a Agent) Agent {
	switch a.Kind {
	case A2A:
		var conf A2AConfig
		if json.Unmarshal(a.Config, &conf) == nil && conf.Binding != "" {
			return a
		}
		return s.rereadAgent(ctx, a, noteCard)
	case MCP:
		var conf MCPConfig
		if json.Unmarshal(a.Config, &conf) == nil && (conf.Version != "" || len(conf.Tools) > 0) {
			return a
		}
		return s.rereadAgent(ctx, a, noteTools)
	}
	return a
}

// Relearn reads the description of an agent again: the tools of an MCP server, which can change at any
// time, and the card of an A2A agent whose input and output modes are unknown.
func (s *Service) Relearn(ctx context.Context, a Agent) {
	switch {
	case a.Kind == MCP:
		s.rereadAgent(ctx, a, noteTools)
	case a.Kind == A2A && len(a.InputModes) == 0 && len(a.OutputModes) == 0:
		s.rereadAgent(ctx, a, noteCard)
	}
}

// rereadAgent reads the description at the agent's address, with its credential, and stores changes as a
// version with the given note. It returns the agent as it is afterwards; errors leave it unchanged.
func (s *Service) rereadAgent(ctx context.Context, a Agent, note string) Agent {
	if s.reader == nil {
		return a
	}
	rctx, cancel := context.WithTimeout(ctx, consultWait)
	defer cancel()
	t := Target{Kind: a.Kind, Endpoint: a.Endpoint, Config: a.Config}
	if a.HasSecret {
		if now, secret, err := s.Open(rctx, a.ID); err == nil && now.Version == a.Version {
			t.Secret = secret
		}
	}
	described, err := s.reader.ReadAs(rctx, t)
	// A stored credential is bound to its origin, so a description that moves the agent to another origin is ignored.
	if err != nil || described.Kind != a.Kind || a.HasSecret && originOf(described.Endpoint) != originOf(a.Endpoint) {
		return a
	}
	next, note, ok := s.applyDescribed(a, described, note)
	if !ok {
		return a
	}
	next, err = s.saveVersion(ctx, ident.Actor{Kind: ident.System}, next, a.Version, nil, note)
	if err != nil {
		s.cfg.Log.Debug("store what an agent says of itself", "agent", a.ID, "error", err)
		return a
	}
	return next
}

// applyDescribed returns the agent with its own description merged in; fields set by the owner win. why
// is the note for the version; ok is false if nothing changes.
func (s *Service) applyDescribed(a Agent, said Described, note string) (next Agent, why string, ok bool) {
	next = a
	var d Draft
	if a.Kind == MCP {
		var had, has MCPConfig
		if json.Unmarshal(said.Config, &has) != nil || len(a.Config) > 0 && json.Unmarshal(a.Config, &had) != nil {
			return a, "", false
		}
		changes := toolChanges(had.Tools, has.Tools)
		switch {
		case len(had.Tools) == 0 && had.Version == "":
		case changes == "":
			return a, "", false
		default:
			note = changes
		}
		skills := keptSkills(a.Skills, said.Skills, had.Tools, has.Tools)
		d.Skills = &skills
		// The owner's header setting is kept, because a server's description has none.
		if has.AuthHeader = had.AuthHeader; d.setConfig(has) != nil {
			return a, "", false
		}
		// Start from empty settings: merging would keep settings that the server has removed.
		next.Config = nil
	} else {
		if json.Unmarshal(said.Config, &d.Config) != nil {
			return a, "", false
		}
		if len(a.Skills) == 0 {
			d.Skills = &said.Skills
		}
	}
	if said.Endpoint != "" {
		d.Endpoint = &said.Endpoint
	}
	if len(a.InputModes) == 0 && len(said.InputModes) > 0 {
		d.InputModes = &said.InputModes
	}
	if len(a.OutputModes) == 0 && len(said.OutputModes) > 0 {
		d.OutputModes = &said.OutputModes
	}
	if err := d.apply(&next, s.draftRules()); err != nil {
		return a, "", false
	}
	return next, note, len(Diff(a, next)) > 0
}

// setConfig sets the draft's settings to v, a settings type such as MCPConfig.
func (d *Draft) setConfig(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return json.Unmarshal(b, &d.Config)
}

// toolChanges describes the difference between two lists of tools for a version note, "" if there is
// none. Order does not matter.
func toolChanges(had, has []Tool) string {
	was, is := toolsByName(had), toolsByName(has)
	var added, removed, changed []string
	for _, t := range has {
		if old, ok := was[t.Name]; !ok {
			added = append(added, t.Name)
		} else if old != is[t.Name] {
			changed = append(changed, t.Name)
		}
	}
	for _, t := range had {
		if _, ok := is[t.Name]; !ok {
			removed = append(removed, t.Name)
		}
	}
	var parts []string
	for _, p := range []struct {
		verb  string
		names []string
	}{{"added ", added}, {"removed ", removed}, {"changed ", changed}} {
		if len(p.names) > 0 {
			parts = append(parts, p.verb+strings.Join(p.names, ", "))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	note := []rune(plaintext.OneLine("Its tools changed: " + strings.Join(parts, "; ")))
	if len(note) > maxNote {
		note = append(note[:maxNote-1], '…')
	}
	return string(note)
}

// toolsByName returns each tool in a normal form (JSON), by name, for comparison.
func toolsByName(list []Tool) map[string]string {
	out := make(map[string]string, len(list))
	for _, t := range list {
		// the same cleaning as on storing
		t.Title, t.Description = plaintext.OneLine(t.Title), plaintext.Clean(t.Description)
		// Encode the schema again, because servers may change the order of its fields.
		var schema any
		if json.Unmarshal(t.InputSchema, &schema) == nil {
			t.InputSchema, _ = json.Marshal(schema)
		}
		b, _ := json.Marshal(t) // cannot fail: all fields are valid JSON
		out[t.Name] = string(b)
	}
	return out
}

// keptSkills returns the skills of an MCP agent after its tools changed from had to has: skills of removed tools are
// removed, skills of new tools are added from said, and all others (including those the owner wrote) stay.
func keptSkills(have, said []Skill, had, has []Tool) []Skill {
	was, is := toolsByName(had), toolsByName(has)
	out := slices.DeleteFunc(slices.Clone(have), func(s Skill) bool {
		_, before := was[s.ID]
		_, now := is[s.ID]
		return before && !now
	})
	for _, s := range said {
		_, before := was[s.ID]
		if !before && len(out) < maxSkills && !slices.ContainsFunc(out, func(o Skill) bool { return o.ID == s.ID }) {
			out = append(out, s)
		}
	}
	return out
}
