package a2a

import (
	"context"
	"strconv"
	"strings"

	"agentsite/internal/a2a"
	"agentsite/internal/chat"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/task"
)

// maxHistory bounds the messages that go along with a task.
const maxHistory = 100

// answerID is the id of the artifact that holds a task's answer. Beside it a
// task has the artifacts that its agent made.
const answerID = "answer"

// detail is how much of a task is shown: how many of its last messages (nil:
// as many as there are, up to maxHistory), whether its artifacts, and whether
// who spoke.
type detail struct {
	history   *int
	artifacts bool
	speakers  bool
}

func (q *methodCall) detail(history *int, artifacts bool) detail {
	return detail{history, artifacts, q.follows(a2a.ExtSpeaker)}
}

// view is a task as the protocol shows it, as far as the actor may read what
// was said. The answer of a completed task is an artifact, as the protocol
// wants results to be (§3.7), and its last message.
func (d *Door) view(ctx context.Context, actor ident.Actor, t task.Task, how detail) (a2a.Task, error) {
	said, err := d.said(ctx, actor, t, how)
	if err != nil {
		return a2a.Task{}, err
	}
	return d.told(ctx, t, said, how), nil
}

// told is view of a task whose messages are known.
func (d *Door) told(ctx context.Context, t task.Task, said []chat.Message, how detail) a2a.Task {
	out := a2a.Task{ID: t.ID, ContextID: t.ConversationID, Status: a2a.Status{State: t.State, At: t.UpdatedAt}}
	t2 := t // files of the answer can be read too
	t2.MessageSeq = max(t.MessageSeq, t.AnswerSeq)
	files := d.cfg.Chat.TaskFiles(t2)
	var last *chat.Message
	for i, m := range said {
		if m.Seq == t.AnswerSeq {
			last = &said[i]
		}
		out.History = append(out.History, d.message(ctx, files, t, m, how.speakers))
	}
	out.Status.Message = d.statusMessage(ctx, files, t, last, how.speakers)
	if how.artifacts {
		var answer []task.Part
		if last != nil && last.Kind == chat.Text && t.State.Terminal() && len(last.Parts) > 0 {
			answer = last.Parts
			out.Artifacts = append(out.Artifacts, task.Artifact{ID: answerID, Name: "Answer", Parts: reachable(ctx, files, answer)})
		}
		out.Artifacts = append(out.Artifacts, made(ctx, files, t, answer)...)
	}
	keep := maxHistory
	if how.history != nil {
		keep = min(*how.history, keep)
	}
	out.History = out.History[max(0, len(out.History)-keep):]
	return out
}

// said reads the messages of a task, as far as they are needed.
func (d *Door) said(ctx context.Context, actor ident.Actor, t task.Task, how detail) ([]chat.Message, error) {
	if how.history == nil || *how.history > 0 {
		return d.cfg.Chat.Turns(ctx, actor, t)
	}
	if t.AnswerSeq == 0 {
		return nil, nil
	}
	m, err := d.cfg.Chat.Message(ctx, actor, t.ConversationID, t.AnswerSeq)
	if fault.Is(err, fault.NotFound) {
		return nil, nil
	}
	return []chat.Message{m}, err
}

// reply is the message that a task ended with which is no work (§3.1.1), nil
// where it is not there any more. It names its context and no task: one that
// has ended takes no more messages.
func (d *Door) reply(ctx context.Context, actor ident.Actor, t task.Task, speakers bool) (*a2a.Message, error) {
	said, err := d.said(ctx, actor, t, detail{history: new(int)})
	if err != nil || len(said) == 0 {
		return nil, err
	}
	t2 := t
	t2.MessageSeq = max(t.MessageSeq, t.AnswerSeq)
	m := d.message(ctx, d.cfg.Chat.TaskFiles(t2), t, said[0], speakers)
	m.TaskID = ""
	return &m, nil
}

// message is one message as the protocol shows it.
func (d *Door) message(ctx context.Context, files task.Files, t task.Task, m chat.Message, speakers bool) a2a.Message {
	id := m.ID
	if m.Sender.Kind != "agent" && m.ClientID != "" {
		id = m.ClientID // the caller knows it by their own
	}
	out := a2a.Message{ID: id, ContextID: t.ConversationID, TaskID: t.ID, FromAgent: m.Sender.Kind == "agent", Parts: reachable(ctx, files, m.Parts)}
	if speakers {
		by := a2a.NewSpeaker(m.Sender.Kind, m.Sender.Handle, d.cfg.Host)
		out.Speaker = &by
	}
	return out
}

// statusMessage says why a task did not complete or what it waits for; last
// is what its agent said last, nil for nothing.
func (d *Door) statusMessage(ctx context.Context, files task.Files, t task.Task, last *chat.Message, speakers bool) *a2a.Message {
	switch {
	case t.State.Active() || t.State == task.Completed:
		return nil
	case !t.State.Terminal() && last != nil:
		m := d.message(ctx, files, t, *last, speakers)
		return &m
	case t.Reason != "":
		return &a2a.Message{ID: t.ID + "-status", ContextID: t.ConversationID, TaskID: t.ID, FromAgent: true, Parts: []task.Part{task.TextPart(t.Reason)}}
	}
	return nil
}

// made are the artifacts that a task's agent made beside what the answer holds
// already, each with an id that no other has, the answer's included.
func made(ctx context.Context, files task.Files, t task.Task, answer []task.Part) []task.Artifact {
	var out []task.Artifact
	taken := map[string]bool{"": true, answerID: true}
	for i, a := range task.WithoutAnswer(t.Artifacts, answer) {
		if taken[a.ID] {
			a.ID = t.ID + "-" + strconv.Itoa(i+1)
		}
		taken[a.ID] = true
		a.Parts = reachable(ctx, files, a.Parts)
		out = append(out, a)
	}
	return out
}

// reachable gives files of this portal an address under which the caller can
// fetch them for a while.
func reachable(ctx context.Context, files task.Files, parts []task.Part) []task.Part {
	out := make([]task.Part, len(parts))
	for i, p := range parts {
		if strings.HasPrefix(p.URL, task.FilePath) {
			if at, err := files.Address(ctx, p.URL); err == nil {
				p.URL = at
			}
		}
		out[i] = p
	}
	return out
}
