// Package wire is how nodes of the DHT write requests and responses: a small
// binary form with a bound on everything, decoded without believing a length.
// It has no sockets and knows nothing of what the bytes mean. See
// ../DESIGN.md for the layout and testdata for vectors.
package wire

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
)

// ID is the name of a node or a key.
type ID [32]byte

// Kind is what a request asks.
type Kind uint8

// Kinds of requests.
const (
	Ping Kind = iota + 1
	FindNode
	Get
	Store
)

// Code is what became of a record that was to be stored.
type Code uint8

// Codes of Store.
const (
	Stored Code = iota + 1
	Invalid
	Old
	Full
	TooFar
	lastCode = TooFar
)

// Bounds of a message.
const (
	// MaxTargets is how many keys one Get asks for.
	MaxTargets = 64
	// MaxRecords is how many records one Store brings.
	MaxRecords = 64
	// MaxNodes is how many contacts a response names.
	MaxNodes = 32
	// MaxNodeBytes bounds what a contact says of itself.
	MaxNodeBytes = 350
	// MaxValueBytes bounds a value.
	MaxValueBytes = 16 << 10
	// MaxValues bounds the values of one key in a response.
	MaxValues = 64
	// MaxHave is how many contacts a request says that its asker has.
	MaxHave = 32
	// MaxBytes bounds a message.
	MaxBytes = 256 << 10
)

// The first byte of a message is its version. Requests with marks are of the
// second.
const (
	version      = 1
	versionMarks = 2
)

// ErrMalformed is of every message that cannot be read. The error says where.
var ErrMalformed = errors.New("malformed message of the DHT")

// Record is a value under a key.
type Record struct {
	Key   ID
	Value []byte
}

// Request is what one node asks of another.
type Request struct {
	Kind Kind
	// From is what the asking node says of where it is reached, empty if it is
	// not to be asked itself.
	From    []byte
	Targets []ID
	Records []Record
	// Have are marks of contacts that who asks has already: an answer may name
	// these by their ids alone. Salt is of this request alone, and zero without
	// marks.
	Salt Salt
	Have []uint32
}

// Salt is by chance, so that nobody makes up a contact beforehand whose mark is
// that of another one, which would then be left out of answers.
type Salt [8]byte

// Mark is how a request says that its asker has a contact, by what that says of
// itself.
func (s Salt) Mark(node []byte) uint32 {
	var b [len(s) + MaxNodeBytes]byte
	n := copy(b[:], s[:])
	n += copy(b[n:], node)
	sum := sha256.Sum256(b[:n])
	return binary.BigEndian.Uint32(sum[:])
}

// Node is a contact as it travels.
type Node struct {
	ID ID
	// Node is what it says of itself, empty where who asked has it.
	Node []byte
}

// Response is what it answers.
type Response struct {
	// Self is what the answering node says of where it is reached.
	Self  []byte
	Nodes []Node
	Found [][][]byte
	Codes []Code
}

// AppendRequest appends a request. It panics for one that is out of bounds:
// nobody builds such a one.
func AppendRequest(b []byte, r *Request) []byte {
	start, size, v := len(b), 7+len(r.From)+len(r.Targets)*len(ID{})+len(r.Salt)+4*len(r.Have), byte(version)
	if len(r.Have) > 0 {
		v = versionMarks
	}
	for _, rec := range r.Records {
		size += len(ID{}) + 2 + len(rec.Value)
	}
	b = slices.Grow(b, size)
	b = text(append(b, v, byte(r.Kind)), r.From, MaxNodeBytes)
	b = count(b, len(r.Targets), MaxTargets)
	for i := range r.Targets {
		b = append(b, r.Targets[i][:]...)
	}
	b = count(b, len(r.Records), MaxRecords)
	for _, rec := range r.Records {
		b = text(append(b, rec.Key[:]...), rec.Value, MaxValueBytes)
	}
	if v == versionMarks {
		b = count(append(b, r.Salt[:]...), len(r.Have), MaxHave)
		for _, m := range r.Have {
			b = binary.BigEndian.AppendUint32(b, m)
		}
	}
	return whole(b, start)
}

