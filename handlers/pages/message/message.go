// Package message renders messages of conversations as HTML, for pages, frames
// and live delivery.
package message

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"

	"agentsite/handlers/address"
	"agentsite/handlers/markup"
	"agentsite/handlers/pages"
	"agentsite/internal/a2a"
	"agentsite/internal/chat"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/library"
	"agentsite/internal/task"
	"agentsite/templates"
)

// Renderer renders messages, and caches the result for all readers who see a message alike. Create it with New.
type Renderer struct {
	hub     *hub.Service
	library *library.Service // nil for none
	site    *pages.Site
	markup  *markup.Renderer
	log     *slog.Logger
}

// New returns a Renderer of messages. files may be nil.
func New(agents *hub.Service, files *library.Service, site *pages.Site, renderer *markup.Renderer, log *slog.Logger) *Renderer {
	return &Renderer{hub: agents, library: files, site: site, markup: renderer, log: log}
}

// Speakers returns the sender of a message as pages show it. It caches the agents that it looked up, so
// create one for each page.
type Speakers func(chat.Sender) templates.Sender

func (d *Renderer) Speakers(ctx context.Context, actor ident.Actor) Speakers {
	known := make(map[string]templates.Sender)
	return func(s chat.Sender) templates.Sender {
		if s.Kind != "agent" {
			return templates.Sender{Ref: s.Handle, Title: s.Handle, Handle: s.Handle, Kind: s.Kind, Person: true,
				Provenance: templates.Provenance{Verified: true}}
		}
		if v, ok := known[s.Handle]; ok {
			return v
		}
		v := templates.Sender{Ref: s.Handle, Title: s.Handle, Handle: s.Handle, Kind: s.Kind,
			Provenance: templates.Provenance{Verified: true}}
		if _, portal, elsewhere := strings.Cut(s.Handle, "@"); elsewhere {
			v.Provenance = templates.Provenance{Portal: portal, Live: string(hub.Unknown),
				LiveReason: "This portal shows nothing of it now."}
		}
		// An agent that was removed, or that the actor may not see, is shown with its handle only.
		if a, err := d.hub.Get(ctx, actor, s.Handle); err == nil && (s.ID == "" || a.ID == s.ID || a.Elsewhere()) {
			v.Title, v.Provenance = a.Title, d.site.Provenance(a)
		}
		known[s.Handle] = v
		return v
	}
}

// MessageView returns the view of a message without anything that depends on the reader.
func (d *Renderer) MessageView(m chat.Message, who Speakers) templates.MessageView {
	v := templates.MessageView{ID: m.ID, Seq: int(m.Seq), Time: pages.FormatMoment(m.CreatedAt), TaskID: m.TaskID,
		ChatID: m.ConversationID}
	if m.Sender.Kind == "agent" {
		v.State = string(m.TaskState)
	}
	v.Mark = Mark(m)
	if m.Kind == chat.Event && v.Mark == "" {
		v.Event, v.AsideID = d.eventText(m, who), m.AsideOf()
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
		return v // the text of an event with a mark is its reason, which is set already
	}
	asks := m.TaskState == task.InputRequired && m.Sender.Kind == "agent"
	for _, p := range m.Parts {
		if asks && p.Data != nil {
			if _, ok := AskedForm(p.Data); ok {
				v.FormHref = address.ChatPath(m.ConversationID) + "?form=" + strconv.FormatInt(m.Seq, 10) + "#tool"
				continue
			}
		}
		if t := p.Thoughts(); t != "" && m.Sender.Kind == "agent" {
			v.Thoughts += d.markup.Message(t)
		}
		if c, ok := p.Claim(); ok && m.Sender.Kind == "agent" {
			v.Claim = claimWords(c)
		}
		d.Part(&v.Body, &v.Data, &v.Files, p)
	}
	v.YesNo = asks && v.FormHref == "" && strings.Contains(strings.ToLower(task.PlainText(m.Parts)), yesAsked)
	if v.YesNo {
		v.Standing = standingAnswers(task.PlainText(m.Parts))
	}
	if v.YesNo || v.FormHref != "" {
		v.Reason = "" // the question itself states the reason
	}
	return v
}

// claimWords describes the claimed cost of an answer.
func claimWords(c task.Claim) string {
	var list []string
	if c.Cost != "" {
		cost := c.Cost
		if strings.Contains(cost, ".") {
			cost = strings.TrimRight(strings.TrimRight(cost, "0"), ".")
		}
		list = append(list, cost+" "+c.Currency)
	}
	if n := c.InputTokens + c.OutputTokens; n > 0 {
		list = append(list, pages.FormatCounted(int(n), "token", "tokens"))
	}
	return strings.Join(list, ", ")
}

// yesAsked is the lower-case phrase by which an agent asks for a yes or no; the page then shows buttons.
const yesAsked = "answer yes"

