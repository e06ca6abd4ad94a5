package mcp

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"agentsite/handlers/mcp/endpoint"
	"agentsite/internal/a2a"
	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/weborigin"
)

const searchInput = `{"type":"object","properties":{
"query":{"type":"string","description":"What the agent should be able to do, in a few words; empty lists all","maxLength":500},
"tags":{"type":"array","items":{"type":"string"},"maxItems":10,"description":"Only agents with one of these tags"},
"kinds":{"type":"array","items":{"type":"string"},"maxItems":10,"description":"Only agents of one of these kinds, such as a2a, mcp, prompt"},
"languages":{"type":"array","items":{"type":"string"},"maxItems":10,"description":"Only agents made for one of these languages (BCP 47)"},
"modalities":{"type":"array","items":{"type":"string","enum":["text","image","audio","video","data","file"]},"maxItems":6},
"live":{"type":"array","items":{"type":"string","enum":["alive","needs_auth","wrong_protocol","unreachable","unknown"]},"maxItems":5,"description":"Only agents in one of these states"},
"scope":{"type":"string","enum":["portal","federation"],"default":"federation","description":"portal: only agents of this portal"},
"portals":{"type":"array","items":{"type":"string"},"maxItems":10,"description":"Only agents of these portals, by host"},
"verified":{"type":"boolean","description":"Only agents of portals with a verified domain, or only others"},
"limit":{"type":"integer","minimum":1,"maximum":50,"default":10},
"mode":{"type":"string","enum":["auto","words","meaning"],"default":"auto","description":"auto: by words and by meaning, and nothing if nothing fits; words: agents with some of the words; meaning: only agents that do something similar"},
"cursor":{"type":"string","description":"next_cursor of the page before"}
},"additionalProperties":false}`

const searchOutput = `{"type":"object","properties":{
"agents":{"type":"array","items":{"type":"object","properties":{
"agent":{"type":"string","description":"The handle"},"title":{"type":"string"},"description":{"type":"string"},"kind":{"type":"string"},"portal":{"type":"string"},
"skills":{"type":"array","items":{"type":"string"}},"tags":{"type":"array","items":{"type":"string"}},"live":{"type":"string"},"score":{"type":"number"},"matched":{"type":"array","items":{"type":"string"},"description":"Parts of the agent that have words of the query, and meaning if it is similar in meaning"},"url":{"type":"string"},
"source":{"type":"object","description":"Which portal lists it, and whether that portal's domain was seen to serve the key that signed it","properties":{"portal":{"type":"string"},"url":{"type":"string"},"verified":{"type":"boolean"},"head_age":{"type":"integer"},"record":{"type":"string"}}}},
"required":["agent","description","kind","live"]}},
"portals":{"type":"object","description":"How much of the network was looked through","properties":{"known":{"type":"integer"},"asked":{"type":"integer"},"answered":{"type":"integer"},"silent":{"type":"array","items":{"type":"string"}},"oldest_head_age":{"type":"integer"}}},
"total":{"type":"integer"},"next_cursor":{"type":"string"},"suggestions":{"type":"array","items":{"type":"string"}}
},"required":["agents","total"]}`

// foundJSON is one agent in the structured result of a search; long texts are cut to save a model's
// context.
type foundJSON struct {
	Agent       string   `json:"agent"`
	Title       string   `json:"title,omitempty"`
	Description string   `json:"description"`
	Kind        string   `json:"kind"`
	Portal      string   `json:"portal,omitempty"`
	Skills      []string `json:"skills,omitempty"`
	Tags        []string `json:"tags,omitempty"`
	Live        string   `json:"live"`
	Score       float64  `json:"score,omitempty"`
	Matched     []string `json:"matched,omitempty"`
	URL         string   `json:"url"`
	// Source names the other portal that lists the agent; nil for agents of this portal.
	Source *sourceJSON `json:"source,omitempty"`
}

type sourceJSON struct {
	Portal   string `json:"portal"`
	URL      string `json:"url"`
	Verified bool   `json:"verified"`
	HeadAge  int64  `json:"head_age"` // age of the portal's signed head in seconds
	Record   string `json:"record"`
}

// Bounds of the description of one agent in a search result.
const (
	maxFoundText   = 400 // runes
	maxFoundSkills = 12
	maxFoundTags   = 12
)

