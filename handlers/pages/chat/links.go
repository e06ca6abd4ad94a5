package chat

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/go-chi/chi/v5"

	"agentsite/handlers/address"
	"agentsite/handlers/api"
	"agentsite/handlers/pages"
	"agentsite/handlers/pages/message"
	"agentsite/handlers/request"
	"agentsite/handlers/respond"
	"agentsite/internal/chat"
	"agentsite/internal/ident"
	"agentsite/templates"
)

// join shows the page of a join link, on which the reader decides to join.
func (d *Lists) join(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	return d.showJoin(w, r, actor, http.StatusOK, "")
}

func (d *Lists) showJoin(w http.ResponseWriter, r *http.Request, actor ident.Actor, code int, wrong string) error {
	secret := chi.URLParam(r, "secret")
	respond.SetUnlisted(w)
	inv, err := d.chat.Invitation(r.Context(), actor, secret)
	if err != nil {
		return err
	}
	v := templates.JoinView{Secret: secret, Title: inv.Title, Role: inv.Role, By: inv.Inviter,
		SeesPast: inv.Past != chat.PastNothing, Error: wrong}
	if inv.Member {
		v.ChatID = inv.ConversationID
	}
	for _, m := range inv.Members {
		v.Members = append(v.Members, templates.MemberMark{Name: m.Handle, Person: m.Kind != "agent"})
		if m.Remote != "" && !slices.Contains(v.GoesTo, m.Remote) {
			v.GoesTo = append(v.GoesTo, m.Remote)
		}
	}
	p := d.site.Frame(r, actor, "Join a conversation")
	p.Head = templates.NoIndex()
	return d.site.Render(w, r, code, templates.Join(p, v))
}

// joinChat makes the actor a member of the conversation of a join link. A refusal is shown on the page of
// the link.
func (d *Lists) joinChat(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	respond.SetUnlisted(w)
	c, err := d.chat.JoinByLink(r.Context(), actor, chi.URLParam(r, "secret"))
	if err == nil {
		return respond.SeeOther(w, r, address.ChatPath(c.ID))
	}
	messages, code, ok := pages.FieldErrors(w, err)
	if !ok || !actor.IsPerson() || code == http.StatusNotFound {
		return err
	}
	return d.showJoin(w, r, actor, code, pages.FirstError(messages, ""))
}

// SharedPage is the number of messages on one page of a read link; older ones are on further pages.
const SharedPage = 50

// sharedChat shows the messages of a read link. The secret in the address gives access, so no session is
// needed.
func (d *Lists) sharedChat(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	before, err := request.QueryInt(r, "before", 0)
	if err != nil {
		return err
	}
	respond.SetUnlisted(w)
	secret := chi.URLParam(r, "secret")
	s, err := d.chat.Shared(r.Context(), secret, before, SharedPage)
	if err != nil {
		return err
	}
	path := address.SharedPath + secret
	v := templates.SharedView{Title: s.Title, By: s.By, At: pages.FormatMoment(s.SharedAt)}
	if s.EarlierSeq > 0 {
		v.EarlierHref = path + "?before=" + strconv.FormatInt(s.EarlierSeq, 10)
	}
	if before > 0 {
		v.LaterHref = path
	}
	// Speakers are looked up as a guest, so that every reader of the link sees the same page.
	who := d.messages.Speakers(r.Context(), ident.Actor{Kind: ident.Guest})
	for i, m := range s.Messages {
		x := d.sharedMessage(secret, m, who)
		if x.Quote != nil {
			if j := slices.IndexFunc(s.Messages, func(q chat.Message) bool { return q.Seq == m.Target }); j >= 0 &&
				s.Messages[j].Now.UnsaidAt.IsZero() {
				x.Quote.From, x.Quote.Text = who(s.Messages[j].Sender).Title, d.messages.Gist(s.Messages[j])
			} else {
				x.Quote = nil
			}
		}
		if i == 0 || !sameDay(s.Messages[i-1].CreatedAt, m.CreatedAt) {
			x.Day = &templates.Time{Text: m.CreatedAt.UTC().Format("2 January 2006"),
				ISO: m.CreatedAt.UTC().Format("2006-01-02")}
		}
		v.Messages = append(v.Messages, x)
	}
	p := d.site.Frame(r, actor, cmp.Or(s.Title, "Shared conversation"))
	p.Head = templates.NoIndex()
	return d.site.Render(w, r, http.StatusOK, templates.Shared(p, v))
}

// sharedMessage returns a message as a read link shows it: without actions, and with files that the
// link's secret opens.
func (d *Lists) sharedMessage(secret string, m chat.Message, who message.Speakers) templates.MessageView {
	v := d.messages.MessageView(m, who)
	v.ChatID, v.TaskID, v.FormHref, v.YesNo, v.Standing, v.Reactions = "", "", "", false, nil, nil
	for i, f := range v.Files {
		if f.Preview != "" {
			v.Files[i].Preview = api.SharedFile(secret, f.Preview)
		}
		href, name, _ := strings.Cut(f.Href, "?")
		if v.Files[i].Href = api.SharedFile(secret, href); name != "" {
			v.Files[i].Href += "?" + name
		}
	}
	return v
}
