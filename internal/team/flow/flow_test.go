package flow_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"agentsite/internal/team/flow"
)

var start = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)

func limits() flow.Limits {
	return flow.Limits{Members: 3, Turns: 8, Depth: 1, Tasks: 6, Attempts: 2, Searches: 3, Repairs: 1, Time: time.Hour,
		TurnTime: time.Minute, TaskTime: 10 * time.Minute, PersonTime: 5 * time.Minute}
}

// goal is a log in the making.
type goal struct {
	t   *testing.T
	now time.Time
	log []flow.Event
	flow.State
}

func begin(t *testing.T, edit ...func(*flow.Opening)) *goal {
	t.Helper()
	o := flow.Opening{Goal: "Add and multiply.", Recruit: flow.RecruitHere, ByModel: true, Limits: limits()}
	for _, e := range edit {
		e(&o)
	}
	g := &goal{t: t, now: start}
	g.do(flow.Event{Kind: flow.Opened, Open: &o})
	return g
}

func (g *goal) try(e flow.Event) error {
	e.Seq, e.At = g.Seq+1, g.now
	next, err := flow.Next(g.State, e)
	if err == nil {
		g.State, g.log = next, append(g.log, e)
	}
	return err
}

func (g *goal) do(list ...flow.Event) {
	g.t.Helper()
	for _, e := range list {
		if err := g.try(e); err != nil {
			g.t.Fatalf("%s: %v", e.Kind, err)
		}
	}
}

// refuses expects that an event is illegal and changes nothing.
func (g *goal) refuses(says string, e flow.Event) {
	g.t.Helper()
	before := g.State
	err := g.try(e)
	var bad *flow.Illegal
	if !errors.As(err, &bad) || !strings.Contains(bad.Reason, says) {
		g.t.Errorf("%s: %v, want an illegal event with %q", e.Kind, err, says)
	}
	if !reflect.DeepEqual(before, g.State) {
		g.t.Errorf("%s: an illegal event changed the state", e.Kind)
	}
}

func (g *goal) is(p flow.Phase) {
	g.t.Helper()
	if g.Phase != p {
		g.t.Fatalf("the phase is %s (%s), want %s", g.Phase, g.Reason, p)
	}
}

func (g *goal) pass(d time.Duration) {
	g.now = g.now.Add(d)
	g.do(flow.Event{Kind: flow.Ticked})
}

func parts() []flow.Part {
	c := func(names ...string) (list []flow.Candidate) {
		for _, n := range names {
			list = append(list, flow.Candidate{Handle: n, Why: "fits"})
		}
		return list
	}
	return []flow.Part{{N: 1, Text: "Add.", Candidates: c("ann", "eve")}, {N: 2, Text: "Multiply.", Needs: []int{1},
		Candidates: c("bob", "eve")}}
}

// formed is a goal whose team of ann and bob has formed.
func formed(t *testing.T, edit ...func(*flow.Opening)) *goal {
	g := begin(t, edit...)
	g.do(flow.Event{Kind: flow.Found, Parts: parts()}, flow.Event{Kind: flow.Joined, Agent: "ann"},
		flow.Event{Kind: flow.Joined, Agent: "bob"})
	return g
}

func move(turn int, m flow.Move) flow.Event {
	return flow.Event{Kind: flow.Moved, Agent: flow.Lead, Turn: turn, Move: &m}
}

func assign(owner, text string, needs ...int) flow.Assignment {
	return flow.Assignment{Owner: owner, Text: text, Needs: needs}
}

func started(n, attempt int) flow.Event {
	return flow.Event{Kind: flow.Started, Task: n, Attempt: attempt, Ref: &flow.Ref{TaskID: fmt.Sprint("task", n, ".", attempt)}}
}

func ended(n, attempt int, s flow.Status, text string) flow.Event {
	return flow.Event{Kind: flow.Ended, Task: n, Attempt: attempt, Status: s, Text: text}
}

func keys(s flow.State) (list []string) {
	for _, e := range flow.Effects(s) {
		list = append(list, e.Key)
	}
	return list
}

func (g *goal) needs(want ...string) {
	g.t.Helper()
	if got := keys(g.State); !slices.Equal(got, want) {
		g.t.Errorf("effects %q, want %q", got, want)
	}
}

