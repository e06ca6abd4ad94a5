package goals

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"agentsite/handlers/api/spending"
	"agentsite/handlers/pages"
	"agentsite/internal/clock"
	"agentsite/internal/plaintext"
	"agentsite/internal/team"
	"agentsite/internal/team/flow"
	"agentsite/templates"
)

// stateWords are the states of goals for people.
var stateWords = map[string]string{"forming": "looks for members", "working": "works", "paused": "waits for results",
	"concluded": "concluded", "failed": "failed", "canceled": "stopped"}

// reasonWords are the reasons of failed goals for people.
var reasonWords = map[string]string{flow.NoTeam: "No team came together", flow.NoTurns: "All turns were used",
	flow.NoTime: "The time is over", flow.NoBudget: "The budget is used up", flow.NoSpeaker: "No member could go on",
	flow.TooManyOpen: "There were too many tasks"}

func newState(state, reason string) templates.GoalState {
	code, text, more := strings.Cut(reason, ": ")
	if words, ok := reasonWords[code]; ok {
		reason = words + "."
		if more {
			reason = words + ": " + strings.TrimSuffix(text, ".") + "."
		}
	}
	return templates.GoalState{Code: state, Label: stateWords[state], Reason: reason}
}

// taskWords are the states of tasks for people.
var taskWords = map[flow.Status]string{flow.Planned: "waits for another", flow.Ready: "goes out", flow.Working: "works",
	flow.Input: "asks you", flow.Completed: "done", flow.Broken: "failed", flow.Dropped: "stopped"}

func (d *Pages) newView(v team.View, events []flow.Event) templates.GoalView {
	s := v.State
	out := templates.GoalView{ID: v.ID, Text: v.Text, State: newState(v.State.Phase.Public(), s.Reason), Seq: s.Seq,
		Live: v.Open, Final: s.Phase.Final(), MaySay: s.Phase != flow.Canceled, Parent: v.ParentID,
		Begun: pages.FormatMoment(v.CreatedAt), ByModel: s.Open.ByModel, Tree: drawTree(v), Again: againHref(v)}
	if s.Conclusion != "" {
		out.Conclusion = d.markup.Message(linkOwners(s.Conclusion, s))
	}
	done := 0
	for _, t := range s.Tasks {
		task := d.newTask(t)
		task.Person = isPerson(s, t.Owner)
		if t.Cost.Tokens > 0 {
			task.Cost = pages.FormatNumber(t.Cost.Tokens) + " tokens"
		}
		if t.Cost.Money > 0 {
			task.Cost += ", " + formatCost(t.Cost.Money)
		}
		if due := flow.DueAt(s, t); !due.IsZero() && (task.Person || task.Asks) {
			task.Waits, task.Due = true, pages.FormatMoment(due)
		}
		if !s.Phase.Final() && t.Status != flow.Completed {
			task.Others = otherAgents(s, t)
			task.MayMove = true
		}
		out.Tasks = append(out.Tasks, task)
		if t.Status == flow.Completed {
			done++
		}
	}
	for _, p := range s.Parts {
		if part := newPart(p); part.Pick == nil {
			out.Missing = append(out.Missing, part)
		}
	}
	for _, k := range s.Members {
		out.Members = append(out.Members, templates.GoalMember{Handle: k.Handle, Person: k.Person,
			State: memberWords[k.State], Why: k.Why, Note: k.Note})
	}
	for _, e := range events {
		if ev, ok := newEvent(e); ok {
			if e.Status == flow.Completed || e.Kind == flow.Waits {
				ev.Text, ev.Rich = "", d.markup.Message(e.Text)
			}
			out.Events = append(out.Events, ev)
		}
	}
	out.Meters = newMeters(s, done)
	return out
}

// linkOwners returns a conclusion in which the agents that begin a line lead to their pages. Otherwise a handle with a
// host would be taken for the address of a mail.
func linkOwners(text string, s flow.State) string {
	known := make(map[string]bool)
	for _, t := range s.Tasks {
		if known[t.Owner] || isPerson(s, t.Owner) {
			continue
		}
		known[t.Owner] = true
		text = strings.ReplaceAll(text, "\n"+t.Owner+": ", "\n["+t.Owner+"](/agents/"+url.PathEscape(t.Owner)+"): ")
	}
	return text
}

func isPerson(s flow.State, handle string) bool {
	return slices.ContainsFunc(s.Members, func(k flow.Member) bool { return k.Person && k.Handle == handle })
}

