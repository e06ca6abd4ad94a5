package chat

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/go-chi/chi/v5"

	"agentsite/handlers/address"
	"agentsite/handlers/api"
	"agentsite/handlers/pages"
	"agentsite/handlers/pages/agents"
	"agentsite/handlers/request"
	"agentsite/handlers/respond"
	"agentsite/internal/chat"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/task"
	"agentsite/templates"
)

const (
	chatsPage     = 30
	pinnedShown   = 50
	agentsOffered = 30
)

// chats shows the actor's conversations, the pinned ones first. ?archived=1 shows the archived ones
// instead, ?q= searches messages.
func (d *Lists) chats(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	if actor.ID == "" && !d.accounts.Guests() {
		return fault.New(fault.Unauthenticated, "Log in to see your conversations.")
	}
	q := r.URL.Query()
	v := templates.ChatsView{Agent: q.Get("agent"), Archived: q.Get("archived") == "1", Choose: q.Get("choose") == "1",
		New: q.Get("new") == "1", Query: strings.TrimSpace(q.Get("q")), Text: agents.HandedOver(r)}
	if v.Query != "" && actor.ID != "" {
		return d.showFound(w, r, actor, v)
	}
	return d.showChats(w, r, actor, http.StatusOK, v)
}

// showFound shows the messages in the actor's conversations that contain the search words.
func (d *Lists) showFound(w http.ResponseWriter, r *http.Request, actor ident.Actor, v templates.ChatsView) error {
	before, err := request.ParseCursor(r.URL.Query().Get("cursor"))
	if err != nil {
		return err
	}
	list, more, err := d.chat.Search(r.Context(), actor, v.Query, before, api.Searched)
	if err != nil {
		messages, code, ok := pages.FieldErrors(w, err)
		if !ok {
			return err
		}
		v.Errors = messages
		return d.showChats(w, r, actor, code, v)
	}
	who := d.messages.Speakers(r.Context(), actor)
	for _, f := range list {
		m := f.Message
		s := who(m.Sender)
		v.Found = append(v.Found, templates.FoundMessage{Href: address.MessagePath(f.ConversationID, m.Seq),
			Title: f.Title, Sender: s,
			Snippet: d.markup.Line(f.Snippet), Time: pages.FormatMoment(m.CreatedAt)})
	}
	if c := api.FoundCursor(list, more); c != "" {
		v.MoreHref = "/chat?" + url.Values{"q": {v.Query}, "cursor": {c}}.Encode()
	}
	return d.site.Render(w, r, http.StatusOK, templates.Chats(d.site.Frame(r, actor, "Search in chats"), v))
}

func (d *Lists) showChats(w http.ResponseWriter, r *http.Request, actor ident.Actor, code int,
	v templates.ChatsView) error {
	ctx := r.Context()
	f := chat.RoomFilter{Archived: v.Archived, Limit: chatsPage}
	if v.Choose {
		f.Limit = chat.MaxLeft
	}
	var err error
	if v.Invitations, err = d.invitations(ctx, actor); err != nil {
		return err
	}
	if f.Before, err = request.ParseCursor(r.URL.Query().Get("cursor")); err != nil {
		return err
	}
	if f.Before.ID == "" && !v.Archived && !v.Choose {
		pinned, err := d.chat.List(ctx, actor, chat.RoomFilter{Pinned: true, Limit: pinnedShown})
		if err != nil {
			return err
		}
		for _, c := range pinned {
			if !c.Mine.Archived {
				v.Pinned = append(v.Pinned, d.chatRow(actor, c))
			}
		}
	}
	list, err := d.chat.List(ctx, actor, f)
	if err != nil {
		return err
	}
	for _, c := range list {
		if !c.Mine.Pinned || v.Archived || v.Choose {
			v.Conversations = append(v.Conversations, d.chatRow(actor, c))
		}
	}
	if len(list) == f.Limit {
		last := list[len(list)-1]
		more := url.Values{"cursor": {request.FormatCursor(chat.Point{At: last.UpdatedAt, ID: last.ID})}}
		if v.Archived {
			more.Set("archived", "1")
		}
		if v.Choose {
			more.Set("choose", "1")
		}
		v.MoreHref = "/chat?" + more.Encode()
	}
	if a, ok := d.site.FindAssistant(ctx, actor); ok {
		v.Assistant = d.site.TextGoesTo(a)
	}
	offered, err := d.hub.Search(ctx, actor, hub.Query{Live: []string{string(hub.Alive)}, Limit: agentsOffered})
	if err != nil {
		return err
	}
	for _, res := range offered.Results {
		v.Agents = append(v.Agents, templates.AgentOption{Ref: res.Agent.Handle(), Title: res.Agent.Title})
	}
	return d.site.Render(w, r, code, templates.Chats(d.site.Frame(r, actor, "Chats"), v))
}

func (d *Lists) invitations(ctx context.Context, actor ident.Actor) ([]templates.InvitationRow, error) {
	var out []templates.InvitationRow
	if !actor.IsPerson() {
		return out, nil
	}
	list, err := d.chat.Contacts.List(ctx, actor)
	for _, x := range list {
		out = append(out, templates.InvitationRow{ID: x.ConversationID, Title: x.Title, Inviter: x.Inviter,
			Members: x.Members, Time: pages.FormatMoment(x.CreatedAt)})
	}
	return out, err
}

