package chat

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/go-chi/chi/v5"

	"agentsite/handlers/address"
	"agentsite/handlers/api"
	"agentsite/handlers/files"
	"agentsite/handlers/pages"
	"agentsite/handlers/pages/message"
	"agentsite/handlers/request"
	"agentsite/handlers/respond"
	"agentsite/internal/chat"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/templates"
)

// again is a rejected form and its error, to show both on the conversation's page; the zero value shows
// the page alone.
type again struct {
	code  int
	draft *writing // content of the composer
	wrong string   // error about draft
	flash string   // error of any other form
	tool  toolForm
}

// conversation shows the newest messages of a conversation, those before ?before=SEQ or those around
// ?at=SEQ. If it shows the newest ones, they count as read afterwards.
func (d *Room) conversation(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	return d.showConversation(w, r, actor, again{code: http.StatusOK})
}

func (d *Room) showConversation(w http.ResponseWriter, r *http.Request, actor ident.Actor, a again) error {
	ctx, id := r.Context(), chi.URLParam(r, "id")
	if actor.ID == "" && r.URL.Query().Get("first") != "" {
		return fault.New(fault.Forbidden, "Your browser did not keep this portal's cookie, and without it a visitor's conversation cannot be found again. Allow cookies for this site, or log in.")
	}
	at := place{limit: TranscriptPage}
	if r.Method == http.MethodGet {
		var err error
		if at, err = placeOf(r); err != nil {
			return err
		}
		at.after, at.forward = 0, false
	}
	c, err := d.chat.Get(ctx, actor, id)
	if err != nil {
		return err
	}
	// The running tasks are read before the messages. A task that ends in between is then among the messages, and
	// never missing from both.
	running := d.chat.Running(c.ID)
	part, err := d.window(ctx, actor, c.ID, at)
	if err != nil {
		return err
	}
	blocked, err := d.blockedBy(r, actor)
	if err != nil {
		return err
	}
	who := d.messages.Speakers(ctx, actor)
	v := templates.ConversationView{ID: c.ID, Title: c.Title, MeKind: memberKind(actor), MaxFile: files.MaxSize(actor),
		First: part.first, Last: part.last, Begin: part.begin, End: part.end, At: at.at, ReadSeq: c.ReadSeq,
		NewestSeq: max(c.LastSeq, part.last),
		Messages:  d.rowViews(ctx, actor, part.list, who, blocked),
		Blocked:   strings.Join(slices.Sorted(maps.Values(blocked)), " ")}
	if part.end {
		// Later messages arrive over the live stream, which starts after this seq.
		v.NewestSeq = part.last
	}
	arrange(v.Messages, part.list, c.ReadSeq, at.at)
	v.Tasks = d.inTheMaking(running, part.list, who)
	if part.end && len(v.Tasks) == 0 {
		v.LastAnswer = lastAnswer(actor, part.list)
	}
	v.Beside = d.besides(ctx, actor)
	d.members(&v, actor, c, who)
	if v.Grants, err = d.grantsHere(ctx, actor, c.ID); err != nil {
		return err
	}
	if err := d.disclosures(ctx, actor, &v, c, who); err != nil {
		return err
	}
	if err := d.compose(r, actor, &v, c, a, who); err != nil {
		return err
	}
	if r.Method == http.MethodGet {
		seq, err := request.QueryInt(r, "form", 0)
		if err != nil {
			return err
		}
		a.tool = toolForm{agent: r.URL.Query().Get("agent"), tool: r.URL.Query().Get("tool"), seq: seq}
	}
	d.tools(ctx, actor, &v, c, a.tool)
	if len(part.list) == 0 {
		for _, m := range c.Agents() {
			if agent, err := d.hub.Get(ctx, actor, m.Handle); err == nil {
				v.Examples = append(v.Examples, pages.Examples(agent, 3-len(v.Examples))...)
			}
		}
	}
	if part.end && part.last > c.ReadSeq {
		if err := d.chat.Seen(ctx, actor, c.ID, part.last); err != nil {
			d.log.Warn("note what was read", "conversation", c.ID, "error", err)
		}
	}
	p := d.site.Frame(r, actor, cmp.Or(c.Title, "Conversation"))
	if a.flash != "" {
		p.Flash, p.FlashKind = a.flash, "error"
	} else if r.Method == http.MethodGet {
		p.Flash = doneText(r)
	}
	return d.site.Render(w, r, a.code, templates.Conversation(p, v))
}

// inTheMaking returns the running tasks without an answer among the messages, to show their
// progress.
func (d *Room) inTheMaking(running []chat.Running, list []chat.Message, who message.Speakers) []templates.TaskView {
	answered := make(map[string]bool)
	for _, m := range list {
		if m.Sender.Kind == "agent" && m.TaskState.Terminal() {
			answered[m.TaskID] = true
		}
	}
	slices.SortStableFunc(running, func(x, y chat.Running) int { return strings.Compare(x.ID, y.ID) })
	var out []templates.TaskView
	for _, t := range running {
		if !answered[t.ID] {
			finished, open := d.messages.Split(t.Text)
			out = append(out, templates.TaskView{ID: t.ID, Agent: t.Agent,
				Title: who(chat.Sender{Kind: "agent", Handle: t.Agent}).Title,
				State: string(t.State), Turn: t.Wait.String(), Status: t.Status,
				Finished: finished, Done: len(t.Text) - len(open), Text: open})
		}
	}
	return out
}

