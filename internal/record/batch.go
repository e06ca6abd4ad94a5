package record

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// MaxBatch is the number of records in one call of AdmitAll.
const MaxBatch = 4096

// Result is the outcome for one record of a batch, as Gate.Admit returns it.
type Result struct {
	Record *Record // nil if the record was refused
	Fresh  bool
	Err    error
}

// AdmitAll is Admit for many records, in order, with their signatures checked on all processors. A
// refused record does not affect the others. It returns an error only if the batch is too large or
// ctx has ended; then records without a result are undecided.
//
// A Memory that implements Bulk is called once for many records. Cards, and the records that need
// them, are best given in separate calls: a record after the card of its own portal waits until the
// card is kept.
//
// The aim is a million records verified and searchable within 120 s on two cores. BenchmarkAdmitAll
// measures the part of this package: about 45 µs of one core for each record, 23 of them for the
// signature if the log has one key.
func (g *Gate) AdmitAll(ctx context.Context, wires [][]byte, now time.Time) ([]Result, error) {
	if len(wires) > MaxBatch {
		return nil, fmt.Errorf("%d records at once are more than %d", len(wires), MaxBatch)
	}
	claims := make([]claim, len(wires))
	runParallel(len(wires), func(i int) {
		claims[i].Record, claims[i].err = Open(g.network, wires[i])
	})
	return g.admitAll(ctx, claims, now)
}

// AdmitSigned is AdmitAll for records that this process has just made with Sign, which has already
// checked their form and made their signatures. All other checks are the same: the time, the key,
// the version, the standing of the portal. Records from any other source must go through Admit or
// AdmitAll.
func (g *Gate) AdmitSigned(ctx context.Context, list []*Record, now time.Time) ([]Result, error) {
	if len(list) > MaxBatch {
		return nil, fmt.Errorf("%d records at once are more than %d", len(list), MaxBatch)
	}
	claims := make([]claim, len(list))
	for i, r := range list {
		if claims[i] = (claim{Record: r, own: true}); r.Type != TypeAgent {
			return nil, fmt.Errorf("a %s is not admitted without a look at its signature", r.Type)
		}
	}
	return g.admitAll(ctx, claims, now)
}

func (g *Gate) admitAll(ctx context.Context, claims []claim, now time.Time) ([]Result, error) {
	results := make([]Result, len(claims))
	for from := 0; from < len(claims); {
		to := from + countIndependent(claims[from:])
		g.admitRun(ctx, claims[from:to], results[from:to], now.UnixMilli())
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		from = to
	}
	for i := range results {
		g.metrics.countResult(results[i].Fresh, results[i].Err)
	}
	return results, nil
}

// countIndependent returns the number of leading claims, at least one, whose signatures can be
// checked before any of them is kept. It stops before a record of a portal whose card is among
// them, and before a fork proof, which may need any card.
func countIndependent(claims []claim) int {
	var carded map[PortalID]bool
	for i := range claims {
		c := &claims[i]
		switch {
		case c.err != nil:
		case carded[c.Portal], c.Type == TypeFork && len(carded) > 0:
			return i
		case c.Type == TypeCard:
			if carded == nil {
				carded = make(map[PortalID]bool)
			}
			carded[c.Portal] = true
		}
	}
	return len(claims)
}

// admitRun admits claims whose signatures do not depend on each other, and fills their results.
func (g *Gate) admitRun(ctx context.Context, claims []claim, results []Result, now int64) {
	g.lookAll(ctx, claims, now)
	g.verifyAll(claims, now)
	b := batch{gate: g, claims: claims, results: results, now: now,
		slots: make(map[Slot]bool), turns: make(map[PortalID]bool), again: make(map[PortalID]bool)}
	for i := range claims {
		b.addClaim(ctx, i)
	}
	b.keepQueued(ctx)
}

// lookAll is lookUp for each claim; it uses Bulk.SeenAll if the memory has it.
func (g *Gate) lookAll(ctx context.Context, claims []claim, now int64) {
	bulk, ok := g.mem.(Bulk)
	var slots []Slot
	var of []*claim
	for i := range claims {
		c := &claims[i]
		if c.err != nil {
			continue
		}
		if c.err = g.checkStanding(ctx, c, now); c.err != nil {
			continue
		}
		if ok {
			slots, of = append(slots, c.Slot()), append(of, c)
		} else if c.seen, c.err = g.mem.Seen(ctx, c.Slot()); c.err == nil {
			c.err = g.compareSeen(ctx, c)
		}
	}
	if len(slots) == 0 {
		return
	}
	seen, err := bulk.SeenAll(ctx, slots)
	for i, c := range of {
		if c.err = err; err == nil {
			c.seen = seen[i]
			c.err = g.compareSeen(ctx, c)
		}
	}
}

