// Package embed serves the chat with an agent that other sites show in a frame.
package embed

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"

	"github.com/a-h/templ"
	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"

	"agentsite/handlers/address"
	"agentsite/handlers/live"
	"agentsite/handlers/pages"
	"agentsite/handlers/pages/message"
	"agentsite/handlers/request"
	"agentsite/handlers/respond"
	"agentsite/internal/account"
	"agentsite/internal/chat"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/task"
	"agentsite/templates"
)

// Embed serves the chat in a frame. Create it with New.
type Embed struct {
	portal   address.Portal
	accounts *account.Service
	hub      *hub.Service
	chat     *chat.Service
	live     *live.Streams
	messages *message.Renderer
	site     *pages.Site
	log      *slog.Logger
}

// New returns the chat in a frame. Its routes are declared by Routes.
func New(portal address.Portal, accounts *account.Service, agents *hub.Service, chats *chat.Service,
	streams *live.Streams,
	messages *message.Renderer, site *pages.Site, log *slog.Logger) *Embed {
	return &Embed{portal: portal, accounts: accounts, hub: agents, chat: chats, live: streams, messages: messages,
		site: site, log: log}
}

// The chat with an agent in a frame on other sites. Its user is always a visitor: these routes read no cookie and
// no token, so that a logged-in person never acts inside the page of another site, even if that page is same-site
// and the browser sends the cookie along. The frame keeps the secret of its visitor itself and sends it in a
// header. No page of another origin can do that, and it needs no third-party cookies.

// visitorHeader is the header with the secret of the frame's guest. Requests contain it, and so does the
// answer that creates the guest.
const visitorHeader = "Agentsite-Visitor"

// Routes declares the routes of the chat in a frame, which read no cookies.
func (d *Embed) Routes(r chi.Router) {
	r.Get("/agents/{name}/embed", d.embedPage)
	r.Post("/agents/{name}/embed/messages", d.embedded(d.embedSay))
	r.Post("/agents/{name}/embed/stop", d.embedded(d.embedStop))
	r.Get("/agents/{name}/embed/live", d.embedded(d.embedLive))
}

// newVisitor returns the actor for a frame that has no secret yet: a guest with an empty id.
func newVisitor(r *http.Request) ident.Actor {
	return ident.Actor{Kind: ident.Guest, Addr: request.ClientAddr(r)}
}

// embedPolicy returns the content security policy of the page in the frame: PagePolicy with the given
// origins as frame ancestors. The origins were validated when they were stored, so they cannot add a
// directive.
func embedPolicy(nonce string, origins []string) string {
	return strings.Replace(respond.PagePolicy(nonce), "frame-ancestors 'none'",
		"frame-ancestors "+strings.Join(origins, " "), 1)
}

// embedPage shows the chat page for a frame. Browsers show it only on the sites that the agent's owner
// named.
func (d *Embed) embedPage(w http.ResponseWriter, r *http.Request) {
	if err := d.showEmbed(w, r); err != nil {
		d.site.PageError(w, r, newVisitor(r), err)
	}
}

func (d *Embed) showEmbed(w http.ResponseWriter, r *http.Request) error {
	a, err := d.hub.Embeddable(r.Context(), request.PathName(r))
	if err != nil {
		return err
	}
	v := templates.EmbedView{Ref: a.Handle(), Title: a.Title, Icon: a.Icon, Provenance: d.site.Provenance(a),
		TextGoesTo: d.site.TextGoesTo(a),
		Examples:   pages.Examples(a, 3), Portal: d.portal.Name(), Href: d.portal.URL + "/agents/" + a.Name}
	v.Tagline, _ = d.site.Describe(a.Description)
	v.NoTalk, _ = d.site.NoTalk(newVisitor(r), a)
	if !d.accounts.Guests() {
		v.NoTalk = "This portal lets only people with an account talk to its agents."
	}
	nonce := respond.NewNonce()
	buf := respond.NewBuffer()
	defer respond.FreeBuffer(buf)
	if err := templates.Embed(v).Render(templ.WithNonce(r.Context(), nonce), buf); err != nil {
		return err
	}
	w.Header().Del("X-Frame-Options") // X-Frame-Options cannot list origins, and the policy replaces it
	respond.WritePageWith(w, http.StatusOK, embedPolicy(nonce, a.EmbedOrigins), buf)
	return nil
}

