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

// portalOf returns the id of the portal that runs a node: node ids are the digests of portal ids.
func portalOf(id kademlia.ID) record.PortalID { return record.PortalWith(record.Hash(id)) }

// openContact decodes a contact record without checking its signature.
func (o *Overlay) openContact(node []byte) (*record.Record, *record.Contact, error) {
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
	errNoContact = errors.New("the record is not a contact")
	errAnother   = errors.New("the contact is of another portal")
	errOver      = errors.New("the contact has expired")
)

// readContact decodes a contact record of a node, which the node itself or another one sent. It does not
// check the signature: a portal that is called at the address has to prove its identity, and then sends its
// own contact. An error means that the record is invalid, expired or of another node.
func (o *Overlay) readContact(id kademlia.ID, node []byte) (*kademlia.Contact, error) {
	if c, ok := o.contacts.lookUp(id, node); ok {
		return c, nil
	}
	r, c, err := o.openContact(node)
	if err != nil {
		return nil, err
	}
	if d, _ := c.Portal.Digest(); kademlia.ID(d) != id {
		return nil, errAnother
	}
	if now := clock.Now(); c.Expires <= now.UnixMilli() || c.Issued > now.Add(maxAhead).UnixMilli() ||
		c.Expires-c.Issued > contactLife.Milliseconds() {
		return nil, errOver
	}
	out := &kademlia.Contact{ID: id, Node: r.Wire, Address: c.Origin(), Version: c.Seq, Groups: o.hostGroups(c.Host)}
	o.contacts.addContact(out, c.Expires)
	return out, nil
}

// contactCache caches decoded contacts by their bytes, because each answer names twenty contacts, mostly
// the same. The cached contacts are shared and must not be changed. It is safe for concurrent use.
type contactCache struct {
	mu sync.Mutex // guards the fields below
	// Two generations: when young is full it becomes old.
	young, old map[kademlia.ID]cachedContact
}

type cachedContact struct {
	*kademlia.Contact
	expires int64 // expiry of the contact record, in Unix ms
}

// maxCached bounds the contacts of each generation; each takes about 600 bytes.
const maxCached = 1024

// lookUp returns the contact of a node if it was decoded from the same bytes and has not expired.
func (n *contactCache) lookUp(id kademlia.ID, node []byte) (*kademlia.Contact, bool) {
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
	n.addYoung(c)
	return c.Contact, true
}

func (n *contactCache) addContact(c *kademlia.Contact, expires int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.addYoung(cachedContact{c, expires})
}

// addYoung adds a contact to the young generation. The caller holds mu.
func (n *contactCache) addYoung(c cachedContact) {
	if have, ok := n.young[c.ID]; ok && have.Contact == c.Contact {
		return
	}
	if n.young == nil || len(n.young) >= maxCached {
		n.young, n.old = make(map[kademlia.ID]cachedContact), n.young
	}
	n.young[c.ID] = c
}

// maxAhead is how far the clock of a signer may be ahead, the same as for all records.
const maxAhead = 5 * time.Minute

// hostGroups returns the group of a host, by which kademlia limits the nodes of one operator: its
// registrable domain or its network of addresses. It is nil for hosts without a limit, see
// Config.Uncounted.
func (o *Overlay) hostGroups(host string) []kademlia.Group {
	host = strings.ToLower(host)
	if host == "" || o.cfg.Uncounted(host) {
		return nil
	}
	h := fnv.New64a()
	h.Write([]byte(federation.SiteOf(host)))
	return []kademlia.Group{kademlia.Group(h.Sum64())}
}

// signedContact is this portal's own contact record, with the facts that decide when it is signed again.
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

// renewContact signs the contact of this portal, and again after renewAfter or a change of card or key,
// until ctx ends.
func (o *Overlay) renewContact(ctx context.Context) {
	tick := time.NewTicker(time.Minute)
	defer tick.Stop()
	for {
		if err := o.signContact(); err != nil {
			o.cfg.Log.Debug("sign the contact of the portal", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (o *Overlay) signContact() error {
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
	host, port, err := splitOrigin(o.cfg.Self.Origin())
	if err != nil {
		return err
	}
	ms := now.UnixMilli()
	body := &record.Contact{CardSeq: card.Seq, Host: host, Port: port,
		Header: record.Header{Portal: o.cfg.Self.ID(), Epoch: ms, Seq: max(ms, o.me.seq+1), Issued: ms,
			Expires: min(now.Add(contactLife).UnixMilli(), until.UnixMilli())}}
	r, err := record.Sign(o.cfg.Self.Network(), body, key)
	if err != nil {
		return err
	}
	o.me = signedContact{r.Wire, body.Seq, now, card.Version(), id}
	o.run.SetContact(&kademlia.Contact{ID: o.id, Node: r.Wire, Address: o.cfg.Self.Origin(), Version: body.Seq,
		Groups: o.hostGroups(host)})
	return nil
}

// Contact returns the newest contact record of this portal, nil before the first.
func (o *Overlay) Contact() []byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.me.wire
}

// splitOrigin returns the host and port of an origin, with the default port of its scheme.
func splitOrigin(origin string) (host string, port uint16, err error) {
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
