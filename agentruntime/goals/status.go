package goals

import (
	"fmt"
	"strings"

	"agentsite/internal/team/flow"
)

// describeState returns the state of the machine in a few words.
func describeState(s flow.State) string {
	ended := 0
	var busy []string
	for _, t := range s.Tasks {
		switch {
		case t.Status.Final():
			ended++
		case t.Status == flow.Working:
			busy = append(busy, cutLine(t.Owner))
		}
	}
	text := s.Phase.Public()
	if len(s.Tasks) > 0 {
		text += fmt.Sprintf(", %d of %d tasks ended", ended, len(s.Tasks))
	}
	if len(busy) > 0 {
		text += ", at work: " + strings.Join(busy[:min(len(busy), 5)], ", ")
	}
	return text
}

// describeEvent returns an event in a few words, "" for one that a caller need not see.
func describeEvent(e flow.Event) string {
	switch e.Kind {
	case flow.Joined:
		return "forming: " + cutLine(e.Agent) + " joined"
	case flow.Refused, flow.Offline:
		return "forming: " + cutLine(e.Agent) + " did not join: " + cutLine(e.Text)
	case flow.Moved:
		if e.Move == nil {
			return ""
		}
		if e.Move.Kind == flow.Assign {
			var owners []string
			for _, t := range e.Move.Tasks {
				owners = append(owners, cutLine(t.Owner))
			}
			return "working: tasks for " + cutLine(strings.Join(owners, ", "))
		}
	case flow.Recruits:
		return fmt.Sprintf("working: %s recruits a team for task %d", cutLine(e.Agent), e.Task)
	case flow.Ended:
		return fmt.Sprintf("working: task %d %s", e.Task, e.Status)
	}
	return ""
}

// cutLine returns the beginning of a text of others on one line.
func cutLine(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > 80 {
		s = string(r[:79]) + "…"
	}
	return s
}
