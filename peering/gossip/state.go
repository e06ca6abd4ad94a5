package gossip

import (
	"bytes"
	"crypto/sha256"
	"io"
	"maps"

	"github.com/hashicorp/go-msgpack/v2/codec"

	"agentsite/internal/record"
)

// poolState is the state that two members exchange at intervals, so that a member that missed a message
// still gets its content: the members, their contacts, and serf's Lamport times. In the encoding of
// memberlist and serf a member takes about 560 bytes, most of which the other side has already. So states
// travel in a brief form, which replaces a contact that the other side has by a mark of eight bytes.
type poolState struct {
	Join  bool
	Nodes []nodeState
	User  *serfState // nil if the stream has no serf state
}

// readState decodes a state in the encoding of memberlist. b does not include the first byte, the type.
func readState(b []byte) (*poolState, error) {
	r := bytes.NewReader(b)
	dec := codec.NewDecoder(r, &codec.MsgpackHandle{})
	var head stateHeader
	if err := dec.Decode(&head); err != nil || head.Nodes < 0 || head.Nodes > maxNodes || head.UserStateLen < 0 ||
		head.UserStateLen > len(b) {
		return nil, errUnfit
	}
	s := &poolState{Join: head.Join, Nodes: make([]nodeState, 0, min(head.Nodes, len(b)/32))}
	for range head.Nodes {
		var n nodeState
		if err := dec.Decode(&n); err != nil {
			return nil, errUnfit
		}
		s.Nodes = append(s.Nodes, n)
	}
	user := make([]byte, head.UserStateLen)
	if _, err := io.ReadFull(r, user); err != nil || r.Len() > 0 {
		return nil, errUnfit
	}
	if len(user) == 0 {
		return s, nil
	}
	s.User = new(serfState)
	if user[0] != serfPushPull || decode(user[1:], s.User) != nil {
		return nil, errUnfit
	}
	return s, nil
}

// encodeState returns the state in the encoding of memberlist, with the type as first byte.
func (s *poolState) encodeState() ([]byte, error) {
	var user bytes.Buffer
	handle := &codec.MsgpackHandle{}
	if s.User != nil {
		user.WriteByte(serfPushPull)
		if err := codec.NewEncoder(&user, handle).Encode(s.User); err != nil {
			return nil, err
		}
	}
	var out bytes.Buffer
	out.WriteByte(pushPullMsg)
	enc := codec.NewEncoder(&out, handle)
	if err := enc.Encode(&stateHeader{len(s.Nodes), user.Len(), s.Join}); err != nil {
		return nil, err
	}
	for i := range s.Nodes {
		if err := enc.Encode(&s.Nodes[i]); err != nil {
			return nil, err
		}
	}
	out.Write(user.Bytes())
	return out.Bytes(), nil
}

// briefMsg is the type (first byte) of a state in the brief form. memberlist does not use this value.
const briefMsg = 128

// The brief form of a state, in msgpack with structs as arrays: a briefHead, then the parts that its
// numbers announce, so that a reader can limit them before it reserves memory. A member's name and address
// are derived from the digest of its id.
type (
	briefHead struct {
		Join          bool
		Only          bool // sender does not wait for a state in return
		User          bool
		LTime, Events uint64
		Nodes         int // number of briefNode
		Times         int // number of briefTime: Lamport times of portals that are not members
		Left          int // number of names of members that left
		Lacks         int // number of digests of members with a mark that the sender cannot resolve
	}
	briefNode struct {
		Digest      []byte
		Incarnation uint32
		State       int
		Vsn         []uint8
		LTime       uint64 // Lamport time of the last status change; 0 for none
		Mark        []byte // mark of the contact; empty if Meta is present
		Meta        []byte // complete tags; empty if Mark is present
	}
	briefTime struct {
		Name  string
		LTime uint64
	}
)

