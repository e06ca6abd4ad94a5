// Package account contains the pages of an account: signing up and in, tokens, webhooks, settings, notices.
package account

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"agentsite/handlers/api"
	"agentsite/handlers/pages"
	"agentsite/handlers/request"
	"agentsite/handlers/respond"
	"agentsite/handlers/search"
	"agentsite/internal/account"
	"agentsite/internal/chat"
	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/grant"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/models"
	"agentsite/internal/notify"
	"agentsite/internal/profile"
	"agentsite/internal/task"
	"agentsite/internal/usage"
	"agentsite/internal/webpush"
	"agentsite/templates"
)

// Pages are the pages of an account: signing up and in, tokens, webhooks,
// settings, notices. Create them with New.
type Pages struct {
	accounts *account.Service
	hub      *hub.Service
	chat     *chat.Service
	hooks    *notify.Service
	pushes   *webpush.Service
	sessions *request.Sessions
	searches *search.Searches
	storage  api.Storage
	grants   *grant.Service
	usage    *usage.Service
	ceilings *usage.Ceilings
	models   *models.Service
	tasks    *task.Service
	profiles *profile.Service
	site     *pages.Site
}

// New returns the pages about accounts. Their routes are declared by Routes.
func New(accounts *account.Service, agents *hub.Service, chats *chat.Service, hooks *notify.Service, pushes *webpush.Service,
	sessions *request.Sessions,
	searches *search.Searches, storage api.Storage, grants *grant.Service, used *usage.Service, ceilings *usage.Ceilings, named *models.Service,
	tasks *task.Service, profiles *profile.Service, site *pages.Site) *Pages {
	return &Pages{accounts: accounts, hub: agents, chat: chats, hooks: hooks, pushes: pushes, sessions: sessions, searches: searches,
		storage: storage, grants: grants, usage: used, ceilings: ceilings, models: named, tasks: tasks, profiles: profiles, site: site}
}

// done maps ?done= to the confirmation that the page shows after a form.
var done = map[string]string{
	"email":         "Your mail address is saved.",
	"password":      "Your password is changed. You are signed out everywhere else.",
	"profile":       "Your profile is saved.",
	"profile-own":   "Your profile is saved. Only you see your picture and display name.",
	"notices":       "Saved. The bell lists the kinds you chose.",
	"push":          "This browser gets your notices.",
	"push-ended":    "No more notices are sent.",
	"told":          "Saved. You get notifications as you chose.",
	"revoked":       "The token is revoked. Nothing can use it any more.",
	"agent-deleted": "The agent is gone.",

	"declined":       "You declined the agent. It stays with its owner.",
	"domain":         "The domain is proved. You may publish agents under it.",
	"domain-removed": "The domain is removed, and taken off your agents.",
	"search-deleted": "The search is forgotten.",
}

// expiries are the lifetimes of API tokens that the form offers, in its order.
var expiries = []struct {
	value, label string
	life         time.Duration
}{
	{"7d", "in 7 days", 7 * 24 * time.Hour},
	{"30d", "in 30 days", 30 * 24 * time.Hour},
	{"90d", "in 90 days", 90 * 24 * time.Hour},
	{"365d", "in a year", 365 * 24 * time.Hour},
}

const usualExpiry = "90d"

// scopeHints are the explanations of the token scopes in the form.
var scopeHints = map[ident.Scope]string{
	ident.AgentsRead:  "Search, profiles, your own agents",
	ident.AgentsWrite: "Register, change and remove your agents",
	ident.ChatRead:    "Those you are in",
	ident.ChatWrite:   "Start conversations and write in them",
	ident.Tasks:       "See and stop the work you asked for",
	ident.AccountAll:  "Your password, sessions and tokens, and an export of all your data",
	ident.Admin:       "Everything the operator may do",
}

// usualScopes are the scopes that are preselected in the form for a new token.
var usualScopes = []string{string(ident.AgentsRead), string(ident.ChatRead), string(ident.ChatWrite),
	string(ident.Tasks)}

func (d *Pages) account(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	return d.showAccount(w, r, actor, http.StatusOK, templates.AccountView{},
		tokenForm{scopes: usualScopes, expires: usualExpiry})
}

// tokenForm holds the selected values of the form for a new token, to show them again after an error.
type tokenForm struct {
	scopes  []string
	expires string
}

