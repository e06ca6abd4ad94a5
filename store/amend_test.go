package store_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"testing"

	"pgregory.net/rapid"

	"agentsite/internal/account"
	"agentsite/internal/chat"
	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/task"
	"agentsite/internal/testing/racetest"
	"agentsite/internal/testing/storetest"
)

// by is a message of the account about another one.
func by(c chat.Conversation, who account.Account, kind chat.Kind, target int64, text string) chat.Message {
	m := chat.Message{ConversationID: c.ID, ID: ident.NewID(), Sender: chat.Sender{Kind: "person", ID: who.ID, Handle: who.Name}, Kind: kind, Target: target, CreatedAt: clock.Now()}
	if text != "" {
		m.Parts = []task.Part{task.TextPart(text)}
	}
	return m
}

// amend ends the test when the message cannot be amended.
func amend(t testing.TB, db *storetest.DB, m chat.Message) chat.Message {
	t.Helper()
	got, err := db.Amend(context.Background(), m, true)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func event(who account.Account) chat.Message {
	return chat.Message{ID: ident.NewID(), Sender: chat.Sender{Kind: "person", ID: who.ID, Handle: who.Name}, Kind: chat.Event, Parts: []task.Part{task.TextPart("something happened")}, CreatedAt: clock.Now()}
}

// join lets somebody into the room.
func join(t testing.TB, db *storetest.DB, c chat.Conversation, who account.Account, role string, from int64) int64 {
	t.Helper()
	m, err := db.Join(context.Background(), c.ID, chat.Member{Kind: "person", ID: who.ID, Handle: who.Name, Role: role, FromSeq: from}, "", event(who))
	if err != nil {
		t.Fatal(err)
	}
	return m.Seq
}

// shown is what a model knows of a message.
type shown struct {
	kind      chat.Kind
	said, now string
	edits     []string
	gone      bool
	reactions map[string]map[string]bool // by emoji and person
}

func (s *shown) check(t *rapid.T, m chat.Message) {
	t.Helper()
	if m.Kind != s.kind || task.PlainText(m.Parts) != s.now || s.gone != !m.Now.UnsaidAt.IsZero() || s.gone && m.Now.UnsaidBy == "" {
		t.Fatalf("message %d is %+v, want %+v", m.Seq, m, s)
	}
	if edited := len(s.edits) > 0 && !s.gone; edited != !m.Now.EditedAt.IsZero() {
		t.Fatalf("message %d was edited at %s, its edits are %q", m.Seq, m.Now.EditedAt, s.edits)
	}
	got := map[string]map[string]bool{}
	for _, r := range m.Now.Reactions {
		got[r.Emoji] = map[string]bool{}
		for _, p := range r.By {
			got[r.Emoji][p.ID] = true
		}
	}
	if !maps.EqualFunc(got, s.reactions, maps.Equal) {
		t.Fatalf("message %d has reactions %v, want %v", m.Seq, got, s.reactions)
	}
}

// Edits, removals and reactions show what a simple model does, whatever comes
// in which order; every seq is dense and the chain verifies.
func TestAmend_LikeAModel(t *testing.T) {
	racetest.Skip(t)
	t.Parallel()
	db := storetest.New(t)
	ada, bob, eve := storetest.Account(t, db, "ada"), storetest.Account(t, db, "bob"), storetest.Account(t, db, "eve")
	rapid.Check(t, func(rt *rapid.T) {
		ctx := context.Background()
		c := storetest.Conversation(t, db, ada)
		join(t, db, c, bob, chat.RoleReader, 0)
		model := []*shown{{kind: chat.Event, said: "something happened", now: "something happened"}}
		add := func(kind chat.Kind, text string) {
			model = append(model, &shown{kind: kind, said: text, now: text})
		}
		// target is any seq, also of what cannot be amended and is not there.
		target := func(rt *rapid.T) (int64, *shown) {
			seq := rapid.Int64Range(0, int64(len(model))+1).Draw(rt, "target")
			if seq < 1 || seq > int64(len(model)) || model[seq-1].kind != chat.Text {
				return seq, nil
			}
			return seq, model[seq-1]
		}
		texts := rapid.StringMatching(`[a-z]{1,8}`)
		refused := func(rt *rapid.T, at *shown, err error) bool {
			switch {
			case at == nil && fault.Is(err, fault.NotFound), at != nil && at.gone && fault.Is(err, fault.Conflict):
				return true
			case at == nil || at.gone || err != nil:
				rt.Fatalf("of %+v: %v", at, err)
			}
			return false
		}
		// checkSingly compares each message and its earlier forms with the model, read one at a time.
		checkSingly := func(rt *rapid.T) {
			for i, s := range model {
				one, err := db.Message(ctx, c.ID, int64(i+1))
				if err != nil {
					rt.Fatal(err)
				}
				s.check(rt, one)
				if s.kind != chat.Text {
					continue
				}
				earlier, _, err := db.Edits(ctx, c.ID, int64(i+1), 0)
				if err != nil || len(earlier) != 1+len(s.edits) {
					rt.Fatalf("%d earlier forms, want %d more than %d, %v", len(earlier), 1, len(s.edits), err)
				}
				for k, want := range append([]string{s.said}, s.edits...) {
					if s.gone {
						want = ""
					}
					if task.PlainText(earlier[k].Parts) != want {
						rt.Fatalf("earlier form %d is %+v, want %q", k, earlier[k], want)
					}
				}
			}
		}
		rt.Repeat(map[string]func(*rapid.T){
			"say": func(rt *rapid.T) {
				text := texts.Draw(rt, "text")
				storetest.Say(t, db, c, ada, text)
				add(chat.Text, text)
			},
			"edit": func(rt *rapid.T) {
				seq, at := target(rt)
				text := texts.Draw(rt, "text")
				got, err := db.Amend(ctx, by(c, ada, chat.Edit, seq, text), true)
				if !refused(rt, at, err) {
					at.now, at.edits = text, append(at.edits, text)
					add(chat.Edit, text)
					if got.Seq != int64(len(model)) {
						rt.Fatalf("edit has seq %d", got.Seq)
					}
				}
			},
			"unsay": func(rt *rapid.T) {
				seq, at := target(rt)
				_, err := db.Amend(ctx, by(c, ada, chat.Unsaid, seq, ""), true)
				if !refused(rt, at, err) {
					for i, m := range storetest.Messages(t, db, c.ID) {
						if m.Kind == chat.Edit && m.Target == seq {
							model[i].now, model[i].gone = "", true
						}
					}
					at.now, at.gone, at.reactions = "", true, nil
					add(chat.Unsaid, "")
				}
			},
			"react": func(rt *rapid.T) {
				seq, at := target(rt)
				emoji, on := rapid.SampledFrom([]string{"👍", "🎉", "❤️"}).Draw(rt, "emoji"), rapid.Bool().Draw(rt, "on")
				who := rapid.SampledFrom([]account.Account{ada, bob}).Draw(rt, "who")
				got, err := db.Amend(ctx, by(c, who, chat.React, seq, emoji), on)
				if refused(rt, at, err) {
					return
				}
				if at.reactions[emoji][who.ID] == on {
					if got.Seq != 0 {
						rt.Fatalf("nothing changed, but message %d says so", got.Seq)
					}
					return
				}
				if at.reactions == nil {
					at.reactions = map[string]map[string]bool{}
				}
				if on && at.reactions[emoji] == nil {
					at.reactions[emoji] = map[string]bool{}
				}
				if on {
					at.reactions[emoji][who.ID] = true
				} else if delete(at.reactions[emoji], who.ID); len(at.reactions[emoji]) == 0 {
					delete(at.reactions, emoji)
				}
				add(chat.React, emoji)
			},
			"strangers": func(rt *rapid.T) {
				seq, _ := target(rt)
				if _, err := db.Amend(ctx, by(c, eve, chat.React, seq, "👍"), true); !fault.Is(err, fault.NotFound) {
					rt.Fatalf("a stranger reacts: %v", err)
				}
				if _, err := db.Amend(ctx, by(c, bob, chat.Edit, seq, "x"), true); !fault.Is(err, fault.Forbidden) {
					rt.Fatalf("a reader edits: %v", err)
				}
			},
			"": func(rt *rapid.T) {
				list := storetest.Messages(t, db, c.ID)
				dense(rt, list)
				if len(list) != len(model) {
					rt.Fatalf("%d messages, want %d", len(list), len(model))
				}
				for i, s := range model {
					s.check(rt, list[i])
				}
				if os.Getenv("AGENTSITE_TEST_FULL") != "" {
					checkSingly(rt)
				}
			},
		})
		checkSingly(rt)
	})
	storetest.Sound(t, db)
}

func TestAmend_Bounds(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	ada, bob := storetest.Account(t, db, "ada"), storetest.Account(t, db, "bob")
	c := storetest.Conversation(t, db, ada)
	storetest.Say(t, db, c, ada, "before bob came")
	join(t, db, c, bob, chat.RoleMember, -1)
	for i := range chat.MaxReactions {
		amend(t, db, by(c, ada, chat.React, 1, fmt.Sprint("e", i)))
	}
	if _, err := db.Amend(t.Context(), by(c, ada, chat.React, 1, "one more"), true); !fault.Is(err, fault.Conflict) {
		t.Error(err)
	}
	if m, err := db.Amend(t.Context(), by(c, ada, chat.React, 1, "e1"), true); err != nil || m.Seq != 0 {
		t.Error(m, err)
	}
	// Bob sees nothing of it, so he can change and quote nothing.
	if _, err := db.Amend(t.Context(), by(c, bob, chat.React, 1, "e1"), true); !fault.Is(err, fault.NotFound) {
		t.Error(err)
	}
	quote := storetest.Post(c, bob, "", "about that")
	quote.Message.Target = 1
	if _, err := db.Append(t.Context(), quote); !fault.Is(err, fault.NotFound) {
		t.Error(err)
	}
	quote.Message.Target = 999
	if _, err := db.Append(t.Context(), quote); !fault.Is(err, fault.NotFound) {
		t.Error(err)
	}
	quote.Message.Target = storetest.Say(t, db, c, ada, "hello bob").Message.Seq
	if done, err := db.Append(t.Context(), quote); err != nil || storetest.Messages(t, db, c.ID)[done.Message.Seq-1].Target != quote.Message.Target {
		t.Error(err)
	}
	storetest.Sound(t, db)
}

// An answer that is given again takes the place of the first; one that fails
// does not. What an agent said can be removed with what it made.
func TestFinish_Again(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	ada := storetest.Account(t, db, "ada")
	helper := storetest.Agent(t, db, "helper", ada)
	c := storetest.Conversation(t, db, ada, helper)
	asked := storetest.Say(t, db, c, ada, "why?", helper)
	k := asked.Tasks[0]
	again := k
	again.ID, again.Replaces, again.Share = ident.NewID(), 2, string(chat.ShareOwn)
	if _, err := db.Ask(t.Context(), again); !fault.Is(err, fault.Conflict) {
		t.Errorf("while it works: %v", err)
	}
	k.Artifacts = []task.Artifact{{ID: "a", Parts: []task.Part{task.TextPart("made")}}}
	first := storetest.Finish(t, db, k, task.Completed, "because")
	for i, state := range []task.State{task.Failed, task.Completed} {
		again.ID = ident.NewID()
		got, err := db.Ask(t.Context(), again)
		if err != nil || got.MessageSeq != 1 {
			t.Fatal(got, err)
		}
		stored, err := db.TaskByID(t.Context(), got.ID)
		if err != nil || stored.Replaces != 2 || stored.Share != "own" || stored.RootSeq != 0 || stored.Hop != 0 {
			t.Errorf("%+v %v", stored, err)
		}
		m := storetest.Finish(t, db, got, state, "because of something else")
		old, err := db.Message(t.Context(), c.ID, first.Seq)
		if want := m.Seq * int64(i); err != nil || old.Now.NewerSeq != want || m.Target != first.Seq*int64(i) {
			t.Errorf("%s: %+v %+v %v", state, old.Now, m, err)
		}
	}
	amend(t, db, by(c, ada, chat.Unsaid, first.Seq, ""))
	if got, err := db.TaskByID(t.Context(), k.ID); err != nil || len(got.Artifacts) != 0 {
		t.Errorf("%+v %v", got, err)
	}
	amend(t, db, by(c, ada, chat.Unsaid, 1, ""))
	again.ID = ident.NewID()
	if _, err := db.Ask(t.Context(), again); !fault.Is(err, fault.Conflict) {
		t.Errorf("of what was removed: %v", err)
	}
	again.MessageSeq = 99
	if _, err := db.Ask(t.Context(), again); !fault.Is(err, fault.NotFound) {
		t.Errorf("of nothing: %v", err)
	}
	storetest.Sound(t, db)
}

// Agents that call each other stop at the bounds of what one message of a
// person may lead to.
func TestFinish_GoesOnWithinBounds(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ turns, budget, answers int }{
		"turns":  {5, 1 << 20, 5},
		"budget": {50, 100, 3}, // each answer has some 40 bytes
		"none":   {1, 1 << 20, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := storetest.New(t)
			ada := storetest.Account(t, db, "ada")
			one, two := storetest.Agent(t, db, "one", ada), storetest.Agent(t, db, "two", ada)
			c := storetest.Conversation(t, db, ada, one, two)
			storetest.Say(t, db, c, ada, "something before")
			k := storetest.Say(t, db, c, ada, "talk to each other", one).Tasks[0]
			for n := 1; n < 20; n++ {
				next := two
				if k.AgentID == two.ID {
					next = one
				}
				ended, m := storetest.Answer(k, task.Completed, "what do you say about that?")
				done, err := db.Finish(t.Context(), chat.Ended{Task: ended, Message: m, Ask: storetest.Post(c, ada, "", "", next).Ask, Turns: tt.turns, Budget: tt.budget})
				if err != nil {
					t.Fatal(err)
				}
				if done.Held > 0 {
					if n != tt.answers || done.Held != 1 || len(done.Tasks) != 0 {
						t.Errorf("held after %d answers, want %d: %+v", n, tt.answers, done)
					}
					storetest.Sound(t, db)
					return
				}
				if k, err = db.TaskByID(t.Context(), done.Tasks[0].ID); err != nil || k.RootSeq != 2 || k.Hop != n || k.MessageSeq != done.Message.Seq || k.CallerID != ada.ID {
					t.Fatalf("%+v %v", k, err)
				}
			}
			t.Error("nothing stopped them")
		})
	}
}

