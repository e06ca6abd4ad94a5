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
	"agentsite/peering/kademlia"
	"agentsite/peering/kademlia/wire"
)

// Base is what the routes of the DHT are below.
const Base = "/peering/v1/dht/"

// routes are the last parts of the paths by what they ask.
var routes = map[kademlia.Kind]string{kademlia.Ping: "ping", kademlia.FindNode: "find_node", kademlia.Get: "get", kademlia.Store: "store"}

// Routes are the names below Base.
func Routes() []string { return []string{"ping", "find_node", "get", "store"} }

// transport asks other nodes over signed HTTPS.
type transport struct{ o *Overlay }

// Call implements dht.Transport.
func (t transport) Call(ctx context.Context, to *kademlia.Contact, r *kademlia.Request) (*kademlia.Response, []kademlia.Group, error) {
	o := t.o
	portal := portalOf(to.ID)
	origin := to.Address
	if origin == "" {
		if origin = o.cfg.Where(ctx, portal); origin == "" {
			return nil, nil, fault.New(fault.NotFound, "It is not known where %s is.", portal)
		}
	}
	var near []kademlia.Group
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(c httptrace.GotConnInfo) {
		if a, err := netip.ParseAddrPort(c.Conn.RemoteAddr().String()); err == nil {
			near = o.groups(a.Addr().Unmap().String())
		}
	}})
	ask := &wire.Request{Kind: r.Kind, From: o.Contact(), Targets: r.Targets, Records: r.Records}
	do := func() (*federation.Answer, error) {
		return o.cfg.Caller.Do(ctx, origin, portal, http.MethodPost, Base+routes[r.Kind], wire.AppendRequest(nil, ask), wire.MaxBytes)
	}
	o.mark(ask, r.Known)
	a, err := do()
	if err == nil && a.Status == http.StatusBadRequest && len(ask.Have) > 0 { // of a version without marks
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
		if out.Self, err = o.contact(to.ID, in.Self); err != nil {
			o.refused.Add(1)
			return nil, nil, err
		}
	}
	out.Nodes = make([]*kademlia.Contact, 0, len(in.Nodes))
	for _, n := range in.Nodes {
		if len(n.Node) == 0 { // it was said to be known
			if i := slices.IndexFunc(r.Known, func(c *kademlia.Contact) bool { return c.ID == n.ID }); i >= 0 {
				out.Nodes = append(out.Nodes, r.Known[i])
			} else {
				o.refused.Add(1)
			}
			continue
		}
		c, err := o.contact(n.ID, n.Node)
		if err != nil { // over, another's, or nonsense: the others may be good
			o.refused.Add(1)
			continue
		}
		out.Nodes = append(out.Nodes, c)
	}
	if to.Node == nil && out.Self == nil {
		return nil, nil, fault.New(fault.Unavailable, "%s does not say where it is.", portal)
	}
	return out, near, nil
}

// Serve answers a request of another portal at the route of that name. Errors
// are refusals that may be told.
func (o *Overlay) Serve(ctx context.Context, asker federation.Asker, route string, body []byte) ([]byte, error) {
	in, err := wire.DecodeRequest(body)
	if err != nil {
		return nil, federation.Refuse(federation.ReasonMalformed, "%s", err)
	}
	if routes[in.Kind] != route {
		return nil, federation.Refuse(federation.ReasonMalformed, "That is not what this route is asked.")
	}
	if in.Kind == kademlia.Store {
		for range in.Records {
			if wait, ok := o.stores.Allow(string(asker.Portal)); !ok {
				return nil, federation.RefuseFor(federation.ReasonLimit, wait, "Your portal brings too many records. Bring the others later.")
			}
		}
	}
	resp, err := o.run.Serve(o.from(asker, in.From), &kademlia.Request{Kind: in.Kind, Targets: in.Targets, Records: in.Records})
	if err != nil {
		return nil, federation.Refuse(federation.ReasonBusy, "This portal does not take part in the DHT now.")
	}
	return o.write(resp, in), nil
}

// write writes an answer to a request, whose asker may have some of its contacts.
func (o *Overlay) write(resp *kademlia.Response, in *wire.Request) []byte {
	has := func(node []byte) bool { return len(in.Have) > 0 && slices.Contains(in.Have, in.Salt.Mark(node)) }
	out := &wire.Response{Nodes: make([]wire.Node, 0, min(len(resp.Nodes), wire.MaxNodes)), Found: resp.Found, Codes: resp.Codes}
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

// mark says in a request which contacts are known. One that is over is not, nor
// one of which nothing is known but its id.
func (o *Overlay) mark(r *wire.Request, known []*kademlia.Contact) {
	rand.Read(r.Salt[:])
	for _, c := range known {
		if _, ok := o.named.get(c.ID, c.Node); ok {
			r.Have = append(r.Have, r.Salt.Mark(c.Node))
		}
	}
}

// from is the contact of who asks, nil unless it sent one that it signed.
func (o *Overlay) from(asker federation.Asker, sent []byte) *kademlia.Contact {
	d, ok := asker.Portal.Digest()
	if !ok || len(sent) == 0 {
		return nil
	}
	c, err := o.contact(kademlia.ID(d), sent)
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
	r, where, err := o.opened(sent)
	if err != nil || asker.Card == nil || where.Origin() != asker.Card.Origin || asker.Card.Signed(r, clock.Now()) != nil {
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
