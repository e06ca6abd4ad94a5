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

// The types of messages of memberlist and serf, each the first byte of a message. The values are fixed by
// those libraries.
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

// The msgpack bodies of messages, reduced to the fields that are checked here. memberlist and serf fix the
// names of the fields.
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
	goneBody struct { // body of suspectMsg and deadMsg
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
	serfState struct { // past events are not decoded
		LTime        uint64
		StatusLTimes map[string]uint64
		LeftMembers  []string
		EventLTime   uint64
		QueryLTime   uint64
	}
)

// maxNodes bounds the members in a received state.
const maxNodes = 2 * MaxMembers // includes members that are gone but remembered

var errUnfit = errors.New("an honest member does not send this")

func decode(b []byte, out any) (err error) {
	defer caught(&err)
	return codec.NewDecoder(bytes.NewReader(b), &codec.MsgpackHandle{}).Decode(out)
}

// caught sets *err if the msgpack decoder panics, which invalid input can cause. It must be deferred.
func caught(err *error) {
	if recover() != nil {
		*err = errUnfit
	}
}

// splitPacket splits a packet from a portal into its messages and returns the valid ones; invalid ones are
// counted as refused.
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

// splitCompound splits the body of a compoundMsg: the number of messages in one byte, their lengths in two
// bytes each, then the messages. It returns nil if the body is malformed.
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

// checkMessage reports whether an honest member with the id from can have sent a message.
func (g *guard) checkMessage(ctx context.Context, from string, b []byte) bool {
	if len(b) < 2 {
		return false
	}
	kind, body := b[0], b[1:]
	switch kind {
	case pingMsg, indirectPingMsg:
		// The source of a ping must be its sender, because the answer goes there.
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

// checkMember reports whether a statement about a member is valid: its address follows from its id, and its
// tags hold a contact that its portal signed. from is the id of the sender.
func (g *guard) checkMember(ctx context.Context, from, name string, ip []byte, port uint16, meta []byte) bool {
	if !isPortal(name) || !isPlace(name, ip, port) || len(meta) < 2 || len(meta) > memberlist.MetaMaxSize ||
		meta[0] != tagsMagic {
		return false
	}
	if name == string(g.cfg.Self) {
		return true // serf ignores statements about the local member that are not newer
	}
	tags := make(map[string]string)
	return decode(meta[1:], &tags) == nil && g.checkContact(ctx, from, name, tags[contactTag])
}

// checkUser reports whether a message of serf is valid: a member joins or leaves, or a portal has a new
// head. Queries, key management and relays are refused, because members belong to different operators.
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

// checkStream returns the valid part of a stream from a portal, encoded for memberlist: the state of a
// pool, an answer to a ping, or an error. For a state in the brief form says holds its extra fields,
// otherwise it is nil. contact returns the contact of a member that a mark in the brief form refers to.
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

// filterState removes from a state all statements that an honest member does not make. It also removes past
// events, because heads are compared anyway. It returns an error if the state as a whole is not plausible.
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
