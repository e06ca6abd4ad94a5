package mcp

import (
	"context"
	"io"
	"slices"
	"strings"
	"sync"

	"agentsite/handlers/mcp/endpoint"
	"agentsite/handlers/request"
	"agentsite/internal/chat"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/task"
)

// maxFeeds bounds the conversations that one feed watches.
const maxFeeds = 20

// OpenFeed implements endpoint.Feeds with feeds of tasks and conversations. Changes of an agent's lists are not
// reported: clients may cache these for a few minutes.
func (s tasks) OpenFeed(ctx context.Context, c *endpoint.Call, w endpoint.Watch) (endpoint.Watch, endpoint.Feed, error) {
	f := &feed{d: s.d, c: c, changes: make(chan endpoint.Change), rooms: make(map[string]*watched)}
	agreed, err := f.findWatched(ctx, s, w)
	if err != nil {
		return agreed, nil, err
	}
	actor := c.Actor
	for _, r := range f.rooms {
		actor = r.actor
	}
	ctx, leave, err := s.d.cfg.Callers.BeginWait(c.HTTP.WithContext(ctx), actor)
	if err != nil {
		return agreed, nil, err
	}
	f.leave = leave
	ctx, f.cancel = context.WithCancel(ctx)
	f.ended = ctx.Done()
	for id, r := range f.rooms {
		sub, err := s.d.cfg.Chat.Subscribe(ctx, r.actor, id, r.after)
		if err != nil {
			f.Close()
			return agreed, nil, err
		}
		f.readers.Go(func() {
			defer sub.Close()
			f.readConversation(ctx, r, sub)
		})
	}
	return agreed, f, nil
}

// feed reports changes in the watched conversations and tasks of one client.
type feed struct {
	d       *Handler
	c       *endpoint.Call
	rooms   map[string]*watched // by conversation id
	changes chan endpoint.Change

	cancel context.CancelFunc // ends the reading goroutines
	leave  context.CancelFunc // releases the slot of BeginWait
	// closed when the reading goroutines have ended, for example because the credential was revoked
	ended   <-chan struct{}
	readers sync.WaitGroup
}

// watched is one conversation of a feed. Only its reading goroutine uses it.
type watched struct {
	actor ident.Actor
	after int64 // seq of the last message that the client has
	uri   string
	tasks map[string]endpoint.Task // state of each watched task as it was last sent
}

// findWatched adds the requested tasks and conversations to the feed and returns those it accepted. Those
// of other callers are left out like unknown ones, so that their existence stays secret.
func (f *feed) findWatched(ctx context.Context, own tasks, w endpoint.Watch) (agreed endpoint.Watch, err error) {
	room := func(id string, asker request.Caller) *watched {
		if f.rooms[id] == nil && len(f.rooms) < maxFeeds {
			f.rooms[id] = &watched{actor: asker.Actor, tasks: make(map[string]endpoint.Task)}
		}
		return f.rooms[id]
	}
	for _, id := range w.TaskIDs {
		asker, t, err := own.findTask(ctx, f.c, id)
		if _, none := err.(*endpoint.Problem); none || fault.Is(err, fault.Invalid) {
			continue
		}
		if err != nil {
			return agreed, err
		}
		if r := room(t.ConversationID, asker); r != nil && !slices.Contains(agreed.TaskIDs, id) {
			r.after = max(r.after, t.MessageSeq)
			r.tasks[id] = endpoint.Task{}
			agreed.TaskIDs = append(agreed.TaskIDs, id)
		}
	}
	if own.agent != "" {
		return agreed, nil // the server of an agent offers no conversations as resources
	}
	for _, uri := range w.URIs {
		id, ok := strings.CutPrefix(uri, conversationPrefix)
		if !ok {
			continue
		}
		asker, err := f.d.cfg.Callers.Identify(f.c.HTTP, f.c.Actor, id)
		var c chat.Conversation
		if err == nil {
			c, err = f.d.cfg.Chat.Get(ctx, asker.Actor, id)
		}
		if fault.Is(err, fault.NotFound) {
			continue
		}
		if err != nil {
			return agreed, err
		}
		if r := room(id, asker); r != nil && r.uri == "" {
			if len(r.tasks) == 0 {
				r.after = c.LastSeq
			}
			r.uri = uri
			agreed.URIs = append(agreed.URIs, uri)
		}
	}
	return agreed, nil
}

// Next implements endpoint.Feed. It returns io.EOF after the credential was revoked.
func (f *feed) Next(ctx context.Context) (endpoint.Change, error) {
	select {
	case ch := <-f.changes:
		return ch, nil
	case <-ctx.Done():
		return endpoint.Change{}, ctx.Err()
	case <-f.ended:
		return endpoint.Change{}, io.EOF
	}
}

// Close implements endpoint.Feed. It waits for the reading goroutines.
func (f *feed) Close() {
	f.cancel()
	f.readers.Wait()
	f.leave()
}

// readConversation sends the present state of the watched tasks and then changes of the conversation,
// until ctx ends.
func (f *feed) readConversation(ctx context.Context, r *watched, sub *chat.Subscription) {
	for id := range r.tasks {
		if !f.sendTask(ctx, r, id, "") {
			return
		}
	}
	for {
		u, err := sub.Next(ctx)
		if err != nil {
			return
		}
		id, status := "", ""
		switch {
		case u.Task != nil:
			id, status = u.Task.ID, u.Task.Status
		case u.Message != nil:
			id = u.Message.TaskID
			if r.uri != "" && u.Message.Seq > r.after && !f.sendChange(ctx, endpoint.Change{URI: r.uri}) {
				return
			}
		}
		if _, ours := r.tasks[id]; ours && !f.sendTask(ctx, r, id, status) {
			return
		}
	}
}

// sendTask sends the state of a task unless the client has the same state already. It returns false when
// the feed has ended.
func (f *feed) sendTask(ctx context.Context, r *watched, id, status string) bool {
	t, err := f.d.cfg.Chat.Task(ctx, r.actor, id)
	if err != nil {
		return ctx.Err() == nil
	}
	v, err := f.d.detailedTask(ctx, f.c, r.actor, t)
	if err != nil {
		return ctx.Err() == nil
	}
	if status != "" && t.State.Active() {
		v.Message = status
	}
	last := r.tasks[id]
	if v.Status == last.Status && v.Message == last.Message &&
		(v.UpdatedAt.Equal(last.UpdatedAt) || t.State == task.Working) {
		return true
	}
	r.tasks[id] = v
	return f.sendChange(ctx, endpoint.Change{Task: &v})
}

func (f *feed) sendChange(ctx context.Context, ch endpoint.Change) bool {
	select {
	case f.changes <- ch:
		return true
	case <-ctx.Done():
		return false
	}
}
