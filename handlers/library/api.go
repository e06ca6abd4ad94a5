// Package library has the API routes and pages of the library of a person: versioned files by path.
package library

import (
	"context"
	"io"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"agentsite/handlers/files"
	"agentsite/handlers/pages"
	"agentsite/handlers/request"
	"agentsite/handlers/respond"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/library"
)

// Handlers answers the routes. Create it with New.
type Handlers struct {
	library  *library.Service
	sessions *request.Sessions
	site     *pages.Site
	url      string // of the portal, without a trailing slash
}

// New returns handlers over the service.
func New(l *library.Service, s *request.Sessions, site *pages.Site, url string) *Handlers {
	return &Handlers{l, s, site, url}
}

// API declares the routes below /api/v1. The path of a file may have slashes.
func (h *Handlers) API(r chi.Router) {
	r.Get("/library", h.sessions.API(h.listFiles))
	r.Delete("/library", h.sessions.API(h.deleteAll))
	r.Get("/library/*", h.sessions.API(h.getFile))
	r.Put("/library/*", h.sessions.API(h.putFile))
	r.Delete("/library/*", h.sessions.API(h.deleteFile))
	r.Post("/library/*", h.sessions.API(h.postFile))
	r.Get("/library-shares", h.sessions.API(h.listShares))
	r.Delete("/library-shares/{id}", h.sessions.API(h.deleteShare))
}

// FileJSON is a file as it is now. Excerpt is the text around the words of a search, "" without one.
type FileJSON struct {
	Path      string `json:"path"`
	Version   int    `json:"version"`
	Hash      string `json:"hash"`
	Size      int64  `json:"size"`
	MediaType string `json:"media_type"`
	UpdatedAt string `json:"updated_at"`
	Excerpt   string `json:"excerpt,omitempty"`
}

func fileJSON(f library.File, excerpt string) FileJSON {
	return FileJSON{f.Path, f.Version, f.Hash, f.Size, f.MediaType, respond.FormatTime(f.UpdatedAt), excerpt}
}

// VersionJSON is a version of a file. Hash is "" for a deletion. Agent, Conversation and Task are set if an agent wrote
// it.
type VersionJSON struct {
	Path         string `json:"path"`
	Version      int    `json:"version"`
	Hash         string `json:"hash"`
	Size         int64  `json:"size"`
	MediaType    string `json:"media_type"`
	Restores     int    `json:"restores,omitempty"`
	Agent        string `json:"agent,omitempty"`
	Conversation string `json:"conversation,omitempty"`
	Task         string `json:"task,omitempty"`
	CreatedAt    string `json:"created_at"`
}

func versionJSON(v library.Version) VersionJSON {
	return VersionJSON{v.Path, v.Number, v.Hash, v.Size, v.MediaType, v.Restores, writerName(v.By),
		v.By.ConversationID, v.By.TaskID, respond.FormatTime(v.At)}
}

// writerName returns the name of the agent that wrote a version, "" for the person.
func writerName(w library.Writer) string {
	if w.AgentID != "" && w.Agent == "" {
		return "an erased agent"
	}
	return w.Agent
}

// ShareJSON is a link. Version is 0 if it shows the newest one. URL is known only when the link is made.
type ShareJSON struct {
	ID        string `json:"id"`
	Path      string `json:"path"`
	Version   int    `json:"version"`
	URL       string `json:"url,omitempty"`
	CreatedAt string `json:"created_at"`
	ExpiresAt string `json:"expires_at"`
}

func (h *Handlers) shareJSON(s library.Share, secret string) ShareJSON {
	out := ShareJSON{ID: s.ID, Path: s.Path, Version: s.Version, CreatedAt: respond.FormatTime(s.CreatedAt),
		ExpiresAt: respond.FormatTime(s.ExpiresAt)}
	if secret != "" {
		out.URL = h.url + sharedPath + secret
	}
	return out
}

// sharedPath is the address of a shared file without the secret.
const sharedPath = "/shared-files/"

func (h *Handlers) listFiles(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	q := r.URL.Query()
	limit, err := request.QueryInt(r, "limit", 0)
	if err != nil {
		return err
	}
	out := []FileJSON{}
	if q.Has("q") {
		hits, err := h.library.Search(r.Context(), actor, q.Get("q"))
		if err != nil {
			return err
		}
		for _, hit := range hits {
			out = append(out, fileJSON(hit.File, hit.Excerpt))
		}
		respond.JSON(w, http.StatusOK, map[string]any{"files": out, "next_cursor": ""})
		return nil
	}
	page, err := h.library.List(r.Context(), actor, q.Get("prefix"), q.Get("cursor"), int(min(limit, 1<<20)))
	if err != nil {
		return err
	}
	for _, f := range page.Files {
		out = append(out, fileJSON(f, ""))
	}
	respond.JSON(w, http.StatusOK, map[string]any{"files": out, "next_cursor": page.Next})
	return nil
}

// getFile answers with the content of a file, or with its versions if ?versions= is set.
func (h *Handlers) getFile(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	name := request.PathParam(r, "*")
	version, err := request.QueryInt(r, "version", 0)
	if err != nil {
		return err
	}
	if r.URL.Query().Has("text") {
		return h.serveText(w, r, actor, name, int(version))
	}
	if !r.URL.Query().Has("versions") {
		return h.serveVersion(w, r, actor, name, int(version))
	}
	before, err := request.QueryInt(r, "before", 0)
	if err != nil {
		return err
	}
	list, err := h.library.Versions(r.Context(), actor, name, int(before))
	if err != nil {
		return err
	}
	out := make([]VersionJSON, len(list))
	for i, v := range list {
		out[i] = versionJSON(v)
	}
	respond.JSON(w, http.StatusOK, map[string]any{"versions": out})
	return nil
}

