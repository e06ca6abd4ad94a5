package live

import (
	"context"
	"sync"

	"agentsite/internal/clock"
	"agentsite/internal/federation"
	"agentsite/internal/record"
)

// MaxRecords bounds the records of one call of Take.
const MaxRecords = 64

// Take verifies and stores the records that the portal from sent, whichever portals signed them. The result
// lists the refused ones by their index; the others are stored. A refusal counts as a fault of the sender
// if the sender could have found the defect. err is a failure of the Replica.
func (s *Service) Take(ctx context.Context, from record.PortalID, wires [][]byte) ([]federation.Unfit, error) {
	refused := []federation.Unfit{}
	refuse := func(n int, reason string, fault bool) {
		refused = append(refused, federation.Unfit{N: n, Reason: reason})
		if fault {
			s.cfg.Registry.Fault(from, reason)
		}
	}
	var in [][]byte
	var place []int
	for n, wire := range wires {
		r, err := record.Open(s.cfg.Signer.Network(), wire)
		if err != nil {
			why := record.ReasonOf(err)
			refuse(n, string(why), why != record.Unknown)
			continue
		}
		switch reason := s.refusalReason(ctx, r); reason {
		case "":
			in, place = append(in, wire), append(place, n)
		case known: // skip duplicates without an error
		default:
			refuse(n, reason, false)
		}
	}
	results, err := s.cfg.Gate.AdmitAll(ctx, in, clock.Now())
	if err != nil {
		return nil, err
	}
	fresh := false
	for i, res := range results {
		if res.Err == nil {
			fresh = fresh || res.Fresh
			s.handleAdmitted(res)
			continue
		}
		why := record.ReasonOf(res.Err)
		if why == "" {
			return nil, res.Err
		}
		if why == record.Equivocation {
			if r, err := record.Open(s.cfg.Signer.Network(), in[i]); err == nil {
				// the signer of both versions is at fault, not the sender
				s.cfg.Registry.Fault(r.Portal, string(why))
			}
		}
		refuse(place[i], string(why), blamesSender(why))
	}
	if fresh {
		s.wakeRun()
	}
	return refused, nil
}

// blamesSender reports whether a refusal with this reason is the sender's fault: the defect is visible to
// every portal at any time.
func blamesSender(why record.Reason) bool {
	switch why {
	case record.BadSignature, record.BadEvidence, record.TooLong:
		return true
	}
	return false // other reasons depend on the time or on data of this portal
}

// known is returned by refusalReason for a record that would change nothing.
const known = "known"

// refusalReason returns the reason to refuse a decoded record before its signature is checked, which is
// expensive; "" to go on.
func (s *Service) refusalReason(ctx context.Context, r *record.Record) string {
	self := s.cfg.Signer.ID()
	if r.Portal == self {
		return known // this portal has all its own records
	}
	peers := *s.peers.Load()
	p := peers[r.Portal]
	if d := s.cfg.Registry.Decide(ctx, r.Portal, p.origin); !d.Take {
		return stateReason(d)
	}
	switch b := r.Body.(type) {
	case *record.Live:
		if b.Subject != self {
			if d := s.cfg.Registry.Decide(ctx, b.Subject, peers[b.Subject].origin); !d.Show {
				return stateReason(d)
			}
		}
		if !s.voices.Room(r, p.proved || p.pinned) {
			return "limit"
		}
		return ""
	case *record.Fork:
		if b.Subject == self {
			s.cfg.Log.Error("another portal says that this one signed two heads of one version; if its data was restored from a backup while the old one still ran, stop the old one", "portal", r.Portal)
			return string(record.BadEvidence)
		}
		if st, err := s.cfg.Replica.Standing(ctx, b.Subject); err != nil || st.Quarantined {
			return known
		}
	case *record.Attest:
	default:
		return string(record.Unknown)
	}
	if !s.counts.hasRoom(r, p.proved || p.pinned) {
		return "limit"
	}
	return ""
}

func stateReason(d federation.Decision) string {
	if d.State == "" || d.State == federation.Active {
		return string(federation.Pending)
	}
	return string(d.State)
}

// handleAdmitted applies a record that the gate has stored: a new fork proof is a fault of the accused
// portal.
func (s *Service) handleAdmitted(res record.Result) {
	if f, ok := res.Record.Body.(*record.Fork); ok && res.Fresh {
		s.cfg.Registry.Fault(f.Subject, string(record.Equivocation))
	}
}

// counts limits the attestations and fork proofs stored of each signing portal, because they live
// long. The zero value is empty; it is safe for concurrent use.
type counts struct {
	mu   sync.Mutex // guards held
	held map[record.PortalID]map[record.Slot]bool
}

// maxStatements bounds these records for one portal; one without a verified address may have a tenth.
const maxStatements = 500

func (c *counts) addRecord(r *record.Record) {
	if r.Type == record.TypeLive {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held == nil {
		c.held = make(map[record.PortalID]map[record.Slot]bool)
	}
	if c.held[r.Portal] == nil {
		c.held[r.Portal] = make(map[record.Slot]bool)
	}
	c.held[r.Portal][r.Slot()] = true
}

func (c *counts) hasRoom(r *record.Record, proved bool) bool {
	most := maxStatements
	if !proved {
		most /= 10
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.held[r.Portal][r.Slot()] || len(c.held[r.Portal]) < most
}