func (d *Lists) chatRow(actor ident.Actor, c chat.Conversation) templates.ConversationRow {
	row := templates.ConversationRow{ID: c.ID, Title: c.Title, Snippet: d.markup.Line(c.Snippet),
		Time:   pages.FormatMoment(c.UpdatedAt),
		Unread: c.Unread, Most: c.Unread >= chat.MaxUnread, Private: c.Private(),
		Reader: c.Mine.Role == chat.RoleReader, Working: len(d.chat.Running(c.ID)) > 0}
	for _, m := range c.Members {
		if !api.IsMe(actor, m) {
			row.Members = append(row.Members, templates.MemberMark{Name: m.Handle, Person: m.Kind != "agent"})
		}
	}
	return row
}

// startChat creates a conversation with the named agents, posts the first message and redirects to the
// conversation. A guest gets a session first. If the form names no members, the assistant answers the message, as the
// form says; without a message the conversation has no other member yet.
func (d *Lists) startChat(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	in, err := request.Form(w, r)
	if err != nil {
		return err
	}
	agents, text := request.SplitValues(in["agent"]), request.NormalizeLines(in.Get("text"))
	if len(agents) == 0 && strings.TrimSpace(text) != "" {
		if a, ok := d.site.FindAssistant(r.Context(), actor); ok {
			agents = []string{a.Name}
		}
	}
	fresh := actor.ID == ""
	actor, err = d.sessions.EnsureGuest(w, r, actor)
	var c chat.Conversation
	if err == nil {
		c, err = d.openChat(r.Context(), actor, in.Get("title"), agents,
			chat.Draft{ClientID: ident.NewID(), Parts: []task.Part{task.TextPart(text)}, Face: "page",
				Told: in["told"], Share: chat.Share(in.Get("share")), MustTell: true})
	}
	if err != nil {
		return d.startAgain(w, r, actor, in.Get("title"), agents, text, err)
	}
	if tool := in.Get("tool"); tool != "" && len(agents) == 1 && text == "" {
		query := url.Values{"agent": agents, "tool": {tool}}
		if fresh {
			query.Set("first", "1")
		}
		return respond.SeeOther(w, r, "/chat/"+c.ID+"?"+query.Encode()+"#tool")
	}
	if fresh {
		return respond.SeeOther(w, r, "/chat/"+c.ID+"?"+freshGuest)
	}
	return respond.SeeOther(w, r, "/chat/"+c.ID)
}

// freshGuest is in the query of the first page that a guest with a new session opens. If that request has
// no session cookie, the browser keeps no cookies.
const freshGuest = "first=1"

func (d *Lists) openChat(ctx context.Context, actor ident.Actor, title string, agents []string,
	first chat.Draft) (chat.Conversation, error) {
	c, err := d.chat.Create(ctx, actor, title, agents)
	if err != nil || strings.TrimSpace(task.PlainText(first.Parts)) == "" {
		return c, err
	}
	if _, err = d.chat.Post(ctx, actor, c.ID, first); err != nil {
		// The conversation is deleted again, because the first message was refused and an empty one is
		// useless.
		if gone := d.chat.DeleteConversation(context.WithoutCancel(ctx), actor, c.ID); gone != nil {
			d.log.Warn("remove an empty conversation", "conversation", c.ID, "error", gone)
		}
	}
	return c, err
}

// startAgain shows the typed text again after an error, on the agent's profile or on the list of
// conversations. These pages also show the disclosure about texts that leave the portal, which may be the
// error.
func (d *Lists) startAgain(w http.ResponseWriter, r *http.Request, actor ident.Actor, title string, agents []string,
	text string, err error) error {
	messages, code, ok := pages.FieldErrors(w, err)
	if !ok {
		return err
	}
	if m := messages["members"]; m != "" {
		delete(messages, "members")
		messages["agent"] = m
	}
	v := templates.ChatsView{Title: title, Agent: strings.Join(agents, ", "), Text: text, Errors: messages}
	if messages["told"] != "" {
		delete(messages, "told")
		for _, name := range agents {
			if a, err := d.hub.Get(r.Context(), actor, name); err == nil && d.hub.TextGoesTo(a) != "" {
				v.GoesTo = append(v.GoesTo, templates.DisclosureView{Agent: a.Handle(), Title: a.Title,
					Host: d.hub.TextGoesTo(a)})
			}
		}
		return d.showChats(w, r, actor, code, v)
	}
	if len(agents) == 1 && title == "" {
		if a, aerr := d.hub.Get(r.Context(), actor, agents[0]); aerr == nil {
			return d.profile.ShowAgent(w, r, actor, a, code, text, pages.FirstError(messages, "text", "agent", ""))
		}
	}
	return d.showChats(w, r, actor, code, v)
}

// declareRoutes declares the routes of the list of conversations and the links to them.
func (d *Lists) declareRoutes(r chi.Router) {
	r.Get("/chat", d.site.Page(request.Listing(d.chats)))
	r.Post("/chat", d.site.Page(d.startChat))
	r.Post("/chat/leave", d.site.Page(d.leaveChats))
	r.Post("/chat/{id}/accept", d.site.Page(d.acceptInvitation))
	r.Post("/chat/{id}/decline", d.site.Page(d.declineInvitation))
	r.Get("/join/{secret}", d.site.Page(d.join))
	r.Post("/join/{secret}", d.site.Page(d.joinChat))
	r.Get("/shared/{secret}", d.site.Page(request.Listing(d.sharedChat)))
}
