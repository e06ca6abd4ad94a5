package chat

import (
	"context"
	"slices"
	"time"

	"agentsite/handlers/pages/message"
	"agentsite/internal/chat"
	"agentsite/internal/clock"
	"agentsite/internal/ident"
	"agentsite/templates"
)

// messageViews returns messages as the actor sees them. Unlike rowViews it caches nothing.
func (d *Room) messageViews(ctx context.Context, actor ident.Actor, list []chat.Message,
	who message.Speakers) []templates.MessageView {
	out, w := make([]templates.MessageView, 0, len(list)), d.shelf.writtenFor(ctx, actor, list)
	for _, m := range list {
		v := d.readerView(ctx, actor, m, list, who)
		d.shelf.addLibrary(actor, m, w, &v)
		out = append(out, v)
	}
	return out
}

// readerView returns one message as the actor sees it; list holds the messages around it, to save reads
// of quoted ones.
func (d *Room) readerView(ctx context.Context, actor ident.Actor, m chat.Message, list []chat.Message,
	who message.Speakers) templates.MessageView {
	v := d.messages.MessageView(m, who)
	v.Mine = message.Said(actor, m.Sender)
	for i, x := range m.Now.Reactions {
		v.Reactions[i].Mine = reacted(actor, x)
	}
	if v.Quote != nil {
		d.quote(ctx, actor, m, list, v.Quote, who)
	}
	if n := d.version(ctx, actor, m, list); n > 1 && m.Now.NewerSeq == 0 {
		v.Version, v.Versions, v.Earlier = n, n, v.Again
	}
	return v
}

// rowViews returns the rows of a transcript. A row that is the same for several readers is rendered once
// and cached. Messages of the people in blocked, by id, are collapsed.
func (d *Room) rowViews(ctx context.Context, actor ident.Actor, list []chat.Message, who message.Speakers,
	blocked map[string]string) []templates.MessageView {
	out, w := make([]templates.MessageView, 0, len(list)), d.shelf.writtenFor(ctx, actor, list)
	// part of the cache key, because rows show times relative to this day
	today := clock.Now().UTC().Format(time.DateOnly)
	for i := range list {
		m := &list[i]
		var quote templates.QuoteView
		var v templates.MessageView
		if fold := folded(*m, blocked); fold || own(actor, *m) || len(w[m.Seq]) > 0 || d.shelf.keeps(actor, *m) {
			v = d.readerView(ctx, actor, *m, list, who)
			v.Folded = fold
			d.shelf.addLibrary(actor, *m, w, &v)
		} else {
			if answers(*m) {
				quote.Seq = int(m.Target)
				d.quote(ctx, actor, *m, list, &quote, who)
			}
			v = templates.MessageView{Seq: int(m.Seq), Mine: message.Said(actor, m.Sender),
				HTML: d.messages.RowHTML(*m, quote, d.version(ctx, actor, *m, list), today, who)}
		}
		out = append(out, v)
	}
	return out
}

// own reports whether a message looks different for this actor, so that its row must not be cached for
// others.
func own(actor ident.Actor, m chat.Message) bool {
	return slices.ContainsFunc(m.Now.Reactions, func(x chat.Reaction) bool { return reacted(actor, x) })
}

// answers reports whether a message is shown with a quote of the message that it replies to.
func answers(m chat.Message) bool {
	return m.Target > 0 && m.Kind == chat.Text && m.Sender.Kind != "agent" && m.Now.UnsaidAt.IsZero()
}

func reacted(actor ident.Actor, x chat.Reaction) bool {
	for _, by := range x.By {
		if by.ID == actor.ID && by.Kind != "agent" {
			return true
		}
	}
	return false
}

// quote fills in the quote of the message that m replies to. It stays empty if the actor may not read
// that message.
func (d *Room) quote(ctx context.Context, actor ident.Actor, m chat.Message, list []chat.Message,
	q *templates.QuoteView, who message.Speakers) {
	var quoted *chat.Message
	for i := range list {
		if list[i].Seq == m.Target {
			quoted = &list[i]
		}
	}
	if quoted == nil {
		x, err := d.chat.Message(ctx, actor, m.ConversationID, m.Target)
		if err != nil {
			return // the actor may not read the quoted message
		}
		quoted = &x
	}
	q.From = who(quoted.Sender).Title
	if q.Text = "deleted"; quoted.Now.UnsaidAt.IsZero() {
		q.Text = d.messages.Gist(*quoted)
	}
}
