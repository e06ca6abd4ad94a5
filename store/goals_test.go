package store_test

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"agentsite/internal/account"
	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/task"
	"agentsite/internal/team"
	"agentsite/internal/team/flow"
	"agentsite/internal/testing/storetest"
)

// goldenLog is the log of a goal with two parts of which one fails once, a question to the person, and a message.
func goldenLog() []flow.Event {
	at := clock.Now().Truncate(time.Millisecond)
	open := flow.Opening{Goal: "Add 1 and 2. Then multiply the result. “Ünïcode”", Recruit: flow.RecruitNetwork,
		Limits: flow.Limits{Members: 8, Turns: 30, Depth: 2, Tasks: 64, Attempts: 3, Searches: 6, Repairs: 2, Time: time.Hour,
			TurnTime: time.Minute, TaskTime: time.Minute, PersonTime: time.Minute, Tokens: 1 << 40, Money: 1 << 41}}
	move := func(turn int, m flow.Move) flow.Event {
		return flow.Event{Kind: flow.Moved, Agent: flow.Lead, Turn: turn, Move: &m}
	}
	list := []flow.Event{
		{Kind: flow.Opened, Open: &open},
		{Kind: flow.Found, Parts: []flow.Part{{N: 1, Text: "Add 1 and 2.", Candidates: []flow.Candidate{{Handle: "ann", Why: "fits"}, {Handle: "eve"}}},
			{N: 2, Text: "Multiply the result.", Needs: []int{1}, Candidates: []flow.Candidate{{Handle: "bob@b.example", Live: "alive"}}}}},
		{Kind: flow.Joined, Agent: "ann"}, {Kind: flow.Joined, Agent: "bob@b.example"},
		move(1, flow.Move{Kind: flow.Assign, Rules: true, Tasks: []flow.Assignment{{Part: 1, Owner: "ann", Text: "Add 1 and 2."},
			{Part: 2, Owner: "bob@b.example", Text: "Multiply the result.", Needs: []int{-1}}}}),
		{Kind: flow.Started, Task: 1, Attempt: 1, Ref: &flow.Ref{TaskID: "t1", ConversationID: "c1", Seq: 1}},
		{Kind: flow.Waits, Task: 1, Attempt: 1, Text: "May I?"},
		{Kind: flow.Answered, Task: 1, Agent: "ada", Text: "yes"},
		{Kind: flow.Ended, Task: 1, Attempt: 1, Status: flow.Completed, Text: "3\x01\n\"", Costs: []flow.Cost{{Tokens: 7, Money: 2}}},
		{Kind: flow.Started, Task: 2, Attempt: 1, Ref: &flow.Ref{TaskID: "t2"}},
		{Kind: flow.Ticked}, {Kind: flow.Spent, Cost: &flow.Cost{Talk: true, Tokens: 5, Money: 1}},
		{Kind: flow.Ended, Task: 2, Attempt: 1, Status: flow.Broken, Text: "Down."},
		move(2, flow.Move{Kind: flow.Conclude, Text: "3, and the product is missing."}),
		{Kind: flow.Said, Agent: "ada", Text: "Try again."},
		move(3, flow.Move{Kind: flow.Conclude, Text: "It is 3."}),
	}
	for i := range list {
		list[i].Seq, list[i].At = int64(i+1), at.Add(time.Duration(i)*time.Second)
	}
	return list
}

func goalOf(t *testing.T, owner string, log []flow.Event) team.Goal {
	t.Helper()
	state, err := flow.Replay(log[:1])
	if err != nil {
		t.Fatal(err)
	}
	return team.Goal{ID: ident.NewID(), OwnerID: owner, OwnerName: "ada", Text: log[0].Open.Goal, State: state.Phase.Public(),
		Open: true, Seq: 1, CreatedAt: log[0].At, UpdatedAt: log[0].At}
}

