package chat

import (
	"context"
	"io"
	"mime"
	"net/http"
	"path"
	"strings"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/limit"
	"agentsite/internal/picture"
)

func errNoFile() error {
	return fault.New(fault.NotFound, "There is no such file, or it is not for you to see.")
}

// bounds are the upload limits of a sender: for one file, for all together, and for one day.
type bounds struct {
	size, quota int64
	daily       []limit.Allowance
}

// fileBounds counts uploads of guests by their network address too, because a guest can get a new
// identity at any time.
func fileBounds(actor ident.Actor) bounds {
	if actor.IsVisitor() {
		return bounds{MaxGuestFileBytes, GuestFileQuota, []limit.Allowance{{Name: actor.ID, Most: 2 * GuestFileQuota},
			{Name: "from " + actor.Addr, Most: 8 * GuestFileQuota}}}
	}
	return bounds{MaxFileBytes, FileQuota, []limit.Allowance{{Name: actor.ID, Most: 2 * FileQuota}}}
}

// Attachments are the files of messages: their upload, their download with the rights of messages, and previews.
type Attachments struct {
	store    attachmentStore
	limits   *rateLimits
	url      string // of the portal, without a trailing slash
	key      []byte // signs the addresses of files for agents
	previews *picture.Cache
	drawing  chan struct{} // capacity 1: the goroutine that draws a preview holds it
	sent     limit.Uploads
}

type attachmentStore interface {
	Files
	Members(ctx context.Context, conversationID string) ([]Member, error)
	LinkByHash(ctx context.Context, secretHash string) (Link, error)
}

// Put stores a file of the actor, which a message may then hold as a part whose URL is FileURL
// of its hash.
func (s *Attachments) Put(ctx context.Context, actor ident.Actor, d FileDraft) (File, error) {
	if err := checkWrite(actor); err != nil {
		return File{}, err
	}
	if err := s.limits.limitRate(actor); err != nil {
		return File{}, err
	}
	return s.storeFile(ctx, memberKind(actor), actor.ID, d, fileBounds(actor))
}

// storeFile stores a file as sent by its owner.
func (s *Attachments) storeFile(ctx context.Context, ownerKind, ownerID string, d FileDraft, b bounds) (File, error) {
	// The size, and so an excess of the quota, is known only after the transfer.
	switch s.sent.Begin(clock.Now(), b.daily) {
	case limit.TooMuch:
		return File{}, fault.Limited(time.Hour, "You sent more than %d MiB of files today. Try again tomorrow.", b.daily[0].Most>>20)
	case limit.TooMany:
		return File{}, fault.Limited(5*time.Second, "You are sending many files at once. Wait for some of them, then send this one again.")
	}
	counted := &countReader{r: d.Content}
	defer func() { s.sent.End(b.daily, counted.n) }() // refused uploads were written to the disk, too
	hash, size, head, err := s.store.PutBlob(ctx, counted, b.size)
	if err != nil {
		return File{}, err
	}
	if size == 0 {
		return File{}, asField(fault.New(fault.Invalid, "The file is empty."), "file")
	}
	f := File{Hash: hash, Size: size, MediaType: mediaType(head, d), CreatedAt: clock.Now()}
	return f, s.store.PutFile(ctx, f, ownerKind, ownerID, b.quota)
}

// countReader counts the bytes read.
type countReader struct {
	r io.Reader
	n int64
}

func (c *countReader) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.n += int64(n)
	return n, err
}

// typesByName are the types that a file name selects when the content is plain text or an archive;
// the content alone decides on all other types.
var typesByName = map[string]map[string]string{
	"text/plain": {
		".md": "text/markdown", ".markdown": "text/markdown", ".csv": "text/csv", ".tsv": "text/tab-separated-values",
		".json": "application/json", ".jsonl": "application/x-ndjson", ".yaml": "application/yaml", ".yml": "application/yaml", ".ics": "text/calendar",
	},
	"application/zip": {
		".docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
		".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
		".pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
		".odt":  "application/vnd.oasis.opendocument.text", ".ods": "application/vnd.oasis.opendocument.spreadsheet",
		".epub": "application/epub+zip", ".jar": "application/java-archive",
	},
}

// mediaType detects the type of a file from its first bytes.
func mediaType(head []byte, d FileDraft) string {
	kind, params, err := mime.ParseMediaType(http.DetectContentType(head))
	if err != nil {
		return "application/octet-stream"
	}
	byName := typesByName[kind]
	if named := byName[strings.ToLower(path.Ext(d.Name))]; named != "" {
		return named
	}
	if said, _, err := mime.ParseMediaType(d.MediaType); err == nil {
		for _, known := range byName {
			if said == known {
				return known
			}
		}
	}
	if cs := params["charset"]; cs != "" && cs != "utf-8" {
		return kind + "; charset=" + cs
	}
	return kind
}

// Open returns a file that the actor sent or may read a message with. The
// caller closes the content.
func (s *Attachments) Open(ctx context.Context, actor ident.Actor, hash string) (File, io.ReadSeekCloser, error) {
	if err := checkRead(actor); err != nil {
		return File{}, nil, err
	}
	if !validHash(hash) {
		return File{}, nil, errNoFile()
	}
	f, err := s.store.FileFor(ctx, hash, memberKind(actor), actor.ID)
	return s.openFound(ctx, f, err)
}

// openFound opens a file that was found.
func (s *Attachments) openFound(ctx context.Context, f File, err error) (File, io.ReadSeekCloser, error) {
	if fault.Is(err, fault.NotFound) {
		return File{}, nil, errNoFile()
	}
	if err != nil {
		return File{}, nil, err
	}
	r, err := s.store.OpenBlob(ctx, f.Hash)
	if fault.Is(err, fault.NotFound) {
		return File{}, nil, errNoFile()
	}
	if err != nil {
		return File{}, nil, err
	}
	return f, r, nil
}

// OpenShared is Open for holders of a read link.
func (s *Attachments) OpenShared(ctx context.Context, secret, hash string) (File, io.ReadSeekCloser, error) {
	l, err := findLink(ctx, s.store, secret, ReadLink)
	if err != nil {
		return File{}, nil, err
	}
	if !validHash(hash) {
		return File{}, nil, errNoFile()
	}
	f, err := s.store.SharedFile(ctx, hash, l.ConversationID, l.FromSeq, l.UpToSeq)
	return s.openFound(ctx, f, err)
}
