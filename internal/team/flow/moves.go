package flow

import (
	"slices"
	"strings"
	"time"
	"unicode"
)

// applyMove applies the move of a speaker, if it is legal.
func (m machine) applyMove(e Event) error {
	switch {
	case e.Move == nil:
		return illegal("a move has a kind")
	case m.Turn == nil:
		return illegal("no turn is open")
	case m.Turn.N != e.Turn:
		return illegal("turn %d is not the open one, which is %d", e.Turn, m.Turn.N)
	case m.Turn.Speaker != e.Agent:
		return illegal("%.80q does not have the turn, %s does", e.Agent, m.Turn.Speaker)
	case m.Turn.Fallback && !e.Move.Rules:
		return illegal("the rules decide this turn")
	case e.Agent != Lead && e.Move.Kind != Say && (e.Move.Kind != Assign || isPerson(m.State, e.Agent)):
		return illegal("only the lead may %s", e.Move.Kind)
	}
	m.Turns++ // without effect if the move is illegal
	var err error
	switch e.Move.Kind {
	case Say:
		err = m.saySomething(e.Agent, *e.Move)
	case Assign:
		if err = m.assignTasks(e.Agent, *e.Move); err == nil && e.Agent != Lead {
			m.openTurn(Lead)
		}
	case Pause:
		err = m.pauseTeam(*e.Move)
	case Request:
		err = m.requestSearch(*e.Move)
	case Conclude:
		err = m.concludeGoal(*e.Move)
	case GiveUp:
		if err = checkText(e.Move.Text, "reason"); err == nil {
			m.finishGoal(Failed, cutText(e.Move.Text, 500))
		}
	default:
		err = illegal("there is no move %.40q", e.Move.Kind)
	}
	if err != nil {
		return err
	}
	if e.Agent == Lead {
		m.Unheard = nil
	}
	return nil
}

// saySomething adds to the talk and opens the turn of the next speaker: after a member it is the lead.
func (m machine) saySomething(speaker string, v Move) error {
	if err := checkText(v.Text, "text"); err != nil {
		return err
	}
	next := v.Next
	if speaker != Lead {
		next = Lead
	}
	k := m.findMember(next)
	switch {
	case next == speaker:
		return illegal("the next speaker is another one")
	case next != Lead && (k == nil || k.State != IsMember):
		return illegal("%.80q is no member of the team", next)
	case m.isRepeated(speaker, v.Text):
		return illegal("this was said before in the same words")
	}
	m.rememberText(speaker, v.Text)
	if speaker == Lead {
		m.Topic = v.Text
	}
	m.Turn = nil
	m.openTurn(next)
	return nil
}

// assignTasks adds the tasks of a move. A member may give one new task, to itself, while the talk goes on.
func (m machine) assignTasks(speaker string, v Move) error {
	if len(v.Tasks) == 0 {
		return illegal("an assignment has tasks")
	}
	if a := v.Tasks[0]; speaker != Lead && (len(v.Tasks) > 1 || a.Task != 0 || a.Owner != speaker || a.Team ||
		len(a.Needs) > 0 || a.Part != 0) {
		return illegal("only the lead may give tasks to others")
	}
	var numbers []int
	next := len(m.Tasks) + 1
	for _, a := range v.Tasks {
		if a.Task == 0 {
			numbers = append(numbers, next)
			next++
		} else {
			numbers = append(numbers, a.Task)
		}
	}
	if next-1 > m.Limits.Tasks {
		return illegal("%d tasks are the most that a goal may have", m.Limits.Tasks)
	}
	for i, a := range v.Tasks {
		if err := m.assignOne(speaker, a, numbers[:i], numbers[i]); err != nil {
			return err
		}
	}
	m.Turn = nil
	m.Assigner = Lead
	if speaker != Lead {
		return nil
	}
	if v.Async {
		m.Phase = Async
		m.openTurn(Lead)
		return nil
	}
	m.Phase, m.Awaits = Sync, numbers
	return nil
}

