package chat

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/task"
)

// Admission decides whether the runtime takes another task. A task that it admitted is never dropped.
type Admission interface {
	// Admit admits a task before it is stored, or refuses it with the time until there is probably
	// room. It never blocks.
	Admit(ctx context.Context, t task.Task) (wait time.Duration, ok bool)
	// Withdraw gives back the places of tasks that were admitted but are not stored. Other ids change
	// nothing.
	Withdraw(taskIDs ...string)
}

// admissions asks the runtime, and then the owners of agents, whether tasks may be submitted.
type admissions struct {
	runtime   Admission // nil admits all tasks
	store     Tasks
	directory Directory
}

// admitTask returns a RateLimited fault with RetryAfter if the runtime refuses the task. A message to a
// task that waits for input is never refused, because that task was admitted when it was submitted.
func (a *admissions) admitTask(ctx context.Context, t task.Task) error {
	if a.runtime == nil {
		return nil
	}
	wait, ok := a.runtime.Admit(ctx, t)
	if ok {
		return nil
	}
	if t.Hop == 0 && t.Replaces == 0 {
		active, err := a.store.ActiveTasks(ctx, t.ConversationID, "")
		if err != nil {
			return err
		}
		if slices.ContainsFunc(active, func(x task.Task) bool {
			return !x.State.Active() && x.AgentID == t.AgentID && x.CallerID == t.CallerID
		}) {
			return nil
		}
	}
	return fault.Limited(time.Duration(task.WaitSeconds(wait))*time.Second, "%s", task.BusyReason(t.AgentHandle, wait))
}

// admitPost admits the tasks of a post and counts the calls for the agents' owners. A refused task moves
// from p.Ask to p.Refused; with d.refuseBusy it is a fault instead. After an error no task is admitted.
func (a *admissions) admitPost(ctx context.Context, actor ident.Actor, d Draft, p *Post, size int) (err error) {
	ask := p.Ask
	defer func() {
		if err != nil {
			a.withdraw(ask, nil)
		}
	}()
	p.Ask = nil
	for _, t := range ask {
		err := a.admitTask(ctx, t)
		if fault.Is(err, fault.RateLimited) && !d.refuseBusy {
			p.Refused = append(p.Refused, refuseTask(t, fault.As(err)))
			continue
		}
		if err != nil {
			return err
		}
		if err := a.directory.Admit(ctx, actor, t.AgentHandle, size); err != nil {
			return err
		}
		p.Ask = append(p.Ask, t)
	}
	return nil
}

// withdraw gives back the places of the asked tasks that are not among the stored ones.
func (a *admissions) withdraw(asked, stored []task.Task) {
	if a.runtime == nil {
		return
	}
	var ids []string
	for _, t := range asked {
		if !slices.ContainsFunc(stored, func(x task.Task) bool { return x.ID == t.ID }) {
			ids = append(ids, t.ID)
		}
	}
	if len(ids) > 0 {
		a.runtime.Withdraw(ids...)
	}
}

// refuseTask returns the end of a task that was not admitted, with the message that shows it.
func refuseTask(t task.Task, why *fault.Error) Ended {
	t.State, t.Reason, t.UpdatedAt = task.Rejected, why.Safe, clock.Now()
	m := Message{ConversationID: t.ConversationID, ID: ident.NewID(), ClientID: t.ID,
		Sender: Sender{Kind: "agent", ID: t.AgentID, Handle: t.AgentHandle}, Kind: Event,
		TaskID: t.ID, TaskState: t.State, Reason: t.Reason, CreatedAt: t.UpdatedAt}
	m.Parts = []task.Part{busyPart(t.Reason, why.RetryAfter)}
	return Ended{Task: t, Message: m}
}

// busyMeta is the metadata of the only part of a message that ends a task because its agent was busy.
type busyMeta struct {
	RetryAfter int64 `json:"retry_after"` // seconds, at least 1
}

func busyPart(reason string, wait time.Duration) task.Part {
	p := task.TextPart(reason)
	p.Metadata, _ = json.Marshal(busyMeta{task.WaitSeconds(wait)}) // cannot fail, because it is a number
	return p
}

// RetryAfter returns the time after which a task that ended with m may be asked for again, because its
// agent was busy; ok is false for all other messages.
func (m Message) RetryAfter() (wait time.Duration, ok bool) {
	if m.Kind != Event || m.Sender.Kind != "agent" || m.TaskState != task.Rejected || len(m.Parts) == 0 {
		return 0, false
	}
	var meta busyMeta
	if json.Unmarshal(m.Parts[0].Metadata, &meta) != nil || meta.RetryAfter < 1 {
		return 0, false
	}
	return time.Duration(meta.RetryAfter) * time.Second, true
}
