package handlers

import (
	"net/http"
	"slices"
	"strings"

	"github.com/go-chi/chi/v5"

	"agentsite/internal/chat"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/task"
	"agentsite/templates"
)

// transcriptPage is how many messages a page shows.
const transcriptPage = 50

// again is what a conversation's page tells of a form that did not go through.
type again struct {
	code        int
	text, wrong string // of the composer
	flash       string // of any other form
	tool        toolForm
}

// conversation shows the newest messages, or those before ?before=SEQ, and
// notes that the reader has seen them.
func (d *Door) conversation(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	return d.showConversation(w, r, actor, again{code: http.StatusOK})
}

func (d *Door) showConversation(w http.ResponseWriter, r *http.Request, actor ident.Actor, a again) error {
	ctx, id := r.Context(), chi.URLParam(r, "id")
	if actor.ID == "" && r.URL.Query().Get("first") != "" {
		return fault.New(fault.Forbidden, "Your browser did not keep this portal's cookie, and without it a visitor's conversation cannot be found again. Allow cookies for this site, or log in.")
	}
	before, err := number(r, "before", 0)
	if err != nil {
		return err
	}
	c, err := d.chat.Get(ctx, actor, id)
	if err != nil {
		return err
	}
	// Before the messages: an answer that ends in between is then among them,
	// and never in neither.
	running := d.chat.Running(c.ID)
	list, err := d.chat.Messages(ctx, actor, c.ID, 0, before, transcriptPage, true)
	if err != nil {
		return err
	}
	v := templates.ConversationView{ID: c.ID, Title: c.Title, ClientID: ident.NewID(), Text: a.text, Error: a.wrong, CanInvite: len(c.Members) < chat.MaxMembers}
	who := d.speakers(ctx, actor)
	said := false
	for _, m := range list {
		mv := d.messageView(m, who)
		mv.Mine = m.Sender.Kind != "agent" && m.Sender.ID == actor.ID
		mv.Retry = d.retry(ctx, actor, m, list)
		said = said || mv.Mine && m.Kind == chat.Text
		v.Messages = append(v.Messages, mv)
	}
	if len(list) > 0 {
		if first := list[0].Seq; first > 1 {
			v.EarlierSeq = int(first)
		}
		v.LastSeq = int(list[len(list)-1].Seq)
	}
	answered := make(map[string]bool)
	for _, m := range list {
		if m.Sender.Kind == "agent" && m.TaskState.Terminal() {
			answered[m.TaskID] = true
		}
	}
	slices.SortFunc(running, func(x, y chat.Running) int { return strings.Compare(x.ID, y.ID) })
	for _, t := range running {
		if !answered[t.ID] {
			v.Tasks = append(v.Tasks, templates.TaskView{ID: t.ID, Agent: t.Agent, Title: who(chat.Sender{Kind: "agent", Handle: t.Agent}).Title, State: string(t.State), Text: t.Text})
		}
	}
	d.members(&v, actor, c, who, said)
	if r.Method == http.MethodGet {
		seq, err := number(r, "form", 0)
		if err != nil {
			return err
		}
		a.tool = toolForm{agent: r.URL.Query().Get("agent"), tool: r.URL.Query().Get("tool"), seq: seq}
	}
	d.tools(ctx, actor, &v, c, a.tool)
	if len(list) == 0 {
		for _, m := range c.Agents() {
			if agent, err := d.hub.Get(ctx, actor, m.Handle); err == nil {
				v.Examples = append(v.Examples, examples(agent, 3-len(v.Examples))...)
			}
		}
	}
	if r.Method == http.MethodGet && before == 0 {
		if err := d.chat.Read(ctx, actor, c.ID, int64(v.LastSeq)); err != nil {
			d.cfg.Log.Warn("note what was read", "conversation", c.ID, "error", err)
		}
	}
	title := c.Title
	if title == "" {
		title = "Conversation"
	}
	p := d.frame(r, actor, title)
	if a.flash != "" {
		p.Flash, p.FlashKind = a.flash, "error"
	}
	return d.render(w, r, a.code, templates.Conversation(p, v))
}

