// Package personal has the API routes and the page about a person's own data: its export and its erasure.
package personal

import (
	"bufio"
	"log/slog"
	"mime"
	"net/http"
	"net/url"

	"github.com/go-chi/chi/v5"

	"agentsite/handlers/pages"
	"agentsite/handlers/request"
	"agentsite/handlers/respond"
	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/personal"
	"agentsite/templates"
)

// Handlers answers the routes of the API and the pages. Create them with New.
type Handlers struct {
	service  *personal.Service
	sessions *request.Sessions
	site     *pages.Site
	log      *slog.Logger
}

// New returns handlers over the service.
func New(service *personal.Service, sessions *request.Sessions, site *pages.Site, log *slog.Logger) *Handlers {
	return &Handlers{service, sessions, site, log}
}

// API declares the routes below /api/v1.
func (h *Handlers) API(r chi.Router) {
	r.Post("/me/export", h.sessions.API(h.exportData))
	r.Delete("/me", h.sessions.API(h.eraseMe))
}

// Pages declares the routes of the pages.
func (h *Handlers) Pages(r chi.Router) {
	r.Post("/account/export", h.site.Page(h.exportData))
	r.Get("/account/delete", h.site.Page(h.eraseForm))
	r.Post("/account/delete", h.site.Page(h.eraseAccount))
}

// exportData sends the archive while it is made. An error after the beginning aborts the answer, so that no program
// takes a part for the whole.
func (h *Handlers) exportData(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	of, err := h.service.MayExport(actor)
	if err != nil {
		return err
	}
	name := of.Name + "-" + clock.Now().UTC().Format("2006-01-02") + ".zip"
	head := w.Header()
	head.Set("Content-Type", "application/zip")
	head.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": name}))
	head.Set("Cache-Control", "no-store")
	out := &begun{ResponseWriter: w}
	b := bufio.NewWriterSize(out, 64<<10)
	err = h.service.Export(r.Context(), of, b)
	if err == nil {
		err = b.Flush()
	}
	if err == nil {
		return nil
	}
	if !out.begun {
		for _, k := range []string{"Content-Type", "Content-Disposition"} {
			head.Del(k)
		}
		return err
	}
	h.log.Error("export an account", "error", err)
	panic(http.ErrAbortHandler)
}

// begun notes whether an answer has begun.
type begun struct {
	http.ResponseWriter
	begun bool
}

func (b *begun) Write(p []byte) (int, error) {
	b.begun = true
	return b.ResponseWriter.Write(p)
}

// EraseBody is the body of DELETE /me.
type EraseBody struct {
	Confirm string `json:"confirm"`
	// Messages is "keep" or "delete": the fate of the messages in conversations with others.
	Messages string `json:"messages,omitempty"`
}

func (h *Handlers) eraseMe(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	var in EraseBody
	if err := request.DecodeBody(w, r, &in); err != nil {
		return err
	}
	if err := h.service.Erase(r.Context(), actor, in.Confirm, in.Messages); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// eraseForm shows the form that deletes the account. Somebody who signed in a while ago must sign in again, which the
// page explains.
func (h *Handlers) eraseForm(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	if !actor.IsPerson() {
		return respond.SeeOther(w, r, "/login?next="+url.QueryEscape("/account/delete"))
	}
	return h.showErase(w, r, actor, http.StatusOK, templates.EraseView{})
}

func (h *Handlers) showErase(w http.ResponseWriter, r *http.Request, actor ident.Actor, code int,
	v templates.EraseView) error {
	v.Name = actor.Name
	if err := h.service.MayErase(r.Context(), actor); fault.Is(err, fault.Forbidden) {
		v.Refused = fault.As(err).Safe
	} else if err != nil {
		return err
	}
	return h.site.Render(w, r, code, templates.Erase(h.site.Frame(r, actor, "Delete your account"), v))
}

func (h *Handlers) eraseAccount(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	in, err := request.Form(w, r)
	if err != nil {
		return err
	}
	if err := h.service.Erase(r.Context(), actor, in.Get("confirm"), in.Get("messages")); err != nil {
		messages, code, ok := pages.FieldErrors(w, err)
		if !ok {
			return err
		}
		return h.showErase(w, r, actor, code, templates.EraseView{Errors: messages,
			DeleteMessages: in.Get("messages") == string(personal.DeleteMessages)})
	}
	h.sessions.ClearCookie(w)
	return respond.SeeOther(w, r, "/")
}
