package agentruntime_test

import (
	"context"
	"encoding/json"
	"testing"

	"agentsite/internal/chat"
	"agentsite/internal/ident"
	"agentsite/internal/task"
)

// away is a directory of agents elsewhere.
type away struct{ directory }

func (d away) Agent(ctx context.Context, a ident.Actor, h string) (chat.AgentRef, error) {
	ref, err := d.directory.Agent(ctx, a, h)
	ref.Remote = "agent.example"
	return ref, err
}

// An agent elsewhere remembers what was said to it in a context. Who keeps
// everything back is not led to it.
func TestWorker_NothingGoesAlongMeansNoContext(t *testing.T) {
	h := build(t)
	h.chat = chat.New(h.db, away{directory{h.hub}}, h.queue, chat.Config{Portal: "home.example"})
	previous := make(chan string, 3)
	h.start(func(ctx context.Context, c task.Call, s task.Sink) (task.Result, error) {
		previous <- string(c.Previous) + " " + c.Scope
		return task.Done("yes"), s.Checkpoint(ctx, json.RawMessage(`{"context":"c"}`))
	})
	room := h.room()
	for i, c := range []struct {
		share chat.Share
		want  string
	}{{"", " all/0"}, {chat.ShareNothing, " "}, {chat.ShareOwn, `{"context":"c"} own/0`}} {
		if _, err := h.chat.Post(t.Context(), h.ada, room, chat.Draft{ClientID: ident.NewID(), Parts: []task.Part{task.TextPart("hi")}, Share: c.share}); err != nil {
			t.Fatal(err)
		}
		h.answers(room, i+1)
		if got := <-previous; got != c.want {
			t.Errorf("share %q: %q, want %q", c.share, got, c.want)
		}
	}
}