// embedded adapts a handler of the frame's script: it finds the agent, and sends errors in the API's
// form.
func (d *Embed) embedded(h func(w http.ResponseWriter, r *http.Request, a hub.Agent) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		a, err := d.hub.Embeddable(r.Context(), request.PathName(r))
		if err == nil {
			err = h(w, r, a)
		}
		if err != nil {
			f, code := respond.PrepareError(w, r, d.log, err)
			var b respond.ErrorBody
			b.Error.Kind, b.Error.Message, b.Error.Fields = f.Kind, f.Safe, f.Fields
			b.Error.RequestID = middleware.GetReqID(r.Context())
			respond.JSON(w, code, b)
		}
	}
}

// frameVisitor returns the guest that the secret in visitorHeader belongs to. A missing or unknown secret
// is an error.
func (d *Embed) frameVisitor(r *http.Request) (ident.Actor, error) {
	return d.accounts.AuthenticateGuest(r.Context(), r.Header.Get(visitorHeader), request.ClientAddr(r))
}

type embedSayBody struct {
	Text         string `json:"text"`
	ClientID     string `json:"client_id"`
	Conversation string `json:"conversation"`
}

type embedSaidJSON struct {
	Conversation string `json:"conversation"`
	Seq          int64  `json:"seq"`
}

// embedSay sends a message to the agent. The first message creates the guest, within the limits of the
// client's address.
func (d *Embed) embedSay(w http.ResponseWriter, r *http.Request, a hub.Agent) error {
	var in embedSayBody
	if err := request.DecodeBody(w, r, &in); err != nil {
		return err
	}
	actor, err := d.frameVisitor(r)
	if in.Conversation == "" && r.Header.Get(visitorHeader) == "" {
		var secret string
		if secret, actor, err = d.accounts.StartGuest(r.Context(), newVisitor(r)); err == nil {
			// set before the message is sent, so that a refusal does not lose the new guest
			w.Header().Set(visitorHeader, secret)
		}
	}
	if err != nil {
		return err
	}
	asked, err := d.chat.Ask(r.Context(), actor,
		chat.Ask{Agent: a.Name, Context: in.Conversation, ClientID: in.ClientID,
			Parts: []task.Part{task.TextPart(request.NormalizeLines(in.Text))}, Face: "embed"})
	if err != nil {
		return err
	}
	respond.JSON(w, http.StatusOK, embedSaidJSON{asked.ConversationID, asked.Seq})
	return nil
}

type embedStopBody struct {
	Task string `json:"task"`
}