// memberKind returns the kind of member that an actor is in a conversation: guest or person.
func memberKind(actor ident.Actor) string {
	if actor.Kind == ident.Guest {
		return "guest"
	}
	return "person"
}

// members fills in the members of the conversation and the actor's own role.
func (d *Room) members(v *templates.ConversationView, actor ident.Actor, c chat.Conversation, who message.Speakers) {
	v.Role = api.RoleIn(actor, c)
	owner := v.Role == chat.RoleOwner
	v.CanWrite = v.Role != chat.RoleReader
	v.CanInvite = v.CanWrite && len(c.Members) < chat.MaxMembers
	v.CanDelete = !slices.ContainsFunc(c.Members,
		func(m chat.Member) bool { return m.Kind != "agent" && !api.IsMe(actor, m) })
	v.Private, v.Past, v.Settings = c.Private(), string(c.Settings.Past), answeringText(c)
	v.Pinned, v.Archived, v.Notify = c.Mine.Pinned, c.Mine.Archived, string(c.Mine.Notify)
	if c.BranchedFrom != "" {
		v.BranchedHref = address.MessagePath(c.BranchedFrom, c.BranchedSeq)
	}
	for _, m := range c.Members {
		s := who(chat.Sender{Kind: m.Kind, ID: m.ID, Handle: m.Handle})
		if m.Kind == "agent" && m.ID == c.Settings.SpeakerID {
			v.Speaker = s.Ref
		}
		me := api.IsMe(actor, m)
		if me {
			v.Me = m.Handle
		}
		v.Members = append(v.Members, templates.Member{Ref: s.Ref, Title: s.Title, Handle: s.Handle, Person: s.Person,
			Me: me, Role: m.Role, Remote: m.Remote,
			Provenance: s.Provenance, CanRemove: !me && v.CanWrite && (m.Kind == "agent" || owner), CanRole: owner &&
				!me && m.Kind == "person"})
	}
	for _, m := range c.Invited {
		v.Members = append(v.Members, templates.Member{Ref: m.Handle, Title: m.Handle, Handle: m.Handle, Person: true,
			Invited: true, CanRemove: owner || m.InviterID == actor.ID})
	}
}

// answeringText returns a sentence about which agent answers a message that addresses none.
func answeringText(c chat.Conversation) string {
	agents := c.Agents()
	if len(agents) == 0 {
		return ""
	}
	switch c.Settings.Speaks {
	case chat.SpeaksNobody:
		return "Agents answer when they are addressed, as @name."
	case chat.SpeaksTurns:
		return "Agents answer in turns; @name addresses one."
	case chat.SpeaksAgent:
		for _, m := range agents {
			if m.ID == c.Settings.SpeakerID {
				return "@" + m.Handle + " answers messages without an address."
			}
		}
	}
	if len(agents) > 1 {
		return "With several agents here, address one as @name."
	}
	return ""
}

// disclosures fills in, for each agent that sends messages to another host, the host and whether the
// actor has confirmed it.
func (d *Room) disclosures(ctx context.Context, actor ident.Actor, v *templates.ConversationView, c chat.Conversation,
	who message.Speakers) error {
	if !slices.ContainsFunc(c.Members, func(m chat.Member) bool { return m.Remote != "" }) {
		return nil
	}
	told, err := d.chat.Disclosures(ctx, actor, c.ID)
	if err != nil {
		return err
	}
	for _, x := range told {
		v.Disclosures = append(v.Disclosures,
			templates.DisclosureView{Agent: x.Agent, Title: who(chat.Sender{Kind: "agent", Handle: x.Agent}).Title,
				Host: x.Host, Share: string(x.Share), Told: !x.ToldAt.IsZero()})
	}
	return nil
}

// conversationAgain shows the conversation with the error of a form. If the actor can no longer see the
// conversation, it returns an error instead.
func (d *Room) conversationAgain(w http.ResponseWriter, r *http.Request, actor ident.Actor, a again, err error) error {
	if _, gone := d.chat.Get(r.Context(), actor, chi.URLParam(r, "id")); gone != nil {
		return gone
	}
	return d.showConversation(w, r, actor, a)
}

// roomForm answers a small form of a conversation: it redirects to next if err is nil, and otherwise
// shows the conversation with the error.
func (d *Room) roomForm(w http.ResponseWriter, r *http.Request, actor ident.Actor, err error, next string) error {
	if err == nil {
		return respond.SeeOther(w, r, next)
	}
	messages, code, ok := pages.FieldErrors(w, err)
	if !ok {
		return err
	}
	return d.conversationAgain(w, r, actor, again{code: code, flash: pages.FirstError(messages, "")}, err)
}