// assignOne adds or retries one task. before are the numbers of the tasks before it in the same move.
func (m machine) assignOne(by string, a Assignment, before []int, number int) error {
	if slices.Contains(before, number) {
		return illegal("task %d is assigned twice", number)
	}
	if a.Owner == "" || a.Owner == Lead {
		return illegal("a task has an owner in the team")
	}
	if a.Team && m.Limits.Depth < 1 {
		return illegal("no team may be formed below this one")
	}
	if a.Team && isPerson(m.State, a.Owner) {
		return illegal("%s is a person, who forms no team", a.Owner)
	}
	if slices.Contains(m.Open.Above, a.Owner) {
		return illegal("%s waits for this team, so it cannot work for it", a.Owner)
	}
	why, found := m.reasonFor(a.Owner)
	if !found && m.findMember(a.Owner) == nil {
		// A text that deceives a model must not lead to agents outside of the searches.
		return illegal("%.80q is not in the team and was not found by a search", a.Owner)
	}
	if err := m.includeAgent(a.Owner, why); err != nil {
		return err
	}
	if a.Task != 0 {
		t := m.findTask(a.Task)
		switch {
		case t == nil:
			return illegal("there is no task %d", a.Task)
		case t.Status != Broken && t.Status != Dropped:
			return illegal("task %d is %s: only a failed one may be tried again", a.Task, t.Status)
		case t.Attempt >= m.Limits.Attempts:
			return illegal("task %d was tried %d times, which is the most there may be", a.Task, t.Attempt)
		}
		m.retryTask(t, a.Owner)
		return nil
	}
	if err := checkText(a.Text, "task"); err != nil {
		return err
	}
	t := Task{N: number, Part: a.Part, Owner: a.Owner, Text: a.Text, Team: a.Team, By: by, Attempt: 1, Status: Planned,
		Created: m.Now}
	for _, need := range a.Needs {
		if need < 0 && -need <= len(before) {
			need = before[-need-1]
		}
		if need < 1 || need >= number || m.findTask(need) == nil {
			return illegal("a task may need tasks before it only")
		}
		if !slices.Contains(t.Needs, need) {
			t.Needs = append(t.Needs, need)
		}
	}
	for _, old := range m.Tasks {
		if old.Owner == a.Owner && normalizeText(old.Text) == normalizeText(a.Text) && slices.Equal(old.Needs, t.Needs) {
			return illegal("task %d is the same", old.N)
		}
	}
	m.Tasks = append(m.Tasks, t)
	return nil
}

// reasonFor returns the reason for which an agent was found; false if no search found it.
func (m machine) reasonFor(handle string) (why string, found bool) {
	for _, p := range m.Parts {
		for _, c := range p.Candidates {
			if c.Handle == handle {
				return c.Why, true
			}
		}
	}
	return "", false
}

func (m machine) pauseTeam(v Move) error {
	if len(v.Triggers) == 0 || len(v.Triggers) > maxTriggers {
		return illegal("a pause needs 1 to %d triggers", maxTriggers)
	}
	var open []int
	for _, t := range m.Tasks {
		if !t.Status.Final() {
			open = append(open, t.N)
		}
	}
	triggers := slices.Clone(v.Triggers)
	for i := range triggers {
		t := &triggers[i]
		switch t.On {
		case OnAny, OnAll:
			ended := m.endedSince(m.Turn.Since)
			if len(open) == 0 && len(ended) == 0 {
				return illegal("no task is open, so nothing would end the pause")
			}
			t.Tasks = open
			if t.On == OnAny {
				t.Tasks = append(slices.Clip(open), ended...)
			}
		case OnNamed:
			if len(t.Tasks) == 0 {
				return illegal("name the tasks of the trigger")
			}
			for _, n := range t.Tasks {
				if m.findTask(n) == nil {
					return illegal("there is no task %d", n)
				}
			}
		case OnTime:
			if t.After <= 0 || t.After > m.Limits.Time {
				return illegal("a time is between 0 and %s", m.Limits.Time)
			}
			t.At = m.Now.Add(t.After)
		default:
			return illegal("there is no trigger %.40q", t.On)
		}
	}
	m.Turn = nil
	m.Phase, m.Triggers = Paused, triggers
	return nil
}

// endedSince returns the tasks that ended at a time or later.
func (m machine) endedSince(at time.Time) (list []int) {
	for _, t := range m.Tasks {
		if t.Status.Final() && !t.Ended.Before(at) {
			list = append(list, t.N)
		}
	}
	return list
}

func (m machine) requestSearch(v Move) error {
	if err := checkText(v.Text, "text"); err != nil {
		return err
	}
	if m.Open.Recruit == RecruitMembers && !v.Rules {
		return illegal("only the members that the person named may be in the team")
	}
	if m.Searches >= m.Limits.Searches {
		return illegal("agents were searched %d times, which is the most there may be", m.Searches)
	}
	m.Turn, m.Search = nil, v.Text
	return nil
}

func (m machine) concludeGoal(v Move) error {
	if err := checkText(v.Text, "conclusion"); err != nil {
		return err
	}
	m.Conclusion = v.Text
	m.finishGoal(Concluded, "")
	return nil
}

// isRepeated reports whether the speaker said the same before.
func (m machine) isRepeated(speaker, text string) bool {
	text = normalizeText(text)
	return slices.ContainsFunc(m.Recent, func(n Note) bool { return n.Agent == speaker && n.Text == text })
}

func (m machine) rememberText(speaker, text string) {
	m.Recent = append(m.Recent, Note{speaker, normalizeText(text)})
	if len(m.Recent) > maxRecent {
		m.Recent = slices.Clone(m.Recent[len(m.Recent)-maxRecent:])
	}
}

// normalizeText returns the letters and digits of a text in lower case, cut, so that texts compare by their words.
func normalizeText(s string) string {
	var b strings.Builder
	for _, r := range s {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			b.WriteRune(unicode.ToLower(r))
		}
		if b.Len() > 500 {
			break
		}
	}
	return b.String()
}
