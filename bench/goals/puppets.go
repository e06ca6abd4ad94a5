package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"agentsite/internal/chat"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/task"
	"agentsite/internal/team"
	"agentsite/internal/team/flow"
)

// names are the members of each team.
var names = []string{"ann", "bob", "eve", "sam", "zoe"}

// shortTurns is the number of turns before the conclusion of a goal that is not the long one.
const shortTurns = 20

// puppets are a model and agents that answer at once. They note the time between the end of a turn and the beginning of
// the next one of the same goal.
type puppets struct {
	long int

	mu   sync.Mutex           // guards the fields below
	last map[string]time.Time // end of the last turn, by goal
	gaps []time.Duration
}

func newPuppets(long int) *puppets { return &puppets{long: long, last: make(map[string]time.Time)} }

func (p *puppets) beginTurn(goal string) {
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	if at, ok := p.last[goal]; ok {
		p.gaps = append(p.gaps, now.Sub(at))
	}
}

func (p *puppets) endTurn(goal string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last[goal] = time.Now()
}

// takeGaps returns the times since the last call.
func (p *puppets) takeGaps() []time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := p.gaps
	p.gaps = nil
	return out
}

// HasModel implements team.Speaker.
func (*puppets) HasModel(string) bool { return true }

// Propose implements team.Speaker: it gives the turn to the members, one after the other, and concludes at the end.
func (p *puppets) Propose(_ context.Context, q team.Question) (flow.Move, flow.Cost, error) {
	p.beginTurn(q.GoalID)
	defer p.endTurn(q.GoalID)
	turns, most := q.State.Turns, shortTurns
	if q.State.Open.Goal == "long" {
		most = p.long - 2
	}
	if turns >= most {
		return flow.Move{Kind: flow.Conclude, Text: "Done."}, flow.Cost{}, nil
	}
	return flow.Move{Kind: flow.Say, Text: fmt.Sprintf("Turn %d: go on with part %d of the work.", turns, turns),
		Next: names[turns/2%len(names)]}, flow.Cost{}, nil
}

// Search implements team.Directory.
func (*puppets) Search(context.Context, ident.Actor, hub.Query) (hub.Page, error) {
	return hub.Page{}, nil
}

// Callable implements team.Directory.
func (*puppets) Callable(_ context.Context, _ ident.Actor, name string) (hub.Agent, error) {
	return hub.Agent{ID: name, Name: name, Liveness: hub.Liveness{State: hub.Alive}}, nil
}

// Ask implements team.Conversations.
func (p *puppets) Ask(_ context.Context, _ ident.Actor, a chat.Ask) (chat.Asked, error) {
	goal := strings.Split(a.ClientID, "/")[1]
	p.beginTurn(goal)
	return chat.Asked{ConversationID: goal, Task: task.Task{ID: a.ClientID, ConversationID: goal}}, nil
}

// AwaitTask implements team.Conversations.
func (p *puppets) AwaitTask(_ context.Context, _ ident.Actor, t task.Task) (task.Task, chat.Message, error) {
	defer p.endTurn(t.ConversationID)
	t.State = task.Completed
	return t, chat.Message{Parts: []task.Part{task.TextPart("Done: " + t.ID)}}, nil
}

// Post implements team.Conversations.
func (*puppets) Post(context.Context, ident.Actor, string, chat.Draft) (chat.Posted, error) {
	return chat.Posted{}, nil
}

// StopTask implements team.Conversations.
func (*puppets) StopTask(context.Context, ident.Actor, string, string) error { return nil }

// Archive implements team.Conversations.
func (*puppets) Archive(context.Context, ident.Actor, string) error { return nil }

var errNone = fault.New(fault.NotFound, "There is none.")

// AskPerson implements team.Conversations.
func (*puppets) AskPerson(context.Context, ident.Actor, string, string, string) (string, int64, error) {
	return "", 0, errNone
}

// AwaitPerson implements team.Conversations.
func (*puppets) AwaitPerson(context.Context, ident.Actor, string, string, int64) (string, error) {
	return "", errNone
}

// RootOf implements team.Conversations.
func (*puppets) RootOf(context.Context, string) (clientID, callerID string, err error) {
	return "", "", nil
}

// TaskOf implements team.Conversations.
func (*puppets) TaskOf(context.Context, ident.Actor, string, string) (task.Task, error) {
	return task.Task{}, errNone
}

// MayAct implements team.People.
func (*puppets) MayAct(context.Context, string) (bool, error) { return true, nil }

// IsPerson implements team.People.
func (*puppets) IsPerson(context.Context, string) (bool, error) { return false, nil }
