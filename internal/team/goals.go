package team

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/plaintext"
	"agentsite/internal/team/flow"
)

// errStopped is the error of requests while the portal stops.
var errStopped = fault.New(fault.Unavailable, "The portal is stopping. Try again in a moment.")

// Draft is a request for a goal. Fields that are zero have defaults.
type Draft struct {
	Goal       string
	Members    []string
	Recruit    flow.Recruit
	RequireAll bool
	Deadline   time.Time
	MaxMembers *int
	MaxTurns   *int
	MaxDepth   *int
	// PersonTime is the time that people have for an answer, 0 for 10 minutes.
	PersonTime time.Duration
	// Tokens and Money bound the models of the team; Money is in millionths of the currency.
	Tokens, Money int64
	// Key makes a repeated request harmless: it returns the first goal.
	Key string
}

// The defaults and bounds of limits that a person may set.
const (
	DefaultMembers = 8
	DefaultTurns   = 30
	DefaultDepth   = 2
	MaxMembers     = 50
	MaxTurns       = 1000
	MaxDepth       = 5
	MaxGoal        = flow.MaxGoal
	maxKey         = 200
	maxTime        = 24 * time.Hour
	defaultTime    = 30 * time.Minute
)

// defaults are the limits that a person does not set.
var defaults = flow.Limits{Tasks: 64, Attempts: 3, Searches: 6, Repairs: 2, TurnTime: 3 * time.Minute,
	TaskTime: 15 * time.Minute, PersonTime: 10 * time.Minute}

// checkRead returns a fault unless the actor has an account here and may read.
func checkRead(actor ident.Actor) error {
	if !actor.IsPerson() {
		return fault.New(fault.Unauthenticated, "Sign in to give goals to teams of agents.")
	}
	if !actor.May(ident.ChatRead) && !actor.May(ident.ChatWrite) {
		return fault.New(fault.Forbidden, "%s", ident.ChatRead.DescribeMissing())
	}
	return nil
}

// checkWrite is checkRead for changes.
func checkWrite(actor ident.Actor) error {
	if err := checkRead(actor); err != nil {
		return err
	}
	if !actor.May(ident.ChatWrite) {
		return fault.New(fault.Forbidden, "%s", ident.ChatWrite.DescribeMissing())
	}
	return nil
}

// Start begins a goal and returns at once. repeat is true if the key was used before: the goal is the first one then.
func (s *Service) Start(ctx context.Context, actor ident.Actor, d Draft) (g Goal, repeat bool, err error) {
	if err := checkWrite(actor); err != nil {
		return Goal{}, false, err
	}
	open, err := d.newOpening(clock.Now())
	if err != nil {
		return Goal{}, false, err
	}
	if open.People, err = s.findPeople(ctx, open.Members); err != nil {
		return Goal{}, false, err
	}
	open.ByModel = s.Speaker != nil && s.Speaker.HasModel(actor.ID)
	now := clock.Now()
	e := flow.Event{Seq: 1, At: now, Kind: flow.Opened, Open: &open}
	state, err := flow.Next(flow.State{}, e)
	if err != nil {
		return Goal{}, false, asFault(err)
	}
	g = newGoal(actor, open, state, now)
	g.Key = d.Key
	g, repeat, err = s.Store.CreateGoal(ctx, g, e, s.cfg.Running)
	if err != nil || repeat {
		return g, repeat, err
	}
	r, err := s.holdRunner(ctx, g)
	if errors.Is(err, errStopped) {
		return g, false, nil // it begins with the next start
	}
	if err == nil {
		s.releaseRunner(r)
	}
	return g, false, err
}

// newGoal returns the row of a goal that begins.
func newGoal(actor ident.Actor, open flow.Opening, state flow.State, now time.Time) Goal {
	return Goal{ID: ident.NewID(), OwnerID: actor.ID, OwnerName: actor.Name, Text: open.Goal,
		State: state.Phase.Public(), Open: true, Seq: 1, CreatedAt: now, UpdatedAt: now}
}

