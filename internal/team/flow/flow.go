// Package flow is the state machine of a team that works on a goal. It is pure: Next computes a state from a state and
// an event, Effects lists the work that a state needs. The state is rebuilt from the events alone, so that a portal
// goes on after a restart at the point where it stopped.
//
// Speakers propose typed moves. A move is an event only if Next accepts it: an illegal move changes nothing. At most
// one turn is open at a time, and limits of turns, members, tasks, attempts, time, tokens and money bound all work.
package flow

import (
	"time"
)

// Phase is the state of the machine.
type Phase string

// The phases. A team forms, then speakers take turns (Discussion, or Async while tasks run beside). Sync waits for all
// tasks of one assignment, Paused for a trigger. Concluded, Failed and Canceled are final; a message of the person
// opens a concluded or failed goal again.
const (
	Forming    Phase = "forming"
	Discussion Phase = "discussion"
	Sync       Phase = "sync"
	Async      Phase = "async"
	Paused     Phase = "paused"
	Concluded  Phase = "concluded"
	Failed     Phase = "failed"
	Canceled   Phase = "canceled"
)

// Final reports whether the work has ended.
func (p Phase) Final() bool { return p == Concluded || p == Failed || p == Canceled }

// Public returns the state as the API names it: forming, working, paused, concluded, failed or canceled.
func (p Phase) Public() string {
	switch p {
	case Discussion, Sync, Async:
		return "working"
	}
	return string(p)
}

// PublicStates lists all values of Phase.Public.
func PublicStates() []Phase { return []Phase{Forming, "working", Paused, Concluded, Failed, Canceled} }

// Lead is the name of the speaker that leads a team for the portal.
const Lead = "portal"

// The reasons of a failed goal. Text after a colon explains one.
const (
	NoTeam      = "team_formation"
	NoTurns     = "max_turns"
	NoTime      = "deadline"
	NoBudget    = "budget"
	NoSpeaker   = "no_speaker"
	TooManyOpen = "max_tasks"
)

// Limits bound a goal and everything that it leads to.
type Limits struct {
	Members  int `json:"members"`  // besides the lead
	Turns    int `json:"turns"`    // of all speakers
	Depth    int `json:"depth"`    // of teams below this one
	Tasks    int `json:"tasks"`    // all that are ever assigned
	Attempts int `json:"attempts"` // of one task
	Searches int `json:"searches"` // for members
	Repairs  int `json:"repairs"`  // of one turn, before the rules decide
	// Time is the longest time from the opening to the end. TurnTime bounds one turn, TaskTime one attempt of a task,
	// and PersonTime a wait for a person, also for one that has a task or the turn.
	Time       time.Duration `json:"time"`
	TurnTime   time.Duration `json:"turn_time"`
	TaskTime   time.Duration `json:"task_time"`
	PersonTime time.Duration `json:"person_time"`
	// Tokens and Money, in millionths of the currency, bound the models of the whole tree; 0 for no bound.
	Tokens int64 `json:"tokens,omitempty"`
	Money  int64 `json:"money,omitempty"`
}

// Opening is the first event of a goal.
type Opening struct {
	Goal string `json:"goal"`
	// Members are the agents and people that the person named. With RequireAll the goal fails without one of them.
	Members    []string `json:"members,omitempty"`
	RequireAll bool     `json:"require_all,omitempty"`
	// People are those of Members that are people.
	People []string `json:"people,omitempty"`
	// Recruit selects where members are searched: Here, Network, or Members for none but those named.
	Recruit Recruit `json:"recruit"`
	// ByModel is true if a model decides for the lead; otherwise rules do.
	ByModel bool   `json:"by_model,omitempty"`
	Limits  Limits `json:"limits"`
	// Parent is the id of the goal for which this team works, with the task there; "" for none. Above lists the agents
	// that assigned the work, the first one first.
	Parent     string   `json:"parent,omitempty"`
	ParentTask int      `json:"parent_task,omitempty"`
	Above      []string `json:"above,omitempty"`
}

// Recruit selects where members are searched.
type Recruit string

// The values of Recruit.
const (
	RecruitHere    Recruit = "here"
	RecruitNetwork Recruit = "network"
	RecruitMembers Recruit = "members"
)

