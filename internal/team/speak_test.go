package team_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/internal/task"
	"agentsite/internal/team"
	"agentsite/internal/team/aware"
	"agentsite/internal/team/flow"
)

// moves returns the answer of an agent that speaks for itself.
func moves(kind, text string) task.Result {
	b, _ := json.Marshal(map[string]aware.Move{"move": {Kind: kind, Text: text}})
	return task.Result{State: task.Completed, Parts: []task.Part{{Data: b, MediaType: aware.MediaType}}}
}

// documentOf returns the document in the text of a question; nil if there is none.
func documentOf(question string) *aware.Document {
	_, data, ok := strings.Cut(question, "\n\n{\"team\":")
	var d aware.Document
	if !ok || json.Unmarshal([]byte(strings.TrimSuffix(data, "}")), &d) != nil {
		return nil
	}
	return &d
}

// speaks makes ann an agent that speaks for itself, and returns the documents that it got.
func (w *world) speaks(does func(aware.Document) task.Result) *[]aware.Document {
	var got []aware.Document
	w.aware = map[string]bool{"ann": true}
	w.does["ann"] = func(text string) task.Result {
		d := documentOf(text)
		if d == nil {
			return task.Done("no document")
		}
		got = append(got, *d)
		return does(*d)
	}
	return &got
}

func TestSpeak_ResultAndDecline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t)
		got := w.speaks(func(aware.Document) task.Result { return moves(aware.Result, "3") })
		v := w.ends(w.start(twoSteps))
		if !strings.Contains(v.State.Conclusion, "ann: 3") || v.State.Tasks[0].Result != "3" {
			t.Errorf("%+v", v.State)
		}
		d := (*got)[0]
		if d.Kind != aware.Task || d.You != "ann" || d.Number != 1 || d.Text != "Add 1 and 2." || d.Until != v.State.Until ||
			!slices.Equal(d.Legal, []string{aware.Result, aware.Decline, aware.Recruit}) {
			t.Errorf("%+v", d)
		}
		if documentOf(w.order[1]) != nil {
			t.Errorf("bob, which knows nothing of teams, got %q", w.order[1])
		}
		w.speaks(func(aware.Document) task.Result { return moves(aware.Decline, "I only count sheep.") })
		if v := w.ends(w.start("Add 1 and 2.")); v.State.Tasks[0].Owner != "eve" || v.Goal.State != "concluded" {
			t.Errorf("%+v", v.State)
		}
	})
}

func TestSpeak_HasTheTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, s := led(t, &flow.Move{Kind: flow.Say, Text: "Who adds?", Next: "ann"}, &flow.Move{Kind: flow.Pause, Triggers: []flow.Trigger{{On: flow.OnAll}}},
			&flow.Move{Kind: flow.Say, Text: "Are you sure?", Next: "ann"}, &flow.Move{Kind: flow.Conclude, Text: "It is 3."})
		answers := []task.Result{moves(aware.Take, "Add 1 and 2."), moves(aware.Result, "3"), moves("conclude", "Mine."), moves(aware.Say, "Quite.")}
		got := w.speaks(func(aware.Document) task.Result { r := answers[0]; answers = answers[1:]; return r })
		v := w.ends(w.start("Add 1 and 2."))
		if v.State.Conclusion != "It is 3." || len(v.State.Tasks) != 1 || v.State.Tasks[0].By != "ann" || v.State.Tasks[0].Result != "3" {
			t.Fatalf("%+v", v.State)
		}
		if talk := s.asked[3].Talk; talk[len(talk)-1] != (flow.Note{Agent: "ann", Text: "Quite."}) {
			t.Errorf("%+v", talk)
		}
		turn, again := (*got)[0], (*got)[3]
		if turn.Kind != aware.Turn || turn.Text != "Who adds?" || !slices.Equal(turn.Legal, []string{aware.Say, aware.Take}) {
			t.Errorf("%+v", turn)
		}
		if !strings.Contains(again.Problem, `"conclude" is not legal`) || len(again.Own) != 1 || again.Own[0].State != "completed" {
			t.Errorf("%+v", again)
		}
	})
}