// The golden transcript: forming, an assignment of two tasks of which one needs the other, and the conclusion.
func TestNext_GoldenTranscript(t *testing.T) {
	t.Parallel()
	g := begin(t)
	g.is(flow.Forming)
	g.needs("search/1")
	g.do(flow.Event{Kind: flow.Found, Parts: parts()})
	g.needs("invite/ann", "invite/bob")
	g.do(flow.Event{Kind: flow.Joined, Agent: "ann"})
	g.is(flow.Forming)
	g.do(flow.Event{Kind: flow.Joined, Agent: "bob"})
	g.is(flow.Discussion)
	g.needs("turn/1/0/false/0")
	g.do(move(1, flow.Move{Kind: flow.Assign, Tasks: []flow.Assignment{assign("ann", "Add 1 and 2."), assign("bob", "Double it.", -1)}}))
	g.is(flow.Sync)
	g.needs("task/1/1/0")
	g.do(started(1, 1), ended(1, 1, flow.Completed, "3"))
	g.is(flow.Sync)
	g.needs("task/2/1/0")
	g.do(started(2, 1), ended(2, 1, flow.Completed, "6"))
	g.is(flow.Discussion)
	g.needs("turn/2/0/false/0")
	g.do(move(2, flow.Move{Kind: flow.Conclude, Text: "It is 6."}))
	g.is(flow.Concluded)
	g.needs()
	if g.Turns != 2 || g.Conclusion != "It is 6." || g.Tasks[1].Result != "6" {
		t.Errorf("%+v", g.State)
	}
	g.refuses("has ended", move(3, flow.Move{Kind: flow.Conclude, Text: "It is 7."}))
	again, err := flow.Replay(g.log)
	if err != nil || !reflect.DeepEqual(again, g.State) {
		t.Errorf("the log gives another state: %v\n%+v\n%+v", err, again, g.State)
	}
}

func TestNext_Forming(t *testing.T) {
	t.Parallel()
	t.Run("a refusal invites the next candidate", func(t *testing.T) {
		g := begin(t)
		g.do(flow.Event{Kind: flow.Found, Parts: parts()}, flow.Event{Kind: flow.Refused, Agent: "ann", Text: "Busy."})
		g.needs("invite/bob", "invite/eve")
		g.do(flow.Event{Kind: flow.Offline, Agent: "bob", Text: "Gone."}, flow.Event{Kind: flow.Joined, Agent: "eve"})
		g.is(flow.Discussion)
		g.refuses("was not invited", flow.Event{Kind: flow.Joined, Agent: "ann"})
	})
	t.Run("a required member that is offline is named", func(t *testing.T) {
		g := begin(t, func(o *flow.Opening) { o.Members, o.RequireAll = []string{"zoe"}, true })
		g.do(flow.Event{Kind: flow.Found, Parts: parts()}, flow.Event{Kind: flow.Joined, Agent: "ann"},
			flow.Event{Kind: flow.Joined, Agent: "bob"}, flow.Event{Kind: flow.Offline, Agent: "zoe", Text: "No answer."})
		g.is(flow.Failed)
		if want := "team_formation: zoe offline: No answer"; g.Reason != want {
			t.Errorf("%q, want %q", g.Reason, want)
		}
	})
	t.Run("without any agent rules cannot work", func(t *testing.T) {
		g := begin(t, func(o *flow.Opening) { o.ByModel = false })
		g.do(flow.Event{Kind: flow.Found, Parts: []flow.Part{{N: 1, Text: "Juggle."}}})
		g.is(flow.Failed)
	})
	t.Run("a model may work alone", func(t *testing.T) {
		g := begin(t)
		g.do(flow.Event{Kind: flow.Found, Parts: []flow.Part{{N: 1, Text: "Think."}}})
		g.is(flow.Discussion)
		g.do(move(1, flow.Move{Kind: flow.Conclude, Text: "Thought."}))
		g.is(flow.Concluded)
	})
	t.Run("the size holds", func(t *testing.T) {
		g := begin(t, func(o *flow.Opening) { o.Limits.Members = 1 })
		g.do(flow.Event{Kind: flow.Found, Parts: parts()})
		g.needs("invite/ann")
		g.do(flow.Event{Kind: flow.Joined, Agent: "ann"})
		g.refuses("no more than 1", move(1, flow.Move{Kind: flow.Assign, Tasks: []flow.Assignment{assign("bob", "Add.")}}))
	})
}

