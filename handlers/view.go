package handlers

import (
	"context"
	"fmt"
	"strings"
	"time"

	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/templates"
)

// kindText is how pages speak of a kind of agent.
type kindText struct {
	label string // in lists
	help  string // on the profile
	// Of the form: its name there, when to choose it, what an address looks
	// like.
	choice, when, example string
}

func textOf(k hub.Kind) kindText {
	switch k {
	case hub.Builtin:
		return kindText{label: "built in", help: "Part of this portal; it runs here."}
	case hub.A2A:
		return kindText{"A2A", "An A2A agent, reached at its owner's own address.",
			"A2A agent", "It already speaks A2A at an address that can be reached from here.", "https://agent.example.org"}
	case hub.OpenAI:
		return kindText{"model", "A model or assistant behind the OpenAI chat API, at its owner's own address.",
			"Model or assistant", "Anything that speaks the OpenAI chat API: Ollama, vLLM, llama.cpp, a hosted model.", "http://127.0.0.1:11434/v1"}
	case hub.MCP:
		return kindText{"MCP", "A server of tools, reached by MCP at its owner's own address.",
			"MCP server", "It offers tools by the Model Context Protocol, over Streamable HTTP. People call its tools here, and agents of yours may use them.", "https://tools.example.org/mcp"}
	case hub.Prompt:
		return kindText{"prompt", "Instructions that this portal runs on a model.",
			"Instructions", "You have no program: write what it shall do, and a model does it. The quickest way to an agent.", ""}
	case hub.Link:
		return kindText{"linked", "A program that dials in from wherever it runs.",
			"Program without address", "It runs on a laptop or behind a firewall. It dials in, so nothing has to be reachable from outside.", "agentsite agent run …"}
	}
	return kindText{label: string(k), choice: string(k)}
}

// provenance is where an agent is from and how it does, as its badges say.
func (d *Door) provenance(a hub.Agent) templates.Provenance {
	p := templates.Provenance{Portal: a.Portal, Verified: a.Signed(), Live: string(a.Liveness.State), LiveReason: a.Liveness.Reason}
	if a.Elsewhere() && d.hub.Source(a).Silent {
		p.Live, p.LiveReason = string(hub.Unreachable), noAnswer
	}
	return p
}

// fullHandle is a name as the world knows it: name@portal.
func (d *Door) fullHandle(name string) string {
	if strings.Contains(name, "@") || d.portal.Host == "" {
		return name
	}
	return name + "@" + d.portal.Host
}

func (d *Door) card(a hub.Agent, matched ...string) templates.AgentCard {
	state := a.Status.State
	if state == hub.Active {
		state = ""
	}
	return templates.AgentCard{Ref: a.Handle(), Title: a.Title, Handle: d.fullHandle(a.Handle()), Description: d.markup.Line(a.Description),
		Kind: textOf(a.Kind).label, State: state, Icon: a.Icon, Provenance: d.provenance(a), Tags: a.Tags(), Examples: examples(a, 2), Matched: strings.Join(matched, ", ")}
}

// examples are the first prompts an agent's skills suggest, at most n.
func examples(a hub.Agent, n int) []string {
	var out []string
	for i := 0; len(out) < n; i++ { // the first of every skill, then the second
		more := false
		for _, s := range a.Skills {
			if i < len(s.Examples) && len(out) < n {
				out, more = append(out, s.Examples[i]), true
			}
		}
		if !more {
			break
		}
	}
	return out
}

// guide is the portal's own agent that knows the others; ok is false where
// there is none.
func (d *Door) guide(ctx context.Context, actor ident.Actor) (a hub.Agent, ok bool) {
	a, err := d.hub.Get(ctx, actor, "guide")
	return a, err == nil && a.Kind == hub.Builtin && a.Status.State != hub.Withdrawn
}

// textGoesTo says where the text for an agent ends up.
func (d *Door) textGoesTo(a hub.Agent) string {
	host := d.hub.TextGoesTo(a)
	switch {
	case host == "":
		return "What you write stays on this portal."
	case a.Elsewhere():
		return fmt.Sprintf("What you write goes to %s, the portal it lives on, and from there to whoever runs it. Both portals keep the conversation.", host)
	case a.Kind == hub.Link:
		return fmt.Sprintf("What you write goes to %s, wherever it runs. This portal keeps the conversation.", host)
	case a.Kind == hub.Prompt && a.Endpoint == "":
		return fmt.Sprintf("What you write goes to the model this portal uses, at %s. This portal keeps the conversation.", host)
	case a.OwnerName != "" && a.Proof.State == hub.Unproven:
		return fmt.Sprintf("What you write goes to %s, an address that %s registered. This portal keeps the conversation.", host, a.OwnerName)
	case a.OwnerName != "":
		return fmt.Sprintf("What you write goes to %s, which %s runs. This portal keeps the conversation.", host, a.OwnerName)
	case a.Publisher != "":
		return fmt.Sprintf("What you write goes to %s, the address that %s published. This portal keeps the conversation.", host, a.Publisher)
	case a.Portal == "":
		return fmt.Sprintf("What you write goes to %s; nobody here says who runs it. This portal keeps the conversation.", host)
	}
	return fmt.Sprintf("What you write goes to %s, run by its owner. This portal keeps the conversation.", host)
}

func latency(t time.Duration) string {
	switch {
	case t <= 0:
		return ""
	case t < time.Second:
		return fmt.Sprintf("%d ms", max(1, t.Milliseconds()))
	}
	return fmt.Sprintf("%.1f s", t.Seconds())
}

// whole formats a count with separators.
func whole(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
