// Package wire encodes the requests and responses of DHT nodes: a small binary form in which every
// length is bounded and checked before use. It has no sockets and does not know the meaning of the
// bytes. See ../DESIGN.md for the layout and testdata for vectors.
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

// Kind is the kind of a request.
type Kind uint8

// Kinds of requests.
const (
	Ping Kind = iota + 1
	FindNode
	Get
	Store
)

// Code is the result of storing a record.
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
	// MaxTargets bounds the keys of one Get.
	MaxTargets = 64
	// MaxRecords bounds the records of one Store.
	MaxRecords = 64
	// MaxNodes bounds the contacts of a response.
	MaxNodes = 32
	// MaxNodeBytes bounds the signed address of a contact.
	MaxNodeBytes = 350
	// MaxValueBytes bounds a value.
	MaxValueBytes = 16 << 10
	// MaxValues bounds the values of one key in a response.
	MaxValues = 64
	// MaxHave bounds the marks of a request.
	MaxHave = 32
	// MaxBytes bounds a message.
	MaxBytes = 256 << 10
)

// The first byte of a message is its version. Requests with marks have the second version.
const (
	version      = 1
	versionMarks = 2
)

// ErrMalformed is the error of every message that cannot be decoded. The wrapping error names the
// field.
var ErrMalformed = errors.New("malformed message of the DHT")

// Record is a value under a key.
type Record struct {
	Key   ID
	Value []byte
}

// Request is a request of one node to another.
type Request struct {
	Kind Kind
	// From is the signed address of the asking node, empty if it must not be asked itself.
	From    []byte
	Targets []ID
	Records []Record
	// Have are marks of contacts that the asking node has already: an answer may name these by
	// their ids alone. Salt is random for each request, and zero without marks.
	Salt Salt
	Have []uint32
}

// Salt is random, so that an attacker cannot prepare a contact that has the mark of another one,
// which would then be left out of answers.
type Salt [8]byte

// Mark returns the short hash by which a request lists a contact that the asking node has already.
// node is the contact's signed address.
func (s Salt) Mark(node []byte) uint32 {
	var b [len(s) + MaxNodeBytes]byte
	n := copy(b[:], s[:])
	n += copy(b[n:], node)
	sum := sha256.Sum256(b[:n])
	return binary.BigEndian.Uint32(sum[:])
}

// Node is the encoded form of a contact.
type Node struct {
	ID ID
	// Node is the contact's signed address, empty if the asking node has it.
	Node []byte
}

// Response is the answer to a Request.
type Response struct {
	// Self is the signed address of the answering node.
	Self  []byte
	Nodes []Node
	Found [][][]byte
	Codes []Code
}

// AppendRequest appends a request. It panics if the request is out of bounds, which is a bug of the
// caller.
func AppendRequest(b []byte, r *Request) []byte {
	start, size, v := len(b), 7+len(r.From)+len(r.Targets)*len(ID{})+len(r.Salt)+4*len(r.Have), byte(version)
	if len(r.Have) > 0 {
		v = versionMarks
	}
	for _, rec := range r.Records {
		size += len(ID{}) + 2 + len(rec.Value)
	}
	b = slices.Grow(b, size)
	b = appendText(append(b, v, byte(r.Kind)), r.From, MaxNodeBytes)
	b = appendCount(b, len(r.Targets), MaxTargets)
	for i := range r.Targets {
		b = append(b, r.Targets[i][:]...)
	}
	b = appendCount(b, len(r.Records), MaxRecords)
	for _, rec := range r.Records {
		b = appendText(append(b, rec.Key[:]...), rec.Value, MaxValueBytes)
	}
	if v == versionMarks {
		b = appendCount(append(b, r.Salt[:]...), len(r.Have), MaxHave)
		for _, m := range r.Have {
			b = binary.BigEndian.AppendUint32(b, m)
		}
	}
	return checkSize(b, start)
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
	b = appendText(append(b, version), r.Self, MaxNodeBytes)
	b = appendCount(b, len(r.Nodes), MaxNodes)
	for _, n := range r.Nodes {
		b = appendText(append(b, n.ID[:]...), n.Node, MaxNodeBytes)
	}
	b = appendCount(b, len(r.Found), MaxTargets)
	for _, values := range r.Found {
		b = appendCount(b, len(values), MaxValues)
		for _, v := range values {
			b = appendText(b, v, MaxValueBytes)
		}
	}
	b = appendCount(b, len(r.Codes), MaxRecords)
	for _, c := range r.Codes {
		b = append(b, byte(c))
	}
	return checkSize(b, start)
}

func appendCount(b []byte, n, most int) []byte {
	if n > most {
		panic(fmt.Sprintf("wire: %d of something, at most %d fit", n, most))
	}
	return append(b, byte(n))
}

func appendText(b, s []byte, most int) []byte {
	if len(s) > most {
		panic(fmt.Sprintf("wire: %d bytes, at most %d fit", len(s), most))
	}
	return append(binary.BigEndian.AppendUint16(b, uint16(len(s))), s...)
}

func checkSize(b []byte, start int) []byte {
	if len(b)-start > MaxBytes {
		panic(fmt.Sprintf("wire: a message of %d bytes, at most %d fit", len(b)-start, MaxBytes))
	}
	return b
}

