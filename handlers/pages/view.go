package pages

import (
	"context"
	"fmt"
	"strings"

	"agentsite/internal/agentkind"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/templates"
)

// Provenance returns the origin and the liveness of an agent, for its badges.
func (d *Site) Provenance(a hub.Agent) templates.Provenance {
	p := templates.Provenance{Portal: a.Portal, Verified: a.Signed(), Live: string(a.Liveness.State),
		LiveReason: a.Liveness.Reason}
	if a.Elsewhere() && d.hub.Source(a).Silent {
		p.Live, p.LiveReason = string(hub.Unreachable), NoAnswer
	}
	return p
}

// FullHandle returns the network-wide handle: name@portal.
func (d *Site) FullHandle(name string) string {
	if strings.Contains(name, "@") || d.portal.Host == "" {
		return name
	}
	return name + "@" + d.portal.Host
}

func (d *Site) Card(a hub.Agent, matched ...string) templates.AgentCard {
	state := a.Status.State
	if state == hub.Active {
		state = ""
	}
	return templates.AgentCard{Ref: a.Handle(), Title: a.Title, Handle: d.FullHandle(a.Handle()),
		Description: d.markup.Line(a.Description),
		Kind:        agentkind.Of(a.Kind).Label, State: state, Icon: a.Icon, Provenance: d.Provenance(a), Tags: a.Tags(),
		Examples: Examples(a, 2), Matched: strings.Join(matched, ", ")}
}

// Examples returns the first example prompts of an agent's skills, at most n.
func Examples(a hub.Agent, n int) []string {
	var out []string
	for i := 0; len(out) < n; i++ { // the first of each skill, then the second
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

// Guide returns the portal's own agent that knows the others. ok is false if there is none.
func (d *Site) Guide(ctx context.Context, actor ident.Actor) (a hub.Agent, ok bool) {
	a, err := d.hub.Get(ctx, actor, "guide")
	return a, err == nil && a.Kind == hub.Builtin && a.Status.State != hub.Withdrawn
}

// TextGoesTo states the destination of the text for an agent.
func (d *Site) TextGoesTo(a hub.Agent) string {
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
		return fmt.Sprintf("What you write goes to %s, which %s runs. This portal keeps the conversation.", host,
			a.OwnerName)
	case a.Publisher != "":
		return fmt.Sprintf("What you write goes to %s, the address that %s published. This portal keeps the conversation.", host, a.Publisher)
	case a.Portal == "":
		return fmt.Sprintf("What you write goes to %s, whose operator is unknown. This portal keeps the conversation.",
			host)
	}
	return fmt.Sprintf("What you write goes to %s, run by its owner. This portal keeps the conversation.", host)
}

// NoAnswer is the reason that an agent of a silent portal cannot be reached.
const NoAnswer = "Its portal does not answer."

// NoTalk returns the reason that the actor cannot talk to an agent now, or "" if they can. logIn is true if an
// account would help.
func (d *Site) NoTalk(actor ident.Actor, a hub.Agent) (why string, logIn bool) {
	switch {
	case a.Status.State == hub.Withdrawn:
		return "It was withdrawn and takes no work.", false
	case (a.Visibility == hub.Private || a.Status.State == hub.StatusDraft) && !a.OwnedBy(actor):
		return "Only its owners can talk to it.", false
	case !actor.IsPerson() && !d.accounts.Guests():
		return "Log in to talk to it.", true
	case actor.Kind == ident.Guest && a.Visibility != hub.Public:
		return "Visitors cannot talk to it: log in.", true
	}
	if err := a.MayCall(actor); err != nil {
		return fault.As(err).Safe, !actor.IsPerson()
	}
	return "", false
}

// Describe splits a description into its first sentence and the rest.
func (d *Site) Describe(text string) (tagline string, rest templates.SafeHTML) {
	text = strings.TrimSpace(text)
	tagline = d.markup.Line(text)
	// An underlined line is a heading, which must keep its line.
	if after, ok := strings.CutPrefix(text, tagline); ok && !strings.HasPrefix(after, "\n=") &&
		!strings.HasPrefix(after, "\n-") {
		text = strings.TrimSpace(after)
	}
	if text == "" {
		return tagline, ""
	}
	return tagline, d.markup.Message(text)
}

// ReasonTexts describe the reasons of a report.
var ReasonTexts = map[string][2]string{
	"broken":        {"It does not work", "It fails, or answers with nonsense."},
	"misleading":    {"It is not what it says", "It does something else than its page promises."},
	"harmful":       {"It does harm", "It says or does what hurts people, or asks for what it must not."},
	"spam":          {"It is advertising", "It is there to sell or to fill the directory."},
	"impersonation": {"It impersonates someone else", "It uses a name, picture or domain that is not its owner's."},
	"other":         {"Something else", "Say what, below."},
}

// ReportReason describes the reason of a report in a few words.
func ReportReason(reason string) string {
	if t, ok := ReasonTexts[reason]; ok {
		return t[0]
	}
	return reason
}
