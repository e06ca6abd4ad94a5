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

// A value of the DHT is the card of a portal, and on a second line what it
// signed about the key: its head under its own id and under the host that the
// card names, else a provider record. With
// the card whoever reads it need not have met the portal, and whoever keeps it
// can check it: 1 KiB more of disk against a call for each unknown portal.
type values struct {
	gate     *record.Gate
	registry federation.Gatekeeper
}

// valued is what a value says.
type valued struct {
	card     *record.Card
	head     *record.Head     // under a portal's own id or host
	provider *record.Provider // else
}

func join(card, wire []byte) []byte {
	b := make([]byte, 0, len(card)+1+len(wire))
	return append(append(append(b, card...), '\n'), wire...)
}

// read checks a value that was given for a key. Refusals are record.Refused
// errors.
func (v values) read(ctx context.Context, key kademlia.ID, value []byte) (valued, kademlia.Entry, error) {
	var (
		out valued
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
	e = kademlia.Entry{Publisher: kademlia.ID(d), Major: r.Epoch, Minor: r.Seq, Expires: time.UnixMilli(min(r.Expires, r.Issued+valueLife.Milliseconds()))}
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

// hostKey is the key of the host of an origin.
func hostKey(origin string) kademlia.ID {
	return kademlia.ID(record.HostKey(federation.HostOf(origin)))
}

// valueLife is for how long a value is kept: three rounds of its publisher.
const valueLife = 36 * time.Hour

// Validate implements kademlia.Validator.
func (v values) Validate(key kademlia.ID, value []byte) (kademlia.Entry, error) {
	_, e, err := v.read(context.Background(), key, value)
	return e, err
}
