package packages

import (
	"net/http"
	"strconv"
	"strings"

	"agentsite/handlers/pages"
	"agentsite/handlers/request"
	"agentsite/handlers/respond"
	"agentsite/internal/fault"
	"agentsite/internal/hosting"
	"agentsite/internal/ident"
	"agentsite/templates"
)

// policies are the choices of the rules.
func policies(chosen hosting.Policy) []templates.Option {
	list := []templates.Option{
		{Value: string(hosting.Off), Label: "Off", Hint: "No program of an account runs; hosted ones stop at their next call. " +
			"The programs that come with the portal go on: stop them below by their hash."},
		{Value: string(hosting.Own), Label: "Operators", Hint: "Only operators host programs."},
		{Value: string(hosting.List), Label: "A list", Hint: "Operators, and the accounts below."},
		{Value: string(hosting.Any), Label: "Everybody", Hint: "Every account of this portal."},
	}
	for i := range list {
		list[i].Selected = list[i].Value == string(chosen)
	}
	return list
}

func (d *Pages) showHosting(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	rules, err := d.cfg.Hosting.Rules(actor)
	if err != nil {
		return err
	}
	return d.renderHosting(w, r, actor, http.StatusOK, newHosting(rules))
}

func newHosting(rules hosting.Rules) templates.AdminHosting {
	return templates.AdminHosting{Policies: policies(rules.Policy), Accounts: strings.Join(rules.Accounts, ", "),
		MaxModules: strconv.Itoa(rules.MaxModules), MaxSize: strconv.FormatInt(rules.MaxBytes>>20, 10)}
}

func (d *Pages) renderHosting(w http.ResponseWriter, r *http.Request, actor ident.Actor, code int,
	v templates.AdminHosting) error {
	list, err := d.cfg.Packages.Notices(actor)
	if err != nil {
		return err
	}
	v.Bundled = d.cfg.Bundled
	for _, n := range list {
		v.Kills = append(v.Kills, templates.KillRow{Hash: n.Hash, Reason: n.Reason, Portal: n.Portal, Package: n.Package,
			Own: n.Package == "", Advice: !n.Binding, Created: pages.FormatMoment(n.CreatedAt)})
	}
	return d.cfg.Site.Render(w, r, code, templates.Admin(d.cfg.Site.Frame(r, actor, "Hosting"),
		templates.AdminView{Tab: "hosting", Hosting: &v}))
}

// parseNumber reads a number of a form; anything else is 0, which the rules refuse.
func parseNumber(s string) int64 {
	n, err := strconv.ParseInt(strings.TrimSpace(s), 10, 32)
	if err != nil {
		return 0
	}
	return n
}

func (d *Pages) saveRules(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	in, err := request.Form(w, r)
	if err != nil {
		return err
	}
	rules := hosting.Rules{Policy: hosting.Policy(in.Get("policy")), Accounts: request.SplitValues(in["list"]),
		MaxModules: int(parseNumber(in.Get("max_modules"))), MaxBytes: parseNumber(in.Get("max_mib")) << 20}
	if _, err = d.cfg.Hosting.PutRules(r.Context(), actor, rules); err == nil {
		return respond.SeeOther(w, r, "/admin/hosting")
	}
	messages, code, ok := pages.FieldErrors(w, err)
	if !ok || !fault.Is(err, fault.Invalid) {
		return err
	}
	v := newHosting(rules)
	v.Errors, v.MaxModules, v.MaxSize = messages, in.Get("max_modules"), in.Get("max_mib")
	return d.renderHosting(w, r, actor, code, v)
}

func (d *Pages) stopModule(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	in, err := request.Form(w, r)
	if err != nil {
		return err
	}
	if _, err = d.cfg.Packages.PutKill(r.Context(), actor, in.Get("hash"), in.Get("reason")); err == nil {
		return respond.SeeOther(w, r, "/admin/hosting")
	}
	messages, code, ok := pages.FieldErrors(w, err)
	if !ok || !fault.Is(err, fault.Invalid) {
		return err
	}
	rules, err := d.cfg.Hosting.Rules(actor)
	if err != nil {
		return err
	}
	v := newHosting(rules)
	v.KillErrors, v.Hash, v.Reason = messages, in.Get("hash"), in.Get("reason")
	return d.renderHosting(w, r, actor, code, v)
}

func (d *Pages) releaseModule(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	in, err := request.Form(w, r)
	if err != nil {
		return err
	}
	if err := d.cfg.Packages.DeleteKill(r.Context(), actor, in.Get("hash")); err != nil {
		return err
	}
	return respond.SeeOther(w, r, "/admin/hosting")
}
