package handlers

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"agentsite/internal/a2a"
	"agentsite/internal/chat"
	"agentsite/internal/clock"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/task"
	"agentsite/templates"
)

// speakers tells how pages show whoever said something. It remembers agents
// it has looked up, so it serves one page only.
type speakers func(chat.Sender) templates.Sender

func (d *Door) speakers(ctx context.Context, actor ident.Actor) speakers {
	known := make(map[string]templates.Sender)
	return func(s chat.Sender) templates.Sender {
		if s.Kind != "agent" {
			return templates.Sender{Ref: s.Handle, Title: s.Handle, Handle: s.Handle, Kind: s.Kind, Person: true, Provenance: templates.Provenance{Verified: true}}
		}
		if v, ok := known[s.Handle]; ok {
			return v
		}
		v := templates.Sender{Ref: s.Handle, Title: s.Handle, Handle: s.Handle, Kind: s.Kind, Provenance: templates.Provenance{Verified: true}}
		if _, portal, elsewhere := strings.Cut(s.Handle, "@"); elsewhere {
			v.Provenance = templates.Provenance{Portal: portal, Live: string(hub.Unknown), LiveReason: "This portal shows nothing of it now."}
		}
		// One that was removed, or is private to somebody else, keeps its handle.
		if a, err := d.hub.Get(ctx, actor, s.Handle); err == nil && (s.ID == "" || a.ID == s.ID || a.Elsewhere()) {
			v.Title, v.Provenance = a.Title, d.provenance(a)
		}
		known[s.Handle] = v
		return v
	}
}

// messageView is a message as every reader sees it; what depends on the
// reader is left out.
func (d *Door) messageView(m chat.Message, who speakers) templates.MessageView {
	v := templates.MessageView{ID: m.ID, Seq: int(m.Seq), Time: moment(m.CreatedAt), TaskID: m.TaskID, ChatID: m.ConversationID}
	if m.Sender.Kind == "agent" {
		v.State = string(m.TaskState)
	}
	v.Mark = mark(m)
	if m.Kind == chat.Event && v.Mark == "" {
		v.Event = d.event(m, who)
		return v
	}
	v.Sender = who(m.Sender)
	if !m.Now.UnsaidAt.IsZero() {
		v.Gone, v.Mark, v.TaskID = cmp.Or(m.Now.UnsaidBy, "somebody"), "", ""
		return v
	}
	v.Edited = m.Now.EditSeq > 0
	v.Newer = int(m.Now.NewerSeq)
	for _, x := range m.Now.Reactions {
		re := templates.ReactionView{Emoji: x.Emoji}
		for _, by := range x.By {
			re.By = append(re.By, by.Handle)
		}
		v.Reactions = append(v.Reactions, re)
	}
	switch {
	case m.Target == 0:
	case m.Sender.Kind == "agent":
		v.Again = int(m.Target)
	default:
		v.Quote = &templates.QuoteView{Seq: int(m.Target)}
	}
	if v.Mark != "" {
		v.Reason = m.Reason
	}
	if m.Kind == chat.Event {
		return v // its text is the reason
	}
	asks := m.TaskState == task.InputRequired && m.Sender.Kind == "agent"
	for _, p := range m.Parts {
		if asks && p.Data != nil {
			if _, ok := askedForm(p.Data); ok {
				v.FormHref = chatPath(m.ConversationID) + "?form=" + strconv.FormatInt(m.Seq, 10) + "#tool"
				continue
			}
		}
		d.part(&v.Body, &v.Data, &v.Files, p)
	}
	v.YesNo = asks && v.FormHref == "" && strings.Contains(strings.ToLower(task.PlainText(m.Parts)), yesAsked)
	if v.YesNo || v.FormHref != "" {
		v.Reason = "" // the message says it
	}
	return v
}

// yesAsked is how an agent asks for a yes, in small letters.
const yesAsked = "answer yes"

func (d *Door) event(m chat.Message, who speakers) string {
	text := strings.TrimSpace(task.PlainText(m.Parts))
	if m.Sender.Kind == "agent" {
		if text == "" {
			text = m.Reason
		}
		text = who(m.Sender).Title + ": " + text
	}
	return text
}

// messageViews are messages as one reader sees them.
func (d *Door) messageViews(ctx context.Context, actor ident.Actor, list []chat.Message, who speakers) []templates.MessageView {
	out := make([]templates.MessageView, 0, len(list))
	for _, m := range list {
		out = append(out, d.readerView(ctx, actor, m, list, who))
	}
	return out
}

// readerView is one of them.
func (d *Door) readerView(ctx context.Context, actor ident.Actor, m chat.Message, list []chat.Message, who speakers) templates.MessageView {
	v := d.messageView(m, who)
	v.Mine = said(actor, m.Sender)
	for i, x := range m.Now.Reactions {
		v.Reactions[i].Mine = reacted(actor, x)
	}
	if v.Quote != nil {
		d.quote(ctx, actor, m, list, v.Quote, who)
	}
	v.Retry = d.retry(ctx, actor, m, list)
	return v
}

// rowViews are the same for a transcript: rendered once for all who see a
// message alike.
func (d *Door) rowViews(ctx context.Context, actor ident.Actor, list []chat.Message, who speakers) []templates.MessageView {
	out := make([]templates.MessageView, 0, len(list))
	today := clock.Now().UTC().Format(time.DateOnly) // times are told as of it
	for i := range list {
		m := &list[i]
		var quote templates.QuoteView
		var v templates.MessageView
		if own(actor, *m) {
			v = d.readerView(ctx, actor, *m, list, who)
		} else {
			if answers(*m) {
				quote.Seq = int(m.Target)
				d.quote(ctx, actor, *m, list, &quote, who)
			}
			v = templates.MessageView{Seq: int(m.Seq), Mine: said(actor, m.Sender), HTML: d.rowHTML(*m, quote, today, who)}
		}
		out = append(out, v)
	}
	return out
}

