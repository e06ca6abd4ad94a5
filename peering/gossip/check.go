package gossip

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"

	"github.com/hashicorp/go-msgpack/v2/codec"
	"github.com/hashicorp/memberlist"
)

// The messages of memberlist and of serf, by their first byte.
const (
	pingMsg         = 0
	indirectPingMsg = 1
	ackMsg          = 2
	suspectMsg      = 3
	aliveMsg        = 4
	deadMsg         = 5
	pushPullMsg     = 6
	compoundMsg     = 7
	userMsg         = 8
	nackMsg         = 11
	crcMsg          = 12
	errMsg          = 13

	serfLeave    = 0
	serfJoin     = 1
	serfPushPull = 2
	serfEvent    = 3

	tagsMagic = 255
)

// The bodies in msgpack, reduced to the fields that are checked here. memberlist and serf fix the
// names.
type (
	pingBody struct {
		SeqNo      uint32
		Node       string
		Target     []byte
		Port       uint16
		SourceNode string
	}
	aliveBody struct {
		Incarnation uint32
		Node        string
		Addr        []byte
		Port        uint16
		Meta        []byte
	}
	goneBody struct { // suspect and dead
		Incarnation uint32
		Node, From  string
	}
	stateHeader struct {
		Nodes, UserStateLen int
		Join                bool
	}
	nodeState struct {
		Name        string
		Addr        []byte
		Port        uint16
		Meta        []byte
		Incarnation uint32
		State       int
		Vsn         []uint8
	}
	intentBody struct {
		LTime uint64
		Node  string
		Prune bool
	}
	eventBody struct {
		LTime   uint64
		Name    string
		Payload []byte
		CC      bool
	}
	serfState struct { // without past events, which are skipped
		LTime        uint64
		StatusLTimes map[string]uint64
		LeftMembers  []string
		EventLTime   uint64
		QueryLTime   uint64
	}
)

// maxNodes bounds the members of a state.
const maxNodes = 2 * MaxMembers // including those that are gone

var errUnfit = errors.New("an honest member does not send this")

func decode(b []byte, out any) (err error) {
	defer caught(&err)
	return codec.NewDecoder(bytes.NewReader(b), &codec.MsgpackHandle{}).Decode(out)
}

// caught turns a panic of the decoder into an error.
func caught(err *error) {
	if recover() != nil {
		*err = errUnfit
	}
}

// splitPacket splits a packet of a portal into its messages and returns the valid ones; the others
// are counted.
func (g *guard) splitPacket(ctx context.Context, from string, b []byte) (fit [][]byte) {
	if len(b) > 5 && b[0] == crcMsg {
		if crc32.ChecksumIEEE(b[5:]) != binary.BigEndian.Uint32(b[1:5]) {
			g.countRefused()
			return nil
		}
		b = b[5:]
	}
	list := [][]byte{b}
	if len(b) > 1 && b[0] == compoundMsg {
		list = splitCompound(b[1:])
		if list == nil {
			g.countRefused()
		}
	}
	for _, m := range list {
		if g.checkMessage(ctx, from, m) {
			fit = append(fit, m)
		} else {
			g.countRefused()
		}
	}
	return fit
}

func (g *guard) countRefused() {
	if g.count != nil {
		g.count.refused.Add(1)
	}
}

// splitCompound returns the messages of a compound one: their count in one byte, their lengths in
// two bytes each, then the messages.
func splitCompound(b []byte) (out [][]byte) {
	n := int(b[0])
	if b = b[1:]; len(b) < 2*n {
		return nil
	}
	lengths, b := b[:2*n], b[2*n:]
	for ; n > 0; n-- {
		size := int(binary.BigEndian.Uint16(lengths))
		if lengths = lengths[2:]; size > len(b) {
			return nil
		}
		out, b = append(out, b[:size]), b[size:]
	}
	return out
}

