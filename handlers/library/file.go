package library

import (
	"errors"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	"agentsite/handlers/pages"
	"agentsite/handlers/pages/linediff"
	"agentsite/handlers/request"
	"agentsite/handlers/respond"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/library"
	"agentsite/templates"
)

func (h *Handlers) loadFile(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	version, err := request.QueryInt(r, "version", 0)
	if err != nil {
		return err
	}
	return h.serveVersion(w, r, actor, r.URL.Query().Get("path"), int(version))
}

func (h *Handlers) showFile(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	if !actor.IsPerson() {
		return askLogin(w, r)
	}
	return h.renderFile(w, r, actor, http.StatusOK, r.URL.Query().Get("path"), templates.LibraryFileView{})
}

// renderFile renders the page of a file. v may have a link that was made, and errors.
func (h *Handlers) renderFile(w http.ResponseWriter, r *http.Request, actor ident.Actor, code int, name string,
	v templates.LibraryFileView) error {
	f, err := h.library.Find(r.Context(), actor, name)
	if err != nil {
		return err
	}
	version, err := request.QueryInt(r, "version", int64(f.Version))
	if err != nil {
		return err
	}
	before, err := request.QueryInt(r, "before", 0)
	if err != nil {
		return err
	}
	list, err := h.library.Versions(r.Context(), actor, f.Path, int(before))
	if err != nil {
		return err
	}
	v.Path, v.Name, v.Trail, v.Newest = f.Path, f.Name(), trailOf(f.Path), f.Version
	for _, x := range list {
		v.Versions = append(v.Versions, versionRow(f, x, int(version)))
	}
	if n := len(list); n > 0 && n%100 == 0 && list[n-1].Number > 1 {
		v.More = templates.LibraryHref(f.Path) + "&before=" + strconv.Itoa(list[n-1].Number)
	}
	if err := h.fillVersion(r, actor, f, int(version), &v); err != nil {
		return err
	}
	if v.Shares, err = h.shareRows(r, actor, f.Path); err != nil {
		return err
	}
	for _, life := range []templates.Option{{Value: "24h", Label: "1 day"}, {Value: "168h", Label: "7 days"},
		{Value: "720h", Label: "30 days"}, {Value: "8760h", Label: "1 year"}} {
		life.Selected = life.Value == "168h"
		v.Lives = append(v.Lives, life)
	}
	p := h.site.Frame(r, actor, v.Name)
	p.Flash = flashOf(r)
	return h.site.Render(w, r, code, templates.LibraryFile(p, v))
}

// fillVersion adds the version that is shown and its differences to the one before.
func (h *Handlers) fillVersion(r *http.Request, actor ident.Actor, f library.File, number int,
	v *templates.LibraryFileView) error {
	list, err := h.library.Versions(r.Context(), actor, f.Path, number+1)
	if err != nil {
		return err
	}
	if len(list) == 0 || list[0].Number != number {
		return fault.New(fault.NotFound, "There is no version %d of this file.", number)
	}
	x := list[0]
	v.Number, v.Since, v.Deleted = number, pages.FormatMoment(x.At), x.Hash == ""
	var text string
	if !v.Deleted {
		at := url.Values{"path": {f.Path}, "version": {strconv.Itoa(number)}}.Encode()
		v.Size, v.Kind, v.RawHref = pages.FormatBytes(x.Size), x.MediaType, "/library/raw?"+at
		var err error
		if text, v.IsText, err = h.textOf(r, actor, x); err != nil {
			return err
		}
		if library.IsPDF(x.MediaType) {
			if err := h.fillPages(r, actor, x, at, v); err != nil {
				return err
			}
		}
		if v.Text = text; v.IsText && number == f.Version {
			v.EditHref = "/library/edit?" + url.Values{"path": {f.Path}}.Encode()
		}
	}
	if len(list) < 2 {
		return nil
	}
	v.Before = list[1].Number
	old, wasText, err := h.textOf(r, actor, list[1])
	if err == nil && (v.IsText || v.Deleted) && (wasText || list[1].Hash == "") && old != text {
		v.Changes = linediff.Fold(linediff.Compare(linesOf(old), linesOf(text)))
	}
	return err
}

