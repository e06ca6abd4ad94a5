package goals

import (
	"strconv"

	"agentsite/handlers/api/spending"
	"agentsite/handlers/respond"
	"agentsite/internal/team"
	"agentsite/internal/team/flow"
)

// Summary is a goal in a list.
type Summary struct {
	ID        string `json:"id"`
	Goal      string `json:"goal"`
	State     string `json:"state"`
	Reason    string `json:"reason,omitempty"`
	CreatedAt string `json:"created_at"`
	UpdatedAt string `json:"updated_at"`
}

func newSummary(g team.Goal) Summary {
	return Summary{ID: g.ID, Goal: g.Text, State: g.State, Reason: g.Reason,
		CreatedAt: respond.FormatTime(g.CreatedAt), UpdatedAt: respond.FormatTime(g.UpdatedAt)}
}

// Goal is a goal with its team, its tasks and its cost.
type Goal struct {
	Summary
	Phase      string     `json:"phase"` // the state of the machine: discussion, sync, async and others
	Conclusion string     `json:"conclusion,omitempty"`
	Team       []Member   `json:"team"`
	Tasks      []Task     `json:"tasks"`
	Parts      []Part     `json:"parts"`
	Turns      int        `json:"turns"`
	Turn       *Turn      `json:"turn,omitempty"`
	Triggers   []Trigger  `json:"triggers,omitempty"`
	ByModel    bool       `json:"by_model"`
	Limits     Limits     `json:"limits"`
	Cost       Cost       `json:"cost"`
	Seq        int64      `json:"seq"` // of the last event
	Parent     *ParentRef `json:"parent,omitempty"`
}

// ParentRef names the task of another goal for which a team works.
type ParentRef struct {
	Goal string `json:"goal"`
	Task string `json:"task"`
}

// Member is a member of a team. The lead is the portal. Children are the members of the team that works for it.
type Member struct {
	Handle   string   `json:"handle"`
	Role     string   `json:"role"` // lead, member
	State    string   `json:"state"`
	Person   bool     `json:"person,omitempty"`
	Why      string   `json:"why,omitempty"`
	Note     string   `json:"note,omitempty"`
	Goal     string   `json:"goal,omitempty"` // of the team below
	Children []Member `json:"children,omitempty"`
}

// Task is a task on the board of a team.
type Task struct {
	ID    string `json:"id"`
	Part  int    `json:"part,omitempty"`
	Owner string `json:"owner"`
	Text  string `json:"text"`
	State string `json:"state"`
	DueAt string `json:"due_at,omitempty"` // the team goes on then
	// Tokens and Cost are those of models, of all attempts and of the teams below.
	Tokens         int64  `json:"tokens,omitempty"`
	Cost           string `json:"cost,omitempty"`
	Attempt        int    `json:"attempt"`
	Needs          []int  `json:"needs,omitempty"`
	Result         string `json:"result,omitempty"`
	Reason         string `json:"reason,omitempty"`
	Question       string `json:"question,omitempty"`
	TaskID         string `json:"task_id,omitempty"`
	ConversationID string `json:"conversation_id,omitempty"`
	Goal           string `json:"goal,omitempty"` // of the team that does it
	CreatedAt      string `json:"created_at"`
	StartedAt      string `json:"started_at,omitempty"`
	EndedAt        string `json:"ended_at,omitempty"`
}

// Part is a piece of the goal with the agents that were found for it.
type Part struct {
	N          int              `json:"n"`
	Text       string           `json:"text"`
	Needs      []int            `json:"needs,omitempty"`
	Candidates []flow.Candidate `json:"candidates"`
}

// Turn is the open turn.
type Turn struct {
	N       int    `json:"n"`
	Speaker string `json:"speaker"`
	Since   string `json:"since"`
}

// Trigger is a condition that ends a pause.
type Trigger struct {
	On    string `json:"on"`
	Tasks []int  `json:"tasks,omitempty"`
	At    string `json:"at,omitempty"`
}