func (d *Handler) searchAgents(ctx context.Context, c *endpoint.Call) (endpoint.Result, error) {
	in := argumentsOf(c)
	q := hub.Query{Text: in.readText("query", maxQuery), Tags: in.readList("tags", 10), Kinds: in.readList("kinds", 10),
		Languages:  in.readList("languages", 10),
		Modalities: in.readList("modalities", 6), Live: in.readList("live", 5),
		Limit: in.readNumber("limit", 10, 1, 50), Cursor: in.readText("cursor", 16<<10)}
	q.Mode = in.readText("mode", 10)
	q.Scope, q.Portals = in.readText("scope", 20), in.readList("portals", 10)
	if verified, given := in.readFlag("verified"); given {
		q.Signed = []string{strconv.FormatBool(verified)}
	}
	if bad := in.checkAll(); bad != nil {
		return *bad, nil
	}
	for i, p := range q.Portals {
		if q.Portals[i] = weborigin.ReadHost(p); q.Portals[i] == d.cfg.Hub.Portal() {
			q.Portals[i] = ""
		}
	}
	q.Wide = true
	page, err := d.cfg.Hub.Search(ctx, c.Actor, q)
	if err != nil {
		return readableError(err)
	}
	list := make([]foundJSON, len(page.Results))
	var b strings.Builder
	fmt.Fprintf(&b, "%d of %d agents.", len(list), page.Total)
	if c := page.Coverage; c.Known > 1 {
		fmt.Fprintf(&b, " %d of %d portals answered.", c.Answered, c.Known)
		if len(c.Silent) > 0 {
			b.WriteString(" Silent: " + a2a.Line(strings.Join(c.Silent, ", "), maxFoundText) + ".")
		}
	}
	for i := range page.Results {
		r := &page.Results[i]
		list[i] = d.foundAgent(&r.Agent, r.Score)
		list[i].Matched = r.Matched
		fmt.Fprintf(&b, "\n- %s (%s, %s): %s", list[i].Agent, list[i].Kind, list[i].Live, list[i].Description)
	}
	if len(list) == 0 && len(page.Suggestions) > 0 {
		b.WriteString(" Perhaps you mean: " + a2a.Line(strings.Join(page.Suggestions, ", "), maxFoundText) + ".")
	}
	return endpoint.Result{Content: []endpoint.Content{endpoint.TextContent(b.String())}, Structured: struct {
		Agents      []foundJSON `json:"agents"`
		Total       int         `json:"total"`
		Next        string      `json:"next_cursor,omitempty"`
		Suggestions []string    `json:"suggestions,omitempty"`
		Portals     any         `json:"portals"`
	}{list, page.Total, page.NextCursor, page.Suggestions, page.Coverage}}, nil
}

func (d *Handler) foundAgent(a *hub.Agent, score float64) foundJSON {
	tags := a.Tags()
	out := foundJSON{Agent: a.Handle(), Title: a.Title, Description: a2a.Line(a.Description, maxFoundText),
		Kind: string(a.Kind), Portal: a.Portal,
		Tags: tags[:min(len(tags), maxFoundTags)], Live: string(cmp.Or(a.Liveness.State, hub.Unknown)), Score: score,
		URL: d.cfg.URL + "/agents/" + url.PathEscape(a.Handle())}
	if a.Elsewhere() {
		s := d.cfg.Hub.Source(*a)
		out.Source = &sourceJSON{s.Portal, s.URL, s.Verified, int64(s.HeadAge(clock.Now()) / time.Second), s.Record}
	}
	for _, s := range a.Skills[:min(len(a.Skills), maxFoundSkills)] {
		out.Skills = append(out.Skills, cmp.Or(s.Name, s.ID))
	}
	return out
}

const describeInput = `{"type":"object","properties":{"agent":{"type":"string","description":"The agent's handle","minLength":1}},"required":["agent"],"additionalProperties":false}`

const describeOutput = `{"type":"object","properties":{
"agent":{"type":"string"},"title":{"type":"string"},"description":{"type":"string"},"kind":{"type":"string"},"version":{"type":"integer"},
"status":{"type":"string"},"status_message":{"type":"string"},"live":{"type":"string"},"live_reason":{"type":"string"},"owner":{"type":"string"},"publisher":{"type":"string"},"proof":{"type":"string"},
"skills":{"type":"array","items":{"type":"object","properties":{"id":{"type":"string"},"name":{"type":"string"},"description":{"type":"string"},"tags":{"type":"array","items":{"type":"string"}},"examples":{"type":"array","items":{"type":"string"}}},"required":["id","name"]}},
"input_modes":{"type":"array","items":{"type":"string"}},"output_modes":{"type":"array","items":{"type":"string"}},"languages":{"type":"array","items":{"type":"string"}},
"tools":{"type":"array","description":"Of an agent that is an MCP server: what to send as data","items":{"type":"object"}},
"source":{"type":"object","description":"Of an agent of another portal: which one lists it","properties":{"portal":{"type":"string"},"url":{"type":"string"},"verified":{"type":"boolean"},"head_age":{"type":"integer"},"record":{"type":"string"}}},
"urls":{"type":"object","properties":{"page":{"type":"string"},"mcp":{"type":"string"},"a2a":{"type":"string"},"a2a_card":{"type":"string"}}}
},"required":["agent","description","kind","live"]}`