// fillPages adds the text of a PDF file if the reader asks for it, because reading it takes a moment.
func (h *Handlers) fillPages(r *http.Request, actor ident.Actor, x library.Version, at string,
	v *templates.LibraryFileView) error {
	if !r.URL.Query().Has("text") {
		v.PagesHref = "/library/file?" + at + "&text=1#pages-title"
		return nil
	}
	var err error
	v.Pages, _, err = h.library.ReadText(r.Context(), actor, x.Path, x.Number)
	if errors.Is(err, library.ErrNoText) {
		v.NoPages, err = true, nil
	}
	return err
}

// textOf returns the text of a version; ok is false for another content.
func (h *Handlers) textOf(r *http.Request, actor ident.Actor, v library.Version) (text string, ok bool, err error) {
	if v.Hash == "" {
		return "", false, nil
	}
	text, _, err = h.library.Text(r.Context(), actor, v.Path, v.Number)
	if errors.Is(err, library.ErrNoText) || errors.Is(err, library.ErrLongText) {
		return "", false, nil
	}
	return text, err == nil, err
}

func linesOf(text string) []string {
	text = strings.TrimSuffix(request.NormalizeLines(text), "\n")
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

func versionRow(f library.File, v library.Version, shown int) templates.LibraryVersionRow {
	row := templates.LibraryVersionRow{Number: v.Number, Shown: v.Number == shown, Newest: v.Number == f.Version,
		Deleted: v.Hash == "", Agent: writerName(v.By), Restores: v.Restores, Since: pages.FormatMoment(v.At),
		Href: templates.LibraryHref(v.Path) + "&version=" + strconv.Itoa(v.Number)}
	if v.By.ConversationID != "" {
		row.TaskHref = "/chat/" + v.By.ConversationID
	}
	if v.Hash != "" {
		row.Size = pages.FormatBytes(v.Size)
	}
	return row
}

func (h *Handlers) shareRows(r *http.Request, actor ident.Actor, name string) (out []templates.LibraryShareRow,
	err error) {
	list, err := h.library.Shares(r.Context(), actor, name)
	for _, s := range list {
		row := templates.LibraryShareRow{ID: s.ID, Since: pages.FormatMoment(s.CreatedAt),
			Until: pages.FormatMoment(s.ExpiresAt)}
		if s.Version > 0 {
			row.Version = strconv.Itoa(s.Version)
		}
		out = append(out, row)
	}
	return out, err
}

func (h *Handlers) showEdit(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	if !actor.IsPerson() {
		return askLogin(w, r)
	}
	q := r.URL.Query()
	name := q.Get("path")
	if name == "" {
		folder := strings.Trim(q.Get("folder"), "/")
		v := templates.LibraryEditView{New: true, Cancel: folderHref(folder)}
		if folder != "" {
			v.Path = folder + "/"
		}
		return h.renderEdit(w, r, actor, http.StatusOK, v)
	}
	text, x, err := h.library.Text(r.Context(), actor, name, 0)
	if err != nil {
		return err
	}
	return h.renderEdit(w, r, actor, http.StatusOK, templates.LibraryEditView{Path: x.Path, Text: text,
		Version: x.Number})
}

func (h *Handlers) renderEdit(w http.ResponseWriter, r *http.Request, actor ident.Actor, code int,
	v templates.LibraryEditView) error {
	if v.Cancel == "" {
		v.Cancel = templates.LibraryHref(v.Path)
	}
	title := "Write a text"
	if !v.New {
		title = "Edit " + path.Base(v.Path)
	}
	return h.site.Render(w, r, code, templates.LibraryEdit(h.site.Frame(r, actor, title), v))
}

// saveEdit writes a text. A refused one is shown again, so that no text is lost.
func (h *Handlers) saveEdit(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	in, err := request.Form(w, r)
	if err != nil {
		return err
	}
	version, err := strconv.Atoi(in.Get("version"))
	if err != nil || version < 0 {
		return fault.Field("version", "is no version")
	}
	v := templates.LibraryEditView{Path: in.Get("path"), Text: request.NormalizeLines(in.Get("text")), Version: version,
		New: version == 0}
	if v.New {
		v.Cancel = "/library"
	}
	if len(v.Text) > library.MaxText {
		err = fault.Field("text", "is too long")
	} else {
		var x library.Version
		x, err = h.library.Put(r.Context(), actor, v.Path, library.Draft{Content: strings.NewReader(v.Text), Expect: version})
		v.Path = firstOf(x.Path, v.Path)
	}
	if err == nil {
		return respond.SeeOther(w, r, withDone(templates.LibraryHref(v.Path), "saved"))
	}
	messages, code, ok := pages.FieldErrors(w, err)
	if f := fault.As(err); !ok && f.Kind == fault.Conflict {
		messages, code, ok = templates.FieldErrors{"text": f.Safe}, http.StatusConflict, true
	}
	if !ok || !actor.IsPerson() {
		return err
	}
	if m := messages["file"]; m != "" {
		messages["text"] = m
	}
	v.Errors = messages
	return h.renderEdit(w, r, actor, code, v)
}

func firstOf(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

func (h *Handlers) removeFile(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	in, err := request.Form(w, r)
	if err != nil {
		return err
	}
	v, err := h.library.Delete(r.Context(), actor, in.Get("path"))
	if err != nil {
		return err
	}
	return respond.SeeOther(w, r, withDone(templates.LibraryHref(v.Path), "deleted"))
}

// numberOf returns the version in a form.
func numberOf(in url.Values) (int, error) {
	n, err := strconv.Atoi(in.Get("version"))
	if err != nil || n < 1 {
		return 0, fault.Field("version", "is no version")
	}
	return n, nil
}

// versionOf returns a form and the version in it.
func versionOf(w http.ResponseWriter, r *http.Request) (in url.Values, n int, err error) {
	if in, err = request.Form(w, r); err != nil {
		return nil, 0, err
	}
	n, err = numberOf(in)
	return in, n, err
}

func (h *Handlers) rollBack(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	in, n, err := versionOf(w, r)
	if err != nil {
		return err
	}
	v, err := h.library.RollBack(r.Context(), actor, in.Get("path"), n)
	if err != nil {
		return err
	}
	return respond.SeeOther(w, r, withDone(templates.LibraryHref(v.Path), "back"))
}

func (h *Handlers) undoWrite(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	in, n, err := versionOf(w, r)
	if err != nil {
		return err
	}
	v, err := h.library.Undo(r.Context(), actor, in.Get("path"), n)
	if err != nil {
		return err
	}
	return respond.SeeOther(w, r, request.OwnPath(in.Get("next"), withDone(templates.LibraryHref(v.Path), "undone")))
}

// makeShare makes a link and shows its address, which no other page does.
func (h *Handlers) makeShare(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	in, err := request.Form(w, r)
	if err != nil {
		return err
	}
	life, err := time.ParseDuration(in.Get("life"))
	if err != nil {
		life = 0
	}
	n := 0
	if in.Get("version") != "" {
		if n, err = numberOf(in); err != nil {
			return err
		}
	}
	_, secret, err := h.library.Share(r.Context(), actor, in.Get("path"), n, life)
	if err != nil {
		return err
	}
	return h.renderFile(w, r, actor, http.StatusOK, in.Get("path"), templates.LibraryFileView{
		Link: h.url + sharedPath + secret})
}

func (h *Handlers) revokeShare(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	in, err := request.Form(w, r)
	if err != nil {
		return err
	}
	if err := h.library.Revoke(r.Context(), actor, in.Get("id")); err != nil {
		return err
	}
	return respond.SeeOther(w, r, withDone(templates.LibraryHref(in.Get("path")), "revoked"))
}