// checkMessage reports whether a message of a portal is valid.
func (g *guard) checkMessage(ctx context.Context, from string, b []byte) bool {
	if len(b) < 2 {
		return false
	}
	kind, body := b[0], b[1:]
	switch kind {
	case pingMsg, indirectPingMsg:
		// The answer goes to the asking portal only.
		var p pingBody
		return decode(body, &p) == nil && p.SourceNode == from &&
			(kind == pingMsg && (p.Node == "" || p.Node == string(g.cfg.Self)) || isPortal(p.Node) &&
				isPlace(p.Node, p.Target, p.Port))
	case ackMsg, nackMsg:
		return len(body) <= 256
	case suspectMsg, deadMsg:
		var d goneBody
		return decode(body, &d) == nil && isPortal(d.Node) && isPortal(d.From) &&
			g.checkIncarnation(d.Node, d.Incarnation)
	case aliveMsg:
		var a aliveBody
		return decode(body, &a) == nil && g.checkMember(ctx, from, a.Node, a.Addr, a.Port, a.Meta) &&
			g.checkIncarnation(a.Node, a.Incarnation)
	case userMsg:
		return g.checkUser(from, body)
	}
	return false
}

// checkMember reports whether a statement about a member equals the contact that its portal signed.
func (g *guard) checkMember(ctx context.Context, from, name string, ip []byte, port uint16, meta []byte) bool {
	if !isPortal(name) || !isPlace(name, ip, port) || len(meta) < 2 || len(meta) > memberlist.MetaMaxSize ||
		meta[0] != tagsMagic {
		return false
	}
	if name == string(g.cfg.Self) {
		return true // serf itself knows this portal's state better
	}
	tags := make(map[string]string)
	return decode(meta[1:], &tags) == nil && g.checkContact(ctx, from, name, tags[contactTag])
}

// checkUser reports whether a message of serf is valid: a member joins, a member leaves, a head is
// new. Queries, keys and relays are not for portals of other operators.
func (g *guard) checkUser(from string, b []byte) bool {
	if len(b) < 2 {
		return false
	}
	switch body := b[1:]; b[0] {
	case serfLeave, serfJoin:
		var i intentBody
		return decode(body, &i) == nil && isPortal(i.Node) && !i.Prune && g.checkTime(i.LTime)
	case serfEvent:
		var e eventBody
		if decode(body, &e) != nil || e.Name != headEvent || e.CC || !g.checkTime(e.LTime) {
			return false
		}
		_, ok := readHint(e.Payload)
		return ok && g.heard.admitHint(from, &e, g.countMembers())
	}
	return false
}

// checkStream returns the valid part of a stream from a portal, encoded again: the state of its
// pool, an answer to a ping, or an error. For a brief state it also returns the extra fields,
// otherwise nil. contact returns the contact that a mark stands for.
func (g *guard) checkStream(ctx context.Context, from string, b []byte, contact func(name string) string) (out []byte,
	says *briefExtras, err error) {
	defer caught(&err)
	if len(b) < 2 || len(b) > MaxStream {
		return nil, nil, errUnfit
	}
	var s *poolState
	switch b[0] {
	case pushPullMsg:
		s, err = readState(b[1:])
	case briefMsg:
		s, says, err = readBrief(b[1:], contact)
	case errMsg, ackMsg:
		if len(b) > 1024 {
			return nil, nil, errUnfit
		}
		return b, nil, nil
	default:
		err = errUnfit
	}
	if err == nil {
		err = g.filterState(ctx, from, s)
	}
	if err != nil {
		return nil, nil, err
	}
	out, err = s.encodeState()
	return out, says, err
}

// filterState removes from a state everything that an honest member does not send. Past events are
// removed, too: heads are compared anyway.
func (g *guard) filterState(ctx context.Context, from string, s *poolState) error {
	nodes := s.Nodes[:0]
	for _, n := range s.Nodes {
		if len(n.Vsn) == 6 && g.checkMember(ctx, from, n.Name, n.Addr, n.Port, n.Meta) &&
			g.checkIncarnation(n.Name, n.Incarnation) {
			nodes = append(nodes, n)
		} else {
			g.countRefused()
		}
	}
	s.Nodes = nodes
	u := s.User
	if u == nil {
		return nil
	}
	if len(u.StatusLTimes) > maxNodes || len(u.LeftMembers) > maxNodes || !g.checkTime(u.LTime) ||
		!g.checkTime(u.EventLTime) {
		return errUnfit
	}
	for name, t := range u.StatusLTimes {
		if !isPortal(name) || !g.checkTime(t) {
			delete(u.StatusLTimes, name)
		}
	}
	left := u.LeftMembers[:0]
	for _, name := range u.LeftMembers {
		if _, ok := u.StatusLTimes[name]; ok {
			left = append(left, name)
		}
	}
	u.LeftMembers, u.QueryLTime = left, 0
	return nil
}
