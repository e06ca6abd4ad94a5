package chat

import (
	"context"
	"slices"

	"agentsite/internal/task"
)

// audience holds the agents that are asked for an answer to a message of a person; it may be empty.
type audience struct {
	agents []Member
	// turn is the id of the agent chosen by SpeaksTurns, "" otherwise. The store saves it, so that the
	// next message goes to the next agent.
	turn string
}

// chooseAudience chooses the agents that answer a message of a person: the agent it was sent to, those
// it mentions, the author of the answer it quotes, else those that the room's settings name. A
// message that mentions only people asks no agent.
func (s *Service) chooseAudience(ctx context.Context, id string, me Member, members []Member, d Draft, text string,
	quoted *Message) (audience, error) {
	agents := Conversation{Members: members}.Agents()
	if d.To != "" {
		return audience{agents: slices.DeleteFunc(agents, func(m Member) bool { return m.ID != d.To })}, nil
	}
	if len(agents) == 0 {
		return audience{}, nil
	}
	set := func() (Settings, string, error) { return s.store.SettingsOf(ctx, id) }
	return audienceOf(me, members, agents, text, s.cfg.Portal, quoted, set)
}

func audienceOf(me Member, members, agents []Member, text, portal string, quoted *Message,
	set func() (Settings, string, error)) (audience, error) {
	var a audience
	others := false
	for _, m := range mentionedMembers(members, text, portal) {
		switch {
		case m.Kind == "agent":
			a.agents = append(a.agents, m)
		case m.Kind != me.Kind || m.ID != me.ID:
			others = true
		}
	}
	if len(a.agents) > 0 || others {
		return a, nil
	}
	if quoted != nil {
		if m, ok := findMember(agents, "agent", quoted.Sender.ID); ok && quoted.Sender.Kind == "agent" {
			return audience{agents: []Member{m}}, nil
		}
		if quoted.Sender.Kind != "agent" && quoted.Sender.ID != me.ID {
			return a, nil // A reply to another person's message asks no agent.
		}
	}
	settings, spoke, err := set()
	if err != nil {
		return a, err
	}
	return defaultAudience(agents, settings, spoke), nil
}

// defaultAudience applies the conversation's Speaks setting to a message without an addressee. spoke is
// the id of the agent that answered the previous turn, "" for none.
func defaultAudience(agents []Member, set Settings, spoke string) audience {
	switch set.Speaks {
	case SpeaksNobody:
	case SpeaksAgent:
		if m, ok := findMember(agents, "agent", set.SpeakerID); ok {
			return audience{agents: []Member{m}}
		}
	case SpeaksTurns:
		if len(agents) > 0 {
			i := slices.IndexFunc(agents, func(m Member) bool { return m.ID == spoke })
			next := agents[(i+1)%len(agents)]
			return audience{agents: []Member{next}, turn: next.ID}
		}
	default:
		if len(agents) == 1 {
			return audience{agents: agents}
		}
	}
	return audience{}
}

// concerns reports whether m is part of the exchange between agent and asker: written by the agent,
// addressed to the agent, or a reply to one of the agent's messages. theirs are the seqs of the agent's
// messages. It decides what ShareOwn includes.
func concerns(m Message, agent Member, asker Member, members, agents []Member, set Settings, portal string,
	theirs map[int64]bool) bool {
	if m.Sender.Kind == "agent" && m.Sender.ID == agent.ID {
		return true
	}
	text := task.PlainText(m.Parts)
	if _, ok := findMember(mentionedMembers(members, text, portal), "agent", agent.ID); ok {
		return true
	}
	if m.Sender.Kind == "agent" {
		return false
	}
	if theirs[m.Target] {
		return true
	}
	// A message without an addressee counts if the conversation's settings would let the agent answer it.
	if m.Sender.ID != asker.ID || m.Target > 0 || len(mentionedMembers(members, text, portal)) > 0 ||
		set.Speaks == SpeaksTurns {
		return false
	}
	_, ok := findMember(defaultAudience(agents, set, "").agents, "agent", agent.ID)
	return ok
}
