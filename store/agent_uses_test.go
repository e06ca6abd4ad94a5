package store_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"agentsite/internal/account"
	"agentsite/internal/chat"
	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/task"
	"agentsite/internal/testing/storetest"
)

// Every call counts once, on the day it was made, and so does its end.
func TestUses_CountOnce(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	ada := storetest.Account(t, db, "ada")
	helper, other := storetest.Agent(t, db, "helper", ada), storetest.Agent(t, db, "other", ada)
	room := storetest.Conversation(t, db, ada, helper, other)
	today := time.Date(2026, 5, 3, 0, 0, 0, 0, time.UTC)
	ask := func(at time.Time, change func(*chat.Post)) task.Task {
		t.Helper()
		p := storetest.Post(room, ada, ident.NewID(), "question", helper)
		p.MustBeMember = false
		p.Ask[0].CreatedAt, p.Ask[0].UpdatedAt = at, at
		if change != nil {
			change(&p)
		}
		done, err := db.Append(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := db.Append(t.Context(), p); err != nil || !again.Repeat { // counts nothing
			t.Fatal(err)
		}
		return done.Tasks[0]
	}
	end := func(k task.Task, state task.State, took time.Duration) {
		t.Helper()
		k, m := storetest.Answer(k, state, "answer")
		k.UpdatedAt = k.CreatedAt.Add(took)
		if _, err := db.Finish(t.Context(), chat.Ended{Task: k, Message: m}); err != nil {
			t.Fatal(err)
		}
		if !state.Terminal() {
			return
		}
		if _, err := db.Finish(t.Context(), chat.Ended{Task: k, Message: m}); !fault.Is(err, fault.Conflict) {
			t.Fatal(err)
		}
	}
	yesterday := ask(today.Add(-time.Millisecond), nil)
	end(yesterday, task.Completed, 2*time.Second) // ends today
	end(ask(today, nil), task.Completed, time.Second)
	end(ask(today.Add(time.Hour), nil), task.Failed, 10*time.Millisecond)
	end(ask(today.Add(2*time.Hour), func(p *chat.Post) { p.Ask[0].CallerKind, p.Ask[0].CallerID = "guest", "g" }), task.Rejected, 0)
	end(ask(today.Add(3*time.Hour), nil), task.Canceled, -time.Second) // a clock that was set back
	ask(today.Add(4*time.Hour), func(p *chat.Post) { p.Ask[0].AgentID = other.ID })
	asks := ask(today.Add(5*time.Hour), nil)
	end(asks, task.InputRequired, time.Minute)
	if k := ask(today.Add(6*time.Hour), nil); k.ID != asks.ID { // the answer to its question
		t.Fatalf("%+v", k)
	}
	want := []hub.Day{
		{Day: today.Add(-24 * time.Hour), Calls: 1, Completed: 1, Took: 2 * time.Second},
		{Day: today, Calls: 5, Completed: 1, Failed: 2, Canceled: 1, Guests: 1, Took: 1010 * time.Millisecond},
	}
	days := func(since time.Time, want ...hub.Day) {
		t.Helper()
		if got, err := db.Days(t.Context(), helper.ID, since); err != nil || !slices.Equal(got, want) {
			t.Errorf("since %v\n%+v\nwant\n%+v %v", since, got, want, err)
		}
	}
	days(time.Time{}, want...)
	days(today, want[1])
	days(today.Add(time.Hour), want[1])
	days(today.Add(24 * time.Hour))
	for then, want := range map[time.Time]int{today.Add(-25 * time.Hour): 6, today.Add(-time.Millisecond): 6, today: 5, today.Add(time.Millisecond): 4, today.Add(3 * time.Hour): 2, today.Add(25 * time.Hour): 0, {}: 6} {
		if n, err := db.CallsSince(t.Context(), helper.ID, then); err != nil || n != want {
			t.Errorf("since %v: %d calls, want %d, %v", then, n, want, err)
		}
	}
	// What was counted stays, whatever becomes of the conversation.
	if err := db.DeleteRoom(t.Context(), room.ID); err != nil {
		t.Fatal(err)
	}
	days(time.Time{}, want...)
	storetest.Sound(t, db)
}

func TestUses_ForgetsOldDays(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	ada := storetest.Account(t, db, "ada")
	helper := storetest.Agent(t, db, "helper", ada)
	room := storetest.Conversation(t, db, ada, helper)
	start := time.Date(2026, 5, 3, 12, 0, 0, 0, time.UTC)
	var first task.Task
	for i, day := range []int{0, 1, 801} {
		p := storetest.Post(room, ada, ident.NewID(), "question", helper)
		p.Ask[0].CreatedAt = start.AddDate(0, 0, day)
		done, err := db.Append(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = done.Tasks[0]
		}
	}
	storetest.Finish(t, db, first, task.Completed, "late") // of a day that is forgotten
	list, err := db.Days(t.Context(), helper.ID, time.Time{})
	if err != nil || len(list) != 2 || !list[0].Day.Equal(start.AddDate(0, 0, 1).Truncate(24*time.Hour)) {
		t.Errorf("%+v %v", list, err)
	}
	storetest.Sound(t, db)
}

func TestCalls(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	ada, bob, eve := storetest.Account(t, db, "ada"), storetest.Account(t, db, "bob"), storetest.Account(t, db, "eve")
	helper := storetest.Agent(t, db, "helper", ada)
	if err := db.AddCoOwner(t.Context(), helper.ID, bob.ID); err != nil {
		t.Fatal(err)
	}
	room := storetest.Conversation(t, db, ada, helper)
	start := time.Date(2026, 5, 3, 12, 0, 0, 0, time.UTC)
	for i, c := range []struct{ kind, id string }{{"person", ada.ID}, {"person", bob.ID}, {"person", eve.ID}, {"guest", "g"}, {"agent", ada.ID}, {"operator", ada.ID}} {
		p := storetest.Post(room, ada, ident.NewID(), "question", helper)
		k := &p.Ask[0]
		k.CallerKind, k.CallerID, k.CreatedAt, k.Face = c.kind, c.id, start.Add(time.Duration(i)*time.Second), "api"
		done, err := db.Append(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		if i == 5 {
			continue
		}
		end, m := storetest.Answer(done.Tasks[0], task.Failed, "sorry")
		end.Reason, end.UpdatedAt = "It said: secret.", k.CreatedAt.Add(3*time.Second)
		if _, err := db.Finish(t.Context(), chat.Ended{Task: end, Message: m}); err != nil {
			t.Fatal(err)
		}
	}
	list, err := db.Calls(t.Context(), helper.ID, ada.ID, 10)
	if err != nil || len(list) != 6 {
		t.Fatal(list, err)
	}
	slices.Reverse(list)
	for i, own := range []bool{true, false, false, false, false, true} {
		c := list[i]
		if c.Own != own || c.Face != "api" || !c.At.Equal(start.Add(time.Duration(i)*time.Second)) || c.TaskID == "" {
			t.Errorf("%d: %+v", i, c)
		}
		wantReason, wantState, wantTook := "", "failed", 3*time.Second
		if own {
			wantReason = "It said: secret."
		}
		if i == 5 {
			wantReason, wantState, wantTook = "", "submitted", 0
		}
		if c.Reason != wantReason || c.State != wantState || c.Took != wantTook {
			t.Errorf("%d: %+v", i, c)
		}
	}
	if list, err := db.Calls(t.Context(), helper.ID, ada.ID, 2); err != nil || len(list) != 2 || list[0].State != "submitted" {
		t.Error(list, err)
	}
}

func TestTraces(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	ada := storetest.Account(t, db, "ada")
	helper, other := storetest.Agent(t, db, "helper", ada), storetest.Agent(t, db, "other", ada)
	room := storetest.Conversation(t, db, ada, helper, other)
	call := func(a hub.Agent) string { return storetest.Say(t, db, room, ada, "question", a).Tasks[0].ID }
	start := clock.Now()
	add := func(a hub.Agent, id string, list ...hub.Trace) {
		t.Helper()
		if err := db.AddTraces(t.Context(), a.ID, id, list); err != nil {
			t.Fatal(err)
		}
	}
	read := func(a hub.Agent, id string) []hub.Trace {
		t.Helper()
		list, err := db.Traces(t.Context(), a.ID, id, ada.ID)
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	first := call(helper)
	bob := storetest.Account(t, db, "bob")
	defer func() {
		if list, err := db.Traces(t.Context(), helper.ID, first, bob.ID); err != nil || len(list) != 0 {
			t.Errorf("somebody else reads %v, %v", list, err)
		}
	}()
	sent, got := hub.Trace{At: start, Sent: true, Head: "POST /a2a", Body: `{"x":1}`, Size: 7}, hub.Trace{At: start, Head: "200", Body: "hi", Size: 1 << 40}
	add(helper, first, sent, got)
	add(helper, first, sent) // goes on after a question
	if list := read(helper, first); !slices.Equal(list, []hub.Trace{sent, got, sent}) {
		t.Errorf("%+v", list)
	}
	if list := read(other, first); len(list) != 0 {
		t.Errorf("%+v", list)
	}
	if err := db.AddTraces(t.Context(), other.ID, first, []hub.Trace{sent}); !fault.Is(err, fault.NotFound) {
		t.Errorf("traces of another agent's call: %v", err)
	}
	// More of a call than is kept, and more in one than fits.
	var lots []hub.Trace
	for i := range 3 * task.MaxTraces / 2 {
		lots = append(lots, hub.Trace{At: start, Head: fmt.Sprint(i)})
	}
	lots[len(lots)-1].Body = strings.Repeat("ä", task.MaxTraced) + "\xff"
	add(helper, first, lots...)
	list := read(helper, first)
	if len(list) != task.MaxTraces || list[0].Head != fmt.Sprint(len(lots)-task.MaxTraces) || len(list[len(list)-1].Body) != task.MaxTraced {
		t.Errorf("%d traces from %q", len(list), list[0].Head)
	}
	// Of all but the last calls they are forgotten, of other agents' not.
	apart := call(other)
	add(other, apart, sent)
	var ids []string
	for i := range 20 {
		ids = append(ids, call(helper))
		add(helper, ids[i], hub.Trace{At: start.Add(time.Duration(i+1) * time.Second), Head: "later"})
	}
	if len(read(helper, first)) != 0 || len(read(helper, ids[0])) != 1 || len(read(other, apart)) != 1 {
		t.Error("the wrong ones were forgotten")
	}
	add(helper, first, hub.Trace{Head: "an old clock"}) // the newest whatever it says
	if len(read(helper, first)) != 1 || len(read(helper, ids[0])) != 0 || len(read(helper, ids[1])) != 1 {
		t.Error("the wrong ones were forgotten")
	}
	// They hold what was said in the conversation.
	if err := db.DeleteRoom(t.Context(), room.ID); err != nil {
		t.Fatal(err)
	}
	if len(read(helper, ids[5])) != 0 || len(read(other, apart)) != 0 {
		t.Error("the traces of a deleted conversation are there")
	}
	if err := db.AddTraces(t.Context(), helper.ID, first, []hub.Trace{sent}); !fault.Is(err, fault.NotFound) {
		t.Error(err)
	}
	storetest.Sound(t, db)
}

// A person counts once for an agent however often it asks. Its owner and guests do not count, nor does what is older
// than the time.
func TestCountUsers_CountsPeopleOnce(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	ada, bob, cy := storetest.Account(t, db, "ada"), storetest.Account(t, db, "bob"), storetest.Account(t, db, "cy")
	helper, other := storetest.Agent(t, db, "helper", ada), storetest.Agent(t, db, "other", ada)
	start := time.Date(2026, 5, 3, 0, 0, 0, 0, time.UTC)
	ask := func(by account.Account, agent hub.Agent, at time.Time, change func(*task.Task)) {
		t.Helper()
		p := storetest.Post(storetest.Conversation(t, db, by, agent), by, ident.NewID(), "question", agent)
		p.Ask[0].CreatedAt, p.Ask[0].UpdatedAt = at, at
		if change != nil {
			change(&p.Ask[0])
		}
		if _, err := db.Append(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 5 { // a loop counts once
		ask(bob, helper, start.Add(time.Duration(i)*time.Hour), nil)
	}
	ask(cy, helper, start.Add(time.Hour), nil)
	ask(cy, other, start.Add(time.Hour), nil)
	ask(ada, helper, start.Add(time.Hour), nil) // its owner
	ask(bob, other, start.Add(-time.Hour), nil) // too old
	ask(bob, other, start.Add(time.Hour), func(k *task.Task) { k.CallerKind, k.CallerID = "guest", "g" })
	ask(bob, other, start.Add(time.Hour), func(k *task.Task) { k.CallerKind, k.CallerID = "agent", helper.ID })
	for limit, want := range map[int]map[string]int{10: {helper.ID: 2, other.ID: 1}, 1: {helper.ID: 2}} {
		if got, err := db.CountUsers(t.Context(), start, limit); err != nil || !maps.Equal(got, want) {
			t.Errorf("limit %d: %v %v, want %v", limit, got, err, want)
		}
	}
	if got, err := db.CountUsers(t.Context(), start.Add(2*time.Hour), 10); err != nil || !maps.Equal(got, map[string]int{helper.ID: 1}) {
		t.Errorf("later: %v %v", got, err)
	}
}
