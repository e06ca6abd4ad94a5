package gossip

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"

	"agentsite/internal/fault"
	"agentsite/internal/record"
)

const (
	// coalesce is how long packets to one portal are gathered for a request.
	coalesce = 5 * time.Millisecond
	// replyWait is how long a request with a ping waits for its answer, which
	// goes back with the response; where it comes later it is a request of its
	// own.
	replyWait = 20 * time.Millisecond
	// packetTimeout ends a request with packets, streamTimeout one with state.
	packetTimeout = 5 * time.Second
	streamTimeout = 15 * time.Second
	// maxPacket bounds a packet, maxPackets and maxBody those of a request.
	maxPacket  = 16 << 10
	maxPackets = 64
	maxBody    = 128 << 10
	// MaxStream bounds the state of a pool as it travels, in bytes.
	MaxStream = 1 << 20
	// maxLocal bounds it as memberlist writes it here: some 600 bytes a member,
	// and all that serf knows of past events.
	maxLocal = 16 << 20
	// maxLines bounds the portals that are sent to at once.
	maxLines = 256
	// anyPort is the port of addresses that lead nowhere.
	anyPort = 1
)

// addressOf is the address that members have by signed requests. It is made of
// the id, so that nobody can give a member another: a local IPv6 address (RFC
// 4193) that no packet is ever sent to. Requests go where the portal's origin is.
func addressOf(id string) net.IP {
	ip := make(net.IP, net.IPv6len)
	ip[0] = 0xfd
	d, _ := record.PortalID(id).Digest()
	copy(ip[1:], d[:])
	return ip
}

// addr is the net.Addr of a member.
type addr string

func (addr) Network() string  { return "agentsite" }
func (a addr) String() string { return net.JoinHostPort(addressOf(string(a)).String(), "1") }

// transport carries memberlist's packets and streams in signed requests. Packets
// to one portal go together; what answers them at once goes back with the
// response. All that memberlist does with a stream is to write once and then to
// read, so one is a request and its response.
type transport struct {
	g       *Gossip
	packets chan *memberlist.Packet
	streams chan net.Conn
	ctx     context.Context // of the pool
	cancel  context.CancelFunc
	wg      sync.WaitGroup

	mu      sync.Mutex // guards the rest
	over    bool
	lines   map[string]*line
	replies map[string]*reply
	without map[string]bool // had no such route when last asked
}

// line is what waits to be sent to one portal.
type line struct {
	packets [][]byte
	size    int
}

// reply is the response to a request that is being worked on.
type reply struct {
	line
	came chan struct{} // capacity 1
}

// add puts a packet to the rest, if there is room.
func (l *line) add(b []byte) bool {
	if len(l.packets) >= maxPackets || l.size+2+len(b) > maxBody || len(b) > maxPacket {
		return false
	}
	l.packets, l.size = append(l.packets, bytes.Clone(b)), l.size+2+len(b)
	return true
}

var _ memberlist.NodeAwareTransport = (*transport)(nil)

func newTransport(g *Gossip) *transport {
	t := &transport{g: g, packets: make(chan *memberlist.Packet, 1024), streams: make(chan net.Conn, 16),
		lines: make(map[string]*line), replies: make(map[string]*reply), without: make(map[string]bool)}
	t.ctx, t.cancel = context.WithCancel(context.Background())
	return t
}

// FinalAdvertiseAddr implements memberlist.Transport.
func (t *transport) FinalAdvertiseAddr(string, int) (net.IP, int, error) {
	return addressOf(string(t.g.cfg.Self)), anyPort, nil
}

// PacketCh implements memberlist.Transport.
func (t *transport) PacketCh() <-chan *memberlist.Packet { return t.packets }

// StreamCh implements memberlist.Transport.
func (t *transport) StreamCh() <-chan net.Conn { return t.streams }

