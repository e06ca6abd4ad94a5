package endpoint

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"

	"agentsite/internal/strictjson"
)

// Watch lists the changes that a client wants to be notified of.
type Watch struct {
	Tools     bool     `json:"toolsListChanged,omitempty"`
	Prompts   bool     `json:"promptsListChanged,omitempty"`
	Resources bool     `json:"resourcesListChanged,omitempty"`
	URIs      []string `json:"resourceSubscriptions,omitempty"`
	TaskIDs   []string `json:"taskIds,omitempty"`
}

// maxWatched bounds the resources and the tasks of one Watch.
const maxWatched = 50

// Feeds opens feeds of changes for clients. An Offer without it declares none.
type Feeds interface {
	// OpenFeed opens a feed. agreed is the part of w that it covers; its fields never exceed those of w.
	OpenFeed(ctx context.Context, c *Call, w Watch) (agreed Watch, feed Feed, err error)
}

// Feed delivers changes to one client. One goroutine uses it.
type Feed interface {
	// Next returns the next change and waits for it until ctx ends. It returns io.EOF when the feed has
	// ended.
	Next(ctx context.Context) (Change, error)
	// Close ends the feed and frees its resources. It is called once.
	Close()
}

// Change is a notification: exactly one of its fields is set.
type Change struct {
	// List names the list that has changed: tools, prompts or resources.
	List string
	URI  string
	Task *Task
}

// serveFeed opens a feed, confirms which changes it covers, and sends its changes until either side ends
// it.
func (s *Server) serveFeed(ctx context.Context, m *message, c *Call) (json.RawMessage, error) {
	filter, ok := strictjson.Split(c.Params.Get("notifications"))
	if !ok {
		return nil, Wrong("notifications: list the changes that you want to receive.")
	}
	var w Watch
	// Duplicate names were refused when the body was decoded.
	for name, to := range map[string]any{"toolsListChanged": &w.Tools, "promptsListChanged": &w.Prompts,
		"resourcesListChanged": &w.Resources, "resourceSubscriptions": &w.URIs, "taskIds": &w.TaskIDs} {
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
		return nil, &Problem{Code: CodeInvalidRequest, Status: http.StatusNotAcceptable,
			Message: "Accept: a feed is a stream, so take text/event-stream."}
	}
	agreed, feed, err := s.offer.Feeds.OpenFeed(ctx, c, w)
	if err != nil {
		return nil, err
	}
	defer feed.Close()
	c.reply.keepAlive()
	meta := map[string]json.RawMessage{metaSubscription: m.id}
	if !c.reply.sendEvent(encodeNotice(nil, "notifications/subscriptions/acknowledged",
		map[string]any{"_meta": meta, "notifications": agreed})) {
		return nil, errSilent
	}
	for {
		ch, err := feed.Next(ctx)
		// the server may be stopping while the client still reads, so the feed gets a proper end
		if err != nil {
			return encodeJSON(map[string]any{"resultType": "complete", "_meta": meta}), nil
		}
		if !c.reply.sendEvent(ch.asNotice(c.Version, meta)) {
			return nil, errSilent
		}
	}
}

// asNotice encodes a change as a notification.
func (ch Change) asNotice(version string, meta map[string]json.RawMessage) []byte {
	switch {
	case ch.Task != nil:
		t := ch.Task.asJSON(version, true)
		t.Meta = encodeJSON(meta)
		return encodeNotice(nil, "notifications/tasks", t)
	case ch.URI != "":
		return encodeNotice(nil, "notifications/resources/updated", map[string]any{"_meta": meta, "uri": ch.URI})
	}
	return encodeNotice(nil, "notifications/"+ch.List+"/list_changed", map[string]any{"_meta": meta})
}
