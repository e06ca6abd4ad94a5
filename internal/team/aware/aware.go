// Package aware is the extension by which an agent speaks for itself in a team: it gets the state of its own part and
// the legal moves as a document beside the text, and answers with one typed move. It is pure; package team judges the
// moves.
package aware

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Extension is the URI by which the card of an agent declares the extension. MediaType is the type of the document;
// an agent of any kind that takes it speaks for itself.
const (
	Extension = "https://agentsite.dev/ext/team/v1"
	MediaType = "application/vnd.agentsite.team+json"
)

// TakesDocuments reports whether an agent with these input modes speaks for itself in teams.
func TakesDocuments(inputModes []string) bool { return slices.Contains(inputModes, MediaType) }

// The values of Document.Kind: the agent has the turn in the talk, or a task.
const (
	Turn = "turn"
	Task = "task"
)

// The kinds of moves. Say and Take answer a turn, the others a task.
const (
	Say     = "say"     // Text: its contribution to the talk
	Take    = "take"    // Text: a task that it gives itself; its text is the whole of the task
	Result  = "result"  // Text: the result of the task
	Decline = "decline" // Text: the reason; another agent gets the task
	Recruit = "recruit" // Text: the goal of a team of its own, the conclusion of which is the result
)

// Document is the part of a team's state that an agent needs for its move, and no more.
type Document struct {
	Kind string `json:"kind"`
	// You is the handle of the agent in the team.
	You string `json:"you"`
	// Number is that of the turn or of the task. Attempt counts the attempts of a task.
	Number  int `json:"number"`
	Attempt int `json:"attempt,omitempty"`
	// Text is the last text of the lead, or the task with the results that it needs.
	Text string `json:"text"`
	// Own are the other tasks that the agent has or had in this team.
	Own []OwnTask `json:"own_tasks,omitempty"`
	// Problem is the reason for which the last move in this turn was refused.
	Problem string    `json:"problem,omitempty"`
	Until   time.Time `json:"until"`
	// Legal are the kinds of moves that the portal will accept.
	Legal []string `json:"legal"`
}

// OwnTask is a task of the agent itself.
type OwnTask struct {
	Number int    `json:"number"`
	Text   string `json:"text"`
	State  string `json:"state"`
}

// Move is the answer of an agent.
type Move struct {
	Kind string `json:"kind"`
	Text string `json:"text"`
}

// EncodeDocument returns the data part with the document: {"team":{…}}.
func EncodeDocument(d Document) (json.RawMessage, error) {
	return json.Marshal(map[string]Document{"team": d})
}

// ReadMove reads a move from a data part of an answer: {"move":{"kind":"…","text":"…"}}. found is false if the part
// is none. The error names the fault of a move, for its author.
func ReadMove(data json.RawMessage, legal []string) (m Move, found bool, err error) {
	var in struct {
		Move json.RawMessage `json:"move"`
	}
	if json.Unmarshal(data, &in) != nil || in.Move == nil {
		return m, false, nil
	}
	switch {
	case json.Unmarshal(in.Move, &m) != nil:
		return Move{}, true, errors.New("a move is an object with the texts kind and text")
	case !slices.Contains(legal, m.Kind):
		return Move{}, true, fmt.Errorf("the move %.40q is not legal here: use %s", m.Kind, strings.Join(legal, ", "))
	}
	m.Text = strings.TrimSpace(strings.ToValidUTF8(m.Text, "\uFFFD"))
	if m.Text == "" {
		return Move{}, true, fmt.Errorf("the move %s needs a text", m.Kind)
	}
	return m, true, nil
}
