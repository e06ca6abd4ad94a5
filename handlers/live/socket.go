package live

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"agentsite/handlers/respond"
	"agentsite/internal/chat"
	"agentsite/internal/fault"
)

const (
	// LiveFrameLimit is the longest frame that a client may send, in bytes, and liveFrameTime the time in
	// which a frame must arrive. Clients send only small frames.
	LiveFrameLimit = 512
	liveFrameTime  = 3 * time.Second
	// liveChunk is the part of a long write, in bytes, that the client must receive within
	// liveWriteTimeout.
	liveChunk = 16 << 10
	// resumeBytes is the part of the updates in bytes that is encoded at once for a client that catches up.
	resumeBytes = 64 << 10
)

var errChatter = errors.New("the reader says too much")

// socket is a WebSocket to which the portal writes whole frames itself. The library reads, and writes
// control frames through library, so that frames never interleave. While the client keeps up, no
// goroutine writes: the conversation calls Push with each update. When the client falls behind, a
// goroutine runs followRoom until the client is up to date.
type socket struct {
	door *Streams
	log  *slog.Logger
	raw  net.Conn
	conn *websocket.Conn
	try  *attempt // writes without blocking; nil if the connection cannot
	form int
	sub  *chat.Subscription
	// reading counts the updates that wait until the client has received them.
	reading *respond.Reading
	// reader handles the frames that the client sends; nil if the client may send none.
	reader *frameReader
	ctx    context.Context // ends with the client's permission
	base   context.Context // parent of ctx, ends with the server: shows why ctx has ended

	writing sync.Mutex // held during a write; guards rest
	rest    []byte     // unsent end of a frame that was sent in part

	alive atomic.Bool // something was received since the last ping

	mu       sync.Mutex // guards the fields below
	asked    bool       // a ping was sent
	shutting bool
	over     bool
	timer    *time.Timer
	wg       sync.WaitGroup // goroutines of this socket
}

// openSocket makes the request's connection a WebSocket. If it returns an error, the request has been
// answered.
func (d *Streams) openSocket(w http.ResponseWriter, r *http.Request) (*socket, error) {
	s := &socket{door: d, log: d.log, reading: respond.ReadingOf(w)}
	pings := bucket{rate: 1, burst: 10}
	conn, err := websocket.Accept(&hijacked{ResponseWriter: w, socket: s}, r, &websocket.AcceptOptions{
		OnPingReceived: func(context.Context, []byte) bool { return pings.takeTokens(1) },
	})
	if err != nil {
		return nil, err
	}
	s.conn = conn
	return s, nil
}

// hijacked is a ResponseWriter whose Hijack puts a library between the connection and the WebSocket
// library, and stores the connection in socket.
type hijacked struct {
	http.ResponseWriter
	socket *socket
}

// Hijack implements http.Hijacker. Its buffers are small, because the library reads short frames and
// writes control frames only, and thousands of sockets may be idle.
func (h *hijacked) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	c, rw, err := http.NewResponseController(h.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	s := h.socket
	s.raw, s.try = c, newAttempt(c)
	l := &library{Conn: c, socket: s, bytes: bucket{rate: 512, burst: 8 << 10}}
	if n := rw.Reader.Buffered(); n > 0 {
		b, _ := rw.Reader.Peek(n)
		l.early = append(l.early, b...)
	}
	return l, bufio.NewReadWriter(bufio.NewReaderSize(l, 256), bufio.NewWriterSize(l, 160)), nil
}

// library is the connection that the WebSocket library reads and writes. Writes go through socket.
type library struct {
	net.Conn
	socket *socket
	early  []byte // bytes that arrived with the handshake
	bytes  bucket // limit of received bytes, in frames of any kind
}

func (l *library) Read(b []byte) (n int, err error) {
	if len(l.early) > 0 {
		n = copy(b, l.early)
		l.early = l.early[n:]
	} else {
		n, err = l.Conn.Read(b)
	}
	if n > 0 {
		l.socket.alive.Store(true)
		if !l.bytes.takeTokens(float64(n)) {
			return 0, errChatter
		}
	}
	return n, err
}

func (l *library) Write(b []byte) (int, error) {
	if err := l.socket.putFrames(b, true); err != nil {
		return 0, err
	}
	return len(b), nil
}

