package api

import (
	"net/http"

	"agentsite/handlers/request"
	"agentsite/handlers/respond"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
)

type noticeJSON struct {
	ID        string `json:"id"`
	Kind      string `json:"kind"`
	Subject   string `json:"subject"`
	Text      string `json:"text"`
	URL       string `json:"url"`
	Read      bool   `json:"read"`
	CreatedAt string `json:"created_at"`
}

func (d *accountAPI) apiNotices(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	list, err := d.hub.Notices.List(r.Context(), actor)
	if err != nil {
		return err
	}
	out := make([]noticeJSON, len(list))
	unread := 0
	for i, n := range list {
		out[i] = noticeJSON{n.ID, n.Kind, n.Subject, n.Text, d.portal.URL + n.Href, !n.ReadAt.IsZero(),
			respond.FormatTime(n.CreatedAt)}
		if n.ReadAt.IsZero() {
			unread++
		}
	}
	respond.JSON(w, http.StatusOK, map[string]any{"notices": out, "unread": unread, "next_cursor": ""})
	return nil
}

type readNoticesBody struct {
	UpTo string `json:"up_to"`
}

// apiReadNotices marks all notifications up to the one in {up_to} as read.
func (d *accountAPI) apiReadNotices(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	var in readNoticesBody
	if err := request.DecodeBody(w, r, &in); err != nil {
		return err
	}
	if err := d.hub.Notices.MarkRead(r.Context(), actor, in.UpTo); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

type domainJSON struct {
	Domain    string `json:"domain"`
	ProvedAt  string `json:"proved_at"`
	CheckedAt string `json:"checked_at"`
	Failures  int    `json:"failures"`
}

type domainsJSON struct {
	Domains    []domainJSON `json:"domains"`
	Token      string       `json:"token"`
	Path       string       `json:"path"`
	NextCursor string       `json:"next_cursor"`
}

// apiDomains lists the actor's verified domains, with the token and the path that verification of another
// domain needs.
func (d *accountAPI) apiDomains(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	list, err := d.hub.Proofs.Domains(r.Context(), actor)
	if err != nil {
		return err
	}
	out := make([]domainJSON, len(list))
	for i, x := range list {
		out[i] = domainJSON{x.Domain, respond.FormatTime(x.ProvedAt), respond.FormatTime(x.CheckedAt), x.Failures}
	}
	respond.JSON(w, http.StatusOK, domainsJSON{Domains: out, Token: d.hub.Proofs.OwnerToken(actor), Path: hub.ProofPath})
	return nil
}

type proveDomainBody struct {
	Domain string `json:"domain"`
}

// apiProveDomain verifies {domain}: it looks for the actor's token there.
func (d *accountAPI) apiProveDomain(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	var in proveDomainBody
	if err := request.DecodeBody(w, r, &in); err != nil {
		return err
	}
	if err := d.hub.Proofs.ProveDomain(r.Context(), actor, in.Domain); err != nil {
		return err
	}
	return d.apiDomains(w, r, actor)
}

func (d *accountAPI) apiRemoveDomain(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	if err := d.hub.Proofs.RemoveDomain(r.Context(), actor, request.PathParam(r, "domain")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
