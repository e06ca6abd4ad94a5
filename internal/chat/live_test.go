package chat

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/task"
)

// memory is a working store of one conversation.
type memory struct {
	Store
	mu       sync.Mutex // guards the rest
	messages []Message
	members  map[string]bool
}

func (m *memory) Room(_ context.Context, id, kind, member string) (Conversation, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.members[member] {
		return Conversation{}, fault.New(fault.NotFound, "none")
	}
	return Conversation{ID: id, LastSeq: int64(len(m.messages))}, nil
}

func (m *memory) Messages(_ context.Context, _ string, after, before int64, limit int, newest bool) ([]Message, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []Message
	for _, x := range m.messages {
		if x.Seq > after && (before == 0 || x.Seq < before) {
			out = append(out, x)
		}
	}
	if newest && len(out) > limit {
		return slices.Clone(out[len(out)-limit:]), nil
	}
	return slices.Clone(out[:min(limit, len(out))]), nil
}

func (m *memory) commit(conversation string) Message {
	m.mu.Lock()
	defer m.mu.Unlock()
	x := Message{ConversationID: conversation, Seq: int64(len(m.messages) + 1), ID: ident.NewID(), Kind: Text, Parts: []task.Part{task.TextPart("x")}}
	m.messages = append(m.messages, x)
	return x
}

func reader(t interface{ Fatal(...any) }, s *Service, actor ident.Actor, id string, after int64) *Subscription {
	sub, err := s.Subscribe(context.Background(), actor, id, after)
	if err != nil {
		t.Fatal(err)
	}
	return sub
}

// TestSubscription_DeliversEachMessageOnceInOrder checks a reader against the
// model "every committed seq, once, ascending", while messages are announced
// late, twice, out of order or not at all, and the reader overflows.
func TestSubscription_DeliversEachMessageOnceInOrder(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		synctest.Test(t, func(t *testing.T) {
			id := ident.NewID()
			actor := ident.Actor{Kind: ident.Person, ID: "ada"}
			store := &memory{members: map[string]bool{"ada": true}}
			s := New(store, nil, nil, Config{})
			before := rapid.IntRange(0, 3*catchUpPage).Draw(rt, "before")
			for range before {
				store.commit(id)
			}
			after := int64(rapid.IntRange(0, before).Draw(rt, "after"))
			sub := reader(t, s, actor, id, after)
			defer sub.Close()
			var unannounced []Message
			got := after
			read := func() {
				ctx, cancel := context.WithTimeout(context.Background(), time.Second)
				defer cancel()
				for {
					u, err := sub.Next(ctx)
					if err != nil {
						return
					}
					if u.Message == nil {
						continue
					}
					if u.Message.Seq != got+1 {
						rt.Fatalf("message %d after %d", u.Message.Seq, got)
					}
					got = u.Message.Seq
				}
			}
			for range rapid.IntRange(0, 40).Draw(rt, "steps") {
				switch rapid.IntRange(0, 5).Draw(rt, "step") {
				case 0, 1:
					unannounced = append(unannounced, store.commit(id))
				case 2:
					if n := len(unannounced); n > 0 {
						i := rapid.IntRange(0, n-1).Draw(rt, "which")
						s.live.message(unannounced[i])
						if rapid.Bool().Draw(rt, "forget") {
							unannounced = slices.Delete(unannounced, i, i+1)
						}
					}
				case 3:
					for range queueLimit + 10 {
						s.live.message(store.commit(id))
					}
				case 4:
					s.Working(task.Task{ID: "t", ConversationID: id})
					s.Stream(id, "t", "text")
				case 5:
					read()
				}
			}
			s.live.message(store.commit(id)) // the last one is announced
			read()
			if want := int64(len(store.messages)); got != want {
				rt.Fatalf("read up to %d of %d", got, want)
			}
		})
	})
}

func TestSubscription_SendsTheTextSoFarOnConnecting(t *testing.T) {
	id := ident.NewID()
	actor := ident.Actor{Kind: ident.Person, ID: "ada"}
	s := New(&memory{members: map[string]bool{"ada": true}}, nil, nil, Config{})
	s.Working(task.Task{ID: "t1", ConversationID: id, AgentHandle: "calc", State: task.Working})
	s.Stream(id, "t1", "Hel")
	s.Stream(id, "t1", "lo")
	sub := reader(t, s, actor, id, 0)
	defer sub.Close()
	text := ""
	for text != "Hello you" {
		u, err := sub.Next(t.Context()) // hangs, and so fails, when text is lost
		if err != nil {
			t.Fatal(err)
		}
		if u.Delta != nil {
			text = text[:u.Delta.Offset] + u.Delta.Text
			if text == "Hello" {
				s.Stream(id, "t1", " you")
			}
		}
	}
}

func TestSubscription_EndsWhenTheReaderIsRemoved(t *testing.T) {
	id := ident.NewID()
	actor := ident.Actor{Kind: ident.Person, ID: "ada"}
	s := New(&memory{members: map[string]bool{"ada": true}}, nil, nil, Config{})
	sub := reader(t, s, actor, id, 0)
	defer sub.Close()
	s.live.kick(id, "person", "ada")
	if _, err := sub.Next(t.Context()); !fault.Is(err, fault.NotFound) {
		t.Errorf("after removal: %v", err)
	}
	if _, err := s.Subscribe(t.Context(), ident.Actor{Kind: ident.Person, ID: "eve"}, id, 0); !fault.Is(err, fault.NotFound) {
		t.Errorf("a stranger: %v", err)
	}
}

func TestLive_ForgetsEmptyRooms(t *testing.T) {
	s := New(&memory{members: map[string]bool{"ada": true}}, nil, nil, Config{})
	for i := range 100 {
		id := ident.NewID()
		sub := reader(t, s, ident.Actor{Kind: ident.Person, ID: "ada"}, id, 0)
		k := task.Task{ID: fmt.Sprint(i), ConversationID: id}
		s.Working(k)
		s.Stream(id, k.ID, "x")
		sub.Close()
		s.forget(k)
	}
	s.live.mu.Lock()
	defer s.live.mu.Unlock()
	if n := len(s.live.rooms); n != 0 {
		t.Errorf("%d rooms remain", n)
	}
}

func TestAddressed(t *testing.T) {
	calc := Member{Kind: "agent", ID: "1", Handle: "calc"}
	guide := Member{Kind: "agent", ID: "2", Handle: "guide"}
	for _, c := range []struct {
		name, text string
		agents     []Member
		want       []string
	}{
		{"the only agent needs no mention", "hello", []Member{calc}, []string{"calc"}},
		{"of several nobody is asked without a mention", "hello", []Member{calc, guide}, nil},
		{"a mention", "hey @guide, help", []Member{calc, guide}, []string{"guide"}},
		{"with the portal's name", "@calc@home.example: 1+1", []Member{calc, guide}, []string{"calc"}},
		{"at the end of a sentence", "ask @calc.", []Member{calc, guide}, []string{"calc"}},
		{"several, once each", "@calc @guide @calc", []Member{calc, guide}, []string{"calc", "guide"}},
		{"a mail address is no mention", "write to me@calc", []Member{calc, guide}, nil},
		{"somebody else is mentioned", "@eve is here", []Member{calc, guide}, nil},
		{"upper case", "@CALC 1", []Member{calc, guide}, []string{"calc"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, m := range Addressed(c.agents, c.text, "home.example") {
				got = append(got, m.Handle)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}