// Kind is the kind of an event.
type Kind string

// The kinds of events, and the fields that they have besides At.
const (
	Opened     Kind = "opened"     // Open
	Found      Kind = "found"      // Parts: the parts of the goal or of a later request, with candidates
	Joined     Kind = "joined"     // Agent, Text: why it was picked, Aware
	Refused    Kind = "refused"    // Agent, Text: the reason
	Offline    Kind = "offline"    // Agent, Text: the reason
	Moved      Kind = "moved"      // Agent: the speaker, Turn, Move
	Rejected   Kind = "rejected"   // Agent: the speaker, Turn, Text: the reason
	Started    Kind = "started"    // Task, Attempt, Ref
	Waits      Kind = "waits"      // Task, Attempt, Text: the question of the agent
	Answered   Kind = "answered"   // Task, Agent: the person, Text: the answer
	Ended      Kind = "ended"      // Task, Attempt, Status, Text: result or reason, Costs
	Reassigned Kind = "reassigned" // Task, Agent: the new owner, Text: the person that decided
	Recruits   Kind = "recruits"   // Task, Attempt, Agent: its owner, Text: the goal of the team that does it
	Said       Kind = "said"       // Agent: the person, Text
	Spent      Kind = "spent"      // Cost and Task, 0 for none; or Task, Attempt and Costs so far of a team below
	Ticked     Kind = "ticked"     // a moment that WakeAt named
	Shared     Kind = "shared"     // Text: the hash of the secret of a link for readers, Until
	Unshared   Kind = "unshared"   // Text: the hash
	Stopped    Kind = "stopped"    // Agent: the person, Text: the reason; the goal is canceled
)

// Event is one entry of the log of a goal. Seq is dense and begins at 1.
type Event struct {
	Seq     int64     `json:"seq"`
	At      time.Time `json:"at"`
	Kind    Kind      `json:"kind"`
	Agent   string    `json:"agent,omitempty"`
	Turn    int       `json:"turn,omitempty"`
	Task    int       `json:"task,omitempty"`
	Attempt int       `json:"attempt,omitempty"`
	Status  Status    `json:"status,omitempty"`
	Text    string    `json:"text,omitempty"`
	Until   time.Time `json:"until,omitzero"`
	// Aware is true for a member that speaks for itself with moves of package aware.
	Aware bool     `json:"aware,omitempty"`
	Open  *Opening `json:"open,omitempty"`
	Parts []Part   `json:"parts,omitempty"`
	Move  *Move    `json:"move,omitempty"`
	Ref   *Ref     `json:"ref,omitempty"`
	Cost  *Cost    `json:"cost,omitempty"`
	// Costs are those of the team that does a task, from its beginning: talk and work.
	Costs []Cost `json:"costs,omitempty"`
}

// Ref names the durable task of an attempt.
type Ref struct {
	TaskID         string `json:"task_id"`
	ConversationID string `json:"conversation_id,omitempty"`
	Seq            int64  `json:"seq,omitempty"` // of the question in the conversation
	Goal           string `json:"goal,omitempty"`
}

// Cost is an amount of tokens and money. Talk is true for the conversation of the team, false for the work on tasks.
type Cost struct {
	Talk   bool  `json:"talk,omitempty"`
	Tokens int64 `json:"tokens"`
	Money  int64 `json:"money"`
}

// Part is a piece of the goal with the agents that may do it, best first. Needs are the numbers of earlier parts, the
// results of which it needs.
type Part struct {
	N          int         `json:"n"`
	Text       string      `json:"text"`
	Needs      []int       `json:"needs,omitempty"`
	Candidates []Candidate `json:"candidates,omitempty"`
}

// Candidate is an agent or person that may do a part, and the reason.
type Candidate struct {
	Handle string `json:"handle"`
	Why    string `json:"why"`
	Live   string `json:"live,omitempty"`
	Person bool   `json:"person,omitempty"`
}

// MoveKind is the type of a move.
type MoveKind string

