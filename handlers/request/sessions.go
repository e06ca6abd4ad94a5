package request

import (
	"log/slog"
	"net/http"
	"strings"

	"agentsite/handlers/respond"
	"agentsite/internal/account"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
)

// Sessions determines the actor of a browser or of an API client, and sets the session cookie. Create it with
// NewSessions.
type Sessions struct {
	accounts   *account.Service
	cookieName string
	secure     bool
	log        *slog.Logger
}

// NewSessions returns Sessions over the accounts of a portal. cookieName contains the portal's id, because cookies
// ignore ports. secure is for portals with an https address.
func NewSessions(accounts *account.Service, cookieName string, secure bool, log *slog.Logger) *Sessions {
	return &Sessions{accounts: accounts, cookieName: cookieName, secure: secure, log: log}
}

// Handler handles a route for an actor. It either answers, or returns the error to send without having
// written anything.
type Handler func(w http.ResponseWriter, r *http.Request, actor ident.Actor) error

// API adapts a handler of the API. The actor is that of the bearer token, otherwise that of the session
// cookie, otherwise a guest.
func (d *Sessions) API(h Handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		actor, err := d.Caller(r)
		if err == nil {
			respond.SetReader(w, actor)
			err = h(w, r, actor)
		}
		if err != nil {
			respond.Error(w, r, d.log, err)
		}
	}
}

// Listing is API for a handler whose answer is a page of a list or of a transcript.
func (d *Sessions) Listing(h Handler) http.HandlerFunc { return d.API(Listing(h)) }

// Listing reserves memory for the answer of h, which is a page of a list or of a transcript.
func Listing(h Handler) Handler {
	return func(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
		if err := respond.Reserve(r.Context(), w, actor); err != nil {
			return err
		}
		return h(w, r, actor)
	}
}

// Visitor returns the actor of a browser: the owner of the session cookie, otherwise a guest with an
// empty id. An expired cookie is ignored, and so is one that contains an API token, because tokens are
// for the API only.
func (d *Sessions) Visitor(r *http.Request) (ident.Actor, error) {
	addr := ClientAddr(r)
	c, err := r.Cookie(d.cookieName)
	// Only the secret of a session is accepted here, because an API token must not open pages.
	if err != nil || !strings.HasPrefix(c.Value, ident.SessionPrefix) {
		return ident.Actor{Kind: ident.Guest, Addr: addr}, nil
	}
	actor, err := d.accounts.Authenticate(r.Context(), c.Value, addr)
	if fault.Is(err, fault.Unauthenticated) {
		return ident.Actor{Kind: ident.Guest, Addr: addr}, nil
	}
	return actor, err
}

// Caller returns the actor of an API request. A bad token is an error, because a caller that silently
// became another actor would not notice.
func (d *Sessions) Caller(r *http.Request) (ident.Actor, error) {
	if h := r.Header.Get("Authorization"); h != "" {
		token := ident.BearerToken(h)
		if !strings.HasPrefix(token, ident.TokenPrefix) {
			token = "" // refused, because session secrets are valid in cookies only
		}
		return d.accounts.Authenticate(r.Context(), token, ClientAddr(r))
	}
	return d.Visitor(r)
}

// EnsureGuest gives a guest without a session a new one and sets its cookie, so that the guest keeps
// access to the new conversation.
func (d *Sessions) EnsureGuest(w http.ResponseWriter, r *http.Request, actor ident.Actor) (ident.Actor, error) {
	if actor.ID != "" {
		return actor, nil
	}
	secret, actor, err := d.accounts.StartGuest(r.Context(), actor)
	if err != nil {
		return actor, err
	}
	d.SetCookie(w, secret)
	return actor, nil
}

// sessionSeconds is how long browsers keep the session cookie. The server decides when the session ends.
const sessionSeconds = 30 * 24 * 3600

func (d *Sessions) SetCookie(w http.ResponseWriter, secret string) {
	http.SetCookie(w, &http.Cookie{Name: d.cookieName, Value: secret, Path: "/", MaxAge: sessionSeconds,
		HttpOnly: true, Secure: d.secure, SameSite: http.SameSiteLaxMode})
}

func (d *Sessions) ClearCookie(w http.ResponseWriter) {
	http.SetCookie(w, &http.Cookie{Name: d.cookieName, Path: "/", MaxAge: -1, HttpOnly: true, Secure: d.secure,
		SameSite: http.SameSiteLaxMode})
}
