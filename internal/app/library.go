package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"agentsite/agentruntime/pdf"
	"agentsite/agentruntime/pdf/child"
	"agentsite/internal/chat"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/library"
	"agentsite/internal/settings"
	"agentsite/internal/task"
)

// libraryContents implements library.Contents with the files of conversations. It refers to the portal, because that
// service is built later.
type libraryContents struct{ portal *Portal }

// PutContent implements library.Contents.
func (l libraryContents) PutContent(ctx context.Context, person ident.Actor, name, mediaType string,
	r io.Reader) (library.Content, error) {
	f, err := l.portal.chats.Files.Put(ctx, person, chat.FileDraft{Name: name, MediaType: mediaType, Content: r})
	return library.Content{Hash: f.Hash, MediaType: f.MediaType, Size: f.Size}, err
}

// OpenContent implements library.Contents.
func (l libraryContents) OpenContent(ctx context.Context, person ident.Actor, hash string) (library.Content,
	io.ReadSeekCloser, error) {
	f, r, err := l.portal.chats.Files.Open(ctx, person, hash)
	return library.Content{Hash: f.Hash, MediaType: f.MediaType, Size: f.Size}, r, err
}

// pdfFolder has the compiled reader of PDF files, in the data folder.
const pdfFolder = "pdf"

// newDocuments returns the reader of PDF files, without a process.
func newDocuments(set settings.Settings, log *slog.Logger) (*pdf.Reader, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program, which reads PDF files: %w", err)
	}
	return pdf.New(pdf.Config{Command: []string{self, child.Argument}, Folder: filepath.Join(set.Data, pdfFolder),
		Log: log}), nil
}

// documents implements library.Documents.
type documents struct {
	reader *pdf.Reader
	log    *slog.Logger
}

// DocumentText implements library.Documents. A file that cannot be read is stored without text.
func (d documents) DocumentText(ctx context.Context, personID string, content io.ReadSeeker,
	size int64) (string, error) {
	text, err := d.reader.Text(ctx, personID, content, size)
	if err != nil && ctx.Err() == nil {
		d.log.Info("the text of a PDF file was not read", "bytes", size, "error", err)
		return "", nil
	}
	return text, err
}

// filedLibrary implements acting.Library for the person behind a call. The permission was checked before.
type filedLibrary struct{ portal *Portal }

func personBehind(call task.Call) ident.Actor {
	name, _, _ := strings.Cut(call.Caller.Handle, "@")
	return ident.Actor{Kind: ident.Person, ID: call.Caller.ID, Name: name}
}

// ListFiles implements acting.Library.
func (l filedLibrary) ListFiles(ctx context.Context, call task.Call, prefix string,
	denied func(path string) bool) (string, error) {
	page, err := l.portal.library.List(ctx, personBehind(call), prefix, "", maxListed)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, f := range page.Files {
		if !denied(f.Path) {
			fmt.Fprintf(&b, "%s (version %d, %d bytes)\n", f.Path, f.Version, f.Size)
		}
	}
	if page.Next != "" {
		b.WriteString("There are more; name a folder.\n")
	}
	if b.Len() == 0 {
		return "There are no files.", nil
	}
	return b.String(), nil
}

// maxListed is the number of files that an agent gets in one list, readBytes the part of a file that it reads at once.
const (
	maxListed = 500
	readBytes = 12 << 10
)

// ReadFile implements acting.Library.
func (l filedLibrary) ReadFile(ctx context.Context, call task.Call, path string, offset int) (string, error) {
	text, v, err := l.portal.library.ReadText(ctx, personBehind(call), path, 0)
	if err != nil {
		return "", err
	}
	if offset > len(text) {
		return "", fault.New(fault.Invalid, "The text has %d bytes.", len(text))
	}
	for offset > 0 && offset < len(text) && !utf8.RuneStart(text[offset]) {
		offset--
	}
	end := min(offset+readBytes, len(text))
	for end < len(text) && !utf8.RuneStart(text[end]) {
		end--
	}
	head := fmt.Sprintf("%s, version %d, bytes %d to %d of %d:\n\n", v.Path, v.Number, offset, end, len(text))
	return head + text[offset:end], nil
}

// WriteFile implements acting.Library.
func (l filedLibrary) WriteFile(ctx context.Context, call task.Call, path, text string) (string, error) {
	if len(text) > library.MaxText {
		return "", fault.New(fault.Invalid, "Write at most %d KiB.", library.MaxText>>10)
	}
	by := library.Writer{AgentID: call.Agent.ID, Agent: call.Agent.Handle, ConversationID: call.ConversationID,
		TaskID: call.TaskID}
	v, err := l.portal.library.PutFor(ctx, personBehind(call), by, path, library.Draft{Content: strings.NewReader(text),
		Expect: library.AnyVersion})
	if err != nil {
		if f, ok := errors.AsType[*fault.Error](err); ok && f.Fields["file"] != "" {
			return "", fault.New(fault.Invalid, "The text is empty.")
		}
		return "", err
	}
	return fmt.Sprintf("Written: %s is version %d now. The person can undo it.", v.Path, v.Number), nil
}