// otherAgents returns the agents that were found for the part of a task, and the members, without its owner.
func otherAgents(s flow.State, t flow.Task) (list []string) {
	add := func(handle string) {
		if handle != t.Owner && !slices.Contains(list, handle) {
			list = append(list, handle)
		}
	}
	for _, p := range s.Parts {
		for _, c := range p.Candidates {
			if p.N == t.Part {
				add(c.Handle)
			}
		}
	}
	for _, k := range s.Members {
		if k.State == flow.IsMember {
			add(k.Handle)
		}
	}
	return list
}

func (d *Pages) newTask(t flow.Task) templates.GoalTask {
	out := templates.GoalTask{N: t.N, Text: t.Text, Owner: t.Owner, Code: string(t.Status), State: taskWords[t.Status],
		Reason: t.Reason, Question: t.Question, After: joinNumbers(t.Needs), Attempt: t.Attempt,
		Chat: t.Ref.ConversationID, Goal: t.Ref.Goal, Asks: t.Status == flow.Input}
	if t.Result != "" {
		out.Result = d.markup.Message(t.Result)
	}
	if !t.Started.IsZero() && !t.Ended.IsZero() {
		out.Took = pages.FormatLatency(t.Ended.Sub(t.Started))
	}
	return out
}

// newMeters returns the limits of a goal and their use.
func newMeters(s flow.State, done int) []templates.GoalMeter {
	joined := 0
	for _, k := range s.Members {
		if k.State == flow.IsMember {
			joined++
		}
	}
	now := s.Now
	if !s.Phase.Final() {
		now = clock.Now()
	}
	used, all := min(max(now.Sub(s.Begun), 0), s.Limits.Time), s.Limits.Time
	list := []templates.GoalMeter{
		{Label: "Turns", Value: s.Turns, Most: s.Limits.Turns, Text: fmt.Sprintf("%d of %d", s.Turns, s.Limits.Turns)},
		{Label: "Members", Value: joined, Most: s.Limits.Members, Text: fmt.Sprintf("%d of %d", joined, s.Limits.Members)},
		{Label: "Time", Value: int(used / time.Second), Most: int(all / time.Second),
			Text: formatShort(used) + " of " + formatShort(all)},
	}
	if len(s.Tasks) > 0 {
		list = append(list, templates.GoalMeter{Label: "Tasks done", Value: done, Most: len(s.Tasks),
			Text: fmt.Sprintf("%d of %d", done, len(s.Tasks))})
	}
	if tokens := s.Talk.Tokens + s.Work.Tokens; tokens > 0 {
		text := fmt.Sprintf("%s talk, %s work", pages.FormatNumber(s.Talk.Tokens), pages.FormatNumber(s.Work.Tokens))
		if s.Limits.Tokens > 0 {
			text += " of " + pages.FormatNumber(s.Limits.Tokens)
		}
		list = append(list, templates.GoalMeter{Label: "Tokens", Value: int(tokens), Most: int(s.Limits.Tokens), Text: text})
	}
	if money := s.Talk.Money + s.Work.Money; money > 0 || s.Limits.Money > 0 {
		text := formatCost(s.Talk.Money) + " talk, " + formatCost(s.Work.Money) + " work"
		if s.Limits.Money > 0 {
			text += " of " + formatCost(s.Limits.Money)
		}
		list = append(list, templates.GoalMeter{Label: "Cost", Value: int(money), Most: int(s.Limits.Money), Text: text})
	}
	return list
}

// describeExperience states the likely cost of a goal, from the actor's last goals.
func describeExperience(x team.Experience) string {
	switch {
	case x.Goals == 0 && x.ByModel:
		return "A model leads the team and is asked about once a turn. “Most tokens” under More bounds what that costs."
	case x.Goals == 0 || x.Most == (flow.Cost{}) && !x.ByModel:
		return "The team works by rules, which cost nothing. Agents with a model may use tokens."
	case x.Goals == 1:
		return "Your last goal used " + formatSpent(x.Middle) + "."
	}
	return fmt.Sprintf("Your last %d goals used %s to %s, half of them at most %s.", x.Goals,
		pages.FormatNumber(x.Least.Tokens), formatSpent(x.Most), formatSpent(x.Middle))
}

// formatSpent returns tokens and, if there is any, money.
func formatSpent(c flow.Cost) string {
	text := pages.FormatNumber(c.Tokens) + " tokens"
	if c.Money > 0 {
		text += " (" + formatCost(c.Money) + ")"
	}
	return text
}

// formatCost returns a sum in millionths without needless zeros, such as 0.25.
func formatCost(millionths int64) string {
	s := spending.FormatCost(millionths)
	for strings.HasSuffix(s, "0") && !strings.HasSuffix(s[:len(s)-1], ".0") && !strings.HasSuffix(s, ".00") {
		s = s[:len(s)-1]
	}
	return s
}

