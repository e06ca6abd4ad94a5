package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"time"
)

// An act is a conversation with an agent whose tasks use tools, or that other agents use as a tool.
type act struct {
	kind, agent string
	text        string // of each message; %s is its key
	who         *account
	id          string
	asks        bool              // the right answer is that of calc
	states      map[string]string // of the tasks that have ended, by id
	right       int               // answers equal to that of calc
}

// terminal are the states in which a task has ended. The permissions are given beforehand, so that no task waits for a
// person.
var terminal = []string{"completed", "failed", "canceled", "rejected"}

// actTimeout is the longest time from a restart until all tasks have ended: a program that dials in may be waited for
// for a minute.
const actTimeout = 2 * time.Minute

// actRounds kills the portal while tasks of all kinds use tools. After each restart every task must end, in one state
// that never changes, and no tool is called twice for one task.
func (w *world) actRounds(out io.Writer) ([]violation, error) {
	// The address stays, because the tools of running tasks are there.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	listen = l.Addr().String()
	l.Close()
	s := newStage()
	defer s.Close()
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
	if err := w.openStage(ctx, p.url, s); err != nil {
		return nil, err
	}
	var acts, all []*act
	for w.stats.rounds < w.cfg.rounds {
		if w.stats.rounds%talkRounds == 0 {
			if acts, err = w.openActs(ctx, p.url); err != nil {
				return nil, err
			}
			all = append(all, acts...)
		}
		w.stats.rounds++
		rng := w.source()
		stop := w.playActs(ctx, acts, p.url)
		time.Sleep(time.Duration(20+rng.IntN(1200)) * time.Millisecond)
		p.kill()
		w.stats.kills++
		stop()
		again, err := w.restart(w.data)
		if err != nil {
			return nil, err
		}
		p = again
		began := time.Now()
		if found := w.checkActs(ctx, acts, p.url, s); len(found) > 0 {
			return found, nil
		}
		if w.cfg.verbose {
			fmt.Fprintf(out, "round %d: %d tasks, settled after %d ms\n", w.stats.rounds, countActs(all),
				time.Since(began).Milliseconds())
		}
	}
	if found := w.checkActs(ctx, all, p.url, s); len(found) > 0 { // the earlier ones must not have changed
		return found, nil
	}
	fmt.Fprintln(out, describeActs(all, s))
	if err := p.stop(); err != nil {
		return nil, err
	}
	right := make(map[string]int)
	for _, a := range all {
		right[a.kind] += a.right
	}
	for _, a := range acts {
		if a.asks && right[a.kind] == 0 || s.counted() == 0 {
			return nil, fmt.Errorf("%s: no tool was called, so nothing was shown", a.kind)
		}
	}
	return nil, verify(w.cfg.binary, w.data)
}

// talkRounds is the number of rounds after which new conversations replace the old ones, because agents read what was
// said before.
const talkRounds = 4

// openStage registers agents of all kinds, and gives them their permissions.
func (w *world) openStage(ctx context.Context, base string, s *stage) error {
	ann := w.people[0]
	s.base, s.token = base, ann.token
	config := func(v map[string]any) map[string]any { v["model"] = "m"; return v }
	for name, a := range map[string]map[string]any{
		"counter": {"kind": "mcp", "endpoint": s.URL + "/mcp"},
		"writer":  {"kind": "openai", "endpoint": s.URL + "/v1", "config": config(map[string]any{})},
		"actor": {"kind": "prompt", "endpoint": s.URL + "/v1", "config": config(map[string]any{
			"instructions": "Help.", "tools": []string{"counter", "ask"}, "unasked": true})},
		"reacher": {"kind": "a2a", "endpoint": s.URL + "/.well-known/agent-card.json",
			"config": map[string]any{"tools": []string{"ask"}}},
	} {
		a["name"], a["description"], a["visibility"] = name, "An agent of a test.", "public"
		if err := ann.want(ctx, 201, "POST", base+"/api/v1/agents", a, nil); err != nil {
			return err
		}
	}
	connected := make(chan struct{})
	var once sync.Once
	go s.dialIn(ctx, "dialer", func() { once.Do(func() { close(connected) }) })
	select {
	case <-connected:
	case <-time.After(readyTimeout):
		return fmt.Errorf("the program could not dial in")
	}
	for i, name := range []string{"actor", "reacher", "dialer"} {
		if err := ann.want(ctx, 200, "PUT", fmt.Sprintf("%s/api/v1/grants/01JDNV5T7Q4Y8W2ZK6M3R9XCA%d", base, i),
			map[string]any{"agent": name, "tool": "ask", "scope": "public", "decision": "allow"}, nil); err != nil {
			return err
		}
	}
	return nil
}