// A person's answer goes to the task that waits for it, what an agent says
// does not.
func TestFinish_AnswersNoQuestionOfAnother(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	ada := storetest.Account(t, db, "ada")
	one, two := storetest.Agent(t, db, "one", ada), storetest.Agent(t, db, "two", ada)
	c := storetest.Conversation(t, db, ada, one, two)
	waits := storetest.Say(t, db, c, ada, "delete it", two).Tasks[0]
	storetest.Finish(t, db, waits, task.InputRequired, "Really?")
	k, m := storetest.Answer(storetest.Say(t, db, c, ada, "say yes", one).Tasks[0], task.Completed, "@two yes")
	done, err := db.Finish(t.Context(), chat.Ended{Task: k, Message: m, Ask: storetest.Post(c, ada, "", "", two).Ask, Turns: 9, Budget: 9999})
	if err != nil || len(done.Tasks) != 1 || done.Tasks[0].ID == waits.ID {
		t.Fatalf("%+v %v", done, err)
	}
	if got, err := db.TaskByID(t.Context(), waits.ID); err != nil || got.State != task.InputRequired {
		t.Errorf("%+v %v", got, err)
	}
	if done := storetest.Say(t, db, c, ada, "yes", two); done.Tasks[0].ID != waits.ID || done.Tasks[0].MessageSeq != done.Message.Seq {
		t.Errorf("%+v", done)
	}
	storetest.Sound(t, db)
}
