package task

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"agentsite/internal/fault"
	"agentsite/internal/ident"
)

// Filter selects tasks of one caller for List.
type Filter struct {
	CallerKind string
	CallerID   string
	// ConversationID and State restrict the list if they are set.
	ConversationID string
	State          State
	// Before is the id of the last task of the previous page, "" for the first page. The newest
	// tasks come first.
	Before string
	Limit  int
}

// Query selects the tasks of one caller at one agent for Find.
type Query struct {
	AgentID string
	// ConversationID, State and After restrict the list if they are set. After selects tasks with a
	// later last change.
	ConversationID string
	State          State
	After          time.Time
	// From is the position of the last task of the previous page, zero for the first page.
	From  Point
	Limit int
}

// Point is a position in a list ordered by the time of the last change and id.
type Point struct {
	At time.Time
	ID string
}

// PageBytes bounds the tasks on one page of a list, with their artifacts: a page ends with the task that
// exceeds it.
const PageBytes = 512 << 10

// Page is a page of a list of tasks.
type Page struct {
	Tasks []Task
	Total int  // number of tasks on all pages
	More  bool // there may be further tasks
}

// Reads finds tasks in the database. A task that does not exist is a NotFound fault.
type Reads interface {
	TaskByID(ctx context.Context, id string) (Task, error)
	// ListTasks returns the newest tasks of a filter. cut reports that it ended early at PageBytes.
	ListTasks(ctx context.Context, f Filter) (list []Task, cut bool, err error)
	// FindTasks returns a page of a caller's tasks, the last changed first.
	FindTasks(ctx context.Context, callerID string, q Query) (Page, error)
	// ActiveTasks returns the tasks of a conversation or of a caller that are in no final state. An
	// empty argument selects nothing, not everything.
	ActiveTasks(ctx context.Context, conversationID, callerID string) ([]Task, error)
}

// Queue is the durable list of tasks that the runtime has to run.
type Queue interface {
	// NextFence returns the number of a process that begins to run tasks. It is greater than all
	// earlier ones.
	NextFence(ctx context.Context) (int64, error)
	// Queued returns up to limit tasks after a position in the queue, oldest first, among them those
	// that an earlier process began and did not finish. It changes nothing.
	Queued(ctx context.Context, after int64, limit int) ([]Queued, error)
	// Begin marks a task as working, counts an attempt and returns the task. Call it when its driver
	// starts. A task that has ended or that a process with a greater fence has begun is a Conflict
	// fault, a deleted one a NotFound fault.
	Begin(ctx context.Context, id string, fence int64) (Task, error)
	// SaveCheckpoint stores a driver's state; a Conflict fault when the task is in a final state.
	SaveCheckpoint(ctx context.Context, id string, state json.RawMessage) error
	// LastCheckpoint returns the newest checkpoint of the agent's earlier tasks in the
	// conversation, before the task with the id before; nil when there is none. A callerID
	// restricts it to tasks of that caller.
	LastCheckpoint(ctx context.Context, conversationID, agentID, callerID, before string) (json.RawMessage, error)
}

// Queued is a task in the queue, with the facts that decide when it starts.
type Queued struct {
	Position       int64 // in the queue; greater ones were submitted later
	ID             string
	ConversationID string
	AgentID        string
	CallerKind     string
	CallerID       string
	CallerGroup    string
	AgentHandle    string
	MessageSeq     int64
	// Pushed is true if the caller has a push hook for the task, and so need not wait for it.
	Pushed bool
}

// Runner is the port through which services notify the runtime of waiting tasks and stop running ones.
type Runner interface {
	// Wake notifies the runtime that tasks wait in the queue. It never blocks.
	Wake()
	// Stop asks a running task to end as canceled, and reports whether the task was running in this
	// process.
	Stop(taskID string) bool
	// AwaitStop waits until the end of a task that Stop found running is stored, so that a stop that was confirmed
	// outlives the process. It is an Unavailable fault if that takes too long.
	AwaitStop(ctx context.Context, taskID string) error
	// Ended notifies the runtime that a task which was not running has ended, so that its agent is
	// notified if it had been asked. It never blocks.
	Ended(t Task)
	// WaitOf estimates when a task starts that waits for a place; false if it does not wait.
	WaitOf(taskID string) (Wait, bool)
}

