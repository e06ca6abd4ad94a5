package live

import (
	"context"
	"errors"
	"fmt"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/record"
)

// signReports signs and stores the due reports. Urgent ones are queued for other portals; the others are
// pulled.
func (s *Service) signReports(ctx context.Context) {
	now := clock.Now()
	for _, d := range s.own.dueShards(s.cfg.Signer.ID(), now) {
		if ctx.Err() != nil {
			return
		}
		r, err := s.signRecord(ctx, now, reportLife, &record.Live{Subject: d.subject, Shard: d.shard, Words: d.words})
		if err != nil {
			if ctx.Err() == nil {
				s.cfg.Log.Warn("sign a liveness report", "subject", d.subject, "shard", d.shard, "error", err)
			}
			continue // the shard stays due for the next step
		}
		s.own.noteSigned(d, now)
		if d.urgent {
			s.queueRecord(r.Wire, somePeers)
		}
	}
}

// signRecord fills in the header of a report or a fork proof, signs it and stores it, so that the version
// is on disk before another portal can see it. Each record starts a new epoch, the current time. A Replica
// that was lost or restored from a backup does not know the versions used since, and signing a version
// twice would make this portal an equivocator.
func (s *Service) signRecord(ctx context.Context, now time.Time, life time.Duration, body record.Body) (*record.Record,
	error) {
	_, key, until, err := s.cfg.Signer.Key(now)
	if err != nil {
		return nil, err
	}
	h := record.Header{Portal: s.cfg.Signer.ID(), Epoch: now.UnixMilli(), Seq: 1, Issued: now.UnixMilli(),
		Expires: now.Add(life).UnixMilli()}
	slot := record.Slot{Portal: h.Portal}
	switch b := body.(type) {
	case *record.Live:
		slot.Type, slot.About = record.TypeLive, string(b.Subject)+"/"+b.Shard
		h.Expires = min(h.Expires, until.UnixMilli()) // reports expire with their key; fork proofs outlive it
	case *record.Fork:
		slot.Type, slot.About = record.TypeFork, string(b.Subject)
	default:
		return nil, fmt.Errorf("a body of the type %T is not signed here", body)
	}
	seen, err := s.cfg.Replica.Seen(ctx, slot)
	if err != nil {
		return nil, err
	}
	// Avoid a used version if two records are signed in one millisecond or the clock went back.
	if seen.Version.Compare(record.Version{Epoch: h.Epoch, Seq: h.Seq}) >= 0 {
		h.Epoch, h.Seq = seen.Epoch, seen.Seq+1
	}
	switch b := body.(type) {
	case *record.Live:
		b.Header = h
	case *record.Fork:
		b.Header = h
	}
	r, err := record.Sign(s.cfg.Signer.Network(), body, key)
	if err != nil {
		return nil, err
	}
	_, fresh, err := s.cfg.Gate.Admit(ctx, r.Wire, now)
	if err == nil && !fresh {
		err = errors.New("the same record was signed before")
	}
	return r, err
}

// forkLife is the lifetime of a fork proof. It is longer than portals remember a head.
const forkLife = 365 * 24 * time.Hour

// signProofs signs and queues a proof against each equivocator that this portal has detected, once for
// each.
func (s *Service) signProofs(ctx context.Context) {
	for id, p := range *s.peers.Load() {
		if !p.caught || s.accused[id] || ctx.Err() != nil {
			continue
		}
		c, err := s.cfg.Replica.Quarantined(ctx, id)
		if err != nil || c == nil {
			continue
		}
		f := c.Proof()
		s.accused[id] = true
		if f == nil {
			continue // the equal versions are not heads, so they prove nothing to others
		}
		r, err := s.signRecord(ctx, clock.Now(), forkLife, f)
		if err != nil {
			s.cfg.Log.Warn("sign a fork proof", "portal", id, "error", err)
			continue
		}
		s.queueRecord(r.Wire, allPeers)
	}
}
