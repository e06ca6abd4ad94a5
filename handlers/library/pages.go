package library

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"path"
	"strings"

	"github.com/go-chi/chi/v5"

	"agentsite/handlers/files"
	"agentsite/handlers/pages"
	"agentsite/handlers/request"
	"agentsite/handlers/respond"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/library"
	"agentsite/templates"
)

// Pages declares the routes of the pages.
func (h *Handlers) Pages(r chi.Router) {
	page := h.site.Page
	r.Get("/library", page(h.showFolder))
	r.Post("/library/upload", page(h.saveUpload))
	r.Get("/library/file", page(h.showFile))
	r.Get("/library/raw", page(h.loadFile))
	r.Get("/library/edit", page(h.showEdit))
	r.Post("/library/edit", page(h.saveEdit))
	r.Post("/library/delete", page(h.removeFile))
	r.Get("/library/empty", page(h.showEmpty))
	r.Post("/library/empty", page(h.emptyLibrary))
	r.Post("/library/rollback", page(h.rollBack))
	r.Post("/library/undo", page(h.undoWrite))
	r.Post("/library/share", page(h.makeShare))
	r.Post("/library/revoke", page(h.revokeShare))
	r.Post("/library/keep", page(h.keepContent))
	r.Get(sharedPath+"{secret}", page(h.openShared))
}

// openShared answers with a shared file. Its address is the permission.
func (h *Handlers) openShared(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	respond.SetUnlisted(w)
	v, content, err := h.library.OpenShared(r.Context(), request.PathParam(r, "secret"))
	return files.Serve(w, r, actor, files.Served{Name: path.Base(v.Path), MediaType: v.MediaType, Hash: v.Hash}, content, err)
}

// askLogin leads a visitor to the login and back to the address of the request.
func askLogin(w http.ResponseWriter, r *http.Request) error {
	return respond.SeeOther(w, r, "/login?next="+url.QueryEscape(r.URL.RequestURI()))
}

func folderHref(folder string) string {
	if folder == "" {
		return "/library"
	}
	return "/library?" + url.Values{"folder": {folder}}.Encode()
}

// trailOf returns the folders above a path, the library first.
func trailOf(p string) []templates.LibraryFolder {
	out := []templates.LibraryFolder{{Name: "Your library", Href: folderHref("")}}
	for i, c := range p {
		if c == '/' {
			out = append(out, templates.LibraryFolder{Name: path.Base(p[:i]), Href: folderHref(p[:i])})
		}
	}
	return out
}

func (h *Handlers) showFolder(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	if !actor.IsPerson() {
		return askLogin(w, r)
	}
	q := r.URL.Query()
	folder := strings.Trim(q.Get("folder"), "/")
	return h.renderFolder(w, r, actor, http.StatusOK, templates.LibraryView{Folder: folder,
		Query: strings.TrimSpace(q.Get("q"))})
}

func (h *Handlers) renderFolder(w http.ResponseWriter, r *http.Request, actor ident.Actor, code int,
	v templates.LibraryView) error {
	if v.Query != "" {
		hits, err := h.library.Search(r.Context(), actor, v.Query)
		if err != nil {
			return err
		}
		for _, hit := range hits {
			row := fileRow(hit.File.Path, hit.File)
			row.Excerpt = hit.Excerpt
			v.Rows = append(v.Rows, row)
		}
	} else {
		list, next, err := h.library.Folder(r.Context(), actor, v.Folder, r.URL.Query().Get("cursor"))
		if err != nil {
			return err
		}
		for _, e := range list {
			name, folder := strings.CutSuffix(e.Name, "/")
			if !folder {
				v.Rows = append(v.Rows, fileRow(e.Name, e.File))
				continue
			}
			v.Rows = append(v.Rows, templates.LibraryRow{Name: name, Folder: true,
				Href: folderHref(strings.TrimPrefix(v.Folder+"/"+name, "/"))})
		}
		if next != "" {
			v.Next = "/library?" + url.Values{"folder": {v.Folder}, "cursor": {next}}.Encode()
		}
	}
	if v.Folder != "" {
		v.Trail = trailOf(v.Folder)
	}
	p := h.site.Frame(r, actor, "Your library")
	p.Flash = flashOf(r)
	return h.site.Render(w, r, code, templates.Library(p, v))
}

func fileRow(name string, f library.File) templates.LibraryRow {
	return templates.LibraryRow{Name: name, Href: templates.LibraryHref(f.Path), Size: pages.FormatBytes(f.Size),
		Since: pages.FormatMoment(f.UpdatedAt)}
}

