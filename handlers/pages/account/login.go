package account

import (
	"net/http"
	"net/url"
	"strings"

	"agentsite/handlers/pages"
	"agentsite/handlers/request"
	"agentsite/handlers/respond"
	"agentsite/internal/account"
	"agentsite/internal/chat"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/templates"
)

func (d *Pages) loginForm(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	next := request.OwnPath(r.URL.Query().Get("next"), "")
	if actor.IsPerson() {
		return respond.SeeOther(w, r, request.OwnPath(next, "/account"))
	}
	return d.showLogin(w, r, actor, http.StatusOK, templates.LoginView{Next: next,
		Chats: templates.GuestChats{Take: true}})
}

func (d *Pages) showLogin(w http.ResponseWriter, r *http.Request, actor ident.Actor, code int,
	v templates.LoginView) error {
	var err error
	if v.Chats.Count, err = countGuestChats(r, d.chat, actor); err != nil {
		return err
	}
	v.Reason, v.Policy, v.Mail = loginReason(v.Next), string(d.accounts.Policy()), d.accounts.CanMail()
	return d.site.Render(w, r, code, templates.Login(d.site.Frame(r, actor, "Log in"), v))
}

// loginReasons are sentences about why pages need an account, by the beginning of their path. The first that fits
// counts.
var loginReasons = []struct{ prefix, reason string }{
	{"/agents/new", "An agent belongs to an account. Log in to register one."},
	{"/agents/", "Log in to do this: agents belong to accounts."},
	{"/agents", "A saved search belongs to an account. Log in to save one."},
	{"/goals", "A team works for an account. Log in to see which agents it would have, and to give it the goal."},
	{"/packages", "A package belongs to an account. Log in to publish or run one."},
	{"/library", "A library belongs to an account. Log in to open yours."},
	{"/chat", "This conversation belongs to an account. Log in to open it."},
	{"/join/", "Log in to accept the invitation."},
	{"/admin", "Only the operator of this portal sees these pages. Log in as one."},
	{"/account", "Log in to see your account."},
	{"/notices", "Log in to see your notices."},
}

// loginReason returns why a guest has to log in for the page at a checked address, "" without one.
func loginReason(next string) string {
	if next == "" || next == "/" {
		return ""
	}
	for _, l := range loginReasons {
		if strings.HasPrefix(next, l.prefix) {
			return l.reason
		}
	}
	return "Log in to open the page that you chose."
}

// login starts a session and redirects to the page in ?next=, which must be on this portal.
func (d *Pages) login(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	in, err := request.Form(w, r)
	if err != nil {
		return err
	}
	v := templates.LoginView{Name: in.Get("name"), Next: request.OwnPath(in.Get("next"), ""),
		Chats: readGuestChats(in)}
	secret, err := d.accounts.LogIn(r.Context(), actor, v.Name, in.Get("password"))
	if err != nil {
		messages, code, ok := pages.FieldErrors(w, err)
		if !ok {
			return err
		}
		v.Errors = messages
		return d.showLogin(w, r, actor, code, v)
	}
	if err := d.takeOver(r, actor, secret, v.Chats); err != nil {
		return err
	}
	d.sessions.SetCookie(w, secret)
	return respond.SeeOther(w, r, request.OwnPath(v.Next, "/"))
}

// countGuestChats returns how many conversations of a guest an account would take over, 0 for other actors.
func countGuestChats(r *http.Request, chats *chat.Service, actor ident.Actor) (int, error) {
	list, err := chats.GuestRooms(r.Context(), actor)
	return len(list), err
}

// readGuestChats reads the choice of a form that templates.GuestChats made.
func readGuestChats(in url.Values) templates.GuestChats {
	return templates.GuestChats{Take: in.Get("take_chats") == "on"}
}

// takeOver gives the conversations of the guest who logs in to the account with the session secret, if the form said
// so. The cookie of the request, which names actor, is the only proof of the right to these conversations.
func (d *Pages) takeOver(r *http.Request, actor ident.Actor, secret string, v templates.GuestChats) error {
	if !v.Take || actor.Kind != ident.Guest || actor.ID == "" {
		return nil
	}
	person, err := d.accounts.Authenticate(r.Context(), secret, actor.Addr)
	if err != nil {
		return err
	}
	return d.chat.TakeOver(r.Context(), person, actor)
}

func (d *Pages) logout(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	if err := d.accounts.LogOut(r.Context(), actor); err != nil {
		return err
	}
	d.sessions.ClearCookie(w)
	return respond.SeeOther(w, r, "/")
}

// signupForm shows the sign-up form. It passes the secret of an invitation or of the operator's setup
// link on, and does not use it up.
func (d *Pages) signupForm(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	if actor.IsPerson() {
		return respond.SeeOther(w, r, "/account")
	}
	q := r.URL.Query()
	// An invalid link is reported before the guest fills in the form.
	for _, secret := range []string{q.Get("invite"), q.Get("setup")} {
		if secret == "" {
			continue
		}
		if _, err := d.accounts.InvitationKind(r.Context(), secret); err != nil {
			return err
		}
	}
	return d.showSignup(w, r, actor, http.StatusOK,
		templates.SignupView{Invite: q.Get("invite"), Setup: q.Get("setup"), Next: request.OwnPath(q.Get("next"), ""),
			Chats: templates.GuestChats{Take: true}})
}

