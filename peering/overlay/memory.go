package overlay

import (
	"context"

	"agentsite/internal/federation"
	"agentsite/internal/record"
	"agentsite/peering/kademlia"
)

// memory implements dht.Memory: it keeps contacts and records in replica.db, through Config.Store.
type memory struct{ o *Overlay }

// Contacts implements dht.Memory. A contact that is no longer valid is returned with its id alone.
func (m memory) Contacts(ctx context.Context) ([]*kademlia.Contact, error) {
	nodes, err := m.o.cfg.Store.DHTNodes(ctx)
	if err != nil {
		return nil, err
	}
	var out []*kademlia.Contact
	for _, n := range nodes {
		c := &kademlia.Contact{ID: kademlia.ID(n.ID)}
		if known, err := m.o.readContact(c.ID, n.Node); err == nil {
			c = known
		} // keep the bare id: the portal's last known address may still be right
		out = append(out, c)
	}
	return out, nil
}

// KeepContacts implements dht.Memory; it replaces all stored contacts.
func (m memory) KeepContacts(ctx context.Context, all []*kademlia.Contact) error {
	nodes := make([]federation.DHTNode, len(all))
	for i, c := range all {
		nodes[i] = federation.DHTNode{ID: record.Hash(c.ID), Node: c.Node}
	}
	return m.o.cfg.Store.KeepDHTNodes(ctx, nodes)
}

// Records implements dht.Memory. The signatures of the records are not checked here.
func (m memory) Records(ctx context.Context, yield func(kademlia.Record) bool) error {
	return m.o.cfg.Store.DHTRecords(ctx, func(key record.Hash, value []byte) bool {
		return yield(kademlia.Record{Key: kademlia.ID(key), Value: value})
	})
}

// KeepRecords implements dht.Memory. A record replaces one of the same key and publisher.
func (m memory) KeepRecords(ctx context.Context, more []kademlia.Kept) error {
	rows := make([]federation.DHTRecord, len(more))
	for i, k := range more {
		rows[i] = federation.DHTRecord{Key: record.Hash(k.Key), Publisher: record.Hash(k.Publisher),
			Expires: k.Expires.UnixMilli(), Value: k.Value}
	}
	return m.o.cfg.Store.KeepDHTRecords(ctx, rows)
}

// Forget implements dht.Memory; it deletes the publisher's contact and records.
func (m memory) Forget(ctx context.Context, publisher kademlia.ID) error {
	return m.o.cfg.Store.ForgetDHT(ctx, record.Hash(publisher))
}
