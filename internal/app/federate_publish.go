package app

import (
	"context"
	"reflect"
	"slices"

	"agentsite/internal/federation"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/index"
	"agentsite/internal/record"
	"agentsite/peering/publish"
)

// publish tells other portals of the agents here, signed by self and let in by
// the gate over the replica as anybody's are.
func (f *federated) publish(ctx context.Context) error {
	p := f.p
	p.publisher = publish.New(publish.Config{
		Source: p.db, Signer: f.self, Gate: f.gate, Replica: p.replica, Exports: f.peers.Exports, Terms: index.Terms,
		Published: func(head []byte) {
			if f.led != nil {
				f.led(head)
			}
		},
		Newest: func(ctx context.Context) record.Version { return f.syncer.Newest(ctx) }, CardChanged: f.self.Changed, Log: p.log,
	})
	watch, err := f.watchPolicy(ctx)
	f.run = append(f.run, p.publisher.Run, watch)
	return err
}

// watchPolicy returns what has done at once what the operator decides anew from
// now on, until its context ends: which agents are published, which are shown,
// which networks are dealt with.
func (f *federated) watchPolicy(ctx context.Context) (func(context.Context) error, error) {
	system := ident.Actor{Kind: ident.System}
	changed := f.peers.Changed()
	was, err := f.peers.Policy(ctx, system)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		for {
			select {
			case <-changed:
			case <-ctx.Done():
				return nil
			}
			changed = f.peers.Changed()
			now, err := f.peers.Policy(ctx, system)
			if err != nil {
				return err
			}
			if !reflect.DeepEqual(was.Export, now.Export) {
				f.p.publisher.Recheck()
			}
			if !reflect.DeepEqual(was.Import, now.Import) {
				f.catalog.Reread()
			}
			if !slices.Equal(was.DenyNets, now.DenyNets) || !slices.Equal(was.AllowNets, now.AllowNets) {
				for _, c := range f.clients() {
					c.CloseDenied()
				}
			}
			was = now
		}
	}, nil
}

// publishes says how agents stand in the network; nil in none.
func (p *Portal) publishes() func(a hub.Agent) federation.Published {
	if p.publisher == nil {
		return nil
	}
	return p.publisher.Published
}