// briefExtras holds the fields of a received brief state that memberlist does not know.
type briefExtras struct {
	has     marks    // contacts that the sender has
	unknown []string // members with a mark that cannot be resolved here
	lacks   []string // members with a mark that the sender could not resolve
	only    bool     // the sender does not wait for a state in return
}

// mark is the first eight bytes of the SHA-256 hash of a contact.
type mark [8]byte

func markOf(contact string) (m mark) {
	d := sha256.Sum256([]byte(contact))
	copy(m[:], d[:])
	return m
}

// marks holds the mark of each member's contact, by member name.
type marks map[string]mark

// contactIn returns the contact in the encoded tags of a member; "" if there is none or there are other
// tags too, because only tags with a contact alone can be restored from a mark.
func contactIn(meta []byte) string {
	if len(meta) < 2 || meta[0] != tagsMagic {
		return ""
	}
	tags := make(map[string]string)
	if decode(meta[1:], &tags) != nil || !bytes.Equal(metaOf(tags[contactTag]), meta) {
		return ""
	}
	return tags[contactTag]
}

// metaOf returns the tags of a member that has only a contact, in serf's encoding.
func metaOf(contact string) []byte {
	out := bytes.NewBuffer([]byte{tagsMagic})
	if err := codec.NewEncoder(out, &codec.MsgpackHandle{}).Encode(map[string]string{contactTag: contact}); err != nil {
		return nil
	}
	return out.Bytes()
}

// encodeBrief encodes a state in the brief form. has reports whether the other side has the contact of a
// member with that mark. lacks are members with marks in the other side's state that could not be resolved.
// Lamport times of past events are left out, because heads are compared anyway.
func (s *poolState) encodeBrief(has func(name string, m mark) bool, lacks []string) ([]byte, error) {
	head := briefHead{Join: s.Join, Nodes: len(s.Nodes), Lacks: len(lacks)}
	times := make(map[string]uint64)
	var left []string
	if s.User != nil {
		head.User, head.LTime, head.Events, left = true, s.User.LTime, s.User.EventLTime, s.User.LeftMembers
		maps.Copy(times, s.User.StatusLTimes)
	}
	nodes := s.briefNodes()
	for i := range nodes {
		n, name := &nodes[i], s.Nodes[i].Name
		n.LTime = times[name]
		delete(times, name)
		if c := contactIn(n.Meta); c != "" {
			if m := markOf(c); has(name, m) {
				n.Mark, n.Meta = m[:], nil
			}
		}
	}
	head.Times, head.Left = len(times), len(left)
	w := newBrief(&head)
	for i := range nodes {
		w.addPart(&nodes[i])
	}
	for name, t := range times {
		w.addPart(&briefTime{name, t})
	}
	for _, name := range left {
		w.addPart(name)
	}
	for _, name := range lacks {
		d, _ := record.PortalID(name).Digest()
		w.addPart(d[:])
	}
	return w.out.Bytes(), w.err
}

// briefNodes converts the members to the brief form with complete tags. The name, address and port are left
// out: the guard admits only members for which they follow from the digest.
func (s *poolState) briefNodes() []briefNode {
	out := make([]briefNode, len(s.Nodes))
	for i, n := range s.Nodes {
		d, _ := record.PortalID(n.Name).Digest()
		out[i] = briefNode{Digest: d[:], Incarnation: n.Incarnation, State: n.State, Vsn: n.Vsn, Meta: n.Meta}
	}
	return out
}

// briefWriter encodes the parts of a brief state in order. err is the first error.
type briefWriter struct {
	out bytes.Buffer
	enc *codec.Encoder
	err error
}

func newBrief(head *briefHead) *briefWriter {
	w := new(briefWriter)
	w.out.WriteByte(briefMsg)
	handle := &codec.MsgpackHandle{}
	handle.StructToArray = true
	w.enc = codec.NewEncoder(&w.out, handle)
	w.addPart(head)
	return w
}

func (w *briefWriter) addPart(v any) {
	if w.err == nil {
		w.err = w.enc.Encode(v)
	}
}

