package notify

import (
	"context"
	"time"

	"agentsite/internal/account"
	"agentsite/internal/chat"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/task"
)

// Hooks stores hooks. What is absent is a NotFound fault.
type Hooks interface {
	// AddWebhook stores a webhook; a Conflict fault when its account has max.
	AddWebhook(ctx context.Context, h Hook, max int) error
	Webhook(ctx context.Context, accountID, id string) (Hook, error)
	Webhooks(ctx context.Context, accountID string) ([]Hook, error)
	// SetWebhook stores label, URL, host, events and state. A state of Active
	// forgets that it failed, another one what waits.
	SetWebhook(ctx context.Context, h Hook) error
	DropWebhook(ctx context.Context, accountID, id string) error
	// PutPush stores a push hook in the place of the one of its task that has
	// the same name, and returns it with that one's id; a Conflict fault when
	// the task has max others. If the task has got further than Submitted, one
	// that is new or was given up is told where it stands.
	PutPush(ctx context.Context, h Hook, max int) (Hook, error)
	// Pushes returns those of a task by their names.
	Pushes(ctx context.Context, taskID string) ([]Hook, error)
	// DropPush reports no error when there is none.
	DropPush(ctx context.Context, taskID, name string) error
}

// Queue is what waits to be sent.
type Queue interface {
	// DueHooks returns active hooks with something to send whose time has come,
	// longest due first, leaving out those for which there is no room. later is
	// when the next of the others comes, zero for never.
	DueHooks(ctx context.Context, now time.Time, busy Busy, limit int) (due []Hook, later time.Time, err error)
	// NextEvent returns the oldest event of a hook, with the hook as it is now;
	// NotFound when there is nothing to send.
	NextEvent(ctx context.Context, hookID string) (Hook, Event, error)
	// Settle stores what came of an attempt.
	Settle(ctx context.Context, o Outcome) error
	// AddAttempt notes an attempt that was no event's.
	AddAttempt(ctx context.Context, hookID string, a Attempt) error
	Attempts(ctx context.Context, hookID string, limit int) ([]Attempt, error)
}

// Busy says for which hooks there is no room now.
type Busy struct {
	IDs, Hosts, Owners []string
	// Trying leaves out all that did not take the last event.
	Trying bool
}

// Outcome is what came of trying to send an event.
type Outcome struct {
	HookID string
	Seq    int64 // of the event
	// Of is when the hook was last changed by its owner, as it was told. How a
	// hook fares that was changed since says nothing of what it is now.
	Of time.Time
	// Gone takes the event out: it was taken, given up or concerned nobody.
	Gone bool
	// Attempt is shown to the owner of a webhook; nil for none.
	Attempt *Attempt
	// Failures, FailingSince, NextAt and Reason are the hook's from now on.
	Failures     int
	FailingSince time.Time
	NextAt       time.Time
	Reason       string
	// Failed ends the hook, and Notice, if it has an account, says so.
	Failed bool
	Notice hub.Notice
}

// Store is all that the service keeps.
type Store interface {
	Hooks
	Queue
}

// Sealer keeps secrets unreadable at rest; see hub.Sealer.
type Sealer interface {
	Seal(plain, bound string) []byte
	Open(sealed []byte, bound string) (string, error)
}

// Conversations reads what events are about, with the rights of whoever is
// told.
type Conversations interface {
	Message(ctx context.Context, actor ident.Actor, conversationID string, seq int64) (chat.Message, error)
	Task(ctx context.Context, actor ident.Actor, id string) (task.Task, error)
	OwnTask(ctx context.Context, actor ident.Actor, id string) (task.Task, error)
}

// Accounts finds whoever is told.
type Accounts interface {
	AccountByID(ctx context.Context, id string) (account.Account, error)
}

// Pusher writes what a push hook is told of a task in a state, one body after
// the other, in a version of A2A. The task is as it was then.
type Pusher func(ctx context.Context, actor ident.Actor, t task.Task, version string) (bodies []any, err error)
