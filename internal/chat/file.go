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
	// Quotas bound what one sender's files take together.
	FileQuota      = 1 << 30
	GuestFileQuota = 16 << 20
	// FileGrace is how long a file that no message holds is kept.
	FileGrace = 24 * time.Hour
)

// File is something that was sent, named by the SHA-256 of what it holds in
// lower-case hexadecimal. A part refers to it by FileURL.
type File struct {
	Hash      string
	Size      int64
	MediaType string
	CreatedAt time.Time
}

// FileURL is how a part refers to a file of this portal.
func FileURL(hash string) string { return task.FilePath + hash }

// FileDraft is a file on its way in. Name and MediaType are what the sender
// says it is.
type FileDraft struct {
	Name      string
	MediaType string
	Content   io.Reader
}

// Blobs keeps what files hold.
type Blobs interface {
	// PutBlob stores at most limit bytes durably and returns their hash and
	// size; an Invalid fault when there are more. head receives the first 512
	// bytes.
	PutBlob(ctx context.Context, r io.Reader, limit int64) (hash string, size int64, head []byte, err error)
	// OpenBlob returns what a file holds; the caller closes it.
	OpenBlob(ctx context.Context, hash string) (io.ReadSeekCloser, error)
}

// Files stores what is known of files.
type Files interface {
	Blobs
	// PutFile notes a file whose blob is stored, as sent by its owner, unless
	// that would take more than quota of the owner's files together: a
	// RateLimited fault.
	PutFile(ctx context.Context, f File, ownerKind, ownerID string, quota int64) error
	// FileFor returns a file if the person or guest sent it, or may read a
	// message that holds it now; else a NotFound fault.
	FileFor(ctx context.Context, hash, memberKind, memberID string) (File, error)
	// SharedFile returns a file that a message of the conversation holds,
	// after from and up to upTo.
	SharedFile(ctx context.Context, hash, conversationID string, from, upTo int64) (File, error)
	// DropFiles forgets files that no message holds and nobody sent since
	// before, at most limit of them, and returns how many.
	DropFiles(ctx context.Context, before time.Time, limit int) (int, error)
}
