package handlers

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"agentsite/internal/chat"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/task"
	"agentsite/templates"
)

const (
	chatsPage     = 30
	agentsOffered = 30
)

// chats lists the actor's conversations.
func (d *Door) chats(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	if actor.ID == "" && !d.accounts.Guests() {
		return fault.New(fault.Unauthenticated, "Log in to see your conversations.")
	}
	return d.showChats(w, r, actor, http.StatusOK, templates.ChatsView{Agent: r.URL.Query().Get("agent")})
}

func (d *Door) showChats(w http.ResponseWriter, r *http.Request, actor ident.Actor, code int, v templates.ChatsView) error {
	before, err := parsePoint(r.URL.Query().Get("cursor"))
	if err != nil {
		return err
	}
	list, err := d.chat.List(r.Context(), actor, before, chatsPage)
	if err != nil {
		return err
	}
	for _, c := range list {
		v.Conversations = append(v.Conversations, d.chatRow(actor, c))
	}
	if len(list) == chatsPage {
		last := list[len(list)-1]
		v.MoreHref = "/chat?cursor=" + pointCursor(chat.Point{At: last.UpdatedAt, ID: last.ID})
	}
	offered, err := d.hub.Search(r.Context(), actor, hub.Query{Live: []string{string(hub.Alive)}, Limit: agentsOffered})
	if err != nil {
		return err
	}
	for _, res := range offered.Results {
		v.Agents = append(v.Agents, templates.AgentOption{Ref: res.Agent.Handle(), Title: res.Agent.Title})
	}
	return d.render(w, r, code, templates.Chats(d.frame(r, actor, "Chats"), v))
}

func (d *Door) chatRow(actor ident.Actor, c chat.Conversation) templates.ConversationRow {
	row := templates.ConversationRow{ID: c.ID, Title: c.Title, Snippet: d.markup.Line(c.Snippet), Time: moment(c.UpdatedAt),
		Unread: int(max(0, c.LastSeq-c.ReadSeq)), Working: len(d.chat.Running(c.ID)) > 0}
	for _, m := range c.Members {
		if !isMe(actor, m) {
			row.Members = append(row.Members, templates.MemberMark{Name: m.Handle, Person: m.Kind != "agent"})
		}
	}
	return row
}

// isMe reports whether a member of a conversation is the actor.
func isMe(actor ident.Actor, m chat.Member) bool { return m.Kind != "agent" && m.ID == actor.ID }

// startChat opens a conversation with the named agents and says the first
// thing in it.
func (d *Door) startChat(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	in, err := form(w, r)
	if err != nil {
		return err
	}
	agents, text := values(in["agent"]), lines(in.Get("text"))
	fresh := actor.ID == ""
	actor, err = d.asGuest(w, r, actor)
	var c chat.Conversation
	if err == nil {
		c, err = d.openChat(r.Context(), actor, agents, text)
	}
	if err != nil {
		return d.startAgain(w, r, actor, agents, text, err)
	}
	if tool := in.Get("tool"); tool != "" && len(agents) == 1 && text == "" {
		query := url.Values{"agent": agents, "tool": {tool}}
		if fresh {
			query.Set("first", "1")
		}
		return see(w, r, "/chat/"+c.ID+"?"+query.Encode()+"#tool")
	}
	if fresh {
		return see(w, r, "/chat/"+c.ID+"?"+freshGuest)
	}
	return see(w, r, "/chat/"+c.ID)
}

// freshGuest marks the first look at a conversation of a visitor who just got
// a session: if it did not come back, the browser keeps no cookies.
const freshGuest = "first=1"

func (d *Door) openChat(ctx context.Context, actor ident.Actor, agents []string, text string) (chat.Conversation, error) {
	c, err := d.chat.Create(ctx, actor, "", agents)
	if err != nil || strings.TrimSpace(text) == "" {
		return c, err
	}
	_, err = d.chat.Post(ctx, actor, c.ID, chat.Draft{ClientID: ident.NewID(), Parts: []task.Part{task.TextPart(text)}, Face: "page"})
	if err != nil {
		// Nothing was said: an empty conversation would only be in the way.
		if gone := d.chat.Delete(context.WithoutCancel(ctx), actor, c.ID); gone != nil {
			d.cfg.Log.Warn("remove an empty conversation", "conversation", c.ID, "error", gone)
		}
	}
	return c, err
}

// startAgain shows what was typed where it was most likely typed: on the
// agent's profile, or on the list of conversations.
func (d *Door) startAgain(w http.ResponseWriter, r *http.Request, actor ident.Actor, agents []string, text string, err error) error {
	messages, code, ok := d.wrong(w, err)
	if !ok {
		return err
	}
	if m := messages["members"]; m != "" {
		delete(messages, "members")
		messages["agent"] = m
	}
	if len(agents) == 1 {
		if a, aerr := d.hub.Get(r.Context(), actor, agents[0]); aerr == nil {
			return d.showAgent(w, r, actor, a, code, text, first(messages, "text", "agent", ""))
		}
	}
	return d.showChats(w, r, actor, code, templates.ChatsView{Agent: strings.Join(agents, ", "), Text: text, Errors: messages})
}

// first is the first message there is, by field.
func first(messages templates.FieldErrors, names ...string) string {
	for _, n := range names {
		if m := messages[n]; m != "" {
			return m
		}
	}
	for _, m := range messages {
		return m
	}
	return ""
}
