package team

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"agentsite/internal/chat"
	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/task"
	"agentsite/internal/team/aware"
	"agentsite/internal/team/flow"
	"agentsite/internal/team/handover"
	"agentsite/internal/team/rules"
)

// work does one effect. It only reads the state, which is that of its start.
type work struct {
	s       *Service
	goal    Goal
	actor   ident.Actor
	state   flow.State
	effect  flow.Effect
	results chan<- result
}

// reportEvent passes an event to the runner, which takes all reports before it ends.
func (w work) reportEvent(e flow.Event) { w.results <- result{key: w.effect.Key, event: e} }

func (w work) runEffect(ctx context.Context) {
	switch w.effect.Kind {
	case flow.DoSearch:
		w.searchMembers(ctx)
	case flow.DoInvite:
		w.inviteAgent(ctx)
	case flow.DoTask:
		switch {
		case w.state.Tasks[w.effect.Task-1].Team:
			w.runTeam(ctx)
		case hasPerson(w.state, w.effect.Agent):
			w.runPersonTask(ctx)
		default:
			w.runTask(ctx)
		}
	case flow.DoStop:
		w.stopTask(ctx)
	case flow.DoDecide:
		if w.effect.Agent != flow.Lead {
			w.hearMember(ctx)
		} else if w.s.Speaker != nil {
			w.decideLead(ctx)
		} else {
			w.rejectMove("There is no model any more.") // the goal began with one
		}
	}
}

// retryCall calls f until it succeeds, fails for good, or ctx ends. A busy agent and a failing store are tried again.
func retryCall(ctx context.Context, f func() error) error {
	for pause := time.Second; ; pause = min(2*pause, time.Minute) {
		err := f()
		bad := fault.As(err)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case bad.Kind != fault.RateLimited && bad.Kind != fault.Unavailable && bad.Kind != fault.Internal:
			return err
		}
		if !clock.Sleep(ctx, max(pause, bad.RetryAfter)) {
			return context.Cause(ctx)
		}
	}
}

// inviteAgent asks whether an agent may join: whether the person may call it, and whether it can be reached. No agent
// is made to work for that.
func (w work) inviteAgent(ctx context.Context) {
	e := flow.Event{Kind: flow.Joined, Agent: w.effect.Agent}
	if name, _, _ := strings.Cut(e.Agent, "@"); name == AgentName {
		e.Kind, e.Text = flow.Refused, "It forms teams of its own."
		w.reportEvent(e)
		return
	}
	if hasPerson(w.state, e.Agent) {
		w.invitePerson(ctx)
		return
	}
	var a hub.Agent
	err := retryCall(ctx, func() (err error) {
		if err = w.checkActor(ctx); err == nil {
			a, err = w.s.Directory.Callable(ctx, w.actor, w.effect.Agent)
		}
		return err
	})
	switch {
	case ctx.Err() != nil:
		return
	case err != nil:
		e.Kind, e.Text = flow.Refused, fault.As(err).Safe
	case a.Liveness.State == hub.Unreachable || a.Liveness.State == hub.WrongProtocol ||
		a.Liveness.State == hub.NeedsAuth:
		e.Kind, e.Text = flow.Offline, a.Liveness.Reason
		if e.Text == "" {
			e.Text = "It does not answer."
		}
	default:
		e.Text, e.Aware = a.Title, aware.TakesDocuments(a.InputModes)
	}
	w.reportEvent(e)
}

// checkActor returns a Forbidden fault if the account of the person may no longer act.
func (w work) checkActor(ctx context.Context) error {
	ok, err := w.s.People.MayAct(ctx, w.goal.OwnerID)
	if err == nil && !ok {
		err = fault.New(fault.Forbidden, "The account of this goal is disabled.")
	}
	return err
}

// attemptID is the client id of the question for an attempt of a task, and answerID that of an answer to its owner.
func attemptID(goalID string, n, attempt int) string {
	return fmt.Sprintf("goal/%s/%d/%d", goalID, n, attempt)
}

func answerID(goalID string, n, attempt, answer int) string {
	return fmt.Sprintf("%s/answer/%d", attemptID(goalID, n, attempt), answer)
}

