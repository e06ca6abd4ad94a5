package chat_test

import (
	"strings"
	"testing"
	"time"

	"agentsite/internal/chat"
	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/task"
	"agentsite/internal/testing/storetest"
)

func (w *world) visitor(portal, mark string) ident.Actor {
	return ident.PortalActor(portal, portal+".example", mark, "ada")
}

func ask(agent, text string) chat.Ask {
	return chat.Ask{Agent: agent, ClientID: ident.NewID(), Parts: []task.Part{task.TextPart(text)}, Face: "a2a"}
}

func TestAsk_SomebodyOfAnotherPortalIsTheSameForEver(t *testing.T) {
	t.Parallel()
	w := open(t)
	ctx := t.Context()
	ada := w.visitor("p1a", "ada")
	done, err := w.Ask(ctx, ada, ask("calc", "1+1"))
	if err != nil {
		t.Fatal(err)
	}
	if done.Task.CallerKind != "portal" || done.Task.CallerID != ada.ID || done.Task.CallerHandle != "ada@p1a.example" {
		t.Errorf("%+v", done.Task)
	}
	w.answer(done.Task, "2")
	again := w.visitor("p1a", "ada") // of another request
	list, _, err := w.Messages(ctx, again, done.ConversationID, chat.Span{Limit: 10})
	if err != nil || len(list) != 2 || list[0].Sender != (chat.Sender{Kind: "guest", ID: ada.ID, Handle: "ada@p1a.example"}) {
		t.Fatalf("%+v %v", list, err)
	}
	next := ask("calc", "and more")
	next.Context = done.ConversationID
	if _, err := w.Ask(ctx, again, next); err != nil {
		t.Error(err)
	}
	guestOfThatID := ident.Actor{Kind: ident.Guest, ID: ada.ID, Addr: "192.0.2.1"}
	personOfThatID := ident.Actor{Kind: ident.Person, ID: ada.ID, Name: "x"}
	for what, other := range map[string]ident.Actor{"another of that portal": w.visitor("p1a", "eve"), "another portal": w.visitor("p1b", "ada"), "the portal itself": w.visitor("p1a", ""),
		"the owner of the agent": w.ada, "a guest": guestOfThatID, "a person": personOfThatID} {
		if _, err := w.Task(ctx, other, done.Task.ID); !fault.Is(err, fault.NotFound) {
			t.Errorf("%s reads the task: %v", what, err)
		}
		if err := w.StopTask(ctx, other, done.Task.ID, "x"); !fault.Is(err, fault.NotFound) {
			t.Errorf("%s stops the task: %v", what, err)
		}
		if what == "a guest" { // of whom no id has this form
			continue
		}
		in := ask("calc", "me too")
		in.Context = done.ConversationID
		if _, err := w.Ask(ctx, other, in); !fault.Is(err, fault.NotFound) {
			t.Errorf("%s writes: %v", what, err)
		}
		if _, _, err := w.Messages(ctx, other, done.ConversationID, chat.Span{Limit: 10}); !fault.Is(err, fault.NotFound) {
			t.Errorf("%s reads: %v", what, err)
		}
	}
	storetest.Sound(t, w.db)
}

func TestAsk_SomebodyOfAnotherPortalIsAVisitor(t *testing.T) {
	t.Parallel()
	w := open(t)
	ctx := t.Context()
	ada := w.visitor("p1a", "ada")
	if _, err := w.Ask(ctx, ada, ask("calc", strings.Repeat("x", chat.MaxGuestTextBytes+1))); !fault.Is(err, fault.Invalid) {
		t.Error("says more than a guest may:", err)
	}
	if _, err := w.Create(ctx, ada, "", []string{"bob"}); !fault.Is(err, fault.NotFound) {
		t.Error("finds people:", err)
	}
	// Each is limited as a visitor, and all of a portal together.
	n := 0
	for range 100 {
		if _, err := w.Ask(ctx, ada, ask("calc", "1")); err == nil {
			n++
		} else if !fault.Is(err, fault.RateLimited) {
			t.Fatal(err)
		}
	}
	if n > 30 || n < 10 {
		t.Errorf("one asked %d times", n)
	}
	all := 0
	for range 400 {
		if _, err := w.Ask(ctx, w.visitor("p1a", ident.NewID()), ask("calc", "1")); err == nil {
			all++
		}
	}
	if all > 330 || all < 50 {
		t.Errorf("a portal asked %d times", all)
	}
	if _, err := w.Ask(ctx, w.visitor("p1b", "ada"), ask("calc", "1")); err != nil {
		t.Error("another portal pays for it:", err)
	}
}

