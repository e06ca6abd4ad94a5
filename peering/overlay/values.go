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

// values validates the values of the DHT. A value has two lines: the card of a portal, and a signed record.
// Under the portal's own id and its host the record is the portal's head, under other keys a provider
// record. With the card, a reader need not know the portal, and a storing node can check the value: this
// costs 1 KiB more of disk instead of a call for each unknown portal.
type values struct {
	gate     *record.Gate
	registry federation.Gatekeeper
}

// decodedValue is the decoded content of a value: the card, and either a head or a provider record.
type decodedValue struct {
	card     *record.Card
	head     *record.Head     // set for the keys of the portal's id and of its host
	provider *record.Provider // set under all other keys
}

func joinLines(card, wire []byte) []byte {
	b := make([]byte, 0, len(card)+1+len(wire))
	return append(append(append(b, card...), '\n'), wire...)
}

// readValue decodes and verifies a value that was given for a key. An error means that the value must be
// neither stored nor used: its signatures, key or form are not valid, or the policy excludes its portal.
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

// hostKey returns the key under which a portal with this origin publishes its host.
func hostKey(origin string) kademlia.ID {
	return kademlia.ID(record.HostKey(federation.HostOf(origin)))
}

// valueLife is the lifetime of a value: three intervals at which its publisher stores it again.
const valueLife = 36 * time.Hour

// Validate implements kademlia.Validator by readValue. The version of a value is the epoch and seq of its
// record.
func (v values) Validate(key kademlia.ID, value []byte) (kademlia.Entry, error) {
	_, e, err := v.readValue(context.Background(), key, value)
	return e, err
}
