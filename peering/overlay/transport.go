package overlay

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"slices"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/federation"
	"agentsite/internal/federation/guard"
	"agentsite/peering/kademlia"
	"agentsite/peering/kademlia/wire"
)

// Base is the path prefix of the routes in Routes.
const Base = "/peering/v1/dht/"

// routes maps the kinds of requests to the last segment of their path.
var routes = map[kademlia.Kind]string{kademlia.Ping: "ping", kademlia.FindNode: "find_node", kademlia.Get: "get",
	kademlia.Store: "store"}

// Routes returns the last segments of the paths that Serve answers, below Base.
func Routes() []string { return []string{"ping", "find_node", "get", "store"} }

// transport implements dht.Transport by signed HTTPS requests.
type transport struct{ o *Overlay }

// Call implements dht.Transport. The groups that it returns are those of the IP address to which the
// request was sent.
func (t transport) Call(ctx context.Context, to *kademlia.Contact, r *kademlia.Request) (*kademlia.Response,
	[]kademlia.Group, error) {
	o := t.o
	portal := portalOf(to.ID)
	origin := to.Address
	if origin == "" {
		if origin = o.cfg.Where(ctx, portal); origin == "" {
			return nil, nil, fault.New(fault.NotFound, "The address of %s is not known.", portal)
		}
	}
	var near []kademlia.Group
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(c httptrace.GotConnInfo) {
		if a, err := netip.ParseAddrPort(c.Conn.RemoteAddr().String()); err == nil {
			near = o.hostGroups(a.Addr().Unmap().String())
		}
	}})
	ask := &wire.Request{Kind: r.Kind, From: o.Contact(), Targets: r.Targets, Records: r.Records}
	do := func() (*federation.Answer, error) {
		return o.cfg.Caller.Do(ctx, origin, portal, http.MethodPost, Base+routes[r.Kind], wire.AppendRequest(nil, ask),
			wire.MaxBytes)
	}
	o.markKnown(ask, r.Known)
	a, err := do()
	if err == nil && a.Status == http.StatusBadRequest && len(ask.Have) > 0 { // an old version refuses marks
		ask.Have = nil
		a, err = do()
	}
	if err != nil {
		return nil, nil, err
	}
	if a.Status != http.StatusOK {
		return nil, nil, fmt.Errorf("%s answers %d", origin, a.Status)
	}
	in, err := wire.DecodeResponse(a.Body)
	if err != nil {
		o.refused.Add(1)
		return nil, nil, err
	}
	out := &kademlia.Response{Found: in.Found, Codes: in.Codes}
	if len(in.Self) > 0 {
		if out.Self, err = o.readContact(to.ID, in.Self); err != nil {
			o.refused.Add(1)
			return nil, nil, err
		}
	}
	out.Nodes = make([]*kademlia.Contact, 0, len(in.Nodes))
	for _, n := range in.Nodes {
		if len(n.Node) == 0 { // a contact that the request marked as known
			if i := slices.IndexFunc(r.Known, func(c *kademlia.Contact) bool { return c.ID == n.ID }); i >= 0 {
				out.Nodes = append(out.Nodes, r.Known[i])
			} else {
				o.refused.Add(1)
			}
			continue
		}
		c, err := o.readContact(n.ID, n.Node)
		if err != nil { // skip a contact that is expired, malformed or of another portal; the rest may be valid
			o.refused.Add(1)
			continue
		}
		out.Nodes = append(out.Nodes, c)
	}
	if to.Node == nil && out.Self == nil {
		return nil, nil, fault.New(fault.Unavailable, "%s did not send its contact.", portal)
	}
	return out, near, nil
}

// Serve answers a DHT request of another portal at one of Routes. Its errors are refusals that may be sent
// to that portal: malformed, rate limit, or busy while Run does not run.
func (o *Overlay) Serve(ctx context.Context, asker guard.Asker, route string, body []byte) ([]byte, error) {
	in, err := wire.DecodeRequest(body)
	if err != nil {
		return nil, federation.Refuse(federation.ReasonMalformed, "%s", err)
	}
	if routes[in.Kind] != route {
		return nil, federation.Refuse(federation.ReasonMalformed, "This route is for another kind of request.")
	}
	if in.Kind == kademlia.Store {
		for range in.Records {
			if wait, ok := o.stores.Allow(string(asker.Portal)); !ok {
				return nil, federation.RefuseFor(federation.ReasonLimit, wait,
					"Your portal brings too many records. Bring the others later.")
			}
		}
	}
	resp, err := o.run.Serve(o.senderContact(asker, in.From),
		&kademlia.Request{Kind: in.Kind, Targets: in.Targets, Records: in.Records})
	if err != nil {
		return nil, federation.Refuse(federation.ReasonBusy, "This portal does not take part in the DHT now.")
	}
	return o.writeResponse(resp, in), nil
}

// writeResponse encodes an answer. Contacts that the request marked as known are named by their id only.
func (o *Overlay) writeResponse(resp *kademlia.Response, in *wire.Request) []byte {
	has := func(node []byte) bool { return len(in.Have) > 0 && slices.Contains(in.Have, in.Salt.Mark(node)) }
	out := &wire.Response{Nodes: make([]wire.Node, 0, min(len(resp.Nodes), wire.MaxNodes)), Found: resp.Found,
		Codes: resp.Codes}
	if self := o.Contact(); !has(self) {
		out.Self = self
	}
	for _, c := range resp.Nodes {
		if len(c.Node) == 0 || len(out.Nodes) == wire.MaxNodes {
			continue
		}
		n := wire.Node{ID: c.ID}
		if !has(c.Node) {
			n.Node = c.Node
		}
		out.Nodes = append(out.Nodes, n)
	}
	return wire.AppendResponse(nil, out)
}

// markKnown adds marks of the known contacts to a request, except expired ones and those without a known
// address.
func (o *Overlay) markKnown(r *wire.Request, known []*kademlia.Contact) {
	rand.Read(r.Salt[:])
	for _, c := range known {
		if _, ok := o.contacts.lookUp(c.ID, c.Node); ok {
			r.Have = append(r.Have, r.Salt.Mark(c.Node))
		}
	}
}

// senderContact returns the contact that the asking portal sent of itself, nil if there is none or its
// signature or origin do not match the portal.
func (o *Overlay) senderContact(asker guard.Asker, sent []byte) *kademlia.Contact {
	d, ok := asker.Portal.Digest()
	if !ok || len(sent) == 0 {
		return nil
	}
	c, err := o.readContact(kademlia.ID(d), sent)
	if err != nil {
		o.refused.Add(1)
		return nil
	}
	o.mu.Lock()
	met := o.met[asker.Portal]
	same := met != nil && string(met.Node) == string(sent)
	o.mu.Unlock()
	if same {
		return c
	}
	r, where, err := o.openContact(sent)
	if err != nil || asker.Card == nil || where.Origin() != asker.Card.Origin ||
		asker.Card.Signed(r, clock.Now()) != nil {
		o.refused.Add(1)
		return nil
	}
	o.mu.Lock()
	if len(o.met) >= maxMet {
		clear(o.met)
	}
	o.met[asker.Portal] = c
	o.mu.Unlock()
	return c
}