// Shutdown implements memberlist.Transport. It returns when no request is under
// way.
func (t *transport) Shutdown() error {
	t.mu.Lock()
	t.over = true
	t.mu.Unlock()
	t.cancel()
	t.wg.Wait()
	return nil
}

// start runs f unless the pool is over.
func (t *transport) start(f func()) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.startLocked(f)
}

func (t *transport) startLocked(f func()) bool {
	if t.over {
		return false
	}
	t.wg.Go(f)
	return true
}

var errNoName = errors.New("gossip: a member is reached by its name")

// WriteTo implements memberlist.Transport.
func (t *transport) WriteTo([]byte, string) (time.Time, error) { return time.Time{}, errNoName }

// WriteToAddress implements memberlist.NodeAwareTransport. It never blocks.
func (t *transport) WriteToAddress(b []byte, a memberlist.Address) (time.Time, error) {
	if a.Name == "" {
		return time.Time{}, errNoName
	}
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	if r := t.replies[a.Name]; r != nil && r.add(b) {
		select {
		case r.came <- struct{}{}:
		default:
		}
		return now, nil
	}
	l := t.lines[a.Name]
	if l == nil {
		if len(t.lines) >= maxLines {
			t.g.count.dropped.Add(1)
			return now, nil
		}
		l = new(line)
		if !t.startLocked(func() { t.send(a.Name, l) }) {
			return now, nil
		}
		t.lines[a.Name] = l
	}
	if !l.add(b) {
		t.g.count.dropped.Add(1)
	}
	return now, nil
}

// send sends what gathers in a line until nothing does any more.
func (t *transport) send(name string, l *line) {
	for {
		wait := time.NewTimer(coalesce)
		select {
		case <-wait.C:
		case <-t.ctx.Done():
			wait.Stop()
			return
		}
		t.mu.Lock()
		batch := l.packets
		l.packets, l.size = nil, 0
		if len(batch) == 0 {
			delete(t.lines, name)
			t.mu.Unlock()
			return
		}
		t.mu.Unlock()
		answer, err := t.post(name, packetRoute, frames(batch), packetTimeout, maxBody)
		if err != nil {
			continue // packets may be lost
		}
		if list, err := unframe(answer); err == nil {
			t.deliver(name, list)
		} else {
			t.g.count.refused.Add(1)
		}
	}
}

// post asks a portal.
func (t *transport) post(name, route string, body []byte, most time.Duration, limit int64) ([]byte, error) {
	ctx, cancel := context.WithTimeout(t.ctx, most)
	defer cancel()
	c := &t.g.count
	c.sent.Add(1)
	c.out.Add(int64(len(body)))
	b, err := t.g.cfg.Post(ctx, record.PortalID(name), route, body, limit)
	if err != nil {
		c.failed.Add(1)
	}
	c.in.Add(int64(len(b)))
	t.mu.Lock()
	defer t.mu.Unlock()
	if fault.Is(err, fault.NotFound) && len(t.without) < 4*MaxMembers {
		t.without[name] = true
	} else {
		delete(t.without, name)
	}
	return b, err
}

// absent reports whether a portal had no such route when it was last asked.
func (t *transport) absent(name string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.without[name]
}

// deliver hands on the packets of a portal that are fit. It reports whether
// some ask for an answer.
func (t *transport) deliver(from string, list [][]byte) (asks bool) {
	for _, b := range list {
		for _, m := range t.g.guard.packet(t.ctx, from, b) {
			asks = asks || m[0] == pingMsg
			select {
			case t.packets <- &memberlist.Packet{Buf: m, From: addr(from), Timestamp: time.Now()}:
			default:
				t.g.count.dropped.Add(1)
			}
		}
	}
	return asks
}

