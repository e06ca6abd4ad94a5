package flow

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// settleState draws the conclusions of an event: limits, times, tasks that can begin, and the next turn.
func (m machine) settleState() {
	if m.Phase.Final() {
		return
	}
	m.checkTimes()
	m.advanceTasks()
	switch {
	case m.Phase.Final():
		return
	case !m.Now.Before(m.Until):
		m.failGoal(NoTime, "the time is over")
	case m.Limits.Tokens > 0 && m.Talk.Tokens+m.Work.Tokens >= m.Limits.Tokens,
		m.Limits.Money > 0 && m.Talk.Money+m.Work.Money >= m.Limits.Money:
		m.failGoal(NoBudget, "the tokens or the money are used up")
	case m.Search != "" || m.hasInvited():
	case m.Turn != nil:
	case m.Phase == Forming:
		m.endForming()
	case m.Phase == Sync:
		if m.allEnded(m.Awaits) {
			m.resumeTalk()
		}
	case m.Phase == Paused:
		if slices.ContainsFunc(m.Triggers, m.isDue) {
			m.resumeTalk()
		}
	default:
		m.openTurn(Lead) // after a search
	}
	if m.Turn == nil {
		return
	}
	m.Phase = Discussion
	if slices.ContainsFunc(m.Tasks, func(t Task) bool { return !t.Status.Final() }) {
		m.Phase = Async
	}
}

// hasInvited reports whether the forming team waits for an answer to an invitation. Later invitations delay only the
// tasks of the invited.
func (m machine) hasInvited() bool {
	return m.Phase == Forming && slices.ContainsFunc(m.Members, func(k Member) bool { return k.State == Invited })
}

// endForming ends the forming of the team, once all invited members have answered.
func (m machine) endForming() {
	var missing []string
	joined := 0
	for _, k := range m.Members {
		if k.State == IsMember {
			joined++
		} else if k.Named {
			missing = append(missing, fmt.Sprintf("%s %s: %s", k.Handle, k.State, strings.TrimSuffix(k.Note, ".")))
		}
	}
	switch {
	case m.Open.RequireAll && len(missing) > 0:
		m.finishGoal(Failed, NoTeam+": "+strings.Join(missing, "; "))
	case joined == 0 && !m.Open.ByModel:
		m.finishGoal(Failed, NoTeam+": "+m.explainEmpty(missing))
	default:
		m.openTurn(Lead)
	}
}

// explainEmpty returns why the team is empty.
func (m machine) explainEmpty(missing []string) string {
	for _, k := range m.Members {
		if !k.Named {
			missing = append(missing, fmt.Sprintf("%s %s: %s", k.Handle, k.State, strings.TrimSuffix(k.Note, ".")))
		}
	}
	if len(missing) == 0 {
		return "no agent was found for any part of the goal"
	}
	return strings.Join(missing, "; ")
}

// checkTimes ends turns and tasks that take too long.
func (m machine) checkTimes() {
	for i := range m.Tasks {
		t := &m.Tasks[i]
		due := DueAt(*m.State, *t)
		switch {
		case due.IsZero() || m.Now.Before(due):
		case isPerson(m.State, t.Owner):
			m.cutOff(t, Broken, fmt.Sprintf("%s did not answer within %s.", t.Owner, spell(m.Limits.PersonTime)))
		case t.Status == Working:
			m.cutOff(t, Broken, fmt.Sprintf("%s did not answer within %s.", t.Owner, spell(m.Limits.TaskTime)))
		default:
			m.cutOff(t, Broken, fmt.Sprintf("%s asked a question, and no answer came within %s.", t.Owner,
				spell(m.Limits.PersonTime)))
		}
	}
	if m.Turn != nil && !m.Now.Before(m.turnEnd()) {
		m.failTurn("It did not answer in time.")
	}
}

// DueAt returns the time at which the attempt of a task ends if no answer comes; zero for one that waits for none.
func DueAt(s State, t Task) time.Time {
	switch {
	case t.Status == Input:
		return t.Asked.Add(s.Limits.PersonTime)
	case t.Status == Working && isPerson(&s, t.Owner):
		return t.Started.Add(s.Limits.PersonTime)
	case t.Status == Working:
		return t.Started.Add(s.Limits.TaskTime)
	}
	return time.Time{}
}

// isPerson reports whether a member is a person.
func isPerson(s *State, handle string) bool {
	return slices.ContainsFunc(s.Members, func(k Member) bool { return k.Person && k.Handle == handle })
}

// spell returns a time without zero units at its end, such as 10m.
func spell(d time.Duration) string {
	s := d.String()
	s, _ = strings.CutSuffix(s, "m0s")
	if s != d.String() {
		s += "m"
	}
	if h, ok := strings.CutSuffix(s, "h0m"); ok {
		s = h + "h"
	}
	return s
}

// turnEnd returns the time at which the open turn ends.
func (m machine) turnEnd() time.Time {
	if k := m.findMember(m.Turn.Speaker); k != nil && k.Person {
		return m.Turn.Since.Add(m.Limits.PersonTime)
	}
	return m.Turn.Since.Add(m.Limits.TurnTime)
}

