// Package handlers is the doors for browsers and for our own API: each
// handler decodes a request, makes one service call as the actor its
// credentials prove, and renders the outcome. Policy lives in the services,
// never here. Protocol faces have a subpackage each.
package handlers

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-chi/chi/v5/middleware"

	"agentsite/handlers/markup"
	"agentsite/handlers/request"
	"agentsite/handlers/respond"
	"agentsite/internal/account"
	"agentsite/internal/chat"
	"agentsite/internal/doctor"
	"agentsite/internal/fault"
	"agentsite/internal/federation"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/limit"
	"agentsite/internal/notify"
	"agentsite/internal/registry"
	"agentsite/internal/task"
)

// Config is what doors tell of the portal itself.
type Config struct {
	Name    string // of the portal, for pages
	URL     string // without a trailing slash
	Host    string // the portal's part of handles
	Version string
	// CookieName holds the portal's id, because cookies ignore ports; Secure
	// is set where the portal is reached by https.
	CookieName string
	Secure     bool
	PublicKey  string
	Started    time.Time
	Hooks      *notify.Service
	// Published says how an agent of this portal stands in the network; nil
	// where there is none.
	Published func(a hub.Agent) federation.Published
	Peers     *federation.Peers
	// Servers names agents as the MCP registry does.
	Servers *registry.Service
	// Examine looks for the answer to a question of the operator's.
	Examine func(ctx context.Context, q doctor.Question) (doctor.Report, error)
	Log     *slog.Logger
}

// Stats counts what is stored, for the operator.
type Stats interface {
	Stats(ctx context.Context) (map[string]int64, error)
}

// Door serves pages and the API. Create it with New; its methods return the
// routes.
type Door struct {
	accounts *account.Service
	hub      *hub.Service
	chat     *chat.Service
	tasks    *task.Service
	stats    Stats
	peers    *federation.Peers
	servers  *registry.Service
	markup   *markup.Renderer
	shared   shared
	visits   visits
	document func() document // made when it is first asked for
	codes    *limit.Keyed    // of codes to draw, each 10 ms and more of a processor
	proofs   *limit.Keyed    // of records with proof, which cost as much

	portal     Portal
	hooks      *notify.Service
	published  func(a hub.Agent) federation.Published
	examine    func(ctx context.Context, q doctor.Question) (doctor.Report, error)
	cookieName string
	secure     bool
	log        *slog.Logger
}

// New returns the doors over the services.
func New(accounts *account.Service, agents *hub.Service, chats *chat.Service, tasks *task.Service, stats Stats, cfg Config) *Door {
	d := &Door{accounts: accounts, hub: agents, chat: chats, tasks: tasks, stats: stats, peers: cfg.Peers, servers: cfg.Servers, markup: markup.New(), shared: newShared(), codes: limit.New(500*time.Millisecond, 60, 10_000), proofs: limit.New(500*time.Millisecond, 60, 10_000),
		portal: Portal{Name: cfg.Name, URL: cfg.URL, Host: cfg.Host, Version: cfg.Version, PublicKey: cfg.PublicKey, Started: cfg.Started},
		hooks:  cfg.Hooks, published: cfg.Published, examine: cfg.Examine, cookieName: cfg.CookieName, secure: cfg.Secure, log: cfg.Log}
	d.document = sync.OnceValue(d.newDocument)
	return d
}

// handler is a route of ours: it answers, or returns the error to be shown.
type handler func(w http.ResponseWriter, r *http.Request, actor ident.Actor) error

// page adapts a handler of a browser page: sessions count, API tokens do not.
func (d *Door) page(h handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		actor, err := d.visitor(r)
		if err == nil {
			err = h(w, r, actor)
		}
		if err != nil {
			d.pageError(w, r, actor, err)
		}
	}
}

// api adapts a handler of the API: a bearer token counts, else the session of
// the browser whose page calls it.
func (d *Door) api(h handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		actor, err := d.caller(r)
		if err == nil {
			err = h(w, r, actor)
		}
		if err != nil {
			apiError(w, r, d.log, err)
		}
	}
}

// visitor is the actor of a browser: who the session cookie proves, else a
// guest without an id. A cookie that has ended is the same as none, and so is
// one that holds an API token: tokens are for the API alone.
func (d *Door) visitor(r *http.Request) (ident.Actor, error) {
	addr := request.ClientAddr(r)
	c, err := r.Cookie(d.cookieName)
	// Only a session's secret counts here: an API token in a cookie would
	// open pages, which tokens must not.
	if err != nil || !strings.HasPrefix(c.Value, ident.SessionPrefix) {
		return ident.Actor{Kind: ident.Guest, Addr: addr}, nil
	}
	actor, err := d.accounts.Authenticate(r.Context(), c.Value, addr)
	if fault.Is(err, fault.Unauthenticated) {
		return ident.Actor{Kind: ident.Guest, Addr: addr}, nil
	}
	return actor, err
}

// caller is the actor of an API request. A bad token is an error: falling
// back to somebody else would be worse than telling.
func (d *Door) caller(r *http.Request) (ident.Actor, error) {
	if h := r.Header.Get("Authorization"); h != "" {
		token := ident.BearerToken(h)
		if !strings.HasPrefix(token, ident.TokenPrefix) {
			token = "" // a session's secret is for cookies only
		}
		return d.accounts.Authenticate(r.Context(), token, request.ClientAddr(r))
	}
	return d.visitor(r)
}

