// Package goals runs the built-in agent team: a task of it is a goal of its caller. So every protocol at which agents
// are asked, such as A2A and MCP, also gives goals: the statuses of the task are the states of the goal, its answer is
// the conclusion, its end ends the goal, and a question of a member to the person is a question of the task.
package goals

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/strictjson"
	"agentsite/internal/task"
	"agentsite/internal/team"
	"agentsite/internal/team/flow"
)

// Name is the name of the agent. It is reserved, so that no other agent has it.
const Name = team.AgentName

// longest is the time that a goal gets if its caller names none, and the most that it may get: a task of the portal may
// run for 15 minutes.
const longest = 14 * time.Minute

// stopTime bounds the end of a goal after its task was stopped, and stopWait the time that the task waits for it.
const (
	stopTime = 20 * time.Second
	stopWait = 300 * time.Millisecond
)

// Teams works on goals. It is the part of team.Service that a Driver uses.
type Teams interface {
	Start(ctx context.Context, actor ident.Actor, d team.Draft) (g team.Goal, repeat bool, err error)
	Get(ctx context.Context, actor ident.Actor, id string) (team.View, error)
	Watch(ctx context.Context, actor ident.Actor, id string, after int64) (*team.Watch, error)
	Say(ctx context.Context, actor ident.Actor, id, text string) (team.View, error)
	Approve(ctx context.Context, actor ident.Actor, id string, taskN int, answer string) (team.View, error)
	Cancel(ctx context.Context, actor ident.Actor, id string) (team.View, error)
}

// Driver answers for the agent team and passes other calls on. It is safe for concurrent use.
type Driver struct {
	next  task.Agent
	teams func() Teams
	page  string // address of the pages of goals
}

var _ task.Stopper = (*Driver)(nil)

// New returns a driver that passes calls of agents with another name to next. teams is called while tasks run. page is
// the address below which goals have their pages.
func New(next task.Agent, teams func() Teams, page string) *Driver { return &Driver{next, teams, page} }

// Draft describes the agent. It is unlisted, because an agent that recruits others must not be recruited.
func Draft() hub.Draft {
	name, title, kind, visibility := Name, "Team", hub.Builtin, hub.Unlisted
	description := "Takes a goal with one or more parts, finds agents for them, gives out the parts, collects the " +
		"results and concludes. It needs an account."
	skills := []hub.Skill{{ID: "goal", Name: "Work on a goal",
		Description: "One sentence or list entry for each part. “Then” makes a part wait for the one before.",
		Tags:        []string{"team", "goal", "collaboration"},
		Examples:    []string{"What is 15% of 80? How do I register an agent?"}}}
	return hub.Draft{Name: &name, Title: &title, Description: &description, Kind: &kind, Visibility: &visibility,
		Skills: &skills, Config: map[string]json.RawMessage{}}
}

// memory is the checkpoint of a task.
type memory struct {
	Goal string `json:"goal"`
	// Task, Attempt and Answers name the question that the task waits for: the task of the goal, its attempt, and the
	// answers that it had before. Task is 0 for no question.
	Task    int `json:"task,omitempty"`
	Attempt int `json:"attempt,omitempty"`
	Answers int `json:"answers,omitempty"`
}

// Run implements task.Agent.
func (d *Driver) Run(ctx context.Context, call task.Call, out task.Sink) (task.Result, error) {
	if call.Agent.Name != Name {
		return d.next.Run(ctx, call, out)
	}
	actor, ok := actorOf(call)
	if !ok {
		why := "Only people with an account here give goals to teams of agents."
		return task.Result{State: task.Rejected, Reason: why, Parts: []task.Part{task.TextPart(why)}}, nil
	}
	m, after, err := d.enterGoal(ctx, actor, call)
	if err != nil {
		return task.Result{}, err
	}
	if err := saveMemory(ctx, out, memory{Goal: m.Goal}); err != nil {
		return task.Result{}, err
	}
	if p, ok := out.(task.Pauser); ok {
		p.Pause() // The members of the team need places to run.
		defer p.Resume()
	}
	r, err := d.followGoal(ctx, actor, m.Goal, after, out)
	if ctx.Err() != nil && !errors.Is(context.Cause(ctx), task.ErrShutdown) {
		d.cancelGoal(ctx, actor, m.Goal)
	}
	return r, err
}

