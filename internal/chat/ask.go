package chat

import (
	"context"
	"errors"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/task"
)

// Ask is a question of a protocol endpoint's caller to one agent.
type Ask struct {
	// Agent is its handle.
	Agent string
	// Context is the conversation that goes on, of which the agent must be a
	// member; "" opens a new one of the caller and the agent.
	Context string
	// ClientID makes asking again in the same conversation harmless.
	ClientID string
	Parts    []task.Part
	// Before is the earlier conversation as the caller reports it, stored as a first message that
	// asks no agent; only for a new conversation.
	Before string
	// Title names a new conversation; "" calls it after the question.
	Title string
	// TaskID, when set, is the task of the caller that waits for input, and
	// that Parts are the input of; Context may then be "". Without it, the
	// caller's task that waits in the conversation goes on, if there is one.
	TaskID string
	// Face is the door the question came through.
	Face string
	// Wait means that the caller need not know of the task before it has ended or waits for input.
	// An agent that answers at once may then be asked before anything is stored, and question and
	// answer are stored together.
	Wait bool
	// Via lists the agents whose work led to the question, as the caller claims. None of them is
	// asked again, and no agent at all when the chain is too long: the fault has task.ErrLoop.
	Via task.Chain
	// Budget bounds the work that the question may cause, as the caller claims. A used-up budget
	// is a fault with task.ErrBudget.
	Budget task.Budget
	// Once makes a repeated question harmless without a Context, too: a ClientID that the caller
	// gave the agent before leads to the conversation it opened then, while that exists.
	Once bool
}

// Asked is the result of an Ask.
type Asked struct {
	ConversationID string
	// Task is the work on the question as it was submitted or, with Wait or
	// Repeat, as it is now.
	Task task.Task
	// Said is the question and the answer, where the task ended at once.
	Said []Message
	// Seq is the message that holds the question: answers come after it.
	Seq int64
	// Repeat is true when the client id was seen before in the conversation:
	// then nothing was asked, and the rest is of the first time.
	Repeat bool
}

// Ask sends one question to one agent, even if the text mentions others. It creates an ordinary
// conversation of the caller. It returns once the question is on disk. A missing agent or
// conversation and one of another caller give the same NotFound fault; a TaskID that does not wait
// for input is a Conflict.
func (s *Service) Ask(ctx context.Context, actor ident.Actor, a Ask) (Asked, error) {
	if err := checkWrite(actor); err != nil {
		return Asked{}, err
	}
	d := Draft{ClientID: a.ClientID, Parts: a.Parts, Face: a.Face, Resumes: a.TaskID, Via: a.Via, Budget: a.Budget}
	if err := checkDraft(actor, d); err != nil {
		return Asked{}, err
	}
	if a.TaskID != "" {
		t, err := s.Task(ctx, actor, a.TaskID)
		if err == nil && a.Context != "" && a.Context != t.ConversationID {
			err = errNoTask(a.TaskID)
		}
		if err != nil {
			return Asked{}, err
		}
		a.Context = t.ConversationID
	}
	if a.Context == "" {
		return s.askAnew(ctx, actor, a, d)
	}
	members, _, err := s.readWriters(ctx, actor, a.Context)
	if err != nil {
		return Asked{}, err
	}
	m, err := s.findNamed(Conversation{Members: members}.Agents(), a.Agent)
	if err != nil {
		return Asked{}, fault.New(fault.NotFound,
			"There is no agent %.80q in this conversation. Leave the conversation out to begin a new one.", a.Agent)
	}
	if err := a.Via.CheckEntry(s.cfg.Hops.Hop(m.ID), m.Handle); err != nil {
		return Asked{}, err
	}
	d.To = m.ID
	return s.postQuestion(ctx, actor, a.Context, d)
}