func TestNext_RefusesIllegalMoves(t *testing.T) {
	t.Parallel()
	g := formed(t)
	say := flow.Move{Kind: flow.Say, Text: "Hello.", Next: "ann"}
	g.refuses("does not have the turn", flow.Event{Kind: flow.Moved, Agent: "ann", Turn: 1, Move: &say})
	g.refuses("is not the open one", move(2, say))
	g.refuses("no member", move(1, flow.Move{Kind: flow.Say, Text: "Hello.", Next: "eve"}))
	g.refuses("next speaker", move(1, flow.Move{Kind: flow.Say, Text: "Hello.", Next: flow.Lead}))
	g.refuses("there is no move", move(1, flow.Move{Kind: "vote"}))
	g.refuses("nothing would end", move(1, flow.Move{Kind: flow.Pause, Triggers: []flow.Trigger{{On: flow.OnAll}}}))
	g.refuses("needs 1 to", move(1, flow.Move{Kind: flow.Pause}))
	g.refuses("there is no task 4", move(1, flow.Move{Kind: flow.Pause, Triggers: []flow.Trigger{{On: flow.OnNamed, Tasks: []int{4}}}}))
	g.refuses("tasks before it", move(1, flow.Move{Kind: flow.Assign, Tasks: []flow.Assignment{assign("ann", "Add.", 1)}}))
	g.refuses("is the same", move(1, flow.Move{Kind: flow.Assign, Tasks: []flow.Assignment{assign("ann", "Add."), assign("ann", "add")}}))
	g.refuses("only a failed one", func() flow.Event {
		g.do(move(1, flow.Move{Kind: flow.Assign, Async: true, Tasks: []flow.Assignment{assign("ann", "Add.")}}))
		return move(2, flow.Move{Kind: flow.Assign, Tasks: []flow.Assignment{{Task: 1, Owner: "bob"}}})
	}())
	g.is(flow.Async)
	g.do(move(2, say))
	g.refuses("only the lead", flow.Event{Kind: flow.Moved, Agent: "ann", Turn: 3, Move: &flow.Move{Kind: flow.Conclude, Text: "Done."}})
	g.do(flow.Event{Kind: flow.Moved, Agent: "ann", Turn: 3, Move: &flow.Move{Kind: flow.Say, Text: "Hi.", Next: "bob"}})
	if g.Turn.Speaker != flow.Lead {
		t.Error("after a member speaks", g.Turn.Speaker)
	}
	g.refuses("said before", move(4, flow.Move{Kind: flow.Say, Text: "hello", Next: "bob"}))
	g.refuses("waits for this team", func() flow.Event {
		g = formed(t, func(o *flow.Opening) { o.Above = []string{"ann"} })
		return move(1, flow.Move{Kind: flow.Assign, Tasks: []flow.Assignment{assign("ann", "Add.")}})
	}())
}

// A member that speaks for itself takes a task and recruits a team, and nothing else.
func TestNext_MembersMoveForThemselves(t *testing.T) {
	t.Parallel()
	g := formed(t, func(o *flow.Opening) { o.Limits.Attempts = 3 })
	g.do(move(1, flow.Move{Kind: flow.Say, Text: "Any ideas?", Next: "ann"}))
	by := func(m flow.Move) flow.Event {
		return flow.Event{Kind: flow.Moved, Agent: "ann", Turn: 2, Move: &m}
	}
	for name, a := range map[string][]flow.Assignment{"another": {assign("bob", "Add.")}, "two": {assign("ann", "Add."), assign("ann", "Sum.")},
		"team": {{Owner: "ann", Text: "Add.", Team: true}}, "part": {{Owner: "ann", Text: "Add.", Part: 1}}, "old": {{Owner: "ann", Task: 1}}} {
		g.refuses("only the lead may give", by(flow.Move{Kind: flow.Assign, Tasks: a}))
		if t.Failed() {
			t.Fatal(name)
		}
	}
	g.refuses("only the lead may request", by(flow.Move{Kind: flow.Request, Text: "friends"}))
	g.do(by(flow.Move{Kind: flow.Assign, Tasks: []flow.Assignment{assign("ann", "Add.")}}))
	if k := g.Tasks[0]; k.By != "ann" || k.Status != flow.Ready || g.Turn == nil || g.Turn.Speaker != flow.Lead {
		t.Errorf("%+v, turn %+v", k, g.Turn)
	}
	g.do(started(1, 1))
	recruits := flow.Event{Kind: flow.Recruits, Agent: "ann", Task: 1, Attempt: 1, Text: "Add it together."}
	g.refuses("does not work on", flow.Event{Kind: flow.Recruits, Agent: "bob", Task: 1, Attempt: 1, Text: "Mine."})
	g.do(recruits)
	if k := g.Tasks[0]; !k.Team || k.Plan != recruits.Text || k.Attempt != 2 || k.Status != flow.Ready || k.Owner != "ann" {
		t.Errorf("%+v", k)
	}
	g.refuses("does not work on", recruits)
	g.do(flow.Event{Kind: flow.Started, Task: 1, Attempt: 2, Ref: &flow.Ref{Goal: "below"}})
	recruits.Attempt = 2
	g.refuses("has a team", recruits)
	g.do(ended(1, 2, flow.Broken, "Its team failed."), move(3, flow.Move{Kind: flow.Assign, Tasks: []flow.Assignment{{Task: 1, Owner: "bob"}}}))
	if k := g.Tasks[0]; k.Team || k.Plan != "" || k.Owner != "bob" {
		t.Errorf("after another attempt: %+v", k)
	}
}

