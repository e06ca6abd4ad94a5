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
// The aim is a million records verified and searchable within 120 s on two
// cores. BenchmarkAdmitAll shows the part of it that is spent here: about 86 µs
// of one core for each, 55 of them the signature.
func (g *Gate) AdmitAll(ctx context.Context, wires [][]byte, now time.Time) ([]Result, error) {
	if len(wires) > MaxBatch {
		return nil, fmt.Errorf("%d records at once are more than %d", len(wires), MaxBatch)
	}
	results := make([]Result, len(wires))
	claims := make([]claim, len(wires))
	spread(len(wires), func(i int) {
		claims[i].Record, claims[i].err = Open(g.network, wires[i])
	})
	for from := 0; from < len(claims); {
		// What follows a card may need it, and so waits for it.
		to := from
		for to < len(claims) && (claims[to].err != nil || claims[to].Type != TypeCard && claims[to].Type != TypeFork) {
			to++
		}
		g.admitRun(ctx, claims[from:to], results[from:to], now.UnixMilli())
		if to < len(claims) {
			results[to] = g.one(ctx, wires[to], now)
			to++
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		from = to
	}
	return results, nil
}

func (g *Gate) one(ctx context.Context, wire []byte, now time.Time) Result {
	r, fresh, err := g.Admit(ctx, wire, now)
	return Result{r, fresh, err}
}

// admitRun admits claims none of which can change who may sign the others.
func (g *Gate) admitRun(ctx context.Context, claims []claim, results []Result, now int64) {
	for i := range claims {
		if c := &claims[i]; c.err == nil {
			c.err = g.look(ctx, c, now)
		}
	}
	spread(len(claims), func(i int) {
		if c := &claims[i]; c.err == nil && !c.known {
			c.err = g.verify(c, now)
		}
	})
	again := false
	for i := range claims {
		c := &claims[i]
		if c.err == nil && again {
			c.err = g.look(ctx, c, now)
		}
		if c.err != nil {
			results[i].Err = c.err
			continue
		}
		// Whoever was quicker with the slot, also of this batch, is seen by
		// finish; what else a record can change for those after it is the
		// standing of its portal.
		var err error
		results[i].Record, results[i].Fresh, err = g.finish(ctx, c, now)
		results[i].Err = err
		again = again || c.Type == TypeHead || ReasonOf(err) == Equivocation
	}
}

// spread calls do(0) to do(n-1) on all processors and waits for them.
func spread(n int, do func(int)) {
	const piece = 16 // so that the counter costs nothing
	var next atomic.Int64
	work := func() {
		for {
			end := int(next.Add(piece))
			for i := end - piece; i < min(end, n); i++ {
				do(i)
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
