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

// bounds are the upload limits of a sender in bytes: for one file, for all files, and for a day.
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

// Attachments stores, serves and previews files, with the access rights of the messages that refer to them.
type Attachments struct {
	store    attachmentStore
	limits   *rateLimits
	url      string // the portal's URL, without a trailing slash
	key      []byte // HMAC key for the file addresses given to agents
	previews *picture.Cache
	drawing  chan struct{} // capacity 1: held while a preview is drawn
	sent     limit.Uploads
}

type attachmentStore interface {
	Files
	Members(ctx context.Context, conversationID string) ([]Member, error)
	LinkByHash(ctx context.Context, secretHash string) (Link, error)
}

// Put stores a file of the actor. Parts of the actor's messages may then refer to it by FileURL of its hash.
func (s *Attachments) Put(ctx context.Context, actor ident.Actor, d FileDraft) (File, error) {
	if err := checkWrite(actor); err != nil {
		return File{}, err
	}
	if err := s.limits.limitRate(actor); err != nil {
		return File{}, err
	}
	return s.storeFile(ctx, memberKind(actor), actor.ID, d, fileBounds(actor))
}

// storeFile stores a file for its owner within the limits b; a RateLimited fault beyond them.
func (s *Attachments) storeFile(ctx context.Context, ownerKind, ownerID string, d FileDraft, b bounds) (File, error) {
	// The upload is charged afterwards too, because its size is known only after the transfer.
	switch s.sent.Begin(clock.Now(), b.daily) {
	case limit.TooMuch:
		return File{}, fault.Limited(time.Hour, "You sent more than %d MiB of files today. Try again tomorrow.", b.daily[0].Most>>20)
	case limit.TooMany:
		return File{}, fault.Limited(5*time.Second, "You are sending many files at once. Wait for some of them, then send this one again.")
	}
	counted := &countReader{r: d.Content}
	// Refused uploads count too, because their bytes were written to the disk.
	defer func() { s.sent.End(b.daily, counted.n) }()
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

// countReader counts the bytes read through it, so that a failed upload can be charged too.
type countReader struct {
	r io.Reader
	n int64
}

func (c *countReader) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.n += int64(n)
	return n, err
}

// typesByName are the media types that a file name may select if the content is detected as plain text
// or an archive. For all other content the name has no effect.
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

// mediaType detects the media type from the first 512 bytes. The file name and the sender's claim only
// refine plain text and archives, so that a file cannot pass as a more dangerous type.
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

// Open returns a file that the actor sent or that a message readable by the actor refers to; else a
// NotFound fault. The caller closes the content.
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

// openFound opens the content of f, the result of a lookup that ended with err. A missing row and
// missing content give the same NotFound fault.
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

// OpenShared is Open for the holder of a read link's secret: it returns files of the messages that the link shows.
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
