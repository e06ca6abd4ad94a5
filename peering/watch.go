package peering

import (
	"context"
	"reflect"
	"slices"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/federation"
	"agentsite/internal/federation/guard"
	"agentsite/internal/ident"
	"agentsite/internal/record"
	"agentsite/peering/client"
)

// OnHandshake is called after another portal performed the handshake with this one. The reply contained
// this portal's card, so no handshake in the other direction is needed. head is the head that the portal
// sent of its own log, nil if none.
func (n *Node) OnHandshake(ctx context.Context, asker guard.Asker, head []byte) {
	if card := n.Self.Content(); card != nil && asker.Card != nil {
		n.Client.MarkCardKnown(asker.Card.Origin, card.Version())
	}
	n.takeHead(ctx, asker.Card.Portal, head)
}

// HandshakeAnswered implements client.Listener: it accepts the head that a portal sent of its own log in
// its reply to a handshake.
func (n *Node) HandshakeAnswered(ctx context.Context, h *client.Handshake) {
	n.takeHead(ctx, h.Card.Portal, h.Head)
}

// takeHead accepts a head that a portal sent of its own log in a handshake; it is handled like a hint.
// Refusals are only logged. An empty head is ignored.
func (n *Node) takeHead(ctx context.Context, portal record.PortalID, head []byte) {
	if len(head) == 0 {
		return
	}
	if _, err := n.Syncer.Take(ctx, portal, []federation.Told{{Head: head}}); err != nil && ctx.Err() == nil {
		n.ports.Log.Debug("the head of a hello not taken", "portal", portal, "error", err)
	}
}

// Way implements hub.Ways: it returns the address of the portal with that id. The error is Unavailable if
// the address is not known, Forbidden if the policy does not allow calls of the portal's agents.
func (n *Node) Way(ctx context.Context, portalID string) (string, error) {
	peer, ok := n.Peers.Portal(ctx, portalID)
	if !ok || peer.URL == "" || string(peer.ID) != portalID {
		return "", fault.New(fault.Unavailable, "Nobody knows where the portal of this agent is.")
	}
	d := n.Peers.Decide(ctx, peer.ID, peer.URL)
	if !d.Out {
		why := d.Reason
		if why == "" {
			why = "This portal does not let people use agents there."
		}
		return "", fault.New(fault.Forbidden, "Agents of %s cannot be asked from here. %s", peer.Host(), why)
	}
	return peer.URL, nil
}

// replicaSweep is the interval at which expired records are deleted from the Replica.
const replicaSweep = time.Hour

// sweepReplica deletes expired records until ctx ends. If the disk fails, the portal goes on without
// its replica and accepts no records until the next start.
func (n *Node) sweepReplica(ctx context.Context) error {
	tick := time.NewTicker(replicaSweep)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-n.ports.Replica.Fatal():
			n.ports.Log.Error("the replica of other portals' agents failed: start the portal again, which mends it or begins a new one", "error", n.ports.Replica.Err())
			<-ctx.Done()
			return nil
		case <-ctx.Done():
			return nil
		}
		if err := n.ports.Replica.Sweep(ctx, clock.Now()); err != nil && ctx.Err() == nil {
			n.ports.Log.Warn("forget expired records", "error", err)
		}
	}
}

// policyWatch holds the policy that was applied last, to find out which parts of it changed.
type policyWatch struct {
	changed <-chan struct{} // closed at the next change of the registry
	was     federation.Policy
}

// newPolicyWatch reads the policy, so that WatchPolicy applies every decision after this point, even
// if it starts later.
func (n *Node) newPolicyWatch(ctx context.Context) (*policyWatch, error) {
	w := &policyWatch{changed: n.Peers.Changed()}
	var err error
	w.was, err = n.Peers.Policy(ctx, ident.Actor{Kind: ident.System})
	return w, err
}

// WatchPolicy applies changes of the operator's policy at once, until ctx ends: it rechecks the published
// agents, reads the imported agents again, and closes connections to networks that are denied now.
func (n *Node) WatchPolicy(ctx context.Context) error {
	w := n.policy
	for {
		select {
		case <-w.changed:
		case <-ctx.Done():
			return nil
		}
		w.changed = n.Peers.Changed()
		now, err := n.Peers.Policy(ctx, ident.Actor{Kind: ident.System})
		if err != nil {
			return err
		}
		if !reflect.DeepEqual(w.was.Export, now.Export) {
			n.Publisher.Recheck()
		}
		if !reflect.DeepEqual(w.was.Import, now.Import) {
			n.Catalog.Reread()
		}
		if !slices.Equal(w.was.DenyNets, now.DenyNets) || !slices.Equal(w.was.AllowNets, now.AllowNets) {
			n.ask.CloseDenied()
			n.stream.CloseDenied()
		}
		w.was = now
	}
}

// watchNodes adds known portals to the DHT and removes those that the policy denies, until ctx ends.
func (n *Node) watchNodes(ctx context.Context) error {
	told := make(map[record.PortalID]bool)
	for {
		changed := n.Peers.Changed()
		for _, p := range n.Peers.Portals(ctx) {
			switch in := n.Peers.Decide(ctx, p.ID, p.URL).In; {
			case in && !told[p.ID]:
				n.Overlay.Hear(p.ID)
				told[p.ID] = true
			case !in && told[p.ID]:
				if err := n.Overlay.Forget(ctx, p.ID); err != nil && ctx.Err() == nil {
					n.ports.Log.Warn("what the DHT holds of a portal that is shut out is still on disk", "portal", p.ID,
						"error", err)
				}
				delete(told, p.ID)
			}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil
		}
	}
}

// agentID returns the network id of the agent with a handle. An unknown handle is resolved in the network,
// which sends requests to other portals.
func (n *Node) agentID(ctx context.Context, handle string) (string, error) {
	a, err := n.ports.Agents.Anywhere(ctx, ident.Actor{Kind: ident.Guest}, handle)
	if err != nil {
		return "", err
	}
	id, _ := n.subjectOf(a)
	return id, nil
}