// AppendResponse appends a response, and panics like AppendRequest.
func AppendResponse(b []byte, r *Response) []byte {
	start, size := len(b), 6+len(r.Self)+len(r.Codes)
	for _, n := range r.Nodes {
		size += len(ID{}) + 2 + len(n.Node)
	}
	for _, values := range r.Found {
		size++
		for _, v := range values {
			size += 2 + len(v)
		}
	}
	b = slices.Grow(b, size)
	b = text(append(b, version), r.Self, MaxNodeBytes)
	b = count(b, len(r.Nodes), MaxNodes)
	for _, n := range r.Nodes {
		b = text(append(b, n.ID[:]...), n.Node, MaxNodeBytes)
	}
	b = count(b, len(r.Found), MaxTargets)
	for _, values := range r.Found {
		b = count(b, len(values), MaxValues)
		for _, v := range values {
			b = text(b, v, MaxValueBytes)
		}
	}
	b = count(b, len(r.Codes), MaxRecords)
	for _, c := range r.Codes {
		b = append(b, byte(c))
	}
	return whole(b, start)
}

func count(b []byte, n, most int) []byte {
	if n > most {
		panic(fmt.Sprintf("wire: %d of something, at most %d fit", n, most))
	}
	return append(b, byte(n))
}

func text(b, s []byte, most int) []byte {
	if len(s) > most {
		panic(fmt.Sprintf("wire: %d bytes, at most %d fit", len(s), most))
	}
	return append(binary.BigEndian.AppendUint16(b, uint16(len(s))), s...)
}

func whole(b []byte, start int) []byte {
	if len(b)-start > MaxBytes {
		panic(fmt.Sprintf("wire: a message of %d bytes, at most %d fit", len(b)-start, MaxBytes))
	}
	return b
}

// DecodeRequest reads a request that is the whole of b, whose bytes it keeps.
// Errors are ErrMalformed.
func DecodeRequest(b []byte) (*Request, error) {
	d, v := open(b, versionMarks)
	r := &Request{Kind: Kind(d.byte("kind"))}
	if r.Kind < Ping || r.Kind > Store {
		d.wrong("kind %d is not known", r.Kind)
	}
	r.From = d.node("from")
	if n := d.count("targets", MaxTargets, len(ID{})); n > 0 {
		r.Targets = make([]ID, n)
		for i := range r.Targets {
			d.id(&r.Targets[i])
		}
	}
	if n := d.count("records", MaxRecords, len(ID{})+2); n > 0 {
		r.Records = make([]Record, n)
		for i := range r.Records {
			d.id(&r.Records[i].Key)
			r.Records[i].Value = d.text("value", MaxValueBytes)
		}
	}
	if v == versionMarks {
		d.salt(&r.Salt)
		n := d.count("marks", MaxHave, 4)
		d.must(n > 0, "it has no marks, which is the first version")
		for i := range n {
			if i == 0 {
				r.Have = make([]uint32, n)
			}
			r.Have[i] = d.mark()
		}
	}
	switch targets, records := len(r.Targets), len(r.Records); r.Kind {
	case Ping:
		d.must(targets == 0 && records == 0, "a ping asks for nothing else")
	case FindNode:
		d.must(targets == 1 && records == 0, "nodes are found near one target")
	case Get:
		d.must(targets >= 1 && records == 0, "values are got by one target or more")
	case Store:
		d.must(targets <= 1 && records >= 1, "one record or more are stored, with at most one target")
	}
	return r, d.end()
}

