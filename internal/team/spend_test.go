package team_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/task"
	"agentsite/internal/team"
	"agentsite/internal/team/flow"
)

// spending lets agents spend per answer.
func (w *world) spending(cost map[string]flow.Cost) {
	w.agents.spend = func(agent, id string) {
		if c, ok := cost[agent]; ok {
			err := w.current.Load().Spend(w.t.Context(), id, c.Tokens, c.Money)
			if err != nil && !fault.Is(err, fault.Unavailable) { // the service stops at the end of a test
				w.t.Error(err)
			}
		}
	}
}

func TestSpend_SumsByTaskAndKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := led(t, &flow.Move{Kind: flow.Assign, Tasks: []flow.Assignment{{Owner: "ann", Text: "Add 1 and 2."},
			{Owner: "bob", Text: "Multiply 2 and 3."}}}, &flow.Move{Kind: flow.Say, Text: "Is 3 right?", Next: "ann"},
			&flow.Move{Kind: flow.Conclude, Text: "It is 3."})
		w.spending(map[string]flow.Cost{"ann": {Tokens: 7, Money: 3}, "bob": {Tokens: 100, Money: 40}})
		v := w.ends(w.start("Add 1 and 2. Multiply 2 and 3."))
		// The lead was asked three times, at 10 tokens each, and ann once in the talk.
		s := v.State
		if s.Talk.Tokens != 3*10+7 || s.Talk.Money != 3*3+3 || s.Work.Tokens != 107 || s.Work.Money != 43 {
			t.Errorf("talk %+v, work %+v", s.Talk, s.Work)
		}
		if s.Tasks[0].Cost != (flow.Cost{Tokens: 7, Money: 3}) || s.Tasks[1].Cost != (flow.Cost{Tokens: 100, Money: 40}) {
			t.Errorf("%+v", s.Tasks)
		}
		if err := w.Spend(t.Context(), "another task", 1, 1); err != nil {
			t.Error(err)
		}
		if again := w.read(v.ID); again.Seq != v.Seq {
			t.Error("a task of no goal has changed one")
		}
	})
}

func TestExperience_IsThatOfEndedOwnGoals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := led(t, &flow.Move{Kind: flow.Assign, Tasks: []flow.Assignment{{Owner: "ann", Text: "Add 1 and 2."}}},
			&flow.Move{Kind: flow.Conclude, Text: "It is 3."})
		if x, err := w.Experience(t.Context(), ada); err != nil || x.Goals != 0 || !x.ByModel {
			t.Errorf("before any goal: %+v, %v", x, err)
		}
		w.spending(map[string]flow.Cost{"ann": {Tokens: 7, Money: 3}})
		w.ends(w.start("Add 1 and 2."))
		x, err := w.Experience(t.Context(), ada)
		if want := (flow.Cost{Tokens: 27, Money: 9}); err != nil || x.Goals != 1 || x.Middle != want || x.Most != want {
			t.Errorf("%+v, %v", x, err)
		}
		if _, err := w.Experience(t.Context(), ident.Actor{}); !fault.Is(err, fault.Unauthenticated) {
			t.Errorf("a guest: %v", err)
		}
	})
}

// The costs of a team below count in the goal above at once, and once.
func TestSpend_CountsOnceOverTheTree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := led(t)
		w.stop()
		w.speaker = byGoal(nested)
		w.run()
		w.spending(map[string]flow.Cost{"bob": {Tokens: 100, Money: 40}})
		w.does["bob"] = func(string) task.Result { time.Sleep(time.Minute); return task.Done("6") }
		id := w.start("Add 1 and 2. Multiply 3.")
		time.Sleep(time.Second)
		if v := w.read(id); v.State.Talk.Money != 4 || v.State.Tasks[0].Cost.Money != 2 {
			t.Errorf("meanwhile %+v", v.State)
		}
		w.stop()
		w.run()
		v := w.ends(id)
		if v.State.Talk.Money != 8 || v.State.Talk.Tokens != 40 || v.State.Work.Money != 40 || v.State.Work.Tokens != 100 ||
			v.State.Tasks[0].Cost != (flow.Cost{Tokens: 120, Money: 44}) {
			t.Errorf("%+v %+v %+v", v.State.Talk, v.State.Work, v.State.Tasks[0])
		}
	})
}

// The budget of a goal ends it and the teams below it, whoever spends.
func TestSpend_TheBudgetHoldsOverTheTree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := led(t)
		w.stop()
		w.speaker = byGoal(nested)
		w.run()
		w.spending(map[string]flow.Cost{"bob": {Tokens: 500, Money: 90}})
		v := w.ends(w.start("Add 1 and 2. Multiply 3.", func(d *team.Draft) { d.Money = 90 }))
		if !strings.HasPrefix(v.Reason, flow.NoBudget) || v.Below[0].State.Phase != flow.Failed && v.Below[0].State.Phase != flow.Canceled {
			t.Errorf("%+v, below %+v", v.Goal, v.Below[0].Goal)
		}
		if v.State.Work.Money != 90 {
			t.Errorf("%+v", v.State.Work)
		}
	})
}

// Only the owner of goals sees at which portals agents work for them.
func TestWorkByPortal_IsThatOfTheOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := led(t)
		w.memory.abroad = map[string]int{"p1": 2}
		if got, err := w.Service.WorkByPortal(t.Context(), ada); err != nil || got["p1"] != 2 {
			t.Errorf("%v, %v", got, err)
		}
		if _, err := w.Service.WorkByPortal(t.Context(), ident.Actor{}); !fault.Is(err, fault.Unauthenticated) {
			t.Errorf("a guest: %v", err)
		}
	})
}