// DecodeRequest decodes b as one whole request, which keeps the bytes of b. Errors are
// ErrMalformed.
func DecodeRequest(b []byte) (*Request, error) {
	d, v := openMessage(b, versionMarks)
	r := &Request{Kind: Kind(d.readByte("kind"))}
	if r.Kind < Ping || r.Kind > Store {
		d.setError("kind %d is not known", r.Kind)
	}
	r.From = d.readNode("from")
	if n := d.readCount("targets", MaxTargets, len(ID{})); n > 0 {
		r.Targets = make([]ID, n)
		for i := range r.Targets {
			d.readID(&r.Targets[i])
		}
	}
	if n := d.readCount("records", MaxRecords, len(ID{})+2); n > 0 {
		r.Records = make([]Record, n)
		for i := range r.Records {
			d.readID(&r.Records[i].Key)
			r.Records[i].Value = d.readText("value", MaxValueBytes)
		}
	}
	if v == versionMarks {
		d.readSalt(&r.Salt)
		n := d.readCount("marks", MaxHave, 4)
		d.failUnless(n > 0, "it has no marks, which is the first version")
		for i := range n {
			if i == 0 {
				r.Have = make([]uint32, n)
			}
			r.Have[i] = d.readMark()
		}
	}
	switch targets, records := len(r.Targets), len(r.Records); r.Kind {
	case Ping:
		d.failUnless(targets == 0 && records == 0, "a ping asks for nothing else")
	case FindNode:
		d.failUnless(targets == 1 && records == 0, "nodes are found near one target")
	case Get:
		d.failUnless(targets >= 1 && records == 0, "values are got by one target or more")
	case Store:
		d.failUnless(targets <= 1 && records >= 1, "one record or more are stored, with at most one target")
	}
	return r, d.checkEnd()
}

// DecodeResponse decodes b as one whole response, which keeps the bytes of b. Errors are
// ErrMalformed.
func DecodeResponse(b []byte) (*Response, error) {
	d, _ := openMessage(b, version)
	r := &Response{Self: d.readNode("self")}
	if n := d.readCount("nodes", MaxNodes, len(ID{})+2); n > 0 {
		r.Nodes = make([]Node, n)
		for i := range r.Nodes {
			d.readID(&r.Nodes[i].ID)
			r.Nodes[i].Node = d.readNode("node")
		}
	}
	if n := d.readCount("found", MaxTargets, 1); n > 0 {
		r.Found = make([][][]byte, n)
		for i := range r.Found {
			if n := d.readCount("values", MaxValues, 2); n > 0 {
				r.Found[i] = make([][]byte, n)
				for j := range r.Found[i] {
					r.Found[i][j] = d.readText("value", MaxValueBytes)
				}
			}
		}
	}
	if n := d.readCount("codes", MaxRecords, 1); n > 0 {
		r.Codes = make([]Code, n)
		for i := range r.Codes {
			r.Codes[i] = Code(d.readByte("code"))
			d.failUnless(r.Codes[i] >= Stored && r.Codes[i] <= lastCode, "a code is not known")
		}
	}
	return r, d.checkEnd()
}

// decoder reads from the front of rest until the first error. After it all results are zero.
type decoder struct {
	rest []byte
	err  error
}

// openMessage reads the version, which may be at most most.
func openMessage(b []byte, most byte) (d *decoder, v byte) {
	d = &decoder{rest: b}
	if len(b) > MaxBytes {
		d.setError("it has %d bytes, at most %d are read", len(b), MaxBytes)
	}
	if v = d.readByte("version"); d.err == nil && (v < version || v > most) {
		d.setError("version %d is not known", v)
	}
	return d, v
}

func (d *decoder) setError(format string, args ...any) {
	if d.err == nil {
		d.err = fmt.Errorf("%w: %s", ErrMalformed, fmt.Sprintf(format, args...))
	}
	d.rest = nil
}

func (d *decoder) failUnless(ok bool, why string) {
	if !ok {
		d.setError("%s", why)
	}
}

func (d *decoder) readByte(field string) byte {
	if len(d.rest) == 0 {
		d.setError("it ends before its %s", field)
		return 0
	}
	b := d.rest[0]
	d.rest = d.rest[1:]
	return b
}

// readCount reads the number of the elements that follow, each of which takes at least least bytes.
func (d *decoder) readCount(field string, most, least int) int {
	n := int(d.readByte(field))
	if n > most {
		d.setError("it has %d %s, at most %d are read", n, field, most)
	} else if n*least > len(d.rest) {
		d.setError("it ends within its %s", field)
	}
	if d.err != nil {
		return 0
	}
	return n
}

func (d *decoder) readID(id *ID) {
	if len(d.rest) < len(id) {
		d.setError("it ends within an id")
		return
	}
	d.rest = d.rest[copy(id[:], d.rest):]
}

func (d *decoder) readSalt(s *Salt) {
	if len(d.rest) < len(s) {
		d.setError("it ends within its salt")
		return
	}
	d.rest = d.rest[copy(s[:], d.rest):]
}

// readMark reads one mark.
func (d *decoder) readMark() uint32 {
	if len(d.rest) < 4 {
		d.setError("it ends within a mark")
		return 0
	}
	m := binary.BigEndian.Uint32(d.rest)
	d.rest = d.rest[4:]
	return m
}

func (d *decoder) readText(field string, most int) []byte {
	if len(d.rest) < 2 {
		d.setError("it ends before a %s", field)
		return nil
	}
	n := int(binary.BigEndian.Uint16(d.rest))
	if n > most {
		d.setError("a %s has %d bytes, at most %d are read", field, n, most)
		return nil
	}
	if len(d.rest)-2 < n {
		d.setError("it ends within a %s", field)
		return nil
	}
	s := d.rest[2 : 2+n : 2+n]
	d.rest = d.rest[2+n:]
	return s
}

// readNode reads the signed address of a node, nil if it is empty.
func (d *decoder) readNode(field string) []byte {
	if b := d.readText(field, MaxNodeBytes); len(b) > 0 {
		return b
	}
	return nil
}

func (d *decoder) checkEnd() error {
	if len(d.rest) > 0 {
		d.setError("%d bytes follow its end", len(d.rest))
	}
	return d.err
}
