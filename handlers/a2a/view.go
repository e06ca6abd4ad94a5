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

// maxHistory bounds the messages in one answer of a task, whatever the client requests.
const maxHistory = 100

// answerID is the id of the artifact with a task's answer. A task may also have artifacts that its
// agent made.
const answerID = "answer"

// detail selects the parts of a task that an answer contains: the number of its last messages (nil: all,
// up to maxHistory), its artifacts, and the names of the speakers.
type detail struct {
	history   *int
	artifacts bool
	speakers  bool
}

func (q *methodCall) readDetail(history *int, artifacts bool) detail {
	return detail{history, artifacts, q.usesExtension(a2a.ExtSpeaker)}
}

// viewTask converts a task to the form of the protocol, with the messages that the actor may read.
// The answer of a completed task is its last message and an artifact, as the protocol requires of
// results (§3.7).
func (d *Handler) viewTask(ctx context.Context, actor ident.Actor, t task.Task, how detail) (a2a.Task, error) {
	said, err := d.readMessages(ctx, actor, t, how)
	if err != nil {
		return a2a.Task{}, err
	}
	return d.viewWith(ctx, t, said, how), nil
}

// viewWith converts a task with messages that the caller has read before; see viewTask.
func (d *Handler) viewWith(ctx context.Context, t task.Task, said []chat.Message, how detail) a2a.Task {
	out := a2a.Task{ID: t.ID, ContextID: t.ConversationID, Status: a2a.Status{State: t.State, At: t.UpdatedAt}}
	t2 := t // t2 covers the answer's message, so that its files can be fetched too
	t2.MessageSeq = max(t.MessageSeq, t.AnswerSeq)
	files := d.cfg.Chat.Files.ForTask(t2)
	var last *chat.Message
	for i, m := range said {
		if m.Seq == t.AnswerSeq {
			last = &said[i]
		}
		out.History = append(out.History, d.viewMessage(ctx, files, t, m, how.speakers))
	}
	out.Status.Message = d.statusMessage(ctx, files, t, last, how.speakers)
	if how.artifacts {
		var answer []task.Part
		if last != nil && last.Kind == chat.Text && t.State.Terminal() && len(last.Parts) > 0 {
			answer = last.Parts
			out.Artifacts = append(out.Artifacts,
				task.Artifact{ID: answerID, Name: "Answer", Parts: fetchableParts(ctx, files, answer)})
		}
		out.Artifacts = append(out.Artifacts, madeArtifacts(ctx, files, t, answer)...)
	}
	keep := maxHistory
	if how.history != nil {
		keep = min(*how.history, keep)
	}
	out.History = out.History[max(0, len(out.History)-keep):]
	return out
}

// readMessages reads the messages of a task that the detail asks for, as far as the actor may read them.
func (d *Handler) readMessages(ctx context.Context, actor ident.Actor, t task.Task, how detail) ([]chat.Message,
	error) {
	if how.history == nil || *how.history > 0 {
		return d.cfg.Chat.Turns(ctx, actor, t)
	}
	if t.AnswerSeq == 0 {
		return []chat.Message{}, nil
	}
	m, err := d.cfg.Chat.Message(ctx, actor, t.ConversationID, t.AnswerSeq)
	if fault.Is(err, fault.NotFound) {
		return []chat.Message{}, nil
	}
	return []chat.Message{m}, err
}

// replyMessage returns the message that ended a task without work (§3.1.1), nil if it was deleted.
// It names its context and no task, because an ended task takes no more messages.
func (d *Handler) replyMessage(ctx context.Context, actor ident.Actor, t task.Task, speakers bool) (*a2a.Message,
	error) {
	said, err := d.readMessages(ctx, actor, t, detail{history: new(int)})
	if err != nil || len(said) == 0 {
		return nil, err
	}
	t2 := t
	t2.MessageSeq = max(t.MessageSeq, t.AnswerSeq)
	m := d.viewMessage(ctx, d.cfg.Chat.Files.ForTask(t2), t, said[0], speakers)
	m.TaskID = ""
	return &m, nil
}

// viewMessage converts one message to the protocol's form and gives its files addresses that the caller
// can fetch.
func (d *Handler) viewMessage(ctx context.Context, files task.Files, t task.Task, m chat.Message,
	speakers bool) a2a.Message {
	id := m.ID
	if m.Sender.Kind != "agent" && m.ClientID != "" {
		id = m.ClientID // the id that the client gave the message when sending it
	}
	out := a2a.Message{ID: id, ContextID: t.ConversationID, TaskID: t.ID, FromAgent: m.Sender.Kind == "agent",
		Parts: fetchableParts(ctx, files, m.Parts)}
	if speakers {
		by := a2a.NewSpeaker(m.Sender.Kind, m.Sender.Handle, d.cfg.Host)
		out.Speaker = &by
	}
	return out
}

// statusMessage returns the reason why a task did not complete, or the question that it waits for.
// last is the last message of its agent, nil for none.
func (d *Handler) statusMessage(ctx context.Context, files task.Files, t task.Task, last *chat.Message,
	speakers bool) *a2a.Message {
	switch {
	case t.State.Active() || t.State == task.Completed:
		return nil
	case !t.State.Terminal() && last != nil:
		m := d.viewMessage(ctx, files, t, *last, speakers)
		return &m
	case t.Reason != "":
		return &a2a.Message{ID: t.ID + "-status", ContextID: t.ConversationID, TaskID: t.ID, FromAgent: true,
			Parts: []task.Part{task.TextPart(t.Reason)}}
	}
	return nil
}

// madeArtifacts returns the artifacts of a task that its agent made and the answer does not
// contain, each with a unique id, different from the answer's.
func madeArtifacts(ctx context.Context, files task.Files, t task.Task, answer []task.Part) []task.Artifact {
	var out []task.Artifact
	taken := map[string]bool{"": true, answerID: true}
	for i, a := range task.WithoutAnswer(t.Artifacts, answer) {
		if taken[a.ID] {
			a.ID = t.ID + "-" + strconv.Itoa(i+1)
		}
		taken[a.ID] = true
		a.Parts = fetchableParts(ctx, files, a.Parts)
		out = append(out, a)
	}
	return out
}

// fetchableParts replaces files of this portal by signed addresses that the caller can fetch for a
// limited time.
func fetchableParts(ctx context.Context, files task.Files, parts []task.Part) []task.Part {
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
