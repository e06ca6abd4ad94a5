package api

import (
	"net/http"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"agentsite/handlers/address"
	"agentsite/handlers/files"
	"agentsite/handlers/pages/message"
	"agentsite/handlers/request"
	"agentsite/handlers/respond"
	"agentsite/internal/chat"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/task"
)

type linkJSON struct {
	ID        string        `json:"id"`
	Kind      chat.LinkKind `json:"kind"`
	Role      string        `json:"role,omitempty"`
	UpToSeq   int64         `json:"up_to_seq,omitempty"`
	By        string        `json:"by"`
	Uses      int           `json:"uses"`
	MaxUses   int           `json:"max_uses,omitempty"`
	CreatedAt string        `json:"created_at"`
	ExpiresAt string        `json:"expires_at"`
	// URL contains the secret, so it is set only in the answer that creates the link.
	URL string `json:"url,omitempty"`
}

func newLinkJSON(l chat.Link) linkJSON {
	return linkJSON{ID: l.ID, Kind: l.Kind, Role: l.Role, UpToSeq: l.UpToSeq, By: l.Creator.Handle, Uses: l.Uses,
		MaxUses: l.MaxUses, CreatedAt: respond.FormatTime(l.CreatedAt), ExpiresAt: respond.FormatTime(l.ExpiresAt)}
}

func (d *chatAPI) apiLinks(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	list, err := d.chat.Links(r.Context(), actor, chi.URLParam(r, "id"))
	if err != nil {
		return err
	}
	out := make([]linkJSON, len(list))
	for i, l := range list {
		out[i] = newLinkJSON(l)
	}
	respond.JSON(w, http.StatusOK, map[string]any{"links": out})
	return nil
}

type linkBody struct {
	Kind    chat.LinkKind `json:"kind"`
	Role    string        `json:"role"`
	MaxUses int           `json:"max_uses"`
	Life    string        `json:"life"` // duration, for example 24h
}

func (d *chatAPI) apiNewLink(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	var in linkBody
	if err := request.DecodeBody(w, r, &in); err != nil {
		return err
	}
	draft := chat.LinkDraft{Kind: in.Kind, Role: in.Role, MaxUses: in.MaxUses}
	if in.Life != "" {
		life, err := time.ParseDuration(in.Life)
		if err != nil || life <= 0 {
			return fault.Field("life", "write a time like 24h")
		}
		draft.Life = life
	}
	l, secret, err := d.chat.NewLink(r.Context(), actor, chi.URLParam(r, "id"), draft)
	if err != nil {
		return err
	}
	j := newLinkJSON(l)
	j.URL = d.portal.LinkURL(l.Kind, secret)
	respond.JSON(w, http.StatusCreated, j)
	return nil
}

func (d *chatAPI) apiDropLink(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	return nothing(w, d.chat.DropLink(r.Context(), actor, chi.URLParam(r, "id"), chi.URLParam(r, "link")))
}

// apiInvitation describes the conversation of a join link before the caller joins it.
func (d *chatAPI) apiInvitation(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	inv, err := d.chat.Invitation(r.Context(), actor, chi.URLParam(r, "secret"))
	if err != nil {
		return err
	}
	answer := map[string]any{"title": inv.Title, "role": inv.Role, "by": inv.Inviter,
		"members": newMembersJSON(inv.Members), "past": inv.Past, "member": inv.Member}
	if inv.Member {
		answer["conversation_id"] = inv.ConversationID
	}
	respond.JSON(w, http.StatusOK, answer)
	return nil
}

func (d *chatAPI) apiJoin(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	c, err := d.chat.JoinByLink(r.Context(), actor, chi.URLParam(r, "secret"))
	if err != nil {
		return err
	}
	respond.JSON(w, http.StatusOK, newConversationJSON(c))
	return nil
}

// apiShared answers with the messages of a read link. The secret alone gives access, so the caller is ignored.
func (d *chatAPI) apiShared(w http.ResponseWriter, r *http.Request, _ ident.Actor) error {
	before, err := request.QueryInt(r, "before", 0)
	if err != nil {
		return err
	}
	limit, err := request.QueryInt(r, "limit", 50)
	if err != nil {
		return err
	}
	secret := chi.URLParam(r, "secret")
	s, err := d.chat.Shared(r.Context(), secret, before, int(limit))
	if err != nil {
		return err
	}
	respond.SetUnlisted(w)
	for i := range s.Messages {
		s.Messages[i].Parts = sharedParts(secret, s.Messages[i].Parts)
	}
	respond.JSON(w, http.StatusOK, map[string]any{"title": s.Title, "by": s.By,
		"shared_at": respond.FormatTime(s.SharedAt), "members": newMembersJSON(s.Members),
		"messages": newMessagesJSON(s.Messages), "earlier_seq": s.EarlierSeq})
	return nil
}

// sharedParts returns the parts with addresses of files that the read link opens.
func sharedParts(secret string, parts []task.Part) []task.Part {
	out := make([]task.Part, len(parts))
	for i, p := range parts {
		p.URL = SharedFile(secret, p.URL)
		out[i] = p
	}
	return out
}

// SharedFile returns the address at which a read link opens a file of this portal. Other addresses stay
// unchanged.
func SharedFile(secret, url string) string {
	if _, ours := message.OwnFile(strings.TrimSuffix(url, files.PreviewEnd)); ours {
		return address.SharedPath + secret + url
	}
	return url
}
