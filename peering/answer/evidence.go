package answer

import (
	"context"
	"time"

	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/record"
	"agentsite/peering/translate"
)

// Record implements hub.Network: it returns the signed record of an agent with the card and head of its
// portal, and with prove the proof between them. It works for this portal's own agents too. It returns
// NotFound if there is no record or the agent may not be displayed.
func (n *Network) Record(ctx context.Context, a hub.Agent, prove bool) (hub.Evidence, error) {
	none := fault.New(fault.NotFound, "No signed record of %s is here.", a.Handle())
	portal, id, read := n.cfg.Self, record.AgentID(n.cfg.Self, translate.LocalID(a.ID)), n.cfg.Replica.Agent
	if a.Elsewhere() {
		of, url := n.Owner(a)
		if !n.ShowsHost(a.Portal) || !n.cfg.Registry.Decide(ctx, of, url).Show {
			return hub.Evidence{}, none
		}
		portal, id, read = of, a.ID, n.cfg.Replica.CoveredAgent
	}
	var e hub.Evidence
	var err error
	if e.Card, err = n.cfg.Replica.Card(ctx, portal); err != nil {
		return hub.Evidence{}, err
	}
	if e.Head, err = n.cfg.Replica.Head(ctx, portal); err != nil {
		return hub.Evidence{}, err
	}
	key := record.AgentKey(id)
	if e.Record, err = read(ctx, portal, key); err != nil {
		return hub.Evidence{}, err
	}
	var proof []byte
	if n.cfg.Searcher != nil && e.Record == nil && a.Elsewhere() {
		if f, err := n.cfg.Searcher.Open(ctx, a.Name, a.Portal); err == nil && f.ID == a.ID {
			e.Head, e.Record, proof = f.Head.Wire, f.Record.Wire, f.Proof
		}
	}
	if e.Card == nil || e.Head == nil || e.Record == nil {
		return hub.Evidence{}, none
	}
	r, err := record.Open(n.cfg.Name, e.Record)
	if err != nil {
		return hub.Evidence{}, none
	}
	h, err := record.Open(n.cfg.Name, e.Head)
	if err != nil {
		return hub.Evidence{}, none
	}
	body, ok := r.Body.(*record.Agent)
	head, of := h.Body.(*record.Head)
	if !ok || !of || body.Deleted {
		return hub.Evidence{}, none
	}
	describeRecord(&e, r, body)
	e.HeadHash, e.HeadSeq, e.HeadCount = h.Hash.String(), head.Seq, head.Count
	e.HeadIssued, e.HeadExpires = time.UnixMilli(head.Issued).UTC(), time.UnixMilli(head.Expires).UTC()
	if prove && proof != nil {
		e.Proof = proof
	} else if prove && head.Count <= maxProved {
		var p *record.Proof
		if p, err = n.proveListing(ctx, portal, key); err == nil && p != nil && head.Covers(r, p) {
			e.Proof, err = p.Encode()
		}
	}
	return e, err
}

// maxProved is the largest log for which a hash tree is built for a single proof, which takes about 300 ns
// for each agent.
const maxProved = 100_000

// proveListing returns the proof of an agent in the tree of its portal's records that are held here. It is
// valid under the head only if the log is complete; the caller checks that.
func (n *Network) proveListing(ctx context.Context, portal record.PortalID, key record.Hash) (*record.Proof, error) {
	tree := new(record.Tree)
	err := n.cfg.Replica.Leaves(ctx, portal, func(key, hash record.Hash) bool {
		tree.Set(key, hash)
		return ctx.Err() == nil
	})
	if err != nil {
		return nil, err
	}
	return tree.Prove(key), nil
}

// describeRecord copies those fields of a record to e that hub.Agent does not have.
func describeRecord(e *hub.Evidence, r *record.Record, body *record.Agent) {
	e.Hash, e.Key = r.Hash.String(), string(r.Key)
	e.Issued, e.Expires = time.UnixMilli(r.Issued).UTC(), time.UnixMilli(r.Expires).UTC()
	for _, p := range body.Endpoints {
		e.Endpoints = append(e.Endpoints, hub.Address{Protocol: p.Protocol, URL: p.URL})
	}
	e.CardURL, e.Terms, e.Pricing = body.CardURL, body.Terms, body.Pricing
}
