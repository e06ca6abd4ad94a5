package chat

import (
	"context"
	"io"
	"time"

	"agentsite/internal/task"
)

// Limits on files, in bytes per file.
const (
	MaxFileBytes      = 64 << 20
	MaxGuestFileBytes = 4 << 20
	// The quotas limit the total bytes of all files of one sender.
	FileQuota      = 1 << 30
	GuestFileQuota = 16 << 20
	// FileGrace is how long a file that no message refers to is kept after its last upload.
	FileGrace = 24 * time.Hour
)

// File is an uploaded file, identified by the lower-case hexadecimal SHA-256 of its content. A part
// refers to it by FileURL.
type File struct {
	Hash      string
	Size      int64
	MediaType string
	CreatedAt time.Time
}

// FileURL returns the URL, relative to the portal, by which a part refers to a file.
func FileURL(hash string) string { return task.FilePath + hash }

// FileDraft is an upload. Name and MediaType are claims of the sender and are not trusted.
type FileDraft struct {
	Name      string
	MediaType string
	Content   io.Reader
}

// Blobs stores file contents by their hash.
type Blobs interface {
	// PutBlob stores at most limit bytes durably and returns their hash and size; an Invalid fault when there are
	// more. head receives the first 512 bytes.
	PutBlob(ctx context.Context, r io.Reader, limit int64) (hash string, size int64, head []byte, err error)
	// OpenBlob returns the content of a file, a NotFound fault if it is missing; the caller closes it.
	OpenBlob(ctx context.Context, hash string) (io.ReadSeekCloser, error)
}

// Files stores the metadata of files and their use in messages.
type Files interface {
	Blobs
	// PutFile records that an owner sent a file whose blob is stored; a RateLimited fault if the owner's
	// files would exceed quota bytes in total.
	PutFile(ctx context.Context, f File, ownerKind, ownerID string, quota int64) error
	// FileFor returns a file that the member sent or that a message readable now refers to; else a NotFound fault.
	FileFor(ctx context.Context, hash, memberKind, memberID string) (File, error)
	// SharedFile returns a file that a message with from < seq <= upTo refers to; else a NotFound fault.
	SharedFile(ctx context.Context, hash, conversationID string, from, upTo int64) (File, error)
	// DropFiles deletes the metadata of at most limit files that no message refers to and that were last
	// sent before the given time. It returns their number.
	DropFiles(ctx context.Context, before time.Time, limit int) (int, error)
}