func (d *Pages) showSignup(w http.ResponseWriter, r *http.Request, actor ident.Actor, code int,
	v templates.SignupView) error {
	var err error
	if v.Chats.Count, err = countGuestChats(r, d.chat, actor); err != nil {
		return err
	}
	v.Policy, v.MinPassword, v.CanMail = string(d.accounts.Policy()), account.MinPassword, d.accounts.CanMail()
	title := "Sign up"
	if v.Setup != "" {
		title = "Set up this portal"
	}
	return d.site.Render(w, r, code, templates.Signup(d.site.Frame(r, actor, title), v))
}

func (d *Pages) signup(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	in, err := request.Form(w, r)
	if err != nil {
		return err
	}
	v := templates.SignupView{Name: in.Get("name"), Email: strings.TrimSpace(in.Get("email")),
		Invite: strings.TrimSpace(in.Get("invite")), Setup: strings.TrimSpace(in.Get("setup")),
		Next: request.OwnPath(in.Get("next"), ""), Chats: readGuestChats(in)}
	invite := v.Invite
	if v.Setup != "" {
		invite = v.Setup
	}
	a, err := d.accounts.SignUp(r.Context(), actor,
		account.SignUp{Name: v.Name, Password: in.Get("password"), Email: v.Email, Invite: invite})
	if err != nil {
		messages, code, ok := pages.FieldErrors(w, err)
		if !ok {
			return err
		}
		if m := messages["invite"]; m != "" && v.Setup != "" {
			delete(messages, "invite")
			messages["setup"] = m + "; a new one is printed when the portal starts without an operator"
		}
		v.Errors = messages
		return d.showSignup(w, r, actor, code, v)
	}
	next := request.OwnPath(v.Next, "/")
	if a.Operator && v.Next == "" {
		next = "/admin/welcome"
	}
	return d.signIn(w, r, actor, a, v.Chats, next)
}

// signIn starts a session for an account after its owner has authenticated.
func (d *Pages) signIn(w http.ResponseWriter, r *http.Request, actor ident.Actor, a account.Account,
	chats templates.GuestChats, next string) error {
	secret, err := d.accounts.StartSession(r.Context(), a)
	if err != nil {
		return err
	}
	if err := d.takeOver(r, actor, secret, chats); err != nil {
		return err
	}
	d.sessions.SetCookie(w, secret)
	return respond.SeeOther(w, r, next)
}

// resetForm shows the form for a new password. The reset link is used up only when the form is posted,
// because mail scanners open links.
func (d *Pages) resetForm(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	link := r.URL.Query().Get("link")
	if link == "" && d.accounts.CanMail() {
		return d.site.Render(w, r, http.StatusOK,
			templates.ResetMail(d.site.Frame(r, actor, "Forgot your password?"), templates.ResetMailView{}))
	}
	return d.showReset(w, r, actor, http.StatusOK, templates.ResetView{Token: link, Invalid: link == "",
		Chats: templates.GuestChats{Take: true}})
}

func (d *Pages) showReset(w http.ResponseWriter, r *http.Request, actor ident.Actor, code int,
	v templates.ResetView) error {
	var err error
	if v.Chats.Count, err = countGuestChats(r, d.chat, actor); err != nil {
		return err
	}
	v.MinPassword = account.MinPassword
	return d.site.Render(w, r, code, templates.Reset(d.site.Frame(r, actor, "New password"), v))
}

func (d *Pages) reset(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	in, err := request.Form(w, r)
	if err != nil {
		return err
	}
	v := templates.ResetView{Token: in.Get("token"), Chats: readGuestChats(in)}
	a, err := d.accounts.Reset(r.Context(), actor, v.Token, in.Get("password"))
	if fault.Is(err, fault.NotFound) {
		return d.showReset(w, r, actor, http.StatusNotFound, templates.ResetView{Invalid: true})
	}
	if err != nil {
		messages, code, ok := pages.FieldErrors(w, err)
		if !ok {
			return err
		}
		v.Errors = messages
		return d.showReset(w, r, actor, code, v)
	}
	return d.signIn(w, r, actor, a, v.Chats, "/account?done=password")
}

// mailReset sends a reset link to the account's stored e-mail address. The answer does not reveal whether
// the account exists.
func (d *Pages) mailReset(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	in, err := request.Form(w, r)
	if err != nil {
		return err
	}
	v, code := templates.ResetMailView{Name: in.Get("name"), Sent: true}, http.StatusOK
	if err := d.accounts.MailReset(r.Context(), actor, v.Name); err != nil {
		messages, c, ok := pages.FieldErrors(w, err)
		if !ok {
			return err
		}
		v.Sent, v.Errors, code = false, messages, c
	}
	return d.site.Render(w, r, code, templates.ResetMail(d.site.Frame(r, actor, "Forgot your password?"), v))
}
