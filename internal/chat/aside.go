package chat

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/task"
)

// Aside is a question that an agent asks another one while it works on a task. The question and the answer stand in a
// conversation of their own, which belongs to the person behind the task and is used again for the next question of
// the same two agents in the same conversation.
type Aside struct {
	// TaskID is the id of the task that the asking agent works on.
	TaskID string
	// Agent is the handle of the agent that is asked.
	Agent string
	Text  string
	// CallID makes a retry harmless: with the same id in the same task, the first result is returned.
	CallID string
	// Earlier is the number of questions that the agent asked before in this task. Each leaves less for the next.
	Earlier int
	// Resumes is the id of the waiting task that Text is the input of, "" for a new question, and Answers the seq of that
	// task's question, 0 for any. Relayed is true if Text has the words of the person, who was shown that question.
	Resumes string
	Answers int64
	Relayed bool
}

// Asides asks agents for other agents.
type Asides struct{ svc *Service }

// faceAgent is the Face of questions of agents, FaceRelay that of the person's answers. Only this package gives them.
const (
	faceAgent = "agent"
	FaceRelay = "relay"
)

// Ask sends a question of a working agent to another one. The person behind the task needs the right to talk to
// that agent; the chain of agents, the time and the number of further calls only shrink. It returns after the question
// is stored durably. The fault has task.ErrLoop for agents that ask each other in a circle, and task.ErrBudget if
// nothing is left.
func (d *Asides) Ask(ctx context.Context, a Aside) (Asked, error) {
	s := d.svc
	t, err := s.store.TaskByID(ctx, a.TaskID)
	if err != nil {
		return Asked{}, err
	}
	if t.State.Terminal() {
		return Asked{}, fault.New(fault.Conflict, "Nobody was asked: the work for which this is asked has ended.")
	}
	actor := ActorThrough(t)
	parts := []task.Part{task.TextPart(a.Text)}
	if err := checkParts(actor, parts); err != nil {
		return Asked{}, err
	}
	ref, err := s.findAgent(ctx, actor, a.Agent)
	if err != nil {
		return Asked{}, err
	}
	k, err := d.newTask(ctx, t, a, ref)
	if err != nil {
		return Asked{}, err
	}
	p := Post{Resumes: a.Resumes, Answers: a.Answers, Title: TitleOf(parts), Message: Message{ID: ident.NewID(), ClientID: t.ID + "/" + a.CallID, Kind: Text,
		Sender: Sender{Kind: "agent", ID: t.AgentID, Handle: t.AgentHandle}, Parts: parts, CreatedAt: k.CreatedAt}}
	if a.Relayed && a.Resumes != "" {
		k.Face = FaceRelay
	}
	first := FirstAsk{CallerID: t.CallerID, AgentID: ref.ID, ClientID: "aside/" + t.ConversationID + "/" + t.AgentID}
	ctx = context.WithoutCancel(ctx) // An end of the asking task must not hide that the question is stored.
	for range 2 {
		out, err := d.post(ctx, actor, p, k, ref, first)
		if _, ok := errors.AsType[*AskedBefore](err); ok {
			continue // Another question of the same agents has opened the conversation meanwhile.
		}
		if err == nil && !out.Repeat && a.Resumes == "" {
			d.note(ctx, t, out, ref, a.Text)
		}
		if err == nil && !out.Task.State.Terminal() {
			err = d.checkAsker(ctx, t.ID, out.Task)
		}
		return out, err
	}
	return Asked{}, fault.New(fault.Conflict,
		"%s was not asked: the person has left the conversation in which %s asks it.", ref.Handle, t.AgentHandle)
}

// ActorThrough returns the person behind a task as an actor of its agent. An operator has only the rights of a person
// then.
func ActorThrough(t task.Task) ident.Actor {
	a := callerOf(t)
	a.Through = true
	if a.Kind == ident.Operator {
		a.Kind = ident.Person
	}
	return a
}

// newTask returns the task of the question, within the limits of the work that t is a part of.
func (d *Asides) newTask(ctx context.Context, t task.Task, a Aside, ref AgentRef) (task.Task, error) {
	s := d.svc
	via := t.Via.AppendHop(s.cfg.Hops.Hop(t.AgentID))
	if err := via.CheckEntry(s.cfg.Hops.Hop(ref.ID), ref.Handle); err != nil {
		return task.Task{}, err
	}
	left, err := s.Allowance(ctx, t)
	if err != nil {
		return task.Task{}, err
	}
	now := clock.Now()
	if left.Calls <= a.Earlier || !now.Before(left.Until) || int64(len(a.Text)) >= left.Bytes {
		return task.Task{}, fault.Wrap(fault.Invalid, task.ErrBudget,
			"%s was not asked: the calls, the time or the text that was allowed for all of this is used up.",
			ref.Handle)
	}
	left = left.SpendCall(len(a.Text))
	// Half of the rest, so that the whole tree of questions stays small.
	left.Calls = max(left.Calls-a.Earlier, 0) / 2
	return task.Task{ID: ident.NewID(), AgentID: ref.ID, AgentHandle: ref.Handle, CallerKind: t.CallerKind,
		CallerID: t.CallerID, CallerHandle: t.CallerHandle, CallerGroup: t.CallerGroup, State: task.Submitted,
		Face: faceAgent, Via: via, Budget: left, CreatedAt: now, UpdatedAt: now}, nil
}

