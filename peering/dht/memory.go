package dht

import (
	"context"
	"time"

	"agentsite/peering/kademlia"
)

// seedNode adds the contacts of Config.Seeds every seedEvery, while the node has no contacts.
func (r *Runner) seedNode(ctx context.Context) {
	if r.cfg.Seeds == nil {
		return
	}
	tick := time.NewTicker(seedEvery)
	defer tick.Stop()
	for {
		known := 0
		r.ViewNode(func(n *kademlia.Node) { known = n.Known() })
		if known == 0 {
			if all := r.cfg.Seeds(ctx); len(all) > 0 {
				r.updateNode(func(n *kademlia.Node, _ time.Time) { n.Join(all) })
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// loadContacts joins the network by the contacts stored in the last run. Without Memory it does nothing.
func (r *Runner) loadContacts(ctx context.Context) error {
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

// loadRecords adds the stored records one by one, because each signature is checked. The node answers
// requests meanwhile.
func (r *Runner) loadRecords(ctx context.Context) {
	err := r.cfg.Memory.Records(ctx, func(rec kademlia.Record) bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.node.Keep(rec, time.Now())
		return ctx.Err() == nil
	})
	if err != nil && ctx.Err() == nil {
		r.cfg.Log.Warn("load the stored records of the DHT", "error", err)
	}
}

// saveRegularly writes contacts and records to Memory at intervals, and once more when ctx ends.
func (r *Runner) saveRegularly(ctx context.Context) {
	r.loadRecords(ctx)
	tick := time.NewTicker(r.cfg.KeepEvery)
	defer tick.Stop()
	for {
		last := false
		select {
		case <-ctx.Done():
			last = true
		case <-tick.C:
		}
		r.saveState(context.WithoutCancel(ctx))
		if last {
			return
		}
	}
}

// saveState writes the contacts, and the records that are new since the last call, to Memory.
func (r *Runner) saveState(ctx context.Context) {
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
	if len(contacts) > 0 { // an empty list must not replace the contacts saved before
		err = r.cfg.Memory.KeepContacts(ctx, contacts)
	}
	if err == nil {
		err = r.cfg.Memory.KeepRecords(ctx, records)
	}
	if err != nil {
		r.cfg.Log.Warn("save the state of the DHT", "error", err)
	}
}
