package dht

import (
	"context"
	"time"

	"agentsite/peering/kademlia"
)

// seed looks for nodes to begin with while nobody is known.
func (r *Runner) seed(ctx context.Context) {
	if r.cfg.Seeds == nil {
		return
	}
	tick := time.NewTicker(seedEvery)
	defer tick.Stop()
	for {
		known := 0
		r.Look(func(n *kademlia.Node) { known = n.Known() })
		if known == 0 {
			if all := r.cfg.Seeds(ctx); len(all) > 0 {
				r.with(func(n *kademlia.Node, _ time.Time) { n.Join(all) })
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// recall takes up whom the node knew at the last start.
func (r *Runner) recall(ctx context.Context) error {
	if r.cfg.Memory == nil {
		return nil
	}
	known, err := r.cfg.Memory.Contacts(ctx)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.node.Join(known)
	return nil
}

// recallRecords takes up what it kept, while it already answers: each is
// checked anew, which takes a while.
func (r *Runner) recallRecords(ctx context.Context) {
	err := r.cfg.Memory.Records(ctx, func(rec kademlia.Record) bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.node.Keep(rec, time.Now())
		return ctx.Err() == nil
	})
	if err != nil && ctx.Err() == nil {
		r.cfg.Log.Warn("what the DHT kept for others is lost", "error", err)
	}
}

// keepOften writes down what is known, again and again until ctx ends and once
// more then.
func (r *Runner) keepOften(ctx context.Context) {
	r.recallRecords(ctx)
	tick := time.NewTicker(r.cfg.KeepEvery)
	defer tick.Stop()
	for {
		last := false
		select {
		case <-ctx.Done():
			last = true
		case <-tick.C:
		}
		r.keep(context.WithoutCancel(ctx))
		if last {
			return
		}
	}
}

// keep writes down what is known.
func (r *Runner) keep(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var (
		contacts []*kademlia.Contact
		records  []kademlia.Kept
		err      error
	)
	r.mu.Lock()
	contacts, records = r.node.Contacts(), r.node.Changed()
	r.mu.Unlock()
	if len(contacts) > 0 { // if nobody answered, what was known before is worth more
		err = r.cfg.Memory.KeepContacts(ctx, contacts)
	}
	if err == nil {
		err = r.cfg.Memory.KeepRecords(ctx, records)
	}
	if err != nil {
		r.cfg.Log.Warn("what the DHT knows was not kept", "error", err)
	}
}