// runTask asks the owner of a task, or goes on to wait for it, and reports the outcome.
func (w work) runTask(ctx context.Context) {
	t := w.state.Tasks[w.effect.Task-1]
	asked, err := w.askOwner(ctx, t)
	if err != nil {
		if ctx.Err() == nil {
			w.endTask(flow.Broken, fault.As(err).Safe)
		}
		return
	}
	if t.Status == flow.Ready {
		w.reportEvent(flow.Event{Kind: flow.Started, Task: t.N, Attempt: t.Attempt, Ref: &flow.Ref{TaskID: asked.ID,
			ConversationID: asked.ConversationID, Seq: asked.MessageSeq}})
	}
	ended, m, err := w.s.Conversations.AwaitTask(ctx, w.actor, asked)
	switch {
	case ctx.Err() != nil:
		return
	case err != nil:
		w.endTask(flow.Broken, "Its conversation is gone: "+fault.As(err).Safe)
		return
	}
	text := strings.TrimSpace(task.PlainText(m.Parts))
	switch ended.State {
	case task.Completed:
		if w.answerByMove(t, m.Parts) {
			return
		}
		if !w.state.Open.ByModel && rules.IsRefusal(text) {
			w.endTask(flow.Broken, "It answered: "+text)
			return
		}
		w.endTask(flow.Completed, text)
	case task.InputRequired, task.AuthRequired:
		w.reportEvent(flow.Event{Kind: flow.Waits, Task: t.N, Attempt: t.Attempt, Text: text})
	case task.Canceled:
		w.endTask(flow.Dropped, firstOf(ended.Reason, text, "It was stopped."))
	default:
		w.endTask(flow.Broken, firstOf(ended.Reason, text, "It failed without a reason."))
	}
}

func firstOf(list ...string) string {
	for _, s := range list {
		if s != "" {
			return s
		}
	}
	return ""
}

func (w work) endTask(s flow.Status, text string) {
	w.reportEvent(flow.Event{Kind: flow.Ended, Task: w.effect.Task, Attempt: w.effect.Attempt, Status: s, Text: text})
}

// askOwner sends the question of a task, or the person's answer to its owner, and returns the durable task to wait for.
// A question that was sent before is not sent again.
func (w work) askOwner(ctx context.Context, t flow.Task) (asked task.Task, err error) {
	if w.effect.Answer > 0 {
		return w.answerOwner(ctx, t)
	}
	if t.Status == flow.Working {
		return task.Task{ID: t.Ref.TaskID, ConversationID: t.Ref.ConversationID, MessageSeq: t.Ref.Seq}, nil
	}
	err = retryCall(ctx, func() error {
		if err := w.checkActor(ctx); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		// Once it is sent, its number must become known, so that it can be stopped.
		out, err := w.s.Conversations.Ask(context.WithoutCancel(ctx), w.actor, chat.Ask{Agent: t.Owner, Once: true,
			ClientID: attemptID(w.goal.ID, t.N, t.Attempt), Face: face, Title: w.goal.Text,
			Parts: w.describeTask(t), Budget: w.taskBudget()})
		asked = out.Task
		if err == nil && !out.Repeat {
			if err := w.s.Conversations.Archive(context.WithoutCancel(ctx), w.actor, out.ConversationID); err != nil {
				w.s.cfg.Log.Debug("conversation of a team not archived", "conversation", out.ConversationID, "error", err)
			}
		}
		return err
	})
	return asked, err
}

// face is the Face of questions of teams.
const face = "goal"

// Bounds of the work that one task may cause by itself.
const (
	callsOfTask = 8
	bytesOfTask = 1 << 20
)

func (w work) taskBudget() task.Budget {
	b := task.Budget{Until: w.state.Until, Bytes: bytesOfTask}
	if w.state.Limits.Depth > 0 {
		b.Calls = callsOfTask
	}
	return b
}

// answerOwner sends the last answer of the person to the owner of a task.
func (w work) answerOwner(ctx context.Context, t flow.Task) (task.Task, error) {
	out := task.Task{ID: t.Ref.TaskID, ConversationID: t.Ref.ConversationID}
	err := retryCall(ctx, func() error {
		if err := w.checkActor(ctx); err != nil {
			return err
		}
		done, err := w.s.Conversations.Post(context.WithoutCancel(ctx), w.actor, t.Ref.ConversationID, chat.Draft{
			ClientID: answerID(w.goal.ID, t.N, t.Attempt, w.effect.Answer), Face: face, Resumes: t.Ref.TaskID,
			Parts: []task.Part{task.TextPart(t.Answers[w.effect.Answer-1])}})
		out.MessageSeq = done.Message.Seq
		return err
	})
	return out, err
}

// taskText returns the question of a task: its text, and the results that it needs, which are marked as data.
func taskText(s flow.State, t flow.Task) string {
	var results []handover.Result
	for _, n := range t.Needs {
		results = append(results, handover.Result{Owner: s.Tasks[n-1].Owner, Text: s.Tasks[n-1].Result})
	}
	return handover.Join(firstOf(t.Plan, t.Text), results)
}

// stopTask stops a durable task that the team no longer waits for.
func (w work) stopTask(ctx context.Context) {
	err := retryCall(ctx, func() error {
		switch ref := w.effect.Ref; {
		case ref.Goal != "":
			return w.stopTeam(ctx, ref.Goal)
		case ref.TaskID != "":
			return w.s.Conversations.StopTask(ctx, w.actor, ref.TaskID, "The team no longer needs it.")
		case ref.ConversationID != "":
			return w.closeQuestion(ctx)
		case hasPerson(w.state, w.effect.Agent):
			return nil
		}
		return w.stopUnknown(ctx)
	})
	if err != nil && ctx.Err() == nil && !fault.Is(err, fault.NotFound) {
		w.s.cfg.Log.Warn("stop a task of a team", "task", w.effect.Ref.TaskID, "error", err)
	}
}

