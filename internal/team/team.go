// Package team lets agents work together on a goal of a person: it finds members, gives them tasks, and collects the
// results. The machine in package flow decides which move is legal; this package keeps the log of its events and does
// the work that a state needs: searches, invitations, questions to agents. Agents are asked in conversations of the
// person, with the person's rights.
package team

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"agentsite/internal/chat"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/task"
	"agentsite/internal/team/flow"
)

// AgentName is the name of the built-in agent that has goals as tasks. On every portal it is reserved. It is in no
// team, because it would form another one.
const AgentName = "team"

// Goal is the row of a goal.
type Goal struct {
	ID string
	// OwnerID and OwnerName name the person of the goal. Only that person may see it.
	OwnerID   string
	OwnerName string
	Text      string
	State     string // see flow.Phase.Public
	Reason    string
	// Open is true while the portal has work to do for the goal, also after its end.
	Open bool
	// ParentID and ParentTask name the task of another goal for which this one works; "" for a goal of a person.
	ParentID   string
	ParentTask int
	Seq        int64 // of the last event
	CreatedAt  time.Time
	UpdatedAt  time.Time
	// Key is the idempotency key of the request that started it, "" for none.
	Key string
}

// Store keeps goals and their events.
type Store interface {
	// CreateGoal stores a goal with its first event. If the owner has a goal with the same key, it returns that one and
	// repeat. A RateLimited fault if the owner has most open goals of their own.
	CreateGoal(ctx context.Context, g Goal, first flow.Event, most int) (stored Goal, repeat bool, err error)
	// AppendEvent stores the next event of a goal with the fields of g that changed: State, Reason, Open, Seq and
	// UpdatedAt. A Conflict fault if an event with that number exists; a NotFound fault if the goal is gone.
	AppendEvent(ctx context.Context, g Goal, e flow.Event) error
	// SettleGoal marks that no work is left for a goal.
	SettleGoal(ctx context.Context, id string) error
	// GoalByID returns a goal; a NotFound fault if there is none.
	GoalByID(ctx context.Context, id string) (Goal, error)
	// GoalsOf returns the goals of an owner without those of teams below, the newest first, after the one with the id
	// before.
	GoalsOf(ctx context.Context, ownerID, before string, limit int) ([]Goal, error)
	// GoalsBelow returns the goals that work for tasks of a goal.
	GoalsBelow(ctx context.Context, parentID string) ([]Goal, error)
	// OpenGoals returns the goals with work to do, the oldest first; those of one owner if ownerID is not "".
	OpenGoals(ctx context.Context, ownerID string) ([]Goal, error)
	// EventsOf returns events of a goal after a number, in order.
	EventsOf(ctx context.Context, goalID string, after int64, limit int) ([]flow.Event, error)
	// WorkByPortal returns the number of tasks that run or wait to run for goals of an owner at agents of each other
	// portal, by its id. Portals without such tasks are left out.
	WorkByPortal(ctx context.Context, ownerID string) (map[string]int, error)
}

// Directory finds agents.
type Directory interface {
	Search(ctx context.Context, actor ident.Actor, q hub.Query) (hub.Page, error)
	// Callable returns an agent that the actor may call; a Conflict fault for one that takes no work.
	Callable(ctx context.Context, actor ident.Actor, name string) (hub.Agent, error)
}

// Conversations ask agents. The same ClientID never asks twice.
type Conversations interface {
	Ask(ctx context.Context, actor ident.Actor, a chat.Ask) (chat.Asked, error)
	Post(ctx context.Context, actor ident.Actor, id string, d chat.Draft) (chat.Posted, error)
	AwaitTask(ctx context.Context, actor ident.Actor, t task.Task) (task.Task, chat.Message, error)
	StopTask(ctx context.Context, actor ident.Actor, id, reason string) error
	// Archive takes a conversation out of the actor's list of current ones.
	Archive(ctx context.Context, actor ident.Actor, id string) error
	// AskPerson asks another person in a new conversation with the actor, and returns it with the number of the
	// question.
	AskPerson(ctx context.Context, actor ident.Actor, person, title, text string) (conversationID string, seq int64,
		err error)
	// AwaitPerson waits for the first message of a person in a conversation after a number.
	AwaitPerson(ctx context.Context, actor ident.Actor, person, conversationID string, after int64) (string, error)
	// RootOf returns the client id of the question with which the work on a task began, and the account of its caller:
	// questions that agents asked each other on the way are followed back. "" if it began with no goal.
	RootOf(ctx context.Context, taskID string) (clientID, callerID string, err error)
	// TaskOf returns the task that an earlier Ask with the ClientID started; a NotFound fault if there is none.
	TaskOf(ctx context.Context, actor ident.Actor, agent, clientID string) (task.Task, error)
}

// People says whether accounts may act.
type People interface {
	// MayAct returns false for an account that is disabled or gone.
	MayAct(ctx context.Context, accountID string) (bool, error)
	// IsPerson reports whether a name is that of a person of this portal who may act.
	IsPerson(ctx context.Context, name string) (bool, error)
}

