package live

import (
	"context"
	"sync"

	"agentsite/internal/clock"
	"agentsite/internal/federation"
	"agentsite/internal/record"
)

// MaxRecords is how many records one request may bring.
const MaxRecords = 64

// Take takes in records that a portal sent, of whomever. What is refused is
// counted against it where it should have known; the rest stays. The error is
// the Replica's.
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
		switch reason := s.welcome(ctx, r); reason {
		case "":
			in, place = append(in, wire), append(place, n)
		case known: // nobody needs to send it again
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
			s.admitted(res)
			continue
		}
		why := record.ReasonOf(res.Err)
		if why == "" {
			return nil, res.Err
		}
		if why == record.Equivocation {
			if r, err := record.Open(s.cfg.Signer.Network(), in[i]); err == nil {
				s.cfg.Registry.Fault(r.Portal, string(why)) // who signed both, not who shows it
			}
		}
		refuse(place[i], string(why), blames(why))
	}
	if fresh {
		s.wake()
	}
	return refused, nil
}

// blames reports whether who hands on a record that is refused so should have
// known: it is wrong for everybody, always.
func blames(why record.Reason) bool {
	switch why {
	case record.BadSignature, record.BadEvidence, record.TooLong:
		return true
	}
	return false // others depend on the time, and on what who takes it has seen
}

// known is what welcome says of what would change nothing.
const known = "known"

// welcome says why a well-formed record is not wanted, before its signature is
// looked at: "" when it is.
func (s *Service) welcome(ctx context.Context, r *record.Record) string {
	self := s.cfg.Signer.ID()
	if r.Portal == self {
		return known // nobody tells this portal what it said
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
	if !s.counts.room(r, p.proved || p.pinned) {
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

// admitted acts on a record that was let in.
func (s *Service) admitted(res record.Result) {
	if f, ok := res.Record.Body.(*record.Fork); ok && res.Fresh {
		s.cfg.Registry.Fault(f.Subject, string(record.Equivocation))
	}
}

// counts bounds the attestations and fork proofs of each portal, which live for
// long. The zero value is empty.
type counts struct {
	mu   sync.Mutex // guards held
	held map[record.PortalID]map[record.Slot]bool
}

// maxStatements is how many attestations and fork proofs are held of one
// portal; of one that is not proved a tenth.
const maxStatements = 500

func (c *counts) add(r *record.Record) {
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

func (c *counts) room(r *record.Record, proved bool) bool {
	most := maxStatements
	if !proved {
		most /= 10
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.held[r.Portal][r.Slot()] || len(c.held[r.Portal]) < most
}
