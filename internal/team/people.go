package team

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"agentsite/internal/chat"
	"agentsite/internal/fault"
	"agentsite/internal/task"
	"agentsite/internal/team/flow"
)

// findPeople returns those of the members that are people of this portal. Agents and people have one namespace.
func (s *Service) findPeople(ctx context.Context, members []string) (people []string, err error) {
	for _, h := range members {
		if strings.Contains(h, "@") {
			continue
		}
		ok, err := s.People.IsPerson(ctx, h)
		if err != nil {
			return nil, err
		}
		if ok {
			people = append(people, h)
		}
	}
	return people, nil
}

// hasPerson reports whether a member of the team is a person.
func hasPerson(s flow.State, handle string) bool {
	return slices.ContainsFunc(s.Members, func(k flow.Member) bool { return k.Person && k.Handle == handle })
}

// addPeople adds the people of the team to the candidates of a part. A part that names people is only theirs: no agent
// can answer for them.
func addPeople(s flow.State, list []flow.Candidate, text string) []flow.Candidate {
	var named []flow.Candidate
	for _, k := range s.Members {
		if !k.Person || k.State != flow.IsMember && k.State != flow.Invited {
			continue
		}
		if mentions(text, k.Handle) {
			named = append(named, flow.Candidate{Handle: k.Handle, Why: "named in this part", Person: true})
		}
		list = append(list, flow.Candidate{Handle: k.Handle, Why: "named by the person", Person: true})
	}
	if len(named) > 0 {
		return named
	}
	return list
}

// mentions reports whether a text has a name as a word.
func mentions(text, name string) bool {
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return r != '-' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
	return slices.Contains(words, strings.ToLower(name))
}

// invitePerson makes a person a member. Whether the person takes part shows when a task or the turn is theirs: then a
// conversation asks them, which they may decline.
func (w work) invitePerson(ctx context.Context) {
	e := flow.Event{Kind: flow.Joined, Agent: w.effect.Agent, Text: "Person"}
	var ok bool
	err := retryCall(ctx, func() (err error) {
		if err = w.checkActor(ctx); err == nil {
			ok, err = w.s.People.IsPerson(ctx, w.effect.Agent)
		}
		return err
	})
	switch {
	case ctx.Err() != nil:
		return
	case err != nil:
		e.Kind, e.Text = flow.Refused, fault.As(err).Safe
	case !ok:
		e.Kind, e.Text = flow.Refused, "There is no such person."
	}
	w.reportEvent(e)
}

// runPersonTask asks a person for the result of a task, and waits for the answer until the state needs it no more. The
// person that gave the goal is asked on its page.
func (w work) runPersonTask(ctx context.Context) {
	t := w.state.Tasks[w.effect.Task-1]
	ref := t.Ref
	own := t.Owner == w.goal.OwnerName
	if t.Status == flow.Ready {
		if !own {
			var err error
			if ref.ConversationID, ref.Seq, err = w.askPerson(ctx, taskText(w.state, t)); err != nil {
				if ctx.Err() == nil {
					w.endTask(flow.Broken, fault.As(err).Safe)
				}
				return
			}
		}
		w.reportEvent(flow.Event{Kind: flow.Started, Task: t.N, Attempt: t.Attempt, Ref: &ref})
	}
	if own {
		w.reportEvent(flow.Event{Kind: flow.Waits, Task: t.N, Attempt: t.Attempt, Text: taskText(w.state, t)})
		return
	}
	text, err := w.awaitPerson(ctx, ref)
	switch {
	case ctx.Err() != nil:
		return
	case err != nil:
		w.endTask(flow.Broken, "The conversation is gone: "+fault.As(err).Safe)
		return
	}
	w.endTask(flow.Completed, text)
}

// hearPerson asks a person that has the turn. The person that gave the goal speaks by a message to the team.
func (w work) hearPerson(ctx context.Context) {
	if w.effect.Agent == w.goal.OwnerName {
		<-ctx.Done()
		return
	}
	var ref flow.Ref
	var text string
	var err error
	if ref.ConversationID, ref.Seq, err = w.askPerson(ctx, w.state.Topic); err == nil {
		text, err = w.awaitPerson(ctx, ref)
	}
	switch {
	case ctx.Err() != nil:
		return
	case err != nil:
		w.rejectMove(fault.As(err).Safe)
		return
	}
	w.reportEvent(flow.Event{Kind: flow.Moved, Agent: w.effect.Agent, Turn: w.effect.Turn,
		Move: &flow.Move{Kind: flow.Say, Text: text, Next: flow.Lead}})
}

func (w work) askPerson(ctx context.Context, text string) (conversationID string, seq int64, err error) {
	text += "\n\n" + w.goal.OwnerName + " gave a goal to a team, which asks you for this. Answer here within " +
		describeTime(w.state.Limits.PersonTime) + "; then the team goes on without your answer."
	err = retryCall(ctx, func() (err error) {
		if err = w.checkActor(ctx); err == nil && ctx.Err() == nil {
			conversationID, seq, err = w.s.Conversations.AskPerson(context.WithoutCancel(ctx), w.actor, w.effect.Agent,
				w.goal.Text, text)
		}
		return err
	})
	return conversationID, seq, err
}

func (w work) awaitPerson(ctx context.Context, ref flow.Ref) (text string, err error) {
	err = retryCall(ctx, func() (err error) {
		text, err = w.s.Conversations.AwaitPerson(ctx, w.actor, w.effect.Agent, ref.ConversationID, ref.Seq)
		return err
	})
	return text, err
}

// closeQuestion says in the conversation with a person that the team went on.
func (w work) closeQuestion(ctx context.Context) error {
	_, err := w.s.Conversations.Post(ctx, w.actor, w.effect.Ref.ConversationID, chat.Draft{Face: face,
		ClientID: attemptID(w.goal.ID, w.effect.Task, w.effect.Attempt) + "/" + w.effect.Key,
		Parts:    []task.Part{task.TextPart("The team went on without an answer. It needs none any more.")}})
	return err
}

// describeTime returns a time for people, such as 10 minutes.
func describeTime(d time.Duration) string {
	switch {
	case d >= 2*time.Hour && d%time.Hour == 0:
		return plural(int(d/time.Hour), "hour")
	case d >= time.Minute && d%time.Minute == 0:
		return plural(int(d/time.Minute), "minute")
	}
	return plural(int(d/time.Second), "second")
}

func plural(n int, unit string) string {
	if n == 1 {
		return "1 " + unit
	}
	return fmt.Sprintf("%d %ss", n, unit)
}
