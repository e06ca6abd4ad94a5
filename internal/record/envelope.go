package record

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"strconv"
)

// Context is the start of all signed bytes, so that a signature made for another purpose is never
// valid here.
const Context = "agentsite/1"

// maxNetwork is the longest name of a network, in bytes.
const maxNetwork = 32

// ValidNetwork reports whether s may name a network: a–z, 0–9 and -, beginning with a letter,
// at most 32.
func ValidNetwork(s string) bool { return len(s) <= maxNetwork && plainName(s) }

// PAE returns the bytes to sign for a payload: the context, the network, the type and the payload,
// each with its length, so that two different statements never have the same bytes.
func PAE(network string, t Type, payload []byte) []byte {
	return append(paeStart(network, t, len(payload)), payload...)
}

func paeStart(network string, t Type, size int) []byte {
	b := make([]byte, 0, len(Context)+len(network)+len(t)+size+32)
	b = append(b, Context...)
	b = appendSize(b, len(network))
	b = append(b, network...)
	b = appendSize(b, len(t))
	b = append(b, t...)
	return appendSize(b, size)
}

func appendSize(b []byte, size int) []byte {
	return append(strconv.AppendInt(append(b, ' '), int64(size), 10), ' ')
}

// envelope holds the parts of a record's wire form, still base64url.
type envelope struct{ key, payload, sig, typ []byte }

// The text form of an envelope is fixed: these four members in this order, no white space, no escapes.
// It can therefore be embedded in a payload unchanged, and no two parsers can read it differently.
const (
	open   = `{"k":"`
	toP    = `","p":"`
	toS    = `","s":"`
	toT    = `","t":"`
	closed = `"}`
)

// splitEnvelope finds the parts of an envelope without allocating; a *Refused if the form is not exactly
// that of an envelope.
func splitEnvelope(wire []byte) (envelope, error) {
	if len(wire) > MaxWire {
		return envelope{}, refuse(TooLarge, "it has %d bytes, no record has more than %d", len(wire), MaxWire)
	}
	rest, ok := bytes.CutPrefix(wire, []byte(open))
	if !ok {
		return envelope{}, refuse(NotEnvelope, "it does not begin with %s", open)
	}
	rest, ok = bytes.CutSuffix(rest, []byte(closed))
	if !ok {
		return envelope{}, refuse(NotEnvelope, "it does not end with %s", closed)
	}
	var parts [4][]byte
	for i, next := range [...]string{toP, toS, toT} {
		if parts[i], rest, ok = bytes.Cut(rest, []byte(next)); !ok {
			return envelope{}, refuse(NotEnvelope, "%s is missing", next)
		}
	}
	parts[3] = rest
	// Only line ends are checked here, because base64 decoders skip them. They refuse all other invalid bytes.
	if bytes.IndexByte(wire, '\n') >= 0 || bytes.IndexByte(wire, '\r') >= 0 {
		return envelope{}, refuse(NotEnvelope, "there is a line end in it")
	}
	for _, c := range rest {
		if !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '/') {
			return envelope{}, refuse(NotEnvelope, "t is not the name of a type")
		}
	}
	return envelope{key: parts[0], payload: parts[1], sig: parts[2], typ: parts[3]}, nil
}

// encoding is the encoding of all binary values in a record: base64url without padding, unused bits
// zero.
var encoding = base64.RawURLEncoding.Strict()

// Open decodes a record and checks its form, size and fields, but neither its signature nor its
// time, so it needs no keys. The result is a claim; only a Gate makes it a record to act on.
func Open(network string, wire []byte) (*Record, error) {
	if len(wire) > 0 && wire[0] == contactForm {
		return openContact(network, wire)
	}
	e, err := splitEnvelope(wire)
	if err != nil {
		return nil, err
	}
	t := Type(e.typ)
	body, ok := newBody(t)
	if !ok {
		return nil, refuse(Unknown, "its type is not known here")
	}
	rule, _ := ruleOf(t)
	size := encoding.DecodedLen(len(e.payload))
	if size > rule.max {
		return nil, refuse(TooLarge, "its payload has %d bytes, %s has at most %d", size, t, rule.max)
	}
	r := &Record{Type: t, Wire: bytes.Clone(wire)}
	if r.Key, ok = parseKeyID(e.key); !ok {
		return nil, refuse(NotEnvelope, "k is not the id of a key")
	}
	if n, err := encoding.Decode(r.sig[:], clipBytes(e.sig, encoding.EncodedLen(len(r.sig)))); err != nil ||
		n != len(r.sig) || len(e.sig) != encoding.EncodedLen(n) {
		return nil, refuse(NotEnvelope, "s is not a signature of 64 bytes in base64url")
	}
	r.signed = paeStart(network, t, size)
	start := len(r.signed)
	if r.signed, err = encoding.AppendDecode(r.signed, e.payload); err != nil || len(r.signed) != start+size {
		return nil, refuse(NotEnvelope, "p is not base64url")
	}
	r.payload = r.signed[start:]
	if err := Canonical(r.payload); err != nil {
		return nil, err
	}
	r.Hash = sha256.Sum256(r.signed)
	r.Body = body
	if err := decodeBody(r.Body, r.payload); err != nil {
		return nil, err
	}
	if err := checkBody(r.Body); err != nil {
		return nil, err
	}
	r.Header = *r.Body.asHeader()
	return r, nil
}

// DecodeAdmitted returns the content of a record from its stored bytes. The record must be one that a
// Gate has admitted: the checks of Open are not repeated.
func DecodeAdmitted(wire []byte) (Body, error) {
	e, err := splitEnvelope(wire)
	if err != nil {
		return nil, err
	}
	body, ok := newBody(Type(e.typ))
	if !ok {
		return nil, refuse(Unknown, "its type is not known here")
	}
	payload, err := encoding.AppendDecode(nil, e.payload)
	if err != nil {
		return nil, refuse(NotEnvelope, "p is not base64url")
	}
	return body, decodeBody(body, payload)
}

func clipBytes(b []byte, n int) []byte { return b[:min(len(b), n)] }

// sealEnvelope returns the wire form of a payload with its signature.
func sealEnvelope(id KeyID, payload, sig []byte, t Type) []byte {
	b := make([]byte, 0, encoding.EncodedLen(len(payload))+256)
	b = append(append(b, open...), id...)
	b = encoding.AppendEncode(append(b, toP...), payload)
	b = encoding.AppendEncode(append(b, toS...), sig)
	return append(append(append(b, toT...), t...), closed...)
}

// signedBy reports whether the record's signature is valid for the key pub.
func (r *Record) signedBy(pub Public) bool {
	return ed25519.Verify(pub[:], r.signed, r.sig[:])
}
