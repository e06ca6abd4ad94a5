package handlers

import (
	"net/http"
	"strings"

	"agentsite/internal/account"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/templates"
)

func (d *Door) loginForm(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	next := ownPath(r.URL.Query().Get("next"), "")
	if actor.IsPerson() {
		return see(w, r, ownPath(next, "/account"))
	}
	return d.render(w, r, http.StatusOK, templates.Login(d.frame(r, actor, "Log in"), templates.LoginView{Next: next, Mail: d.accounts.CanMail()}))
}

// login starts a session and goes on to where the visitor wanted to be.
func (d *Door) login(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	in, err := form(w, r)
	if err != nil {
		return err
	}
	v := templates.LoginView{Name: in.Get("name"), Next: ownPath(in.Get("next"), ""), Mail: d.accounts.CanMail()}
	secret, err := d.accounts.LogIn(r.Context(), actor, v.Name, in.Get("password"))
	if err != nil {
		messages, code, ok := fieldErrors(w, err)
		if !ok {
			return err
		}
		v.Errors = messages
		return d.render(w, r, code, templates.Login(d.frame(r, actor, "Log in"), v))
	}
	d.setSession(w, secret)
	return see(w, r, ownPath(v.Next, "/"))
}

func (d *Door) logout(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	if err := d.accounts.LogOut(r.Context(), actor); err != nil {
		return err
	}
	d.clearSession(w)
	return see(w, r, "/")
}

// signupForm shows the form; an invitation or the operator's one-time link is
// only carried along.
func (d *Door) signupForm(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	if actor.IsPerson() {
		return see(w, r, "/account")
	}
	q := r.URL.Query()
	// A link that is good for nothing says so before anybody fills in a form.
	for _, secret := range []string{q.Get("invite"), q.Get("setup")} {
		if secret == "" {
			continue
		}
		if _, err := d.accounts.InvitationKind(r.Context(), secret); err != nil {
			return err
		}
	}
	return d.showSignup(w, r, actor, http.StatusOK, templates.SignupView{Invite: q.Get("invite"), Setup: q.Get("setup"), Next: ownPath(q.Get("next"), "")})
}

func (d *Door) showSignup(w http.ResponseWriter, r *http.Request, actor ident.Actor, code int, v templates.SignupView) error {
	v.Policy, v.MinPassword, v.CanMail = string(d.accounts.Policy()), account.MinPassword, d.accounts.CanMail()
	title := "Sign up"
	if v.Setup != "" {
		title = "Set up this portal"
	}
	return d.render(w, r, code, templates.Signup(d.frame(r, actor, title), v))
}

func (d *Door) signup(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	in, err := form(w, r)
	if err != nil {
		return err
	}
	v := templates.SignupView{Name: in.Get("name"), Email: strings.TrimSpace(in.Get("email")), Invite: strings.TrimSpace(in.Get("invite")), Setup: strings.TrimSpace(in.Get("setup")),
		Next: ownPath(in.Get("next"), "")}
	invite := v.Invite
	if v.Setup != "" {
		invite = v.Setup
	}
	a, err := d.accounts.SignUp(r.Context(), actor, account.SignUp{Name: v.Name, Password: in.Get("password"), Email: v.Email, Invite: invite})
	if err != nil {
		messages, code, ok := fieldErrors(w, err)
		if !ok {
			return err
		}
		if m := messages["invite"]; m != "" && v.Setup != "" {
			delete(messages, "invite")
			messages["setup"] = m + "; it is printed anew when the portal starts without an operator"
		}
		v.Errors = messages
		return d.showSignup(w, r, actor, code, v)
	}
	next := ownPath(v.Next, "/")
	if a.Operator && v.Next == "" {
		next = "/admin"
	}
	return d.signIn(w, r, a, next)
}

// signIn starts a session for an account that has just been proved.
func (d *Door) signIn(w http.ResponseWriter, r *http.Request, a account.Account, next string) error {
	secret, err := d.accounts.StartSession(r.Context(), a)
	if err != nil {
		return err
	}
	d.setSession(w, secret)
	return see(w, r, next)
}

// resetForm shows the form for a new password; the link is used up only when
// it is posted.
func (d *Door) resetForm(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	link := r.URL.Query().Get("link")
	if link == "" && d.accounts.CanMail() {
		return d.render(w, r, http.StatusOK, templates.ResetMail(d.frame(r, actor, "Forgot your password?"), templates.ResetMailView{}))
	}
	return d.showReset(w, r, actor, http.StatusOK, templates.ResetView{Token: link, Invalid: link == ""})
}

func (d *Door) showReset(w http.ResponseWriter, r *http.Request, actor ident.Actor, code int, v templates.ResetView) error {
	v.MinPassword = account.MinPassword
	return d.render(w, r, code, templates.Reset(d.frame(r, actor, "New password"), v))
}

func (d *Door) reset(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	in, err := form(w, r)
	if err != nil {
		return err
	}
	v := templates.ResetView{Token: in.Get("token")}
	a, err := d.accounts.Reset(r.Context(), actor, v.Token, in.Get("password"))
	if fault.Is(err, fault.NotFound) {
		return d.showReset(w, r, actor, http.StatusNotFound, templates.ResetView{Invalid: true})
	}
	if err != nil {
		messages, code, ok := fieldErrors(w, err)
		if !ok {
			return err
		}
		v.Errors = messages
		return d.showReset(w, r, actor, code, v)
	}
	return d.signIn(w, r, a, "/account?done=password")
}

// mailReset sends a reset link to the account's own address. The answer tells
// nobody whether the account exists.
func (d *Door) mailReset(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	in, err := form(w, r)
	if err != nil {
		return err
	}
	v, code := templates.ResetMailView{Name: in.Get("name"), Sent: true}, http.StatusOK
	if err := d.accounts.MailReset(r.Context(), actor, v.Name); err != nil {
		messages, c, ok := fieldErrors(w, err)
		if !ok {
			return err
		}
		v.Sent, v.Errors, code = false, messages, c
	}
	return d.render(w, r, code, templates.ResetMail(d.frame(r, actor, "Forgot your password?"), v))
}