// flashOf returns the confirmation of the act before.
func flashOf(r *http.Request) string {
	if r.Method != http.MethodGet {
		return ""
	}
	return map[string]string{"sent": "Saved.", "saved": "Saved as a new version.",
		"deleted": "Deleted. Go back to a version below to have it again.", "back": "The earlier content is the newest version now.",
		"undone": "Undone.", "revoked": "The link no longer works.", "kept": "Kept in your library.",
		"emptied": "Your library is empty."}[r.URL.Query().Get("done")]
}

// maxUpload is the number of files of one form.
const maxUpload = 50

// saveUpload stores the files of a form while they are received. Files before a refused one stay.
func (h *Handlers) saveUpload(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "multipart/form-data" {
		in, err := request.Form(w, r)
		if err == nil {
			_, _, err = h.library.Folder(r.Context(), actor, in.Get("folder"), "")
		}
		if err != nil {
			return err
		}
		return respond.SeeOther(w, r, folderHref(in.Get("folder")))
	}
	allowUpload(w, r, 4*files.MaxSize(actor)+request.MaxForm)
	reader, err := r.MultipartReader()
	if err != nil {
		return fault.Wrap(fault.Invalid, err, "The form could not be read.")
	}
	folder, n := "", 0
	for ; ; n++ {
		part, err := reader.NextPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil && n > maxUpload {
			err = fault.New(fault.Invalid, "Send at most %d files at once.", maxUpload)
		}
		if err == nil && part.FormName() == "folder" {
			var b []byte
			if b, err = io.ReadAll(io.LimitReader(part, library.MaxPath+1)); err == nil {
				folder = strings.Trim(string(b), "/")
			}
		} else if err == nil && part.FormName() == "file" && part.FileName() != "" {
			to := strings.TrimPrefix(folder+"/"+library.CleanPath(part.FileName()), "/")
			_, err = h.library.Put(r.Context(), actor, to, library.Draft{Content: part,
				MediaType: part.Header.Get("Content-Type"), Expect: library.AnyVersion})
		}
		if err != nil {
			return h.refuseUpload(w, r, actor, folder, files.ReadError(err))
		}
	}
	return respond.SeeOther(w, r, withDone(folderHref(folder), "sent"))
}

// refuseUpload shows the folder with the reason why a file was not stored.
func (h *Handlers) refuseUpload(w http.ResponseWriter, r *http.Request, actor ident.Actor, folder string,
	err error) error {
	f := fault.As(err)
	if f.Kind == fault.Internal || f.Kind == fault.Unauthenticated || !actor.IsPerson() {
		return err
	}
	respond.RetryAfter(w.Header(), f.RetryAfter)
	return h.renderFolder(w, r, actor, respond.StatusOf(f), templates.LibraryView{Folder: folder,
		Errors: templates.FieldErrors{"file": f.Safe}})
}

func withDone(href, done string) string {
	if strings.Contains(href, "?") {
		return href + "&done=" + done
	}
	return href + "?done=" + done
}

func (h *Handlers) showEmpty(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	if !actor.IsPerson() {
		return askLogin(w, r)
	}
	return h.renderEmpty(w, r, actor, http.StatusOK, nil)
}

// renderEmpty renders the form that empties the library.
func (h *Handlers) renderEmpty(w http.ResponseWriter, r *http.Request, actor ident.Actor, code int,
	messages templates.FieldErrors) error {
	files, versions, err := h.library.CountAll(r.Context(), actor)
	if err != nil {
		return err
	}
	return h.site.Render(w, r, code, templates.LibraryEmpty(h.site.Frame(r, actor, "Empty your library"),
		templates.LibraryEmptyView{Files: files, Versions: versions, Confirm: library.ConfirmAll, Errors: messages}))
}

func (h *Handlers) emptyLibrary(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	in, err := request.Form(w, r)
	if err != nil {
		return err
	}
	if _, err = h.library.Empty(r.Context(), actor, in.Get("confirm")); err == nil {
		return respond.SeeOther(w, r, withDone("/library", "emptied"))
	}
	_, code, ok := pages.FieldErrors(w, err)
	if !ok || !actor.IsPerson() {
		return err
	}
	return h.renderEmpty(w, r, actor, code, templates.FieldErrors{"confirm": "tick this, so that nothing is deleted by mistake"})
}

// keepContent copies a file of a conversation to the library, under its name or with a number if another content has it.
func (h *Handlers) keepContent(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	in, err := request.Form(w, r)
	if err != nil {
		return err
	}
	v, err := h.library.Keep(r.Context(), actor, in.Get("hash"), in.Get("path"))
	if err != nil {
		return err
	}
	return respond.SeeOther(w, r, request.OwnPath(in.Get("next"), withDone(templates.LibraryHref(v.Path), "kept")))
}
