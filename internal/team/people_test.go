package team_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/internal/fault"
	"agentsite/internal/team"
	"agentsite/internal/team/flow"
)

const askBen = "Ask ben which colour he likes. Add 1 and 2."

// withPeople has a world with people that answer after some time.
func withPeople(t *testing.T, people map[string]time.Duration) *world {
	w := open(t)
	w.people = people
	return w
}

func invites(names ...string) func(*team.Draft) {
	return func(d *team.Draft) { d.Members, d.PersonTime = names, 10*time.Minute }
}

func TestPeople_AnswerInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := withPeople(t, map[string]time.Duration{"ben": 9 * time.Minute})
		began := time.Now()
		id := w.start(askBen, invites("ben"))
		synctest.Wait()
		if k := w.read(id).State.Tasks[0]; k.Owner != "ben" || k.Status != flow.Working || k.Ref.ConversationID == "" {
			t.Fatalf("%+v", k)
		}
		w.stop()
		w.run() // it waits for the same answer after a restart
		v := w.ends(id)
		if v.Goal.State != "concluded" || !strings.Contains(v.State.Conclusion, "ben: ben says blue") ||
			!strings.Contains(v.State.Conclusion, "ann did Add 1") || time.Since(began) != 9*time.Minute {
			t.Errorf("%+v", v.State)
		}
		if n := strings.Count(strings.Join(w.order, "\n"), "ben: Ask ben which colour he likes."); n != 1 {
			t.Errorf("ben was asked %d times: %q", n, w.order)
		}
		if !strings.Contains(w.order[0]+w.order[1], "Answer here within 10 minutes") {
			t.Errorf("%q", w.order)
		}
	})
}

func TestPeople_ALateOneIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := withPeople(t, map[string]time.Duration{"ben": time.Hour})
		began := time.Now()
		v := w.ends(w.start(askBen, invites("ben")))
		if v.Goal.State != "concluded" || time.Since(began) != 10*time.Minute ||
			!strings.Contains(v.State.Conclusion, "Missing:\n- Ask ben which colour he likes: ben did not answer within 10m.") ||
			!strings.Contains(v.State.Conclusion, "ann did Add 1") {
			t.Errorf("after %s: %+v", time.Since(began), v.State)
		}
		if last := w.order[len(w.order)-1]; !strings.HasPrefix(last, "ben: The team went on without an answer") {
			t.Errorf("%q", w.order)
		}
		time.Sleep(2 * time.Hour) // the late answer changes nothing
		if again := w.read(v.ID); again.Seq != v.Seq {
			t.Errorf("%q", w.transcript(v.ID))
		}
	})
}

func TestPeople_OneWhoCannotBeAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := withPeople(t, map[string]time.Duration{"ben": -1})
		v := w.ends(w.start(askBen, invites("ben")))
		if v.Goal.State != "concluded" || !strings.Contains(v.State.Conclusion, "ben cannot be invited") {
			t.Errorf("%+v", v.State)
		}
	})
}

// The person that gave the goal is a member as well, and is asked on the page of the goal.
func TestPeople_TheOwnerTakesPart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := withPeople(t, nil)
		id := w.start("Ask ada for a number. Then add 2.", invites("ada"))
		synctest.Wait()
		if k := w.read(id).State.Tasks[0]; k.Owner != "ada" || k.Status != flow.Input || k.Question != "Ask ada for a number." {
			t.Fatalf("%+v", k)
		}
		if _, err := w.Approve(t.Context(), ada, id, 1, "40"); err != nil {
			t.Fatal(err)
		}
		v := w.ends(id)
		if v.State.Tasks[0].Result != "40" || v.State.Tasks[1].Status != flow.Completed ||
			!slices.ContainsFunc(w.order, func(s string) bool { return strings.Contains(s, "[ada]\n40") }) {
			t.Errorf("%+v %q", v.State.Tasks, w.order)
		}
		began := time.Now()
		v = w.ends(w.start("Ask ada for a number. Add 1 and 2.", invites("ada")))
		if time.Since(began) != 10*time.Minute || !strings.Contains(v.State.Conclusion, "ada did not answer within 10m.") {
			t.Errorf("%+v", v.State)
		}
	})
}

// A model may give a person the turn; if nothing is said in time, the team goes on.
func TestPeople_HaveTheTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, script := led(t, &flow.Move{Kind: flow.Say, Text: "Which one?", Next: "ben"},
			&flow.Move{Kind: flow.Say, Text: "And which size?", Next: "eli"},
			&flow.Move{Kind: flow.Assign, Tasks: []flow.Assignment{{Owner: "ben", Text: "x", Team: true}}},
			&flow.Move{Kind: flow.Conclude, Text: "Blue."})
		w.people = map[string]time.Duration{"ben": time.Minute, "eli": time.Hour}
		began := time.Now()
		v := w.ends(w.start("Choose.", invites("ben", "eli")))
		if v.Goal.State != "concluded" || time.Since(began) != 11*time.Minute {
			t.Errorf("%s %+v %q", time.Since(began), v.State, w.transcript(v.ID))
		}
		if said := strings.Join(w.transcript(v.ID), "\n"); !strings.Contains(said, "ben says blue") ||
			!strings.Contains(said, "ben is a person, who forms no team") {
			t.Error(said)
		}
		if len(script.asked) != 4 {
			t.Errorf("the model was asked %d times", len(script.asked))
		}
		time.Sleep(time.Hour)
	})
}

func TestPeople_Limits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t)
		for _, d := range []time.Duration{time.Millisecond, -time.Second, 25 * time.Hour} {
			if _, _, err := w.Start(t.Context(), ada, team.Draft{Goal: "Add.", PersonTime: d}); !fault.Is(err, fault.Invalid) {
				t.Error(d, err)
			}
		}
	})
}