// After each event the stored log gives the state that was computed without the store, and the row has its fields.
func TestGoals_TheLogRebuildsTheState(t *testing.T) {
	t.Parallel()
	db := storetest.New(t).Teams
	ctx, log := t.Context(), goldenLog()
	g, repeat, err := db.CreateGoal(ctx, goalOf(t, "o1", log), log[0], 3)
	if err != nil || repeat {
		t.Fatal(repeat, err)
	}
	for n := 2; n <= len(log); n++ {
		want, err := flow.Replay(log[:n])
		if err != nil {
			t.Fatal(err)
		}
		g.State, g.Reason, g.Seq, g.UpdatedAt = want.Phase.Public(), want.Reason, want.Seq, want.Now
		if err := db.AppendEvent(ctx, g, log[n-1]); err != nil {
			t.Fatal(err)
		}
		stored, err := db.EventsOf(ctx, g.ID, 0, 200)
		if err != nil || len(stored) != n {
			t.Fatalf("%d events, %v", len(stored), err)
		}
		got, err := flow.Replay(stored)
		if err != nil || inJSON(t, got) != inJSON(t, want) || !reflect.DeepEqual(flow.Effects(got), flow.Effects(want)) ||
			!flow.WakeAt(got).Equal(flow.WakeAt(want)) {
			t.Errorf("after event %d (%s): %v\n%s\nwant\n%s", n, log[n-1].Kind, err, inJSON(t, got), inJSON(t, want))
		}
		if row, err := db.GoalByID(ctx, g.ID); err != nil || inJSON(t, row) != inJSON(t, g) {
			t.Errorf("after event %d the row is\n%+v\nwant\n%+v, %v", n, row, g, err)
		}
	}
	page, err := db.EventsOf(ctx, g.ID, 3, 2)
	if err != nil || len(page) != 2 || page[0].Seq != 4 {
		t.Errorf("%+v, %v", page, err)
	}
}

// inJSON compares values with times that have other locations in memory.
func inJSON(t *testing.T, v any) string {
	t.Helper()
	if g, ok := v.(team.Goal); ok {
		g.CreatedAt, g.UpdatedAt = g.CreatedAt.UTC(), g.UpdatedAt.UTC()
		v = g
	}
	if s, ok := v.(flow.State); ok {
		s.Now, s.Begun, s.Until = s.Now.UTC(), s.Begun.UTC(), s.Until.UTC()
		v = s
	}
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Two processes cannot both append the next event, and nothing is appended to a missing goal.
func TestGoals_OneEventAfterTheOther(t *testing.T) {
	t.Parallel()
	db := storetest.New(t).Teams
	ctx, log := t.Context(), goldenLog()
	g, _, err := db.CreateGoal(ctx, goalOf(t, "o1", log), log[0], 3)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []fault.Kind{"", fault.Conflict} {
		if err := db.AppendEvent(ctx, g, log[1]); (err != nil) != (want != "") || err != nil && !fault.Is(err, want) {
			t.Errorf("append %d: %v", i, err)
		}
	}
	if err := db.AppendEvent(ctx, g, log[3]); !fault.Is(err, fault.Conflict) {
		t.Errorf("an event is left out: %v", err)
	}
	g.ID = ident.NewID()
	if err := db.AppendEvent(ctx, g, log[1]); !fault.Is(err, fault.NotFound) {
		t.Errorf("%v", err)
	}
	if _, err := db.GoalByID(ctx, g.ID); !fault.Is(err, fault.NotFound) {
		t.Errorf("%v", err)
	}
}

func TestGoals_KeysBoundsAndLists(t *testing.T) {
	t.Parallel()
	db := storetest.New(t).Teams
	ctx, log := t.Context(), goldenLog()
	create := func(owner, key, parent string) (team.Goal, bool, error) {
		g := goalOf(t, owner, log)
		g.Key, g.ParentID = key, parent
		if parent != "" {
			g.ParentTask = 1
		}
		return db.CreateGoal(ctx, g, log[0], 2)
	}
	must := func(owner, key, parent string) team.Goal {
		t.Helper()
		g, repeat, err := create(owner, key, parent)
		if err != nil || repeat {
			t.Fatal(repeat, err)
		}
		return g
	}
	first := must("o1", "k", "")
	if again, repeat, err := create("o1", "k", ""); err != nil || !repeat || again.ID != first.ID {
		t.Errorf("the same key: %+v, %v, %v", again, repeat, err)
	}
	theirs := must("o2", "k", "") // a key of another owner is another one
	second := must("o1", "", "")
	if _, _, err := create("o1", "", ""); !fault.Is(err, fault.RateLimited) {
		t.Errorf("beyond the bound: %v", err)
	}
	below := must("o1", "team/x/1/1", first.ID) // teams below do not count
	ids := func(list []team.Goal, err error) (out []string) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range list {
			out = append(out, g.ID)
		}
		return out
	}
	if got := ids(db.GoalsOf(ctx, "o1", "", 10)); !slices.Equal(got, []string{second.ID, first.ID}) {
		t.Errorf("of the owner %v", got)
	}
	if got := ids(db.GoalsOf(ctx, "o1", second.ID, 10)); !slices.Equal(got, []string{first.ID}) {
		t.Errorf("the second page %v", got)
	}
	if got := ids(db.GoalsBelow(ctx, first.ID)); !slices.Equal(got, []string{below.ID}) {
		t.Errorf("below %v", got)
	}
	if got := ids(db.GoalsBelow(ctx, "")); len(got) > 0 {
		t.Errorf("below none %v", got)
	}
	if err := db.SettleGoal(ctx, second.ID); err != nil {
		t.Fatal(err)
	}
	if got := ids(db.OpenGoals(ctx, "o1")); !slices.Equal(got, []string{first.ID, below.ID}) {
		t.Errorf("open %v", got)
	}
	if got := ids(db.OpenGoals(ctx, "")); len(got) != 3 || !slices.Contains(got, theirs.ID) {
		t.Errorf("open of all %v", got)
	}
	must("o1", "", "")
}

