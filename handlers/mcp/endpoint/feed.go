package endpoint

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"

	"agentsite/internal/strictjson"
)

// Watch is what a client wants to be told of.
type Watch struct {
	Tools     bool     `json:"toolsListChanged,omitempty"`
	Prompts   bool     `json:"promptsListChanged,omitempty"`
	Resources bool     `json:"resourcesListChanged,omitempty"`
	URIs      []string `json:"resourceSubscriptions,omitempty"`
	TaskIDs   []string `json:"taskIds,omitempty"`
}

// maxWatched bounds the resources and the tasks of one Watch.
const maxWatched = 50

// Feed tells of changes. Agreed is what of the Watch it covers; its fields
// are never more than what was wanted.
type Feed struct {
	Agreed Watch
	// Next waits for a change. After io.EOF there are no more.
	Next func(ctx context.Context) (Change, error)
	// Close ends the feed.
	Close func()
}

// Change is a notification: exactly one of its fields is set.
type Change struct {
	// List is tools, prompts or resources.
	List string
	URI  string
	Task *Task
}

// listen serves a feed until either side ends it.
func (s *Server) listen(ctx context.Context, m *message, c *Call) (json.RawMessage, error) {
	filter, ok := strictjson.Split(c.Params.Get("notifications"))
	if !ok {
		return nil, Wrong("notifications: say what you want to be told of.")
	}
	var w Watch
	// The names are read as they are, and twice is refused already.
	for name, to := range map[string]any{"toolsListChanged": &w.Tools, "promptsListChanged": &w.Prompts, "resourcesListChanged": &w.Resources, "resourceSubscriptions": &w.URIs, "taskIds": &w.TaskIDs} {
		if raw := filter.Get(name); raw != nil && json.Unmarshal(raw, to) != nil {
			return nil, Wrong("notifications." + name + ": has the wrong type.")
		}
	}
	if len(w.URIs) > maxWatched || len(w.TaskIDs) > maxWatched {
		return nil, Wrong("notifications: name at most " + strconv.Itoa(maxWatched) + " resources and as many tasks.")
	}
	if len(w.TaskIDs) > 0 && !c.Client.Tasks {
		return nil, missingTasks()
	}
	if !c.reply.events {
		return nil, &Problem{Code: CodeInvalidRequest, Status: http.StatusNotAcceptable, Message: "Accept: a feed is a stream, so take text/event-stream."}
	}
	feed, err := s.offer.Listen(ctx, c, w)
	if err != nil {
		return nil, err
	}
	defer feed.Close()
	c.reply.wait()
	meta := map[string]json.RawMessage{metaSubscription: m.id}
	if !c.reply.event(notice(nil, "notifications/subscriptions/acknowledged", map[string]any{"_meta": meta, "notifications": feed.Agreed})) {
		return nil, errSilent
	}
	for {
		ch, err := feed.Next(ctx)
		if err != nil { // also of a server that stops, while the client may still read
			return encode(map[string]any{"resultType": "complete", "_meta": meta}), nil
		}
		if !c.reply.event(ch.notice(c.Version, meta)) {
			return nil, errSilent
		}
	}
}

// notice is the change as a message.
func (ch Change) notice(version string, meta map[string]json.RawMessage) []byte {
	switch {
	case ch.Task != nil:
		t := ch.Task.json(version, true)
		t.Meta = encode(meta)
		return notice(nil, "notifications/tasks", t)
	case ch.URI != "":
		return notice(nil, "notifications/resources/updated", map[string]any{"_meta": meta, "uri": ch.URI})
	}
	return notice(nil, "notifications/"+ch.List+"/list_changed", map[string]any{"_meta": meta})
}

// Never is the Next of a feed without changes.
func Never(ctx context.Context) (Change, error) {
	<-ctx.Done()
	return Change{}, ctx.Err()
}