func (d *Handler) describeAgent(ctx context.Context, c *endpoint.Call) (endpoint.Result, error) {
	in := argumentsOf(c)
	name := in.requireText("agent", maxHandle)
	if bad := in.checkAll(); bad != nil {
		return *bad, nil
	}
	a, err := d.cfg.Hub.Get(ctx, c.Actor, name)
	if err != nil {
		return readableError(err)
	}
	page := d.cfg.URL + "/agents/" + url.PathEscape(a.Handle())
	v := map[string]any{"agent": a.Handle(), "title": a.Title, "description": a.Description, "kind": a.Kind,
		"version": a.Version, "status": a.Status.State,
		"live": cmp.Or(a.Liveness.State, hub.Unknown), "proof": cmp.Or(a.Proof.State, hub.Unproven), "skills": a.Skills,
		"urls": map[string]string{"page": page, "mcp": d.agentURL(a.Handle()), "a2a": page + "/a2a",
			"a2a_card": d.cfg.URL + a2a.CardPath(a.Handle())}}
	if a.Elsewhere() {
		s := d.cfg.Hub.Source(a)
		v["source"] = sourceJSON{s.Portal, s.URL, s.Verified, int64(s.HeadAge(clock.Now()) / time.Second), s.Record}
	}
	for name, s := range map[string]string{"status_message": a.Status.Message, "live_reason": a.Liveness.Reason,
		"owner": a.OwnerName, "publisher": a.Publisher} {
		if s != "" {
			v[name] = s
		}
	}
	for name, list := range map[string][]string{"input_modes": a.InputModes, "output_modes": a.OutputModes,
		"languages": a.Languages} {
		if len(list) > 0 {
			v[name] = list
		}
	}
	if tools := toolsOf(a); len(tools) > 0 {
		v["tools"] = tools
	}
	if a.Skills == nil {
		v["skills"] = []hub.Skill{}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s (%s): %s\n", a.Handle(), cmp.Or(a.Title, a.Name), a.Description)
	for _, s := range a.Skills {
		fmt.Fprintf(&b, "\n- %s: %s", cmp.Or(s.Name, s.ID), s.Description)
		for _, e := range s.Examples {
			fmt.Fprintf(&b, "\n  for example: %s", e)
		}
	}
	return endpoint.Result{Content: []endpoint.Content{endpoint.TextContent(b.String()),
		endpoint.LinkContent(agentURI(a.Handle()), a.Handle(), cardType)}, Structured: v}, nil
}

// Complete implements endpoint.Completer: it proposes the names of agents for the URI template of agent
// cards.
func (s resources) Complete(ctx context.Context, c *endpoint.Call, a endpoint.Argument) (endpoint.Completion, error) {
	if a.URI != agentTemplate || a.Name != "name" {
		return endpoint.Completion{}, nil
	}
	if a.Value == "" {
		page, err := s.d.cfg.Hub.Search(ctx, c.Actor,
			hub.Query{Scope: hub.ScopePortal, Sort: hub.SortName, Limit: maxProposed})
		var out endpoint.Completion
		for _, r := range page.Results {
			out.Values = append(out.Values, r.Agent.Name)
		}
		out.Total, out.HasMore = page.Total, page.NextCursor != ""
		return out, err
	}
	if len(a.Value) > maxQuery {
		return endpoint.Completion{}, fault.New(fault.Invalid, "argument.value: use at most %d bytes", maxQuery)
	}
	list, err := s.d.cfg.Hub.Suggest(ctx, c.Actor, a.Value)
	var out endpoint.Completion
	for _, found := range list {
		if found.Kind == "agent" {
			out.Values = append(out.Values, strings.TrimPrefix(found.Handle, "@"))
		}
	}
	return out, err
}

const maxProposed = 20