// serveSocket runs the socket until either side ends it, then calls end. write sends updates: all of
// them, or those before the socket is attached to its conversation. ctx ends with the client's
// permission; its parent base ends with the server.
func (s *socket) serveSocket(ctx, base context.Context, write func(context.Context) error, end func()) {
	defer end()
	defer func() {
		if p := recover(); p != nil { // recovered as in an HTTP handler: other connections must not end
			s.log.Error("panic in a socket", "panic", p, "stack", string(debug.Stack()))
			s.raw.Close()
		}
	}()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.ctx, s.base = ctx, base
	stop := context.AfterFunc(ctx, func() { s.End(ctx.Err()) })
	s.mu.Lock()
	s.timer = time.AfterFunc(livePing, s.sendPing)
	s.mu.Unlock()
	s.startWriter(write)
	s.readFrames()
	stop()
	s.mu.Lock()
	s.over = true
	s.timer.Stop()
	shutting := s.shutting
	s.mu.Unlock()
	cancel()
	if shutting {
		s.wg.Wait() // a goroutine sends the close frame with the reason
	}
	s.raw.Close()
	s.conn.CloseNow()
	s.wg.Wait()
}

// startWriter runs write in a goroutine, unless the socket has ended. An error of write ends the socket.
func (s *socket) startWriter(write func(context.Context) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return
	}
	s.wg.Go(func() {
		if err := write(s.ctx); err != nil {
			s.End(err)
		}
	})
}

// readFrames handles the client's frames until the connection ends. A frame too large, too frequent or
// unknown closes the socket.
func (s *socket) readFrames() {
	frames := bucket{rate: 5, burst: 40}
	for {
		kind, in, err := s.conn.Reader(context.Background())
		var b []byte
		if err == nil {
			s.setDeadline(s.raw.SetReadDeadline, liveFrameTime)
			b, err = io.ReadAll(io.LimitReader(in, LiveFrameLimit+1))
			s.setDeadline(s.raw.SetReadDeadline, 0)
		}
		switch {
		case errors.Is(err, errChatter):
			s.closeWith(websocket.StatusPolicyViolation, "too much is said here")
			return
		case err != nil:
			return
		case !frames.takeTokens(1):
			s.closeWith(websocket.StatusPolicyViolation, "too much is said here")
			return
		case kind != websocket.MessageText || len(b) > LiveFrameLimit:
			s.closeWith(websocket.StatusPolicyViolation, notUnderstood)
			return
		}
		if refused := s.reader.handleFrame(s.ctx, b); refused != "" {
			s.closeWith(websocket.StatusPolicyViolation, refused)
			return
		}
	}
}

// setDeadline sets a deadline d from now, or removes it if d is 0. During the closing handshake it does
// nothing, so that the handshake's deadline stays.
func (s *socket) setDeadline(set func(time.Time) error, d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shutting {
		return
	}
	var t time.Time
	if d > 0 {
		t = time.Now().Add(d)
	}
	_ = set(t) // an error is ignored, because the next read or write fails with it
}

// closeWith starts the closing handshake with a status code and a reason. Later calls do nothing.
func (s *socket) closeWith(code websocket.StatusCode, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over || s.shutting {
		return
	}
	s.shutting = true
	s.raw.SetDeadline(time.Now().Add(liveCloseTime))
	s.wg.Go(func() {
		s.conn.Close(code, reason)
		s.raw.Close()
	})
}

func (s *socket) hasEnded() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shutting || s.over
}

// writeFrames sends whole frames and blocks as long as the client receives a chunk within
// liveWriteTimeout.
func (s *socket) writeFrames(b []byte) error { return s.putFrames(b, false) }

func (s *socket) putFrames(b []byte, control bool) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	if !control && s.hasEnded() {
		return net.ErrClosed
	}
	if len(s.rest)+len(b) == 0 {
		return nil
	}
	defer s.setDeadline(s.raw.SetWriteDeadline, 0)
	for _, part := range [][]byte{s.rest, b} {
		for len(part) > 0 {
			n := min(len(part), liveChunk)
			s.setDeadline(s.raw.SetWriteDeadline, liveWriteTimeout)
			if _, err := s.raw.Write(part[:n]); err != nil {
				s.raw.Close() // a frame may be incomplete, so the connection is unusable
				return err
			}
			part = part[n:]
		}
	}
	s.rest = nil
	return nil
}