// Ender ends a task that is not running. The service that owns transcripts implements it, because every
// end is a message.
type Ender interface {
	EndTask(ctx context.Context, t Task, r Result) error
}

// Service lists and stops tasks and checks the actor's rights. Create it with NewService; it is
// safe for concurrent use.
type Service struct {
	store  Reads
	runner Runner
	ender  Ender
}

// NewService returns a service over the given storage and runtime.
func NewService(store Reads, runner Runner, ender Ender) *Service {
	return &Service{store, runner, ender}
}

// WaitOf estimates when a task starts that waits for a place; false if it does not wait.
func (s *Service) WaitOf(t Task) (Wait, bool) {
	if !t.State.Active() {
		return Wait{}, false
	}
	return s.runner.WaitOf(t.ID)
}

func checkAccess(actor ident.Actor) error {
	if actor.ID == "" {
		return fault.New(fault.Unauthenticated, "Sign in to see tasks.")
	}
	if !actor.May(ident.Tasks) {
		return fault.New(fault.Forbidden, "%s", ident.Tasks.DescribeMissing())
	}
	return nil
}

// Get returns one of the actor's own tasks; a NotFound fault for any other id. A token needs the
// scope for tasks.
func (s *Service) Get(ctx context.Context, actor ident.Actor, id string) (Task, error) {
	if err := checkAccess(actor); err != nil {
		return Task{}, err
	}
	none := fault.New(fault.NotFound, "You have no task %.80q.", id)
	if !ident.ValidID(id) {
		return Task{}, none
	}
	t, err := s.store.TaskByID(ctx, id)
	if fault.Is(err, fault.NotFound) || err == nil && t.CallerID != actor.ID {
		return Task{}, none
	}
	return t, err
}

// List returns a page of the actor's own tasks, newest first, and the cursor of the next page, ""
// at the end. limit is 1 to 100, 0 for 50. A conversationID or state restricts the list.
func (s *Service) List(ctx context.Context, actor ident.Actor, conversationID string, state State, cursor string, limit int) ([]Task, string, error) {
	if err := checkAccess(actor); err != nil {
		return nil, "", err
	}
	if limit == 0 {
		limit = 50
	}
	var c fault.Check
	c.Field(limit >= 1 && limit <= 100, "limit", "use 1 to 100")
	c.Field(state == "" || slices.Contains(States(), state), "state", "is no state; use %s", stateNames())
	c.Field(cursor == "" || ident.ValidID(cursor), "cursor", "is not a cursor of this list")
	if err := c.Err(); err != nil {
		return nil, "", err
	}
	list, cut, err := s.store.ListTasks(ctx, Filter{CallerKind: string(actor.Kind), CallerID: actor.ID,
		ConversationID: conversationID, State: state, Before: cursor, Limit: limit + 1})
	if err != nil {
		return nil, "", err
	}
	if len(list) <= limit && !cut {
		return list, "", nil
	}
	list = list[:min(len(list), limit)]
	return list, list[len(list)-1].ID, nil
}

// Find returns a page of the actor's own tasks with one agent, last changed first. It serves callers of the agent,
// therefore a token needs the scope for conversations and not the one for tasks.
func (s *Service) Find(ctx context.Context, actor ident.Actor, q Query) (Page, error) {
	if actor.ID == "" {
		return Page{}, fault.New(fault.Unauthenticated, "Sign in to see tasks.")
	}
	if !actor.May(ident.ChatWrite) {
		return Page{}, fault.New(fault.Forbidden, "%s", ident.ChatWrite.DescribeMissing())
	}
	var c fault.Check
	c.Field(q.Limit >= 1 && q.Limit <= 100, "limit", "use 1 to 100")
	if err := c.Err(); err != nil {
		return Page{}, err
	}
	return s.store.FindTasks(ctx, actor.ID, q)
}

