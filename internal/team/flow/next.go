package flow

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Bounds of texts and lists in a state, so that a state stays small however long the work lasts.
const (
	MaxGoal     = 16 << 10
	MaxText     = 16 << 10
	maxRecent   = 32
	maxUnheard  = 20
	maxTriggers = 8
	maxParts    = 64
	maxMembers  = 100
	maxAnswers  = 10
)

// Illegal is the error of an event that a state does not allow. Its text says why, for the speaker of a move.
type Illegal struct {
	Reason string
	// Missing is true if the event is about a task that does not exist.
	Missing bool
}

// Error implements error.
func (e *Illegal) Error() string { return e.Reason }

func illegal(format string, args ...any) error {
	return &Illegal{Reason: fmt.Sprintf(format, args...)}
}

// noTask is the error of an event about a task that does not exist.
func noTask(n int) error {
	return &Illegal{Reason: fmt.Sprintf("there is no task %d", n), Missing: true}
}

// ErrOrder is the error of an event with another Seq than the next one.
var ErrOrder = errors.New("the event is not the next one")

// Replay computes the state after a log.
func Replay(log []Event) (State, error) {
	var s State
	for _, e := range log {
		var err error
		if s, err = Next(s, e); err != nil {
			return s, fmt.Errorf("event %d (%s): %w", e.Seq, e.Kind, err)
		}
	}
	return s, nil
}

// Next returns the state after an event. If the event is illegal, it returns s unchanged and an *Illegal.
func Next(s State, e Event) (State, error) {
	if e.Seq != s.Seq+1 {
		return s, ErrOrder
	}
	if (e.Kind == Opened) != (s.Seq == 0) {
		return s, illegal("a goal is opened once, by its first event")
	}
	n := copyState(s)
	n.Seq = e.Seq
	if e.At.After(n.Now) {
		n.Now = e.At // a clock that was set back does not turn time limits back
	}
	m := machine{&n}
	if err := m.applyEvent(e); err != nil {
		return s, err
	}
	m.settleState()
	return n, nil
}

// copyState returns a copy that shares only memory that no event changes.
func copyState(s State) State {
	s.Members, s.Tasks, s.Parts = slices.Clone(s.Members), slices.Clone(s.Tasks), slices.Clip(s.Parts)
	s.Unheard, s.Recent, s.Cuts = slices.Clip(s.Unheard), slices.Clip(s.Recent), slices.Clip(s.Cuts)
	if s.Turn != nil {
		t := *s.Turn
		s.Turn = &t
	}
	return s
}

// machine changes one state.
type machine struct{ *State }

func (m machine) applyEvent(e Event) error {
	if e.Kind == Opened {
		return m.openGoal(e)
	}
	if e.Kind == Shared || e.Kind == Unshared {
		return m.changeShares(e)
	}
	if m.Phase.Final() {
		return m.applyAfter(e)
	}
	switch e.Kind {
	case Found:
		return m.addParts(e)
	case Joined, Refused, Offline:
		return m.answerInvitation(e)
	case Moved:
		return m.applyMove(e)
	case Rejected:
		return m.rejectMove(e)
	case Started:
		return m.startTask(e)
	case Waits, Answered:
		return m.passInput(e)
	case Ended:
		return m.endTask(e)
	case Reassigned:
		return m.reassignTask(e)
	case Recruits:
		return m.recruitTeam(e)
	case Said:
		return m.hearPerson(e)
	case Spent:
		return m.addCost(e)
	case Ticked:
		return nil
	case Stopped:
		m.finishGoal(Canceled, e.Text)
		return nil
	}
	return illegal("there is no event %.40q", e.Kind)
}