// DecodeResponse reads a response that is the whole of b, whose bytes it keeps.
// Errors are ErrMalformed.
func DecodeResponse(b []byte) (*Response, error) {
	d, _ := open(b, version)
	r := &Response{Self: d.node("self")}
	if n := d.count("nodes", MaxNodes, len(ID{})+2); n > 0 {
		r.Nodes = make([]Node, n)
		for i := range r.Nodes {
			d.id(&r.Nodes[i].ID)
			r.Nodes[i].Node = d.node("node")
		}
	}
	if n := d.count("found", MaxTargets, 1); n > 0 {
		r.Found = make([][][]byte, n)
		for i := range r.Found {
			if n := d.count("values", MaxValues, 2); n > 0 {
				r.Found[i] = make([][]byte, n)
				for j := range r.Found[i] {
					r.Found[i][j] = d.text("value", MaxValueBytes)
				}
			}
		}
	}
	if n := d.count("codes", MaxRecords, 1); n > 0 {
		r.Codes = make([]Code, n)
		for i := range r.Codes {
			r.Codes[i] = Code(d.byte("code"))
			d.must(r.Codes[i] >= Stored && r.Codes[i] <= lastCode, "a code is not known")
		}
	}
	return r, d.end()
}

// decoder reads from the front of rest until the first error, after which all
// that it returns is zero.
type decoder struct {
	rest []byte
	err  error
}

// open reads the version, which is at most that.
func open(b []byte, most byte) (d *decoder, v byte) {
	d = &decoder{rest: b}
	if len(b) > MaxBytes {
		d.wrong("it has %d bytes, at most %d are read", len(b), MaxBytes)
	}
	if v = d.byte("version"); d.err == nil && (v < version || v > most) {
		d.wrong("version %d is not known", v)
	}
	return d, v
}

func (d *decoder) wrong(format string, args ...any) {
	if d.err == nil {
		d.err = fmt.Errorf("%w: %s", ErrMalformed, fmt.Sprintf(format, args...))
	}
	d.rest = nil
}

func (d *decoder) must(ok bool, why string) {
	if !ok {
		d.wrong("%s", why)
	}
}

func (d *decoder) byte(what string) byte {
	if len(d.rest) == 0 {
		d.wrong("it ends before its %s", what)
		return 0
	}
	b := d.rest[0]
	d.rest = d.rest[1:]
	return b
}

// count reads how many follow, of which each takes least bytes.
func (d *decoder) count(what string, most, least int) int {
	n := int(d.byte(what))
	if n > most {
		d.wrong("it has %d %s, at most %d are read", n, what, most)
	} else if n*least > len(d.rest) {
		d.wrong("it ends within its %s", what)
	}
	if d.err != nil {
		return 0
	}
	return n
}

func (d *decoder) id(id *ID) {
	if len(d.rest) < len(id) {
		d.wrong("it ends within an id")
		return
	}
	d.rest = d.rest[copy(id[:], d.rest):]
}

func (d *decoder) salt(s *Salt) {
	if len(d.rest) < len(s) {
		d.wrong("it ends within its salt")
		return
	}
	d.rest = d.rest[copy(s[:], d.rest):]
}

// mark reads one of those that count has seen.
func (d *decoder) mark() uint32 {
	if len(d.rest) < 4 {
		d.wrong("it ends within a mark")
		return 0
	}
	m := binary.BigEndian.Uint32(d.rest)
	d.rest = d.rest[4:]
	return m
}

func (d *decoder) text(what string, most int) []byte {
	if len(d.rest) < 2 {
		d.wrong("it ends before a %s", what)
		return nil
	}
	n := int(binary.BigEndian.Uint16(d.rest))
	if n > most {
		d.wrong("a %s has %d bytes, at most %d are read", what, n, most)
		return nil
	}
	if len(d.rest)-2 < n {
		d.wrong("it ends within a %s", what)
		return nil
	}
	s := d.rest[2 : 2+n : 2+n]
	d.rest = d.rest[2+n:]
	return s
}

// node is what a node says of itself, nil if it is empty.
func (d *decoder) node(what string) []byte {
	if b := d.text(what, MaxNodeBytes); len(b) > 0 {
		return b
	}
	return nil
}

func (d *decoder) end() error {
	if len(d.rest) > 0 {
		d.wrong("%d bytes follow its end", len(d.rest))
	}
	return d.err
}