// Cancel stops one of the actor's own tasks and returns it, usually in its final state. It returns
// a Conflict fault if the task had ended.
func (s *Service) Cancel(ctx context.Context, actor ident.Actor, id string) (Task, error) {
	t, err := s.Get(ctx, actor, id)
	if err != nil {
		return Task{}, err
	}
	if t.State.Terminal() {
		return t, fault.New(fault.Conflict, "The task has ended already: %s.", t.State)
	}
	if err := s.stopTask(ctx, t, "Stopped by "+actorName(actor)+"."); err != nil {
		return Task{}, err
	}
	return s.waitForEnd(ctx, id)
}

// endWait is the maximum time that Cancel waits for a running agent to return. Agents must do so within
// 500 ms.
const endWait = 2 * time.Second

// waitForEnd polls the task until it is in a final state, and returns its current state after
// endWait.
func (s *Service) waitForEnd(ctx context.Context, id string) (Task, error) {
	ctx, cancel := context.WithTimeout(ctx, endWait)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		t, err := s.store.TaskByID(context.WithoutCancel(ctx), id)
		if err != nil || t.State.Terminal() {
			return t, err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return t, nil
		}
	}
}

func actorName(actor ident.Actor) string {
	if actor.Name != "" {
		return actor.Name
	}
	return "the visitor"
}

func (s *Service) stopTask(ctx context.Context, t Task, reason string) error {
	if s.runner.Stop(t.ID) {
		return s.runner.AwaitStop(ctx, t.ID)
	}
	return s.endStopped(ctx, t, reason)
}

// endStopped stores the end of a task that the runtime does not run.
func (s *Service) endStopped(ctx context.Context, t Task, reason string) error {
	err := s.ender.EndTask(ctx, t, Result{State: Canceled, Reason: reason})
	if fault.Is(err, fault.Conflict) {
		return nil // the task ended in the meantime
	}
	return err
}

// StopConversation stops all active tasks of a conversation and returns their number. The caller
// must have checked that the actor is a member.
func (s *Service) StopConversation(ctx context.Context, actor ident.Actor, conversationID string) (int, error) {
	return s.stopAll(ctx, conversationID, "", "Stopped by "+actorName(actor)+".")
}

// Running returns the actor's tasks that are in no final state, also those that wait for an answer, newest first.
func (s *Service) Running(ctx context.Context, actor ident.Actor) ([]Task, error) {
	if err := checkAccess(actor); err != nil {
		return nil, err
	}
	list, err := s.store.ActiveTasks(ctx, "", actor.ID)
	slices.SortFunc(list, func(a, b Task) int { return strings.Compare(b.ID, a.ID) })
	return list, err
}

// StopRunning stops all tasks that Running returns, and returns their number.
func (s *Service) StopRunning(ctx context.Context, actor ident.Actor) (int, error) {
	if err := checkAccess(actor); err != nil {
		return 0, err
	}
	return s.stopAll(ctx, "", actor.ID, "Stopped by "+actorName(actor)+".")
}

// StopCaller stops all tasks of an account that is disabled or deleted, and returns their number.
func (s *Service) StopCaller(ctx context.Context, callerID string) (int, error) {
	return s.stopAll(ctx, "", callerID, "The account that asked for this was disabled.")
}

func (s *Service) stopAll(ctx context.Context, conversationID, callerID, reason string) (int, error) {
	list, err := s.store.ActiveTasks(ctx, conversationID, callerID)
	if err != nil {
		return 0, err
	}
	stopped := 0
	var errs []error
	note := func(err error) {
		if err != nil {
			errs = append(errs, err) // a failure must not keep the other tasks running
			return
		}
		stopped++
	}
	var running []string
	for _, t := range list {
		if s.runner.Stop(t.ID) {
			running = append(running, t.ID) // The end of one is awaited after all are stopped.
			continue
		}
		note(s.endStopped(ctx, t, reason))
	}
	for _, id := range running {
		note(s.runner.AwaitStop(ctx, id))
	}
	return stopped, errors.Join(errs...)
}

func stateNames() string {
	var names []string
	for _, s := range States() {
		names = append(names, string(s))
	}
	return strings.Join(names, ", ")
}