func (d *Pages) showAccount(w http.ResponseWriter, r *http.Request, actor ident.Actor, code int,
	v templates.AccountView, chosen tokenForm) error {
	ctx := r.Context()
	me, err := d.accounts.Me(ctx, actor)
	if err != nil {
		return err
	}
	v.Name, v.Handle, v.Operator, v.Since, v.MinPassword = me.Name, d.site.FullHandle(me.Name), me.Operator,
		pages.FormatMoment(me.CreatedAt), account.MinPassword
	if err := d.lookView(r, actor, &v); err != nil {
		return err
	}
	if err := d.pushView(r, actor, &v.Push); err != nil {
		return err
	}
	if v.Storage, err = d.storageView(r, actor); err != nil {
		return err
	}
	if v.CanMail = d.accounts.CanMail(); v.Errors["email"] == "" {
		v.Email = me.Email
	}
	if v.Sessions, err = d.accounts.Sessions(ctx, actor); err != nil {
		return err
	}
	tokens, err := d.accounts.Tokens(ctx, actor)
	if err != nil {
		return err
	}
	for _, t := range tokens {
		v.Tokens = append(v.Tokens, tokenRow(t))
	}
	agents, next, err := d.hub.Mine(ctx, actor, r.URL.Query().Get("agents_after"))
	if err != nil {
		return err
	}
	if next != "" {
		v.MoreAgentsHref = "/account?" + url.Values{"agents_after": {next}}.Encode() + "#agents-title"
	}
	for _, a := range agents {
		v.Agents = append(v.Agents, d.site.Card(a))
	}
	if err := d.hubSections(r, actor, &v); err != nil {
		return err
	}
	blocks, err := d.chat.Contacts.Blocks(r.Context(), actor)
	if err != nil {
		return err
	}
	for _, b := range blocks {
		v.Blocks = append(v.Blocks, templates.BlockRow{Name: b.Handle, At: pages.FormatMoment(b.CreatedAt)})
	}
	if !hasPrefs(v.Errors) {
		prefs, err := d.chat.Preferences.Get(ctx, actor)
		if err != nil {
			return err
		}
		v.Prefs = prefsView(api.NewPrefsJSON(prefs))
	}
	for _, s := range ident.Scopes() {
		if s == ident.Admin && !me.Operator {
			continue
		}
		v.Scopes = append(v.Scopes, templates.Option{Value: string(s), Label: s.Label(), Hint: scopeHints[s],
			Selected: slices.Contains(chosen.scopes, string(s))})
	}
	for _, e := range expiries {
		v.Expiries = append(v.Expiries, templates.Option{Value: e.value, Label: e.label,
			Selected: e.value == chosen.expires})
	}
	p := d.site.Frame(r, actor, "Account")
	if r.Method == http.MethodGet {
		p.Flash = done[r.URL.Query().Get("done")]
	}
	return d.site.Render(w, r, code, templates.Account(p, v))
}

func tokenRow(t account.Credential) templates.TokenRow {
	row := templates.TokenRow{ID: t.ID, Label: t.Label, Scopes: "everything", Created: pages.FormatMoment(t.CreatedAt),
		LastUsed: pages.FormatMoment(t.UsedAt), Expires: pages.FormatMoment(t.ExpiresAt),
		Expired: !t.ExpiresAt.IsZero() && t.ExpiresAt.Before(clock.Now())}
	if len(t.Scopes) > 0 {
		names := make([]string, len(t.Scopes))
		for i, s := range t.Scopes {
			names[i] = string(s)
		}
		if _, only := (ident.Actor{Scopes: t.Scopes}).Program(); only {
			names = []string{"only connects its program"}
		}
		row.Scopes = strings.Join(names, ", ")
	}
	return row
}

// createToken makes an API token and shows its secret on the answer itself, because the secret is not stored.
func (d *Pages) createToken(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	in, err := request.KnownForm(w, r, "label", "scopes", "expires")
	if err != nil {
		return err
	}
	chosen := tokenForm{scopes: in["scopes"], expires: in.Get("expires")}
	v := templates.AccountView{TokenLabel: strings.TrimSpace(in.Get("label"))}
	token := account.NewToken{Label: v.TokenLabel}
	var c fault.Check
	c.Field(len(chosen.scopes) > 0, "scopes", "choose at least one thing it may do")
	i := slices.IndexFunc(expiries, func(e struct {
		value, label string
		life         time.Duration
	}) bool {
		return e.value == chosen.expires
	})
	if chosen.expires == "" {
		i = 0
	}
	c.Field(i >= 0, "expires", "choose one of the times")
	if err = c.Err(); err == nil {
		token.Life = expiries[i].life
		for _, s := range chosen.scopes {
			token.Scopes = append(token.Scopes, ident.Scope(s))
		}
		v.NewToken, err = d.accounts.CreateToken(r.Context(), actor, token)
	}
	if err != nil {
		messages, code, ok := pages.FieldErrors(w, err)
		if !ok || !actor.IsPerson() {
			return err
		}
		v.Errors = messages
		return d.showAccount(w, r, actor, code, v, chosen)
	}
	v.NewTokenLabel, v.TokenLabel = v.TokenLabel, ""
	return d.showAccount(w, r, actor, http.StatusOK, v, tokenForm{scopes: usualScopes, expires: usualExpiry})
}

func (d *Pages) revokeToken(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	if err := d.accounts.RevokeToken(r.Context(), actor, chi.URLParam(r, "id")); err != nil {
		return err
	}
	return respond.SeeOther(w, r, "/account?done=revoked")
}

