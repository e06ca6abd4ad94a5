package linkwire

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
)

// ErrGone is returned by a Socket once its remote side has disconnected.
var ErrGone = errors.New("the connection has ended")

// Socket is a WebSocket that carries one JSON text per message, sends pings and ends when no byte
// arrived for Silence. Receive is for one goroutine, Send for several. The owner calls Close and then
// Wait.
type Socket struct {
	conn *websocket.Conn
	raw  *watched

	mu      sync.Mutex // guards the fields below
	timer   *time.Timer
	closing bool
	wg      sync.WaitGroup
}

// watched is a network connection that records when the last byte arrived. Bytes count and not
// whole messages, so that the sender of a long message over a slow line is not taken for silent.
type watched struct {
	net.Conn
	since time.Time
	last  atomic.Int64 // time of the last byte, as a duration after since
}

func watchConn(c net.Conn) *watched { return &watched{Conn: c, since: time.Now()} }

// Read implements net.Conn and records the time when bytes arrive.
func (w *watched) Read(p []byte) (int, error) {
	n, err := w.Conn.Read(p)
	if n > 0 {
		w.last.Store(int64(time.Since(w.since)))
	}
	return n, err
}

func (w *watched) quietTime() time.Duration {
	return time.Since(w.since) - time.Duration(w.last.Load())
}

// hijacked keeps the connection that a WebSocket takes over from the HTTP server, so that silence
// on it can be detected and it can be closed directly.
type hijacked struct {
	http.ResponseWriter
	conn *watched
}

// Hijack implements http.Hijacker and keeps the connection that it returns.
func (h *hijacked) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	c, rw, err := http.NewResponseController(h.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	// The HTTP server's deadlines are for single requests and would end a long connection.
	c.SetDeadline(time.Time{})
	h.conn = watchConn(c)
	// The server's buffers are eight times as large as needed for an idle connection, so smaller
	// ones replace them. Bytes that have arrived already are copied.
	early, _ := rw.Reader.Peek(rw.Reader.Buffered())
	in := bufio.NewReaderSize(io.MultiReader(bytes.NewReader(bytes.Clone(early)), h.conn), max(connBuffer, len(early)))
	if len(early) > 0 {
		_, _ = in.Peek(len(early)) // fill the buffer, so that early counts as buffered
	}
	return h.conn, bufio.NewReadWriter(in, bufio.NewWriterSize(h.conn, connBuffer)), nil
}

// connBuffer is the size of a connection's read and write buffers, in bytes. Long messages bypass
// them.
const connBuffer = 512

// Accept upgrades a request to a WebSocket. On failure it has written the error response. Requests
// of pages of other origins are refused. Messages are bounded by MaxHello until LiftLimit is
// called.
func Accept(w http.ResponseWriter, r *http.Request) (*Socket, error) {
	h := &hijacked{ResponseWriter: w}
	conn, err := websocket.Accept(h, r, &websocket.AcceptOptions{Subprotocols: []string{Subprotocol}})
	if err != nil {
		return nil, err
	}
	conn.SetReadLimit(MaxHello)
	return newSocket(conn, h.conn), nil
}

// Refused is the error of Dial when the portal refuses the handshake: its HTTP answer, with the
// body cut.
type Refused struct {
	Status int
	Header http.Header
	Body   string
}

// Error implements error. The text holds only the status, because the body comes from the portal
// unchecked.
func (e *Refused) Error() string { return fmt.Sprintf("answered %d", e.Status) }

// DialFunc opens a TCP connection, as net.Dialer's DialContext does. Tests replace the network with
// it.
type DialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// Dial opens a WebSocket to a portal, an address like https://portal.example, and sends token to
// authenticate. A nil dial uses the system's network. It returns a *Refused when the portal
// answered with another status than the one of an upgrade.
func Dial(ctx context.Context, portal, token string, dial DialFunc) (*Socket, error) {
	u, err := url.Parse(strings.TrimRight(portal, "/") + Path)
	if err != nil {
		return nil, err
	}
	if dial == nil {
		dial = (&net.Dialer{Timeout: SendWait}).DialContext
	}
	var raw *watched
	t := &http.Transport{Proxy: http.ProxyFromEnvironment, TLSHandshakeTimeout: SendWait,
		ResponseHeaderTimeout: 3 * SendWait,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			c, err := dial(ctx, network, address)
			if err != nil {
				return nil, err
			}
			raw = watchConn(c)
			return raw, nil
		}}
	defer t.CloseIdleConnections()
	h := http.Header{}
	if token != "" {
		h.Set("Authorization", "Bearer "+token)
	}
	conn, resp, err := websocket.Dial(ctx, u.String(), &websocket.DialOptions{
		HTTPHeader: h, Subprotocols: []string{Subprotocol},
		HTTPClient: &http.Client{Transport: t,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
	})
	if err != nil {
		if resp != nil && resp.StatusCode != http.StatusSwitchingProtocols {
			var body [2048]byte
			n := 0
			if resp.Body != nil {
				n, _ = resp.Body.Read(body[:])
			}
			return nil, &Refused{resp.StatusCode, resp.Header, string(body[:n])}
		}
		return nil, err
	}
	conn.SetReadLimit(MaxMessage)
	return newSocket(conn, raw), nil
}

