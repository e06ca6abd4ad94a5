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

	"agentsite/internal/task"
)

// hearer is a reader of a room by either of the two ways, checked against the
// model "every seq once, ascending, without a gap".
type hearer struct {
	sub    *Subscription
	id     string
	name   string
	direct bool // by Next; else it is a Sink

	mu     sync.Mutex // guards the rest
	kicked bool
	mood   Taken // what it takes of a batch
	behind bool
	got    int64
	wrong  string // the first fault
}

func (h *hearer) hear(list []Update) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.heard(list)
}

func (h *hearer) fault(format string, args ...any) {
	if h.wrong == "" {
		h.wrong = h.name + " " + fmt.Sprintf(format, args...)
	}
}

func (h *hearer) heard(list []Update) {
	for _, u := range list {
		if u.Message == nil {
			continue
		}
		if h.kicked {
			h.fault("is told message %d after removal", u.Message.Seq)
		}
		if u.Message.Seq != h.got+1 || u.Message.ConversationID != h.id {
			h.fault("is told message %d of %s after %d", u.Message.Seq, u.Message.ConversationID, h.got)
		}
		h.got = u.Message.Seq
	}
}

func (h *hearer) Push(b *Batch) Taken {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.behind {
		h.fault("is handed a batch while detached")
	}
	if h.mood != None {
		h.heard(b.Updates)
	}
	return h.mood
}
func (h *hearer) Behind() { h.set(func() { h.behind = true }) }

func (h *hearer) End(error) {}

func (h *hearer) set(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f()
}

// read takes what there is.
func (h *hearer) read() {
	var kicked, behind bool
	h.set(func() { kicked, behind = h.kicked, h.behind })
	switch {
	case kicked:
	case h.direct:
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		for {
			u, err := h.sub.Next(ctx)
			if err != nil {
				return
			}
			h.hear([]Update{u})
		}
	case behind:
		for {
			list, err := h.sub.Take(context.Background())
			if err != nil {
				h.set(func() { h.fault("cannot read: %v", err) })
				return
			}
			h.hear(list)
			if len(list) > 0 {
				continue
			}
			h.set(func() { h.behind = false }) // before it is handed anything
			if h.sub.Attach(h) {
				return
			}
			h.Behind()
		}
	}
}

// TestRoom_TellsEachMessageOnceInOrder checks readers of several rooms against
// the model while messages are announced late, twice, out of order or not at
// all, readers are slow, come back where they were, and are removed.
func TestRoom_TellsEachMessageOnceInOrder(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		synctest.Test(t, func(*testing.T) {
			store := newMemory()
			s := New(store, nil, nil, Config{})
			names := []string{"ada", "bob", "cy"}
			var rooms []string
			for range rapid.IntRange(1, 3).Draw(rt, "rooms") {
				rooms = append(rooms, store.open(names...))
			}
			unannounced := make(map[string][]Message)
			var all []*hearer
			commit := func(id string) Message {
				if last := store.last(id); last > 0 && rapid.IntRange(0, 9).Draw(rt, "amends") == 0 {
					kind := rapid.SampledFrom([]Kind{Edit, Unsaid, React}).Draw(rt, "kind")
					return store.commit(id, Message{Kind: kind, Target: 1 + last/2})
				}
				return store.commit(id, Message{})
			}
			join := func(id string, after int64) {
				h := &hearer{id: id, got: after, direct: rapid.Bool().Draw(rt, "direct"), behind: true}
				h.name = rapid.SampledFrom(names).Draw(rt, "who")
				sub, err := s.Subscribe(context.Background(), person(h.name), id, after)
				if err != nil {
					return // was removed
				}
				h.sub = sub
				all = append(all, h)
			}
			sound := func() {
				for _, h := range all {
					h.set(func() {
						if h.wrong != "" {
							rt.Fatal(h.wrong)
						}
					})
				}
			}
			defer func() {
				for _, h := range all {
					h.sub.Close()
				}
			}()
			for _, id := range rooms {
				for range rapid.IntRange(0, 2*catchUpPage).Draw(rt, "before") {
					store.commit(id, Message{})
				}
				join(id, 0)
			}
			for range rapid.IntRange(0, 40).Draw(rt, "steps") {
				id := rapid.SampledFrom(rooms).Draw(rt, "room")
				pick := func() *hearer {
					if len(all) == 0 {
						return &hearer{kicked: true}
					}
					return all[rapid.IntRange(0, len(all)-1).Draw(rt, "reader")]
				}
				switch rapid.IntRange(0, 9).Draw(rt, "step") {
				case 0, 1:
					unannounced[id] = append(unannounced[id], commit(id))
				case 2, 3:
					if list := unannounced[id]; len(list) > 0 {
						i := rapid.IntRange(0, len(list)-1).Draw(rt, "which")
						s.live.passMessage(list[i])
						if rapid.Bool().Draw(rt, "once") {
							unannounced[id] = slices.Delete(list, i, i+1)
						}
					}
				case 4:
					for range logEntries + 10 {
						s.live.passMessage(commit(id))
					}
				case 5:
					s.Working(task.Task{ID: "t", ConversationID: id})
					s.Stream(id, "t", "text")
					s.live.passTyping(id, "bob")
					s.live.passRead(id, "ada", store.last(id))
				case 6:
					pick().read()
				case 7:
					h := pick()
					mood := rapid.SampledFrom([]Taken{All, All, Last, None}).Draw(rt, "mood")
					h.set(func() { h.mood = mood })
				case 8: // a socket is cut, and its reader comes back
					if h := pick(); !h.kicked {
						h.sub.Close()
						synctest.Wait()
						all = slices.DeleteFunc(all, func(x *hearer) bool { return x == h })
						join(h.id, h.got)
					}
				case 9:
					if rapid.IntRange(0, 3).Draw(rt, "remove") > 0 {
						time.Sleep(gapWait) // of the bubble
						break
					}
					name := rapid.SampledFrom(names).Draw(rt, "removed")
					store.remove(id, name)
					s.live.endSubscriptions(id, "person", name)
					for _, h := range all {
						if h.id == id && h.name == name {
							h.set(func() { h.kicked = true })
						}
					}
				}
				synctest.Wait()
				sound()
			}
			for _, id := range rooms {
				s.live.passMessage(store.commit(id, Message{})) // the last one is announced
			}
			time.Sleep(time.Second)
			for _, h := range all {
				h.set(func() { h.mood = All })
				h.read()
				synctest.Wait()
				h.read() // of a sink that took less meanwhile
				sound()
				if want := store.last(h.id); !h.kicked && h.got != want {
					rt.Fatalf("%s (direct %v) heard %d of %d", h.name, h.direct, h.got, want)
				}
			}
		})
	})
}