func (d *Pages) changePassword(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	in, err := request.Form(w, r)
	if err != nil {
		return err
	}
	err = d.accounts.ChangePassword(r.Context(), actor, in.Get("current_password"), in.Get("password"))
	if err == nil {
		return respond.SeeOther(w, r, "/account?done=password")
	}
	messages, code, ok := pages.FieldErrors(w, err)
	if !ok || !actor.IsPerson() {
		return err
	}
	if m := messages["old"]; m != "" {
		delete(messages, "old")
		messages["current_password"] = m
	}
	return d.showAccount(w, r, actor, code, templates.AccountView{Errors: messages},
		tokenForm{scopes: usualScopes, expires: usualExpiry})
}

func (d *Pages) setEmail(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	in, err := request.Form(w, r)
	if err != nil {
		return err
	}
	err = d.accounts.SetEmail(r.Context(), actor, in.Get("email"))
	if err == nil {
		return respond.SeeOther(w, r, "/account?done=email")
	}
	messages, code, ok := pages.FieldErrors(w, err)
	if !ok || !actor.IsPerson() {
		return err
	}
	return d.showAccount(w, r, actor, code, templates.AccountView{Errors: messages, Email: in.Get("email")},
		tokenForm{scopes: usualScopes, expires: usualExpiry})
}

func (d *Pages) endSessions(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	if err := d.accounts.LogOutEverywhere(r.Context(), actor); err != nil {
		return err
	}
	d.sessions.ClearCookie(w)
	return respond.SeeOther(w, r, "/login")
}

// Routes declares the routes of signing up and in and of the account page.
func (d *Pages) Routes(r chi.Router) {
	r.Get("/notices", d.site.Page(d.notices))
	r.Post("/notices", d.site.Page(d.readNotices))
	r.Get("/login", d.site.Page(d.loginForm))
	r.Post("/login", d.site.Page(d.login))
	r.Post("/logout", d.site.Page(d.logout))
	r.Get("/signup", d.site.Page(d.signupForm))
	r.Post("/signup", d.site.Page(d.signup))
	r.Get("/reset", d.site.Page(d.resetForm))
	r.Post("/reset", d.site.Page(d.reset))
	if d.accounts.CanMail() {
		r.Post("/reset/mail", d.site.Page(d.mailReset))
	}
	r.Get("/account", d.site.Page(request.Listing(d.account)))
	r.Post("/account/domains", d.site.Page(d.proveDomain))
	r.Post("/account/domains/remove", d.site.Page(d.removeDomain))
	r.Post("/account/tokens", d.site.Page(d.createToken))
	r.Post("/account/tokens/{id}/revoke", d.site.Page(d.revokeToken))
	r.Get("/account/running", d.site.Page(d.running))
	r.Post("/account/running/stop", d.site.Page(d.stopAll))
	r.Post("/account/running/{id}/stop", d.site.Page(d.stopOne))
	r.Get("/account/usage", d.site.Page(d.showUsage))
	r.Post("/account/usage/ceiling", d.site.Page(d.putCeiling))
	r.Get("/account/models", d.site.Page(d.listModels))
	r.Post("/account/models", d.site.Page(d.saveModel))
	r.Post("/account/models/{id}", d.site.Page(d.saveModel))
	r.Post("/account/models/{id}/delete", d.site.Page(d.deleteModel))
	r.Get("/account/grants", d.site.Page(d.listGrants))
	r.Post("/account/grants", d.site.Page(d.addGrant))
	r.Post("/account/grants/{id}/delete", d.site.Page(d.deleteGrant))
	r.Get("/account/webhooks", d.site.Page(d.webhooks))
	r.Post("/account/webhooks", d.site.Page(d.addWebhook))
	r.Post("/account/webhooks/{id}/test", d.site.Page(d.testWebhook))
	r.Post("/account/webhooks/{id}/active", d.site.Page(d.switchWebhook))
	r.Post("/account/webhooks/{id}/delete", d.site.Page(d.deleteWebhook))
	r.Post("/account/password", d.site.Page(d.changePassword))
	if d.accounts.CanMail() {
		r.Post("/account/email", d.site.Page(d.setEmail))
	}
	r.Post("/account/chat", d.site.Page(d.setPrefs))
	r.Post("/account/profile", d.site.Page(d.setProfile))
	r.Post("/account/theme", d.site.Page(d.setTheme))
	r.Post("/account/notices", d.site.Page(d.setNotices))
	if d.pushes != nil {
		r.Post("/account/push", d.site.Page(d.startPush))
		r.Post("/account/push/end", d.site.Page(d.endPush))
		r.Get(PushWorkerPath, servePushWorker)
	}
	r.Post("/account/block", d.site.Page(d.blockPerson))
	r.Post("/account/unblock", d.site.Page(d.unblockPerson))
	r.Post("/account/sessions/end", d.site.Page(d.endSessions))
}