func (h *Handlers) serveVersion(w http.ResponseWriter, r *http.Request, actor ident.Actor, name string,
	version int) error {
	v, content, err := h.library.Open(r.Context(), actor, name, version)
	return files.Serve(w, r, actor, files.Served{Name: path.Base(v.Path), MediaType: v.MediaType, Hash: v.Hash}, content, err)
}

// serveText answers with the text of a version, of a PDF file that of its pages.
func (h *Handlers) serveText(w http.ResponseWriter, r *http.Request, actor ident.Actor, name string, version int) error {
	text, _, err := h.library.ReadText(r.Context(), actor, name, version)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	_, err = io.WriteString(w, text)
	return err
}

// expected returns the version that must be the newest according to the conditions of a request.
func expected(r *http.Request) (int, error) {
	if r.Header.Get("If-None-Match") == "*" {
		return 0, nil
	}
	text := strings.Trim(r.Header.Get("If-Match"), `"`)
	if text == "" {
		return library.AnyVersion, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return 0, fault.New(fault.Invalid, "If-Match is the number of a version, in quotes.")
	}
	return n, nil
}

func (h *Handlers) putFile(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	expect, err := expected(r)
	if err != nil {
		return err
	}
	allowUpload(w, r, files.MaxSize(actor))
	v, err := h.library.Put(r.Context(), actor, request.PathParam(r, "*"), library.Draft{Content: r.Body,
		MediaType: r.Header.Get("Content-Type"), Expect: expect})
	if err != nil {
		return files.ReadError(err)
	}
	code := http.StatusOK
	if v.Number == 1 {
		code = http.StatusCreated
	}
	respond.JSON(w, code, versionJSON(v))
	return nil
}

// allowUpload gives the transfer of a body more time and at most that many bytes.
func allowUpload(w http.ResponseWriter, r *http.Request, most int64) {
	rc := http.NewResponseController(w)
	rc.SetReadDeadline(time.Now().Add(files.UploadTime))
	rc.SetWriteDeadline(time.Now().Add(files.UploadTime + time.Minute))
	r.Body = http.MaxBytesReader(w, r.Body, most)
}

func (h *Handlers) deleteFile(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	_, err := h.library.Delete(r.Context(), actor, request.PathParam(r, "*"))
	if err == nil {
		w.WriteHeader(http.StatusNoContent)
	}
	return err
}

// deleteAll empties the library. The answer has the number of deleted versions.
func (h *Handlers) deleteAll(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	n, err := h.library.Empty(r.Context(), actor, r.URL.Query().Get("confirm"))
	if err != nil {
		return err
	}
	respond.JSON(w, http.StatusOK, map[string]any{"deleted": n})
	return nil
}

// NumberBody names a version.
type NumberBody struct {
	Version int `json:"version"`
}

// ShareBody makes a link. Version 0 shows the newest one at each time.
type ShareBody struct {
	Life    string `json:"life"`
	Version int    `json:"version"`
}

// postFile does to a file the act that the last word of the path names.
func (h *Handlers) postFile(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	name, act := splitAct(request.PathParam(r, "*"))
	switch act {
	case "rollback", "undo":
		var in NumberBody
		if err := request.DecodeBody(w, r, &in); err != nil {
			return err
		}
		change := h.library.RollBack
		if act == "undo" {
			change = h.library.Undo
		}
		return h.answerVersion(w, r, actor, name, in.Version, change)
	case "share":
		var in ShareBody
		if err := request.DecodeBody(w, r, &in); err != nil {
			return err
		}
		life, err := time.ParseDuration(in.Life)
		if err != nil {
			life = 0
		}
		s, secret, err := h.library.Share(r.Context(), actor, name, in.Version, life)
		if err != nil {
			return err
		}
		respond.JSON(w, http.StatusCreated, h.shareJSON(s, secret))
		return nil
	}
	return fault.New(fault.NotFound, "There is no such route. End the path with /rollback, /undo or /share.")
}

// splitAct splits the last name off a path.
func splitAct(p string) (name, act string) {
	i := strings.LastIndexByte(p, '/')
	if i < 0 {
		return "", p
	}
	return p[:i], p[i+1:]
}

func (h *Handlers) answerVersion(w http.ResponseWriter, r *http.Request, actor ident.Actor, name string, version int,
	change func(context.Context, ident.Actor, string, int) (library.Version, error)) error {
	v, err := change(r.Context(), actor, name, version)
	if err != nil {
		return err
	}
	respond.JSON(w, http.StatusOK, versionJSON(v))
	return nil
}

func (h *Handlers) listShares(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	list, err := h.library.Shares(r.Context(), actor, r.URL.Query().Get("path"))
	if err != nil {
		return err
	}
	out := make([]ShareJSON, len(list))
	for i, s := range list {
		out[i] = h.shareJSON(s, "")
	}
	respond.JSON(w, http.StatusOK, map[string]any{"shares": out})
	return nil
}

func (h *Handlers) deleteShare(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	err := h.library.Revoke(r.Context(), actor, request.PathParam(r, "id"))
	if err == nil {
		w.WriteHeader(http.StatusNoContent)
	}
	return err
}
