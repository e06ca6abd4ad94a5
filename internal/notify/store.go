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

// Hooks stores hooks. Methods return a NotFound fault for a hook that does not exist.
type Hooks interface {
	// AddWebhook stores a webhook. It returns a Conflict fault when the account has max webhooks
	// already.
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
	// Pushes returns the push hooks of a task, ordered by name.
	Pushes(ctx context.Context, taskID string) ([]Hook, error)
	// DropPush deletes a push hook. It returns no error if the hook does not exist.
	DropPush(ctx context.Context, taskID, name string) error
}

// Queue holds the events that wait to be sent, in order per hook.
type Queue interface {
	// DueHooks returns up to limit active hooks with waiting events that are due, the longest due
	// first, without those that busy excludes. later is the time at which the next other hook is
	// due, zero if there is none.
	DueHooks(ctx context.Context, now time.Time, busy Busy, limit int) (due []Hook, later time.Time, err error)
	// NextEvent returns the oldest waiting event of a hook, with the hook as it is stored now; a
	// NotFound fault when nothing waits or the hook is not active.
	NextEvent(ctx context.Context, hookID string) (Hook, Event, error)
	// Settle stores the outcome of an attempt to send an event, in one transaction.
	Settle(ctx context.Context, o Outcome) error
	// AddAttempt stores an attempt without an event, such as a test.
	AddAttempt(ctx context.Context, hookID string, a Attempt) error
	Attempts(ctx context.Context, hookID string, limit int) ([]Attempt, error)
}

// Busy lists the hooks that DueHooks must leave out: those with these ids, hosts or owners.
type Busy struct {
	IDs, Hosts, Owners []string
	// Trying leaves out, in addition, all hooks with a failed last attempt.
	Trying bool
}

// Outcome is the result of an attempt to send an event, for Settle to store.
type Outcome struct {
	HookID string
	Seq    int64 // seq of the event
	// Of is the time of the owner's last change to the hook, read before the attempt. If the owner has
	// changed the hook since, the outcome does not apply to its new state.
	Of time.Time
	// Gone deletes the event: it was accepted, is too old, or its owner may no longer read it.
	Gone bool
	// Attempt is stored for the owner of a webhook to see; nil if no request was made.
	Attempt *Attempt
	// Failures, FailingSince, NextAt and Reason are the new values of the hook's fields of the same
	// names.
	Failures     int
	FailingSince time.Time
	NextAt       time.Time
	Reason       string
	// Failed stops the hook. Notice is then stored for its account, if it has one.
	Failed bool
	Notice hub.Notice
}

// Store holds all data of the service; the database implements it.
type Store interface {
	Hooks
	Queue
}

// Sealer encrypts secrets for storage. See hub.Sealer for the meaning of the context.
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

// Accounts finds the accounts that own hooks.
type Accounts interface {
	AccountByID(ctx context.Context, id string) (account.Account, error)
}

// Pusher builds the bodies of the requests for a push hook, in the order of sending, in the JSON of
// a version of A2A. t is the task as it was at the event, read with the actor's rights.
type Pusher func(ctx context.Context, actor ident.Actor, t task.Task, version string) (bodies []any, err error)
