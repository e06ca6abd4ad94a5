package handlers

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/a-h/templ"
	"github.com/go-chi/chi/v5/middleware"

	"agentsite/handlers/respond"
	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/templates"
)

// frame fills what every page has around its content.
func (d *Door) frame(r *http.Request, actor ident.Actor, title string) templates.Page {
	p := templates.Page{Title: title, Path: r.URL.Path, PortalName: d.portal.Name, PortalHandle: d.portal.Host,
		Guest: actor.Kind == ident.Guest && actor.ID != "", CanSignUp: d.accounts.Policy() == "open", Version: d.portal.Version}
	if actor.IsPerson() {
		p.User = &templates.User{Name: actor.Name, Operator: actor.IsOperator()}
		p.Notices = d.unread(r.Context(), actor)
	}
	return p
}

// policy is the content security policy of every page: scripts only of ours,
// by nonce, nothing from elsewhere, nobody frames us.
func policy(nonce string) string {
	return "default-src 'none'; script-src 'nonce-" + nonce + "' 'strict-dynamic'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
		"form-action 'self'; base-uri 'none'; frame-ancestors 'none'; manifest-src 'self'; require-trusted-types-for 'script'; trusted-types agentsite"
}

// render writes a page. It is rendered into a buffer first, so that a failure
// is an error page and never half of one.
func (d *Door) render(w http.ResponseWriter, r *http.Request, code int, c templ.Component) error {
	nonce := newNonce()
	buf := newBuffer()
	defer freeBuffer(buf)
	if err := c.Render(templ.WithNonce(r.Context(), nonce), buf); err != nil {
		return err
	}
	writePage(w, code, nonce, buf)
	return nil
}

func newNonce() string {
	var raw [16]byte
	rand.Read(raw[:])
	return base64.RawStdEncoding.EncodeToString(raw[:])
}

// buffers are reused: a page is larger than what the allocator gives away
// cheaply.
var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// maxReused bounds the buffers that are kept.
const maxReused = 512 << 10

func newBuffer() *bytes.Buffer {
	buf := buffers.Get().(*bytes.Buffer)
	buf.Reset()
	return buf
}

// freeBuffer gives a buffer back; nobody may use its bytes any more.
func freeBuffer(buf *bytes.Buffer) {
	if buf.Cap() <= maxReused {
		buffers.Put(buf)
	}
}

// pageError shows what went wrong as a page of its own.
func (d *Door) pageError(w http.ResponseWriter, r *http.Request, actor ident.Actor, err error) {
	f, _ := respond.PrepareError(w, r, d.log, err)
	id := middleware.GetReqID(r.Context())
	if f.Kind == fault.Unauthenticated && r.Method == http.MethodGet && !actor.IsPerson() {
		http.Redirect(w, r, "/login?next="+url.QueryEscape(r.URL.RequestURI()), http.StatusSeeOther)
		return
	}
	code := respond.Status(f.Kind)
	// When the request was given up, nobody waits for a page and none can be
	// rendered.
	if r.Context().Err() == nil {
		v := templates.ErrorView{Status: code, Message: f.Safe, RequestID: id}
		if err = d.render(w, r, code, templates.Error(d.frame(r, actor, "Error"), v)); err == nil {
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

// moment formats a time for people, with the machine's form beside it.
func moment(t time.Time) templates.Time {
	if t.IsZero() {
		return templates.Time{}
	}
	t = t.UTC()
	text := t.Format("2 Jan 2006, 15:04")
	if now := clock.Now(); t.Year() == now.Year() {
		text = t.Format("2 Jan, 15:04")
		if t.YearDay() == now.YearDay() {
			text = t.Format("15:04")
		}
	}
	return templates.Time{Text: text, ISO: stamp(t)}
}