func TestNext_GarbageLeadsToTheRules(t *testing.T) {
	t.Parallel()
	g := formed(t)
	bad := flow.Event{Kind: flow.Rejected, Agent: flow.Lead, Turn: 1, Text: "no JSON"}
	g.do(bad, bad)
	if !g.Turn.Fallback {
		t.Fatal("the rules do not decide after two garbage moves with one repair")
	}
	conclude := flow.Move{Kind: flow.Conclude, Text: "Done."}
	g.refuses("the rules decide", move(1, conclude))
	conclude.Rules = true
	g.do(move(1, conclude))
	g.is(flow.Concluded)

	g = formed(t)
	g.pass(time.Minute)
	if g.Turn == nil || !g.Turn.Fallback {
		t.Fatal("the rules do not decide after the time of the turn")
	}
	g.pass(time.Minute)
	g.is(flow.Failed)

	g = formed(t)
	g.do(move(1, flow.Move{Kind: flow.Say, Text: "Ann?", Next: "ann"}))
	g.pass(time.Minute)
	if g.Turn.Speaker != flow.Lead || g.Turn.N != 3 || g.Turns != 2 {
		t.Errorf("after a silent member: %+v, %d used", g.Turn, g.Turns)
	}
}

func TestNext_PauseResumesOnce(t *testing.T) {
	t.Parallel()
	two := func(t *testing.T) *goal {
		g := formed(t)
		g.do(move(1, flow.Move{Kind: flow.Assign, Async: true, Tasks: []flow.Assignment{assign("ann", "Add."), assign("bob", "Multiply.")}}),
			started(1, 1), started(2, 1))
		return g
	}
	for _, c := range []struct {
		name           string
		before, during []int
		trigger        flow.Trigger
		want           flow.Phase
	}{
		{"any, none ended", nil, nil, flow.Trigger{On: flow.OnAny}, flow.Paused},
		{"any, one ends", nil, []int{1}, flow.Trigger{On: flow.OnAny}, flow.Discussion},
		{"any, one had ended", []int{1}, nil, flow.Trigger{On: flow.OnAny}, flow.Discussion},
		{"all, one ends", nil, []int{2}, flow.Trigger{On: flow.OnAll}, flow.Paused},
		{"all, both end", nil, []int{2, 1}, flow.Trigger{On: flow.OnAll}, flow.Discussion},
		{"all, both had ended", []int{1, 2}, nil, flow.Trigger{On: flow.OnAll}, flow.Discussion},
		{"named, another ends", nil, []int{1}, flow.Trigger{On: flow.OnNamed, Tasks: []int{2}}, flow.Paused},
		{"named ends", nil, []int{2}, flow.Trigger{On: flow.OnNamed, Tasks: []int{2}}, flow.Discussion},
		{"named had ended", []int{2}, nil, flow.Trigger{On: flow.OnNamed, Tasks: []int{2}}, flow.Discussion},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := two(t)
			for _, n := range c.before {
				g.do(ended(n, 1, flow.Completed, "done"))
			}
			g.do(move(2, flow.Move{Kind: flow.Pause, Triggers: []flow.Trigger{c.trigger}}))
			for _, n := range c.during {
				g.do(ended(n, 1, flow.Broken, "a failure counts as well"))
			}
			if got := g.Phase; got != c.want && (c.want != flow.Discussion || got != flow.Async) {
				t.Fatalf("%s, want %s", got, c.want)
			}
			if c.want == flow.Discussion && (g.Turn == nil || g.Turn.N != 3) {
				t.Errorf("the turn is %+v", g.Turn)
			}
			for n := 1; n <= 2; n++ { // what ends later opens no second turn
				if !g.Tasks[n-1].Status.Final() {
					g.do(ended(n, 1, flow.Completed, "later"))
				}
			}
			if g.Turn == nil || g.Turn.N != 3 {
				t.Errorf("at the end the turn is %+v", g.Turn)
			}
		})
	}
	t.Run("time", func(t *testing.T) {
		g := two(t)
		g.do(move(2, flow.Move{Kind: flow.Pause, Triggers: []flow.Trigger{{On: flow.OnTime, After: 2 * time.Minute}}}))
		if at := flow.WakeAt(g.State); !at.Equal(start.Add(2 * time.Minute)) {
			t.Error(at)
		}
		g.pass(2*time.Minute - time.Millisecond)
		g.is(flow.Paused)
		g.pass(time.Millisecond)
		g.is(flow.Async)
	})
	t.Run("a message", func(t *testing.T) {
		g := two(t)
		g.do(move(2, flow.Move{Kind: flow.Pause, Triggers: []flow.Trigger{{On: flow.OnAll}}}), flow.Event{Kind: flow.Said, Agent: "ada", Text: "Hurry."})
		g.is(flow.Async)
	})
}