// newOpening checks a draft and completes it.
func (d Draft) newOpening(now time.Time) (flow.Opening, error) {
	o := flow.Opening{Goal: strings.TrimSpace(d.Goal), Members: cleanMembers(d.Members), RequireAll: d.RequireAll,
		Recruit: d.Recruit, Limits: defaults}
	l := &o.Limits
	l.Members, l.Turns, l.Depth, l.Time = DefaultMembers, DefaultTurns, DefaultDepth, defaultTime
	l.Tokens, l.Money = d.Tokens, d.Money
	var c fault.Check
	c.Field(plaintext.Clean(o.Goal) != "", "goal", "describe the goal")
	c.Field(len(o.Goal) <= flow.MaxGoal, "goal", "use at most %d bytes", flow.MaxGoal)
	if o.Recruit == "" {
		o.Recruit = flow.RecruitNetwork
		if len(o.Members) > 0 {
			o.Recruit = flow.RecruitMembers
		}
	}
	kinds := []flow.Recruit{flow.RecruitHere, flow.RecruitNetwork, flow.RecruitMembers}
	c.Field(slices.Contains(kinds, o.Recruit), "recruit", "use here, network or members")
	c.Field(o.Recruit != flow.RecruitMembers || len(o.Members) > 0, "members", "name the members of the team")
	c.Field(!o.RequireAll || len(o.Members) > 0, "require_all", "name the members that are required")
	set := func(to *int, from *int, name string, least, most int) {
		if from == nil {
			return
		}
		c.Field(*from >= least && *from <= most, name, "use %d to %d", least, most)
		*to = *from
	}
	set(&l.Members, d.MaxMembers, "max_members", 1, MaxMembers)
	set(&l.Turns, d.MaxTurns, "max_turns", 1, MaxTurns)
	set(&l.Depth, d.MaxDepth, "max_depth", 0, MaxDepth)
	c.Field(len(o.Members) <= l.Members, "members", "name at most %d, which max_members allows", l.Members)
	if d.PersonTime != 0 {
		l.PersonTime = d.PersonTime
		c.Field(d.PersonTime >= time.Second && d.PersonTime <= maxTime, "person_seconds", "use 1 to %d",
			int(maxTime.Seconds()))
	}
	c.Field(d.Tokens >= 0 && d.Money >= 0, "budget", "is not negative")
	c.Field(len(d.Key) <= maxKey, "idempotency_key", "use at most %d bytes", maxKey)
	c.Field(!strings.HasPrefix(d.Key, "team/"), "idempotency_key", "use another one")
	if !d.Deadline.IsZero() {
		l.Time = d.Deadline.Sub(now).Truncate(time.Millisecond)
		c.Field(l.Time >= time.Second && l.Time <= maxTime, "deadline", "is at most a day from now, and not past")
	}
	return o, c.Err()
}

func cleanMembers(in []string) (out []string) {
	for _, h := range in {
		h = strings.TrimPrefix(strings.TrimSpace(h), "@")
		if h != "" && !slices.Contains(out, h) {
			out = append(out, h)
		}
	}
	return out
}

// asFault returns an illegal event as a Conflict fault; other errors unchanged.
func asFault(err error) error {
	if i, ok := errors.AsType[*flow.Illegal](err); ok {
		if i.Missing {
			return fault.Wrap(fault.NotFound, err, "%s.", upperFirst(i.Reason))
		}
		return fault.Wrap(fault.Conflict, err, "%s.", upperFirst(i.Reason))
	}
	return err
}

