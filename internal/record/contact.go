package record

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
	"strconv"

	"agentsite/internal/weborigin"
)

// Contact is the address of a portal, small enough for the tag of a gossip member and for an answer
// of the DHT: binary, at most 350 bytes. Its version is counted separately from other records.
type Contact struct {
	Header
	// CardSeq is the seq of the portal's card at signing: a reader with an older card fetches the
	// card before it trusts the contact.
	CardSeq int64
	// Host is a name or an address as in an origin without brackets, at most 200 bytes; the scheme
	// is https, or http for loopback.
	Host string
	Port uint16
}

// The binary form, numbers big-endian: form (1 byte), digest of the portal's id (32), id of the key
// (10), epoch, seq, iss, exp, seq of the card (8 each), port (2), length of the host (1), host,
// signature (64) over the PAE of all bytes before it.
const (
	contactForm  = 1
	contactFixed = 1 + 32 + keyIDBytes + 5*8 + 2 + 1
	maxHost      = 350 - contactFixed - ed25519.SignatureSize
)

func (c *Contact) recordType() Type { return TypeContact }
func (c *Contact) slotKey() string  { return "" }

func (c *Contact) checkFields(f *fields) {
	f.Field(c.CardSeq >= 1 && c.CardSeq <= maxInt, "card_seq", "1 or more")
	f.Field(len(c.Host) <= maxHost && validHost(c.Host), "host", "a name or an address of at most %d bytes", maxHost)
	f.Field(c.Port != 0, "port", "1 or more")
}

// Origin returns the origin made of Host and Port, as ValidOrigin spells it.
func (c *Contact) Origin() string {
	scheme, port := "https", uint16(443)
	if weborigin.IsLoopback(c.Host) {
		scheme, port = "http", 80
	}
	if c.Port == port {
		return scheme + "://" + hostPort(c.Host, "")
	}
	return scheme + "://" + hostPort(c.Host, strconv.Itoa(int(c.Port)))
}

func (c *Contact) signContact(network string, key ed25519.PrivateKey) (*Record, error) {
	if err := checkBody(c); err != nil {
		return nil, err
	}
	d, _ := c.Portal.Digest()
	id, _ := base32lower.DecodeString(string(KeyIDOf(PublicOf(key))))
	b := append([]byte{contactForm}, d[:]...)
	b = append(b, id...)
	for _, n := range [...]int64{c.Epoch, c.Seq, c.Issued, c.Expires, c.CardSeq} {
		b = binary.BigEndian.AppendUint64(b, uint64(n))
	}
	b = binary.BigEndian.AppendUint16(b, c.Port)
	b = append(append(b, byte(len(c.Host))), c.Host...)
	r, err := Open(network, append(b, ed25519.Sign(key, PAE(network, TypeContact, b))...))
	if err != nil {
		return nil, err
	}
	return r, r.checkLife()
}

// openContact is Open for the binary form of a Contact.
func openContact(network string, wire []byte) (*Record, error) {
	rule, _ := ruleOf(TypeContact)
	if len(wire) > rule.max {
		return nil, refuse(TooLarge, "it has %d bytes, %s has at most %d", len(wire), TypeContact, rule.max)
	}
	if len(wire) < contactFixed+ed25519.SignatureSize {
		return nil, refuse(NotEnvelope, "it is cut short")
	}
	if n := int(wire[contactFixed-1]); len(wire) != contactFixed+n+ed25519.SignatureSize {
		return nil, refuse(NotEnvelope, "the host's length does not fit")
	}
	r := &Record{Type: TypeContact, Wire: bytes.Clone(wire)}
	body := wire[:len(wire)-ed25519.SignatureSize]
	r.sig = Signature(wire[len(body):])
	at := 1 + 32
	r.Key = KeyID(base32lower.EncodeToString(body[at : at+keyIDBytes]))
	at += keyIDBytes
	var n [5]int64
	for i := range n {
		u := binary.BigEndian.Uint64(body[at:])
		if u > maxInt {
			return nil, refuse(BadNumber, "a number is 2^53 or more")
		}
		n[i] = int64(u)
		at += 8
	}
	c := &Contact{
		Header:  Header{Portal: portalID(Hash(body[1:33])), Epoch: n[0], Seq: n[1], Issued: n[2], Expires: n[3]},
		CardSeq: n[4], Port: binary.BigEndian.Uint16(body[at:]), Host: string(body[contactFixed:]),
	}
	if err := checkBody(c); err != nil {
		return nil, err
	}
	r.Body, r.Header = c, c.Header
	r.signed = PAE(network, TypeContact, body)
	r.payload = r.signed[len(r.signed)-len(body):]
	r.Hash = sha256.Sum256(r.signed)
	return r, nil
}
