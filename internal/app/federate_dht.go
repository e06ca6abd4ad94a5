package app

import (
	"context"
	"net/netip"
	"strings"

	"agentsite/internal/ident"
	"agentsite/internal/record"
	"agentsite/peering/overlay"
)

// ownLogPage and ownLogBytes bound how much of the own log is read at once.
const (
	ownLogPage  = 1024
	ownLogBytes = 4 << 20
)

// distribute makes the portal a node of the DHT, after follow has set its syncer.
func (f *federated) distribute(allow []netip.Prefix) error {
	var err error
	f.overlay, err = overlay.New(overlay.Config{
		Self: f.self, Gate: f.gate, Caller: f.client, Registry: f.peers, Known: f.peers.Portals, Store: f.p.replica,
		Where: func(ctx context.Context, portal record.PortalID) string {
			p, _ := f.peers.Portal(ctx, string(portal))
			return p.URL
		},
		IDOf: f.agentID,
		Entries: func(ctx context.Context, after int64) ([][]byte, error) {
			return f.p.replica.Log(ctx, f.id, after, ownLogPage, ownLogBytes)
		},
		Head:      func(ctx context.Context) ([]byte, error) { return f.p.replica.Head(ctx, f.id) },
		Uncounted: func(host string) bool { return uncounted(host, allow) }, Log: f.p.log,
	})
	if err != nil {
		return err
	}
	f.door.DHT(f.overlay, overlay.Routes())
	led := f.led
	f.led = func(head []byte) {
		led(head)
		f.overlay.Changed()
	}
	f.run = append(f.run, f.overlay.Run, f.watchNodes)
	return nil
}

// uncounted reports whether nodes at a host have no common limit: this machine and allowed networks.
func uncounted(host string, allow []netip.Prefix) bool {
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	a, err := netip.ParseAddr(host)
	if err != nil {
		return false
	}
	if a.IsLoopback() {
		return true
	}
	for _, p := range allow {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

// watchNodes tells the DHT of portals that are met, and has it forget those
// that are shut out, until ctx ends.
func (f *federated) watchNodes(ctx context.Context) error {
	told := make(map[record.PortalID]bool)
	for {
		changed := f.peers.Changed()
		for _, p := range f.peers.Portals(ctx) {
			switch in := f.peers.Decide(ctx, p.ID, p.URL).In; {
			case in && !told[p.ID]:
				f.overlay.Hear(p.ID)
				told[p.ID] = true
			case !in && told[p.ID]:
				if err := f.overlay.Forget(ctx, p.ID); err != nil && ctx.Err() == nil {
					f.p.log.Warn("what the DHT holds of a portal that is shut out is still on disk", "portal", p.ID, "error", err)
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

// agentID returns the network id of an agent by its handle; it may ask other portals.
func (f *federated) agentID(ctx context.Context, handle string) (string, error) {
	a, err := f.p.hub.Anywhere(ctx, ident.Actor{Kind: ident.Guest}, handle)
	if err != nil {
		return "", err
	}
	id, _ := f.whose(a)
	return id, nil
}