// servePackets takes packets in, and answers with those that go back at once.
func (t *transport) servePackets(ctx context.Context, from string, body []byte) ([]byte, error) {
	list, err := unframe(body)
	if err != nil {
		return nil, err
	}
	r := &reply{came: make(chan struct{}, 1)}
	t.mu.Lock()
	if t.replies[from] == nil {
		t.replies[from] = r
	}
	t.mu.Unlock()
	if t.deliver(from, list) {
		wait := time.NewTimer(replyWait)
		select {
		case <-r.came:
		case <-wait.C:
		case <-ctx.Done():
		case <-t.ctx.Done():
		}
		wait.Stop()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.replies[from] == r {
		delete(t.replies, from)
	}
	return frames(r.packets), nil
}

// frames is packets, each behind its length in two bytes.
func frames(list [][]byte) []byte {
	var out []byte
	for _, b := range list {
		out = append(binary.BigEndian.AppendUint16(out, uint16(len(b))), b...)
	}
	return out
}

func unframe(b []byte) (list [][]byte, err error) {
	if len(b) > maxBody {
		return nil, fault.New(fault.Invalid, "The body has more than %d bytes.", maxBody)
	}
	for len(b) > 0 {
		if len(b) < 2 || len(list) == maxPackets {
			return nil, fault.New(fault.Invalid, "The body is no packets: at most %d, each behind its length in two bytes.", maxPackets)
		}
		n := int(binary.BigEndian.Uint16(b))
		if n == 0 || n > maxPacket || len(b) < 2+n {
			return nil, fault.New(fault.Invalid, "A packet has 1 to %d bytes and is there whole.", maxPacket)
		}
		list, b = append(list, b[2:2+n]), b[2+n:]
	}
	return list, nil
}

// serveStream hands on what a portal wrote, and answers with what is written
// back.
func (t *transport) serveStream(ctx context.Context, from string, body []byte) ([]byte, error) {
	clean, says, err := t.g.guard.stream(t.ctx, from, body, t.g.guard.contactOf)
	if err != nil {
		t.g.count.refused.Add(1)
		return nil, fault.New(fault.Invalid, "This is no state of a pool: %v", err)
	}
	ctx, cancel := context.WithTimeout(ctx, serveTimeout)
	defer cancel()
	c := &served{from: from, in: bytes.NewReader(clean), done: make(chan struct{})}
	select {
	case t.streams <- c:
	case <-ctx.Done():
		return nil, fault.New(fault.Unavailable, "This portal is busy.")
	case <-t.ctx.Done():
		return nil, fault.New(fault.Unavailable, "This portal does not gossip now.")
	}
	select {
	case <-c.done:
		out := c.out.Bytes()
		if says != nil && says.only {
			return nil, nil
		}
		if s := stateOf(out); s != nil && says != nil {
			if out, err = s.brief(func(name string, m mark) bool { return says.has[name] == m }, says.unknown); err != nil {
				return nil, err
			}
		}
		if len(out) > MaxStream {
			return nil, fault.New(fault.Unavailable, "The state of the pool is too long.")
		}
		return out, nil
	case <-ctx.Done():
		return nil, fault.New(fault.Unavailable, "This portal is busy.")
	case <-t.ctx.Done():
		return nil, fault.New(fault.Unavailable, "This portal does not gossip now.")
	}
}

// stateOf is the state that memberlist wrote on a stream, nil where it wrote
// something else.
func stateOf(b []byte) *poolState {
	if len(b) == 0 || b[0] != pushPullMsg {
		return nil
	}
	s, err := readState(b[1:])
	if err != nil {
		return nil
	}
	return s
}

// served is the near end of a stream that a portal opened. Only memberlist's
// goroutine touches it until it is closed.
type served struct {
	noDeadlines
	from string
	in   *bytes.Reader
	out  bytes.Buffer
	once sync.Once
	done chan struct{}
}

func (c *served) Read(b []byte) (int, error) { return c.in.Read(b) }

func (c *served) Write(b []byte) (int, error) {
	if c.out.Len()+len(b) > maxLocal {
		return 0, errTooLong
	}
	return c.out.Write(b)
}

func (c *served) Close() error {
	c.once.Do(func() { close(c.done) })
	return nil
}

func (c *served) LocalAddr() net.Addr  { return addr(c.from) }
func (c *served) RemoteAddr() net.Addr { return addr(c.from) }

var errTooLong = errors.New("gossip: the state of the pool is too long")

// noDeadlines is for what ends by itself.
type noDeadlines struct{}

func (noDeadlines) SetDeadline(time.Time) error      { return nil }
func (noDeadlines) SetReadDeadline(time.Time) error  { return nil }
func (noDeadlines) SetWriteDeadline(time.Time) error { return nil }

// DialTimeout implements memberlist.Transport.
func (t *transport) DialTimeout(string, time.Duration) (net.Conn, error) { return nil, errNoName }

// DialAddressTimeout implements memberlist.NodeAwareTransport.
func (t *transport) DialAddressTimeout(a memberlist.Address, _ time.Duration) (net.Conn, error) {
	if a.Name == "" {
		return nil, errNoName
	}
	return &dialled{t: t, to: a.Name}, nil
}

// dialled is the far end of a stream to a portal: what is written is sent when
// it is first read, or closed.
type dialled struct {
	noDeadlines
	t    *transport
	to   string
	out  bytes.Buffer
	sent bool
	in   *bytes.Reader
}

func (c *dialled) Write(b []byte) (int, error) {
	if c.sent {
		return 0, os.ErrClosed
	}
	if c.out.Len()+len(b) > maxLocal {
		return 0, errTooLong
	}
	return c.out.Write(b)
}

func (c *dialled) Read(b []byte) (int, error) {
	if !c.sent {
		c.sent = true
		answer, mine, err := c.ask()
		if err != nil {
			return 0, err
		}
		var shows map[string]string // what the marks that come back are of
		if mine != nil {
			shows = mine.contacts()
		}
		clean, says, err := c.t.g.guard.stream(c.t.ctx, c.to, answer, func(name string) string { return shows[name] })
		if err != nil {
			c.t.g.count.refused.Add(1)
			return 0, err
		}
		c.in = bytes.NewReader(clean)
		if says != nil && mine != nil && len(says.lacks) > 0 {
			if body, err := mine.only(says.lacks); err == nil {
				c.t.start(func() { c.t.post(c.to, streamRoute, body, streamTimeout, MaxStream) })
			}
		}
	}
	if c.in == nil {
		return 0, io.EOF
	}
	return c.in.Read(b)
}

// ask sends what was written, and returns the answer: a state briefly, which it
// returns too, and whole to who is of an older version.
func (c *dialled) ask() (answer []byte, mine *poolState, err error) {
	whole := c.out.Bytes()
	if mine = stateOf(whole); mine != nil {
		self := string(c.t.g.cfg.Self)
		short, err := mine.brief(func(name string, _ mark) bool { return name != self }, nil)
		if err != nil {
			return nil, nil, err
		}
		if answer, err = c.t.post(c.to, streamRoute, short, streamTimeout, MaxStream); !fault.Is(err, fault.Invalid) {
			return answer, mine, err
		}
	}
	if len(whole) > MaxStream {
		return nil, nil, errTooLong
	}
	answer, err = c.t.post(c.to, streamRoute, whole, streamTimeout, MaxStream)
	return answer, mine, err
}

// Close sends what nobody waits for an answer to.
func (c *dialled) Close() error {
	if !c.sent && c.out.Len() > 0 {
		c.sent = true
		body := bytes.Clone(c.out.Bytes())
		c.t.start(func() { c.t.post(c.to, streamRoute, body, streamTimeout, MaxStream) })
	}
	return nil
}

func (c *dialled) LocalAddr() net.Addr  { return addr(c.to) }
func (c *dialled) RemoteAddr() net.Addr { return addr(c.to) }
