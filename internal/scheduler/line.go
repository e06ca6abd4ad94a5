package scheduler

import "time"

// line is the waiting tasks of a share in a lane, in the order of their arrival.
type line struct {
	key         flowKey
	first, last *entry
}

// joinLine puts a task that begins to wait at the end of its line.
func (s *Scheduler) joinLine(e *entry) {
	k := flowKey{e.share, e.lane}
	n := s.lines[k]
	if n == nil {
		n = &line{key: k}
		s.lines[k] = n
		e.lane.lines++
	}
	e.line, e.ahead = n, n.last
	if n.last == nil {
		n.first = e
	} else {
		n.last.behind = e
	}
	n.last = e
}

// leaveLine takes a task that no longer waits out of its line.
func (s *Scheduler) leaveLine(e *entry) {
	n := e.line
	if e.ahead == nil {
		n.first = e.behind
	} else {
		e.ahead.behind = e.behind
	}
	if e.behind == nil {
		n.last = e.ahead
	} else {
		e.behind.ahead = e.ahead
	}
	e.line, e.ahead, e.behind = nil, nil, nil
	if n.first == nil {
		delete(s.lines, n.key)
		n.key.lane.lines--
	}
}

// Turn estimates when a waiting task starts: before is the number of tasks of its account that wait longer
// for the same agent, wait the time at the rate at which tasks ended lately, with the accounts that wait for
// the agent taking turns. It is false for a task that does not wait. It takes time in proportion to before,
// which the bound of an account limits.
func (s *Scheduler) Turn(id string) (before int, wait time.Duration, ok bool) {
	e := s.entries[id]
	if e == nil || e.state != waiting {
		return 0, 0, false
	}
	mailbox := 0 // tasks that the agent answers in the conversation before this one, one at a time
	if e.mailbox.running != nil {
		mailbox++
	}
	for o := e.ahead; o != nil; o = o.ahead {
		before++
		if o.mailbox == e.mailbox {
			mailbox++
		}
	}
	l := e.lane
	lines := max(l.lines, 1)
	atAgent := min(before*lines+lines, l.agent.waiting)
	took := l.agent.took
	wait = max(estimateWait(mailbox, 1, took, s.took),
		estimateWait(atAgent, l.agent.bound.running, took, s.took),
		estimateWait(before+1, min(s.perAccount, halfOf(l.agent.bound.running)), took, s.took))
	return before, wait, true
}
