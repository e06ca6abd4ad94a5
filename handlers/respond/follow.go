package respond

import (
	"bytes"
	"context"
	"io"

	"agentsite/internal/chat"
	"agentsite/internal/ident"
	"agentsite/internal/task"
)

// Event is one event of a followed task. Exactly one of Text (with or without Restart), Task, Artifact and End is
// set.
type Event struct {
	// Text is the next piece of the answer. With Restart it replaces all earlier Text, because an agent
	// may start its answer again.
	Text    string
	Restart bool
	// Whole is true if Text is the whole answer or its rest, because the End is known already.
	Whole bool
	// Task is the state of the task, with the status text that its agent reports.
	Task *chat.TaskState
	// Artifact is an artifact of the task. All artifacts come before the End.
	Artifact *task.Artifact
	// End is the last event; io.EOF follows.
	End *End
}

// End is the end of a task, or the point at which it waits for input.
type End struct {
	// Task contains the state and its reason.
	Task task.Task
	// Message is the stored answer. If the agent gave none, the message has the kind Event and the reason
	// as its text.
	Message chat.Message
	// Text is the whole text of the answer, "" if the agent gave none. It equals the concatenated Text of
	// the events since the last Restart.
	Text string
}

// Stream follows one task from its current state to its end, or until it waits for input. Create it with Follow.
// One goroutine uses it.
type Stream struct {
	chats *chat.Service
	actor ident.Actor
	task  task.Task
	sub   *chat.Subscription

	text    []byte        // the answer so far, as the conversation reports it
	said    []byte        // the part of text that was returned as events
	answer  *chat.Message // nil until it arrives
	pending []Event
	done    bool
}

// Follow begins to follow a task of the actor. Even if it begins late, the texts add up to the durable answer. The
// caller must Close the stream. The stream does not notice the end of the actor's credential: use
// account.Service.Guard.
func Follow(ctx context.Context, chats *chat.Service, actor ident.Actor, t task.Task) (*Stream, error) {
	sub, err := chats.Subscribe(ctx, actor, t.ConversationID, t.MessageSeq)
	if err != nil {
		return nil, err
	}
	return &Stream{chats: chats, actor: actor, task: t, sub: sub}, nil
}

// FollowAsked is Follow for the task of a question that was just asked; the answer may be known already.
func FollowAsked(ctx context.Context, chats *chat.Service, actor ident.Actor, asked chat.Asked) (*Stream, error) {
	end, ok := Ended(asked)
	if !ok {
		return Follow(ctx, chats, actor, asked.Task)
	}
	s := &Stream{chats: chats, actor: actor, task: asked.Task, done: true}
	s.queueText([]byte(end.Text))
	s.pending = append(s.pending, Event{End: &end})
	return s, nil
}

// Ended returns the end of a task that was answered at once. ok is false for other tasks.
func Ended(asked chat.Asked) (end End, ok bool) {
	if len(asked.Said) == 0 {
		return End{}, false
	}
	answer := asked.Said[len(asked.Said)-1]
	return End{Task: asked.Task, Message: answer, Text: task.PlainText(answer.Parts)}, true
}

// Close ends the stream. The task itself continues.
func (s *Stream) Close() {
	if s.sub != nil {
		s.sub.Close()
	}
}

// Next returns the next event and waits for it until ctx ends; then it may be called again. After the End
// it returns io.EOF. It returns a NotFound error if the actor is no longer in the conversation.
func (s *Stream) Next(ctx context.Context) (Event, error) {
	for {
		if len(s.pending) > 0 {
			e := s.pending[0]
			s.pending = s.pending[1:]
			return e, nil
		}
		if s.done {
			return Event{}, io.EOF
		}
		if s.answer != nil {
			if err := s.endWith(ctx, *s.answer); err != nil {
				return Event{}, err
			}
			continue
		}
		u, err := s.sub.Next(ctx)
		if err != nil {
			return Event{}, err
		}
		s.takeUpdate(u)
		// On a busy machine several updates wait. Their texts become one event, so that readers catch up.
		for _, u := range s.sub.TakeRest() {
			s.takeUpdate(u)
		}
	}
}

// Wait returns the End of the task and skips the events before it.
func (s *Stream) Wait(ctx context.Context) (End, error) {
	for {
		e, err := s.Next(ctx)
		if err != nil {
			return End{}, err
		}
		if e.End != nil {
			return *e.End, nil
		}
	}
}

// takeUpdate queues the events for an update of the conversation. Updates of other tasks are ignored.
func (s *Stream) takeUpdate(u chat.Update) {
	switch {
	case u.Delta != nil && u.Delta.TaskID == s.task.ID:
		s.takeDelta(u.Delta)
	case u.Task != nil && u.Task.ID == s.task.ID && u.Task.State.Active():
		s.pending = append(s.pending, Event{Task: u.Task})
	case u.Message != nil && u.Message.TaskID == s.task.ID && u.Message.Sender.Kind == "agent" &&
		!u.Message.Kind.Amends():
		s.answer = u.Message
	}
}

// addText queues a text that continues the answer, as a part of the last event if that is one, too.
func (s *Stream) addText(text string) {
	if n := len(s.pending); n > 0 && s.pending[n-1] == (Event{Text: s.pending[n-1].Text}) {
		s.pending[n-1].Text += text
		return
	}
	s.pending = append(s.pending, Event{Text: text})
}

func (s *Stream) takeDelta(d *chat.Delta) {
	if d.Offset > len(s.text) {
		return // a piece is missing, but a later update contains the whole text
	}
	if d.Offset == len(s.text) && len(s.said) == len(s.text) { // the normal case: the piece continues the text
		if d.Text != "" {
			s.text, s.said = append(s.text, d.Text...), append(s.said, d.Text...)
			s.addText(d.Text)
		}
		return
	}
	s.text = append(s.text[:d.Offset], d.Text...)
	// An agent that restarts its answer often repeats the same text. Nothing is queued until the text differs.
	if !bytes.HasPrefix(s.said, s.text) {
		s.queueText(s.text)
	}
}

// queueText queues the difference between text, the answer so far, and the text that earlier events
// contained.
func (s *Stream) queueText(text []byte) {
	switch {
	case bytes.Equal(text, s.said):
		return
	case bytes.HasPrefix(text, s.said):
		s.pending = append(s.pending, Event{Text: string(text[len(s.said):])})
	default:
		s.pending = append(s.pending, Event{Text: string(text), Restart: true})
	}
	s.said = bytes.Clone(text)
}

func (s *Stream) endWith(ctx context.Context, m chat.Message) error {
	t, err := s.chats.Task(ctx, s.actor, s.task.ID)
	if err != nil {
		return err
	}
	// the state at the time of the message, because the task may have continued since
	t.State, t.Reason, t.AnswerSeq = m.TaskState, m.Reason, m.Seq
	text := ""
	if m.Kind == chat.Text {
		text = task.PlainText(m.Parts)
	}
	was := len(s.pending)
	if s.queueText([]byte(text)); len(s.pending) > was {
		s.pending[was].Whole = true
	}
	for i := range t.Artifacts {
		s.pending = append(s.pending, Event{Artifact: &t.Artifacts[i]})
	}
	s.pending = append(s.pending, Event{End: &End{Task: t, Message: m, Text: text}})
	s.done = true
	return nil
}
