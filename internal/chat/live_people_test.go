package chat

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/internal/fault"
	"agentsite/internal/task"
)

// told is what a reader hears within a while.
func told(t *testing.T, sub *Subscription, d time.Duration) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	var out []string
	for {
		u, err := sub.Next(ctx)
		if err != nil {
			return out
		}
		switch {
		case u.Presence != nil:
			out = append(out, fmt.Sprint("here ", u.Presence.Handles))
		case u.Typing != nil:
			out = append(out, u.Typing.Handle+" types")
		case u.Read != nil:
			out = append(out, fmt.Sprint(u.Read.Handle, " read ", u.Read.Seq))
		case u.Message != nil:
			out = append(out, fmt.Sprint("message ", u.Message.Seq))
		}
	}
}

func same(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

func TestPresence_IsToldWhenItChangesAndOnJoining(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemory()
		s := New(store, nil, nil, Config{})
		id := store.open("ada", "bob")
		ada := reader(t, s, "ada", id, 0)
		defer ada.Close()
		same(t, "alone", told(t, ada, time.Second), "here [ada]", "here [ada]")
		phone, desk := reader(t, s, "bob", id, 0), reader(t, s, "bob", id, 0)
		same(t, "who comes", told(t, phone, time.Millisecond), "here [ada bob]")
		same(t, "bob came with two devices", told(t, ada, time.Second), "here [ada bob]")
		phone.Close()
		same(t, "one of two devices left", told(t, ada, time.Second))
		desk.Close()
		desk = reader(t, s, "bob", id, 0) // reloads the page
		same(t, "bob reloads", told(t, ada, time.Second))
		desk.Close()
		same(t, "bob left", told(t, ada, time.Second), "here [ada]")
	})
}

func TestTyping_IsToldSeldomAndOnlyByWriters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemory()
		s := New(store, nil, nil, Config{})
		id := store.open("ada", "bob", "cy")
		store.rooms[id].members[2].Role = RoleReader
		ada := reader(t, s, "ada", id, 0)
		defer ada.Close()
		told(t, ada, time.Second)
		for range 50 {
			if err := s.Typing(t.Context(), person("bob"), id); err != nil {
				t.Fatal(err)
			}
		}
		same(t, "fifty keys", told(t, ada, time.Second), "bob types")
		late := reader(t, s, "ada", id, 0)
		same(t, "who comes meanwhile", told(t, late, time.Millisecond), "here [ada]", "bob types")
		late.Close()
		s.live.passMessage(store.commit(id, Message{Kind: Text, Sender: Sender{Kind: "person", ID: "bob", Handle: "bob"}}))
		if err := s.Typing(t.Context(), person("bob"), id); err != nil {
			t.Fatal(err)
		}
		same(t, "said and typed again", told(t, ada, time.Second), "message 1", "bob types")
		for name, kind := range map[string]fault.Kind{"cy": fault.Forbidden, "eve": fault.NotFound} {
			if err := s.Typing(t.Context(), person(name), id); !fault.Is(err, kind) {
				t.Errorf("%s types: %v", name, err)
			}
		}
		same(t, "those who may not", told(t, ada, time.Second))
	})
}

func TestReadMarks_AreToldTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemory()
		s := New(store, nil, nil, Config{})
		id := store.open("ada", "bob")
		store.rooms[id].members[1].ReadSeq = 2
		for range 9 {
			store.commit(id, Message{})
		}
		ada := reader(t, s, "ada", id, 9)
		defer ada.Close()
		same(t, "on joining", told(t, ada, time.Second), "here [ada]", "bob read 2", "here [ada]")
		for _, seq := range []int64{1, 3, 4, 7, 5} {
			s.live.passRead(id, "bob", seq)
		}
		same(t, "bob scrolls", told(t, ada, time.Second), "bob read 7")
		s.live.passRead(id, "bob", 7)
		same(t, "again", told(t, ada, time.Second))
	})
}

func TestInbox_TellsOfAllConversations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemory()
		store.prefs = map[string]Prefs{}
		s := New(store, nil, nil, Config{Portal: "home.example", Log: slog.New(slog.DiscardHandler)})
		one, two := store.open("ada", "bob"), store.open("ada", "bob", "cy")
		other := store.open("bob", "cy")
		phone, desk := inbox(t, s, "ada"), inbox(t, s, "ada")
		defer desk.Close()
		say := func(room, who, text string) {
			s.live.passMessage(store.commit(room, Message{Kind: Text, Sender: Sender{Kind: "person", ID: who, Handle: who}, Parts: []task.Part{task.TextPart(text)}}))
		}
		say(one, "bob", "Hello")
		say(other, "bob", "Not for ada")
		say(two, "ada", "Her own")
		say(two, "cy", "What do you think, @ada?")
		s.live.passMessage(store.commit(two, Message{Kind: React, Target: 1}))
		want := []News{
			{ConversationID: one, Title: "Room", Seq: 1, From: "bob", Snippet: "Hello"},
			{ConversationID: two, Title: "Room", Seq: 2, From: "cy", Snippet: "What do you think, @ada?", Mention: true},
		}
		for _, b := range []*Inbox{phone, desk} {
			if got := hears(t, b); !slices.Equal(got, want) {
				t.Errorf("got %+v", got)
			}
		}
		phone.Close()

		// What she decided holds from now on.
		time.Sleep(2 * factsHold)
		store.set(func() { store.rooms[one].mine["ada"] = Mine{Notify: NotifyMentions} })
		at := time.Now().UTC()
		minute := at.Hour()*60 + at.Minute()
		say(one, "bob", "Quiet")
		say(one, "bob", "Loud @ada")
		time.Sleep(2 * factsHold)
		store.set(func() {
			store.prefs["ada"] = Prefs{QuietFrom: (minute + 1439) % 1440, QuietTo: (minute + 5) % 1440}
		})
		say(two, "cy", "At night, @ada")
		var got []bool
		for _, n := range hears(t, desk) {
			got = append(got, n.Quiet)
		}
		if !slices.Equal(got, []bool{true, false, true}) {
			t.Errorf("quiet: %v", got)
		}

		store.remove(one, "ada")
		s.live.endSubscriptions(one, "person", "ada")
		say(one, "bob", "She is gone")
		if got := hears(t, desk); len(got) != 0 {
			t.Errorf("after removal: %+v", got)
		}
		for range 10 * newsLimit { // nobody reads
			say(two, "bob", "More")
		}
		if got := hears(t, desk); len(got) != newsLimit || got[newsLimit-1].Seq != store.last(two) {
			t.Errorf("%d news waited", len(got))
		}
	})
}

func inbox(t *testing.T, s *Service, name string) *Inbox {
	t.Helper()
	b, err := s.Inbox(t.Context(), person(name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func hears(t *testing.T, b *Inbox) []News {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	synctest.Wait()
	var out []News
	for {
		n, err := b.Next(ctx)
		if err != nil {
			return out
		}
		out = append(out, n)
	}
}

func TestPrefs_QuietHoursGoOverMidnight(t *testing.T) {
	night := Prefs{QuietFrom: 22 * 60, QuietTo: 7 * 60, Zone: "Europe/Berlin"}
	for at, want := range map[string]bool{"2026-01-10T20:59:00Z": false, "2026-01-10T21:00:00Z": true, "2026-01-11T05:59:00Z": true, "2026-01-11T06:00:00Z": false} {
		now, err := time.Parse(time.RFC3339, at)
		if err != nil {
			t.Fatal(err)
		}
		if got := night.isQuiet(true, now); got != want {
			t.Errorf("at %s: %v", at, got)
		}
	}
}
