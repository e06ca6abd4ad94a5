package app

import (
	"context"

	"agentsite/internal/federation"
	"agentsite/internal/federation/guard"
	"agentsite/internal/record"
	"agentsite/peering/client"
)

// greeted deals with a portal that said hello: it has this one's card as the
// answer, so that it need not be greeted too, and brought its head.
func (f *federated) greeted(ctx context.Context, asker guard.Asker, head []byte) {
	if card := f.self.Content(); card != nil && asker.Card != nil {
		f.client.MarkCardKnown(asker.Card.Origin, card.Version())
	}
	f.heard(ctx, asker.Card.Portal, head)
}

// welcomed takes in the head of a portal that answered hello.
func (f *federated) welcomed(ctx context.Context, w *client.Handshake) {
	f.heard(ctx, w.Card.Portal, w.Head)
}

// heard takes in what a portal said of its own head, like any hint.
func (f *federated) heard(ctx context.Context, portal record.PortalID, head []byte) {
	if len(head) == 0 || f.syncer == nil {
		return
	}
	if _, err := f.syncer.Take(ctx, portal, []federation.Told{{Head: head}}); err != nil && ctx.Err() == nil {
		f.p.log.Debug("the head of a hello not taken", "portal", portal, "error", err)
	}
}
