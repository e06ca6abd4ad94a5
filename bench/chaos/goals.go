package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"agentsite/internal/linkwire"
)

// goldenGoal has two steps, each for one of the programs of a cast.
const goldenGoal = "Juggle the red balls. Then polish the result."

// A cast is two programs that dial in and work for teams. It counts the questions that they get.
type cast struct {
	base, token string

	mu    sync.Mutex // guards the fields below
	asked map[string]int
	since map[string]time.Time // the beginning of each program's connection
}

// playProgram runs one program until ctx ends. It keeps its tasks over restarts of the portal.
func (c *cast) playProgram(ctx context.Context, name, skill string) error {
	a := &linkwire.Agent{
		Hello: linkwire.Hello{Name: name, Client: "chaos", Description: "A program of a test.",
			Skills: []linkwire.Skill{{Name: skill, Description: skill, Examples: []string{skill}}}},
		Dial: func(ctx context.Context) (*linkwire.Socket, error) { return linkwire.Dial(ctx, c.base, c.token, nil) },
		Work: func(_ context.Context, t linkwire.Task, _ *linkwire.Answer) linkwire.Done {
			first, _, _ := strings.Cut(t.Text, "\n")
			c.mu.Lock()
			c.asked[name+": "+first]++
			c.mu.Unlock()
			work(120 * time.Millisecond)
			return linkwire.Done{State: linkwire.Completed, Text: name + " did: " + first}
		},
		Connected: func(linkwire.Welcome) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.since[name] = time.Now()
		},
		Lost: func(error, time.Duration) {
			c.mu.Lock()
			defer c.mu.Unlock()
			delete(c.since, name)
		}}
	return a.Run(ctx)
}

// steady is the age of a connection from which on a program dials again at once when it breaks. Before, its pauses
// grow.
const steady = 5200 * time.Millisecond

// awaitSteady waits until both programs are connected for long enough.
func (c *cast) awaitSteady() error {
	for began := time.Now(); time.Since(began) < actTimeout; time.Sleep(20 * time.Millisecond) {
		c.mu.Lock()
		ready := len(c.since) == 2
		for _, at := range c.since {
			ready = ready && time.Since(at) > steady
		}
		c.mu.Unlock()
		if ready {
			return nil
		}
	}
	return violationf(misbehaved, "the programs are not connected")
}

// takeAsked returns the questions since the last call, with their number, and forgets them.
func (c *cast) takeAsked() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	old := c.asked
	c.asked = make(map[string]int)
	return old
}

// goalRounds kills the portal after each event of a goal in turn. After the restart the goal must end with the
// transcript of a run without a kill, and no program may get a question twice. Every second time around, the goal is
// given as an A2A task, which must answer under its id and end as well.
func (w *world) goalRounds(out io.Writer) ([]violation, error) {
	// The address stays, because the programs dial it.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	listen = l.Addr().String()
	l.Close()
	p, err := startReady(w.cfg.binary, w.data, w.log)
	if err != nil {
		return nil, err
	}
	defer func() { p.kill() }()
	if err := w.populate(w.data); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	c := &cast{base: p.url, token: w.people[0].token, asked: make(map[string]int), since: make(map[string]time.Time)}
	for name, skill := range map[string]string{"juggler": "Juggle red balls", "polisher": "Polish a result"} {
		go c.playProgram(ctx, name, skill)
	}
	if err := c.awaitSteady(); err != nil {
		return nil, err
	}
	golden, err := w.runGolden(ctx, p.url, c)
	if err != nil {
		return nil, err
	}
	for w.stats.rounds < w.cfg.rounds {
		n := int(w.cfg.seed) + w.stats.rounds // the seed is the event that comes first, from 0
		at, asTask := 1+n%len(golden), n/len(golden)%2 == 1
		w.stats.rounds++
		if err := c.awaitSteady(); err != nil {
			return nil, err
		}
		g, err := w.giveGoal(ctx, p.url, asTask)
		if err != nil {
			return nil, err
		}
		if err := w.awaitEvent(ctx, p.url, g, at); err != nil {
			return nil, err
		}
		p.kill()
		w.stats.kills++
		if p, err = w.restart(w.data); err != nil {
			return nil, err
		}
		if found := w.checkGoal(ctx, p.url, g, golden, c); len(found) > 0 {
			return found, nil
		}
		if w.cfg.verbose {
			fmt.Fprintf(out, "round %d: killed after event %d (%s), as a task %t\n", w.stats.rounds, at, golden[at-1],
				asTask)
		}
	}
	fmt.Fprintf(out, "%d events of the transcript\n", len(golden))
	if err := p.stop(); err != nil {
		return nil, err
	}
	return nil, verify(w.cfg.binary, w.data)
}

