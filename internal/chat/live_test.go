package chat

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/task"
)

// memory is a working store of conversations, as far as live readers need it.
type memory struct {
	Store
	reads atomic.Int64 // of pages of messages
	mu    sync.Mutex   // guards the rest
	rooms map[string]*transcript
	prefs map[string]Prefs
}

type transcript struct {
	messages []Message
	members  []Member
	mine     map[string]Mine
}

func newMemory() *memory { return &memory{rooms: make(map[string]*transcript)} }

// open makes a room of people.
func (m *memory) open(people ...string) string {
	id := ident.NewID()
	t := &transcript{mine: make(map[string]Mine)}
	for _, p := range people {
		t.members = append(t.members, Member{Kind: "person", ID: p, Handle: p, Role: RoleMember})
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.rooms[id] = t
	return id
}

func (m *memory) remove(id, person string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t := m.rooms[id]
	t.members = slices.DeleteFunc(slices.Clone(t.members), func(x Member) bool { return x.ID == person })
}

func (m *memory) Room(_ context.Context, id, _, member string) (Conversation, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if t := m.rooms[id]; t != nil {
		for _, x := range t.members {
			if x.ID == member {
				mine := t.mine[member]
				mine.FromSeq = x.FromSeq
				return Conversation{ID: id, Title: "Room", LastSeq: int64(len(t.messages)), Members: t.members, Mine: mine}, nil
			}
		}
	}
	return Conversation{}, fault.New(fault.NotFound, "none")
}

func (m *memory) Members(_ context.Context, id string) ([]Member, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if t := m.rooms[id]; t != nil {
		return t.members, nil
	}
	return nil, nil
}

func (m *memory) set(f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f()
}

func (m *memory) BlockersOf(context.Context, string) ([]string, error) { return nil, nil }

func (m *memory) Prefs(_ context.Context, id string) (p Prefs, err error) {
	m.set(func() { p = m.prefs[id] })
	return p, nil
}

func (m *memory) Message(_ context.Context, id string, seq int64) (Message, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.rooms[id].messages[seq-1], nil
}

func (m *memory) Messages(_ context.Context, id string, span Span) ([]Message, bool, error) {
	m.reads.Add(1)
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []Message
	for _, x := range m.rooms[id].messages {
		if x.Seq > span.After && (span.Before == 0 || x.Seq < span.Before) {
			out = append(out, x)
		}
	}
	more := len(out) > span.Limit
	if span.Newest && more {
		return slices.Clone(out[len(out)-span.Limit:]), more, nil
	}
	return slices.Clone(out[:min(span.Limit, len(out))]), more, nil
}

// commit stores a message; one that is unsaid loses its parts.
func (m *memory) commit(id string, x Message) Message {
	m.mu.Lock()
	defer m.mu.Unlock()
	t := m.rooms[id]
	x.ConversationID, x.Seq, x.ID = id, int64(len(t.messages)+1), ident.NewID()
	if x.Kind == "" {
		x.Kind, x.Parts = Text, []task.Part{task.TextPart(fmt.Sprint("text ", x.Seq))}
	}
	if x.Kind == Unsaid {
		t.messages[x.Target-1].Parts = nil
	}
	t.messages = append(t.messages, x)
	return x
}

func (m *memory) last(id string) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return int64(len(m.rooms[id].messages))
}

func person(name string) ident.Actor { return ident.Actor{Kind: ident.Person, ID: name, Name: name} }

type fataler interface{ Fatal(...any) }

func reader(t fataler, s *Service, name, id string, after int64) *Subscription {
	sub, err := s.Subscribe(context.Background(), person(name), id, after)
	if err != nil {
		t.Fatal(err)
	}
	return sub
}

func TestRoom_ReadsAGapOnceForAllReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemory()
		s := New(store, nil, nil, Config{})
		id := store.open("ada")
		var subs []*Subscription
		for range 50 {
			sub := reader(t, s, "ada", id, 0)
			defer sub.Close()
			subs = append(subs, sub)
		}
		for range 3 {
			store.commit(id, Message{})
		}
		s.live.passMessage(store.commit(id, Message{})) // the other three were never told
		for _, sub := range subs {
			for seq := int64(1); seq <= 4; {
				u, err := sub.Next(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if u.Message != nil {
					if u.Message.Seq != seq {
						t.Fatalf("message %d, want %d", u.Message.Seq, seq)
					}
					seq++
				}
			}
		}
		if n := store.reads.Load(); n != 1 {
			t.Errorf("the store was read %d times", n)
		}
		// All are cut off and come back while somebody stays: the log has it.
		for _, sub := range subs[1:] {
			sub.Close()
		}
		for range 10 {
			s.live.passMessage(store.commit(id, Message{}))
		}
		for range 49 {
			sub := reader(t, s, "ada", id, 4)
			for seq := int64(4); seq < 14; {
				u, err := sub.Next(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if u.Message != nil {
					seq = u.Message.Seq
				}
			}
			sub.Close()
		}
		if n := store.reads.Load(); n != 1 {
			t.Errorf("coming back, the store was read %d times", n-1)
		}
	})
}

func TestRoom_ReadersWhoResumeTogetherShareOnePage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemory()
		s := New(store, nil, nil, Config{})
		id := store.open("ada")
		for range 100 {
			store.commit(id, Message{})
		}
		var encoded int
		for range 20 {
			sub := reader(t, s, "ada", id, 40)
			defer sub.Close()
			for seq := int64(40); seq < 100; seq++ {
				u, err := sub.Next(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if u.Message == nil || u.Message.Seq != seq+1 {
					t.Fatalf("%+v after %d", u, seq)
				}
				if _, err := u.Encoded(1, func(Update) ([]byte, error) { encoded++; return []byte("x"), nil }); err != nil {
					t.Fatal(err)
				}
			}
		}
		if n := store.reads.Load(); n != 1 || encoded != 60 {
			t.Errorf("the store was read %d times, and updates were encoded %d times", n, encoded)
		}
	})
}

func TestRoom_ForgetsWhatWasUnsaid(t *testing.T) {
	store := newMemory()
	s := New(store, nil, nil, Config{})
	id := store.open("ada", "bob")
	first := reader(t, s, "ada", id, 0)
	defer first.Close()
	for range 3 {
		s.live.passMessage(store.commit(id, Message{}))
	}
	s.live.passMessage(store.commit(id, Message{Kind: Unsaid, Target: 2}))
	for name, sub := range map[string]*Subscription{"a slow reader": first, "a new one": reader(t, s, "bob", id, 1)} {
		for seen := int64(0); seen < 4; {
			u, err := sub.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if u.Message == nil {
				continue
			}
			if seen = u.Message.Seq; seen == 2 && len(u.Message.Parts) > 0 {
				t.Errorf("%s is told %q", name, u.Message.Parts[0].Text)
			}
		}
	}
}

func TestSubscribe_ShowsNothingBeforeTheJoining(t *testing.T) {
	store := newMemory()
	s := New(store, nil, nil, Config{})
	id := store.open("ada", "bob")
	for range 5 {
		store.commit(id, Message{})
	}
	store.rooms[id].members[1].FromSeq = 4
	for _, after := range []int64{0, 2, 4, 1 << 40} {
		sub := reader(t, s, "bob", id, after)
		if after < 5 {
			if u, err := sub.Next(t.Context()); err != nil || u.Message == nil || u.Message.Seq != 5 {
				t.Fatalf("after %d: %+v, %v", after, u, err)
			}
		}
		m := store.commit(id, Message{})
		s.live.passMessage(m)
		for {
			u, err := sub.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if u.Message != nil && u.Message.Seq == m.Seq {
				break
			}
			if u.Message != nil && u.Message.Seq < 5 {
				t.Fatalf("after %d: message %d", after, u.Message.Seq)
			}
		}
		sub.Close()
	}
}