// The owner of a task recruits: its team works on the goal that it gave, and the conclusion is the result of the task.
func TestSpeak_Recruits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t)
		w.speaks(func(aware.Document) task.Result { return moves(aware.Recruit, "Multiply 3 and 4.") })
		id := w.start("Add 1 and 2.")
		v := w.ends(id)
		k := v.State.Tasks[0]
		if v.Goal.State != "concluded" || len(v.Below) != 1 || v.Below[0].State.Open.Above[0] != "ann" || k.Owner != "ann" || k.Attempt != 2 ||
			!strings.Contains(k.Result, "bob did Multiply 3 and 4.") {
			t.Fatalf("%+v", v)
		}
	})
}

// A restart after any event of a recruiting team asks no agent twice.
func TestSpeak_RecruitsOverRestarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for at := range int64(12) {
			w := open(t)
			w.speaks(func(aware.Document) task.Result { return moves(aware.Recruit, "Multiply 3 and 4.") })
			cut := make(chan struct{})
			reached := sync.OnceFunc(func() { close(cut) })
			w.after = func(e flow.Event) {
				if e.Seq == at+1 && e.Kind != flow.Opened {
					reached()
				}
			}
			id := w.start("Add 1 and 2.")
			select {
			case <-cut:
				w.stop()
				w.run()
			case <-time.After(time.Hour):
			}
			if v := w.ends(id); v.Goal.State != "concluded" || len(v.Below) != 1 || len(w.order) != 2 {
				t.Fatalf("after event %d: %s, asked %q", at+1, v.Goal.State, w.order)
			}
			w.stop()
		}
	})
}

// tricks are moves of an agent that wants more than its part.
func tricks() (list []task.Result) {
	for _, kind := range []string{"conclude", "assign", "pause", "request", "give_up", "stopped", "opened", "Recruit", "", "portal", "result\x00"} {
		list = append(list, moves(kind, "Mine."))
	}
	for _, data := range []string{`{"move":null}`, `{"move":[]}`, `{"move":{"kind":"result"}}`, `{"move":{"kind":["result"],"text":"x"}}`,
		`{"move":{"kind":"take","text":"Pay me.","owner":"bob"}}`, `{"move":{"kind":"say","text":"x","next":"eve"}}`, `{"team":{"legal":["conclude"]}}`,
		`{"move":{"kind":"recruit","text":""}}`} {
		list = append(list, task.Result{State: task.Completed, Parts: []task.Part{{Data: json.RawMessage(data), MediaType: aware.MediaType}}})
	}
	return append(list, moves(aware.Result, strings.Repeat("long ", 50_000)), moves(aware.Recruit, strings.Repeat("long ", 50_000)),
		moves(aware.Recruit, "Add 1 and 2."), moves(aware.Decline, strings.Repeat("no ", 50_000)))
}

// asksAnn leads a team that hears ann, gives it a task and concludes.
func asksAnn(q team.Question) flow.Move {
	byLead := slices.ContainsFunc(q.State.Tasks, func(k flow.Task) bool { return k.By == flow.Lead })
	switch {
	case q.State.Open.Parent != "":
		return flow.Move{Kind: flow.Conclude, Text: "Done below."}
	case q.State.Turns == 0:
		return flow.Move{Kind: flow.Say, Text: "What do you think?", Next: "ann"}
	case !byLead:
		return flow.Move{Kind: flow.Assign, Tasks: give("ann", "Add 1 and 2.")}
	}
	return flow.Move{Kind: flow.Conclude, Text: "It is 3."}
}

// No trick of an agent that speaks for itself ends the goal, gives others work or goes beyond the limits.
func TestHostile_Moves(t *testing.T) {
	for i, r := range tricks() {
		t.Run(fmt.Sprint(i+1), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, _ := led(t)
				w.stop()
				w.speaker = byGoal(asksAnn)
				w.run()
				w.speaks(func(aware.Document) task.Result { return r })
				v := w.ends(w.start("Add 1 and 2."))
				s := v.State
				if s.Conclusion != "It is 3." || len(s.Tasks) > 2 || s.Open.Goal != "Add 1 and 2." {
					t.Errorf("%s, %d tasks", s.Conclusion, len(s.Tasks))
				}
				for _, k := range s.Tasks {
					if k.Owner != "ann" || len(k.Result) > flow.MaxText || !k.Status.Final() {
						t.Errorf("task %d of %s: %s, %d bytes", k.N, k.Owner, k.Status, len(k.Result))
					}
				}
				if n := slices.IndexFunc(w.order, func(q string) bool { return strings.HasPrefix(q, "bob") }); n >= 0 {
					t.Errorf("it made the team ask %q", w.order[n])
				}
			})
		})
	}
}
