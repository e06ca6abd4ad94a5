package team

import (
	"slices"

	"agentsite/internal/task"
	"agentsite/internal/team/aware"
	"agentsite/internal/team/flow"
)

// isAware reports whether a member speaks for itself, as it said when it joined.
func (w work) isAware(handle string) bool {
	return slices.ContainsFunc(w.state.Members, func(k flow.Member) bool { return k.Handle == handle && k.Aware })
}

// legalForTask lists the moves that the owner of a task may answer with.
func (w work) legalForTask(t flow.Task) []string {
	legal := []string{aware.Result, aware.Decline}
	if w.state.Limits.Depth > 0 && !t.Team && t.Attempt < w.state.Limits.Attempts {
		legal = append(legal, aware.Recruit)
	}
	return legal
}

// legalForTurn lists the moves that a member with the turn may answer with.
func (w work) legalForTurn() []string {
	legal := []string{aware.Say}
	if len(w.state.Tasks) < w.state.Limits.Tasks {
		legal = append(legal, aware.Take)
	}
	return legal
}

// describeTask returns the question of a task, with the document of the extension for an owner that is aware.
func (w work) describeTask(t flow.Task) []task.Part {
	return w.addDocument(t.Owner, aware.Document{Kind: aware.Task, Number: t.N, Attempt: t.Attempt,
		Text: taskText(w.state, t), Legal: w.legalForTask(t)})
}

// describeTurn returns the question to a member that has the turn.
func (w work) describeTurn() []task.Part {
	return w.addDocument(w.effect.Agent, aware.Document{Kind: aware.Turn, Number: w.effect.Turn, Text: w.state.Topic,
		Problem: w.state.Turn.Problem, Legal: w.legalForTurn()})
}

// maxOwn bounds the own tasks in a document.
const maxOwn = 16

// addDocument returns the text of a document and, for an agent that is aware, the document. An agent learns only of its
// own tasks.
func (w work) addDocument(handle string, d aware.Document) []task.Part {
	parts := []task.Part{task.TextPart(d.Text)}
	if !w.isAware(handle) {
		return parts
	}
	d.You, d.Until = handle, w.state.Until
	for _, t := range w.state.Tasks {
		if t.Owner == handle && !(d.Kind == aware.Task && t.N == d.Number) && len(d.Own) < maxOwn {
			d.Own = append(d.Own, aware.OwnTask{Number: t.N, Text: cutPlain(t.Text, 200), State: string(t.Status)})
		}
	}
	b, err := aware.EncodeDocument(d)
	if err != nil { // cannot happen: the document consists of texts, numbers and a time
		return parts
	}
	return append(parts, task.Part{Data: b, MediaType: aware.MediaType})
}

// cutPlain returns the first n characters of a text.
func cutPlain(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n]) + "…"
	}
	return s
}

// readMove returns the move in an answer; found is false for an answer without one, and for agents that are not aware:
// data of theirs is a result, whatever it looks like.
func (w work) readMove(handle string, parts []task.Part, legal []string) (m aware.Move, found bool, err error) {
	if !w.isAware(handle) {
		return m, false, nil
	}
	for _, p := range parts {
		if len(p.Data) == 0 {
			continue
		}
		if m, found, err = aware.ReadMove(p.Data, legal); found {
			return m, true, err
		}
	}
	return m, false, nil
}

// answerByMove reports the decision of a task's owner, and returns false if its answer is no move.
func (w work) answerByMove(t flow.Task, parts []task.Part) bool {
	m, found, err := w.readMove(t.Owner, parts, w.legalForTask(t))
	switch {
	case !found:
		return false
	case err != nil:
		w.endTask(flow.Broken, "Its move was refused: "+err.Error()+".")
	case m.Kind == aware.Result:
		w.endTask(flow.Completed, m.Text)
	case m.Kind == aware.Decline:
		w.endTask(flow.Broken, "It declined: "+m.Text)
	default:
		w.reportEvent(flow.Event{Kind: flow.Recruits, Agent: t.Owner, Task: t.N, Attempt: t.Attempt, Text: m.Text})
	}
	return true
}

// readTurn returns the move of a member that has the turn. An answer without one is its contribution to the talk.
func (w work) readTurn(parts []task.Part) (flow.Move, error) {
	m, found, err := w.readMove(w.effect.Agent, parts, w.legalForTurn())
	switch {
	case err != nil:
		return flow.Move{}, err
	case found && m.Kind == aware.Take:
		return flow.Move{Kind: flow.Assign, Tasks: []flow.Assignment{{Owner: w.effect.Agent, Text: m.Text}}}, nil
	case found:
		return flow.Move{Kind: flow.Say, Text: m.Text, Next: flow.Lead}, nil
	}
	return flow.Move{Kind: flow.Say, Text: task.PlainText(parts), Next: flow.Lead}, nil
}