func upperFirst(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

func errNoGoal(id string) error { return fault.New(fault.NotFound, "You have no goal %.80q.", id) }

// ownGoal returns a goal of the actor; a NotFound fault for any other.
func (s *Service) ownGoal(ctx context.Context, actor ident.Actor, id string) (Goal, error) {
	if !ident.ValidID(id) {
		return Goal{}, errNoGoal(id)
	}
	g, err := s.Store.GoalByID(ctx, id)
	if fault.Is(err, fault.NotFound) || err == nil && g.OwnerID != actor.ID {
		return Goal{}, errNoGoal(id)
	}
	return g, err
}

// View is a goal with its state. Callers must not change the state.
type View struct {
	Goal
	State flow.State
	// Below are the teams that work for tasks of this one.
	Below []View
}

// Get returns a goal of the actor with the teams below it.
func (s *Service) Get(ctx context.Context, actor ident.Actor, id string) (View, error) {
	if err := checkRead(actor); err != nil {
		return View{}, err
	}
	g, err := s.ownGoal(ctx, actor, id)
	if err != nil {
		return View{}, err
	}
	return s.readView(ctx, g, MaxDepth+1)
}

// GetAt returns a goal of the actor as it was after one of its events, with the teams below it as they were then.
func (s *Service) GetAt(ctx context.Context, actor ident.Actor, id string, seq int64) (View, error) {
	if err := checkRead(actor); err != nil {
		return View{}, err
	}
	g, err := s.ownGoal(ctx, actor, id)
	if err != nil {
		return View{}, err
	}
	if seq < 1 || seq > g.Seq {
		return View{}, fault.Field("at", fmt.Sprintf("use 1 to %d", g.Seq))
	}
	return s.readPast(ctx, g, func(e flow.Event) bool { return e.Seq <= seq }, MaxDepth+1)
}

// readPast returns a goal after the events for which keep is true.
func (s *Service) readPast(ctx context.Context, g Goal, keep func(flow.Event) bool, depth int) (View, error) {
	state, err := s.replayWhile(ctx, g.ID, keep)
	if err != nil || state.Seq == 0 {
		return View{}, err
	}
	v := View{Goal: describeGoal(g, state), State: state}
	v.Open = false // nothing of it changes any more
	if depth == 0 {
		return v, nil
	}
	below, err := s.Store.GoalsBelow(ctx, g.ID)
	if err != nil {
		return v, err
	}
	for _, b := range below {
		if b.ParentTask > len(state.Tasks) {
			continue
		}
		w, err := s.readPast(ctx, b, func(e flow.Event) bool { return !e.At.After(state.Now) }, depth-1)
		if err != nil {
			return v, err
		}
		if w.Seq > 0 {
			v.Below = append(v.Below, w)
		}
	}
	return v, nil
}

func (s *Service) readView(ctx context.Context, g Goal, depth int) (View, error) {
	v := View{Goal: g}
	s.mu.Lock()
	r := s.runners[g.ID]
	s.mu.Unlock()
	var err error
	if r != nil {
		v.State = *r.shown.Load()
		v.Goal = describeGoal(g, v.State)
	} else if v.State, err = s.replayLog(ctx, g.ID); err != nil {
		return v, err
	}
	if depth == 0 {
		return v, nil
	}
	below, err := s.Store.GoalsBelow(ctx, g.ID)
	for _, b := range below {
		w, err := s.readView(ctx, b, depth-1)
		if err != nil {
			return v, err
		}
		v.Below = append(v.Below, w)
	}
	return v, err
}

// describeGoal returns the row of a goal for a state.
func describeGoal(g Goal, st flow.State) Goal {
	g.State, g.Reason, g.Seq, g.UpdatedAt = st.Phase.Public(), st.Reason, st.Seq, st.Now
	return g
}

// List returns a page of the actor's goals, the newest first, and the cursor of the next page, "" at the end. limit is
// 1 to 100, 0 for 50.
func (s *Service) List(ctx context.Context, actor ident.Actor, cursor string, limit int) ([]Goal, string, error) {
	if err := checkRead(actor); err != nil {
		return nil, "", err
	}
	if limit == 0 {
		limit = 50
	}
	var c fault.Check
	c.Field(limit >= 1 && limit <= 100, "limit", "use 1 to 100")
	c.Field(cursor == "" || ident.ValidID(cursor), "cursor", "is not a cursor of this list")
	if err := c.Err(); err != nil {
		return nil, "", err
	}
	list, err := s.Store.GoalsOf(ctx, actor.ID, cursor, limit+1)
	if err != nil || len(list) <= limit {
		return list, "", err
	}
	list = list[:limit]
	return list, list[limit-1].ID, nil
}

// WorkByPortal returns the number of tasks that run or wait to run for the actor's goals at agents of each other portal,
// by its id.
func (s *Service) WorkByPortal(ctx context.Context, actor ident.Actor) (map[string]int, error) {
	if err := checkRead(actor); err != nil {
		return nil, err
	}
	return s.Store.WorkByPortal(ctx, actor.ID)
}

// Cancel ends a goal for ever and returns when no agent works for it any more.
func (s *Service) Cancel(ctx context.Context, actor ident.Actor, id string) (View, error) {
	g, err := s.changeGoal(ctx, actor, id, flow.Event{Kind: flow.Stopped, Agent: actor.Name,
		Text: "Stopped by " + actor.Name + "."})
	if err != nil {
		return View{}, err
	}
	s.waitForEnd(ctx, g.ID)
	return s.Get(ctx, actor, id)
}

// endWait is the longest time that Cancel waits for agents to stop.
const endWait = 3 * time.Second

// waitForEnd waits until the runner of a goal has ended.
func (s *Service) waitForEnd(ctx context.Context, id string) {
	s.mu.Lock()
	r := s.runners[id]
	s.mu.Unlock()
	if r == nil {
		return
	}
	timer := time.NewTimer(endWait)
	defer timer.Stop()
	select {
	case <-r.closed:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// Say gives the team a message of the person. It opens a goal again that has concluded or failed.
func (s *Service) Say(ctx context.Context, actor ident.Actor, id, text string) (View, error) {
	return s.changeAndRead(ctx, actor, id, flow.Event{Kind: flow.Said, Agent: actor.Name, Text: strings.TrimSpace(text)})
}

// Approve answers the question of the agent that works on a task, such as whether it may use a tool.
func (s *Service) Approve(ctx context.Context, actor ident.Actor, id string, taskN int, answer string) (View, error) {
	return s.changeAndRead(ctx, actor, id, flow.Event{Kind: flow.Answered, Agent: actor.Name, Task: taskN,
		Text: strings.TrimSpace(answer)})
}

// Reassign gives a task that is not completed to another agent.
func (s *Service) Reassign(ctx context.Context, actor ident.Actor, id string, taskN int, to string) (View, error) {
	to = strings.TrimPrefix(strings.TrimSpace(to), "@")
	if err := checkWrite(actor); err != nil {
		return View{}, err
	}
	v, err := s.Get(ctx, actor, id)
	if err != nil {
		return View{}, err
	}
	if !hasPerson(v.State, to) {
		a, err := s.Directory.Callable(ctx, actor, to)
		if err != nil {
			return View{}, fault.Field("to", fault.As(err).Safe)
		}
		to = a.Handle()
	}
	return s.changeAndRead(ctx, actor, id, flow.Event{Kind: flow.Reassigned, Agent: to, Task: taskN, Text: actor.Name})
}

func (s *Service) changeAndRead(ctx context.Context, actor ident.Actor, id string, e flow.Event) (View, error) {
	if _, err := s.changeGoal(ctx, actor, id, e); err != nil {
		return View{}, err
	}
	return s.Get(ctx, actor, id)
}

// changeGoal passes an event of a person to the runner of a goal.
func (s *Service) changeGoal(ctx context.Context, actor ident.Actor, id string, e flow.Event) (Goal, error) {
	if err := checkWrite(actor); err != nil {
		return Goal{}, err
	}
	g, err := s.ownGoal(ctx, actor, id)
	if err != nil {
		return Goal{}, err
	}
	return g, s.passEvent(ctx, g, e)
}

// passEvent passes an event to the runner of a goal and returns when it is stored or refused.
func (s *Service) passEvent(ctx context.Context, g Goal, e flow.Event) error {
	r, err := s.holdRunner(ctx, g)
	if err != nil {
		return err
	}
	defer s.releaseRunner(r)
	q := request{e, make(chan error, 1)}
	select {
	case r.inbox <- q:
		return asFault(<-q.reply)
	case <-r.closed:
		return errStopped
	case <-ctx.Done():
		return ctx.Err()
	}
}

// CancelAll cancels the open goals of an account that may no longer act, and returns their number.
func (s *Service) CancelAll(ctx context.Context, ownerID, reason string) (int, error) {
	list, err := s.Store.OpenGoals(ctx, ownerID)
	if err != nil {
		return 0, err
	}
	n := 0
	var errs []error
	for _, g := range list {
		err := s.passEvent(ctx, g, flow.Event{Kind: flow.Stopped, Agent: "system", Text: reason})
		if err != nil && !fault.Is(err, fault.Conflict) {
			errs = append(errs, fmt.Errorf("cancel goal %s: %w", g.ID, err))
			continue
		}
		n++
	}
	return n, errors.Join(errs...)
}
