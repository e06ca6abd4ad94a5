package catalog

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"agentsite/internal/federation"
	"agentsite/internal/record"
)

// maxSummed bounds the summaries in memory, in bytes: about 12,000 portals with a thousand agents each. A
// summary that does not fit is ignored.
const maxSummed = 128 << 20

// Summaries holds the summaries of portals in memory, so that a search can choose the portals to ask.
// Create it with NewSummaries; it is safe for concurrent use.
type Summaries struct {
	network string
	replica federation.Replica
	log     *slog.Logger

	mu    sync.RWMutex // guards the fields below
	list  map[record.PortalID]*Summary
	bytes int // memory used by list
}

// Summary is a decoded summary of a portal. It is immutable.
type Summary struct {
	version        record.Version
	expires        int64
	Terms          record.Bloom
	FalsePositives float64 // probability that the filter matches a term that is not in it
	Capabilities   map[string]int64
	Languages      map[string]bool
	bytes          int
}

// NewSummaries returns an empty Summaries; Run or Load reads those in the replica.
func NewSummaries(network string, replica federation.Replica, log *slog.Logger) *Summaries {
	return &Summaries{network: network, replica: replica, log: log, list: make(map[record.PortalID]*Summary)}
}

// Run loads the summaries that the Replica holds, and then waits until ctx ends. A failure is logged:
// searches then choose portals without summaries.
func (s *Summaries) Run(ctx context.Context) error {
	if err := s.Load(ctx); err != nil && ctx.Err() == nil {
		s.log.Warn("read summaries of portals; whom a search asks is chosen without", "error", err)
	}
	<-ctx.Done()
	return nil
}

// Load reads the summaries that the Replica holds into memory. Invalid ones are skipped.
func (s *Summaries) Load(ctx context.Context) error {
	const page = 100
	for after := int64(0); ; {
		rows, err := s.replica.Others(ctx, []record.Type{record.TypeSummary}, after, page)
		if err != nil || len(rows) == 0 {
			return err
		}
		for _, row := range rows {
			after = row.Number
			if r, err := record.Open(s.network, row.Wire); err == nil {
				s.Put(r)
			}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// Put adds a summary that a record.Gate admitted, unless a newer one of the same portal is there.
func (s *Summaries) Put(r *record.Record) {
	body, ok := r.Body.(*record.Summary)
	if !ok {
		return
	}
	n := &Summary{version: r.Version(), expires: r.Expires, Terms: body.Terms, FalsePositives: body.Terms.Wrong(),
		bytes:        len(body.Terms) + 256,
		Capabilities: make(map[string]int64, len(body.Caps)), Languages: make(map[string]bool, len(body.Languages))}
	for _, c := range body.Caps {
		n.Capabilities[c.Cap] = c.Count
		n.bytes += len(c.Cap) + 48
	}
	for _, l := range body.Languages {
		n.Languages[l] = true
		n.bytes += len(l) + 32
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.list[r.Portal]
	if was != nil && was.version.Compare(n.version) >= 0 {
		return
	}
	if was != nil {
		s.bytes -= was.bytes
		delete(s.list, r.Portal)
	}
	if s.bytes+n.bytes > maxSummed {
		s.sweepExpired(r.Issued)
	}
	if s.bytes+n.bytes <= maxSummed {
		s.list[r.Portal] = n
		s.bytes += n.bytes
	}
}

// sweepExpired removes the summaries that expired before now, in Unix ms. The caller holds mu.
func (s *Summaries) sweepExpired(now int64) {
	for id, o := range s.list {
		if o.expires <= now {
			s.bytes -= o.bytes
			delete(s.list, id)
		}
	}
}

// Get returns the unexpired summary of a portal, nil if there is none.
func (s *Summaries) Get(portal record.PortalID, now time.Time) *Summary {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if n := s.list[portal]; n != nil && n.expires > now.UnixMilli() {
		return n
	}
	return nil
}