// encodeOnly encodes the state of the named members for a portal that could not resolve their marks, as
// many as fit into a stream. The portal sends no state in return.
func (s *poolState) encodeOnly(names []string) ([]byte, error) {
	wanted := make(map[string]bool, len(names))
	for _, name := range names {
		wanted[name] = true
	}
	var nodes []briefNode
	room := MaxStream / 2
	for i, n := range s.briefNodes() {
		if size := len(n.Meta) + 128; wanted[s.Nodes[i].Name] && size <= room {
			nodes, room = append(nodes, n), room-size
		}
	}
	w := newBrief(&briefHead{Only: true, Nodes: len(nodes)})
	for i := range nodes {
		w.addPart(&nodes[i])
	}
	return w.out.Bytes(), w.err
}

// readBrief decodes a state in the brief form. b does not include the first byte, the type. contact returns
// the known contact of a member, "" for none. A member with a mark that does not match it is left out of
// the state and listed in says.unknown.
func readBrief(b []byte, contact func(name string) string) (s *poolState, says *briefExtras, err error) {
	dec := codec.NewDecoder(bytes.NewReader(b), &codec.MsgpackHandle{})
	var head briefHead
	if err := dec.Decode(&head); err != nil {
		return nil, nil, errUnfit
	}
	for _, n := range []int{head.Nodes, head.Times, head.Left, head.Lacks} {
		if n < 0 || n > maxNodes {
			return nil, nil, errUnfit
		}
	}
	s, says = &poolState{Join: head.Join}, &briefExtras{has: make(marks), only: head.Only}
	times := make(map[string]uint64)
	for range head.Nodes {
		var n briefNode
		if err := dec.Decode(&n); err != nil {
			return nil, nil, errUnfit
		}
		name, ok := nameOf(n.Digest)
		if !ok {
			return nil, nil, errUnfit
		}
		if n.LTime > 0 {
			times[name] = n.LTime
		}
		if len(n.Mark) == len(mark{}) {
			says.has[name] = mark(n.Mark)
			c := contact(name)
			if c == "" || markOf(c) != says.has[name] {
				says.unknown = append(says.unknown, name)
				continue
			}
			n.Meta = metaOf(c)
		} else if c := contactIn(n.Meta); c != "" {
			says.has[name] = markOf(c)
		}
		s.Nodes = append(s.Nodes, nodeState{Name: name, Addr: addressOf(name), Port: anyPort, Meta: n.Meta,
			Incarnation: n.Incarnation, State: n.State, Vsn: n.Vsn})
	}
	for range head.Times {
		var t briefTime
		if err := dec.Decode(&t); err != nil {
			return nil, nil, errUnfit
		}
		times[t.Name] = t.LTime
	}
	var left []string
	for range head.Left {
		var name string
		if err := dec.Decode(&name); err != nil {
			return nil, nil, errUnfit
		}
		left = append(left, name)
	}
	for range head.Lacks {
		var d []byte
		if err := dec.Decode(&d); err != nil {
			return nil, nil, errUnfit
		}
		if name, ok := nameOf(d); ok {
			says.lacks = append(says.lacks, name)
		}
	}
	if head.User {
		s.User = &serfState{LTime: head.LTime, EventLTime: head.Events, LeftMembers: left, StatusLTimes: times}
	}
	return s, says, nil
}

// nameOf returns the name of the member that has an id with this digest. ok is false if the length is
// wrong.
func nameOf(d []byte) (string, bool) {
	if len(d) != len(record.Hash{}) {
		return "", false
	}
	return string(record.PortalWith(record.Hash(d))), true
}

// contacts returns the contact of each member by name; "" for members without one.
func (s *poolState) contacts() map[string]string {
	out := make(map[string]string, len(s.Nodes))
	for _, n := range s.Nodes {
		out[n.Name] = contactIn(n.Meta)
	}
	return out
}