func TestNext_Tasks(t *testing.T) {
	t.Parallel()
	one := func(t *testing.T) *goal {
		g := formed(t)
		g.do(move(1, flow.Move{Kind: flow.Assign, Tasks: []flow.Assignment{assign("ann", "Add."), assign("bob", "Double.", -1)}}), started(1, 1))
		return g
	}
	t.Run("a failure counts as completion and stops what needs it", func(t *testing.T) {
		g := one(t)
		g.do(ended(1, 1, flow.Broken, "I cannot."))
		g.is(flow.Discussion)
		if g.Tasks[1].Status != flow.Broken || !strings.Contains(g.Tasks[1].Reason, "Task 1") {
			t.Errorf("%+v", g.Tasks[1])
		}
		g.do(move(2, flow.Move{Kind: flow.Assign, Tasks: []flow.Assignment{{Task: 1, Owner: "bob"}}}))
		if k := g.Tasks[0]; k.Attempt != 2 || k.Owner != "bob" || !slices.Equal(k.Tried, []string{"ann"}) {
			t.Errorf("%+v", k)
		}
		g.do(started(1, 2), ended(1, 2, flow.Broken, "Neither can I."))
		g.refuses("tried 2 times", move(3, flow.Move{Kind: flow.Assign, Tasks: []flow.Assignment{{Task: 1, Owner: "ann"}}}))
	})
	t.Run("a late answer changes nothing", func(t *testing.T) {
		g := one(t)
		g.pass(10 * time.Minute)
		g.is(flow.Discussion)
		g.needs("stop/1", "turn/2/0/false/0")
		g.do(ended(1, 1, flow.Completed, "late"))
		if g.Tasks[0].Status != flow.Broken || g.Late != 1 {
			t.Errorf("%+v", g.Tasks[0])
		}
	})
	t.Run("a question waits for the person", func(t *testing.T) {
		g := one(t)
		g.do(flow.Event{Kind: flow.Waits, Task: 1, Attempt: 1, Text: "May I?"})
		g.needs()
		g.refuses("takes no such message", flow.Event{Kind: flow.Waits, Task: 1, Attempt: 1, Text: "May I?"})
		g.do(flow.Event{Kind: flow.Answered, Task: 1, Agent: "ada", Text: "Yes."})
		g.needs("task/1/1/1")
		g.do(flow.Event{Kind: flow.Waits, Task: 1, Attempt: 1, Text: "Really?"})
		g.pass(5 * time.Minute)
		if g.Tasks[0].Status != flow.Broken {
			t.Errorf("%+v", g.Tasks[0])
		}
	})
	t.Run("the person gives a task to another agent", func(t *testing.T) {
		g := one(t)
		g.do(flow.Event{Kind: flow.Reassigned, Task: 1, Agent: "eve", Text: "ada"})
		g.needs("stop/1", "invite/eve")
		g.do(flow.Event{Kind: flow.Joined, Agent: "eve"})
		g.needs("stop/1", "task/1/2/0")
		g.do(started(1, 2), ended(1, 2, flow.Completed, "3"))
		g.refuses("is completed", flow.Event{Kind: flow.Reassigned, Task: 1, Agent: "bob"})
	})
	t.Run("cancel is final", func(t *testing.T) {
		g := one(t)
		g.do(flow.Event{Kind: flow.Stopped, Agent: "ada", Text: "Enough."})
		g.is(flow.Canceled)
		g.needs("stop/1")
		g.refuses("final", flow.Event{Kind: flow.Said, Agent: "ada", Text: "Go on."})
		g.refuses("has ended", flow.Event{Kind: flow.Stopped, Agent: "ada"})
	})
	t.Run("a task that is sent while the goal is canceled is stopped", func(t *testing.T) {
		g := formed(t)
		g.do(move(1, flow.Move{Kind: flow.Assign, Tasks: []flow.Assignment{assign("ann", "Add.")}}),
			flow.Event{Kind: flow.Stopped, Agent: "ada"})
		g.needs("stop/1") // it may have been sent
		g.do(started(1, 1))
		g.needs("stop/1", "stop/2")
	})
}

