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

// Hooks stores hooks. Absent ones are NotFound faults.
type Hooks interface {
	// AddWebhook stores a webhook; a Conflict fault when its account has max.
	AddWebhook(ctx context.Context, h Hook, max int) error
	Webhook(ctx context.Context, accountID, id string) (Hook, error)
	Webhooks(ctx context.Context, accountID string) ([]Hook, error)
	// SetWebhook stores label, URL, host, events and state. The state Active clears earlier failures;
	// any other state drops waiting events.
	SetWebhook(ctx context.Context, h Hook) error
	DropWebhook(ctx context.Context, accountID, id string) error
	// PutPush stores a push hook and returns it. It replaces the hook of the task with the same name
	// and keeps that one's id. It returns a Conflict fault when the task has max others. If the task is
	// past Submitted, a new or failed hook gets an event with the current state.
	PutPush(ctx context.Context, h Hook, max int) (Hook, error)
	// Pushes returns the push hooks of a task by name.
	Pushes(ctx context.Context, taskID string) ([]Hook, error)
	// DropPush reports no error when there is none.
	DropPush(ctx context.Context, taskID, name string) error
}

// Queue holds the events that wait to be sent.
type Queue interface {
	// DueHooks returns active hooks with waiting events whose time has come, longest due first, without
	// those for which there is no room. later is the time at which the next other hook is due, zero for
	// never.
	DueHooks(ctx context.Context, now time.Time, busy Busy, limit int) (due []Hook, later time.Time, err error)
	// NextEvent returns the oldest event of a hook, with the hook as it is now;
	// NotFound when there is nothing to send.
	NextEvent(ctx context.Context, hookID string) (Hook, Event, error)
	// Settle stores the outcome of an attempt.
	Settle(ctx context.Context, o Outcome) error
	// AddAttempt stores an attempt that belongs to no event.
	AddAttempt(ctx context.Context, hookID string, a Attempt) error
	Attempts(ctx context.Context, hookID string, limit int) ([]Attempt, error)
}

// Busy lists the hooks for which there is no room now.
type Busy struct {
	IDs, Hosts, Owners []string
	// Trying leaves out all hooks whose last attempt failed.
	Trying bool
}

// Outcome is the result of an attempt to send an event.
type Outcome struct {
	HookID string
	Seq    int64 // of the event
	// Of is the time of the owner's last change to the hook, read before the attempt. If the owner has
	// changed the hook since, the outcome does not apply to its new state.
	Of time.Time
	// Gone removes the event: it was accepted, given up or no longer concerned the owner.
	Gone bool
	// Attempt is shown to the owner of a webhook; nil for none.
	Attempt *Attempt
	// Failures, FailingSince, NextAt and Reason are the new values of the hook.
	Failures     int
	FailingSince time.Time
	NextAt       time.Time
	Reason       string
	// Failed stops the hook, and Notice informs its account if it has one.
	Failed bool
	Notice hub.Notice
}

// Store holds all data of the service.
type Store interface {
	Hooks
	Queue
}

// Sealer keeps secrets unreadable at rest; see hub.Sealer.
type Sealer interface {
	Seal(plain, bound string) []byte
	Open(sealed []byte, bound string) (string, error)
}

// Conversations reads the tasks and messages of events, with the rights of the hook's owner.
type Conversations interface {
	Message(ctx context.Context, actor ident.Actor, conversationID string, seq int64) (chat.Message, error)
	Task(ctx context.Context, actor ident.Actor, id string) (task.Task, error)
	OwnTask(ctx context.Context, actor ident.Actor, id string) (task.Task, error)
}

// Accounts finds the owners of hooks.
type Accounts interface {
	AccountByID(ctx context.Context, id string) (account.Account, error)
}

// Pusher builds the bodies for a push hook, one after the other, from a task in a state, in a version
// of A2A. The task is given as it was at the event.
type Pusher func(ctx context.Context, actor ident.Actor, t task.Task, version string) (bodies []any, err error)