// advanceTasks makes a task ready when its owner has joined and its needs are met. A task that needs a failed one
// fails.
func (m machine) advanceTasks() {
	for i := range m.Tasks {
		t := &m.Tasks[i]
		if t.Status != Planned {
			continue
		}
		ready := true
		for _, n := range t.Needs {
			switch need := m.findTask(n); {
			case need.Status == Completed:
			case need.Status.Final():
				m.endAttempt(t, Broken, fmt.Sprintf("Task %d, whose result it needs, has none.", n))
				ready = false
			default:
				ready = false
			}
		}
		if k := m.findMember(t.Owner); t.Status == Planned && ready && k != nil && k.State == IsMember {
			t.Status = Ready
		}
	}
}

func (m machine) allEnded(tasks []int) bool {
	return !slices.ContainsFunc(tasks, func(n int) bool { return !m.findTask(n).Status.Final() })
}

func (m machine) isDue(t Trigger) bool {
	switch t.On {
	case OnTime:
		return !m.Now.Before(t.At)
	case OnAny:
		return slices.ContainsFunc(t.Tasks, func(n int) bool { return m.findTask(n).Status.Final() })
	}
	return m.allEnded(t.Tasks)
}

// resumeTalk ends a wait and gives the turn back to its assigner.
func (m machine) resumeTalk() {
	m.Triggers, m.Awaits = nil, nil
	m.openTurn(Lead)
}

// openTurn opens a turn, if one is left; otherwise the goal fails.
func (m machine) openTurn(speaker string) {
	m.Turn = &Turn{N: m.Turns + 1, Speaker: speaker, Since: m.Now}
	if m.Turn.N > m.Limits.Turns {
		m.failGoal(NoTurns, fmt.Sprintf("%d turns are used", m.Turns))
	}
}

// failGoal ends the goal for a reason, with the results so far.
func (m machine) failGoal(reason, text string) {
	var b strings.Builder
	for _, t := range m.Tasks {
		if t.Status == Completed {
			fmt.Fprintf(&b, "%s (%s):\n%s\n\n", cutText(t.Text, 200), t.Owner, t.Result)
		}
	}
	if b.Len() > 0 {
		m.Conclusion = cutText("Not finished. The results so far:\n\n"+strings.TrimSpace(b.String())+m.listMissing(), MaxText)
	}
	m.finishGoal(Failed, reason+": "+text)
}

// listMissing returns the tasks without a result and the parts without a task, as a list; "" if there are none.
func (m machine) listMissing() string {
	var b strings.Builder
	add := func(text string) { fmt.Fprintf(&b, "\n- %s", strings.Join(strings.Fields(cutText(text, 200)), " ")) }
	given := make(map[int]bool)
	for _, t := range m.Tasks {
		if t.By == Lead || t.Part > 0 { // a task that a member gave itself does not stand for a part
			given[t.Part] = true
		}
		if t.Status != Completed {
			add(t.Text)
		}
	}
	for _, p := range m.Parts {
		if !given[p.N] && !given[0] { // a model divides the work in its own way
			add(p.Text)
		}
	}
	if b.Len() == 0 {
		return ""
	}
	return "\n\nMissing:" + b.String()
}

// finishGoal ends the goal. Tasks that have not ended are canceled.
func (m machine) finishGoal(p Phase, reason string) {
	for i := range m.Tasks {
		if t := &m.Tasks[i]; !t.Status.Final() {
			m.cutOff(t, Dropped, "The goal has ended.")
		}
	}
	m.Phase, m.Reason, m.Turn, m.Search = p, cutText(reason, 1000), nil, ""
	m.Triggers, m.Awaits = nil, nil
}

// Effects returns the work that a state needs, in a fixed order.
func Effects(s State) []Effect {
	var list []Effect
	for i, c := range s.Cuts {
		list = append(list, Effect{Key: fmt.Sprintf("stop/%d", i+1), Kind: DoStop, Ref: c.Ref, Task: c.Task,
			Attempt: c.Attempt, Agent: c.Agent})
	}
	if s.Phase.Final() {
		return list
	}
	for _, k := range s.Members {
		if k.State == Invited {
			list = append(list, Effect{Key: "invite/" + k.Handle, Kind: DoInvite, Agent: k.Handle})
		}
	}
	if s.Search != "" {
		list = append(list, Effect{Key: fmt.Sprintf("search/%d", s.Searches+1), Kind: DoSearch, Text: s.Search})
	}
	for _, t := range s.Tasks {
		if t.Status == Ready || t.Status == Working {
			list = append(list, Effect{Key: fmt.Sprintf("task/%d/%d/%d", t.N, t.Attempt, len(t.Answers)), Kind: DoTask,
				Agent: t.Owner, Task: t.N, Attempt: t.Attempt, Answer: len(t.Answers), Ref: t.Ref})
		}
	}
	if s.Turn != nil {
		key := fmt.Sprintf("turn/%d/%d/%t/%d", s.Turn.N, s.Turn.Repairs, s.Turn.Fallback, s.Notes)
		list = append(list, Effect{Key: key, Kind: DoDecide, Agent: s.Turn.Speaker, Turn: s.Turn.N})
	}
	return list
}

// WakeAt returns the next time at which a Ticked event changes the state; zero for none.
func WakeAt(s State) time.Time {
	if s.Phase.Final() || s.Seq == 0 {
		return time.Time{}
	}
	at := s.Until
	consider := func(t time.Time) {
		if t.Before(at) {
			at = t
		}
	}
	if s.Turn != nil {
		consider(machine{&s}.turnEnd())
	}
	for _, t := range s.Tasks {
		if due := DueAt(s, t); !due.IsZero() {
			consider(due)
		}
	}
	for _, t := range s.Triggers {
		if t.On == OnTime {
			consider(t.At)
		}
	}
	return at
}