// given is a goal; task is the id of its A2A task, "" for none.
type given struct{ id, task string }

// giveGoal gives the golden goal, over the API or as a task of the agent team.
func (w *world) giveGoal(ctx context.Context, base string, asTask bool) (g given, err error) {
	ann := w.people[0]
	var made struct{ ID string }
	if !asTask {
		err = ann.want(ctx, 202, "POST", base+"/api/v1/goals",
			map[string]any{"goal": goldenGoal, "recruit": "here"}, &made)
		w.note(func(s *stats) { s.posted++ })
		return given{id: made.ID}, err
	}
	before, err := w.newestGoal(ctx, base)
	if err != nil {
		return g, err
	}
	task, err := ann.callA2A(ctx, base, "SendMessage", map[string]any{
		"message": map[string]any{"role": "ROLE_USER",
			"messageId": fmt.Sprintf("goal-%d-%d", w.cfg.seed, w.stats.rounds),
			"parts": []any{map[string]any{"text": goldenGoal},
				map[string]any{"data": map[string]any{"recruit": "here"}}}},
		"configuration": map[string]any{"returnImmediately": true}})
	if err != nil {
		return g, err
	}
	w.note(func(s *stats) { s.posted++ })
	for g = (given{id: before, task: task.ID}); g.id == before; {
		if g.id, err = w.newestGoal(ctx, base); err != nil {
			return g, err
		}
	}
	return g, nil
}

// a2aTask is the part of an A2A task that is read.
type a2aTask struct {
	ID     string `json:"id"`
	Status struct {
		State string `json:"state"`
	} `json:"status"`
}

// callA2A calls a method of the agent team and returns the task that it is about.
func (a *account) callA2A(ctx context.Context, base, method string, params any) (a2aTask, error) {
	var answer struct {
		Result struct {
			a2aTask
			Task *a2aTask `json:"task"`
		} `json:"result"`
		Error json.RawMessage `json:"error"`
	}
	err := a.want(ctx, 200, "POST", base+"/agents/team/a2a?A2A-Version=1.0",
		map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params}, &answer)
	if err == nil && answer.Error != nil {
		err = fmt.Errorf("%s: %s", method, answer.Error)
	}
	if answer.Result.Task != nil {
		return *answer.Result.Task, err
	}
	return answer.Result.a2aTask, err
}

// newestGoal returns the id of the person's newest goal, "" for none.
func (w *world) newestGoal(ctx context.Context, base string) (string, error) {
	var list struct{ Goals []struct{ ID string } }
	err := w.people[0].want(ctx, 200, "GET", base+"/api/v1/goals?limit=1", nil, &list)
	if err != nil || len(list.Goals) == 0 {
		return "", err
	}
	return list.Goals[0].ID, nil
}

// goalEvent is the part of an event that a restart must not change.
type goalEvent struct {
	Kind, Agent, Task, State, Text string
	Turn, Attempt                  int
	Move                           *struct {
		Kind, Text string
		Tasks      []struct{ Task, Owner, Text string }
	}
}

// readGoal returns the transcript of a goal, one line an event. Members that join at the same time are in one order.
func (w *world) readGoal(ctx context.Context, base, id string) (list []string, err error) {
	var log struct{ Events []goalEvent }
	if err := w.people[0].want(ctx, 200, "GET", base+"/api/v1/goals/"+id+"/events", nil, &log); err != nil {
		return nil, err
	}
	for _, e := range log.Events {
		s := fmt.Sprintf("%s %s task %s.%d turn %d %s %q", e.Kind, e.Agent, e.Task, e.Attempt, e.Turn, e.State, e.Text)
		if e.Move != nil {
			s += fmt.Sprintf(" %s %v %q", e.Move.Kind, e.Move.Tasks, e.Move.Text)
		}
		list = append(list, s)
		if n := len(list); e.Kind == "joined" && n > 1 && strings.HasPrefix(list[n-2], "joined") && s < list[n-2] {
			list[n-1], list[n-2] = list[n-2], s
		}
	}
	return list, nil
}