// batch keeps verified claims in order, as many in one transaction as are independent of each other.
type batch struct {
	gate    *Gate
	claims  []claim
	results []Result
	now     int64

	wait  []int             // indexes of the claims that wait to be kept
	slots map[Slot]bool     // slots of all claims in the batch so far
	turns map[PortalID]bool // portals with a waiting card or head, which changes their standing
	again map[PortalID]bool // portals whose standing has changed since lookUp
}

// addClaim decides claim i at once if it depends on earlier ones, else queues it for one common
// transaction.
func (b *batch) addClaim(ctx context.Context, i int) {
	c := &b.claims[i]
	if c.err == nil && b.turns[c.Portal] {
		b.keepQueued(ctx)
	}
	switch {
	case c.err != nil:
		b.results[i].Err = c.err
	case b.slots[c.Slot()], c.Type == TypeFork, c.isConflict():
		b.keepQueued(ctx)
		b.finishClaim(ctx, i)
	case c.known && b.again[c.Portal]:
		b.finishClaim(ctx, i)
	case c.known:
		b.results[i].Record = c.Record
	case b.again[c.Portal]:
		if err := b.gate.checkStanding(ctx, c, b.now); err != nil {
			b.results[i].Err = err
			return
		}
		fallthrough
	default:
		b.queueClaim(i)
	}
}

func (b *batch) queueClaim(i int) {
	c := &b.claims[i]
	b.wait = append(b.wait, i)
	b.slots[c.Slot()] = true
	if c.Type == TypeHead || c.Type == TypeCard {
		b.turns[c.Portal] = true
	}
}

// keepQueued stores the queued claims in one call of Bulk.KeepAll. Claims whose slot was changed by
// another call meanwhile are checked again, one by one.
func (b *batch) keepQueued(ctx context.Context) {
	kept := make([]bool, len(b.wait))
	if bulk, ok := b.gate.mem.(Bulk); ok && len(b.wait) > 1 {
		list := make([]Keeping, len(b.wait))
		for n, i := range b.wait {
			c := &b.claims[i]
			list[n] = Keeping{c.Record, c.seen, c.rememberUntil()}
		}
		var err error
		if kept, err = bulk.KeepAll(ctx, list); err != nil {
			for _, i := range b.wait {
				b.results[i].Err = fmt.Errorf("keep records: %w", err)
			}
			kept = nil
		}
	}
	for n, ok := range kept {
		i := b.wait[n]
		if ok {
			b.results[i] = Result{Record: b.claims[i].Record, Fresh: true}
			continue
		}
		b.finishClaim(ctx, i)
	}
	for id := range b.turns {
		b.again[id] = true
	}
	b.wait = b.wait[:0]
	clear(b.turns)
}

// finishClaim decides one claim. It is checked again if an earlier claim may have changed its
// state.
func (b *batch) finishClaim(ctx context.Context, i int) {
	c := &b.claims[i]
	if b.slots[c.Slot()] || b.again[c.Portal] {
		unverified := c.known
		err := b.gate.lookUp(ctx, c, b.now)
		if err == nil && unverified && !c.known {
			err = b.gate.verifyClaim(c, b.now)
		}
		if err != nil {
			b.results[i].Err = err
			return
		}
	}
	b.results[i].Record, b.results[i].Fresh, b.results[i].Err = b.gate.finishClaim(ctx, c, b.now)
	if f, ok := c.Body.(*Fork); ok {
		b.again[f.Subject] = true
	}
	b.again[c.Portal] = true // The claim may have caused a quarantine, so the standing must be read again.
}

// runParallel calls do(0) to do(n-1) on all processors and waits for them.
func runParallel(n int, do func(int)) {
	runPieces(n, 16, func(from, to int) { // pieces of 16, so that the shared counter costs little
		for i := from; i < to; i++ {
			do(i)
		}
	})
}

// runPieces calls do for all of 0 to n-1, a piece at a time, on all processors and waits for them.
func runPieces(n, piece int, do func(from, to int)) {
	var next atomic.Int64
	work := func() {
		for {
			end := int(next.Add(int64(piece)))
			if from := end - piece; from < n {
				do(from, min(end, n))
			}
			if end >= n {
				return
			}
		}
	}
	if n <= piece {
		work()
		return
	}
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), (n+piece-1)/piece) {
		wg.Go(work)
	}
	wg.Wait()
}
