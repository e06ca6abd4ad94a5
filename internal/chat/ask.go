package chat

import (
	"context"
	"errors"
	"slices"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/task"
)

// Ask is a question to one agent that arrives at a protocol endpoint (A2A, MCP, OpenAI).
type Ask struct {
	Agent string
	// Context is the id of an existing conversation in which the agent must be a member; "" opens a new
	// one of the caller and the agent.
	Context string
	// ClientID makes a retry harmless: the same id in the same conversation returns the first result.
	ClientID string
	Parts    []task.Part
	// Before is the earlier conversation as the caller reports it. It is stored as a first message that
	// asks no agent; only allowed for a new conversation.
	Before string
	// Title is the title of a new conversation; "" derives it from the question.
	Title string
	// TaskID is the id of a waiting task of the caller that gets Parts as its input; Context may then be "". If it is
	// "", a task of the caller that waits in the conversation is continued, if there is one.
	TaskID string
	// Face names the protocol endpoint that received the question.
	Face string
	// Relayed states that Parts has the person's own words, which the agents in Via passed on. It counts for the input
	// of waiting tasks from other portals, which could as well invent the person.
	Relayed bool
	// Wait means that the caller need not know of the task before it has ended or waits for input. An instant agent
	// may then be asked before anything is stored, and question and answer are stored in one transaction.
	Wait bool
	// Via lists the agents whose work led to the question, as the caller claims. An agent in the list is
	// not asked again, and no agent is asked if the list is too long; the fault then has task.ErrLoop.
	Via task.Chain
	// Budget limits the work that the question may cause, as the caller claims. If nothing is left, the
	// fault has task.ErrBudget.
	Budget task.Budget
	// Once makes a retry harmless even without a Context: a ClientID that the caller sent to the agent
	// before returns to the conversation that was opened then, if that still exists.
	Once bool
}

// Asked is the result of Service.Ask.
type Asked struct {
	ConversationID string
	// Task is the task of the question: as submitted or, with Wait or Repeat, in its current state.
	Task task.Task
	// Said holds the question and the answer if the task ended at once; otherwise nil.
	Said []Message
	// Seq is the seq of the question's message; answers have greater ones.
	Seq int64
	// Repeat is true when the client id was seen before in the conversation: nothing was asked, and the
	// other fields describe the first call.
	Repeat bool
}

// Ask sends a question to one agent, even if the text mentions others, in an ordinary conversation of the caller. It
// returns after the question is stored durably. A missing agent or conversation, and one of another caller, give the
// same NotFound fault; a TaskID that does not wait for input is a Conflict fault.
func (s *Service) Ask(ctx context.Context, actor ident.Actor, a Ask) (Asked, error) {
	if err := checkWrite(actor); err != nil {
		return Asked{}, err
	}
	d := Draft{ClientID: a.ClientID, Parts: a.Parts, Face: a.Face, Resumes: a.TaskID, Via: a.Via, Budget: a.Budget,
		refuseBusy: true}
	if a.Relayed && a.TaskID != "" && actor.Kind == ident.Portal {
		d.Face = FaceRelay
	}
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

// askAnew stores a conversation and its first question in one transaction, so that neither is stored alone.
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
	if err := s.rooms.allow(ctx, actor); err != nil {
		return Asked{}, err
	}
	if err := s.limits.limitText(ctx, actor, append(slices.Clip(d.Parts), task.TextPart(a.Before))); err != nil {
		return Asked{}, err
	}
	// allowRoom counts a visitor's conversation in a limit of its own, so the question is counted here.
	if actor.IsVisitor() {
		if err := s.limits.limitRate(actor); err != nil {
			return Asked{}, err
		}
	}
	d.To = ref.ID
	p, err := s.composePost(ctx, actor, room.Members[0], room.Members, room.ID, d)
	if err != nil {
		return Asked{}, err
	}
	var done Posted
	defer func() { s.admissions.withdraw(p.Ask, done.Tasks) }()
	if a.Wait && ref.Instant && len(said)+len(p.Files) == 0 {
		if now, ok, err := s.askNow(ctx, room, p, first); ok {
			return now, nil
		} else if before, again := errors.AsType[*AskedBefore](err); again {
			return s.askOnce(ctx, actor, a, before.ConversationID)
		} else if err != nil {
			return Asked{}, err
		}
	}
	done, err = s.store.CreateAsking(ctx, room, said, p, first)
	// Of several equal requests at the same time, only the first creates a conversation.
	if before, again := errors.AsType[*AskedBefore](err); again {
		return s.askOnce(ctx, actor, a, before.ConversationID)
	}
	if err != nil {
		return Asked{}, err
	}
	s.live.passMessage(done.Message)
	s.startTasks(done)
	return askedOf(done), nil
}

// askOnce repeats a question in conversationID, which an earlier question with the same ClientID created. The store
// then returns the first result. A Conflict fault if the actor has left that conversation.
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

// visitorKind returns the kind of a visitor (guest or portal), "" for an actor with an account.
func visitorKind(kind string) string {
	if kind == string(ident.Guest) || kind == string(ident.Portal) {
		return kind
	}
	return ""
}

func errNoTask(id string) error { return fault.New(fault.NotFound, "You have no task %.80q.", id) }

// Task returns a task that the actor asked for. The right to read conversations is enough, because the
// task belongs to the question the actor asked.
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

// StopTask cancels a task that the actor asked for; a task in a final state stays as it is. It returns after the end of
// the task is stored.
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