// askAnew opens a conversation with the question, both or neither.
func (s *Service) askAnew(ctx context.Context, actor ident.Actor, a Ask, d Draft) (Asked, error) {
	ref, err := s.findAgent(ctx, actor, a.Agent)
	if err != nil {
		return Asked{}, err
	}
	if err := a.Via.CheckEntry(s.cfg.Hops.Hop(ref.ID), ref.Handle); err != nil {
		return Asked{}, err
	}
	room := emptyRoom(actor, snippet(a.Title, MaxTitleRunes))
	room.Members = append(room.Members, Member{Kind: "agent", ID: ref.ID, Handle: ref.Handle, Role: RoleMember,
		Remote: ref.Remote})
	var said []Message
	if a.Before != "" {
		parts := []task.Part{task.TextPart(a.Before)}
		if err := checkParts(actor, parts); err != nil {
			return Asked{}, asField(fault.New(fault.Invalid, "%s", fault.As(err).Safe), "before")
		}
		said = []Message{{ID: ident.NewID(), Sender: senderOf(actor), Kind: Text, Parts: parts, CreatedAt: clock.Now()}}
	}
	var first *FirstAsk
	if a.Once {
		first = &FirstAsk{CallerID: actor.ID, AgentID: ref.ID, ClientID: a.ClientID, ConversationID: room.ID}
		before, err := s.store.FirstAsked(ctx, *first)
		if err == nil {
			return s.askOnce(ctx, actor, a, before)
		}
		if !fault.Is(err, fault.NotFound) {
			return Asked{}, err
		}
	}
	if err := s.limits.allowRoom(actor); err != nil {
		return Asked{}, err
	}
	if actor.IsVisitor() { // rooms of visitors are counted separately
		if err := s.limits.limitRate(actor); err != nil {
			return Asked{}, err
		}
	}
	d.To = ref.ID
	p, told, err := s.composePost(ctx, actor, room.Members[0], room.Members, room.ID, d)
	if err == nil {
		err = s.storeDisclosures(ctx, actor, told)
	}
	if err != nil {
		return Asked{}, err
	}
	if a.Wait && ref.Instant && len(said)+len(p.Files) == 0 {
		if done, ok, err := s.askNow(ctx, room, p, first); ok {
			return done, nil
		} else if before, again := errors.AsType[*AskedBefore](err); again {
			return s.askOnce(ctx, actor, a, before.ConversationID)
		} else if err != nil {
			return Asked{}, err
		}
	}
	done, err := s.store.CreateAsking(ctx, room, said, p, first)
	if before, again := errors.AsType[*AskedBefore](err); again { // of several at once, one is the first
		return s.askOnce(ctx, actor, a, before.ConversationID)
	}
	if err != nil {
		return Asked{}, err
	}
	s.live.passMessage(done.Message)
	s.startTasks(done.Tasks)
	return askedOf(done), nil
}

// askOnce asks in the conversation that the same question opened before.
func (s *Service) askOnce(ctx context.Context, actor ident.Actor, a Ask, conversationID string) (Asked, error) {
	a.Context, a.Once = conversationID, false
	done, err := s.Ask(ctx, actor, a)
	if fault.Is(err, fault.NotFound) {
		err = fault.New(fault.Conflict, "This message was sent before, in a conversation you have left. Send it with another id.")
	}
	return done, err
}

func (s *Service) postQuestion(ctx context.Context, actor ident.Actor, id string, d Draft) (Asked, error) {
	done, err := s.Post(ctx, actor, id, d)
	if err != nil {
		return Asked{}, err
	}
	if done.Repeat {
		out := Asked{ConversationID: id, Seq: done.Message.Seq, Repeat: true}
		out.Task, err = s.store.TaskAsked(ctx, id, done.Message.Seq)
		if fault.Is(err, fault.NotFound) {
			err = fault.New(fault.Conflict, "This client id was used for a message that asked nobody. Give each message an id of its own.")
		}
		return out, err
	}
	if len(done.Tasks) == 0 {
		return Asked{}, fault.New(fault.Conflict, "The agent left the conversation at this moment, so nobody answers.")
	}
	return askedOf(done), nil
}

func askedOf(done Posted) Asked {
	return Asked{ConversationID: done.Message.ConversationID, Seq: done.Message.Seq, Task: done.Tasks[0]}
}

// visitorKind returns the kind of a visitor, "" for an actor with an account.
func visitorKind(kind string) string {
	if kind == string(ident.Guest) || kind == string(ident.Portal) {
		return kind
	}
	return ""
}

func errNoTask(id string) error { return fault.New(fault.NotFound, "You have no task %.80q.", id) }

// Task returns a task the actor asked for. Access to conversations is enough, because it belongs
// to asking.
func (s *Service) Task(ctx context.Context, actor ident.Actor, id string) (task.Task, error) {
	if err := checkRead(actor); err != nil {
		return task.Task{}, err
	}
	if !ident.ValidID(id) {
		return task.Task{}, errNoTask(id)
	}
	t, err := s.store.TaskByID(ctx, id)
	if fault.Is(err, fault.NotFound) || err == nil &&
		(t.CallerID != actor.ID || visitorKind(t.CallerKind) != visitorKind(string(actor.Kind))) {
		return task.Task{}, errNoTask(id)
	}
	return t, err
}

// StopTask cancels a task the actor asked for; one that has ended stays as it is. It does not wait
// until the agent has stopped.
func (s *Service) StopTask(ctx context.Context, actor ident.Actor, id, reason string) error {
	if err := checkWrite(actor); err != nil {
		return err
	}
	t, err := s.Task(ctx, actor, id)
	if err != nil || t.State.Terminal() {
		return err
	}
	return s.stopTask(ctx, t, reason)
}