// Limits are the limits of a goal.
type Limits struct {
	MaxMembers int `json:"max_members"`
	MaxTurns   int `json:"max_turns"`
	MaxDepth   int `json:"max_depth"`
	// PersonSeconds is the time that people have for an answer.
	PersonSeconds int    `json:"person_seconds"`
	Deadline      string `json:"deadline"`
	Tokens        int64  `json:"tokens,omitempty"`
	Cost          string `json:"cost,omitempty"`
}

// Cost is the cost of models: for the talk of the team and for the work on its tasks. Money is a decimal number.
type Cost struct {
	Talk       string `json:"talk"`
	Work       string `json:"work"`
	TalkTokens int64  `json:"talk_tokens"`
	WorkTokens int64  `json:"work_tokens"`
}

// NewGoal returns the JSON form of a goal.
func NewGoal(v team.View) Goal {
	s := v.State
	j := Goal{Summary: newSummary(v.Goal), Phase: string(s.Phase), Conclusion: s.Conclusion, Team: newTeam(v),
		Tasks: []Task{}, Parts: []Part{}, Turns: s.Turns, ByModel: s.Open.ByModel, Seq: s.Seq,
		Cost: Cost{Talk: spending.FormatCost(s.Talk.Money), Work: spending.FormatCost(s.Work.Money),
			TalkTokens: s.Talk.Tokens, WorkTokens: s.Work.Tokens},
		Limits: Limits{MaxMembers: s.Limits.Members, MaxTurns: s.Limits.Turns, MaxDepth: s.Limits.Depth,
			PersonSeconds: int(s.Limits.PersonTime.Seconds()),
			Deadline:      respond.FormatTime(s.Until), Tokens: s.Limits.Tokens}}
	if s.Limits.Money > 0 {
		j.Limits.Cost = spending.FormatCost(s.Limits.Money)
	}
	for _, t := range s.Tasks {
		k := newTask(t)
		if due := flow.DueAt(s, t); !due.IsZero() {
			k.DueAt = respond.FormatTime(due)
		}
		if k.Tokens = t.Cost.Tokens; t.Cost.Money > 0 {
			k.Cost = spending.FormatCost(t.Cost.Money)
		}
		j.Tasks = append(j.Tasks, k)
	}
	j.Parts = newParts(s.Parts)
	if s.Turn != nil {
		j.Turn = &Turn{s.Turn.N, s.Turn.Speaker, respond.FormatTime(s.Turn.Since)}
	}
	j.Triggers = newTriggers(s.Triggers)
	if v.ParentID != "" {
		j.Parent = &ParentRef{v.ParentID, strconv.Itoa(v.ParentTask)}
	}
	return j
}

func newTeam(v team.View) []Member {
	list := []Member{{Handle: flow.Lead, Role: "lead", State: string(flow.IsMember)}}
	for _, k := range v.State.Members {
		m := Member{Handle: k.Handle, Role: "member", State: string(k.State), Person: k.Person,
			Why: k.Why, Note: k.Note}
		for _, b := range v.Below {
			if b.ParentTask < 1 || b.ParentTask > len(v.State.Tasks) ||
				v.State.Tasks[b.ParentTask-1].Owner != k.Handle {
				continue
			}
			m.Goal = b.ID
			m.Children = append(m.Children, newTeam(b)...)
		}
		list = append(list, m)
	}
	return list
}

func newTask(t flow.Task) Task {
	return Task{ID: strconv.Itoa(t.N), Part: t.Part, Owner: t.Owner, Text: t.Text, State: string(t.Status),
		Attempt: t.Attempt, Needs: t.Needs, Result: t.Result, Reason: t.Reason, Question: t.Question,
		TaskID: t.Ref.TaskID, ConversationID: t.Ref.ConversationID, Goal: t.Ref.Goal,
		CreatedAt: respond.FormatTime(t.Created), StartedAt: respond.FormatTime(t.Started),
		EndedAt: respond.FormatTime(t.Ended)}
}

