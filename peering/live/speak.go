package live

import (
	"context"
	"errors"
	"fmt"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/record"
)

// speak signs what is due, and sends what is urgent.
func (s *Service) speak(ctx context.Context) {
	now := clock.Now()
	for _, d := range s.own.due(s.cfg.Signer.ID(), now) {
		if ctx.Err() != nil {
			return
		}
		r, err := s.sign(ctx, now, wordLife, &record.Live{Subject: d.subject, Shard: d.shard, Words: d.words})
		if err != nil {
			if ctx.Err() == nil {
				s.cfg.Log.Warn("sign what was seen of agents", "subject", d.subject, "shard", d.shard, "error", err)
			}
			continue // the next step tries again
		}
		s.own.said(d, now)
		if d.urgent {
			s.send(r.Wire, somePeers)
		}
	}
}

// sign fills in the header of a body, signs it and keeps it, so that the
// version is on disk before anybody sees it. Each record begins an epoch, that
// of the time: a Replica that was lost, or came back from a backup, does not
// know of the versions that were used since, and one used twice is a lie.
func (s *Service) sign(ctx context.Context, now time.Time, life time.Duration, body record.Body) (*record.Record, error) {
	_, key, until, err := s.cfg.Signer.Key(now)
	if err != nil {
		return nil, err
	}
	h := record.Header{Portal: s.cfg.Signer.ID(), Epoch: now.UnixMilli(), Seq: 1, Issued: now.UnixMilli(), Expires: now.Add(life).UnixMilli()}
	slot := record.Slot{Portal: h.Portal}
	switch b := body.(type) {
	case *record.Live:
		slot.Type, slot.About = record.TypeLive, string(b.Subject)+"/"+b.Shard
		h.Expires = min(h.Expires, until.UnixMilli()) // attestations and proofs outlive their key
	case *record.Fork:
		slot.Type, slot.About = record.TypeFork, string(b.Subject)
	default:
		return nil, fmt.Errorf("nothing that is said here: %T", body)
	}
	seen, err := s.cfg.Replica.Seen(ctx, slot)
	if err != nil {
		return nil, err
	}
	if seen.Version.Compare(record.Version{Epoch: h.Epoch, Seq: h.Seq}) >= 0 { // twice in a millisecond, or the clock went back
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
		err = errors.New("the same was said before")
	}
	return r, err
}

// forkLife is how long a proof is told: longer than anybody forgets a head.
const forkLife = 365 * 24 * time.Hour

// accuse makes the proof against portals that were caught here, for others.
func (s *Service) accuse(ctx context.Context) {
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
			continue // what it signed twice proves nothing elsewhere
		}
		r, err := s.sign(ctx, clock.Now(), forkLife, f)
		if err != nil {
			s.cfg.Log.Warn("prove that a portal lied", "portal", id, "error", err)
			continue
		}
		s.send(r.Wire, allPeers)
	}
}
