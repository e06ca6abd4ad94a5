package record

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// MaxBatch bounds how many records AdmitAll takes at once.
const MaxBatch = 4096

// Result is what became of one record of a batch: see Gate.Admit.
type Result struct {
	Record *Record // nil when refused
	Fresh  bool
	Err    error
}

// AdmitAll is Admit for many records, in order, with their signatures checked
// on all processors. A refused record harms no other. It returns an error only
// when the batch is too large or ctx has ended; then nothing is known of those
// without a result.
//
// A Memory that is a Bulk is asked once for many. Cards, and then what they are
// needed for, are best given apart: what follows the card of its own portal
// waits until that is kept.
//
// The aim is a million records verified and searchable within 120 s on two
// cores. BenchmarkAdmitAll shows the part of it that is spent here: about 45 µs
// of one core for each, 23 of them the signature when a log is of one key.
func (g *Gate) AdmitAll(ctx context.Context, wires [][]byte, now time.Time) ([]Result, error) {
	if len(wires) > MaxBatch {
		return nil, fmt.Errorf("%d records at once are more than %d", len(wires), MaxBatch)
	}
	claims := make([]claim, len(wires))
	spread(len(wires), func(i int) {
		claims[i].Record, claims[i].err = Open(g.network, wires[i])
	})
	return g.admitAll(ctx, claims, now)
}

// AdmitSigned is AdmitAll for records that this process has just made with Sign,
// which opened them and made their signatures: neither is done again. All else
// is asked as of any record: the time, the key, the version, the standing of the
// portal. Records that were read from anywhere go through Admit or AdmitAll.
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
		to := from + independent(claims[from:])
		g.admitRun(ctx, claims[from:to], results[from:to], now.UnixMilli())
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		from = to
	}
	for i := range results {
		g.tally.note(results[i].Fresh, results[i].Err)
	}
	return results, nil
}

// independent returns how many of the claims, the first at least, come before
// one whose signature cannot be looked at before they are kept: that of a
// portal whose card is among them, or a fork proof, which may need any card.
func independent(claims []claim) int {
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

// admitRun admits claims whose signatures do not depend on each other.
func (g *Gate) admitRun(ctx context.Context, claims []claim, results []Result, now int64) {
	g.lookAll(ctx, claims, now)
	g.verifyAll(claims, now)
	b := batch{gate: g, claims: claims, results: results, now: now,
		slots: make(map[Slot]bool), turns: make(map[PortalID]bool), again: make(map[PortalID]bool)}
	for i := range claims {
		b.add(ctx, i)
	}
	b.flush(ctx)
}

// lookAll is look for each.
func (g *Gate) lookAll(ctx context.Context, claims []claim, now int64) {
	bulk, ok := g.mem.(Bulk)
	var slots []Slot
	var of []*claim
	for i := range claims {
		c := &claims[i]
		if c.err != nil {
			continue
		}
		if c.err = g.stand(ctx, c, now); c.err != nil {
			continue
		}
		if ok {
			slots, of = append(slots, c.Slot()), append(of, c)
		} else if c.seen, c.err = g.mem.Seen(ctx, c.Slot()); c.err == nil {
			c.err = g.compare(ctx, c)
		}
	}
	if len(slots) == 0 {
		return
	}
	seen, err := bulk.SeenAll(ctx, slots)
	for i, c := range of {
		if c.err = err; err == nil {
			c.seen = seen[i]
			c.err = g.compare(ctx, c)
		}
	}
}

// batch lets claims take their slots in order, as many at once as do not
// depend on each other.
type batch struct {
	gate    *Gate
	claims  []claim
	results []Result
	now     int64

	wait  []int             // claims that wait to be kept
	slots map[Slot]bool     // of all so far
	turns map[PortalID]bool // portals whose standing they change
	again map[PortalID]bool // portals whose standing has changed since it was looked at
}

// add settles claim i, or lets it wait for others to be kept with.
func (b *batch) add(ctx context.Context, i int) {
	c := &b.claims[i]
	if c.err == nil && b.turns[c.Portal] {
		b.flush(ctx)
	}
	switch {
	case c.err != nil:
		b.results[i].Err = c.err
	case b.slots[c.Slot()], c.Type == TypeFork, c.contradicts():
		b.flush(ctx)
		b.finish(ctx, i)
	case c.known && b.again[c.Portal]:
		b.finish(ctx, i)
	case c.known:
		b.results[i].Record = c.Record
	case b.again[c.Portal]:
		if err := b.gate.stand(ctx, c, b.now); err != nil {
			b.results[i].Err = err
			return
		}
		fallthrough
	default:
		b.put(i)
	}
}

// put lets claim i wait.
func (b *batch) put(i int) {
	c := &b.claims[i]
	b.wait = append(b.wait, i)
	b.slots[c.Slot()] = true
	if c.Type == TypeHead || c.Type == TypeCard {
		b.turns[c.Portal] = true
	}
}

// flush keeps what waits. Those whose slot was taken by somebody quicker are
// looked at anew, one by one.
func (b *batch) flush(ctx context.Context) {
	kept := make([]bool, len(b.wait))
	if bulk, ok := b.gate.mem.(Bulk); ok && len(b.wait) > 1 {
		list := make([]Keeping, len(b.wait))
		for n, i := range b.wait {
			c := &b.claims[i]
			list[n] = Keeping{c.Record, c.seen, c.until()}
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
		b.finish(ctx, i)
	}
	for id := range b.turns {
		b.again[id] = true
	}
	b.wait = b.wait[:0]
	clear(b.turns)
}

// finish settles one claim, which is looked at anew if one before it may have
// changed what was seen.
func (b *batch) finish(ctx context.Context, i int) {
	c := &b.claims[i]
	if b.slots[c.Slot()] || b.again[c.Portal] {
		unverified := c.known
		err := b.gate.look(ctx, c, b.now)
		if err == nil && unverified && !c.known {
			err = b.gate.verify(c, b.now)
		}
		if err != nil {
			b.results[i].Err = err
			return
		}
	}
	b.results[i].Record, b.results[i].Fresh, b.results[i].Err = b.gate.finish(ctx, c, b.now)
	if f, ok := c.Body.(*Fork); ok {
		b.again[f.Subject] = true
	}
	b.again[c.Portal] = true // it may have been convicted
}

// spread calls do(0) to do(n-1) on all processors and waits for them.
func spread(n int, do func(int)) {
	pieces(n, 16, func(from, to int) { // so that the counter costs nothing
		for i := from; i < to; i++ {
			do(i)
		}
	})
}

// pieces calls do for all of 0 to n-1, a piece at a time, on all processors and
// waits for them.
func pieces(n, piece int, do func(from, to int)) {
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
