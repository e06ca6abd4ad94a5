package handlers

import (
	"net/http"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

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
	// URL is told once, when the link is made.
	URL string `json:"url,omitempty"`
}

func newLinkJSON(l chat.Link) linkJSON {
	return linkJSON{ID: l.ID, Kind: l.Kind, Role: l.Role, UpToSeq: l.UpToSeq, By: l.Creator.Handle, Uses: l.Uses, MaxUses: l.MaxUses,
		CreatedAt: stamp(l.CreatedAt), ExpiresAt: stamp(l.ExpiresAt)}
}

func (d *Door) apiLinks(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	list, err := d.chat.Links(r.Context(), actor, chi.URLParam(r, "id"))
	if err != nil {
		return err
	}
	out := make([]linkJSON, len(list))
	for i, l := range list {
		out[i] = newLinkJSON(l)
	}
	writeJSON(w, http.StatusOK, map[string]any{"links": out})
	return nil
}

type linkBody struct {
	Kind    chat.LinkKind `json:"kind"`
	Role    string        `json:"role"`
	MaxUses int           `json:"max_uses"`
	Life    string        `json:"life"` // as in 24h
}

func (d *Door) apiNewLink(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	var in linkBody
	if err := decode(w, r, &in); err != nil {
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
	j.URL = d.portal.linkURL(l.Kind, secret)
	writeJSON(w, http.StatusCreated, j)
	return nil
}

func (d *Door) apiDropLink(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	return nothing(w, d.chat.DropLink(r.Context(), actor, chi.URLParam(r, "id"), chi.URLParam(r, "link")))
}

// apiInvitation tells what a join link leads to.
func (d *Door) apiInvitation(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	inv, err := d.chat.Invitation(r.Context(), actor, chi.URLParam(r, "secret"))
	if err != nil {
		return err
	}
	answer := map[string]any{"title": inv.Title, "role": inv.Role, "by": inv.Inviter, "members": newMembersJSON(inv.Members), "past": inv.Past, "member": inv.Member}
	if inv.Member {
		answer["conversation_id"] = inv.ConversationID
	}
	writeJSON(w, http.StatusOK, answer)
	return nil
}

func (d *Door) apiJoin(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	c, err := d.chat.JoinByLink(r.Context(), actor, chi.URLParam(r, "secret"))
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, newConversationJSON(c))
	return nil
}

// apiShared shows what a read link shows. Its secret is the right: the caller
// does not count.
func (d *Door) apiShared(w http.ResponseWriter, r *http.Request, _ ident.Actor) error {
	before, err := number(r, "before", 0)
	if err != nil {
		return err
	}
	limit, err := number(r, "limit", 50)
	if err != nil {
		return err
	}
	secret := chi.URLParam(r, "secret")
	s, err := d.chat.Shared(r.Context(), secret, before, int(limit))
	if err != nil {
		return err
	}
	unlisted(w)
	for i := range s.Messages {
		s.Messages[i].Parts = sharedParts(secret, s.Messages[i].Parts)
	}
	writeJSON(w, http.StatusOK, map[string]any{"title": s.Title, "by": s.By, "shared_at": stamp(s.SharedAt), "members": newMembersJSON(s.Members),
		"messages": newMessagesJSON(s.Messages), "earlier_seq": s.EarlierSeq})
	return nil
}

// unlisted keeps an answer out of search engines and of what browsers tell
// other sites: its address is a secret.
func unlisted(w http.ResponseWriter) {
	w.Header().Set("X-Robots-Tag", "noindex, nofollow")
	w.Header().Set("Referrer-Policy", "no-referrer")
}

// sharedParts lead to files by the read link.
func sharedParts(secret string, parts []task.Part) []task.Part {
	out := make([]task.Part, len(parts))
	for i, p := range parts {
		p.URL = sharedFile(secret, p.URL)
		out[i] = p
	}
	return out
}

// sharedFile is the address of a file of the portal by a read link; other
// addresses stay as they are.
func sharedFile(secret, url string) string {
	if _, ours := ownFile(strings.TrimSuffix(url, previewEnd)); ours {
		return sharedPath + secret + url
	}
	return url
}
