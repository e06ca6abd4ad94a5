package chat

import (
	"context"
	"slices"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/task"
)

// Regenerate regenerates the answer seq: its agent is asked for another answer to the same message. The new
// answer takes the place of the old one, which stays readable. Unfinished work of the agent on that
// message is canceled first; a fault Unavailable if it does not stop within goWait.
func (s *Service) Regenerate(ctx context.Context, actor ident.Actor, id string, seq int64, face string) (task.Task, error) {
	members, me, err := s.readWriters(ctx, actor, id)
	if err == nil {
		err = s.Contacts.checkDelivery(ctx, actor, members)
	}
	if err != nil {
		return task.Task{}, err
	}
	old, err := s.findAnswer(ctx, me, id, seq)
	if err != nil {
		return task.Task{}, err
	}
	before, err := s.store.TaskByID(ctx, old.TaskID)
	if fault.Is(err, fault.NotFound) {
		err = fault.New(fault.Conflict, "What this answers is not known any more.")
	}
	if err != nil {
		return task.Task{}, err
	}
	ask, err := s.readMessage(ctx, me, id, before.MessageSeq)
	if fault.Is(err, fault.NotFound) || err == nil && !ask.Now.UnsaidAt.IsZero() {
		err = fault.New(fault.Conflict, "The message that this answers was deleted, or is not for you to see.")
	}
	if err != nil {
		return task.Task{}, err
	}
	if _, ok := findMember(members, "agent", old.Sender.ID); !ok {
		return task.Task{}, fault.New(fault.Conflict, "%s is not in this conversation any more.", old.Sender.Handle)
	}
	if err := s.limits.limitRate(actor); err != nil {
		return task.Task{}, err
	}
	ref, err := s.memberAgent(ctx, actor, Member{ID: old.Sender.ID, Handle: old.Sender.Handle})
	if err != nil {
		return task.Task{}, err
	}
	shares, _, err := s.discloseTo(ctx, actor, Draft{MustTell: face == facePage}, []AgentRef{ref})
	if err != nil {
		return task.Task{}, err
	}
	now := clock.Now()
	t := task.Task{
		ID: ident.NewID(), ConversationID: id, AgentID: old.Sender.ID, AgentHandle: old.Sender.Handle,
		MessageSeq: ask.Seq,
		CallerKind: string(actor.Kind), CallerID: actor.ID, CallerHandle: senderOf(actor).Handle, State: task.Submitted,
		CallerGroup: actor.AddrGroup(), Face: face,
		RootSeq: before.RootSeq, Hop: before.Hop, Replaces: old.Seq, Share: string(shares[ref.ID]), Via: before.Via,
		Budget: before.Budget, CreatedAt: now, UpdatedAt: now,
	}
	if err := s.admissions.admitTask(ctx, t); err != nil {
		return task.Task{}, err
	}
	var done task.Task
	defer func() { s.admissions.withdraw([]task.Task{t}, []task.Task{done}) }()
	if err := s.directory.Admit(ctx, actor, old.Sender.Handle, len(task.PlainText(ask.Parts))); err != nil {
		return task.Task{}, err
	}
	done, err = s.store.Ask(ctx, t)
	if fault.Is(err, fault.Conflict) {
		// The agent has an unfinished task for this message. That task is canceled; if it completed
		// meanwhile, its answer is the one to replace.
		if t.Replaces, err = s.letGo(ctx, t); err != nil {
			return task.Task{}, err
		}
		done, err = s.store.Ask(ctx, t)
	}
	if err != nil {
		return task.Task{}, err
	}
	s.startTasks(Posted{Tasks: []task.Task{done}})
	return done, nil
}

// maxAgain bounds how many regenerated answers findAnswer follows, because each one costs a read of the store.
const maxAgain = 1000

// findAnswer returns the newest answer in the chain of regenerated answers that begins at seq; a
// Conflict fault if seq is not a finished answer of an agent.
func (s *Service) findAnswer(ctx context.Context, me Member, id string, seq int64) (Message, error) {
	for range maxAgain {
		m, err := s.readMessage(ctx, me, id, seq)
		switch {
		case err != nil:
			return m, err
		case m.Sender.Kind != "agent" || m.TaskID == "" || !m.TaskState.Terminal():
			return m, fault.New(fault.Conflict, "Only an agent's answer can be given again.")
		case m.Now.NewerSeq <= m.Seq:
			return m, nil
		}
		seq = m.Now.NewerSeq
	}
	return Message{}, fault.New(fault.Conflict, "This answer was given again too often.")
}

const (
	// goWait is the longest wait for canceled work to end; agents stop within 500 ms.
	goWait = 2 * time.Second
	goTick = 20 * time.Millisecond
)

// letGo cancels the agent's tasks for the message of t, waits at most goWait until they are final, and returns the
// seq of the answer that t replaces: t.Replaces, or a later one if a task completed before it was canceled.
func (s *Service) letGo(ctx context.Context, t task.Task) (replaces int64, err error) {
	list, err := s.store.ActiveTasks(ctx, t.ConversationID, "")
	if err != nil {
		return 0, err
	}
	replaces = t.Replaces
	list = slices.DeleteFunc(list, func(x task.Task) bool {
		return x.AgentID != t.AgentID ||
			x.MessageSeq != t.MessageSeq
	})
	for _, x := range list {
		if err := s.stopTask(ctx, x, "Asked for again."); err != nil {
			return 0, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, goWait)
	defer cancel()
	tick := time.NewTicker(goTick)
	defer tick.Stop()
	for _, x := range list {
		for {
			now, err := s.store.TaskByID(ctx, x.ID)
			if err != nil {
				return 0, err
			}
			if now.State.Terminal() {
				if now.State == task.Completed {
					replaces = max(replaces, now.AnswerSeq)
				}
				break
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				return 0, fault.New(fault.Unavailable, "The agent has not stopped yet. Try again in a moment.")
			}
		}
	}
	return replaces, nil
}
