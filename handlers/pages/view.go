package pages

import (
	"context"
	"fmt"
	"slices"
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
	if a.Kind != hub.Builtin && (a.Proof.State == hub.Proved || a.Proof.State == hub.Unproven) {
		p.Proof = a.Proof.State
	}
	return p
}

// FullHandle returns the handle name@portal of an agent of this portal.
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
	card := templates.AgentCard{Ref: a.Handle(), Title: a.Title, Handle: d.FullHandle(a.Handle()),
		Description: d.markup.Line(a.Description),
		Kind:        agentkind.Of(a.Kind).Label, State: state, Icon: a.Icon, Provenance: d.Provenance(a), Tags: a.Tags(),
		Examples: Examples(a, 2), Matched: strings.Join(fieldsOf(matched), ", ")}
	card.Own = a.Kind == hub.Builtin && !a.Elsewhere()
	card.Lookalike = a.Elsewhere() && d.hub.Names.Resembles(a.Title) != ""
	switch {
	case a.Publisher != "":
		card.By = a.Publisher
	case a.OwnerName != "" && !a.Elsewhere():
		card.By, card.ByHref = a.OwnerName, "/people/"+a.OwnerName
	}
	return card
}

// Examples returns the first example prompts of an agent's skills, at most n.
func Examples(a hub.Agent, n int) []string {
	var out []string
	for i := 0; len(out) < n; i++ { // first one example of each skill, then the second of each
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

// Guide returns the built-in agent that helps users to find other agents. ok is false if the operator
// withdrew it.
func (d *Site) Guide(ctx context.Context, actor ident.Actor) (a hub.Agent, ok bool) {
	a, err := d.hub.Get(ctx, actor, "guide")
	return a, err == nil && a.Kind == hub.Builtin && a.Status.State != hub.Withdrawn
}

// FindAssistant returns the built-in agent that answers by the portal's model. ok is false on a portal without one.
func (d *Site) FindAssistant(ctx context.Context, actor ident.Actor) (a hub.Agent, ok bool) {
	a, err := d.hub.Get(ctx, actor, "assistant")
	return a, err == nil && a.Kind == hub.Builtin && a.Status.State != hub.Withdrawn && a.Visibility == hub.Public
}

// TextGoesTo returns a sentence that says where messages to an agent are sent and stored; users must know
// it before they write.
func (d *Site) TextGoesTo(a hub.Agent) string {
	host := d.hub.TextGoesTo(a)
	switch {
	case host == "":
		return "What you write stays on this portal."
	case a.Elsewhere():
		return fmt.Sprintf("What you write goes to %s, the portal it lives on, and from there to whoever runs it. Both portals keep the conversation.", host)
	case a.Kind == hub.Link:
		return fmt.Sprintf("What you write goes to %s, wherever it runs. This portal keeps the conversation.", host)
	case (a.Kind == hub.Prompt || a.Kind == hub.Builtin) && a.Endpoint == "":
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

// NoAnswer is the reason that pages show for an agent on a portal that does not answer.
const NoAnswer = "Its portal does not answer."

// NoTalk returns the reason why the actor cannot send messages to an agent, "" if it can. logIn is true
// if signing in would help.
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

// Describe returns the first sentence of a description as plain text, and the rest rendered.
func (d *Site) Describe(text string) (tagline string, rest templates.SafeHTML) {
	text = strings.TrimSpace(text)
	tagline = d.markup.Line(text)
	// A line underlined by = or - is a heading, which must keep its text.
	if after, ok := strings.CutPrefix(text, tagline); ok && !strings.HasPrefix(after, "\n=") &&
		!strings.HasPrefix(after, "\n-") {
		text = strings.TrimSpace(after)
	}
	if text == "" {
		return tagline, ""
	}
	return tagline, d.markup.Message(text)
}

// ReasonTexts are the label and the explanation of each reason for which users can report an agent.
var ReasonTexts = map[string][2]string{
	"broken":        {"It does not work", "It fails, or answers with nonsense."},
	"misleading":    {"It is not what it says", "It does something else than its page promises."},
	"harmful":       {"It does harm", "It says or does what hurts people, or asks for what it must not."},
	"spam":          {"It is advertising", "It is there to sell or to fill the directory."},
	"impersonation": {"It impersonates someone else", "It uses a name, picture or domain that is not its owner's."},
	"other":         {"Something else", "Say what, below."},
}

// ReportReason returns the label of a report's reason, or the reason itself if it is unknown.
func ReportReason(reason string) string {
	if t, ok := ReasonTexts[reason]; ok {
		return t[0]
	}
	return reason
}

// fieldsOf returns the fields in Result.Matched. That a result is similar in meaning is shown by its reason.
func fieldsOf(matched []string) []string {
	return slices.DeleteFunc(slices.Clone(matched), func(m string) bool { return m == hub.ByMeaning })
}
