package account

import (
	"net/http"
	"strings"

	"agentsite/handlers/api"
	"agentsite/handlers/pages"
	"agentsite/handlers/request"
	"agentsite/handlers/respond"
	"agentsite/internal/chat"
	"agentsite/internal/ident"
	"agentsite/templates"
)

func prefsView(j api.PrefsJSON) templates.PrefsView {
	return templates.PrefsView{Notify: string(j.Notify), QuietFrom: j.QuietFrom, QuietTo: j.QuietTo, Zone: j.Zone}
}

// hasPrefs reports whether errors belong to the form of the notification settings, because the page has
// several forms.
func hasPrefs(errs templates.FieldErrors) bool {
	return errs["notify"] != "" || errs["quiet_from"] != "" || errs["quiet_to"] != "" || errs["zone"] != ""
}

// blockPerson blocks a person, or with unblockPerson ends that.
func (d *Pages) blockPerson(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	in, err := request.Form(w, r)
	if err != nil {
		return err
	}
	if _, err = d.chat.Contacts.Block(r.Context(), actor, strings.TrimSpace(in.Get("person"))); err == nil {
		return respond.SeeOther(w, r, "/account#blocks")
	}
	messages, code, ok := pages.FieldErrors(w, err)
	if !ok || !actor.IsPerson() {
		return err
	}
	return d.showAccount(w, r, actor, code, templates.AccountView{Errors: messages},
		tokenForm{scopes: usualScopes, expires: usualExpiry})
}

func (d *Pages) unblockPerson(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	in, err := request.Form(w, r)
	if err != nil {
		return err
	}
	if err := d.chat.Contacts.Unblock(r.Context(), actor, in.Get("person")); err != nil {
		return err
	}
	return respond.SeeOther(w, r, "/account#blocks")
}

func (d *Pages) setPrefs(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	in, err := request.Form(w, r)
	if err != nil {
		return err
	}
	j := api.PrefsJSON{Notify: chat.Notify(in.Get("notify")), QuietFrom: in.Get("quiet_from"),
		QuietTo: in.Get("quiet_to"), Zone: in.Get("zone")}
	p, err := j.Prefs()
	if err == nil {
		err = d.chat.Preferences.Set(r.Context(), actor, p)
	}
	if err == nil {
		return respond.SeeOther(w, r, "/account?done=told")
	}
	messages, code, ok := pages.FieldErrors(w, err)
	if !ok || !actor.IsPerson() {
		return err
	}
	return d.showAccount(w, r, actor, code, templates.AccountView{Errors: messages, Prefs: prefsView(j)},
		tokenForm{scopes: usualScopes, expires: usualExpiry})
}