func newSocket(conn *websocket.Conn, raw *watched) *Socket {
	s := &Socket{conn: conn, raw: raw}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.timer = time.AfterFunc(PingEvery, s.pingOrEnd)
	return s
}

// Protocol returns the negotiated WebSocket subprotocol, "" if there is none.
func (s *Socket) Protocol() string { return s.conn.Subprotocol() }

// LiftLimit lets messages grow to MaxMessage. It is called once the other side has authenticated.
func (s *Socket) LiftLimit() { s.conn.SetReadLimit(MaxMessage) }

// pingOrEnd sends a ping, or ends the connection when it has been silent. A timer calls it, so that an
// idle connection needs no goroutine for this.
func (s *Socket) pingOrEnd() {
	quiet := s.raw.quietTime()
	if quiet >= Silence {
		s.Close(ReasonSilent)
		return
	}
	s.mu.Lock()
	if s.closing {
		s.mu.Unlock()
		return
	}
	s.timer.Reset(min(PingEvery, Silence-quiet))
	s.wg.Add(1)
	s.mu.Unlock()
	defer s.wg.Done()
	ctx, cancel := context.WithTimeout(context.Background(), PingEvery)
	defer cancel()
	_ = s.conn.Ping(ctx) // the pong arrives as bytes, which watched records
}

// Send writes one message. It fails with an error that wraps ErrGone, within SendWait. It ignores ctx,
// because a message that is cut short ends the connection.
func (s *Socket) Send(_ context.Context, message []byte) error {
	ctx, cancel := context.WithTimeout(context.Background(), SendWait)
	defer cancel()
	if err := s.conn.Write(ctx, websocket.MessageText, message); err != nil {
		return fmt.Errorf("%w: %w", ErrGone, err)
	}
	return nil
}

// Receive reads one message. It ends by Close, or with the connection, and then fails with an error
// that wraps ErrGone.
func (s *Socket) Receive(context.Context) ([]byte, error) {
	kind, b, err := s.conn.Read(context.Background())
	if err == nil && kind != websocket.MessageText {
		err = errors.New("not a text")
		s.Close("protocol: send JSON as text messages")
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrGone, err)
	}
	return b, nil
}

// Close ends the connection and sends the reason to the other side. It returns at once; only the first
// call counts.
func (s *Socket) Close(reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return
	}
	s.closing = true
	s.timer.Stop()
	s.wg.Go(func() {
		if reason != ReasonSilent {
			s.raw.SetDeadline(time.Now().Add(CloseWait))
			s.conn.Close(closeCode(reason), Line(reason, 120))
		}
		s.raw.Close()
		s.conn.CloseNow()
	})
}

// Wait returns when all goroutines of a closed Socket have ended.
func (s *Socket) Wait() { s.wg.Wait() }

// closeCode returns the close code for a reason, by its first word.
func closeCode(reason string) websocket.StatusCode {
	switch word, _, _ := strings.Cut(reason, ":"); word {
	case "replaced":
		return CodeReplaced
	case "revoked":
		return CodeRevoked
	case "restart", "prove":
		return websocket.StatusServiceRestart
	case "bye":
		return websocket.StatusNormalClosure
	case "too large":
		return websocket.StatusMessageTooBig
	case "busy":
		return websocket.StatusTryAgainLater
	}
	return websocket.StatusPolicyViolation
}

// CloseReason returns the code and reason with which the other side closed the connection. err is
// the error of Receive. The code is 0 if the other side sent none.
func CloseReason(err error) (code int, reason string) {
	if e, ok := errors.AsType[websocket.CloseError](err); ok {
		return int(e.Code), e.Reason
	}
	return 0, ""
}
