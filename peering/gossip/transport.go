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
	// coalesce is how long packets to one portal are collected before they are sent in one request.
	coalesce = 5 * time.Millisecond
	// replyWait is how long the response to a request with a ping waits for memberlist's answer, which then
	// travels in the response. A later answer needs a request of its own.
	replyWait = 20 * time.Millisecond
	// packetTimeout bounds a request with packets, streamTimeout one with a state.
	packetTimeout = 5 * time.Second
	streamTimeout = 15 * time.Second
	// maxPacket bounds a packet in bytes, maxPackets the packets of a request, and maxBody all of them in
	// bytes.
	maxPacket  = 16 << 10
	maxPackets = 64
	maxBody    = 128 << 10
	// MaxStream bounds the body of a request or response with the state of a pool, in bytes.
	MaxStream = 1 << 20
	// maxLocal bounds the full form of a state that memberlist writes, in bytes: about 600 bytes for each
	// member, and all past events of serf.
	maxLocal = 16 << 20
	// maxLines bounds the portals to which packets are sent at the same time.
	maxLines = 256
	// anyPort is the port in the addresses of members. It has no meaning, because nothing connects to them.
	anyPort = 1
)

// addressOf returns the address of a member when signed requests are used. It is derived from the member's
// id, so that other members cannot change it: a local IPv6 address (RFC 4193) to which no packet is ever
// sent. Requests go to the portal's origin.
func addressOf(id string) net.IP {
	ip := make(net.IP, net.IPv6len)
	ip[0] = 0xfd
	d, _ := record.PortalID(id).Digest()
	copy(ip[1:], d[:])
	return ip
}

// addr is the net.Addr of a member; its value is the member's name.
type addr string

func (addr) Network() string  { return "agentsite" }
func (a addr) String() string { return net.JoinHostPort(addressOf(string(a)).String(), "1") }

// transport implements memberlist's transport by signed requests. Packets to one portal are sent together;
// packets that answer a request at once travel in its response. memberlist writes once to a stream and then
// reads, so that one request and its response can replace a connection.
type transport struct {
	g       *Gossip
	packets chan *memberlist.Packet
	streams chan net.Conn
	ctx     context.Context // context of the pool; Shutdown cancels it
	cancel  context.CancelFunc
	wg      sync.WaitGroup

	mu      sync.Mutex // guards the fields below
	over    bool
	lines   map[string]*line
	replies map[string]*reply
	without map[string]bool // portals that had no such route at the last request
}

// line holds the packets to one portal that wait for the next request.
type line struct {
	packets [][]byte
	size    int
}

// reply collects the packets for the response to a request that is being served.
type reply struct {
	line
	came chan struct{} // signals a packet; capacity 1
}

// addPacket appends a copy of a packet. It returns false if the limits leave no room.
func (l *line) addPacket(b []byte) bool {
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

// FinalAdvertiseAddr implements memberlist.Transport by the address derived from this portal's id.
func (t *transport) FinalAdvertiseAddr(string, int) (net.IP, int, error) {
	return addressOf(string(t.g.cfg.Self)), anyPort, nil
}

// PacketCh implements memberlist.Transport. The packets have passed the guard.
func (t *transport) PacketCh() <-chan *memberlist.Packet { return t.packets }

// StreamCh implements memberlist.Transport. The streams contain states that have passed the guard.
func (t *transport) StreamCh() <-chan net.Conn { return t.streams }

// Shutdown implements memberlist.Transport. It cancels all requests and waits for their goroutines.
func (t *transport) Shutdown() error {
	t.mu.Lock()
	t.over = true
	t.mu.Unlock()
	t.cancel()
	t.wg.Wait()
	return nil
}

// start runs f in a goroutine. It returns false, without running f, after Shutdown.
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

// WriteTo implements memberlist.Transport. It always fails, because a member is reached by its name.
func (t *transport) WriteTo([]byte, string) (time.Time, error) { return time.Time{}, errNoName }

// WriteToAddress implements memberlist.NodeAwareTransport. It never blocks; a packet without room is
// dropped, as UDP would.
func (t *transport) WriteToAddress(b []byte, a memberlist.Address) (time.Time, error) {
	if a.Name == "" {
		return time.Time{}, errNoName
	}
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	if r := t.replies[a.Name]; r != nil && r.addPacket(b) {
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
		if !t.startLocked(func() { t.sendLine(a.Name, l) }) {
			return now, nil
		}
		t.lines[a.Name] = l
	}
	if !l.addPacket(b) {
		t.g.count.dropped.Add(1)
	}
	return now, nil
}

// sendLine sends the packets of a line in requests, until none is left.
func (t *transport) sendLine(name string, l *line) {
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
		answer, err := t.postRequest(name, packetRoute, joinFrames(batch), packetTimeout, maxBody)
		if err != nil {
			continue // memberlist expects that packets are lost
		}
		if list, err := splitFrames(answer); err == nil {
			t.deliverPackets(name, list)
		} else {
			t.g.count.refused.Add(1)
		}
	}
}