func TestAsk_StopsWhereTheBudgetEnds(t *testing.T) {
	t.Parallel()
	w := open(t)
	ctx := t.Context()
	now := clock.Now()
	in := ask("calc", "hello")
	for what, b := range map[string]task.Budget{"time": {Calls: 3, Until: now.Add(-time.Second), Bytes: 1000}, "text": {Calls: 3, Until: now.Add(time.Hour), Bytes: 5}} {
		in.Budget = b
		if _, err := w.Ask(ctx, w.ada, in); fault.As(err).Kind != fault.Invalid {
			t.Errorf("no %s left: %v", what, err)
		}
	}
	// Three further calls, whatever the room allows.
	room := w.room(w.ada, "calc", "guide", "keeper")
	w.set(room, chat.Change{Hops: ptr(10), Turns: ptr(50)})
	d := w.draft("@calc go")
	d.Budget = task.Budget{Calls: 3, Until: now.Add(time.Hour), Bytes: 1000}
	k := w.post(w.ada, room, d).Tasks[0]
	stored, err := w.db.TaskByID(ctx, k.ID)
	if err != nil || stored.Budget.Calls != 3 || stored.Budget.Bytes != 1000 {
		t.Fatalf("%+v %v", stored.Budget, err)
	}
	calls := 0
	for names := []string{"guide", "calc"}; ; calls++ {
		w.answer(k, "@"+names[calls%2]+" go on")
		list, err := w.db.ActiveTasks(ctx, room, "")
		if err != nil {
			t.Fatal(err)
		}
		if len(list) == 0 || calls > 10 {
			break
		}
		k = list[0]
		if want := 2 - calls; k.Budget.Calls != want || k.Budget.Bytes >= 1000 {
			t.Errorf("call %d has %+v", calls+1, k.Budget)
		}
	}
	if calls != 3 {
		t.Errorf("a budget of 3 calls ended in %d", calls)
	}
	// Many at once are not more.
	d = w.draft("@calc go")
	d.Budget = task.Budget{Calls: 1, Until: now.Add(time.Hour), Bytes: 1000}
	w.answer(w.post(w.ada, room, d).Tasks[0], "@guide @keeper go")
	if list, err := w.db.ActiveTasks(ctx, room, ""); err != nil || len(list) != 1 {
		t.Error(len(list), err)
	}
	storetest.Sound(t, w.db)
}

func TestAllowance_IsWithinTheRoomAndWhatCame(t *testing.T) {
	t.Parallel()
	w := open(t)
	room := w.room(w.ada, "calc")
	k := w.say(w.ada, room, "hello").Tasks[0]
	got, err := w.Allowance(t.Context(), k)
	if err != nil || got.Calls != chat.DefaultSettings.Turns-1 || got.Bytes != int64(chat.DefaultSettings.Budget) || !got.IsSet() {
		t.Fatalf("%+v %v", got, err)
	}
	k.Budget = task.Budget{Calls: 2, Until: clock.Now().Add(time.Minute), Bytes: 1 << 30}
	if less, err := w.Allowance(t.Context(), k); err != nil || less.Calls != 2 || less.Bytes != got.Bytes || !less.Until.Equal(k.Budget.Until) {
		t.Errorf("%+v %v", less, err)
	}
	k.Hop = 100
	if none, err := w.Allowance(t.Context(), k); err != nil || none.Calls != 0 {
		t.Errorf("%+v %v", none, err)
	}
}

// The statement that agents only passed the person's words on counts for the input of a waiting task, and from portals
// alone: a program of a person here could otherwise agree in their name.
func TestAsk_RelayedWordsAreInputFromPortals(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		own, resumes bool
		face         string
	}{"portal": {false, true, chat.FaceRelay}, "portal, a new question": {false, false, "a2a"}, "person": {true, true, "page"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := open(t)
			actor := w.visitor("p1a", "ada")
			first := ask("calc", "go")
			if c.own {
				actor, first.Face = w.ada, "page"
			}
			done, err := w.Ask(t.Context(), actor, first)
			if err != nil {
				t.Fatal(err)
			}
			if err := w.Finish(t.Context(), done.Task, task.Result{State: task.InputRequired, Reason: "May I?"}); err != nil {
				t.Fatal(err)
			}
			in := ask("calc", "yes")
			in.Relayed, in.Face = true, first.Face
			if c.resumes {
				in.TaskID = done.Task.ID
			} else {
				in.Context = done.ConversationID
			}
			if done, err = w.Ask(t.Context(), actor, in); err != nil {
				t.Fatal(err)
			}
			if got := w.task(done.Task.ID); got.Face != c.face || got.State != task.Submitted {
				t.Errorf("face %q, %s", got.Face, got.State)
			}
		})
	}
}

// A question that an agent of another portal asks for a person is no answer to one that waits in the conversation,
// unless it names that task.
func TestAsk_AgentsOfPortalsAnswerOnlyNamedTasks(t *testing.T) {
	t.Parallel()
	w := open(t)
	actor := w.visitor("p1a", "ada")
	first, err := w.Ask(t.Context(), actor, ask("calc", "go"))
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Finish(t.Context(), first.Task, task.Result{State: task.InputRequired, Reason: "May I?"}); err != nil {
		t.Fatal(err)
	}
	in := ask("calc", "something else")
	in.Context, in.Via = first.ConversationID, task.Chain{}.AppendHop("p1a/1")
	next, err := w.Ask(t.Context(), actor, in)
	if err != nil || next.Task.ID == first.Task.ID {
		t.Errorf("%+v, %v", next, err)
	}
	in = ask("calc", "yes")
	in.TaskID, in.Via = first.Task.ID, task.Chain{}.AppendHop("p1a/1")
	if next, err = w.Ask(t.Context(), actor, in); err != nil || next.Task.ID != first.Task.ID {
		t.Errorf("%+v, %v", next, err)
	}
}