func TestNext_Limits(t *testing.T) {
	t.Parallel()
	t.Run("turns", func(t *testing.T) {
		g := formed(t)
		for i := 1; g.Phase != flow.Failed; i++ {
			who := g.Turn.Speaker
			m := flow.Move{Kind: flow.Say, Text: fmt.Sprint("text ", i), Next: "ann"}
			g.do(flow.Event{Kind: flow.Moved, Agent: who, Turn: i, Move: &m})
		}
		if g.Turns != 8 || !strings.HasPrefix(g.Reason, flow.NoTurns) {
			t.Errorf("%d turns, %s", g.Turns, g.Reason)
		}
	})
	t.Run("deadline, with the results so far", func(t *testing.T) {
		g := formed(t)
		g.do(move(1, flow.Move{Kind: flow.Assign, Tasks: []flow.Assignment{assign("ann", "Add."), assign("bob", "Wait.")}}),
			started(1, 1), ended(1, 1, flow.Completed, "3"))
		g.pass(time.Hour)
		if !strings.HasPrefix(g.Reason, flow.NoTime) || !strings.Contains(g.Conclusion, "3") || g.Tasks[1].Status != flow.Dropped {
			t.Errorf("%s: %s", g.Reason, g.Conclusion)
		}
	})
	t.Run("money of talk and work", func(t *testing.T) {
		g := formed(t, func(o *flow.Opening) { o.Limits.Money = 10 })
		g.do(flow.Event{Kind: flow.Spent, Cost: &flow.Cost{Talk: true, Tokens: 5, Money: 4}}, flow.Event{Kind: flow.Spent, Cost: &flow.Cost{Tokens: 5, Money: 5}})
		g.is(flow.Discussion)
		g.do(flow.Event{Kind: flow.Spent, Cost: &flow.Cost{Money: 1}})
		if !strings.HasPrefix(g.Reason, flow.NoBudget) || g.Talk.Money != 4 || g.Work.Money != 6 {
			t.Errorf("%+v", g.State)
		}
	})
	t.Run("a follow-up opens the goal again", func(t *testing.T) {
		g := formed(t)
		g.do(move(1, flow.Move{Kind: flow.Conclude, Text: "Done."}), flow.Event{Kind: flow.Said, Agent: "ada", Text: "And now?"})
		g.is(flow.Discussion)
		if g.Turn.N != 2 || g.Conclusion != "" || g.Limits.Turns != 9 {
			t.Errorf("%+v", g.State)
		}
	})
}

// random makes events that may be legal in a state and some that are not.
type random struct{ *rand.Rand }

func (r random) agent() string { return []string{flow.Lead, "ann", "bob", "eve", "zoe"}[r.IntN(5)] }

func (r random) text() string {
	return []string{"", "one", "two", "three", fmt.Sprint(r.IntN(50))}[r.IntN(5)]
}

func (r random) move() *flow.Move {
	m := flow.Move{Text: r.text(), Next: r.agent(), Async: r.IntN(2) == 0, Rules: r.IntN(4) == 0}
	m.Kind = []flow.MoveKind{flow.Say, flow.Say, flow.Assign, flow.Assign, flow.Pause, flow.Request, flow.Conclude, flow.GiveUp, ""}[r.IntN(9)]
	for range r.IntN(3) {
		a := flow.Assignment{Owner: r.agent(), Text: r.text(), Team: r.IntN(5) == 0, Part: r.IntN(3)}
		if r.IntN(3) == 0 {
			a.Task = r.IntN(4)
		}
		if r.IntN(3) == 0 {
			a.Needs = []int{r.IntN(5) - 2}
		}
		m.Tasks = append(m.Tasks, a)
	}
	for range r.IntN(3) {
		m.Triggers = append(m.Triggers, flow.Trigger{On: []flow.TriggerKind{flow.OnAny, flow.OnAll, flow.OnNamed, flow.OnTime, "x"}[r.IntN(5)],
			Tasks: []int{r.IntN(4)}, After: time.Duration(r.IntN(100)-5) * time.Second})
	}
	return &m
}