// The types of moves. All are moves of the lead; a member may Say, and Assign one task to itself.
const (
	Say      MoveKind = "say"      // Text, Next: the next speaker
	Assign   MoveKind = "assign"   // Tasks, Async: whether the talk goes on meanwhile
	Pause    MoveKind = "pause"    // Triggers
	Request  MoveKind = "request"  // Text: a further capability for which agents are searched
	Conclude MoveKind = "conclude" // Text: the conclusion
	GiveUp   MoveKind = "give_up"  // Text: the reason
)

// Move is the decision of a speaker. Rules is true if the rules decided because the model gave no legal move.
type Move struct {
	Kind     MoveKind     `json:"kind"`
	Text     string       `json:"text,omitempty"`
	Next     string       `json:"next,omitempty"`
	Tasks    []Assignment `json:"tasks,omitempty"`
	Async    bool         `json:"async,omitempty"`
	Triggers []Trigger    `json:"triggers,omitempty"`
	Rules    bool         `json:"rules,omitempty"`
}

// Assignment gives one task to an owner. Task is 0 for a new task, or the number of a failed task for another attempt.
// Text is only read of a new task. Needs are numbers of tasks, or negative positions in the same move: -1 is its first
// task.
type Assignment struct {
	Task  int    `json:"task,omitempty"`
	Part  int    `json:"part,omitempty"`
	Owner string `json:"owner"`
	Text  string `json:"text"`
	Needs []int  `json:"needs,omitempty"`
	// Team is true if the owner may recruit a team of its own for the task.
	Team bool `json:"team,omitempty"`
}

// Trigger ends a pause: when Any, All or the Named tasks have ended, or at a time.
type Trigger struct {
	On    TriggerKind   `json:"on"`
	Tasks []int         `json:"tasks,omitempty"`
	After time.Duration `json:"after,omitempty"`
	At    time.Time     `json:"at,omitzero"` // set by the machine
}

// TriggerKind is the condition of a trigger.
type TriggerKind string

// The conditions. OnNamed waits for all of Tasks. OnAny and OnAll are about the tasks that are open when the pause
// begins; OnAny is true at once if a task has ended since the turn of the pause was opened.
const (
	OnAny   TriggerKind = "any"
	OnAll   TriggerKind = "all"
	OnNamed TriggerKind = "named"
	OnTime  TriggerKind = "time"
)

// Status is the state of one attempt of a task. It only moves forward in the order of the list; the last three are
// final, and Working and Input alternate.
type Status string

// The states of tasks.
const (
	Planned   Status = "planned" // it waits for tasks that it needs, or for its owner to join
	Ready     Status = "ready"   // it is to be sent to its owner
	Working   Status = "working"
	Input     Status = "input" // its owner asked the person something
	Completed Status = "completed"
	Broken    Status = "failed"
	Dropped   Status = "canceled"
)

// Final reports whether an attempt has ended.
func (s Status) Final() bool { return s == Completed || s == Broken || s == Dropped }

// Task is one entry of the board.
type Task struct {
	N     int    `json:"n"`
	Part  int    `json:"part,omitempty"`
	Owner string `json:"owner"`
	Text  string `json:"text"`
	Needs []int  `json:"needs,omitempty"`
	Team  bool   `json:"team,omitempty"`
	By    string `json:"by"` // the speaker that assigned it
	// Plan is the goal of the team that the owner recruited for this attempt, "" for none.
	Plan    string `json:"plan,omitempty"`
	Attempt int    `json:"attempt"`
	// Tried are the owners of earlier attempts.
	Tried  []string `json:"tried,omitempty"`
	Status Status   `json:"status"`
	// Result is the text of a completed task, Reason the reason of a failed one. Question is the question of the owner,
	// Answers the answers of the person so far.
	Result   string   `json:"result,omitempty"`
	Reason   string   `json:"reason,omitempty"`
	Question string   `json:"question,omitempty"`
	Answers  []string `json:"answers,omitempty"`
	Ref      Ref      `json:"ref,omitzero"`
	// Cost is the cost of all attempts, and Below that of the teams that did them, which is a part of it.
	Cost    Cost        `json:"cost,omitzero"`
	Below   []BelowCost `json:"below,omitempty"`
	Created time.Time   `json:"created"`
	Started time.Time   `json:"started,omitzero"`
	Ended   time.Time   `json:"ended,omitzero"`
	// Asked is the time of the question to the person.
	Asked time.Time `json:"asked,omitzero"`
}

