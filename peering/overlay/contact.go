package overlay

import (
	"context"
	"errors"
	"hash/fnv"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/federation"
	"agentsite/internal/record"
	"agentsite/peering/kademlia"
)

// portalOf is the portal of a node.
func portalOf(id kademlia.ID) record.PortalID { return record.PortalWith(record.Hash(id)) }

// opened is what a contact says of itself.
func (o *Overlay) opened(node []byte) (*record.Record, *record.Contact, error) {
	r, err := record.Open(o.cfg.Self.Network(), node)
	if err != nil {
		return nil, nil, err
	}
	c, ok := r.Body.(*record.Contact)
	if !ok {
		return nil, nil, errNoContact
	}
	return r, c, nil
}

var (
	errNoContact = errors.New("it is no contact")
	errAnother   = errors.New("it is the contact of another portal")
	errOver      = errors.New("the contact is over")
)

// contact reads what a node says of itself, or what others say it does. Its
// signature is not looked at: whoever is called there has to prove that it is
// this portal, and what it then says of itself is signed.
func (o *Overlay) contact(id kademlia.ID, node []byte) (*kademlia.Contact, error) {
	if c, ok := o.named.get(id, node); ok {
		return c, nil
	}
	r, c, err := o.opened(node)
	if err != nil {
		return nil, err
	}
	if d, _ := c.Portal.Digest(); kademlia.ID(d) != id {
		return nil, errAnother
	}
	if now := clock.Now(); c.Expires <= now.UnixMilli() || c.Issued > now.Add(maxAhead).UnixMilli() || c.Expires-c.Issued > contactLife.Milliseconds() {
		return nil, errOver
	}
	out := &kademlia.Contact{ID: id, Node: r.Wire, Address: c.Origin(), Version: c.Seq, Groups: o.groups(c.Host)}
	o.named.put(out, c.Expires)
	return out, nil
}

// named are contacts that were read last, as they were: each answer names twenty,
// mostly the same ones. What is kept of one is shared by all who hold it. It is
// safe for concurrent use.
type named struct {
	mu sync.Mutex // guards the rest
	// Two halves: when the young one is full it takes the place of the old one.
	young, old map[kademlia.ID]readContact
}

type readContact struct {
	*kademlia.Contact
	expires int64 // Unix ms
}

// maxNamed bounds the contacts of a half, at some 600 bytes.
const maxNamed = 1024

// get returns the contact that was read from these very bytes, if it still holds.
func (n *named) get(id kademlia.ID, node []byte) (*kademlia.Contact, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	c, ok := n.young[id]
	if !ok {
		if c, ok = n.old[id]; !ok {
			return nil, false
		}
	}
	if string(c.Node) != string(node) || c.expires <= clock.Now().UnixMilli() {
		return nil, false
	}
	n.keep(c)
	return c.Contact, true
}

func (n *named) put(c *kademlia.Contact, expires int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.keep(readContact{c, expires})
}

// keep puts a contact among the young ones; the caller holds mu.
func (n *named) keep(c readContact) {
	if have, ok := n.young[c.ID]; ok && have.Contact == c.Contact {
		return
	}
	if n.young == nil || len(n.young) >= maxNamed {
		n.young, n.old = make(map[kademlia.ID]readContact), n.young
	}
	n.young[c.ID] = c
}

// maxAhead is how far another clock may be ahead, as of all records.
const maxAhead = 5 * time.Minute

// groups are those of a host: nodes of one registrable domain, or of one
// network of addresses, count as few.
func (o *Overlay) groups(host string) []kademlia.Group {
	host = strings.ToLower(host)
	if host == "" || o.cfg.Uncounted(host) {
		return nil
	}
	h := fnv.New64a()
	h.Write([]byte(federation.SiteOf(host)))
	return []kademlia.Group{kademlia.Group(h.Sum64())}
}

// signedContact is what this portal says of where it is.
type signedContact struct {
	wire   []byte
	seq    int64
	signed time.Time
	card   record.Version
	key    record.KeyID
}

const (
	contactLife = 48 * time.Hour
	renewAfter  = 24 * time.Hour
)

// sayWhere signs where this portal is, again when that is due.
func (o *Overlay) sayWhere(ctx context.Context) {
	tick := time.NewTicker(time.Minute)
	defer tick.Stop()
	for {
		if err := o.signWhere(); err != nil {
			o.cfg.Log.Debug("where the portal is was not signed", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (o *Overlay) signWhere() error {
	now := clock.Now()
	card, err := record.Open(o.cfg.Self.Network(), o.cfg.Self.Card())
	if err != nil {
		return err
	}
	id, key, until, err := o.cfg.Self.Key(now)
	if err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if m := &o.me; m.wire != nil && m.card == card.Version() && m.key == id && now.Sub(m.signed) < renewAfter {
		return nil
	}
	host, port, err := hostPort(o.cfg.Self.Origin())
	if err != nil {
		return err
	}
	ms := now.UnixMilli()
	body := &record.Contact{CardSeq: card.Seq, Host: host, Port: port,
		Header: record.Header{Portal: o.cfg.Self.ID(), Epoch: ms, Seq: max(ms, o.me.seq+1), Issued: ms, Expires: min(now.Add(contactLife).UnixMilli(), until.UnixMilli())}}
	r, err := record.Sign(o.cfg.Self.Network(), body, key)
	if err != nil {
		return err
	}
	o.me = signedContact{r.Wire, body.Seq, now, card.Version(), id}
	o.run.Renew(&kademlia.Contact{ID: o.id, Node: r.Wire, Address: o.cfg.Self.Origin(), Version: body.Seq, Groups: o.groups(host)})
	return nil
}

// Contact is where this portal is as it last signed it, nil before it did.
func (o *Overlay) Contact() []byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.me.wire
}

// hostPort parts an origin.
func hostPort(origin string) (host string, port uint16, err error) {
	u, err := url.Parse(origin)
	if err != nil {
		return "", 0, err
	}
	switch {
	case u.Port() != "":
		n, err := strconv.ParseUint(u.Port(), 10, 16)
		return u.Hostname(), uint16(n), err
	case u.Scheme == "http":
		return u.Hostname(), 80, nil
	}
	return u.Hostname(), 443, nil
}
