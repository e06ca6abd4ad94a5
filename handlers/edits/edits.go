// Package edits asks an edited question again: in its place if it is the last one of its author, else in a new
// conversation that has the messages before it. It authorizes nothing: the services that it calls do.
package edits

import (
	"context"
	"strings"

	"agentsite/internal/chat"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/task"
)

// Editor edits questions in conversations.
type Editor struct {
	Chat  *chat.Service
	Tasks *task.Service
}

// Edit is the new form of the message Seq of a conversation.
type Edit struct {
	Conversation string
	Seq          int64
	Parts        []task.Part
	Face         string // where the edit was made, as in task.Task
	MustTell     bool   // as in chat.Draft
}

// pages bounds how many pages of 200 messages behind a question are read. A question with more messages behind it
// counts as an earlier one.
const pages = 10

// after is the part of a conversation behind a question.
type after struct {
	last    bool           // its author asked nothing later
	answers []chat.Message // the newest answer of each agent to the question
}

// Ask stores the new form of the actor's own message and asks its agents again. It returns the conversation with the
// new answers: the same one if the message is the last of its author, else a new one of the actor. There the message
// before the edit is left out, and the first conversation stays as it is.
func (e *Editor) Ask(ctx context.Context, actor ident.Actor, in Edit) (conversation string, err error) {
	m, err := e.Chat.Message(ctx, actor, in.Conversation, in.Seq)
	switch {
	case err != nil:
		return "", err
	case m.Kind != chat.Text || !m.Now.UnsaidAt.IsZero():
		return "", fault.New(fault.Conflict, "Only a message can be asked again, and only while it is there.")
	case m.Sender.Kind == "agent" || m.Sender.ID != actor.ID:
		return "", fault.New(fault.Forbidden, "You can change only what you said yourself.")
	}
	later, err := e.readAfter(ctx, actor, m)
	if err != nil {
		return "", err
	}
	if !later.last {
		return e.askElsewhere(ctx, actor, m, in, later.answers)
	}
	if err := e.stopWork(ctx, actor, m); err != nil {
		return "", err
	}
	if later, err = e.readAfter(ctx, actor, m); err != nil {
		return "", err
	}
	if _, err := e.Chat.Edit(ctx, actor, m.ConversationID, m.Seq, in.Parts); err != nil {
		return "", err
	}
	for _, a := range later.answers {
		if _, err := e.Chat.Regenerate(ctx, actor, m.ConversationID, a.Seq, in.Face); err != nil {
			return m.ConversationID, err
		}
	}
	return m.ConversationID, nil
}

// Asked reports whether a message of the actor asked an agent, by the answers to it.
func (e *Editor) Asked(ctx context.Context, actor ident.Actor, m chat.Message) (bool, error) {
	if m.Kind != chat.Text || m.Sender.Kind == "agent" || m.Sender.ID != actor.ID {
		return false, nil
	}
	for _, r := range e.Chat.Running(m.ConversationID) {
		if t, err := e.Tasks.Get(ctx, actor, r.ID); err == nil && t.MessageSeq == m.Seq {
			return true, nil
		}
	}
	later, err := e.readAfter(ctx, actor, m)
	return len(later.answers) > 0, err
}

// stopWork cancels unfinished work on a message, so that each agent has an answer that another one can replace.
func (e *Editor) stopWork(ctx context.Context, actor ident.Actor, m chat.Message) error {
	for _, r := range e.Chat.Running(m.ConversationID) {
		if t, err := e.Tasks.Get(ctx, actor, r.ID); err != nil || t.MessageSeq != m.Seq {
			continue // the work of another member, or on another message
		}
		if _, err := e.Tasks.Cancel(ctx, actor, r.ID); err != nil && !fault.Is(err, fault.Conflict) {
			return err
		}
	}
	return nil
}

func (e *Editor) readAfter(ctx context.Context, actor ident.Actor, m chat.Message) (after, error) {
	out := after{last: true}
	seq := m.Seq
	for n := 0; ; n++ {
		list, more, err := e.Chat.Messages(ctx, actor, m.ConversationID, chat.Span{After: seq, Limit: 200})
		if err != nil {
			return after{}, err
		}
		for _, x := range list {
			if x.Kind == chat.Text && x.Sender.ID == m.Sender.ID && x.Now.UnsaidAt.IsZero() {
				out.last = false
				return out, nil
			}
			if x.Sender.Kind != "agent" || x.TaskID == "" || !x.TaskState.Terminal() || x.Now.NewerSeq > 0 {
				continue
			}
			// A task is shown only to the actor that asked for it, so answers that others asked for are left alone.
			if t, err := e.Tasks.Get(ctx, actor, x.TaskID); err == nil && t.MessageSeq == m.Seq {
				out.answers = append(out.answers, x)
			}
		}
		if !more || len(list) == 0 {
			return out, nil
		}
		if n == pages {
			out.last = false
			return out, nil
		}
		seq = list[len(list)-1].Seq
	}
}

// askElsewhere sends the new form of a message in a new conversation that has the messages before it. If one agent
// answered the message, that agent is asked.
func (e *Editor) askElsewhere(ctx context.Context, actor ident.Actor, m chat.Message, in Edit,
	answers []chat.Message) (string, error) {
	before, _, err := e.Chat.Messages(ctx, actor, m.ConversationID, chat.Span{Before: m.Seq, Limit: 1, Newest: true})
	if err != nil {
		return "", err
	}
	room, err := e.createRoom(ctx, actor, m, before)
	if err != nil {
		return "", err
	}
	d := chat.Draft{ClientID: ident.NewID(), Parts: in.Parts, Face: in.Face, MustTell: in.MustTell}
	if len(answers) == 1 && !strings.Contains(task.PlainText(in.Parts), "@") {
		d.To = answers[0].Sender.ID
	}
	if _, err = e.Chat.Post(ctx, actor, room.ID, d); err != nil {
		return "", err
	}
	return room.ID, nil
}

// createRoom makes the conversation for askElsewhere: a branch, or an empty one with the same agents if nothing was
// said before the message.
func (e *Editor) createRoom(ctx context.Context, actor ident.Actor, m chat.Message,
	before []chat.Message) (chat.Conversation, error) {
	if len(before) > 0 {
		return e.Chat.Branch(ctx, actor, m.ConversationID, before[0].Seq)
	}
	c, err := e.Chat.Get(ctx, actor, m.ConversationID)
	if err != nil {
		return c, err
	}
	var agents []string
	for _, a := range c.Agents() {
		agents = append(agents, a.Handle)
	}
	return e.Chat.Create(ctx, actor, "", agents)
}