// members fills in who is in the conversation and, until the reader has said
// something, where the text of whom goes.
func (d *Door) members(v *templates.ConversationView, actor ident.Actor, c chat.Conversation, who speakers, said bool) {
	owner := slices.ContainsFunc(c.Members, func(m chat.Member) bool { return isMe(actor, m) && m.Role == "owner" })
	v.CanDelete = !slices.ContainsFunc(c.Members, func(m chat.Member) bool { return m.Kind != "agent" && !isMe(actor, m) })
	for _, m := range c.Members {
		s := who(chat.Sender{Kind: m.Kind, ID: m.ID, Handle: m.Handle})
		me := isMe(actor, m)
		if me {
			v.Me = m.Handle
		}
		v.Members = append(v.Members, templates.Member{Ref: s.Ref, Title: s.Title, Handle: s.Handle, Person: s.Person, Me: me,
			Provenance: s.Provenance, CanRemove: !me && (m.Kind == "agent" || owner)})
		if m.Remote != "" && !said {
			v.Remote = append(v.Remote, templates.RemoteNotice{Agent: s.Title, Host: m.Remote})
		}
	}
}

// say posts to a conversation. The form's client id makes sending it twice
// harmless.
func (d *Door) say(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	in, err := form(w, r)
	if err != nil {
		return err
	}
	id, text, client := chi.URLParam(r, "id"), lines(in.Get("text")), in.Get("client_id")
	if to := in.Get("to"); to != "" {
		// An answer among several agents has to say whom it is for.
		if c, err := d.chat.Get(r.Context(), actor, id); err == nil && len(c.Agents()) > 1 {
			text = "@" + to + " " + text
		}
	}
	if client == "" {
		client = ident.NewID()
	}
	_, err = d.chat.Post(r.Context(), actor, id, chat.Draft{ClientID: client, Parts: []task.Part{task.TextPart(text)}, Face: "page"})
	if err == nil {
		return see(w, r, "/chat/"+id)
	}
	messages, code, ok := d.wrong(w, err)
	if !ok {
		return err
	}
	return d.conversationAgain(w, r, actor, again{code: code, text: text, wrong: first(messages, "text", "parts", "")}, err)
}

// conversationAgain shows the conversation with what went wrong, or err to
// those who cannot see it.
func (d *Door) conversationAgain(w http.ResponseWriter, r *http.Request, actor ident.Actor, a again, err error) error {
	if _, gone := d.chat.Get(r.Context(), actor, chi.URLParam(r, "id")); gone != nil {
		return gone
	}
	return d.showConversation(w, r, actor, a)
}

// roomForm answers one of the small forms of a conversation: next when it went
// through, else the conversation with what was wrong.
func (d *Door) roomForm(w http.ResponseWriter, r *http.Request, actor ident.Actor, err error, next string) error {
	if err == nil {
		return see(w, r, next)
	}
	messages, code, ok := d.wrong(w, err)
	if !ok {
		return err
	}
	return d.conversationAgain(w, r, actor, again{code: code, flash: first(messages, "")}, err)
}

func (d *Door) stopChat(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	id := chi.URLParam(r, "id")
	_, err := d.stop(r, actor, id)
	return d.roomForm(w, r, actor, err, "/chat/"+id)
}

func (d *Door) renameChat(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	in, err := form(w, r)
	if err != nil {
		return err
	}
	id := chi.URLParam(r, "id")
	_, err = d.chat.Rename(r.Context(), actor, id, in.Get("title"))
	return d.roomForm(w, r, actor, err, "/chat/"+id)
}

func (d *Door) inviteMember(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	in, err := form(w, r)
	if err != nil {
		return err
	}
	id := chi.URLParam(r, "id")
	_, err = d.chat.Invite(r.Context(), actor, id, strings.TrimSpace(in.Get("member")))
	return d.roomForm(w, r, actor, err, "/chat/"+id)
}

func (d *Door) removeMember(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	in, err := form(w, r)
	if err != nil {
		return err
	}
	id := chi.URLParam(r, "id")
	err = d.chat.Remove(r.Context(), actor, id, in.Get("member"))
	return d.roomForm(w, r, actor, err, "/chat/"+id)
}

func (d *Door) leaveChat(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	err := d.chat.Delete(r.Context(), actor, chi.URLParam(r, "id"))
	return d.roomForm(w, r, actor, err, "/chat")
}

func (d *Door) deleteChat(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	err := d.chat.Delete(r.Context(), actor, chi.URLParam(r, "id"))
	return d.roomForm(w, r, actor, err, "/chat")
}
