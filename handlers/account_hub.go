package handlers

import (
	"context"
	"net/http"
	"time"

	"agentsite/handlers/request"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/templates"
)

// hubSections fills what an account page shows of the directory: offers,
// saved searches, domains.
func (d *Door) hubSections(r *http.Request, actor ident.Actor, v *templates.AccountView) error {
	ctx := r.Context()
	offers, err := d.hub.Offers(ctx, actor)
	if err != nil {
		return err
	}
	for _, o := range offers {
		v.Offers = append(v.Offers, templates.OfferRow{Card: d.card(o.Agent), From: o.Agent.OwnerName, At: moment(o.Created)})
	}
	saved, err := d.hub.SavedSearches(ctx, actor, func(q string, since time.Time) int { return d.newSince(r, q, since) })
	if err != nil {
		return err
	}
	for _, s := range saved {
		v.Searches = append(v.Searches, templates.SearchRow{ID: s.ID, Title: s.Title, New: s.New, Most: s.New == feedEntries, FeedHref: "/agents/feed?" + s.Query})
	}
	domains, err := d.hub.Domains(ctx, actor)
	if err != nil {
		return err
	}
	for _, x := range domains {
		v.Domains = append(v.Domains, templates.DomainRow{Domain: x.Domain, Checked: moment(x.CheckedAt), Failing: x.Failures > 0})
	}
	v.OwnerToken, v.ProofPath = d.hub.OwnerToken(actor), hub.ProofPath
	return nil
}

// proveDomain looks for the actor's token at a domain.
func (d *Door) proveDomain(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	in, err := form(w, r)
	if err != nil {
		return err
	}
	domain := in.Get("domain")
	if err := d.hub.ProveDomain(r.Context(), actor, domain); err != nil {
		messages, code, ok := fieldErrors(w, err)
		if !ok {
			return err
		}
		if messages["domain"] == "" {
			messages["domain"] = messages[""]
		}
		return d.showAccount(w, r, actor, code, templates.AccountView{DomainTyped: domain, Errors: messages}, tokenForm{scopes: usualScopes, expires: usualExpiry})
	}
	return see(w, r, "/account?done=domain#domains")
}

func (d *Door) removeDomain(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	in, err := form(w, r)
	if err != nil {
		return err
	}
	if err := d.hub.RemoveDomain(r.Context(), actor, in.Get("domain")); err != nil {
		return err
	}
	return see(w, r, "/account?done=domain-removed#domains")
}

// notices lists what the actor is told, newest first.
func (d *Door) notices(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	list, err := d.hub.Notices(r.Context(), actor)
	if err != nil {
		return err
	}
	v := templates.NoticesView{}
	for _, n := range list {
		v.Notices = append(v.Notices, templates.NoticeRow{Kind: n.Kind, Text: n.Text, Href: n.Href, At: moment(n.CreatedAt), Unread: n.ReadAt.IsZero()})
		v.Unread = v.Unread || n.ReadAt.IsZero()
	}
	if len(list) > 0 {
		v.UpTo = list[0].ID
	}
	return d.render(w, r, http.StatusOK, templates.Notices(d.frame(r, actor, "Notices"), v))
}

// readNotices marks those up to the newest that was shown as seen.
func (d *Door) readNotices(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	in, err := form(w, r)
	if err != nil {
		return err
	}
	if err := d.hub.ReadNotices(r.Context(), actor, in.Get("up_to")); err != nil {
		return err
	}
	return see(w, r, "/notices")
}

// unread counts for the header; a page is shown even when that fails.
func (d *Door) unread(ctx context.Context, actor ident.Actor) int {
	n, err := d.hub.Unread(ctx, actor)
	if err != nil {
		d.log.Warn("count notices", "error", err)
	}
	return n
}

type noticeJSON struct {
	ID        string `json:"id"`
	Kind      string `json:"kind"`
	Subject   string `json:"subject"`
	Text      string `json:"text"`
	URL       string `json:"url"`
	Read      bool   `json:"read"`
	CreatedAt string `json:"created_at"`
}

func (d *Door) apiNotices(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	list, err := d.hub.Notices(r.Context(), actor)
	if err != nil {
		return err
	}
	out := make([]noticeJSON, len(list))
	unread := 0
	for i, n := range list {
		out[i] = noticeJSON{n.ID, n.Kind, n.Subject, n.Text, d.portal.URL + n.Href, !n.ReadAt.IsZero(), stamp(n.CreatedAt)}
		if n.ReadAt.IsZero() {
			unread++
		}
	}
	writeJSON(w, http.StatusOK, map[string]any{"notices": out, "unread": unread, "next_cursor": ""})
	return nil
}

type readNoticesBody struct {
	UpTo string `json:"up_to"`
}

// apiReadNotices marks notices up to one as read: {up_to}.
func (d *Door) apiReadNotices(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	var in readNoticesBody
	if err := decode(w, r, &in); err != nil {
		return err
	}
	if err := d.hub.ReadNotices(r.Context(), actor, in.UpTo); err != nil {
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

// apiDomains lists the domains the actor was shown to control, with the token
// that shows it.
func (d *Door) apiDomains(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	list, err := d.hub.Domains(r.Context(), actor)
	if err != nil {
		return err
	}
	out := make([]domainJSON, len(list))
	for i, x := range list {
		out[i] = domainJSON{x.Domain, stamp(x.ProvedAt), stamp(x.CheckedAt), x.Failures}
	}
	writeJSON(w, http.StatusOK, domainsJSON{Domains: out, Token: d.hub.OwnerToken(actor), Path: hub.ProofPath})
	return nil
}

type proveDomainBody struct {
	Domain string `json:"domain"`
}

// apiProveDomain looks for the token at a domain: {domain}.
func (d *Door) apiProveDomain(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	var in proveDomainBody
	if err := decode(w, r, &in); err != nil {
		return err
	}
	if err := d.hub.ProveDomain(r.Context(), actor, in.Domain); err != nil {
		return err
	}
	return d.apiDomains(w, r, actor)
}

func (d *Door) apiRemoveDomain(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	if err := d.hub.RemoveDomain(r.Context(), actor, request.PathParam(r, "domain")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