// applyAfter handles an event after the end: results and costs that were under way are counted and change nothing
// else, and a message of the person opens a goal again that was not canceled.
func (m machine) applyAfter(e Event) error {
	switch e.Kind {
	case Started, Ended:
		t := m.findTask(e.Task)
		if t == nil || e.Attempt < 1 || e.Attempt > t.Attempt {
			return illegal("there is no such attempt of a task")
		}
		if e.Kind == Started && e.Ref != nil && e.Attempt == t.Attempt && t.Ref == (Ref{}) {
			t.Ref = *e.Ref
			m.Cuts = append(m.Cuts, Cut{*e.Ref, t.N, e.Attempt, t.Owner})
		}
		m.Late++
		return m.addCosts(e)
	case Spent:
		return m.addCost(e)
	case Said:
		if m.Phase == Canceled {
			return illegal("the goal is canceled, which is final")
		}
		if err := checkText(e.Text, "text"); err != nil {
			return err
		}
		m.Phase, m.Reason, m.Conclusion = Discussion, "", ""
		m.Limits.Turns = m.Turns + m.Open.Limits.Turns
		m.Limits.Tasks = len(m.Tasks) + m.Open.Limits.Tasks
		m.Limits.Searches = m.Searches + m.Open.Limits.Searches
		m.Until = m.Now.Add(m.Limits.Time)
		m.Notes++
		m.Unheard = []Note{{e.Agent, e.Text}}
		m.openTurn(Lead)
		return nil
	}
	if (e.Kind == Answered || e.Kind == Reassigned) && m.findTask(e.Task) == nil {
		return noTask(e.Task)
	}
	return illegal("the goal has ended: %s", m.Phase)
}

// changeShares adds or ends a link. Links that are over make room.
func (m machine) changeShares(e Event) error {
	list := slices.DeleteFunc(slices.Clone(m.Shares), func(s Share) bool {
		return !m.Now.Before(s.Until) || s.Hash == e.Text
	})
	switch {
	case e.Kind == Unshared:
	case e.Text == "" || !m.Now.Before(e.Until):
		return illegal("a link has a secret and an end")
	case len(list) >= MaxShares:
		return illegal("a goal has at most %d links: end one first", MaxShares)
	default:
		list = append(list, Share{Hash: e.Text, Created: m.Now, Until: e.Until})
	}
	m.Shares = list
	return nil
}

func (m machine) openGoal(e Event) error {
	o := e.Open
	if o == nil || strings.TrimSpace(o.Goal) == "" || len(o.Goal) > MaxGoal {
		return illegal("a goal has a text of at most %d bytes", MaxGoal)
	}
	l := o.Limits
	if l.Turns < 1 || l.Tasks < 1 || l.Attempts < 1 || l.Members < 0 || l.Members > maxMembers || l.Searches < 1 ||
		l.Repairs < 0 || l.Depth < 0 || l.Time <= 0 || l.TurnTime <= 0 || l.TaskTime <= 0 || l.PersonTime <= 0 {
		return illegal("a goal has limits")
	}
	m.Open, m.Limits, m.Phase = *o, l, Forming
	m.Now = e.At
	m.Begun, m.Until, m.Search = e.At, e.At.Add(l.Time), o.Goal
	for _, h := range o.Members {
		if m.findMember(h) == nil && h != Lead {
			m.Members = append(m.Members, Member{Handle: h, State: Invited, Named: true, Why: "named by the person",
				Person: slices.Contains(o.People, h)})
		}
	}
	if len(m.Members) > l.Members {
		return illegal("%d members are named, and %d may be in the team", len(m.Members), l.Members)
	}
	return nil
}

// addParts takes the result of a search: parts with candidates. The best candidate of each part is invited, as far as
// there is room.
func (m machine) addParts(e Event) error {
	if m.Search == "" {
		return illegal("nothing is searched")
	}
	if len(m.Parts)+len(e.Parts) > maxParts {
		return illegal("there are too many parts")
	}
	first := len(m.Parts)
	for i, p := range e.Parts {
		if p.N != first+i+1 {
			return illegal("parts are numbered from %d on", first+1)
		}
		for _, need := range p.Needs {
			if need < 1 || need >= p.N {
				return illegal("part %d needs part %d, which is not before it", p.N, need)
			}
		}
	}
	m.Searches++
	m.Search = ""
	m.Parts = append(m.Parts, e.Parts...)
	for _, p := range e.Parts {
		m.inviteFor(p)
	}
	return nil
}

