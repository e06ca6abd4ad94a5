package chat

import (
	"context"
	"io"
	"time"

	"agentsite/internal/task"
)

// Bounds of files.
const (
	MaxFileBytes      = 64 << 20
	MaxGuestFileBytes = 4 << 20
	// Quotas bound the total size of one sender's files.
	FileQuota      = 1 << 30
	GuestFileQuota = 16 << 20
	// FileGrace is how long a file that no message holds is kept.
	FileGrace = 24 * time.Hour
)

// File is a sent file, named by the SHA-256 of its content in lower-case hexadecimal. A part
// refers to it by FileURL.
type File struct {
	Hash      string
	Size      int64
	MediaType string
	CreatedAt time.Time
}

// FileURL is how a part refers to a file of this portal.
func FileURL(hash string) string { return task.FilePath + hash }

// FileDraft is an upload. Name and MediaType are claims of the sender.
type FileDraft struct {
	Name      string
	MediaType string
	Content   io.Reader
}

// Blobs stores the contents of files.
type Blobs interface {
	// PutBlob stores at most limit bytes durably and returns their hash and
	// size; an Invalid fault when there are more. head receives the first 512
	// bytes.
	PutBlob(ctx context.Context, r io.Reader, limit int64) (hash string, size int64, head []byte, err error)
	// OpenBlob returns the content of a file; the caller closes it.
	OpenBlob(ctx context.Context, hash string) (io.ReadSeekCloser, error)
}

// Files stores the metadata of files.
type Files interface {
	Blobs
	// PutFile records a file whose blob is stored, as sent by its owner, unless that would take
	// more than quota of the owner's files together: a RateLimited fault.
	PutFile(ctx context.Context, f File, ownerKind, ownerID string, quota int64) error
	// FileFor returns a file if the person or guest sent it, or may read a
	// message that holds it now; else a NotFound fault.
	FileFor(ctx context.Context, hash, memberKind, memberID string) (File, error)
	// SharedFile returns a file that a message of the conversation holds,
	// after from and up to upTo.
	SharedFile(ctx context.Context, hash, conversationID string, from, upTo int64) (File, error)
	// DropFiles deletes the metadata of files that no message holds and that were last sent before
	// a time, at most limit of them, and returns their number.
	DropFiles(ctx context.Context, before time.Time, limit int) (int, error)
}