// stopUnknown stops a task that an attempt may have sent before a crash, when its number was not stored.
func (w work) stopUnknown(ctx context.Context) error {
	if w.state.Tasks[w.effect.Task-1].Team {
		list, err := w.s.Store.GoalsBelow(ctx, w.goal.ID)
		if err != nil {
			return err
		}
		for _, g := range list {
			if g.Key == teamKey(w.goal.ID, w.effect.Task, w.effect.Attempt) {
				return w.stopTeam(ctx, g.ID)
			}
		}
		return nil
	}
	k, err := w.s.Conversations.TaskOf(ctx, w.actor, w.effect.Agent,
		attemptID(w.goal.ID, w.effect.Task, w.effect.Attempt))
	if err != nil {
		return err
	}
	return w.s.Conversations.StopTask(ctx, w.actor, k.ID, "The team no longer needs it.")
}

// hearMember asks a member for its contribution to the talk, which is its move.
func (w work) hearMember(ctx context.Context) {
	if hasPerson(w.state, w.effect.Agent) {
		w.hearPerson(ctx)
		return
	}
	id := fmt.Sprintf("goal/%s/turn/%d", w.goal.ID, w.effect.Turn)
	if n := w.state.Turn.Repairs; n > 0 && w.isAware(w.effect.Agent) {
		id += fmt.Sprintf("/%d", n) // it is asked again, with the reason
	}
	var asked chat.Asked
	err := retryCall(ctx, func() (err error) {
		asked, err = w.s.Conversations.Ask(ctx, w.actor, chat.Ask{Agent: w.effect.Agent, Once: true, ClientID: id,
			Face: face, Title: w.goal.Text, Parts: w.describeTurn(), Budget: w.taskBudget()})
		return err
	})
	var m chat.Message
	if err == nil {
		_, m, err = w.s.Conversations.AwaitTask(ctx, w.actor, asked.Task)
	}
	if ctx.Err() != nil {
		if errors.Is(context.Cause(ctx), errCut) && asked.Task.ID != "" {
			stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), endWait)
			defer cancel()
			_ = w.s.Conversations.StopTask(stopping, w.actor, asked.Task.ID, "The team no longer needs it.")
		}
		return
	}
	if err != nil {
		w.rejectMove(fault.As(err).Safe)
		return
	}
	move, err := w.readTurn(m.Parts)
	if err != nil {
		w.rejectMove(err.Error())
		return
	}
	w.reportEvent(flow.Event{Kind: flow.Moved, Agent: w.effect.Agent, Turn: w.effect.Turn, Move: &move})
}

// decideLead asks the model for the move of the lead.
func (w work) decideLead(ctx context.Context) {
	talk, err := w.readTalk(ctx)
	if err != nil {
		w.s.cfg.Log.Warn("read the talk of a team", "goal", w.goal.ID, "error", err)
	}
	move, cost, err := w.s.Speaker.Propose(ctx, Question{OwnerID: w.goal.OwnerID, OwnerName: w.goal.OwnerName,
		GoalID: w.goal.ID, State: w.state, Talk: talk})
	if cost.Tokens > 0 || cost.Money > 0 {
		w.reportEvent(flow.Event{Kind: flow.Spent, Cost: &cost})
	}
	switch {
	case ctx.Err() != nil:
		return
	case err != nil:
		w.rejectMove(fault.As(err).Safe)
		return
	}
	move.Rules = false
	w.reportEvent(flow.Event{Kind: flow.Moved, Agent: flow.Lead, Turn: w.effect.Turn, Move: &move})
}

func (w work) rejectMove(why string) {
	w.reportEvent(flow.Event{Kind: flow.Rejected, Agent: w.effect.Agent, Turn: w.effect.Turn, Text: why})
}

// talkEvents is the number of the last events of which a model gets the talk.
const talkEvents = 100

// readTalk returns the last texts of speakers and people.
func (w work) readTalk(ctx context.Context) (talk []flow.Note, err error) {
	list, err := w.s.Store.EventsOf(ctx, w.goal.ID, max(w.state.Seq-talkEvents, 0), talkEvents)
	for _, e := range list {
		switch {
		case e.Kind == flow.Said:
			talk = append(talk, flow.Note{Agent: e.Agent, Text: e.Text})
		case e.Kind == flow.Moved && e.Move != nil && e.Move.Kind == flow.Say:
			talk = append(talk, flow.Note{Agent: e.Agent, Text: e.Move.Text})
		}
	}
	return talk, err
}
