package respond

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/limit"
)

const (
	// writeChunk is the part of an answer in bytes that a reader must receive within the stall time.
	writeChunk = 32 << 10
	// uncounted is the size in bytes up to which an answer is not counted, because the buffers of its
	// connection hold it.
	uncounted = 64 << 10
	// readBytes is the memory of one answer while it is read, decoded and encoded: a page of a list with its
	// copies.
	readBytes = 2 << 20
	// ChunkBytes bounds the part of a transcript or file that an export or download holds in memory.
	ChunkBytes = 64 << 10
	// tryAgain is the time after which a refused reader is asked to come back.
	tryAgain = 5 * time.Second
)

// Readers bounds the resources of readers of answers: bytes in memory, exports and files at the same time,
// and the time in which they must receive the next part. Create it with NewReaders.
type Readers struct {
	memory    *limit.Memory
	downloads *limit.Concurrent
	stall     time.Duration
}

// NewReaders returns Readers that cut off a reader who receives nothing for the time stall. memory and
// downloads count by the keys of limit.Reader.
func NewReaders(memory *limit.Memory, downloads *limit.Concurrent, stall time.Duration) *Readers {
	return &Readers{memory: memory, downloads: downloads, stall: stall}
}

// Handler bounds the answers of next. addr returns the client's address, to which an answer belongs until
// SetReader.
func (d *Readers) Handler(addr func(*http.Request) string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a := &answer{ResponseWriter: w, rc: http.NewResponseController(w), readers: d, reader: guestReader(addr(r)),
			stall: d.stall}
		defer a.end()
		next.ServeHTTP(a, r)
	})
}

// ReaderOf returns the reader that an actor's answers are counted for: the account, or the address of
// guests.
func ReaderOf(actor ident.Actor) limit.Reader {
	switch {
	case actor.Kind == ident.Guest || actor.ID == "":
		return guestReader(actor.Addr)
	case actor.Kind == ident.Portal:
		return limit.Reader{Key: "portal " + actor.Addr}
	}
	return limit.Reader{Key: actor.ID, Operator: actor.IsOperator()}
}

// guestReader returns the reader for an address. A loopback address is that of a proxy before the portal,
// and stands for all its clients.
func guestReader(addr string) limit.Reader {
	ip, err := netip.ParseAddr(strings.TrimSuffix(addr, "/64"))
	return limit.Reader{Key: "addr " + addr, Many: err == nil && (ip.IsLoopback() || addr == "::/64")}
}

// answer is a ResponseWriter that counts the memory of its reader, and renews the deadline with each part
// that the reader receives.
type answer struct {
	http.ResponseWriter
	rc      *http.ResponseController
	readers *Readers
	reader  limit.Reader
	stall   time.Duration
	hold    *limit.Reservation // nil if nothing was reserved
	loading bool               // counted in readers.downloads
}

// Unwrap lets http.ResponseController reach the connection.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// Write implements http.ResponseWriter. It fails if the reader stands still.
func (a *answer) Write(p []byte) (n int, err error) {
	whole := a.Header().Get("Content-Length") == strconv.Itoa(len(p))
	switch {
	case a.hold != nil && whole:
		a.hold.Resize(int64(len(p))) // only the encoded answer is in memory from now on
	case a.hold == nil && len(p) > uncounted:
		hold := a.readers.memory.Force(a.reader, int64(len(p)))
		defer hold.Release()
	}
	for {
		part := p[n:min(len(p), n+writeChunk)]
		_ = a.rc.SetWriteDeadline(time.Now().Add(a.stall)) // an error means that there are none
		w, err := a.ResponseWriter.Write(part)
		if n += w; err != nil || n == len(p) {
			return n, err
		}
	}
}

// Flush implements http.Flusher.
func (a *answer) Flush() { _ = a.rc.Flush() }

func (a *answer) end() {
	a.release()
	if a.loading {
		a.readers.downloads.End(a.reader.Key)
	}
}

func (a *answer) release() {
	if a.hold != nil {
		a.hold.Release()
		a.hold = nil
	}
}

// answerOf returns the answer that w wraps; nil without Readers.
func answerOf(w http.ResponseWriter) *answer {
	for {
		if a, ok := w.(*answer); ok {
			return a
		}
		u, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return nil
		}
		w = u.Unwrap()
	}
}

// SetReader counts the rest of an answer for the actor.
func SetReader(w http.ResponseWriter, actor ident.Actor) {
	if a := answerOf(w); a != nil && a.hold == nil && !a.loading {
		a.reader = ReaderOf(actor)
	}
}

// Reserve reserves memory for an answer with a page of a list or a transcript, before anything is read. It
// waits a moment for it, and returns a RateLimited or Unavailable fault with the time to try again. The
// memory is given back at the end of the request.
func Reserve(ctx context.Context, w http.ResponseWriter, actor ident.Actor) error {
	a := answerOf(w)
	if a == nil || a.hold != nil {
		return nil
	}
	SetReader(w, actor)
	hold, err := a.readers.memory.Reserve(ctx, a.reader, readBytes)
	switch {
	case errors.Is(err, limit.ErrShareUsed):
		return fault.Limited(tryAgain,
			"You read as much at once as you may: close pages and downloads that do not advance, or wait a moment.")
	case errors.Is(err, limit.ErrMemoryUsed):
		return &fault.Error{Kind: fault.Unavailable, RetryAfter: tryAgain,
			Safe: "Very much is being read from this portal now. Try again in a moment."}
	case err != nil:
		return err
	}
	a.hold = hold
	return nil
}

// beginStream prepares an answer for a stream of events: the reader must receive each part of an event
// within the stall time of streams, and nothing is reserved between events.
func beginStream(w http.ResponseWriter, stall time.Duration) {
	if a := answerOf(w); a != nil {
		a.release()
		a.stall = stall
	}
}

// Shrink gives reserved memory back except the given bytes, for an answer that continues in small parts.
func Shrink(w http.ResponseWriter, bytes int64) {
	if a := answerOf(w); a != nil && a.hold != nil {
		a.hold.Resize(bytes)
	}
}

// Reading counts the memory of a reader after its connection was taken over, as for a WebSocket. nil counts
// nothing.
type Reading struct {
	memory *limit.Memory
	reader limit.Reader
}

// ReadingOf returns the Reading of an answer's reader, nil without Readers.
func ReadingOf(w http.ResponseWriter) *Reading {
	a := answerOf(w)
	if a == nil {
		return nil
	}
	return &Reading{a.readers.memory, a.reader}
}

// Reserve reserves memory until release. It waits a moment for it and returns an error if there is none.
func (d *Reading) Reserve(ctx context.Context, bytes int64) (release func(), err error) {
	if d == nil {
		return func() {}, nil
	}
	hold, err := d.memory.Reserve(ctx, d.reader, bytes)
	if err != nil {
		return nil, err
	}
	return hold.Release, nil
}

// BeginDownload counts an export or a file among those that the actor receives at the same time, until
// the end of the request, and reserves memory for its parts. A RateLimited fault if there are too many.
func BeginDownload(ctx context.Context, w http.ResponseWriter, actor ident.Actor) error {
	a := answerOf(w)
	if a == nil || a.loading {
		return nil
	}
	SetReader(w, actor)
	if !a.reader.Many {
		if !a.readers.downloads.Begin(a.reader.Key) {
			return fault.Limited(2*tryAgain,
				"You receive as many exports and files at once as you may. Wait until one of them has ended.")
		}
		a.loading = true
	}
	if err := Reserve(ctx, w, actor); err != nil {
		return err
	}
	Shrink(w, ChunkBytes)
	return nil
}