// postRequest sends a request to a portal, with the timeout most, and returns at most limit bytes of its
// answer. It records whether the portal has the route.
func (t *transport) postRequest(name, route string, body []byte, most time.Duration, limit int64) ([]byte, error) {
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

// lacksRoute reports whether a portal had no such route at the last request: it does not gossip.
func (t *transport) lacksRoute(name string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.without[name]
}

// deliverPackets passes the valid messages in a portal's packets to memberlist. asks is true if one of them
// is a ping.
func (t *transport) deliverPackets(from string, list [][]byte) (asks bool) {
	for _, b := range list {
		for _, m := range t.g.guard.splitPacket(t.ctx, from, b) {
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

// servePackets passes the packets in a request to memberlist. The response contains the packets that
// memberlist sends to that portal within replyWait.
func (t *transport) servePackets(ctx context.Context, from string, body []byte) ([]byte, error) {
	list, err := splitFrames(body)
	if err != nil {
		return nil, err
	}
	r := &reply{came: make(chan struct{}, 1)}
	t.mu.Lock()
	if t.replies[from] == nil {
		t.replies[from] = r
	}
	t.mu.Unlock()
	if t.deliverPackets(from, list) {
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
	return joinFrames(r.packets), nil
}

// joinFrames encodes packets, each preceded by its length in two bytes.
func joinFrames(list [][]byte) []byte {
	var out []byte
	for _, b := range list {
		out = append(binary.BigEndian.AppendUint16(out, uint16(len(b))), b...)
	}
	return out
}

func splitFrames(b []byte) (list [][]byte, err error) {
	if len(b) > maxBody {
		return nil, fault.New(fault.Invalid, "The body has more than %d bytes.", maxBody)
	}
	for len(b) > 0 {
		if len(b) < 2 || len(list) == maxPackets {
			return nil, fault.New(fault.Invalid,
				"The body is not a list of packets: at most %d, each after its length in two bytes.", maxPackets)
		}
		n := int(binary.BigEndian.Uint16(b))
		if n == 0 || n > maxPacket || len(b) < 2+n {
			return nil, fault.New(fault.Invalid, "A packet must have 1 to %d bytes and be complete.", maxPacket)
		}
		list, b = append(list, b[2:2+n]), b[2+n:]
	}
	return list, nil
}

// serveStream passes the state in a request to memberlist as a stream, and returns the bytes that
// memberlist writes to it.
func (t *transport) serveStream(ctx context.Context, from string, body []byte) ([]byte, error) {
	clean, says, err := t.g.guard.checkStream(t.ctx, from, body, t.g.guard.contactOf)
	if err != nil {
		t.g.count.refused.Add(1)
		return nil, fault.New(fault.Invalid, "This is not the state of a pool: %v", err)
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
			return []byte{}, nil
		}
		if s := stateOf(out); s != nil && says != nil {
			if out, err = s.encodeBrief(func(name string, m mark) bool { return says.has[name] == m },
				says.unknown); err != nil {
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

// stateOf decodes the state that memberlist wrote to a stream; nil for any other content.
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

// served is the local end of a stream that another portal opened by a request. Only memberlist's goroutine
// uses it until done is closed.
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

// noDeadlines implements the deadline methods of net.Conn without effect, for streams that end by a
// context.
type noDeadlines struct{}

func (noDeadlines) SetDeadline(time.Time) error      { return nil }
func (noDeadlines) SetReadDeadline(time.Time) error  { return nil }
func (noDeadlines) SetWriteDeadline(time.Time) error { return nil }

// DialTimeout implements memberlist.Transport. It always fails, because a member is reached by its name.
func (t *transport) DialTimeout(string, time.Duration) (net.Conn, error) { return nil, errNoName }

// DialAddressTimeout implements memberlist.NodeAwareTransport. It sends nothing yet; the request is sent at
// the first Read or at Close.
func (t *transport) DialAddressTimeout(a memberlist.Address, _ time.Duration) (net.Conn, error) {
	if a.Name == "" {
		return nil, errNoName
	}
	return &dialled{t: t, to: a.Name}, nil
}

// dialled is the local end of a stream to another portal. The bytes written are sent in one request, at the
// first Read or at Close.
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
		answer, mine, err := c.exchangeState()
		if err != nil {
			return 0, err
		}
		var shows map[string]string // contacts by member, to resolve the marks in the answer
		if mine != nil {
			shows = mine.contacts()
		}
		clean, says, err := c.t.g.guard.checkStream(c.t.ctx, c.to, answer,
			func(name string) string { return shows[name] })
		if err != nil {
			c.t.g.count.refused.Add(1)
			return 0, err
		}
		c.in = bytes.NewReader(clean)
		if says != nil && mine != nil && len(says.lacks) > 0 {
			if body, err := mine.encodeOnly(says.lacks); err == nil {
				c.t.start(func() { _, _ = c.t.postRequest(c.to, streamRoute, body, streamTimeout, MaxStream) })
			}
		}
	}
	if c.in == nil {
		return 0, io.EOF
	}
	return c.in.Read(b)
}

// exchangeState sends the bytes written and returns the answer. If they are a state, it is sent in the
// brief form and returned as mine; a portal of an older version, which refuses that form, gets the full
// form.
func (c *dialled) exchangeState() (answer []byte, mine *poolState, err error) {
	whole := c.out.Bytes()
	if mine = stateOf(whole); mine != nil {
		self := string(c.t.g.cfg.Self)
		short, err := mine.encodeBrief(func(name string, _ mark) bool { return name != self }, nil)
		if err != nil {
			return nil, nil, err
		}
		if answer, err = c.t.postRequest(c.to, streamRoute, short, streamTimeout, MaxStream); !fault.Is(err,
			fault.Invalid) {
			return answer, mine, err
		}
	}
	if len(whole) > MaxStream {
		return nil, nil, errTooLong
	}
	answer, err = c.t.postRequest(c.to, streamRoute, whole, streamTimeout, MaxStream)
	return answer, mine, err
}

// Close implements net.Conn. It sends the bytes written if Read was never called, and does not wait.
func (c *dialled) Close() error {
	if !c.sent && c.out.Len() > 0 {
		c.sent = true
		body := bytes.Clone(c.out.Bytes())
		c.t.start(func() { _, _ = c.t.postRequest(c.to, streamRoute, body, streamTimeout, MaxStream) })
	}
	return nil
}

func (c *dialled) LocalAddr() net.Addr  { return addr(c.to) }
func (c *dialled) RemoteAddr() net.Addr { return addr(c.to) }