// standingAnswers returns the answers for all later calls that a question of a prompt agent names in quotes.
func standingAnswers(text string) (out []string) {
	text = strings.ToLower(text)
	for _, a := range []string{"Always here", "Always", "Never"} {
		if strings.Contains(text, "“"+strings.ToLower(a)+"”") {
			out = append(out, a)
		}
	}
	return out
}

func (d *Renderer) eventText(m chat.Message, who Speakers) string {
	text := strings.TrimSpace(task.PlainText(m.Parts))
	if m.Sender.Kind == "agent" {
		if text == "" {
			text = m.Reason
		}
		text = who(m.Sender).Title + ": " + text
	}
	return text
}

// RowHTML returns a message as HTML and caches it. The cache key contains the names of its sender and
// quote, which may differ between readers, and the day today.
// version says which answer to its question the message is, 0 for an only one.
func (d *Renderer) RowHTML(m chat.Message, quote templates.QuoteView, version int, today string,
	who Speakers) templates.SafeHTML {
	s := who(m.Sender)
	key := strings.Join([]string{fragmentKey(m), today, s.Title, s.Portal, quote.From, quote.Text,
		strconv.Itoa(version)}, "\x00")
	if h, ok := d.markup.Fragments.Get(key); ok {
		return templates.SafeHTML(h)
	}
	v := d.MessageView(m, who)
	if v.Quote != nil {
		v.Quote = &quote
	}
	if version > 1 {
		v.Version, v.Versions, v.Earlier = version, version, v.Again
	}
	return templates.SafeHTML(d.renderFragment(key, m.ID, v))
}

// Said reports whether the actor sent a message. An agent's message is never the actor's.
func Said(actor ident.Actor, s chat.Sender) bool {
	return s.Kind != "agent" && s.Kind != "system" && s.ID == actor.ID
}

// gistRunes bounds the result of Gist in runes.
const gistRunes = 140

// Gist returns one line that stands for a message in quotes and lists: the beginning of its text, or the
// name of its first file.
func (d *Renderer) Gist(m chat.Message) string {
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

// Mark returns a word for the state of a message's task if the task did not complete, otherwise "".
func Mark(m chat.Message) string {
	if m.Sender.Kind != "agent" {
		return ""
	}
	switch m.TaskState {
	case task.Failed:
		if m.Kind == chat.Text {
			return "interrupted" // failed after a part of the answer, which is shown
		}
		return "failed"
	case task.Rejected:
		if _, busy := m.RetryAfter(); busy {
			return "busy"
		}
		return string(m.TaskState)
	case task.Canceled, task.InputRequired, task.AuthRequired:
		return string(m.TaskState)
	}
	return ""
}

// fragmentKey returns a cache key that changes with edits, reactions and deletion of a message.
func fragmentKey(m chat.Message) string {
	key := m.ConversationID + "/" + strconv.FormatInt(m.Seq, 10)
	n := m.Now
	if n.EditSeq == 0 && n.UnsaidAt.IsZero() && n.NewerSeq == 0 && len(n.Reactions) == 0 {
		return key
	}
	return fmt.Sprintf("%s/%d/%d/%d/%v", key, n.EditSeq, n.UnsaidAt.UnixMilli(), n.NewerSeq, n.Reactions)
}

// MessageHTML returns a message as HTML for live delivery, the same for all readers, and caches it. It is
// "" if rendering fails.
func (d *Renderer) MessageHTML(m chat.Message) string {
	key := fragmentKey(m)
	if h, ok := d.markup.Fragments.Get(key); ok {
		return h
	}
	// Rendered as a guest sees it, so that nothing private to one reader reaches the others.
	v := d.MessageView(m, d.Speakers(context.Background(), ident.Actor{Kind: ident.Guest}))
	v.Filed = v.Gone == "" && HasFiles(m)
	return d.renderFragment(key, m.ID, v)
}

// HasFiles reports whether a message of an agent has files of this portal.
func HasFiles(m chat.Message) bool {
	return m.Sender.Kind == "agent" && slices.ContainsFunc(m.Parts, func(p task.Part) bool {
		_, ours := OwnFile(p.URL)
		return ours
	})
}

// LibraryOwners returns the ids of the persons into whose libraries the agent wrote in the task of its message. The
// page of each of them shows more of the message than those of other readers, who must not learn of it.
func (d *Renderer) LibraryOwners(ctx context.Context, m chat.Message) ([]string, error) {
	if d.library == nil || m.Sender.Kind != "agent" || !m.Now.UnsaidAt.IsZero() {
		return []string{}, nil
	}
	return d.library.OwnersOf(ctx, m.TaskID)
}

// renderFragment renders a view and caches the HTML under key. It returns "" and logs the error if that
// fails.
func (d *Renderer) renderFragment(key, id string, v templates.MessageView) string {
	var buf bytes.Buffer
	// The result is shared by several clients, so no client's context is used.
	if err := templates.Message(v).Render(d.site.WithFaces(context.Background()), &buf); err != nil {
		d.log.Error("render message", "message", id, "error", err)
		return ""
	}
	d.markup.Fragments.Put(key, buf.String())
	return buf.String()
}
