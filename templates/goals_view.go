package templates

import "strconv"

// GoalExamples are goals with parts that the agents of a new portal can do.
var GoalExamples = []string{
	"What is 15% of 80? Then add 19% VAT to the result. How do I register an agent?",
	"How many days are between 2026-01-01 and 2026-12-25? Then multiply the result by 24. What may guests do?",
	"How do I talk to an agent? How do portals find each other? Convert 5 km in miles.",
}

// GoalState is the state of a goal in words.
type GoalState struct{ Code, Label, Reason string }

// GoalRow is a goal in the list of the reader.
type GoalRow struct {
	ID, Text, Age string
	State         GoalState
	Begun         Time
}

// GoalList is the list of the reader's goals.
type GoalList struct {
	Rows     []GoalRow
	Next     string
	Examples []string
}

// GoalForm is the form for a new goal, as typed.
type GoalForm struct {
	Goal, Members, Recruit, MaxMembers, MaxTurns, MaxDepth, Minutes, Tokens, Cost, Key string
	PersonMinutes                                                                      string
	RequireAll                                                                         bool
	More                                                                               bool // the limits are shown
	Errors                                                                             FieldErrors
	Examples                                                                           []string
	Previewed                                                                          bool
	Parts                                                                              []GoalPart
	Expected                                                                           string // the likely cost
}

// GoalPick is an agent that fits a part, and the reason.
type GoalPick struct {
	Handle, Why string
	Provenance  Provenance
}

// GoalPart is a part of a goal with the agent that would be picked, nil for none.
type GoalPart struct {
	N           int
	Text, After string
	Pick        *GoalPick
	Others      []GoalPick
}

// GoalView is the page of a goal.
type GoalView struct {
	ID, Text, Parent, Again string
	State                   GoalState
	Begun                   Time
	Seq                     int64
	Live                    bool // more events may come
	Final, MaySay, ByModel  bool
	Conclusion              SafeHTML
	Tree                    GoalTree
	Members                 []GoalMember
	Tasks                   []GoalTask
	Missing                 []GoalPart
	Events                  []GoalEvent
	Left                    int // events before the first one shown
	Meters                  []GoalMeter
	Say                     string
	Answered                map[int]string // typed answers by task
	Errors                  FieldErrors
	// Link is a link for readers that was made now. Shares are the valid ones.
	Link   string
	Shares []GoalShare
	// At is the event after which the goal is shown, Last its last event. With Past it is shown as it was, without
	// forms.
	At, Last int64
	Past     bool
}

// GoalShare is a link for readers, by its hash.
type GoalShare struct {
	Link  string
	Until Time
}

// GoalMember is a member of a team.
type GoalMember struct {
	Handle, State, Why, Note string
	Person                   bool
}

// GoalTask is a task on the board.
type GoalTask struct {
	N, Attempt                                                    int
	Text, Owner, Code, State, Reason, Question, After, Took, Chat string
	Goal                                                          string
	Cost                                                          string
	Asks, Person                                                  bool
	Waits                                                         bool // for a person, until Due
	Due                                                           Time
	MayMove                                                       bool     // to another agent
	Others                                                        []string // agents that may do it
	Result                                                        SafeHTML
}

// GoalEvent is an entry of the log in words.
type GoalEvent struct {
	Seq                           int64
	Kind, Move, Agent, What, Text string
	At                            Time
	Rich                          SafeHTML // the text of an agent, rendered; Text is empty then
}

// GoalMeter is a limit and its use.
type GoalMeter struct {
	Label, Text string
	Value, Most int
}

// GoalTree is the picture of a team. Lines are paths.
type GoalTree struct {
	Width, Height int
	Nodes         []TreeNode
	Lines         []string
}

// TreeNode is a member in the picture of a team.
type TreeNode struct {
	Kind, Name, About string
	X, Y              int
}

// GoalTitle returns the beginning of a goal for the title of its page.
func GoalTitle(s string) string {
	if r := []rune(s); len(r) > 60 {
		return string(r[:59]) + "…"
	}
	return s
}

func goalHref(id string) string { return "/goals/" + id }

func number(n int) string { return strconv.Itoa(n) }

// isIdle reports whether the board is empty.
func (v GoalView) isIdle() bool { return len(v.Tasks)+len(v.Missing) == 0 }
