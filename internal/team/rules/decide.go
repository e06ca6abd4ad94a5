package rules

import (
	"fmt"
	"slices"
	"strings"

	"agentsite/internal/team/flow"
)

// Note says on a conclusion that no model made it.
const Note = "This team worked by rules, without a language model."

// Decide returns the move of the lead. It is legal in every state in which the lead has the turn.
func Decide(s flow.State) flow.Move {
	if text := unheardText(s); text != "" && s.Searches < s.Limits.Searches {
		return flow.Move{Kind: flow.Request, Text: text, Rules: true}
	}
	left := s.Limits.Turns - s.Turns - 1 // turns after this one: an assignment needs one to conclude
	if tasks := nextAssignments(s); len(tasks) > 0 && left > 0 {
		return flow.Move{Kind: flow.Assign, Tasks: tasks, Rules: true}
	}
	if open := slices.ContainsFunc(s.Tasks, func(t flow.Task) bool { return !t.Status.Final() }); open && left > 0 {
		return flow.Move{Kind: flow.Pause, Triggers: []flow.Trigger{{On: flow.OnAll}}, Rules: true}
	}
	text, any := Join(s)
	if !any {
		return flow.Move{Kind: flow.GiveUp, Text: firstLine(text), Rules: true}
	}
	return flow.Move{Kind: flow.Conclude, Text: text, Rules: true}
}

func unheardText(s flow.State) string {
	var list []string
	for _, n := range s.Unheard {
		list = append(list, n.Text)
	}
	text := strings.Join(list, "\n")
	if len(text) > flow.MaxText {
		text = strings.ToValidUTF8(text[:flow.MaxText], "")
	}
	return text
}

// nextAssignments returns a task for each part that has none, and another attempt for each failed task for which
// another agent is known. Parts without an agent are left out, and so are parts that need them.
func nextAssignments(s flow.State) (list []flow.Assignment) {
	position := make(map[int]int) // of parts in list, from 1
	tasks := make(map[int]flow.Task)
	for _, t := range s.Tasks {
		if !isOwn(t) {
			tasks[t.Part] = t
		}
	}
	room := newRoom(s)
	total := len(s.Tasks)
	if _, free := tasks[0]; free {
		return nil // a model divided the work in another way
	}
	for _, p := range s.Parts {
		t, assigned := tasks[p.N]
		if assigned && t.Status != flow.Broken && t.Status != flow.Dropped {
			continue
		}
		if assigned && t.Attempt >= s.Limits.Attempts || !assigned && total >= s.Limits.Tasks {
			continue
		}
		needs, ok := needsOf(p, tasks, position)
		owner := ""
		if ok {
			owner = room.pickOwner(p, t)
		}
		if owner == "" {
			continue
		}
		a := flow.Assignment{Part: p.N, Owner: owner, Text: p.Text, Needs: needs}
		if assigned {
			a.Task, a.Text = t.N, "" // it is on the board
		} else {
			total++
		}
		list = append(list, a)
		position[p.N] = len(list)
	}
	return list
}

// isOwn reports whether a member gave the task to itself, so that it does not stand for a part of the goal.
func isOwn(t flow.Task) bool { return t.By != flow.Lead && t.Part == 0 }

// needsOf returns the tasks that a part needs: those of earlier moves by number, those of this one by position.
func needsOf(p flow.Part, tasks map[int]flow.Task, position map[int]int) (needs []int, ok bool) {
	for _, n := range p.Needs {
		at, here := position[n]
		t, before := tasks[n]
		switch {
		case here:
			needs = append(needs, -at)
		case before && (t.Status == flow.Completed || !t.Status.Final()):
			needs = append(needs, t.N)
		default:
			return nil, false
		}
	}
	return needs, true
}

// room chooses owners within the size of the team.
type room struct {
	members map[string]flow.MemberState
	left    int
	above   []string
}

func newRoom(s flow.State) *room {
	r := &room{members: make(map[string]flow.MemberState), left: s.Limits.Members, above: s.Open.Above}
	for _, k := range s.Members {
		r.members[k.Handle] = k.State
		if k.State == flow.IsMember || k.State == flow.Invited {
			r.left--
		}
	}
	return r
}

// pickOwner returns the best candidate of a part that has not tried it, "" if there is none. One that is no member
// needs room in the team.
func (r *room) pickOwner(p flow.Part, t flow.Task) string {
	for _, c := range p.Candidates {
		state, known := r.members[c.Handle]
		joined := state == flow.IsMember || state == flow.Invited
		if known && !joined || !joined && r.left < 1 || slices.Contains(r.above, c.Handle) ||
			t.N > 0 && (c.Handle == t.Owner || slices.Contains(t.Tried, c.Handle)) {
			continue
		}
		if !joined {
			r.members[c.Handle] = flow.Invited
			r.left--
		}
		return c.Handle
	}
	return ""
}

// Join returns the results of all parts as one text, with the missing ones. any is false if there is no result.
func Join(s flow.State) (text string, any bool) {
	var done, missing []string
	free := slices.ContainsFunc(s.Tasks, func(t flow.Task) bool { return t.Part == 0 && !isOwn(t) })
	for _, p := range s.Parts {
		if free {
			break
		}
		i := slices.IndexFunc(s.Tasks, func(t flow.Task) bool { return t.Part == p.N })
		switch {
		case i < 0 && len(p.Candidates) == 0:
			missing = append(missing, fmt.Sprintf("- %s: no agent was found.", headline(p.Text)))
		case i < 0:
			missing = append(missing, fmt.Sprintf("- %s: nobody could be asked.", headline(p.Text)))
		case s.Tasks[i].Status != flow.Completed:
			missing = append(missing, fmt.Sprintf("- %s: %s", headline(p.Text), firstLine(s.Tasks[i].Reason)))
		case strings.TrimSpace(s.Tasks[i].Result) == "":
			missing = append(missing, fmt.Sprintf("- %s: %s gave an empty answer.", headline(p.Text), s.Tasks[i].Owner))
		default:
			done = append(done, fmt.Sprintf("%s\n%s: %s", p.Text, s.Tasks[i].Owner, strings.TrimSpace(s.Tasks[i].Result)))
		}
	}
	for _, t := range s.Tasks { // those of a model are not about a part
		if t.Part == 0 && t.Status == flow.Completed && strings.TrimSpace(t.Result) != "" {
			done = append(done, fmt.Sprintf("%s\n%s: %s", t.Text, t.Owner, strings.TrimSpace(t.Result)))
		} else if t.Part == 0 {
			missing = append(missing, fmt.Sprintf("- %s: %s", headline(t.Text), t.Reason))
		}
	}
	room := flow.MaxText - 1000
	var b strings.Builder
	for i, d := range done {
		share := (room - b.Len()) / (len(done) - i)
		if len(d) > share {
			d = strings.ToValidUTF8(d[:max(share, 0)], "") + "…"
		}
		b.WriteString(d + "\n\n")
	}
	if len(missing) > 0 {
		list := "Missing:\n" + strings.Join(missing, "\n")
		if len(list) > 800 {
			list = strings.ToValidUTF8(list[:800], "") + "…"
		}
		if len(done) == 0 {
			return strings.TrimPrefix(list, "Missing:\n- "), false
		}
		b.WriteString(list + "\n\n")
	}
	return b.String() + Note, len(done) > 0
}

// headline returns the beginning of a text for a line that goes on after a colon.
func headline(s string) string { return strings.TrimSuffix(firstLine(s), ".") }

// firstLine returns the beginning of a text on one line.
func firstLine(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > 160 {
		return string(r[:159]) + "…"
	}
	return s
}