// actorOf returns the person behind a call; false for callers without an account, and for agents, which could form
// teams without end.
func actorOf(c task.Call) (ident.Actor, bool) {
	person := c.Caller.Kind == string(ident.Person) || c.Caller.Kind == string(ident.Operator)
	return ident.Actor{Kind: ident.Person, ID: c.Caller.ID, Name: c.Caller.Handle, Through: true},
		person && !c.ThroughAgents()
}

func saveMemory(ctx context.Context, out task.Sink, m memory) error {
	b, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return out.Checkpoint(ctx, b)
}

// enterGoal starts the goal of a task, or goes on with the goal of the task or of an earlier one in the same
// conversation, and returns it with the number of the event after which the task follows it.
func (d *Driver) enterGoal(ctx context.Context, actor ident.Actor, call task.Call) (m memory, after int64, err error) {
	if call.Checkpoint != nil {
		if err := json.Unmarshal(call.Checkpoint, &m); err != nil {
			return m, 0, fmt.Errorf("read the checkpoint of a goal: %w", err)
		}
		return m, 0, d.answerQuestion(ctx, actor, m, task.PlainText(call.Parts))
	}
	draft, err := readDraft(call.Parts)
	if err != nil {
		return m, 0, err
	}
	if call.Previous != nil && json.Unmarshal(call.Previous, &m) == nil && m.Goal != "" {
		v, err := d.teams().Say(ctx, actor, m.Goal, draft.Goal)
		if err == nil {
			return memory{Goal: m.Goal}, v.State.Seq - 1, nil
		}
		if !fault.Is(err, fault.Conflict) && !fault.Is(err, fault.NotFound) {
			return m, 0, err
		}
		// A canceled goal takes no further message, so the message is a new goal.
	}
	draft.Key = "task/" + call.TaskID // an attempt after a restart goes on with the same goal
	g, _, err := d.teams().Start(ctx, actor, draft)
	return memory{Goal: g.ID}, 0, err
}

// answerQuestion passes an answer to the member that asked, unless the question was answered elsewhere.
func (d *Driver) answerQuestion(ctx context.Context, actor ident.Actor, m memory, text string) error {
	if m.Task == 0 {
		return nil
	}
	v, err := d.teams().Get(ctx, actor, m.Goal)
	if err != nil || m.Task > len(v.State.Tasks) {
		return err
	}
	t := v.State.Tasks[m.Task-1]
	if t.Status != flow.Input || t.Attempt != m.Attempt || len(t.Answers) != m.Answers {
		return nil
	}
	_, err = d.teams().Approve(ctx, actor, m.Goal, m.Task, text)
	if fault.Is(err, fault.Conflict) {
		return nil // answered, or given up, in this moment
	}
	return err
}

// options are the members and limits that a caller may send as data beside the text.
type options struct {
	Goal       string       `json:"goal"`
	Members    []string     `json:"members"`
	Recruit    flow.Recruit `json:"recruit"`
	RequireAll bool         `json:"require_all"`
	MaxMembers *int         `json:"max_members"`
	MaxTurns   *int         `json:"max_turns"`
	MaxDepth   *int         `json:"max_depth"`
	Seconds    *int         `json:"seconds"`
	Tokens     int64        `json:"tokens"`
}

var optionNames = []string{"goal", "members", "recruit", "require_all", "max_members", "max_turns", "max_depth",
	"seconds", "tokens"}

// readDraft reads a goal from a message: its text, and an object with options.
func readDraft(parts []task.Part) (team.Draft, error) {
	var o options
	var words []string
	for _, p := range parts {
		if len(p.Data) == 0 {
			words = append(words, p.Text)
			continue
		}
		members, ok := strictjson.Split(p.Data)
		if !ok {
			return team.Draft{}, fault.New(fault.Invalid, "The data of a goal is an object with %s.",
				strings.Join(optionNames, ", "))
		}
		for _, m := range members {
			if !slices.Contains(optionNames, m.Name) {
				return team.Draft{}, fault.New(fault.Invalid, "A goal has no option %.40q: use %s.", m.Name,
					strings.Join(optionNames, ", "))
			}
		}
		if err := json.Unmarshal(p.Data, &o); err != nil {
			return team.Draft{}, fault.New(fault.Invalid, "The options of a goal do not have the right types.")
		}
	}
	text := strings.TrimSpace(o.Goal + "\n" + strings.Join(words, "\n"))
	after := longest
	if o.Seconds != nil {
		if after = time.Duration(*o.Seconds) * time.Second; after < time.Second || after > longest {
			return team.Draft{}, fault.New(fault.Invalid, "Give a goal 1 to %d seconds here; the page and the API of "+
				"goals take a day.", int(longest.Seconds()))
		}
	}
	return team.Draft{Goal: text, Members: o.Members, Recruit: o.Recruit, RequireAll: o.RequireAll,
		MaxMembers: o.MaxMembers, MaxTurns: o.MaxTurns, MaxDepth: o.MaxDepth, Tokens: o.Tokens,
		Deadline: clock.Now().Add(after)}, nil
}

