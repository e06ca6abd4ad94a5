// Package pages contains the parts shared by the page packages below it: the frame around a page, error pages,
// agent cards, and the format of numbers and times.
package pages

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"

	"github.com/a-h/templ"
	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"

	"agentsite/handlers/address"
	"agentsite/handlers/markup"
	"agentsite/handlers/request"
	"agentsite/handlers/respond"
	"agentsite/internal/account"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/profile"
	"agentsite/templates"
)

// Site renders the pages of a portal: the frame around each, its errors, and the parts shared by several packages.
// Create it with NewSite.
type Site struct {
	portal   address.Portal
	accounts *account.Service
	hub      *hub.Service
	sessions *request.Sessions
	profiles *profile.Service // nil shows no pictures of people
	markup   *markup.Renderer
	shared   shared
	log      *slog.Logger
}

// NewSite returns the shared parts of the pages of a portal.
func NewSite(portal address.Portal, accounts *account.Service, agents *hub.Service, sessions *request.Sessions,
	profiles *profile.Service, renderer *markup.Renderer, log *slog.Logger) *Site {
	return &Site{portal: portal, accounts: accounts, hub: agents, sessions: sessions, profiles: profiles,
		markup: renderer,
		shared: newShared(), log: log}
}

// Frame returns the parts of a page that surround its content: title, navigation, the actor's menu and
// unread count.
func (d *Site) Frame(r *http.Request, actor ident.Actor, title string) templates.Page {
	p := templates.Page{Title: title, Path: r.URL.Path, PortalName: d.portal.Name(), PortalHandle: d.portal.Host,
		Guest: actor.Kind == ident.Guest && actor.ID != "", CanSignUp: d.accounts.Policy() == "open",
		Version: d.portal.Version, SearchHost: d.portal.Meanings.Host}
	if d.portal.Meanings.Private {
		p.PrivateHost = d.portal.Meanings.Host
	}
	if actor.IsPerson() {
		p.User = &templates.User{Name: actor.Name, Operator: actor.IsOperator()}
		look := d.profiles.Look(r.Context(), actor)
		if p.Theme = look.Theme; look.Picture != "" {
			p.User.Picture = templates.PersonPictureHref(actor.Name, look.Picture)
		}
		p.Notices = d.countUnread(r.Context(), actor)
	}
	return p
}

// Render writes a page. It is rendered into a buffer first, so that a failure gives an error page and never half a
// page.
func (d *Site) Render(w http.ResponseWriter, r *http.Request, code int, c templ.Component) error {
	nonce := respond.NewNonce()
	buf := respond.NewBuffer()
	defer respond.FreeBuffer(buf)
	if err := c.Render(templ.WithNonce(d.WithFaces(r.Context()), nonce), buf); err != nil {
		return err
	}
	respond.WritePage(w, code, nonce, buf)
	return nil
}

// WithFaces returns a context in which templates show the pictures of people.
func (d *Site) WithFaces(ctx context.Context) context.Context {
	if d.profiles == nil {
		return ctx
	}
	return templates.WithFaces(ctx, func(name string) string { return d.profiles.Picture(ctx, name) })
}

// PageError answers with an error as a page.
func (d *Site) PageError(w http.ResponseWriter, r *http.Request, actor ident.Actor, err error) {
	f, _ := respond.PrepareError(w, r, d.log, err)
	id := middleware.GetReqID(r.Context())
	if f.Kind == fault.Unauthenticated && r.Method == http.MethodGet && !actor.IsPerson() {
		http.Redirect(w, r, "/login?next="+url.QueryEscape(r.URL.RequestURI()), http.StatusSeeOther)
		return
	}
	code := respond.StatusOf(f)
	// A canceled request has no client that could read a page, and rendering would fail.
	if r.Context().Err() == nil {
		v := templates.ErrorView{Status: code, Message: f.Safe, RequestID: id}
		if err = d.Render(w, r, code, templates.Error(d.Frame(r, actor, "Error"), v)); err == nil {
			return
		}
		if r.Context().Err() == nil {
			d.log.Error("render error page", "error", err)
		}
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(code)
	w.Write([]byte(templates.ErrorFallback(code, f.Safe, id)))
}

// countUnread returns the number of unread notifications for the header. An error counts as 0, so that it
// does not prevent the page.
func (d *Site) countUnread(ctx context.Context, actor ident.Actor) int {
	n, err := d.hub.Notices.CountUnread(ctx, actor)
	if err != nil {
		d.log.Warn("count notices", "error", err)
	}
	return n
}

// Page adapts a handler of a page. The actor is that of the session cookie; API tokens are not accepted.
func (d *Site) Page(h request.Handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		actor, err := d.sessions.Visitor(r)
		if err == nil {
			respond.SetReader(w, actor)
			err = h(w, r, actor)
		}
		if err != nil {
			d.PageError(w, r, actor, err)
		}
	}
}

func (d *Site) notFound(http.ResponseWriter, *http.Request, ident.Actor) error {
	return fault.New(fault.NotFound, "There is no such page. It may have been moved or removed.")
}

// Routes declares the answers to unknown addresses and methods.
func (d *Site) Routes(r chi.Router) {
	r.NotFound(d.Page(d.notFound))
	r.MethodNotAllowed(d.Page(d.notFound))
}