// awaitEvent waits until a goal has so many events.
func (w *world) awaitEvent(ctx context.Context, base string, g given, n int) error {
	for began := time.Now(); time.Since(began) < actTimeout; time.Sleep(time.Millisecond) {
		list, err := w.readGoal(ctx, base, g.id)
		if err != nil || len(list) >= n {
			return err
		}
	}
	return violationf(unanswered, "the goal %s has no event %d", g.id, n)
}

// awaitGoal waits until a goal has ended, and returns its state.
func (w *world) awaitGoal(ctx context.Context, base, id string) (string, error) {
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		var now struct{ State string }
		if err := w.people[0].want(ctx, 200, "GET", base+"/api/v1/goals/"+id, nil, &now); err != nil {
			return "", err
		}
		over := []string{"concluded", "failed", "canceled"}
		if slices.Contains(over, now.State) || time.Since(began) > actTimeout {
			return now.State, nil
		}
	}
}

// runGolden runs the goal without a kill and returns its transcript.
func (w *world) runGolden(ctx context.Context, base string, c *cast) ([]string, error) {
	g, err := w.giveGoal(ctx, base, false)
	if err != nil {
		return nil, err
	}
	state, err := w.awaitGoal(ctx, base, g.id)
	if err != nil {
		return nil, err
	}
	list, err := w.readGoal(ctx, base, g.id)
	if err == nil && (state != "concluded" || len(c.takeAsked()) != 2) {
		err = fmt.Errorf("without a kill the goal is %s: %s", state, strings.Join(list, "\n"))
	}
	return list, err
}

// checkGoal waits for the end of a goal and compares it with the golden run.
func (w *world) checkGoal(ctx context.Context, base string, g given, golden []string, c *cast) (out []violation) {
	add := func(kind, format string, args ...any) {
		out = append(out, violation{kind, fmt.Sprintf(format, args...)})
	}
	state, err := w.awaitGoal(ctx, base, g.id)
	if err != nil {
		add(misbehaved, "goal %s: %v", g.id, err)
		return out
	}
	list, err := w.readGoal(ctx, base, g.id)
	if err != nil {
		add(misbehaved, "goal %s: %v", g.id, err)
	}
	out = append(out, compareGoal(g.id, state, list, golden, c.takeAsked())...)
	if g.task == "" {
		return out
	}
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		t, err := w.people[0].callA2A(ctx, base, "GetTask", map[string]any{"id": g.task})
		switch {
		case err != nil:
			add(lost, "the task %s of goal %s: %v", g.task, g.id, err)
		case t.Status.State == "TASK_STATE_COMPLETED":
		case time.Since(began) > actTimeout ||
			!slices.Contains([]string{"TASK_STATE_WORKING", "TASK_STATE_SUBMITTED"}, t.Status.State):
			add(changed, "the task %s of goal %s is %s", g.task, g.id, t.Status.State)
		default:
			continue
		}
		return out
	}
}

// compareGoal compares the end of a goal with the golden run.
func compareGoal(id, state string, list, golden []string, asked map[string]int) (out []violation) {
	if state != "concluded" {
		out = append(out, violation{unanswered, fmt.Sprintf("goal %s is %s: %s", id, state, strings.Join(list, "\n"))})
	} else if !slices.Equal(list, golden) {
		out = append(out, violation{changed, fmt.Sprintf("goal %s has another transcript:\n%s\nwithout a kill:\n%s", id,
			strings.Join(list, "\n"), strings.Join(golden, "\n"))})
	}
	for q, n := range asked {
		if n > 1 {
			out = append(out, violation{duplicated, fmt.Sprintf("goal %s: %d times %s", id, n, q)})
		}
	}
	if len(asked) != 2 {
		out = append(out, violation{lost, fmt.Sprintf("goal %s: %d questions", id, len(asked))})
	}
	return out
}
