package handlers

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"agentsite/internal/chat"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
)

// previewEnd follows a file's address in that of its small picture.
const previewEnd = "/preview"

type fileJSON struct {
	Hash      string `json:"hash"`
	Size      int64  `json:"size"`
	MediaType string `json:"media_type"`
	URL       string `json:"url"`
	Filename  string `json:"filename"`
}

// apiPutFile takes a file: as the body itself, whose name stands in ?name=, or
// as the first file of a form. It goes to the disk as it comes.
func (d *Door) apiPutFile(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	if actor.ID == "" {
		return fault.New(fault.Unauthenticated, "Sign in to send files, or begin a conversation first.")
	}
	most := maxFile(actor)
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	form := err == nil && kind == "multipart/form-data"
	room := most
	if form {
		room += maxForm
	}
	if r.ContentLength > room {
		return &http.MaxBytesError{Limit: most}
	}
	rc := http.NewResponseController(w)
	rc.SetReadDeadline(time.Now().Add(uploadTime))
	rc.SetWriteDeadline(time.Now().Add(uploadTime + time.Minute))
	r.Body = http.MaxBytesReader(w, r.Body, room)
	draft := chat.FileDraft{Name: r.URL.Query().Get("name"), MediaType: r.Header.Get("Content-Type"), Content: r.Body}
	if form {
		if draft, err = formFile(r); err != nil {
			return err
		}
	} else if _, params, err := mime.ParseMediaType(r.Header.Get("Content-Disposition")); err == nil && draft.Name == "" {
		draft.Name = params["filename"]
	}
	f, err := d.chat.PutFile(r.Context(), actor, draft)
	if err != nil {
		return unreadFile(err)
	}
	url := chat.FileURL(f.Hash)
	w.Header().Set("Location", url)
	writeJSON(w, http.StatusCreated, fileJSON{f.Hash, f.Size, f.MediaType, url, chat.FileName(draft.Name)})
	return nil
}

// unreadFile keeps what the portal knows of an upload that failed, and says
// of the rest that it broke off.
func unreadFile(err error) error {
	if _, ok := errors.AsType[*fault.Error](err); ok {
		return err
	}
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return err
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return fault.Wrap(fault.Invalid, err, "The file ended early. Send it again.")
	}
	return err
}

// formFile finds the first file of a form.
func formFile(r *http.Request) (chat.FileDraft, error) {
	reader, err := r.MultipartReader()
	if err != nil {
		return chat.FileDraft{}, fault.Wrap(fault.Invalid, err, "The form could not be read.")
	}
	for range chat.MaxParts {
		part, err := reader.NextPart()
		if err == io.EOF {
			break
		}
		if err != nil {
			return chat.FileDraft{}, unread(err)
		}
		if part.FileName() != "" {
			return chat.FileDraft{Name: part.FileName(), MediaType: part.Header.Get("Content-Type"), Content: part}, nil
		}
	}
	return chat.FileDraft{}, fault.Field("file", "choose a file")
}

// file answers with a file that the actor may read, or whoever holds a key for
// it.
func (d *Door) file(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	hash := chi.URLParam(r, "hash")
	if key := r.URL.Query().Get(chat.FileKeyParam); key != "" {
		f, content, err := d.chat.OpenByKey(r.Context(), hash, key)
		return serveFile(w, r, f, content, err)
	}
	f, content, err := d.chat.OpenFile(r.Context(), actor, hash)
	return serveFile(w, r, f, content, err)
}

// filePreview answers with the small picture of a file.
func (d *Door) filePreview(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	hash := chi.URLParam(r, "hash")
	png, err := d.chat.Preview(r.Context(), actor, hash)
	return servePreview(w, r, hash, png, err)
}

// sharedFile and sharedPreview are file and filePreview by a read link.
func (d *Door) sharedFile(w http.ResponseWriter, r *http.Request, _ ident.Actor) error {
	unlisted(w)
	f, content, err := d.chat.SharedFile(r.Context(), chi.URLParam(r, "secret"), chi.URLParam(r, "hash"))
	return serveFile(w, r, f, content, err)
}

func (d *Door) sharedPreview(w http.ResponseWriter, r *http.Request, _ ident.Actor) error {
	unlisted(w)
	hash := chi.URLParam(r, "hash")
	png, err := d.chat.SharedPreview(r.Context(), chi.URLParam(r, "secret"), hash)
	return servePreview(w, r, hash, png, err)
}

// serveFile answers with what a file holds, or a range of it. A browser never
// shows it: it is a stranger's, and saved under the name that ?name= gives.
func serveFile(w http.ResponseWriter, r *http.Request, f chat.File, content io.ReadSeekCloser, err error) error {
	if err != nil {
		return err
	}
	defer content.Close()
	name := r.URL.Query().Get("name")
	if name == "" {
		name = f.Hash[:12] + extension(f.MediaType)
	}
	h := w.Header()
	h.Set("Content-Type", inert(f.MediaType))
	h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": chat.FileName(name)}))
	quarantine(h, f.Hash)
	http.NewResponseController(w).SetWriteDeadline(time.Now().Add(uploadTime))
	http.ServeContent(w, r, "", time.Time{}, content)
	return nil
}

// servePreview answers with a picture that the portal drew itself, the only
// thing that may be shown in place.
func servePreview(w http.ResponseWriter, r *http.Request, hash string, png []byte, err error) error {
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", "image/png")
	h.Set("Content-Disposition", "inline")
	quarantine(h, hash+"-small")
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(png))
	return nil
}

// quarantine keeps what an answer holds from doing anything in a browser, and
// from being kept without asking whether the reader still may.
func quarantine(h http.Header, tag string) {
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("ETag", `"`+tag+`"`)
	h.Set("Cache-Control", "private, no-cache")
}

// inert is the type a file is served as: what a browser would run is only
// bytes.
func inert(mediaType string) string {
	kind, _, err := mime.ParseMediaType(mediaType)
	switch {
	case err != nil, strings.HasSuffix(kind, "xml"), strings.Contains(kind, "html"), strings.Contains(kind, "script"), kind == "image/svg+xml", kind == "application/pdf":
		return "application/octet-stream"
	case strings.HasPrefix(kind, "text/") && !strings.Contains(mediaType, "charset"):
		return mediaType + "; charset=utf-8"
	}
	return mediaType
}

// extension is how names of files of a type end.
func extension(mediaType string) string {
	kind, _, _ := strings.Cut(mediaType, ";")
	switch kind {
	case "text/plain":
		return ".txt"
	case "text/markdown":
		return ".md"
	case "image/jpeg":
		return ".jpg"
	case "application/octet-stream":
		return ""
	}
	if list, err := mime.ExtensionsByType(kind); err == nil && len(list) > 0 {
		return list[0]
	}
	return ""
}

// declareFiles declares the routes of files in conversations.
func (d *Door) declareFiles(r chi.Router) {
	r.Get("/shared/{secret}/files/{hash}", d.page(d.sharedFile))
	r.Get("/shared/{secret}/files/{hash}/preview", d.page(d.sharedPreview))
	r.Get("/files/{hash}", d.page(d.file))
	r.Get("/files/{hash}/preview", d.page(d.filePreview))
}