// event returns the answer to an effect of the state most of the time, so that goals go on, and anything else otherwise.
func (r random) event(s flow.State) flow.Event {
	if list := flow.Effects(s); len(list) > 0 && r.IntN(4) > 0 {
		return r.answer(s, list[r.IntN(len(list))])
	}
	e := flow.Event{Agent: r.agent(), Turn: r.IntN(6), Task: r.IntN(5), Attempt: r.IntN(4), Text: r.text(), Move: r.move(),
		Status: []flow.Status{flow.Completed, flow.Broken, flow.Dropped, flow.Working}[r.IntN(4)], Ref: &flow.Ref{TaskID: "t"},
		Cost: &flow.Cost{Talk: r.IntN(2) == 0, Tokens: int64(r.IntN(5)), Money: int64(r.IntN(3))}}
	e.Kind = []flow.Kind{flow.Found, flow.Joined, flow.Refused, flow.Offline, flow.Moved, flow.Rejected, flow.Started, flow.Waits,
		flow.Answered, flow.Ended, flow.Reassigned, flow.Recruits, flow.Said, flow.Spent, flow.Ticked, flow.Ticked, flow.Opened, "x"}[r.IntN(18)]
	if r.IntN(60) == 0 {
		e.Kind = flow.Stopped
	}
	return e
}

func (r random) answer(s flow.State, f flow.Effect) flow.Event {
	switch f.Kind {
	case flow.DoSearch:
		e := flow.Event{Kind: flow.Found}
		for i := range r.IntN(3) {
			e.Parts = append(e.Parts, flow.Part{N: len(s.Parts) + i + 1, Text: r.text(), Candidates: []flow.Candidate{{Handle: r.agent()}, {Handle: "bob"}}})
		}
		return e
	case flow.DoInvite:
		return flow.Event{Kind: []flow.Kind{flow.Joined, flow.Joined, flow.Refused, flow.Offline}[r.IntN(4)], Agent: f.Agent}
	case flow.DoDecide:
		if r.IntN(5) == 0 {
			return flow.Event{Kind: flow.Rejected, Agent: f.Agent, Turn: f.Turn, Text: "garbage"}
		}
		if f.Agent != flow.Lead && r.IntN(2) == 0 {
			return flow.Event{Kind: flow.Moved, Agent: f.Agent, Turn: f.Turn, Move: &flow.Move{Kind: flow.Assign,
				Tasks: []flow.Assignment{assign(f.Agent, r.text())}}}
		}
		return flow.Event{Kind: flow.Moved, Agent: f.Agent, Turn: f.Turn, Move: r.move()}
	case flow.DoTask:
		if s.Tasks[f.Task-1].Status == flow.Ready {
			return started(f.Task, f.Attempt)
		}
		if r.IntN(6) == 0 {
			return flow.Event{Kind: flow.Recruits, Agent: f.Agent, Task: f.Task, Attempt: f.Attempt, Text: r.text()}
		}
		if r.IntN(4) == 0 {
			return flow.Event{Kind: flow.Waits, Task: f.Task, Attempt: f.Attempt, Text: "?"}
		}
		return ended(f.Task, f.Attempt, []flow.Status{flow.Completed, flow.Broken, flow.Dropped}[r.IntN(3)], r.text())
	}
	return flow.Event{Kind: flow.Ticked}
}

// sound returns what is wrong with a state, "" for nothing.
func sound(s flow.State) string {
	open := 0
	for _, k := range s.Members {
		if k.State == flow.IsMember || k.State == flow.Invited {
			open++
		}
	}
	talk := s.Phase == flow.Discussion || s.Phase == flow.Async
	active := slices.ContainsFunc(s.Tasks, func(k flow.Task) bool { return !k.Status.Final() })
	switch {
	case open > s.Limits.Members:
		return "too many members"
	case s.Turns > s.Limits.Turns:
		return "too many turns"
	case len(s.Tasks) > s.Limits.Tasks:
		return "too many tasks"
	case s.Phase.Final() && (s.Turn != nil || active || s.Search != "" || len(s.Triggers) > 0):
		return "something goes on after the end"
	case s.Phase.Final():
		return ""
	case talk && (s.Turn == nil) == (s.Search == "") || !talk && s.Turn != nil:
		return "a phase of talk without a turn, or a turn outside of it"
	case s.Phase == flow.Paused && len(s.Triggers) == 0:
		return "a pause without end"
	case s.Phase == flow.Sync && len(s.Awaits) == 0:
		return "a wait for nothing"
	case flow.WakeAt(s).IsZero():
		return "no time at which it ends"
	}
	return ""
}

