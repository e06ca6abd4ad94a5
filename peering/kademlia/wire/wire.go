// Package wire encodes the requests and responses of DHT nodes in a compact binary form, in which every
// length is bounded and checked before use. It does no I/O and does not interpret ids and values. See
// ../DESIGN.md for the layout and testdata for test vectors.
package wire

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
)

// ID identifies a node or a key: the digest of a portal's public key or of the text that the key stands
// for.
type ID [32]byte

// Kind is the kind of a request; its value is encoded.
type Kind uint8

// Kinds of requests; package kademlia documents them.
const (
	Ping Kind = iota + 1
	FindNode
	Get
	Store
)

// Code is the result of storing a record; its value is encoded.
type Code uint8

// Results of storing a record; package kademlia documents them.
const (
	Stored Code = iota + 1
	Invalid
	Old
	Full
	TooFar
	lastCode = TooFar
)

// Limits of a message. Encoding beyond them is a bug of the caller, decoding an error.
const (
	// MaxTargets bounds the keys of one Get.
	MaxTargets = 64
	// MaxRecords bounds the records of one Store.
	MaxRecords = 64
	// MaxNodes bounds the contacts of a response.
	MaxNodes = 32
	// MaxNodeBytes bounds the signed address of a contact, in bytes.
	MaxNodeBytes = 350
	// MaxValueBytes bounds a value, in bytes.
	MaxValueBytes = 16 << 10
	// MaxValues bounds the values of one key in a response.
	MaxValues = 64
	// MaxHave bounds the marks of a request, see Request.Have.
	MaxHave = 32
	// MaxBytes bounds an encoded message, in bytes.
	MaxBytes = 256 << 10
)

// Values of the first byte of a message, its version. Requests with marks have the second version; nodes of
// the first refuse them.
const (
	version      = 1
	versionMarks = 2
)

// ErrMalformed is wrapped by the error for any message that cannot be decoded; the wrapping error names the
// field.
var ErrMalformed = errors.New("malformed message of the DHT")

// Record is a value and the key under which it is stored.
type Record struct {
	Key   ID
	Value []byte
}

// Request is a decoded request of one node to another. The fields that its Kind does not use are empty.
type Request struct {
	Kind Kind
	// From is the signed address of the sender; empty if the receiver must not send it requests.
	From    []byte
	Targets []ID
	Records []Record
	// Have are the marks of contacts that the sender has already: the answer may name these by their ids
	// alone. Salt must be random for each request; it is zero without marks.
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

// Node is a contact in a response.
type Node struct {
	ID ID
	// Node is the contact's signed address; empty if the request marked it as known.
	Node []byte
}

// Response is a decoded answer to a Request. The fields that the Kind of the request does not use are
// empty.
type Response struct {
	// Self is the signed address of the sender; empty if the request marked it as known.
	Self  []byte
	Nodes []Node
	Found [][][]byte
	Codes []Code
}

// AppendRequest appends the encoded request to b. It panics if the request exceeds a limit, which is a bug
// of the caller.
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

// AppendResponse appends the encoded response to b. It panics like AppendRequest.
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

// DecodeRequest decodes b, which must contain exactly one request. The result refers to the bytes of b,
// which the caller must not change. Errors wrap ErrMalformed.
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

// DecodeResponse decodes b, which must contain exactly one response. The result refers to the bytes of b,
// which the caller must not change. Errors wrap ErrMalformed.
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

// decoder reads from the front of rest. After the first error, which it keeps, all results are zero.
type decoder struct {
	rest []byte
	err  error
}

// openMessage returns a decoder for the rest of b and the version in its first byte, which must be from 1
// to most.
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

// readCount reads a number of elements, at most most. Each element takes at least least bytes, so a number
// that the rest of the message cannot hold is an error.
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

// readMark reads a mark, see Salt.Mark.
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

// readNode reads the signed address of a node; nil if its length is 0.
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
