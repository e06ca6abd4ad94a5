package api

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"time"

	"agentsite/handlers/files"
	"agentsite/handlers/request"
	"agentsite/handlers/respond"
	"agentsite/internal/chat"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
)

type fileJSON struct {
	Hash      string `json:"hash"`
	Size      int64  `json:"size"`
	MediaType string `json:"media_type"`
	URL       string `json:"url"`
	Filename  string `json:"filename"`
}

// apiPutFile stores a file: the body under the name in ?name=, or the first file of a multipart form. The
// content goes to disk while it arrives, so that memory does not bound it.
func (d *chatAPI) apiPutFile(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	if actor.ID == "" {
		return fault.New(fault.Unauthenticated, "Sign in to send files, or begin a conversation first.")
	}
	most := files.MaxSize(actor)
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	form := err == nil && kind == "multipart/form-data"
	room := most
	if form {
		room += request.MaxForm
	}
	if r.ContentLength > room {
		return &http.MaxBytesError{Limit: most}
	}
	rc := http.NewResponseController(w)
	rc.SetReadDeadline(time.Now().Add(files.UploadTime))
	rc.SetWriteDeadline(time.Now().Add(files.UploadTime + time.Minute))
	r.Body = http.MaxBytesReader(w, r.Body, room)
	draft := chat.FileDraft{Name: r.URL.Query().Get("name"), MediaType: r.Header.Get("Content-Type"), Content: r.Body}
	if form {
		if draft, err = formFile(r); err != nil {
			return err
		}
	} else if _, params, err := mime.ParseMediaType(r.Header.Get("Content-Disposition")); err == nil &&
		draft.Name == "" {
		draft.Name = params["filename"]
	}
	f, err := d.chat.Files.Put(r.Context(), actor, draft)
	if err != nil {
		return unreadFile(err)
	}
	url := chat.FileURL(f.Hash)
	w.Header().Set("Location", url)
	respond.JSON(w, http.StatusCreated, fileJSON{f.Hash, f.Size, f.MediaType, url, chat.FileName(draft.Name)})
	return nil
}

// unreadFile converts an upload that ended early to an error for its sender, and returns any other error
// unchanged.
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

// formFile returns the first file of a multipart form. Its content must be read before the next part of
// the request.
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
			return chat.FileDraft{}, files.ReadError(err)
		}
		if part.FileName() != "" {
			return chat.FileDraft{Name: part.FileName(), MediaType: part.Header.Get("Content-Type"), Content: part}, nil
		}
	}
	return chat.FileDraft{}, fault.Field("file", "choose a file")
}
