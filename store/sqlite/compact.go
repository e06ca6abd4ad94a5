package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"agentsite/store/engine"
)

const (
	// compactFrom is the number of free pages from which the file is made smaller: 1 MiB of them is kept
	// for the next writes.
	compactFrom = 256
	// A step of a compaction takes between compactShort and compactLong, because other writes wait for it;
	// the number of its pages is adapted.
	compactShort, compactLong = 10 * time.Millisecond, 25 * time.Millisecond
	// maxPages bounds it, because the commit writes as many pages: 1 MiB.
	firstPages, maxPages = 16, 256
	// compactRest is the pause after a step, as a multiple of its duration, for other writes.
	compactRest = 3
	// incremental is the value of PRAGMA auto_vacuum of a file that can be made smaller in steps.
	incremental = 2
	// compactAtStart is the size of older databases that are prepared for compaction at a start, which
	// takes about a second.
	compactAtStart = 64 << 20
)

// Compact gives free pages back to the file system, in steps that share the commits of other writes. It
// does nothing for a file that is not prepared for it, see prepareCompaction. It returns the number of
// pages that it gave back.
func (f *DB) Compact(ctx context.Context) (int64, error) {
	var mode, free int64
	if err := f.Get(ctx, &mode, "PRAGMA auto_vacuum"); err != nil || mode != incremental {
		return 0, err
	}
	if err := f.Get(ctx, &free, "PRAGMA freelist_count"); err != nil {
		return 0, err
	}
	first, pages := free, firstPages
	rest := time.NewTimer(0)
	defer rest.Stop()
	for free >= compactFrom {
		select {
		case <-rest.C:
		case <-ctx.Done():
			return first - free, ctx.Err()
		}
		took, err := f.compactStep(ctx, pages)
		if err != nil {
			return first - free, err
		}
		before := free
		if err := f.Get(ctx, &free, "PRAGMA freelist_count"); err != nil {
			return first - before, err
		}
		if free >= before { // Other writes free pages faster, or nothing can be moved.
			return max(first-free, 0), nil
		}
		switch {
		case took > compactLong && pages > 1:
			pages /= 2
		case took < compactShort && pages < maxPages:
			pages *= 2
		}
		rest.Reset(compactRest * took)
	}
	return first - free, nil
}

// compactStep gives at most that number of pages back, a power of two, so that few statements are kept.
func (f *DB) compactStep(ctx context.Context, pages int) (took time.Duration, err error) {
	err = f.Write(ctx, func(t engine.Tx) error {
		began := time.Now()
		_, err := t.Exec(fmt.Sprintf("PRAGMA incremental_vacuum(%d)", pages))
		took = time.Since(began)
		return err
	})
	return took, err
}

// prepareCompaction rewrites the database at path once, so that Compact can make it smaller. It does so
// only for files below compactAtStart, because it takes about a second for each 100 MiB, and twice their
// room. No other connection may be open.
func prepareCompaction(ctx context.Context, path string, k Kind) error {
	st, err := os.Stat(path)
	if err != nil || st.Size() == 0 || st.Size() >= compactAtStart {
		return nil
	}
	return setIncremental(ctx, path, k)
}

// setIncremental makes a database one that Compact can make smaller. It rewrites the file, which costs nothing
// while that is empty.
func setIncremental(ctx context.Context, path string, k Kind) error {
	pool, err := Connect(path, k.writeDSN(path), 1)
	if err != nil {
		return err
	}
	var mode int64
	if err = pool.GetContext(ctx, &mode, "PRAGMA auto_vacuum"); err == nil && mode != incremental {
		_, err = pool.ExecContext(ctx, fmt.Sprintf("PRAGMA auto_vacuum = %d; VACUUM", incremental))
	}
	if err != nil {
		err = fmt.Errorf("prepare database %s for compaction: %w", path, err)
	}
	return errors.Join(err, pool.Close())
}
