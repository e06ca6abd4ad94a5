package memory_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"agentsite/internal/grant"
	"agentsite/internal/ident"
	"agentsite/internal/memory"
)

// notes is a Store of some memories, with permissions for all and no meanings.
type notes struct {
	memory.Store
	list []memory.Memory
}

func (n *notes) MemoriesByID(_ context.Context, ids []string) (out []memory.Memory, err error) {
	for _, m := range n.list {
		if slices.Contains(ids, m.ID) {
			out = append(out, m)
		}
	}
	return out, nil
}

func (n *notes) MemoriesAt(_ context.Context, p memory.Place) (out []memory.Memory, err error) {
	for _, m := range n.list {
		if m.AgentID == p.AgentID && m.RoomID == p.RoomID && (p.RoomID != "" || m.PersonID == p.PersonID) {
			out = append(out, m)
		}
	}
	return out, nil
}

func (n *notes) EachText(_ context.Context, person, room, _ string, yield func(memory.Memory)) error {
	for _, m := range n.list {
		if m.RoomID == room && room != "" || room == "" && m.PersonID == person {
			yield(m)
		}
	}
	return nil
}

func (*notes) MarkUsed(context.Context, []string, time.Time) error { return nil }

func (*notes) Look(context.Context, grant.Use) (grant.Decision, error) { return grant.Allowed, nil }

func (*notes) Encode(string) []float32 { return nil }

func newService(n *notes) *memory.Service {
	return memory.New(memory.Config{Store: n, Grants: n, Encoder: n})
}

// A member that sees nothing earlier gets no memories of others from that time, by the agent or by asking for them.
func TestRoom_MemoriesBeforeAMemberCameAreHidden(t *testing.T) {
	t.Parallel()
	room := memory.Place{AgentID: "minder", RoomID: "room"}
	said := func(id, person, text string, seq int64) memory.Memory {
		p := room
		p.PersonID = person
		return memory.Memory{ID: id, Place: p, Text: text, ConversationID: "room", Seq: seq, UsedAt: time.Now()}
	}
	s := newService(&notes{list: []memory.Memory{said("1", "ada", "The release is on Friday.", 5),
		said("2", "ada", "The release is blue.", 6), said("3", "bob", "The release is loud.", 2)}})
	for _, x := range []struct {
		person string
		from   int64
		want   []string
	}{
		{"bob", 0, []string{"Friday", "blue", "loud"}},
		{"bob", 5, []string{"blue", "loud"}},
		{"bob", 6, []string{"loud"}},
		{"eve", 6, nil},
	} {
		u := memory.Use{Place: room, ConversationID: "room", Seq: 9, FromSeq: x.from}
		u.PersonID = x.person
		list, err := s.Recall(t.Context(), u, "When is the release?", 16)
		if err != nil {
			t.Fatal(err)
		}
		var recalled strings.Builder
		for _, m := range list {
			recalled.WriteString(m.Text)
		}
		listed, ok, err := s.Answer(t.Context(), u, "what do you remember?")
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		for _, word := range []string{"Friday", "blue", "loud"} {
			want := slices.Contains(x.want, word)
			if strings.Contains(recalled.String(), word) != want || strings.Contains(listed, word) != want {
				t.Errorf("%s from %d: recalled %q, listed %q", x.person, x.from, recalled.String(), listed)
			}
		}
	}
}

// Memories that were deleted without the service take no places of others in its results.
func TestShelf_ForgetsWhatTheStoreDeleted(t *testing.T) {
	t.Parallel()
	n, place := &notes{}, memory.Place{PersonID: "ada", AgentID: "minder"}
	for i := range 100 {
		n.list = append(n.list, memory.Memory{ID: fmt.Sprintf("%03d", i), Place: place, Text: "Likes tea.",
			UsedAt: time.Now()})
	}
	s, u := newService(n), memory.Use{Place: place}
	ada := ident.Actor{Kind: ident.Person, ID: "ada"}
	find := func() (recalled, listed int, said string) {
		list, err := s.Recall(t.Context(), u, "tea", 16)
		if err != nil {
			t.Fatal(err)
		}
		page, err := s.List(t.Context(), ada, memory.Filter{Limit: 20}, "tea")
		if err != nil {
			t.Fatal(err)
		}
		said, _, err = s.Answer(t.Context(), u, "forget about tea")
		if err != nil {
			t.Fatal(err)
		}
		return len(list), len(page.Memories), said
	}
	if recalled, listed, said := find(); recalled != 16 || listed != 20 || !strings.HasPrefix(said, "Several") {
		t.Fatalf("before: %d, %d, %q", recalled, listed, said)
	}
	n.list = n.list[90:] // the first ones are found first
	if recalled, listed, said := find(); recalled != 10 || listed != 10 || !strings.Contains(said, "10.") {
		t.Errorf("afterwards: %d, %d, %q", recalled, listed, said)
	}
}
