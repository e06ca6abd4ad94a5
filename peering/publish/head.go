package publish

import (
	"context"
	"fmt"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/record"
)

// lead signs and stores a new head if one is needed: the agents changed, half the life or the lease of the
// last head is over, its key is no longer used, or there is none.
func (p *Publisher) lead(ctx context.Context) error {
	w, err := p.newPen()
	if err != nil {
		return err
	}
	p.mu.Lock()
	root, count, head := p.tree.Root(), int64(p.tree.Len()), p.head
	p.mu.Unlock()
	changed := true
	if head != nil {
		h := head.Body.(*record.Head)
		changed = p.dirty || h.Root != root || h.Count != count
		if !changed && head.Key == record.KeyIDOf(record.PublicOf(w.key)) && p.ring.Has(head.Key) &&
			time.Since(p.headAt) < min(lease, time.Duration(head.Expires-head.Issued)*time.Millisecond/2) {
			return nil
		}
	}
	if err := p.signSummary(ctx, w, changed); err != nil {
		return err
	}
	h := &record.Head{Header: p.nextHeader(w, w.now+headLife.Milliseconds()), Count: count, Root: root,
		LogStart: min(p.logStart, p.seq), Summary: p.summary.hash}
	if head != nil {
		h.Prev = head.Hash
	}
	r, err := record.Sign(p.cfg.Signer.Network(), h, w.key)
	if err != nil {
		return fmt.Errorf("sign a head: %w", err)
	}
	if err := p.admitRecord(ctx, r); err != nil {
		return fmt.Errorf("store a head: %w", err)
	}
	p.mu.Lock()
	p.head = r
	p.mu.Unlock()
	p.headAt, p.dirty = time.Now(), false
	if p.cfg.Network != nil {
		p.cfg.Network.HeadPublished(r.Wire)
	}
	return nil
}

// admitRecord stores a head or summary of this portal through the gate. After an internal error the log is
// read again; after a conflict with an existing version a new epoch begins.
func (p *Publisher) admitRecord(ctx context.Context, r *record.Record) error {
	_, _, err := p.cfg.Gate.Admit(ctx, r.Wire, clock.Now())
	switch why := record.ReasonOf(err); {
	case err == nil:
	case why == "":
		p.loaded = false // unknown whether it was stored: read the state again
	case why == record.Stale, why == record.Equivocation:
		p.floor = p.epoch + 1
	}
	return err
}