// BelowCost is the cost of the team that does one attempt of a task, as far as it is known.
type BelowCost struct {
	Attempt int  `json:"attempt"`
	Talk    Cost `json:"talk"`
	Work    Cost `json:"work"`
}

// MemberState is the state of a member.
type MemberState string

// The states of members.
const (
	Invited   MemberState = "invited"
	IsMember  MemberState = "joined"
	HasRefuse MemberState = "refused"
	IsOffline MemberState = "offline"
)

// Member is an agent or person of the team.
type Member struct {
	Handle string      `json:"handle"`
	State  MemberState `json:"state"`
	Why    string      `json:"why,omitempty"` // the reason for which it was picked
	Note   string      `json:"note,omitempty"`
	Named  bool        `json:"named,omitempty"` // by the person
	Person bool        `json:"person,omitempty"`
	Aware  bool        `json:"aware,omitempty"` // it speaks for itself
}

// Turn is the open turn. Fallback is true if the rules must decide it.
type Turn struct {
	N        int       `json:"n"`
	Speaker  string    `json:"speaker"`
	Since    time.Time `json:"since"`
	Repairs  int       `json:"repairs,omitempty"`
	Fallback bool      `json:"fallback,omitempty"`
	// Problem is the reason for which the last move was rejected.
	Problem string `json:"problem,omitempty"`
}

// State is the state of a goal. Callers must not change it; Next copies the parts that it changes.
type State struct {
	Seq    int64
	Phase  Phase
	Open   Opening
	Limits Limits
	Begun  time.Time
	Until  time.Time // the deadline
	Now    time.Time // of the last event

	Members []Member
	Parts   []Part
	Tasks   []Task
	// Search is the text for which members are to be searched, "" for none; Searches counts the searches.
	Search   string
	Searches int
	// Turn is the open turn, nil for none; Turns counts the turns that were used.
	Turn  *Turn
	Turns int
	// Assigner gets the turn after a Sync. Triggers end a pause. Awaits are the tasks that either is about.
	Assigner string
	Triggers []Trigger
	Awaits   []int
	// Unheard are the messages of people that the lead has not answered by a move. Notes counts all messages, so that a
	// decision that was made without the last one is made anew.
	Unheard []Note
	Notes   int
	// Topic is the last text of the lead, to which the next speaker answers.
	Topic string
	// Recent are the last texts of the talk, for the guard against repetition.
	Recent []Note
	// Cuts are the attempts that the machine ended before their owner did.
	Cuts []Cut

	// Shares are the links for readers.
	Shares []Share

	Reason     string
	Conclusion string
	Talk, Work Cost
	Late       int // results that came after the end
}

// Cut is an attempt that has a durable task to be stopped. Its Ref is zero if the attempt was not known to have begun:
// it may have been sent all the same.
type Cut struct {
	Ref
	Task, Attempt int
	Agent         string
}

// Share is a link with which anyone may read a goal. Hash is that of its secret.
type Share struct {
	Hash    string
	Created time.Time
	Until   time.Time
}

// MaxShares bounds the links of a goal.
const MaxShares = 10

// Note is a text of a speaker.
type Note struct {
	Agent string `json:"agent"`
	Text  string `json:"text"`
}

// Effect is work that a state needs. Effects with the same Key are the same work: it is done once, also over restarts,
// because the names of durable tasks derive from the key.
type Effect struct {
	Key  string
	Kind EffectKind
	// Agent is the member that is invited or asked. Task, Attempt and Answer name an attempt of a task and the number
	// of answers that the person gave to it.
	Agent   string
	Task    int
	Attempt int
	Answer  int
	Turn    int
	Text    string
	Ref     Ref
}

// EffectKind is the kind of an effect.
type EffectKind string

// The kinds of effects, with the events that they lead to.
const (
	DoSearch EffectKind = "search" // Found
	DoInvite EffectKind = "invite" // Joined, Refused or Offline
	DoDecide EffectKind = "decide" // Moved or Rejected
	DoTask   EffectKind = "task"   // Started, then Waits or Ended
	DoStop   EffectKind = "stop"   // none: stops a durable task
)
