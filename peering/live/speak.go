package live

import (
	"context"
	"errors"
	"fmt"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/record"
)

// signReports signs the due shards, and sends the urgent ones.
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
			continue // the next step tries again
		}
		s.own.noteSigned(d, now)
		if d.urgent {
			s.queueRecord(r.Wire, somePeers)
		}
	}
}

// signRecord fills in the header of a body, signs it and stores it, so that the version is on disk
// before any portal sees it. Each record starts a new epoch, the current time: a Replica that was
// lost, or restored from a backup, does not know the versions used since, and a version signed
// twice counts as a lie.
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
		h.Expires = min(h.Expires, until.UnixMilli()) // attestations and proofs outlive their key
	case *record.Fork:
		slot.Type, slot.About = record.TypeFork, string(b.Subject)
	default:
		return nil, fmt.Errorf("a body of the type %T is not signed here", body)
	}
	seen, err := s.cfg.Replica.Seen(ctx, slot)
	if err != nil {
		return nil, err
	}
	// twice in a millisecond, or the clock went back
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

// forkLife is the lifetime of a fork proof: longer than portals remember a head.
const forkLife = 365 * 24 * time.Hour

// signProofs makes proofs for other portals against the equivocators that were caught here.
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
			continue // the records signed twice are no heads, so they prove nothing to others
		}
		r, err := s.signRecord(ctx, clock.Now(), forkLife, f)
		if err != nil {
			s.cfg.Log.Warn("sign a fork proof", "portal", id, "error", err)
			continue
		}
		s.queueRecord(r.Wire, allPeers)
	}
}
