package handlers

import (
	"bytes"
	"context"
	"encoding/json"
	"strconv"
	"strings"

	"agentsite/internal/chat"
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
			return templates.Sender{Ref: s.Handle, Title: s.Handle, Handle: s.Handle, Person: true, Provenance: templates.Provenance{Verified: true}}
		}
		if v, ok := known[s.Handle]; ok {
			return v
		}
		v := templates.Sender{Ref: s.Handle, Title: s.Handle, Handle: s.Handle, Provenance: templates.Provenance{Verified: true}}
		// One that was removed, or is private to somebody else, keeps its handle.
		if a, err := d.hub.Get(ctx, actor, s.Handle); err == nil && (s.ID == "" || a.ID == s.ID) {
			v.Title, v.Provenance = a.Title, provenance(a)
		}
		known[s.Handle] = v
		return v
	}
}

// messageView is a message as every reader sees it; Mine and Retry, which
// depend on the reader, are left out.
func (d *Door) messageView(m chat.Message, who speakers) templates.MessageView {
	v := templates.MessageView{ID: m.ID, Seq: int(m.Seq), Time: moment(m.CreatedAt), TaskID: m.TaskID, ChatID: m.ConversationID}
	v.Mark = mark(m)
	if m.Kind == chat.Event && v.Mark == "" {
		v.Event = d.event(m, who)
		return v
	}
	v.Sender = who(m.Sender)
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
				v.FormHref = "/chat/" + m.ConversationID + "?form=" + strconv.FormatInt(m.Seq, 10) + "#tool"
				continue
			}
		}
		d.part(&v, p)
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

// part adds one piece of content to a message.
func (d *Door) part(v *templates.MessageView, p task.Part) {
	switch {
	case p.URL != "":
		v.Body += d.markup.Link(p.URL, p.Filename)
	case p.Data != nil:
		if call, ok := toolPart(p.Data); ok {
			v.Data = append(v.Data, call)
			return
		}
		label := p.MediaType
		if label == "" {
			label = "application/json"
		}
		var pretty bytes.Buffer
		// Indenting deep data grows it by the square of its depth.
		if depth(p.Data) > maxDataDepth || json.Indent(&pretty, p.Data, "", "  ") != nil {
			pretty.Reset()
			pretty.Write(p.Data)
		}
		v.Data = append(v.Data, templates.DataPart{Label: label, Code: pretty.String()})
	case p.Raw != nil:
		name := p.Filename
		if name == "" {
			name = "file"
		}
		v.Data = append(v.Data, templates.DataPart{Label: p.MediaType, Code: name + ", " + whole(int64(len(p.Raw))) + " bytes. It can be had through the API."})
	default:
		v.Body += d.markup.Message(p.Text)
	}
}

// maxDataDepth is how deep data may nest to be shown indented.
const maxDataDepth = 32

// depth bounds from above how deep JSON nests; brackets in its texts count.
func depth(b []byte) int {
	at, most := 0, 0
	for _, c := range b {
		switch c {
		case '{', '[':
			at++
			most = max(most, at)
		case '}', ']':
			at--
		}
	}
	return most
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
	for _, ask := range list {
		if ask.Seq == t.MessageSeq {
			return asking(ask)
		}
	}
	older, err := d.chat.Messages(ctx, actor, m.ConversationID, t.MessageSeq-1, t.MessageSeq+1, 1, false)
	if err != nil || len(older) == 0 {
		return ""
	}
	return asking(older[0])
}

// asking is the text of a message that is nothing but text.
func asking(m chat.Message) string {
	if len(m.Parts) != 1 {
		return ""
	}
	return m.Parts[0].Text
}

// messageHTML renders a message for the sockets of a conversation, once for
// all of its readers.
func (d *Door) messageHTML(m chat.Message) string {
	key := m.ConversationID + "/" + strconv.FormatInt(m.Seq, 10)
	if h, ok := d.markup.Fragments.Get(key); ok {
		return h
	}
	ctx := context.Background() // the outcome is for others too, whoever goes away
	var buf bytes.Buffer
	// As somebody without rights: what one reader alone may know stays out.
	v := d.messageView(m, d.speakers(ctx, ident.Actor{Kind: ident.Guest}))
	if err := templates.Message(v).Render(ctx, &buf); err != nil {
		d.cfg.Log.Error("render message", "message", m.ID, "error", err)
		return ""
	}
	d.markup.Fragments.Put(key, buf.String())
	return buf.String()
}
