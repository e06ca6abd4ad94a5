// Package files serves the files of conversations, on pages and in the API. Files are untrusted: browsers
// may save them but never show or run them, except previews that the portal drew.
package files

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"agentsite/handlers/pages"
	"agentsite/handlers/request"
	"agentsite/handlers/respond"
	"agentsite/internal/chat"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
)

// Files serves files of conversations. Create it with New.
type Files struct {
	chat *chat.Service
	site *pages.Site
}

// New returns the handlers of files in conversations. site renders errors of requests for pages.
func New(chats *chat.Service, site *pages.Site) *Files {
	return &Files{chat: chats, site: site}
}

// PreviewEnd is appended to the address of a file to get its preview picture.
const PreviewEnd = "/preview"

// File answers with the content of a file. The actor must be able to read a message with the file, or the
// request must contain a signed key for it.
func (d *Files) File(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	hash := chi.URLParam(r, "hash")
	if key := r.URL.Query().Get(chat.FileKeyParam); key != "" {
		f, content, err := d.chat.Files.OpenByKey(r.Context(), hash, key)
		return serveFile(w, r, actor, f, content, err)
	}
	f, content, err := d.chat.Files.Open(r.Context(), actor, hash)
	return serveFile(w, r, actor, f, content, err)
}

// FilePreview answers with the preview picture of a file, under the same conditions as File.
func (d *Files) FilePreview(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	hash := chi.URLParam(r, "hash")
	png, err := d.chat.Files.Preview(r.Context(), actor, hash)
	return servePreview(w, r, hash, png, err)
}

// sharedFile and sharedPreview answer like File and FilePreview, but the secret of a read link in the
// path gives access.
func (d *Files) sharedFile(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	respond.SetUnlisted(w)
	f, content, err := d.chat.Files.OpenShared(r.Context(), chi.URLParam(r, "secret"), chi.URLParam(r, "hash"))
	return serveFile(w, r, actor, f, content, err)
}

func (d *Files) sharedPreview(w http.ResponseWriter, r *http.Request, _ ident.Actor) error {
	respond.SetUnlisted(w)
	hash := chi.URLParam(r, "hash")
	png, err := d.chat.Files.PreviewShared(r.Context(), chi.URLParam(r, "secret"), hash)
	return servePreview(w, r, hash, png, err)
}

// serveFile answers with the contents of a file of a conversation, under the name in ?name=.
func serveFile(w http.ResponseWriter, r *http.Request, actor ident.Actor, f chat.File, content io.ReadSeekCloser,
	err error) error {
	return Serve(w, r, actor, Served{r.URL.Query().Get("name"), f.MediaType, f.Hash}, content, err)
}

// Served describes a content that Serve answers with. A content without a name gets one from its hash.
type Served struct{ Name, MediaType, Hash string }

// Serve answers with a content, or a range of it, and closes it, or returns err, the outcome of opening it. A browser
// never displays it, because it is untrusted; it is saved under its name.
func Serve(w http.ResponseWriter, r *http.Request, actor ident.Actor, f Served, content io.ReadSeekCloser,
	err error) error {
	if err != nil {
		return err
	}
	defer content.Close()
	if r.Method != http.MethodHead {
		if err := respond.BeginDownload(r.Context(), w, actor); err != nil {
			return err
		}
	}
	if f.Name == "" {
		f.Name = f.Hash[:12] + typeExtension(f.MediaType)
	}
	h := w.Header()
	h.Set("Content-Type", inertType(f.MediaType))
	h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": chat.FileName(f.Name)}))
	setQuarantine(h, f.Hash)
	http.ServeContent(w, r, "", time.Time{}, content)
	return nil
}

// servePreview answers with a picture that the portal drew itself, the only content that a browser may display.
func servePreview(w http.ResponseWriter, r *http.Request, hash string, png []byte, err error) error {
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", "image/png")
	h.Set("Content-Disposition", "inline")
	setQuarantine(h, hash+"-small")
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(png))
	return nil
}

// setQuarantine sets headers with which a browser runs nothing in the content and asks again before each
// reuse, because the reader may lose access.
func setQuarantine(h http.Header, tag string) {
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("ETag", `"`+tag+`"`)
	h.Set("Cache-Control", "private, no-cache")
}

// inertType returns the media type to serve a file with: application/octet-stream for types that a
// browser could run or render.
func inertType(mediaType string) string {
	kind, _, err := mime.ParseMediaType(mediaType)
	switch {
	case err != nil, strings.HasSuffix(kind, "xml"), strings.Contains(kind, "html"), strings.Contains(kind, "script"),
		kind == "image/svg+xml", kind == "application/pdf":
		return "application/octet-stream"
	case strings.HasPrefix(kind, "text/") && !strings.Contains(mediaType, "charset"):
		return mediaType + "; charset=utf-8"
	}
	return mediaType
}

// typeExtension returns the file name extension for a media type, "" for unknown types.
func typeExtension(mediaType string) string {
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

// Routes declares the routes of files in conversations.
func (d *Files) Routes(r chi.Router) {
	r.Get("/shared/{secret}/files/{hash}", d.site.Page(d.sharedFile))
	r.Get("/shared/{secret}/files/{hash}/preview", d.site.Page(d.sharedPreview))
	r.Get("/files/{hash}", d.site.Page(d.File))
	r.Get("/files/{hash}/preview", d.site.Page(d.FilePreview))
}

func MaxSize(actor ident.Actor) int64 {
	if actor.Kind == ident.Guest {
		return chat.MaxGuestFileBytes
	}
	return chat.MaxFileBytes
}

// UploadTime is how long the upload of a form with files may take in total; slower clients are
// disconnected.
const UploadTime = 15 * time.Minute

// ReadError converts an error of reading an upload form to an error that its sender understands.
func ReadError(err error) error {
	if big, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return &fault.Error{Kind: fault.Invalid,
			Safe: "The files are larger than " + pages.FormatBytes(big.Limit-request.MaxForm) +
				" together. Send them one by one, or leave one out.", Err: err}
	}
	if _, ok := errors.AsType[*fault.Error](err); ok {
		return err
	}
	return fault.Wrap(fault.Invalid, err, "The form could not be read to its end. Send it again.")
}