// inviteFor invites the best candidate of a part that has not refused, unless it is a member or the team is full.
func (m machine) inviteFor(p Part) {
	for _, c := range p.Candidates {
		k := m.findMember(c.Handle)
		if k != nil && (k.State == IsMember || k.State == Invited) {
			return
		}
		if k == nil && m.hasRoom() {
			m.Members = append(m.Members, Member{Handle: c.Handle, State: Invited, Why: c.Why, Person: c.Person})
			return
		}
	}
}

// hasRoom reports whether one more member may be invited. Members that refused or are offline do not count, but the
// invitations are bounded.
func (m machine) hasRoom() bool {
	n := 0
	for _, k := range m.Members {
		if k.State == IsMember || k.State == Invited {
			n++
		}
	}
	return n < m.Limits.Members && len(m.Members) < maxMembers
}

func (m machine) answerInvitation(e Event) error {
	k := m.findMember(e.Agent)
	if k == nil || k.State != Invited {
		return illegal("%.80q was not invited", e.Agent)
	}
	k.State = map[Kind]MemberState{Joined: IsMember, Refused: HasRefuse, Offline: IsOffline}[e.Kind]
	k.Note, k.Aware = e.Text, e.Kind == Joined && e.Aware
	if e.Kind == Joined {
		return nil
	}
	for _, p := range m.Parts {
		m.inviteFor(p)
	}
	for i := range m.Tasks {
		if t := &m.Tasks[i]; t.Owner == e.Agent && !t.Status.Final() {
			m.endAttempt(t, Broken, fmt.Sprintf("%s did not join: %s", e.Agent, e.Text))
		}
	}
	return nil
}

func (m machine) rejectMove(e Event) error {
	if m.Turn == nil || m.Turn.N != e.Turn || m.Turn.Speaker != e.Agent {
		return illegal("%.80q does not have turn %d", e.Agent, e.Turn)
	}
	m.Turn.Repairs++
	m.Turn.Problem = cutText(e.Text, 500)
	if m.Turn.Repairs > m.Limits.Repairs {
		m.failTurn("It gave no legal move.")
	}
	return nil
}

// failTurn lets the rules decide the turn of the lead, and ends the turn of a member with a note. If the rules fail as
// well, the goal fails.
func (m machine) failTurn(why string) {
	t := m.Turn
	switch {
	case t.Speaker != Lead:
		m.Turns++
		m.Turn = nil
		m.rememberText(t.Speaker, "["+why+"]")
		m.openTurn(Lead)
	case t.Fallback:
		m.finishGoal(Failed, NoSpeaker+": the rules found no legal move")
	default:
		t.Fallback, t.Since = true, m.Now
	}
}

func (m machine) startTask(e Event) error {
	t := m.findTask(e.Task)
	switch {
	case t == nil || e.Ref == nil:
		return illegal("there is no task %d", e.Task)
	case e.Attempt < t.Attempt || e.Attempt == t.Attempt && t.Status.Final():
		// The attempt ended while it was sent: its durable task must be stopped.
		m.Cuts = append(m.Cuts, Cut{Ref: *e.Ref, Task: t.N, Attempt: e.Attempt})
		return nil
	case e.Attempt != t.Attempt || t.Status != Ready:
		return illegal("task %d does not begin attempt %d now: it is %s", e.Task, e.Attempt, t.Status)
	}
	t.Status, t.Ref, t.Started = Working, *e.Ref, m.Now
	return nil
}

func (m machine) passInput(e Event) error {
	t := m.findTask(e.Task)
	switch {
	case t == nil:
		return noTask(e.Task)
	case e.Kind == Waits && t.Status == Working && e.Attempt == t.Attempt && len(t.Answers) < maxAnswers:
		t.Status, t.Question, t.Asked = Input, cutText(e.Text, MaxText), m.Now
	case e.Kind == Answered && t.Status == Input:
		if err := checkText(e.Text, "answer"); err != nil {
			return err
		}
		t.Answers = append(slices.Clip(t.Answers), e.Text)
		if isPerson(m.State, t.Owner) { // the answer is the result, and no agent waits for it
			m.endAttempt(t, Completed, e.Text)
			return nil
		}
		t.Status = Working
		t.Started = m.Now // the time of the person is not that of the task
	default:
		return illegal("task %d takes no such message now: it is %s", e.Task, t.Status)
	}
	return nil
}

