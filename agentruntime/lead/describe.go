package lead

import (
	"encoding/json"
	"strings"

	"agentsite/internal/team"
	"agentsite/internal/team/flow"
)

// Bounds of the document for the model, in bytes and entries.
const (
	maxResults = 24 << 10 // of all tasks
	maxTalk    = 20
	maxText    = 2 << 10 // of one text of the talk
)

// document is the state of a team as the model gets it.
type document struct {
	Goal       string      `json:"goal"`
	Messages   []string    `json:"messages_of_person,omitempty"`
	Members    []member    `json:"members"`
	Candidates []candidate `json:"candidates,omitempty"`
	Tasks      []taskDoc   `json:"tasks,omitempty"`
	Talk       []flow.Note `json:"talk,omitempty"`
	Problem    string      `json:"problem_of_your_last_answer,omitempty"`
	TurnsLeft  int         `json:"turns_left"`
	TasksLeft  int         `json:"tasks_left"`
}

type member struct {
	Handle string `json:"handle"`
	State  string `json:"state"`
	Why    string `json:"why,omitempty"`
	Note   string `json:"note,omitempty"`
}

type candidate struct {
	Handle string `json:"handle"`
	For    string `json:"for"`
	Why    string `json:"why"`
}

type taskDoc struct {
	Task   int    `json:"task"`
	Owner  string `json:"owner"`
	Text   string `json:"text"`
	State  string `json:"state"`
	Needs  []int  `json:"needs,omitempty"`
	Result string `json:"result,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// describeState returns the document of a state as JSON.
func describeState(q team.Question) string {
	s := q.State
	d := document{Goal: s.Open.Goal, Members: []member{}, TurnsLeft: s.Limits.Turns - s.Turns,
		TasksLeft: s.Limits.Tasks - len(s.Tasks)}
	for _, n := range s.Unheard {
		d.Messages = append(d.Messages, n.Text)
	}
	known := make(map[string]bool)
	for _, k := range s.Members {
		known[k.Handle] = true
		d.Members = append(d.Members, member{k.Handle, string(k.State), k.Why, k.Note})
	}
	for _, p := range s.Parts {
		for _, c := range p.Candidates {
			if !known[c.Handle] {
				d.Candidates = append(d.Candidates, candidate{c.Handle, cutText(p.Text, 200), c.Why})
			}
		}
	}
	room := maxResults
	for i, t := range s.Tasks {
		share := room / (len(s.Tasks) - i)
		j := taskDoc{Task: t.N, Owner: t.Owner, Text: cutText(t.Text, maxText), State: string(t.Status), Needs: t.Needs,
			Result: cutText(t.Result, share), Reason: cutText(t.Reason, 500)}
		room -= len(j.Result)
		d.Tasks = append(d.Tasks, j)
	}
	for _, n := range q.Talk[max(len(q.Talk)-maxTalk, 0):] {
		d.Talk = append(d.Talk, flow.Note{Agent: n.Agent, Text: cutText(n.Text, maxText)})
	}
	if s.Turn != nil {
		d.Problem = s.Turn.Problem
	}
	b, err := json.Marshal(d)
	if err != nil { // cannot happen: the document consists of texts and numbers
		return "{}"
	}
	return string(b)
}

// cutText returns the beginning of s, at most n bytes, and says if something is missing.
func cutText(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:max(n, 0)], "") + "… (cut)"
}