// followGoal reports the states of a goal until it has ended or asks the person something.
func (d *Driver) followGoal(ctx context.Context, actor ident.Actor, id string, after int64,
	out task.Sink) (task.Result, error) {
	w, err := d.teams().Watch(ctx, actor, id, after)
	if err != nil {
		return task.Result{}, err
	}
	defer w.Close()
	for {
		list, err := w.Next(ctx)
		over := errors.Is(err, io.EOF)
		if err != nil && !over {
			return task.Result{}, err
		}
		v, err := d.teams().Get(ctx, actor, id)
		if err != nil {
			return task.Result{}, err
		}
		for _, e := range list {
			if text := describeEvent(e); text != "" {
				out.Status(text)
			}
		}
		out.Status(describeState(v.State))
		if over || v.State.Phase.Final() {
			return d.endTask(v, out), nil
		}
		if t, ok := findQuestion(v.State); ok {
			text := t.Owner + " asks: " + firstOf(t.Question, "Which answer do you give?")
			return task.Result{State: task.InputRequired, Parts: []task.Part{task.TextPart(text)}, Reason: text},
				saveMemory(ctx, out, memory{id, t.N, t.Attempt, len(t.Answers)})
		}
	}
}

func findQuestion(s flow.State) (flow.Task, bool) {
	i := slices.IndexFunc(s.Tasks, func(t flow.Task) bool { return t.Status == flow.Input })
	if i < 0 {
		return flow.Task{}, false
	}
	return s.Tasks[i], true
}

// endTask returns the outcome of a goal that has ended, with an artifact that names the goal.
func (d *Driver) endTask(v team.View, out task.Sink) task.Result {
	s := v.State
	data, err := json.Marshal(map[string]any{"id": v.ID, "state": s.Phase.Public(), "turns": s.Turns,
		"page": d.page + "/" + v.ID})
	if err == nil {
		out.Artifact(task.Artifact{ID: "goal", Name: "Goal", Parts: []task.Part{{Data: data,
			MediaType: "application/json"}}})
	}
	r := task.Result{State: task.Completed, Reason: s.Reason}
	text := s.Conclusion
	switch s.Phase {
	case flow.Concluded:
	case flow.Canceled:
		r.State = task.Canceled
	default:
		r.State = task.Failed
	}
	r.Parts = []task.Part{task.TextPart(firstOf(text, s.Reason, "The goal has ended."))}
	return r
}

// cancelGoal ends the goal of a task that was stopped. It waits a moment only, because a stopped task must return soon;
// the goal is canceled all the same.
func (d *Driver) cancelGoal(ctx context.Context, actor ident.Actor, id string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
	done := make(chan struct{})
	go func() {
		defer cancel()
		defer close(done)
		// An error means that the goal has ended, or that the portal stops: then its deadline ends the goal.
		_, _ = d.teams().Cancel(ctx, actor, id)
	}()
	timer := time.NewTimer(stopWait)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	}
}

// Stop implements task.Stopper: it ends the goal of a task that waited for an answer.
func (d *Driver) Stop(ctx context.Context, call task.Call) {
	var m memory
	actor, ok := actorOf(call)
	if call.Agent.Name != Name {
		if s, ok := d.next.(task.Stopper); ok {
			s.Stop(ctx, call)
		}
		return
	}
	if ok && json.Unmarshal(call.Checkpoint, &m) == nil && m.Goal != "" {
		d.cancelGoal(ctx, actor, m.Goal)
	}
}

func firstOf(list ...string) string {
	for _, s := range list {
		if s != "" {
			return s
		}
	}
	return ""
}