// Question is the state of a team in which the lead has the turn. Talk are the last texts of members and people.
type Question struct {
	OwnerID, OwnerName string
	GoalID             string
	State              flow.State
	Talk               []flow.Note
}

// Speaker decides for leads with a model. A move may be illegal, and an error means that there is none: then the
// question is asked again with the reason, and after some tries rules decide.
type Speaker interface {
	// HasModel reports whether there is a model for the goals of an account.
	HasModel(ownerID string) bool
	// Propose returns the next move of the lead, and the cost of the question, also with an error.
	Propose(ctx context.Context, q Question) (flow.Move, flow.Cost, error)
}

// Ports are the services that a Service uses. Speaker is nil if rules decide always.
type Ports struct {
	Speaker       Speaker
	Store         Store
	Directory     Directory
	Conversations Conversations
	People        People
}

// Config is the configuration of a Service.
type Config struct {
	// Running bounds the open goals of one account.
	Running int
	Log     *slog.Logger
}

// Service runs goals. Create it with New and call Run; it is safe for concurrent use.
type Service struct {
	Ports
	cfg Config

	mu       sync.Mutex // guards the fields below
	base     context.Context
	runners  map[string]*runner
	watchers map[string]map[*watcher]bool
	group    sync.WaitGroup
}

// New returns a service that does nothing before Run.
func New(p Ports, cfg Config) *Service {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Running <= 0 {
		cfg.Running = 20
	}
	return &Service{Ports: p, cfg: cfg, runners: make(map[string]*runner),
		watchers: make(map[string]map[*watcher]bool)}
}

// Run goes on with all open goals and returns when ctx has ended and all work has stopped. Goals continue at the next
// start.
func (s *Service) Run(ctx context.Context) error {
	s.mu.Lock()
	s.base = ctx
	s.mu.Unlock()
	open, err := s.Store.OpenGoals(ctx, "")
	if err != nil && ctx.Err() == nil {
		return err
	}
	for _, g := range open {
		r, err := s.holdRunner(ctx, g)
		if err == nil {
			s.releaseRunner(r)
		} else if ctx.Err() == nil {
			s.cfg.Log.Error("go on with a goal", "goal", g.ID, "error", err)
		}
	}
	<-ctx.Done()
	s.group.Wait()
	return nil
}

// holdRunner returns the runner of a goal and starts it if it does not run. It does not end before releaseRunner.
func (s *Service) holdRunner(ctx context.Context, g Goal) (*runner, error) {
	s.mu.Lock()
	if r, ok := s.runners[g.ID]; ok {
		r.holds++
		s.mu.Unlock()
		return r, nil
	}
	s.mu.Unlock()
	state, err := s.replayLog(ctx, g.ID)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.runners[g.ID]
	if !ok {
		if s.base == nil || s.base.Err() != nil {
			return nil, errStopped
		}
		r = newRunner(s, g, state)
		s.runners[g.ID] = r
		s.group.Go(func() { r.run(s.base) })
	}
	r.holds++
	return r, nil
}

func (s *Service) releaseRunner(r *runner) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.holds--; r.holds == 0 {
		select {
		case r.released <- struct{}{}:
		default:
		}
	}
}

// endRunner forgets a runner, unless a request holds it or if the portal stops, and reports whether it may end.
func (s *Service) endRunner(r *runner, stopping bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.holds > 0 && !stopping {
		return false
	}
	delete(s.runners, r.goal.ID)
	return true
}

// replayLog computes the state of a goal from its log.
func (s *Service) replayLog(ctx context.Context, id string) (flow.State, error) {
	return s.replayWhile(ctx, id, func(flow.Event) bool { return true })
}

// replayWhile computes the state of a goal from the events before the first one for which keep is false.
func (s *Service) replayWhile(ctx context.Context, id string, keep func(flow.Event) bool) (flow.State, error) {
	var state flow.State
	for {
		list, err := s.Store.EventsOf(ctx, id, state.Seq, eventsPage)
		if err != nil {
			return state, err
		}
		for _, e := range list {
			if !keep(e) {
				return state, nil
			}
			if state, err = flow.Next(state, e); err != nil {
				return state, err
			}
		}
		if len(list) < eventsPage {
			return state, nil
		}
	}
}

// eventsPage is the number of events that are read at once.
const eventsPage = 200

// wakeAbove wakes the watchers of the goals that wait for a team, from its parent on.
func (s *Service) wakeAbove(id string) {
	for id != "" {
		s.wakeWatchers(id, true)
		s.mu.Lock()
		r := s.runners[id]
		s.mu.Unlock()
		if r == nil {
			return
		}
		id = r.goal.ParentID
	}
}

// watcher is woken after each event of a goal and of the teams below it.
type watcher struct {
	wake  chan struct{}
	below atomic.Bool // a team below went on
}

// wakeWatchers wakes the watchers of a goal. below is true if a team below it went on.
func (s *Service) wakeWatchers(id string, below bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for w := range s.watchers[id] {
		if below {
			w.below.Store(true)
		}
		select {
		case w.wake <- struct{}{}:
		default:
		}
	}
}