// asGuest gives a visitor without a session a guest session, so that what
// they start stays theirs.
func (d *Door) asGuest(w http.ResponseWriter, r *http.Request, actor ident.Actor) (ident.Actor, error) {
	if actor.ID != "" {
		return actor, nil
	}
	secret, actor, err := d.accounts.StartGuest(r.Context(), actor)
	if err != nil {
		return actor, err
	}
	d.setSession(w, secret)
	return actor, nil
}

// sessionSeconds is how long a browser keeps the cookie; the server decides
// when the session ends.
const sessionSeconds = 30 * 24 * 3600

func (d *Door) setSession(w http.ResponseWriter, secret string) {
	http.SetCookie(w, &http.Cookie{Name: d.cookieName, Value: secret, Path: "/", MaxAge: sessionSeconds,
		HttpOnly: true, Secure: d.secure, SameSite: http.SameSiteLaxMode})
}

func (d *Door) clearSession(w http.ResponseWriter) {
	http.SetCookie(w, &http.Cookie{Name: d.cookieName, Path: "/", MaxAge: -1, HttpOnly: true, Secure: d.secure, SameSite: http.SameSiteLaxMode})
}

type errorBody struct {
	Error struct {
		Kind      fault.Kind        `json:"kind"`
		Message   string            `json:"message"`
		Fields    map[string]string `json:"fields,omitempty"`
		RequestID string            `json:"request_id"`
	} `json:"error"`
}

func apiError(w http.ResponseWriter, r *http.Request, log *slog.Logger, err error) {
	f, code := respond.PrepareError(w, r, log, err)
	var b errorBody
	b.Error.Kind, b.Error.Message, b.Error.Fields = f.Kind, f.Safe, f.Fields
	b.Error.RequestID = middleware.GetReqID(r.Context())
	respond.SetChallenge(w, f)
	writeJSON(w, code, b)
}

// apiNotFound answers unknown routes of the API.
func (d *Door) apiNotFound(http.ResponseWriter, *http.Request, ident.Actor) error {
	return noRoute(d.portal.URL)
}

// noRoute is the error of a route that the API of a portal does not have.
func noRoute(portalURL string) error {
	return fault.New(fault.NotFound, "There is no such route. The API is described at %s/docs/api.", portalURL)
}

func writeJSON(w http.ResponseWriter, code int, v any) {
	buf := newBuffer()
	defer freeBuffer(buf)
	enc := json.NewEncoder(buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		code = http.StatusInternalServerError
		buf.Reset()
		buf.WriteString(`{"error":{"kind":"internal","message":"The answer could not be encoded."}}`)
	}
	sendJSON(w, code, buf)
}

// sendJSON answers with what is in buf.
func sendJSON(w http.ResponseWriter, code int, buf *bytes.Buffer) {
	h := w.Header()
	h.Set("Content-Type", "application/json; charset=utf-8")
	if h.Get("Cache-Control") == "" {
		h.Set("Cache-Control", "no-store")
	}
	h.Set("Content-Length", strconv.Itoa(buf.Len()))
	w.WriteHeader(code)
	w.Write(buf.Bytes())
}

// maxJSON bounds the body of an API request.
const maxJSON = 1 << 20

// decode reads a JSON body into v. Its error describes the fault in plain words. An
// unknown field is an error, because a misspelt one would silently be lost.
func decode(w http.ResponseWriter, r *http.Request, v any) error {
	return request.DecodeFields(w, r, maxJSON, v, true)
}

// decodeAgent is decode for the fields of an agent, which may hold a
// picture if it is by somebody who may have agents.
func decodeAgent(w http.ResponseWriter, r *http.Request, actor ident.Actor, v *draftJSON) error {
	most := int64(maxJSON)
	if actor.IsPerson() {
		most += (hub.MaxIconBytes + 2) / 3 * 4
	}
	return request.DecodeFields(w, r, most, v, true)
}

// stampLayout is how the API writes times.
const stampLayout = "2006-01-02T15:04:05.000Z"

// stamp formats a time as the API does; the zero time is empty. A page of
// search has sixty of them, and package time is fast for its own layouts only.
func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	t = t.UTC()
	year, month, day := t.Date()
	if year < 0 || year > 9999 {
		return t.Format(stampLayout)
	}
	hour, minute, second := t.Clock()
	b := []byte(stampLayout)
	digits := func(from, to, n int) {
		for i := to - 1; i >= from; i-- {
			b[i] = byte('0' + n%10)
			n /= 10
		}
	}
	digits(0, 4, year)
	digits(5, 7, int(month))
	digits(8, 10, day)
	digits(11, 13, hour)
	digits(14, 16, minute)
	digits(17, 19, second)
	digits(20, 23, t.Nanosecond()/1e6)
	return string(b)
}

// number reads a query parameter as a number; fallback when it is absent.
func number(r *http.Request, name string, fallback int64) (int64, error) {
	s := r.URL.Query().Get(name)
	if s == "" {
		return fallback, nil
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0, fault.Field(name, "must be a whole number")
	}
	return n, nil
}
