package account

import (
	"mime"
	"net/http"
	"slices"

	"agentsite/handlers/pages"
	"agentsite/handlers/pages/cost"
	"agentsite/handlers/request"
	"agentsite/handlers/respond"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/profile"
	"agentsite/internal/usage"
	"agentsite/templates"
)

// noticeKinds are the kinds of notices with a switch, with their labels. Warnings about the password and decisions of
// the operator have none.
var noticeKinds = []struct{ kind, label string }{
	{hub.NoticeMention, "Someone mentions you"}, {hub.NoticeInvited, "Someone invites you to a conversation"},
	{hub.NoticeAdded, "Someone adds you to a conversation"}, {hub.NoticeDown, "An agent of yours stops answering"},
	{hub.NoticeUp, "An agent of yours answers again"}, {hub.NoticeOffer, "Someone offers you an agent"},
	{hub.NoticeTaken, "Your offer is accepted or declined"}, {hub.NoticeShared, "You become a co-owner"},
	{hub.NoticeUnshared, "You are no longer a co-owner"}, {hub.NoticeReport, "A report of yours is closed"},
	{hub.NoticeProof, "The proof of an address or domain ends"}, {hub.NoticeWebhook, "A webhook is stopped"},
	{"memory", "An agent remembers something of you"}, {hub.NoticePeer, "News of other portals, for operators"},
}

// lookView fills in the profile, the theme, the switches of notices and the plot of usage.
func (d *Pages) lookView(r *http.Request, actor ident.Actor, v *templates.AccountView) error {
	p, err := d.profiles.Get(r.Context(), actor)
	if err != nil {
		return err
	}
	typed := v.Look
	v.Look = templates.LookView{DisplayName: p.DisplayName, Shown: p.Shown, Theme: p.Theme}
	if v.Errors["display_name"] != "" {
		v.Look.DisplayName, v.Look.Shown = typed.DisplayName, typed.Shown
	}
	if p.Picture != "" {
		v.Look.Picture = templates.PersonPictureHref(p.Name, p.Picture)
	}
	for _, n := range noticeKinds {
		if n.kind == hub.NoticePeer && !actor.IsOperator() {
			continue
		}
		label := n.label
		if n.kind == hub.NoticeReport && actor.IsOperator() {
			label = "An agent is reported, or a report of yours is closed"
		}
		v.Look.Notices = append(v.Look.Notices, templates.Option{Value: n.kind, Label: label,
			Selected: !slices.Contains(p.Muted, n.kind)})
	}
	if d.usage == nil {
		return nil
	}
	report, err := d.usage.Report(r.Context(), actor, usage.Query{Of: usage.OfMe, By: usage.ByDay})
	if err != nil {
		return err
	}
	if report.Total.Calls > 0 {
		v.Plot = cost.Plot(report)
	}
	return nil
}

// setProfile stores the picture, the display name and whether others see them.
func (d *Pages) setProfile(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	if t, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); t == "multipart/form-data" {
		const most = request.MaxForm + profile.MaxPictureBytes + 1024
		r.Body = http.MaxBytesReader(w, r.Body, most)
		if err := r.ParseMultipartForm(most); err != nil {
			return fault.Wrap(fault.Invalid, err, "The form could not be read. A picture may have at most 2 MiB.")
		}
	}
	in, err := request.Form(w, r)
	if err != nil {
		return err
	}
	err = d.profiles.Change(r.Context(), actor, func(p *profile.Profile) {
		p.DisplayName, p.Shown = in.Get("display_name"), in.Get("shown") != ""
	})
	if err == nil {
		err = d.setPicture(r, actor, in.Get("picture_remove") != "")
	}
	if err == nil && in.Get("shown") == "" {
		return respond.SeeOther(w, r, "/account?done=profile-own#profile")
	}
	if err == nil {
		return respond.SeeOther(w, r, "/account?done=profile")
	}
	messages, code, ok := pages.FieldErrors(w, err)
	if !ok || !actor.IsPerson() {
		return err
	}
	v := templates.AccountView{Errors: messages}
	v.Look.DisplayName, v.Look.Shown = in.Get("display_name"), in.Get("shown") != ""
	return d.showAccount(w, r, actor, code, v, tokenForm{scopes: usualScopes, expires: usualExpiry})
}

// setPicture stores the picture of a form, or removes the stored one.
func (d *Pages) setPicture(r *http.Request, actor ident.Actor, remove bool) error {
	if r.MultipartForm != nil {
		if list := r.MultipartForm.File["picture"]; len(list) > 0 && list[0].Size > 0 {
			f, err := list[0].Open()
			if err != nil {
				return err
			}
			defer f.Close()
			return d.profiles.SetPicture(r.Context(), actor, f)
		}
	}
	if remove {
		return d.profiles.RemovePicture(r.Context(), actor)
	}
	return nil
}

func (d *Pages) setTheme(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	in, err := request.Form(w, r)
	if err != nil {
		return err
	}
	err = d.profiles.Change(r.Context(), actor, func(p *profile.Profile) { p.Theme = in.Get("theme") })
	if err != nil {
		return err
	}
	return respond.SeeOther(w, r, "/account#theme")
}

// setNotices stores the kinds that are switched off, which are those that the form does not name.
func (d *Pages) setNotices(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	in, err := request.Form(w, r)
	if err != nil {
		return err
	}
	err = d.profiles.Change(r.Context(), actor, func(p *profile.Profile) {
		p.Muted = nil
		for _, n := range noticeKinds {
			if !slices.Contains(in["notice"], n.kind) && (n.kind != hub.NoticePeer || actor.IsOperator()) {
				p.Muted = append(p.Muted, n.kind)
			}
		}
	})
	if err != nil {
		return err
	}
	return respond.SeeOther(w, r, "/account?done=notices")
}