// openActs opens a conversation for each kind of task.
func (w *world) openActs(ctx context.Context, base string) ([]*act, error) {
	acts := []*act{
		{kind: "prompt agent with an MCP tool", agent: "actor", text: "please count %s"},
		{kind: "prompt agent that asks", agent: "actor", text: "please ask for %s", asks: true},
		{kind: "A2A agent that asks", agent: "reacher", text: "for %s", asks: true},
		{kind: "program that asks", agent: "dialer", text: "for %s", asks: true},
		{kind: "MCP server", agent: "counter", text: "%s"},
		{kind: "OpenAI-compatible agent", agent: "writer", text: "write of %s"},
		{kind: "built-in agent", agent: "calc", text: "1 + 2"},
	}
	for _, a := range acts {
		a.who, a.states = w.people[0], make(map[string]string)
		var made struct{ ID string }
		if err := a.who.want(ctx, 201, "POST", base+"/api/v1/conversations",
			map[string]any{"members": []string{a.agent}}, &made); err != nil {
			return nil, err
		}
		a.id = made.ID
	}
	return acts, nil
}

// playActs posts the tasks of a round, all at once, and returns a function that ends the posting.
func (w *world) playActs(ctx context.Context, acts []*act, base string) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	for n := range w.cfg.tasks {
		a := acts[n%len(acts)]
		key := fmt.Sprintf("key-%d-%d", w.stats.rounds, n)
		text := strings.Replace(a.text, "%s", key, 1)
		wg.Go(func() {
			work(400 * time.Millisecond)
			status, err := a.who.call(ctx, "POST", base+"/api/v1/conversations/"+a.id+"/messages",
				map[string]any{"client_id": key, "text": text}, nil)
			if err == nil && status == 201 {
				w.note(func(s *stats) { s.posted++ })
			}
		})
	}
	return func() { cancel(); wg.Wait() }
}

// checkActs waits until all tasks have ended, and compares their states with the transcripts and with earlier rounds.
func (w *world) checkActs(ctx context.Context, acts []*act, base string, s *stage) []violation {
	var out []violation
	add := func(kind, format string, args ...any) {
		out = append(out, violation{kind, fmt.Sprintf(format, args...)})
	}
	for _, a := range acts {
		now, err := a.settle(ctx, base)
		if err != nil {
			add(misbehaved, "%s: %v", a.kind, err)
			continue
		}
		list, err := a.who.transcript(ctx, base, a.id, 0)
		if err != nil {
			add(misbehaved, "%s: %v", a.kind, err)
			continue
		}
		out = append(out, a.compare(now, list)...)
	}
	for _, key := range s.repeated() {
		add(duplicated, "the tool was called for %s", key)
	}
	return out
}

// compare checks the states of tasks that should have ended, and takes them for those of the act.
func (a *act) compare(now map[string]string, transcript []message) (out []violation) {
	add := func(kind, format string, args ...any) {
		out = append(out, violation{kind, a.kind + ": " + fmt.Sprintf(format, args...)})
	}
	ends := make(map[string]int)
	a.right = 0
	for _, m := range transcript {
		if m.task != "" && slices.Contains(terminal, m.state) {
			ends[m.task]++
		}
		if m.task != "" && strings.Contains(m.text, "42") {
			a.right++
		}
	}
	for id, state := range a.states {
		if now[id] != state {
			add(changed, "task %s was %s and is %q", id, state, now[id])
		}
	}
	for id, state := range now {
		switch {
		case !slices.Contains(terminal, state):
			add(unanswered, "task %s is still %s", id, state)
		case ends[id] == 0:
			add(lost, "task %s is %s and has no end in the conversation", id, state)
		case ends[id] > 1:
			add(duplicated, "task %s, %s, ended %d times in the conversation", id, state, ends[id])
		}
	}
	a.states = now
	return out
}

// settle returns the states of the tasks in the conversation when all have ended, at the latest after actTimeout.
func (a *act) settle(ctx context.Context, base string) (map[string]string, error) {
	for began := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		now, err := a.who.taskStates(ctx, base, a.id)
		if err != nil {
			return nil, err
		}
		open := func(state string) bool { return !slices.Contains(terminal, state) }
		if !slices.ContainsFunc(slices.Collect(maps.Values(now)), open) || time.Since(began) > actTimeout {
			return now, nil
		}
	}
}

func countActs(acts []*act) (n int) {
	for _, a := range acts {
		n += len(a.states)
	}
	return n
}

// describeActs returns how many tasks ended in which state, by kind.
func describeActs(acts []*act, s *stage) string {
	var b strings.Builder
	var kinds []string
	counts := make(map[string]map[string]int)
	for _, a := range acts {
		if counts[a.kind] == nil {
			kinds, counts[a.kind] = append(kinds, a.kind), make(map[string]int)
		}
		for _, state := range a.states {
			counts[a.kind][state]++
		}
		if a.asks {
			counts[a.kind]["with the answer of another agent"] += a.right
		}
	}
	for _, kind := range kinds {
		b.WriteString(kind + ":")
		for _, state := range slices.Sorted(maps.Keys(counts[kind])) {
			fmt.Fprintf(&b, " %d %s,", counts[kind][state], state)
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "%d calls of the tool with side effects, none twice for a task", s.counted())
	return b.String()
}
