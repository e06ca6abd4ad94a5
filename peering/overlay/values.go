package overlay

import (
	"bytes"
	"context"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/federation"
	"agentsite/internal/record"
	"agentsite/peering/kademlia"
)

// A value of the DHT has two lines: the card of a portal, and a signed record. Under the portal's
// own id and under the host of the card the record is the portal's head, under other keys a
// provider record. With the card, a reader need not know the portal and a storing node can check
// the value: 1 KiB more of disk instead of a call for each unknown portal.
type values struct {
	gate     *record.Gate
	registry federation.Gatekeeper
}

// decodedValue is the content of a value.
type decodedValue struct {
	card     *record.Card
	head     *record.Head     // under the portal's own id or host
	provider *record.Provider // under other keys
}

func joinLines(card, wire []byte) []byte {
	b := make([]byte, 0, len(card)+1+len(wire))
	return append(append(append(b, card...), '\n'), wire...)
}

// readValue checks a value that was given for a key. Refusals are record.Refused errors.
func (v values) readValue(ctx context.Context, key kademlia.ID, value []byte) (decodedValue, kademlia.Entry, error) {
	var (
		out decodedValue
		e   kademlia.Entry
	)
	card, wire, ok := bytes.Cut(value, []byte{'\n'})
	if !ok {
		return out, e, errValue
	}
	c, r, err := v.gate.Vouched(ctx, card, wire, clock.Now())
	if err != nil {
		return out, e, err
	}
	if d := v.registry.Decide(ctx, c.Portal, c.Origin); !d.Show {
		return out, e, federation.Refuse(federation.Reason(d.State), "%s", d.Reason)
	}
	out.card = c
	d, _ := c.Portal.Digest()
	e = kademlia.Entry{Publisher: kademlia.ID(d), Major: r.Epoch, Minor: r.Seq,
		Expires: time.UnixMilli(min(r.Expires, r.Issued+valueLife.Milliseconds()))}
	switch b := r.Body.(type) {
	case *record.Head:
		if kademlia.ID(d) != key && hostKey(c.Origin) != key {
			return out, e, errKey
		}
		out.head = b
	case *record.Provider:
		if kademlia.ID(b.Key) != key {
			return out, e, errKey
		}
		out.provider = b
	default:
		return out, e, errValue
	}
	return out, e, nil
}

// hostKey returns the key of the host of an origin.
func hostKey(origin string) kademlia.ID {
	return kademlia.ID(record.HostKey(federation.HostOf(origin)))
}

// valueLife is the lifetime of a value: three rounds of its publisher.
const valueLife = 36 * time.Hour

// Validate implements kademlia.Validator.
func (v values) Validate(key kademlia.ID, value []byte) (kademlia.Entry, error) {
	_, e, err := v.readValue(context.Background(), key, value)
	return e, err
}