func TestSubscription_SendsTheTextSoFarOnConnecting(t *testing.T) {
	store := newMemory()
	s := New(store, nil, nil, Config{})
	id := store.open("ada")
	s.Working(task.Task{ID: "t1", ConversationID: id, AgentHandle: "calc", State: task.Working})
	s.Stream(id, "t1", "Hel")
	s.Stream(id, "t1", "lo")
	sub := reader(t, s, "ada", id, 0)
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

// TestStream_SurvivesAHundredCuts checks that a reader who is cut off at any
// place has the whole answer in the end.
func TestStream_SurvivesAHundredCuts(t *testing.T) {
	store := newMemory()
	s := New(store, nil, nil, Config{})
	id := store.open("ada")
	want := strings.Repeat("All of it, byte by byte. ", 200)
	s.Working(task.Task{ID: "t1", ConversationID: id, State: task.Working})
	text, seq := "", int64(0)
	sub := reader(t, s, "ada", id, 0)
	for i, at := 0, 0; seq == 0; {
		if i < 100 && at < len(want) {
			sub.Close()
			step := min(len(want)-at, 1+i*7%61)
			s.Stream(id, "t1", want[at:at+step])
			at += step
			sub = reader(t, s, "ada", id, seq)
			i++
		} else if at < len(want) {
			s.Stream(id, "t1", want[at:])
			at = len(want)
		} else if len(text) == len(want) {
			s.live.passMessage(store.commit(id, Message{Kind: Text, TaskID: "t1", Sender: Sender{Kind: "agent"}}))
		}
		// Some of what there is, then the cut.
		for range 1 + i%4 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			u, err := sub.Next(ctx)
			cancel()
			if err != nil {
				break
			}
			if u.Delta != nil {
				if u.Delta.Offset > len(text) {
					t.Fatalf("a gap: %d after %d", u.Delta.Offset, len(text))
				}
				text = text[:u.Delta.Offset] + u.Delta.Text
			}
			if u.Message != nil {
				seq = u.Message.Seq
			}
		}
	}
	sub.Close()
	if text != want {
		t.Errorf("%d bytes of %d", len(text), len(want))
	}
}

func TestSubscription_EndsWhenTheReaderIsRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemory()
		s := New(store, nil, nil, Config{})
		id := store.open("ada", "bob")
		phone, desk, bob := reader(t, s, "ada", id, 0), reader(t, s, "ada", id, 0), reader(t, s, "bob", id, 0)
		defer bob.Close()
		began := time.Now()
		var wg sync.WaitGroup
		for _, sub := range []*Subscription{phone, desk} {
			wg.Go(func() {
				defer sub.Close()
				for {
					u, err := sub.Next(t.Context())
					if fault.Is(err, fault.NotFound) {
						return
					}
					if err != nil || u.Message != nil {
						t.Errorf("%+v, %v", u, err)
					}
				}
			})
		}
		synctest.Wait()
		store.remove(id, "ada")
		s.live.endSubscriptions(id, "person", "ada")
		s.live.passMessage(store.commit(id, Message{}))
		wg.Wait()
		if d := time.Since(began); d > time.Second {
			t.Errorf("sight ended after %s", d)
		}
		for {
			u, err := bob.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if u.Message != nil {
				break
			}
		}
		if _, err := s.Subscribe(t.Context(), person("ada"), id, 0); !fault.Is(err, fault.NotFound) {
			t.Errorf("who was removed: %v", err)
		}
	})
}

func TestLive_ForgetsEmptyRooms(t *testing.T) {
	store := newMemory()
	s := New(store, nil, nil, Config{})
	for i := range 100 {
		id := store.open("ada")
		sub := reader(t, s, "ada", id, 0)
		k := task.Task{ID: fmt.Sprint(i), ConversationID: id}
		s.Working(k)
		s.Stream(id, k.ID, "x")
		sub.Close()
		s.removeShown(k)
	}
	for i := range s.live.shards {
		sh := &s.live.shards[i]
		sh.mu.Lock()
		if n := len(sh.rooms); n != 0 {
			t.Errorf("%d rooms remain", n)
		}
		sh.mu.Unlock()
	}
}

func TestRoom_MemoryIsBounded(t *testing.T) {
	store := newMemory()
	s := New(store, nil, nil, Config{})
	id := store.open("ada")
	sub := reader(t, s, "ada", id, 0) // never reads
	defer sub.Close()
	big := []task.Part{task.TextPart(strings.Repeat("x", MaxTextBytes))}
	for range 200 {
		s.live.passMessage(store.commit(id, Message{Kind: Text, Parts: big}))
	}
	r := sub.room
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.log) > logEntries || r.bytes > logBytes+5*MaxTextBytes {
		t.Errorf("%d entries of %d bytes are kept", len(r.log), r.bytes)
	}
}
