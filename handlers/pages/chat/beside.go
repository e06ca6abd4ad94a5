package chat

import (
	"context"

	"agentsite/internal/chat"
	"agentsite/internal/clock"
	"agentsite/internal/ident"
	"agentsite/templates"
)

// besideLimit is the number of chats in the list beside an open one, without the pinned ones.
const besideLimit = 30

// besides returns the list of the actor's chats that stands beside an open one: the pinned ones, then the others by
// the day of their last message. An error leaves the list empty, because the open chat does not need it.
func (d *Room) besides(ctx context.Context, actor ident.Actor) (v templates.ChatsBeside) {
	if actor.ID == "" {
		return v
	}
	pinned, err := d.chat.List(ctx, actor, chat.RoomFilter{Pinned: true, Limit: pinnedShown})
	if err != nil {
		d.log.Warn("list pinned chats", "error", err)
		return v
	}
	list, err := d.chat.List(ctx, actor, chat.RoomFilter{Limit: besideLimit})
	if err != nil {
		d.log.Warn("list chats", "error", err)
		return v
	}
	v.More = len(list) == besideLimit
	add := func(name string, c chat.Conversation) {
		if n := len(v.Groups); n == 0 || v.Groups[n-1].Name != name {
			v.Groups = append(v.Groups, templates.ChatGroup{Name: name})
		}
		g := &v.Groups[len(v.Groups)-1]
		g.Rows = append(g.Rows, templates.ConversationRow{ID: c.ID, Title: c.Title, Unread: c.Unread,
			Most: c.Unread >= chat.MaxUnread, Working: len(d.chat.Running(c.ID)) > 0})
	}
	for _, c := range pinned {
		if !c.Mine.Archived {
			add("Pinned", c)
		}
	}
	today := clock.Now().UTC()
	for _, c := range list {
		switch at := c.UpdatedAt.UTC(); {
		case c.Mine.Pinned:
		case sameDay(at, today):
			add("Today", c)
		case sameDay(at, today.AddDate(0, 0, -1)):
			add("Yesterday", c)
		default:
			add("Earlier", c)
		}
	}
	return v
}