// The work at other portals is the tasks of an account's own goals that have not ended, by portal.
func TestGoals_WorkByPortal(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	ada, bob := storetest.Account(t, db, "ada"), storetest.Account(t, db, "bob")
	near := storetest.Agent(t, db, "near", ada)
	far := func(id, portal string) hub.Agent {
		a := hub.Agent{ID: id, Kind: hub.Peer, Name: id, Portal: portal + ".example", PortalID: "p1" + portal, NetworkID: "p1" + portal + "/" + id}
		if err := db.KeepElsewhere(t.Context(), a); err != nil {
			t.Fatal(err)
		}
		return a
	}
	one, two, other := far("one", "b"), far("two", "b"), far("other", "c")
	ask := func(who account.Account, face string, agents ...hub.Agent) []task.Task {
		c := storetest.Conversation(t, db, who, near)
		p := storetest.Post(c, who, ident.NewID(), "Help.", agents...)
		for i := range p.Ask {
			p.Ask[i].Face = face
		}
		done, err := db.Append(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		return done.Tasks
	}
	works := func(who account.Account, want map[string]int) {
		t.Helper()
		if got, err := db.Teams.WorkByPortal(t.Context(), who.ID); err != nil || !maps.Equal(got, want) {
			t.Errorf("%s: %v %v, want %v", who.Name, got, err, want)
		}
	}
	works(ada, map[string]int{})
	tasks := ask(ada, "goal", one, two, other, near)
	ask(ada, "page", one) // asked by hand, for no goal
	ask(bob, "goal", other)
	works(ada, map[string]int{"p1b": 2, "p1c": 1})
	works(bob, map[string]int{"p1c": 1})
	for _, k := range tasks {
		if k.AgentID == other.ID || k.AgentID == one.ID {
			storetest.Finish(t, db, k, task.Completed, "Done.")
		}
	}
	works(ada, map[string]int{"p1b": 1})
}