// own reports whether a message may show the reader what it shows nobody else.
func own(actor ident.Actor, m chat.Message) bool {
	if slices.ContainsFunc(m.Now.Reactions, func(x chat.Reaction) bool { return reacted(actor, x) }) {
		return true
	}
	switch mark(m) {
	case "failed", "interrupted", "canceled":
		return true // they can try again
	}
	return false
}

// answers reports whether a message quotes what it answers.
func answers(m chat.Message) bool {
	return m.Target > 0 && m.Kind == chat.Text && m.Sender.Kind != "agent" && m.Now.UnsaidAt.IsZero()
}

// rowHTML renders a message as those see it who know its sender, and what it
// quotes, by the same words.
func (d *Door) rowHTML(m chat.Message, quote templates.QuoteView, today string, who speakers) templates.SafeHTML {
	s := who(m.Sender)
	key := strings.Join([]string{fragmentKey(m), today, s.Title, s.Portal, quote.From, quote.Text}, "\x00")
	if h, ok := d.markup.Fragments.Get(key); ok {
		return templates.SafeHTML(h)
	}
	v := d.messageView(m, who)
	if v.Quote != nil {
		v.Quote = &quote
	}
	return templates.SafeHTML(d.fragment(key, m.ID, v))
}

// said reports whether the actor is the sender.
func said(actor ident.Actor, s chat.Sender) bool {
	return s.Kind != "agent" && s.Kind != "system" && s.ID == actor.ID
}

func reacted(actor ident.Actor, x chat.Reaction) bool {
	for _, by := range x.By {
		if by.ID == actor.ID && by.Kind != "agent" {
			return true
		}
	}
	return false
}

// quote fills in what a message answers to, as far as the reader sees it.
func (d *Door) quote(ctx context.Context, actor ident.Actor, m chat.Message, list []chat.Message, q *templates.QuoteView, who speakers) {
	var quoted *chat.Message
	for i := range list {
		if list[i].Seq == m.Target {
			quoted = &list[i]
		}
	}
	if quoted == nil {
		x, err := d.chat.Message(ctx, actor, m.ConversationID, m.Target)
		if err != nil {
			return // not for them to see
		}
		quoted = &x
	}
	q.From = who(quoted.Sender).Title
	if q.Text = "taken away"; quoted.Now.UnsaidAt.IsZero() {
		q.Text = d.gist(*quoted)
	}
}

// gistRunes bounds the line that stands for a message.
const gistRunes = 140

// gist is one line that stands for a message.
func (d *Door) gist(m chat.Message) string {
	for _, p := range m.Parts {
		if p.Text != "" {
			return a2a.Line(d.markup.Line(p.Text), gistRunes)
		}
	}
	for _, p := range m.Parts {
		switch {
		case p.Filename != "":
			return a2a.Line(p.Filename, gistRunes)
		case p.URL != "":
			return a2a.Line(p.URL, gistRunes)
		case p.Data != nil:
			return "data"
		}
	}
	return ""
}

// mark says how the work that a message ends went, when not well.
func mark(m chat.Message) string {
	if m.Sender.Kind != "agent" {
		return ""
	}
	switch m.TaskState {
	case task.Failed:
		if m.Kind == chat.Text {
			return "interrupted" // what there was of the answer is shown
		}
		return "failed"
	case task.Canceled, task.Rejected, task.InputRequired, task.AuthRequired:
		return string(m.TaskState)
	}
	return ""
}

// retry is the text that asked for work which did not come to its end, for the
// one who asked.
func (d *Door) retry(ctx context.Context, actor ident.Actor, m chat.Message, list []chat.Message) string {
	switch mark(m) {
	case "failed", "interrupted", "canceled":
	default:
		return ""
	}
	t, err := d.tasks.Get(ctx, actor, m.TaskID)
	if err != nil || t.MessageSeq < 1 {
		return ""
	}
	if ask, ok := d.asked(ctx, actor, t, list); ok && said(actor, ask.Sender) {
		return asking(ask)
	}
	return ""
}

// asking is the text of a message that is nothing but text.
func asking(m chat.Message) string {
	if len(m.Parts) != 1 {
		return ""
	}
	return m.Parts[0].Text
}

// fragmentKey names a rendered message in the state it is in.
func fragmentKey(m chat.Message) string {
	key := m.ConversationID + "/" + strconv.FormatInt(m.Seq, 10)
	n := m.Now
	if n.EditSeq == 0 && n.UnsaidAt.IsZero() && n.NewerSeq == 0 && len(n.Reactions) == 0 {
		return key
	}
	return fmt.Sprintf("%s/%d/%d/%d/%v", key, n.EditSeq, n.UnsaidAt.UnixMilli(), n.NewerSeq, n.Reactions)
}

// messageHTML renders a message for the live readers of a conversation, once
// for all of them.
func (d *Door) messageHTML(m chat.Message) string {
	key := fragmentKey(m)
	if h, ok := d.markup.Fragments.Get(key); ok {
		return h
	}
	// As somebody without rights: what one reader alone may know stays out.
	return d.fragment(key, m.ID, d.messageView(m, d.speakers(context.Background(), ident.Actor{Kind: ident.Guest})))
}

// fragment renders a message and keeps it under key.
func (d *Door) fragment(key, id string, v templates.MessageView) string {
	var buf bytes.Buffer
	// The outcome is for others too, whoever goes away.
	if err := templates.Message(v).Render(context.Background(), &buf); err != nil {
		d.log.Error("render message", "message", id, "error", err)
		return ""
	}
	d.markup.Fragments.Put(key, buf.String())
	return buf.String()
}
