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
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"agentsite/internal/chat"
	"agentsite/internal/fault"
)

const (
	// LiveFrameLimit is the longest frame of a reader, in bytes, and liveFrameTime the time in which it must
	// arrive. Readers send only small frames.
	LiveFrameLimit = 512
	liveFrameTime  = 3 * time.Second
	// liveChunk is how much of a long write must be taken in time.
	liveChunk = 64 << 10
)

var errChatter = errors.New("the reader says too much")

// socket is a WebSocket that writes its own frames: the library reads, and writes control frames through this type,
// so that frames never mix. While its reader keeps up it has no goroutine for writing: the conversation's room
// hands it each update. When the reader falls behind, a goroutine follows until it is up to date again.
type socket struct {
	door *Streams
	log  *slog.Logger
	raw  net.Conn
	conn *websocket.Conn
	try  *attempt // nil where every write may wait
	form int
	sub  *chat.Subscription
	// reader handles the frames that the reader sends; nil if it may send none.
	reader *frameReader
	ctx    context.Context // ends with the reader's permission
	base   context.Context // of the server: says why ctx has ended

	writing sync.Mutex // held while something is written; guards rest
	rest    []byte     // of a frame that was written in part

	alive atomic.Bool // something was read since the last ping

	mu       sync.Mutex // guards the rest
	asked    bool       // a ping was sent
	shutting bool
	over     bool
	timer    *time.Timer
	wg       sync.WaitGroup // of goroutines of the socket
}

// openSocket takes over the request's connection. If it returns an error, the request has been answered already.
func (d *Streams) openSocket(w http.ResponseWriter, r *http.Request) (*socket, error) {
	s := &socket{door: d, log: d.log}
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

// hijacked gives a socket the connection that a WebSocket takes over.
type hijacked struct {
	http.ResponseWriter
	socket *socket
}

// Hijack implements http.Hijacker. The library gets small buffers: it reads
// short frames and writes control frames only.
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

// library is the connection as the WebSocket library uses it.
type library struct {
	net.Conn
	socket *socket
	early  []byte // read with the handshake
	bytes  bucket // of received bytes, in frames of any kind
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

// serveSocket runs the socket until either side ends it, then calls end. write sends the updates: all of them, or those
// that wait until the room sends the others. ctx ends with the reader's permission, base, its parent, with the server.
func (s *socket) serveSocket(ctx, base context.Context, write func(context.Context) error, end func()) {
	defer end()
	defer func() {
		if p := recover(); p != nil { // as in a request, it ends nothing else
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
		s.wg.Wait() // it says why
	}
	s.raw.Close()
	s.conn.CloseNow()
	s.wg.Wait()
}

// startWriter runs write in a goroutine, unless the socket is over.
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

// readFrames takes frames until the connection ends.
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
		case kind != websocket.MessageText || len(b) > LiveFrameLimit || !s.reader.handleFrame(s.ctx, b):
			s.closeWith(websocket.StatusPolicyViolation, "this is not understood here")
			return
		}
	}
}

// setDeadline sets a deadline from now on, 0 for none. One that the closing
// handshake has set stays.
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
	_ = set(t) // the next read or write fails too
}

// closeWith says why the socket ends, and ends it.
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

// writeFrames sends whole frames, waiting for the reader as long as it goes on.
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
				s.raw.Close() // it may be in the middle of a frame
				return err
			}
			part = part[n:]
		}
	}
	s.rest = nil
	return nil
}

// handFrames sends frames if the connection takes them at once.
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

// Push implements chat.Sink.
func (s *socket) Push(b *chat.Batch) chat.Taken {
	return s.handFrames(b.Encoded(s.form, func(list []chat.Update) []byte { return s.door.encodeAll(s.form, list) }))
}

// Behind implements chat.Sink.
func (s *socket) Behind() { s.startWriter(s.followRoom) }

// End implements chat.Sink.
func (s *socket) End(err error) { s.closeWith(closeCode(s.base, err)) }

// followRoom sends the waiting updates until the reader is up to date. After that the room sends them.
func (s *socket) followRoom(ctx context.Context) error {
	for {
		if err := s.writeFrames(nil); err != nil { // the rest of a frame
			return err
		}
		list, err := s.sub.Take(ctx)
		if err != nil {
			return err
		}
		if len(list) > 0 {
			if err := s.writeFrames(s.door.encodeAll(s.form, list)); err != nil {
				return err
			}
		} else if s.sub.Attach(s) {
			return nil
		}
	}
}

// pingFrame is a whole ping without a payload.
var pingFrame = []byte{0x89, 0}

// sendPing disconnects readers that no longer respond. It uses the runtime's timers, so that no socket needs a
// goroutine for it.
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
			_ = s.writeFrames(pingFrame) // write ends the socket
		} else {
			s.handFrames(pingFrame) // a running writer has its own deadline
		}
	})
}

// closeCode returns the socket's status code for the end of a stream.
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

// bucket is a token bucket without a lock. It is full at first.
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