// handFrames sends frames only as far as the connection accepts them without blocking. It returns
// chat.Last if a part is left in rest.
func (s *socket) handFrames(b []byte) chat.Taken {
	if s.try == nil || !s.writing.TryLock() {
		return chat.None
	}
	defer s.writing.Unlock()
	if s.rest != nil || s.hasEnded() {
		return chat.None
	}
	n, err := s.try.try(b)
	switch {
	case err != nil:
		s.raw.Close()
		return chat.None
	case n == len(b):
		return chat.All
	case n == 0:
		return chat.None
	}
	s.rest = b[n:]
	return chat.Last
}

// Push implements chat.Sink. It never blocks.
func (s *socket) Push(b *chat.Batch) chat.Taken {
	frames := b.Encoded(s.form, func(list []chat.Update) []byte { return s.door.encodeAll(s.form, list) })
	return s.handFrames(slices.Concat(frames, s.door.libraryNotices(s.form, s.reader.actor, b.Updates)))
}

// Behind implements chat.Sink. It starts a goroutine that sends the missed updates.
func (s *socket) Behind() { s.startWriter(s.followRoom) }

// End implements chat.Sink. It closes the socket with the status code for err.
func (s *socket) End(err error) { s.closeWith(closeCode(s.base, err)) }

// followRoom sends the waiting updates until the client is up to date, then attaches the socket to the
// conversation, which calls Push from then on.
func (s *socket) followRoom(ctx context.Context) error {
	for {
		if err := s.writeFrames(nil); err != nil { // sends the unsent end of a frame
			return err
		}
		sent, err := s.sendWaiting(ctx)
		if err != nil {
			return err
		}
		if !sent && s.sub.Attach(s) {
			return nil
		}
	}
}

// sendWaiting sends the updates that wait, and reports whether there were any. It reserves memory for
// them, so that a client may be asked to come back later.
func (s *socket) sendWaiting(ctx context.Context) (sent bool, err error) {
	release, err := s.reading.Reserve(ctx, 2*resumeBytes)
	if err != nil {
		return false, err
	}
	defer release()
	list, err := s.sub.Take(ctx)
	if err != nil {
		return false, err
	}
	for rest := list; len(rest) > 0; {
		var b []byte
		b, rest = s.door.encodePart(s.form, rest, resumeBytes)
		if err := s.writeFrames(b); err != nil {
			return false, err
		}
	}
	if b := s.door.libraryNotices(s.form, s.reader.actor, list); len(b) > 0 {
		if err := s.writeFrames(b); err != nil {
			return false, err
		}
	}
	return len(list) > 0, nil
}

// pingFrame is a complete ping frame without a payload.
var pingFrame = []byte{0x89, 0}

// sendPing sends a ping and disconnects a client that has not responded to the last one. A timer calls
// it, so that no socket needs a goroutine for pings.
func (s *socket) sendPing() {
	gone := !s.alive.Swap(false)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.over || s.shutting:
		return
	case s.asked && gone:
		s.raw.Close()
		return
	}
	s.asked = true
	s.timer.Reset(livePing)
	s.wg.Go(func() {
		if s.try == nil {
			_ = s.writeFrames(pingFrame) // writeFrames closes the socket on an error
		} else {
			s.handFrames(pingFrame) // if another goroutine is writing, its own deadline finds a dead client
		}
	})
}

// closeCode returns the WebSocket status code and reason for the error that ended a stream.
func closeCode(base context.Context, err error) (websocket.StatusCode, string) {
	switch {
	case fault.Is(err, fault.NotFound):
		return websocket.StatusPolicyViolation, "not a member any more"
	case errors.Is(err, context.Canceled) && base.Err() == nil:
		return websocket.StatusPolicyViolation, "the session has ended"
	case errors.Is(err, context.Canceled):
		return websocket.StatusServiceRestart, "come back and resume"
	}
	return websocket.StatusTryAgainLater, "come back and resume"
}

// bucket is a token bucket for one goroutine, without a lock. A new bucket is full.
type bucket struct {
	rate, burst float64
	used        float64
	at          time.Time
}

func (b *bucket) takeTokens(n float64) bool {
	now := time.Now()
	if !b.at.IsZero() {
		b.used = max(0, b.used-b.rate*now.Sub(b.at).Seconds())
	}
	b.at = now
	if b.used+n > b.burst {
		return false
	}
	b.used += n
	return true
}