// post stores the question p with its task k in the conversation of the two agents, which it opens if there is
// none. It returns an *AskedBefore if another question opened one at the same time.
func (d *Asides) post(ctx context.Context, actor ident.Actor, p Post, k task.Task, ref AgentRef,
	first FirstAsk) (Asked, error) {
	s := d.svc
	id, err := s.store.FirstAsked(ctx, first)
	if err == nil {
		var members []Member
		if members, _, err = s.readWriters(ctx, actor, id); err == nil {
			if _, in := findMember(members, "agent", ref.ID); !in {
				return Asked{}, fault.New(fault.Conflict,
					"%s was not asked: it was removed from its conversation with %s.", ref.Handle,
					p.Message.Sender.Handle)
			}
		}
	}
	opened := err == nil
	if err != nil && !fault.Is(err, fault.NotFound) {
		return Asked{}, err
	}
	if opened {
		if said, err := s.store.Said(ctx, id, p.Message.Sender.ID, p.Message.ClientID); err == nil {
			return d.repeat(ctx, said)
		}
	}
	room := emptyRoom(actor, snippet(p.Message.Sender.Handle+" asks "+ref.Handle, MaxTitleRunes))
	if opened {
		room.ID = id
	}
	p.Message.ConversationID, k.ConversationID = room.ID, room.ID
	if err := s.authorizeCall(ctx, &k, len(task.PlainText(p.Message.Parts))); err != nil {
		return Asked{}, err
	}
	p.Ask = []task.Task{k}
	var done Posted
	defer func() { s.admissions.withdraw(p.Ask, done.Tasks) }()
	if opened {
		done, err = s.store.Append(ctx, p)
	} else {
		if err := s.rooms.allow(ctx, actor); err != nil {
			return Asked{}, err
		}
		room.Members = append(room.Members, Member{Kind: "agent", ID: ref.ID, Handle: ref.Handle, Role: RoleMember,
			Remote: ref.Remote})
		first.ConversationID = room.ID
		if done, err = s.store.CreateAsking(ctx, room, nil, p, &first); err == nil {
			// Archived, so that it is not in the person's way. The event in the other conversation links to it.
			mine := Mine{Archived: true}
			if err := s.store.SetMine(ctx, room.ID, memberKind(actor), actor.ID, mine); err != nil {
				s.cfg.Log.Warn("conversation of two agents not archived", "conversation", room.ID, "error", err)
			}
		}
	}
	switch {
	case err != nil:
		return Asked{}, err
	case done.Repeat:
		return d.repeat(ctx, done.Message)
	case len(done.Tasks) == 0:
		return Asked{}, fault.New(fault.Conflict, "%s left the conversation at this moment, so nobody answers.",
			ref.Handle)
	}
	s.live.passMessage(done.Message)
	s.startTasks(done)
	return askedOf(done), nil
}

// repeat returns the result of a question that was stored before.
func (d *Asides) repeat(ctx context.Context, said Message) (Asked, error) {
	s := d.svc
	t, err := s.store.TaskAsked(ctx, said.ConversationID, said.Seq)
	return Asked{ConversationID: said.ConversationID, Seq: said.Seq, Task: t, Repeat: true}, err
}

// asideMeta is the metadata of an event about a question of an agent.
type asideMeta struct {
	ConversationID string `json:"aside"`
}

// note shows the question in the conversation of the task, as an event of the asking agent.
func (d *Asides) note(ctx context.Context, t task.Task, asked Asked, ref AgentRef, text string) {
	s := d.svc
	e := newEvent(Sender{Kind: "agent", ID: t.AgentID, Handle: t.AgentHandle}, "Asked %s: “%s”", ref.Handle,
		snippet(strings.Join(strings.Fields(text), " "), 200))
	e.Parts[0].Metadata, _ = json.Marshal(asideMeta{asked.ConversationID}) // cannot fail, because it is a string
	e.ConversationID = t.ConversationID
	done, err := s.store.Append(ctx, Post{Message: e})
	if err != nil {
		s.cfg.Log.Warn("note about a question of an agent not stored", "task", t.ID, "error", err)
		return
	}
	s.live.passMessage(done.Message)
}

// AsideOf returns the id of the conversation with the question that an event is about; "" for all other messages.
// Only its owner may read that conversation.
func (m Message) AsideOf() string {
	if m.Kind != Event || m.Sender.Kind != "agent" || len(m.Parts) == 0 {
		return ""
	}
	var meta asideMeta
	if json.Unmarshal(m.Parts[0].Metadata, &meta) != nil || !ident.ValidID(meta.ConversationID) {
		return ""
	}
	return meta.ConversationID
}

// Await waits until a task that the actor asked for ends or needs input, and returns it with the message of that
// outcome. It returns at once for a task that has ended.
func (d *Asides) Await(ctx context.Context, actor ident.Actor, t task.Task) (task.Task, Message, error) {
	s := d.svc
	sub, err := s.Subscribe(ctx, actor, t.ConversationID, t.MessageSeq)
	if err != nil {
		return t, Message{}, err
	}
	defer sub.Close()
	for {
		u, err := sub.Next(ctx)
		if err != nil {
			return t, Message{}, err
		}
		if m := u.Message; m != nil && m.TaskID == t.ID && m.Sender.Kind == "agent" && !m.Kind.Amends() {
			t.State, t.Reason, t.AnswerSeq = m.TaskState, m.Reason, m.Seq
			return t, *m, nil
		}
	}
}
