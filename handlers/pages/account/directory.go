package account

import (
	"net/http"
	"time"

	"agentsite/handlers/pages"
	"agentsite/handlers/request"
	"agentsite/handlers/respond"
	"agentsite/handlers/search"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/templates"
)

// hubSections fills in the sections of the account page that come from the directory: offered agents,
// saved searches and verified domains.
func (d *Pages) hubSections(r *http.Request, actor ident.Actor, v *templates.AccountView) error {
	ctx := r.Context()
	offers, err := d.hub.Offers(ctx, actor)
	if err != nil {
		return err
	}
	for _, o := range offers {
		v.Offers = append(v.Offers, templates.OfferRow{Card: d.site.Card(o.Agent), From: o.Agent.OwnerName,
			At: pages.FormatMoment(o.Created)})
	}
	saved, err := d.hub.Searches.List(ctx, actor,
		func(q string, since time.Time) int { return d.searches.CountNew(r, q, since) })
	if err != nil {
		return err
	}
	for _, s := range saved {
		v.Searches = append(v.Searches, templates.SearchRow{ID: s.ID, Title: s.Title, New: s.New,
			Most: s.New == search.FeedEntries, FeedHref: "/agents/feed?" + s.Query})
	}
	domains, err := d.hub.Proofs.Domains(ctx, actor)
	if err != nil {
		return err
	}
	for _, x := range domains {
		v.Domains = append(v.Domains, templates.DomainRow{Domain: x.Domain, Checked: pages.FormatMoment(x.CheckedAt),
			Failing: x.Failures > 0})
	}
	v.OwnerToken, v.ProofPath = d.hub.Proofs.OwnerToken(actor), hub.ProofPath
	return nil
}

// proveDomain verifies a domain for the actor by looking for the actor's token there.
func (d *Pages) proveDomain(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	in, err := request.Form(w, r)
	if err != nil {
		return err
	}
	domain := in.Get("domain")
	if err := d.hub.Proofs.ProveDomain(r.Context(), actor, domain); err != nil {
		messages, code, ok := pages.FieldErrors(w, err)
		if !ok {
			return err
		}
		if messages["domain"] == "" {
			messages["domain"] = messages[""]
		}
		return d.showAccount(w, r, actor, code, templates.AccountView{DomainTyped: domain, Errors: messages},
			tokenForm{scopes: usualScopes, expires: usualExpiry})
	}
	return respond.SeeOther(w, r, "/account?done=domain#domains")
}

func (d *Pages) removeDomain(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	in, err := request.Form(w, r)
	if err != nil {
		return err
	}
	if err := d.hub.Proofs.RemoveDomain(r.Context(), actor, in.Get("domain")); err != nil {
		return err
	}
	return respond.SeeOther(w, r, "/account?done=domain-removed#domains")
}

// notices shows the actor's notifications, newest first, a page at a time.
func (d *Pages) notices(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	list, err := d.hub.Notices.List(r.Context(), actor)
	if err != nil {
		return err
	}
	v := templates.NoticesView{}
	for _, n := range list {
		v.Notices = append(v.Notices, templates.NoticeRow{Kind: n.Kind, Text: n.Text, Href: n.Href,
			At: pages.FormatMoment(n.CreatedAt), Unread: n.ReadAt.IsZero()})
		v.Unread = v.Unread || n.ReadAt.IsZero()
	}
	if len(list) > 0 {
		v.UpTo = list[0].ID
	}
	return d.site.Render(w, r, http.StatusOK, templates.Notices(d.site.Frame(r, actor, "Notices"), v))
}

// readNotices marks the notifications up to the newest one on the page as read, so that later ones stay
// unread.
func (d *Pages) readNotices(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	in, err := request.Form(w, r)
	if err != nil {
		return err
	}
	if err := d.hub.Notices.MarkRead(r.Context(), actor, in.Get("up_to")); err != nil {
		return err
	}
	return respond.SeeOther(w, r, "/notices")
}
