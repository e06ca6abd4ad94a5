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

// The messages of memberlist and of serf, as their first byte has them.
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

// Their bodies in msgpack, with what is looked at here. Names are as both
// write them.
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
	serfState struct { // without past events, which are passed over
		LTime        uint64
		StatusLTimes map[string]uint64
		LeftMembers  []string
		EventLTime   uint64
		QueryLTime   uint64
	}
)

// Bounds of what a state says.
const maxNodes = 2 * MaxMembers // those that are gone among them

var errUnfit = errors.New("it has what no honest member sends")

func decode(b []byte, out any) (err error) {
	defer caught(&err)
	return codec.NewDecoder(bytes.NewReader(b), &codec.MsgpackHandle{}).Decode(out)
}

// caught makes an error of a decoder's panic.
func caught(err *error) {
	if recover() != nil {
		*err = errUnfit
	}
}

// packet parts a packet of a portal into its messages and returns those that
// are fit to be handed on; the others are counted.
func (g *guard) packet(ctx context.Context, from string, b []byte) (fit [][]byte) {
	if len(b) > 5 && b[0] == crcMsg {
		if crc32.ChecksumIEEE(b[5:]) != binary.BigEndian.Uint32(b[1:5]) {
			g.refuse()
			return nil
		}
		b = b[5:]
	}
	list := [][]byte{b}
	if len(b) > 1 && b[0] == compoundMsg {
		list = parts(b[1:])
		if list == nil {
			g.refuse()
		}
	}
	for _, m := range list {
		if g.message(ctx, from, m) {
			fit = append(fit, m)
		} else {
			g.refuse()
		}
	}
	return fit
}

func (g *guard) refuse() {
	if g.count != nil {
		g.count.refused.Add(1)
	}
}

// parts are the messages of a compound one: their count in a byte, their
// lengths in two each, then they.
func parts(b []byte) (out [][]byte) {
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

// message reports whether a message of a portal is fit to be handed on.
func (g *guard) message(ctx context.Context, from string, b []byte) bool {
	if len(b) < 2 {
		return false
	}
	kind, body := b[0], b[1:]
	switch kind {
	case pingMsg, indirectPingMsg:
		// The answer goes to who asks, and nobody else.
		var p pingBody
		return decode(body, &p) == nil && p.SourceNode == from && (kind == pingMsg && (p.Node == "" || p.Node == string(g.cfg.Self)) || isPortal(p.Node) && place(p.Node, p.Target, p.Port))
	case ackMsg, nackMsg:
		return len(body) <= 256
	case suspectMsg, deadMsg:
		var d goneBody
		return decode(body, &d) == nil && isPortal(d.Node) && isPortal(d.From) && g.incarnation(d.Node, d.Incarnation)
	case aliveMsg:
		var a aliveBody
		return decode(body, &a) == nil && g.member(ctx, from, a.Node, a.Addr, a.Port, a.Meta) && g.incarnation(a.Node, a.Incarnation)
	case userMsg:
		return g.user(from, body)
	}
	return false
}

// member reports whether what is said of a member is what its portal signed.
func (g *guard) member(ctx context.Context, from, name string, ip []byte, port uint16, meta []byte) bool {
	if !isPortal(name) || !place(name, ip, port) || len(meta) < 2 || len(meta) > memberlist.MetaMaxSize || meta[0] != tagsMagic {
		return false
	}
	if name == string(g.cfg.Self) {
		return true // serf itself knows better
	}
	tags := make(map[string]string)
	return decode(meta[1:], &tags) == nil && g.check(ctx, from, name, tags[contactTag])
}

// user reports whether a message of serf's is fit: somebody joins, somebody
// leaves, a head is new. Queries, keys and relays are not for strangers.
func (g *guard) user(from string, b []byte) bool {
	if len(b) < 2 {
		return false
	}
	switch body := b[1:]; b[0] {
	case serfLeave, serfJoin:
		var i intentBody
		return decode(body, &i) == nil && isPortal(i.Node) && !i.Prune && g.lamport(i.LTime)
	case serfEvent:
		var e eventBody
		if decode(body, &e) != nil || e.Name != headEvent || e.CC || !g.lamport(e.LTime) {
			return false
		}
		_, ok := readHint(e.Payload)
		return ok && g.heard.admit(from, &e, g.members())
	}
	return false
}

// stream returns what a portal sent on a stream, written anew with what of it is
// fit: the state of its pool, an answer to a ping, or why it sends nothing. Of a
// state that was written briefly it returns what else it says, nil of others;
// contact returns the contact that a mark stands for.
func (g *guard) stream(ctx context.Context, from string, b []byte, contact func(name string) string) (out []byte, says *said, err error) {
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
		err = g.fit(ctx, from, s)
	}
	if err != nil {
		return nil, nil, err
	}
	out, err = s.bytes()
	return out, says, err
}

// fit takes out of a state of a portal what no honest member says. Past events
// are left out: heads are compared anyway.
func (g *guard) fit(ctx context.Context, from string, s *poolState) error {
	nodes := s.Nodes[:0]
	for _, n := range s.Nodes {
		if len(n.Vsn) == 6 && g.member(ctx, from, n.Name, n.Addr, n.Port, n.Meta) && g.incarnation(n.Name, n.Incarnation) {
			nodes = append(nodes, n)
		} else {
			g.refuse()
		}
	}
	s.Nodes = nodes
	u := s.User
	if u == nil {
		return nil
	}
	if len(u.StatusLTimes) > maxNodes || len(u.LeftMembers) > maxNodes || !g.lamport(u.LTime) || !g.lamport(u.EventLTime) {
		return errUnfit
	}
	for name, t := range u.StatusLTimes {
		if !isPortal(name) || !g.lamport(t) {
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