func (m machine) endTask(e Event) error {
	t := m.findTask(e.Task)
	switch {
	case t == nil || !e.Status.Final() || e.Attempt < 1 || e.Attempt > t.Attempt:
		return illegal("there is no attempt %d of task %d", e.Attempt, e.Task)
	case e.Attempt < t.Attempt || t.Status.Final():
		m.Late++ // it was ended here before
		return m.addCosts(e)
	case t.Status == Planned:
		return illegal("task %d has not begun", e.Task)
	}
	m.endAttempt(t, e.Status, cutText(e.Text, MaxText))
	return m.addCosts(e)
}

// addCosts adds the part of the costs of a team below that was not added before. So each is counted once, however often
// the team reports.
func (m machine) addCosts(e Event) error {
	t := m.findTask(e.Task)
	if len(e.Costs) == 0 {
		return nil
	}
	if t == nil || e.Attempt < 1 || e.Attempt > t.Attempt {
		return illegal("there is no attempt %d of task %d", e.Attempt, e.Task)
	}
	t.Below = slices.Clone(t.Below)
	i := slices.IndexFunc(t.Below, func(b BelowCost) bool { return b.Attempt == e.Attempt })
	if i < 0 {
		i = len(t.Below)
		t.Below = append(t.Below, BelowCost{Attempt: e.Attempt})
	}
	for _, c := range e.Costs {
		known := &t.Below[i].Work
		if c.Talk {
			known = &t.Below[i].Talk
		}
		more := Cost{Talk: c.Talk, Tokens: max(c.Tokens-known.Tokens, 0), Money: max(c.Money-known.Money, 0)}
		known.Talk, known.Tokens, known.Money = c.Talk, known.Tokens+more.Tokens, known.Money+more.Money
		if err := m.addCost(Event{Cost: &more, Task: e.Task}); err != nil {
			return err
		}
	}
	return nil
}

// endAttempt ends the current attempt of a task.
func (m machine) endAttempt(t *Task, s Status, text string) {
	t.Status, t.Ended = s, m.Now
	if s == Completed {
		t.Result, t.Reason = text, ""
		return
	}
	t.Reason = text
}

// cutOff ends an attempt that its owner has not ended, so that the durable task must be stopped.
func (m machine) cutOff(t *Task, s Status, text string) {
	if t.Status != Planned {
		m.Cuts = append(m.Cuts, Cut{t.Ref, t.N, t.Attempt, t.Owner})
	}
	m.endAttempt(t, s, text)
}

func (m machine) reassignTask(e Event) error {
	t := m.findTask(e.Task)
	switch {
	case t == nil:
		return noTask(e.Task)
	case t.Status == Completed:
		return illegal("task %d is completed", e.Task)
	case t.Attempt >= 2*m.Limits.Attempts:
		return illegal("task %d has been given away %d times, which is the most there may be", e.Task, t.Attempt)
	case e.Agent == "" || e.Agent == Lead || e.Agent == t.Owner && !t.Status.Final():
		return illegal("name another agent")
	}
	if err := m.includeAgent(e.Agent, "chosen by the person"); err != nil {
		return err
	}
	if !t.Status.Final() {
		m.cutOff(t, Dropped, "It was given to "+e.Agent+".")
	}
	m.retryTask(t, e.Agent)
	if m.Phase == Paused || m.Phase == Sync {
		if !slices.Contains(m.Awaits, t.N) {
			m.Awaits = append(slices.Clip(m.Awaits), t.N)
		}
	}
	return nil
}