func newParts(parts []flow.Part) []Part {
	out := []Part{}
	for _, p := range parts {
		out = append(out, Part{p.N, p.Text, p.Needs, append([]flow.Candidate{}, p.Candidates...)})
	}
	return out
}

func newTriggers(list []flow.Trigger) (out []Trigger) {
	for _, t := range list {
		out = append(out, Trigger{string(t.On), t.Tasks, respond.FormatTime(t.At)})
	}
	return out
}

// parseTask returns the number of a task, 0 for a text that is none.
func parseTask(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// Event is one entry of the log of a goal.
type Event struct {
	Seq            int64      `json:"seq"`
	At             string     `json:"at"`
	Kind           string     `json:"kind"`
	Agent          string     `json:"agent,omitempty"`
	Turn           int        `json:"turn,omitempty"`
	Task           string     `json:"task,omitempty"`
	Attempt        int        `json:"attempt,omitempty"`
	State          string     `json:"state,omitempty"` // of a task that ended
	Text           string     `json:"text,omitempty"`
	Parts          []Part     `json:"parts,omitempty"`
	Move           *Move      `json:"move,omitempty"`
	TaskID         string     `json:"task_id,omitempty"`
	ConversationID string     `json:"conversation_id,omitempty"`
	Goal           string     `json:"goal,omitempty"`
	Cost           *EventCost `json:"cost,omitempty"`
}

// EventCost is a cost that an event adds.
type EventCost struct {
	Talk   bool   `json:"talk"`
	Tokens int64  `json:"tokens"`
	Cost   string `json:"cost"`
}

// Move is the decision of a speaker. Rules is true if no model decided.
type Move struct {
	Kind     string       `json:"kind"`
	Text     string       `json:"text,omitempty"`
	Next     string       `json:"next,omitempty"`
	Tasks    []Assignment `json:"tasks,omitempty"`
	Async    bool         `json:"async,omitempty"`
	Triggers []Trigger    `json:"triggers,omitempty"`
	Rules    bool         `json:"rules"`
}

// Assignment is one task of a move. Task is set for another attempt. Needs are tasks, or negative positions in the
// move.
type Assignment struct {
	Task  string `json:"task,omitempty"`
	Owner string `json:"owner"`
	Text  string `json:"text"`
	Needs []int  `json:"needs,omitempty"`
	Team  bool   `json:"team,omitempty"`
}

// NewEvent returns the JSON form of an event.
func NewEvent(e flow.Event) Event {
	j := Event{Seq: e.Seq, At: respond.FormatTime(e.At), Kind: string(e.Kind), Agent: e.Agent, Turn: e.Turn,
		Task: taskID(e.Task), Attempt: e.Attempt, State: string(e.Status), Text: e.Text}
	if e.Open != nil {
		j.Text = e.Open.Goal
	}
	if e.Kind == flow.Shared || e.Kind == flow.Unshared {
		j.Text = "" // it names the link
	}
	if len(e.Parts) > 0 {
		j.Parts = newParts(e.Parts)
	}
	if e.Ref != nil {
		j.TaskID, j.ConversationID, j.Goal = e.Ref.TaskID, e.Ref.ConversationID, e.Ref.Goal
	}
	if e.Cost != nil {
		j.Cost = &EventCost{e.Cost.Talk, e.Cost.Tokens, spending.FormatCost(e.Cost.Money)}
	}
	if m := e.Move; m != nil {
		j.Move = &Move{Kind: string(m.Kind), Text: m.Text, Next: m.Next, Async: m.Async, Rules: m.Rules,
			Triggers: newTriggers(m.Triggers)}
		for _, t := range m.Tasks {
			j.Move.Tasks = append(j.Move.Tasks, Assignment{taskID(t.Task), t.Owner, t.Text, t.Needs, t.Team})
		}
	}
	return j
}

func taskID(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}
