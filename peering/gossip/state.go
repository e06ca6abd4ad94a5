package gossip

import (
	"bytes"
	"crypto/sha256"
	"io"
	"maps"

	"github.com/hashicorp/go-msgpack/v2/codec"

	"agentsite/internal/record"
)

// poolState is what two members exchange now and then, so that who missed a
// message learns it after all: who is there, with what each shows, and serf's
// clocks. As memberlist and serf write it, it has some 560 bytes for a member,
// nearly all of which the other side has. On the way it is written briefly: a
// contact that the other side has shown or said that it has is a mark of eight
// bytes.
type poolState struct {
	Join  bool
	Nodes []nodeState
	User  *serfState // nil where there is none
}

// readState reads a state as memberlist writes it, without its first byte.
func readState(b []byte) (*poolState, error) {
	r := bytes.NewReader(b)
	dec := codec.NewDecoder(r, &codec.MsgpackHandle{})
	var head stateHeader
	if err := dec.Decode(&head); err != nil || head.Nodes < 0 || head.Nodes > maxNodes || head.UserStateLen < 0 || head.UserStateLen > len(b) {
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

// bytes is the state as memberlist reads it, with its first byte.
func (s *poolState) bytes() ([]byte, error) {
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

// briefMsg is the first byte of a brief state; no message of memberlist has it.
const briefMsg = 128

// A state as it is written briefly: MessagePack, arrays instead of maps. Its head
// says how many of what follow, so that nobody makes room for more than a pool
// has. A member's name and address follow from the digest of its id.
type (
	briefHead struct {
		Join          bool
		Only          bool // nobody waits for the state there
		User          bool
		LTime, Events uint64
		Nodes         int // members, briefNode
		Times         int // of serf's, of those that are no members: briefTime
		Left          int // names
		Lacks         int // digests of whom the marks in a question said nothing
	}
	briefNode struct {
		Digest      []byte
		Incarnation uint32
		State       int
		Vsn         []uint8
		LTime       uint64 // of serf's, 0 for none
		Mark        []byte // of its contact, or
		Meta        []byte // all that it shows
	}
	briefTime struct {
		Name  string
		LTime uint64
	}
)

// said is what a brief state says besides the state.
type said struct {
	has     marks    // the contacts that who wrote it has
	unknown []string // members of whom the mark says nothing here
	lacks   []string // members of whom it said nothing there
	only    bool     // no answer is waited for
}

// mark stands for a contact.
type mark [8]byte

func markOf(contact string) (m mark) {
	d := sha256.Sum256([]byte(contact))
	copy(m[:], d[:])
	return m
}

// marks are the contacts that a member has, by name.
type marks map[string]mark

// contactOf is the contact in what a member shows, "" unless that is all it
// shows.
func contactOf(meta []byte) string {
	if len(meta) < 2 || meta[0] != tagsMagic {
		return ""
	}
	tags := make(map[string]string)
	if decode(meta[1:], &tags) != nil || !bytes.Equal(metaOf(tags[contactTag]), meta) {
		return ""
	}
	return tags[contactTag]
}

// metaOf is what a member shows that shows a contact, as serf writes it.
func metaOf(contact string) []byte {
	out := bytes.NewBuffer([]byte{tagsMagic})
	if err := codec.NewEncoder(out, &codec.MsgpackHandle{}).Encode(map[string]string{contactTag: contact}); err != nil {
		return nil
	}
	return out.Bytes()
}

// brief writes a state briefly: has says of which members the other side has the
// contact. What serf's clocks say of past events is left out, as heads are
// compared anyway.
func (s *poolState) brief(has func(name string, m mark) bool, lacks []string) ([]byte, error) {
	head := briefHead{Join: s.Join, Nodes: len(s.Nodes), Lacks: len(lacks)}
	times := make(map[string]uint64)
	var left []string
	if s.User != nil {
		head.User, head.LTime, head.Events, left = true, s.User.LTime, s.User.EventLTime, s.User.LeftMembers
		maps.Copy(times, s.User.StatusLTimes)
	}
	nodes := s.whole()
	for i := range nodes {
		n, name := &nodes[i], s.Nodes[i].Name
		n.LTime = times[name]
		delete(times, name)
		if c := contactOf(n.Meta); c != "" {
			if m := markOf(c); has(name, m) {
				n.Mark, n.Meta = m[:], nil
			}
		}
	}
	head.Times, head.Left = len(times), len(left)
	w := newBrief(&head)
	for i := range nodes {
		w.add(&nodes[i])
	}
	for name, t := range times {
		w.add(&briefTime{name, t})
	}
	for _, name := range left {
		w.add(name)
	}
	for _, name := range lacks {
		d, _ := record.PortalID(name).Digest()
		w.add(d[:])
	}
	return w.out.Bytes(), w.err
}

// whole is the members with all that they show. memberlist has let in nobody with
// another name, address or port than a portal has.
func (s *poolState) whole() []briefNode {
	out := make([]briefNode, len(s.Nodes))
	for i, n := range s.Nodes {
		d, _ := record.PortalID(n.Name).Digest()
		out[i] = briefNode{Digest: d[:], Incarnation: n.Incarnation, State: n.State, Vsn: n.Vsn, Meta: n.Meta}
	}
	return out
}

// briefWriter writes what a brief state has, one after the other.
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
	w.add(head)
	return w
}

func (w *briefWriter) add(v any) {
	if w.err == nil {
		w.err = w.enc.Encode(v)
	}
}

// only is the state of some members alone, for whoever lacks them, as many as a
// stream has room for. Nobody waits for the state there.
func (s *poolState) only(names []string) ([]byte, error) {
	wanted := make(map[string]bool, len(names))
	for _, name := range names {
		wanted[name] = true
	}
	var nodes []briefNode
	room := MaxStream / 2
	for i, n := range s.whole() {
		if size := len(n.Meta) + 128; wanted[s.Nodes[i].Name] && size <= room {
			nodes, room = append(nodes, n), room-size
		}
	}
	w := newBrief(&briefHead{Only: true, Nodes: len(nodes)})
	for i := range nodes {
		w.add(&nodes[i])
	}
	return w.out.Bytes(), w.err
}

// readBrief reads a brief state, without its first byte. contact returns the
// contact that a member has shown here, "" for none: a member of whom the mark
// is of another is left out.
func readBrief(b []byte, contact func(name string) string) (s *poolState, says *said, err error) {
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
	s, says = &poolState{Join: head.Join}, &said{has: make(marks), only: head.Only}
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
		} else if c := contactOf(n.Meta); c != "" {
			says.has[name] = markOf(c)
		}
		s.Nodes = append(s.Nodes, nodeState{Name: name, Addr: addressOf(name), Port: anyPort, Meta: n.Meta, Incarnation: n.Incarnation, State: n.State, Vsn: n.Vsn})
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

// nameOf is the name of a member with a digest.
func nameOf(d []byte) (string, bool) {
	if len(d) != len(record.Hash{}) {
		return "", false
	}
	return string(record.PortalWith(record.Hash(d))), true
}

// contacts are those that the members of a state show, by name.
func (s *poolState) contacts() map[string]string {
	out := make(map[string]string, len(s.Nodes))
	for _, n := range s.Nodes {
		out[n.Name] = contactOf(n.Meta)
	}
	return out
}