// recruitTeam begins another attempt of a task, by a team of its owner, which asked for it.
func (m machine) recruitTeam(e Event) error {
	t := m.findTask(e.Task)
	switch {
	case t == nil:
		return noTask(e.Task)
	case t.Owner != e.Agent || t.Attempt != e.Attempt || t.Status != Working || isPerson(m.State, e.Agent):
		return illegal("%.80q does not work on task %d", e.Agent, e.Task)
	case t.Team:
		return illegal("task %d has a team", e.Task)
	case m.Limits.Depth < 1:
		return illegal("no team may be formed below this one")
	case t.Attempt >= m.Limits.Attempts:
		return illegal("task %d was tried %d times, which is the most there may be", t.N, t.Attempt)
	}
	if err := checkText(e.Text, "goal"); err != nil {
		return err
	}
	m.retryTask(t, t.Owner)
	t.Team, t.Plan = true, e.Text
	return nil
}

// includeAgent makes an agent a member or invites it, if it is none yet.
func (m machine) includeAgent(handle, why string) error {
	k := m.findMember(handle)
	switch {
	case k != nil && (k.State == IsMember || k.State == Invited):
		return nil
	case k != nil:
		return illegal("%s did not join: %s", handle, k.Note)
	case !m.hasRoom():
		return illegal("%s is not in the team, and no more than %d may be", handle, m.Limits.Members)
	}
	m.Members = append(m.Members, Member{Handle: handle, State: Invited, Why: why})
	return nil
}

// retryTask begins another attempt of a task.
func (m machine) retryTask(t *Task, owner string) {
	t.Tried = append(slices.Clip(t.Tried), t.Owner)
	t.Owner, t.Attempt, t.Status, t.Ref = owner, t.Attempt+1, Planned, Ref{}
	t.Started, t.Ended, t.Asked, t.Question, t.Answers = time.Time{}, time.Time{}, time.Time{}, "", nil
	if t.Plan != "" { // the team was that of the owner before
		t.Team, t.Plan = false, ""
	}
}

func (m machine) hearPerson(e Event) error {
	if err := checkText(e.Text, "text"); err != nil {
		return err
	}
	if e.Agent == "" || e.Agent == Lead {
		return illegal("a message has an author")
	}
	// A person with the turn speaks in it.
	if m.Turn != nil && m.Turn.Speaker == e.Agent {
		return m.applyMove(Event{Kind: Moved, Agent: e.Agent, Turn: m.Turn.N, Move: &Move{Kind: Say, Text: e.Text}})
	}
	m.Notes++
	m.Unheard = append(m.Unheard, Note{e.Agent, e.Text})
	if len(m.Unheard) > maxUnheard {
		m.Unheard = slices.Clone(m.Unheard[len(m.Unheard)-maxUnheard:])
	}
	if m.Phase == Paused {
		m.resumeTalk()
	}
	return nil
}

func (m machine) addCost(e Event) error {
	if len(e.Costs) > 0 {
		return m.addCosts(Event{Task: e.Task, Attempt: e.Attempt, Costs: e.Costs})
	}
	if e.Cost == nil || e.Cost.Tokens < 0 || e.Cost.Money < 0 {
		return illegal("a cost has an amount")
	}
	to := &m.Work
	if e.Cost.Talk {
		to = &m.Talk
	}
	to.Talk = e.Cost.Talk
	to.Tokens += e.Cost.Tokens
	to.Money += e.Cost.Money
	if t := m.findTask(e.Task); t != nil {
		t.Cost.Tokens += e.Cost.Tokens
		t.Cost.Money += e.Cost.Money
	}
	return nil
}

func (m machine) findTask(n int) *Task {
	if n < 1 || n > len(m.Tasks) {
		return nil
	}
	return &m.Tasks[n-1]
}

func (m machine) findMember(handle string) *Member {
	for i := range m.Members {
		if m.Members[i].Handle == handle {
			return &m.Members[i]
		}
	}
	return nil
}

func checkText(s, field string) error {
	if strings.TrimSpace(s) == "" || len(s) > MaxText {
		return illegal("the %s needs 1 to %d bytes", field, MaxText)
	}
	return nil
}

// cutText returns the beginning of s, at most n bytes, in whole characters.
func cutText(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n-3], "") + "…"
}
