package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"agentsite/internal/account"
	"agentsite/internal/chat"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/task"
	"agentsite/internal/testing/sitetest"
)

// maxListAnswer is the size in bytes that no answer with a list exceeds: a page of rows, the row with
// which they exceed it, and the characters that JSON escapes.
const maxListAnswer = 2 << 20

// longText returns a text of n bytes that JSON makes twice as long.
func longText(n int) string { return "heron " + strings.Repeat(`"`, n-6) }

// Every list answers with pages of bounded size when its rows are as large as they may be, and the
// cursors lead to each row once.
func TestLists_AreBoundedInBytesAndComplete(t *testing.T) {
	t.Parallel()
	s := sitetest.NewSite(t, account.Closed)
	ada := s.Person("ada")
	room := fillRoom(t, s, ada, 40)
	agent := fillAgents(t, s, ada, 30)
	fillTasks(t, s, ada, room, agent, 30)
	for more := true; more; {
		var err error
		if more, err = s.DB.IndexWords(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		path, list, cursor string
		rows               int
		id                 func(row map[string]any) any
	}{
		{"/conversations/" + room + "/messages?limit=200", "messages", "after", 40 + 20 + 30, field("seq")},
		{"/conversations/" + room + "/messages/2/edits?", "edits", "cursor", 21, field("seq")},
		{"/conversations/search?q=heron&limit=100", "results", "cursor", 40, func(row map[string]any) any { return row["message"].(map[string]any)["seq"] }},
		{"/tasks?limit=100", "tasks", "cursor", 30, field("id")},
		{"/agents?owner=me", "agents", "cursor", 30, field("name")},
		{"/agents?limit=100", "agents", "cursor", 31, field("name")},
		{"/agents?limit=100&sort=name", "agents", "cursor", 31, field("name")},
		{"/search?q=heron&limit=100", "results", "cursor", 30, func(row map[string]any) any { return row["agent"].(map[string]any)["name"] }},
		{"/agents/big-0/versions?", "versions", "cursor", 12, field("version")},
	} {
		seen, pages := make(map[any]bool), 0
		for cursor := ""; pages == 0 || cursor != ""; pages++ {
			path := "/api/v1" + c.path
			if cursor != "" {
				path += "&" + url.Values{c.cursor: {cursor}}.Encode()
			}
			p := ada.Do(http.MethodGet, path, nil).Is(http.StatusOK)
			if len(p.Body) > maxListAnswer {
				t.Errorf("%s answers with %d bytes", path, len(p.Body))
			}
			var answer map[string]any
			if err := json.Unmarshal([]byte(p.Body), &answer); err != nil {
				t.Fatal(err)
			}
			for _, row := range answer[c.list].([]any) {
				id := c.id(row.(map[string]any))
				if seen[id] {
					t.Fatalf("%s: row %v is there twice", path, id)
				}
				seen[id] = true
			}
			cursor, _ = answer["next_cursor"].(string)
		}
		if len(seen) != c.rows || pages < 2 {
			t.Errorf("%s: %d rows on %d pages, want %d on several", c.path, len(seen), pages, c.rows)
		}
	}
}

func field(name string) func(map[string]any) any {
	return func(row map[string]any) any { return row[name] }
}

// fillRoom creates a conversation with n texts as long as they may be; the first is edited 20 times.
func fillRoom(t *testing.T, s *sitetest.Site, by *sitetest.Browser, n int) string {
	t.Helper()
	c, err := s.Chat.Create(t.Context(), by.Actor, "Long", nil)
	if err != nil {
		t.Fatal(err)
	}
	parts := []task.Part{task.TextPart(longText(chat.MaxTextBytes))}
	for i := range n {
		if _, err := s.Chat.Post(t.Context(), by.Actor, c.ID, chat.Draft{ClientID: fmt.Sprint(i), Parts: parts}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 20 {
		edit := []task.Part{task.TextPart(fmt.Sprint(i) + " " + longText(chat.MaxTextBytes-10))}
		if _, err := s.Chat.Edit(t.Context(), by.Actor, c.ID, 2, edit); err != nil {
			t.Fatal(err)
		}
	}
	return c.ID
}

// fillAgents registers n agents with as many words as they may have, the first in 12 versions.
func fillAgents(t *testing.T, s *sitetest.Site, by *sitetest.Browser, n int) hub.Agent {
	t.Helper()
	long := func(n int) string { return "heron " + strings.Repeat("ä", n-6) }
	skills := make([]hub.Skill, 32)
	for i := range skills {
		skills[i] = hub.Skill{Name: fmt.Sprint("Skill ", i), Description: long(1000), Tags: []string{"talk"},
			Examples: []string{long(300), long(300), long(300)}}
	}
	text, kind := long(4000), hub.A2A
	var first hub.Agent
	for i := range n {
		name, title, endpoint, visibility := fmt.Sprint("big-", i), fmt.Sprint("Big ", i), fmt.Sprintf("https://big-%d.example/a2a", i), hub.Public
		a, err := s.Hub.Publish(t.Context(), by.Actor, hub.Draft{Name: &name, Title: &title, Description: &text, Kind: &kind, Endpoint: &endpoint,
			Visibility: &visibility, Skills: &skills})
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = a
		}
	}
	for i := range 11 {
		title := fmt.Sprint("Version ", i)
		if _, err := s.Hub.Update(t.Context(), by.Actor, first.Name, hub.Draft{Title: &title}); err != nil {
			t.Fatal(err)
		}
	}
	return first
}

// fillTasks stores n ended tasks with artifacts.
func fillTasks(t *testing.T, s *sitetest.Site, by *sitetest.Browser, room string, agent hub.Agent, n int) {
	t.Helper()
	now := time.Now()
	for i := range n {
		k := task.Task{ID: ident.NewID(), ConversationID: room, AgentID: agent.ID, AgentHandle: agent.Name, CallerKind: "person", CallerID: by.Actor.ID,
			CallerHandle: "ada", MessageSeq: 2, State: task.Submitted, CreatedAt: now, UpdatedAt: now}
		k, err := s.DB.Ask(t.Context(), k)
		if err != nil {
			t.Fatal(err)
		}
		k.State, k.UpdatedAt = task.Completed, now.Add(time.Duration(i)*time.Second)
		k.Artifacts = []task.Artifact{{ID: "a", Name: "Result", Parts: []task.Part{task.TextPart(longText(200 << 10))}}}
		m := chat.Message{ConversationID: room, ID: ident.NewID(), Sender: chat.Sender{Kind: "agent", ID: agent.ID, Handle: agent.Name}, Kind: chat.Event,
			Parts: []task.Part{task.TextPart("done")}, TaskID: k.ID, TaskState: task.Completed, CreatedAt: now}
		if _, err := s.DB.Finish(t.Context(), chat.Ended{Task: k, Message: m}); err != nil {
			t.Fatal(err)
		}
	}
}