// embedStop cancels the running answer in the frame's conversation.
func (d *Embed) embedStop(w http.ResponseWriter, r *http.Request, _ hub.Agent) error {
	var in embedStopBody
	if err := request.DecodeBody(w, r, &in); err != nil {
		return err
	}
	actor, err := d.frameVisitor(r)
	if err != nil {
		return err
	}
	if err := d.chat.StopTask(r.Context(), actor, in.Task, "Stopped before it was finished."); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// embedLive streams the frame's conversation from ?after=SEQ on, as
// server-sent events.
func (d *Embed) embedLive(w http.ResponseWriter, r *http.Request, a hub.Agent) error {
	after, err := request.QueryInt(r, "after", 0)
	if err != nil {
		return err
	}
	actor, err := d.frameVisitor(r)
	if err != nil {
		return err
	}
	ctx, stop, err := d.live.GuardedBy(r.Context(), actor, func() (ident.Actor, error) { return d.frameVisitor(r) })
	if err != nil {
		return err
	}
	defer stop()
	sub, err := d.chat.Subscribe(ctx, actor, r.URL.Query().Get("conversation"), max(after, 0))
	if err != nil {
		return err
	}
	defer sub.Close()
	events, err := respond.OpenEvents(w)
	if err != nil {
		return nil // the client has disconnected
	}
	events.Run(ctx, func(ctx context.Context) ([]byte, error) {
		u, err := sub.Next(ctx)
		if err != nil {
			return nil, err
		}
		return d.embedEvent(ctx, actor, a, u)
	})
	return nil
}

// embedEvent encodes an update for the frame, or returns nil if the frame does not show it.
func (d *Embed) embedEvent(ctx context.Context, actor ident.Actor, a hub.Agent, u chat.Update) ([]byte, error) {
	var v any
	switch {
	case u.Message != nil:
		m := *u.Message
		f := struct {
			Type   string `json:"type"`
			Seq    int64  `json:"seq"`
			TaskID string `json:"task_id,omitempty"`
			Mine   bool   `json:"mine,omitempty"`
			HTML   string `json:"html,omitempty"`
		}{Type: "message", Seq: m.Seq, Mine: message.Said(actor, m.Sender)}
		if m.Sender.Kind == "agent" {
			f.TaskID = m.TaskID
		}
		if !m.Kind.Amends() && m.Now.UnsaidAt.IsZero() {
			html, err := d.embedMessage(ctx, actor, a, m)
			if err != nil {
				return nil, err
			}
			f.HTML = html
		}
		v = f
	case u.Delta != nil:
		v = struct {
			Type   string `json:"type"`
			TaskID string `json:"task_id"`
			Offset int    `json:"offset"`
			Text   string `json:"text"`
		}{"delta", u.Delta.TaskID, u.Delta.Offset, u.Delta.Text}
	case u.Task != nil:
		v = struct {
			Type   string     `json:"type"`
			TaskID string     `json:"task_id"`
			State  task.State `json:"state"`
			Status string     `json:"status,omitempty"`
		}{"task", u.Task.ID, u.Task.State, u.Task.Status}
	default:
		return stillQuiet, nil
	}
	b, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return append(append([]byte("data: "), b...), "\n\n"...), nil
}

// stillQuiet is a comment line, which clients ignore; it keeps a silent stream open.
var stillQuiet = []byte(":\n\n")

// embedMessage renders a message for the frame. It has no links to pages of the conversation, because the
// frame's guest has no session there.
func (d *Embed) embedMessage(ctx context.Context, actor ident.Actor, a hub.Agent, m chat.Message) (string, error) {
	who := func(s chat.Sender) templates.Sender {
		return templates.Sender{Ref: a.Handle(), Title: a.Title, Handle: s.Handle, Kind: s.Kind,
			Person: s.Kind != "agent", Provenance: d.site.Provenance(a)}
	}
	v := d.messages.MessageView(m, who)
	if v.Event != "" {
		v.Reason = v.Event
	}
	if v.FormHref != "" {
		v.Reason = "It asks for something that only its page on the portal can show. Ask it there."
	}
	v.ChatID, v.FormHref, v.YesNo, v.Standing, v.Quote = "", "", false, nil, nil
	v.Mine = message.Said(actor, m.Sender)
	files := d.chat.Files.ForTask(task.Task{ConversationID: m.ConversationID, CallerKind: string(ident.Guest),
		CallerID: actor.ID, MessageSeq: m.Seq})
	for i := range v.Files {
		f := &v.Files[i]
		href, err := files.Address(ctx, f.Href)
		if err != nil {
			return "", err
		}
		f.Href, f.Preview = href, ""
	}
	var buf bytes.Buffer
	if err := templates.EmbedMessage(v).Render(ctx, &buf); err != nil {
		return "", err
	}
	return buf.String(), nil
}