func formatShort(t time.Duration) string {
	if t < time.Minute {
		return fmt.Sprintf("%d s", int(t/time.Second))
	}
	return pages.FormatSpan(t)
}

// newEvent returns an event as a sentence. ok is false for one that says nothing to people.
func newEvent(e flow.Event) (out templates.GoalEvent, ok bool) {
	out = templates.GoalEvent{Seq: e.Seq, Kind: string(e.Kind), At: pages.FormatMoment(e.At), Agent: e.Agent}
	task := "task " + strconv.Itoa(e.Task)
	switch e.Kind {
	case flow.Opened:
		out.What, out.Text = "The goal was given.", e.Open.Goal
	case flow.Found:
		out.What, out.Text = "Searched for members.", describeParts(e.Parts)
	case flow.Joined:
		out.What, out.Text = "joined", e.Text
	case flow.Refused:
		out.What, out.Text = "refused", e.Text
	case flow.Offline:
		out.What, out.Text = "is not reachable", e.Text
	case flow.Moved:
		out.Move = string(e.Move.Kind)
		out.What, out.Text = describeMove(*e.Move)
	case flow.Rejected:
		out.What, out.Text = "made a move that is not allowed", e.Text
	case flow.Started:
		out.What = "Work on " + task + " began."
	case flow.Waits:
		out.What, out.Text = "For "+task+" an answer of yours is needed.", e.Text
	case flow.Answered:
		out.What, out.Text = "answered for "+task, e.Text
	case flow.Ended:
		out.What, out.Text = upperFirst(task)+": "+taskWords[e.Status]+".", e.Text
	case flow.Reassigned:
		out.What = "got " + task
	case flow.Recruits:
		out.What, out.Text = "recruits a team for "+task, e.Text
	case flow.Said:
		out.What, out.Text = "said", e.Text
	case flow.Shared:
		out.What = "made a link for readers"
	case flow.Unshared:
		out.What = "ended a link for readers"
	case flow.Stopped:
		out.What, out.Text = "stopped the goal", e.Text
	default:
		return out, false
	}
	out.Text = plaintext.Clean(out.Text)
	return out, true
}

func upperFirst(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

func describeParts(parts []flow.Part) string {
	var list []string
	for _, p := range parts {
		found := "no agent"
		if len(p.Candidates) > 0 {
			found = p.Candidates[0].Handle + ", " + p.Candidates[0].Why
		}
		list = append(list, fmt.Sprintf("%d. %s: %s", p.N, p.Text, found))
	}
	return strings.Join(list, "\n")
}

// describeMove returns a move as a verb and its text.
func describeMove(m flow.Move) (what, text string) {
	switch m.Kind {
	case flow.Say:
		return "said", m.Text
	case flow.Assign:
		var list []string
		for _, t := range m.Tasks {
			text := t.Text
			if t.Task > 0 {
				text = fmt.Sprintf("task %d again", t.Task)
			}
			list = append(list, t.Owner+": "+text)
		}
		return "gave out tasks", strings.Join(list, "\n")
	case flow.Pause:
		return "waits for results", ""
	case flow.Request:
		return "asked for another capability", m.Text
	case flow.Conclude:
		return "concluded", ""
	}
	return "gave up", m.Text
}

// formatMarkdown returns a goal as a document. Texts of agents are quoted, so that they end no section.
func formatMarkdown(v team.View) string {
	var b strings.Builder
	s := v.State
	state := newState(s.Phase.Public(), s.Reason)
	fmt.Fprintf(&b, "# Goal\n\n%s\n\nState: %s. %s\n", quote(v.Text), state.Label, state.Reason)
	if s.Conclusion != "" {
		fmt.Fprintf(&b, "\n## Conclusion\n\n%s\n", quote(s.Conclusion))
	}
	if len(s.Members) > 0 {
		b.WriteString("\n## Team\n\n")
		for _, k := range s.Members {
			fmt.Fprintf(&b, "- %s: %s. %s\n", k.Handle, memberWords[k.State], plaintext.Clean(k.Why))
		}
	}
	for _, t := range s.Tasks {
		fmt.Fprintf(&b, "\n## Task %d: %s, %s\n\n%s\n", t.N, t.Owner, taskWords[t.Status], quote(t.Text))
		if text := t.Result + t.Reason; text != "" {
			fmt.Fprintf(&b, "\nResult:\n\n%s\n", quote(text))
		}
	}
	return b.String()
}

func quote(s string) string {
	return "> " + strings.ReplaceAll(plaintext.Clean(strings.TrimSpace(s)), "\n", "\n> ")
}