// grown returns how a later state went back behind an earlier one, "" if it did not.
func grown(a, b flow.State) string {
	rank := map[flow.Status]int{flow.Planned: 0, flow.Ready: 1, flow.Working: 2, flow.Input: 2, flow.Completed: 3, flow.Broken: 3, flow.Dropped: 3}
	if b.Turns < a.Turns || len(b.Tasks) < len(a.Tasks) || len(b.Parts) < len(a.Parts) || b.Talk.Money < a.Talk.Money {
		return "something was lost"
	}
	for i, k := range a.Tasks {
		n := b.Tasks[i]
		switch {
		case n.Text != k.Text || n.N != k.N || n.Attempt < k.Attempt:
			return "a task was changed"
		case n.Attempt == k.Attempt && (rank[n.Status] < rank[k.Status] || k.Status.Final() && n.Status != k.Status):
			return "the status of a task went back"
		case k.Status == flow.Completed && n.Result != k.Result:
			return "a result was changed"
		}
	}
	return ""
}

// Random events, legal and illegal: no state is ever illegal, none goes back, an illegal event changes nothing, the log
// gives the same state, and whatever happened, the goal ends when time passes.
func TestNext_RandomSequences(t *testing.T) {
	t.Parallel()
	const longest = 30
	sequences := 3_000
	if os.Getenv("AGENTSITE_TEST_FULL") != "" {
		sequences = 100_000
	}
	accepted, refused, ends := 0, 0, make(map[flow.Phase]int)
	for seed := range uint64(sequences) {
		r := random{rand.New(rand.NewPCG(seed, 24))}
		o := flow.Opening{Goal: "g", Recruit: flow.RecruitHere, ByModel: r.IntN(2) == 0, Limits: limits()}
		o.Limits.Turns, o.Limits.Members, o.Limits.Money = 1+r.IntN(8), r.IntN(4), int64(r.IntN(2)*20)
		if r.IntN(3) == 0 && o.Limits.Members > 0 {
			o.Members, o.RequireAll = []string{"zoe"}, r.IntN(2) == 0
		}
		now := start
		log := []flow.Event{{Seq: 1, At: now, Kind: flow.Opened, Open: &o}}
		s, err := flow.Next(flow.State{}, log[0])
		if err != nil {
			t.Fatal(seed, err)
		}
		step := func(e flow.Event) {
			e.Seq, e.At = s.Seq+1, now
			next, err := flow.Next(s, e)
			if err != nil {
				refused++
				if next.Seq != s.Seq || seed%50 == 0 && !reflect.DeepEqual(next, s) {
					t.Fatalf("seed %d: an illegal %s changed the state", seed, e.Kind)
				}
				return
			}
			accepted++
			if bad := sound(next) + grown(s, next); bad != "" {
				t.Fatalf("seed %d after %d events (%s): %s\n%+v", seed, e.Seq, e.Kind, bad, next)
			}
			s, log = next, append(log, e)
		}
		for range longest {
			if r.IntN(8) == 0 {
				now = now.Add(time.Duration(r.IntN(400)) * time.Second)
			}
			step(r.event(s))
		}
		for i := 0; !s.Phase.Final(); i++ {
			now = flow.WakeAt(s)
			step(flow.Event{Kind: flow.Ticked})
			if i > 100 {
				t.Fatalf("seed %d: the goal does not end: %+v", seed, s)
			}
		}
		ends[s.Phase]++
		if seed%50 == 0 {
			checkReplay(t, log, s)
		}
	}
	t.Logf("%d events accepted, %d refused, ends %v", accepted, refused, ends)
	if accepted < 5*sequences || refused < sequences || ends[flow.Concluded] < sequences/50 || ends[flow.Failed] < sequences/50 ||
		ends[flow.Canceled] < sequences/50 {
		t.Error("the sequences do not reach enough")
	}
}

// checkReplay compares a state with that of its log, after the log was stored as JSON.
func checkReplay(t *testing.T, log []flow.Event, s flow.State) {
	t.Helper()
	b, err := json.Marshal(log)
	if err != nil {
		t.Fatal(err)
	}
	var again []flow.Event
	if err := json.Unmarshal(b, &again); err != nil {
		t.Fatal(err)
	}
	got, err := flow.Replay(again)
	one, _ := json.Marshal(got)
	two, _ := json.Marshal(s)
	if err != nil || string(one) != string(two) {
		t.Fatalf("the log gives another state: %v\n%s\n%s", err, one, two)
	}
}
