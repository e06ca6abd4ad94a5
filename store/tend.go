package store

import (
	"context"
	"time"
)

// tendEvery is the interval at which the disk is tended. Finding nothing to do takes microseconds.
const tendEvery = time.Minute

// TendDisk fills the reserve again when there is room, and makes the database file smaller after data
// was deleted, until ctx ends.
func (d *DB) TendDisk(ctx context.Context) error {
	wait := time.NewTimer(0)
	defer wait.Stop()
	for {
		select {
		case <-wait.C:
		case <-ctx.Done():
			return nil
		}
		if err := d.Space.Refill(); err != nil {
			d.Log().Warn("fill the reserve", "error", err)
		}
		switch pages, err := d.Compact(ctx); {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			d.Log().Warn("compact the database", "error", err)
		case pages > 0:
			d.Log().Info("compacted the database", "pages", pages)
		}
		wait.Reset(tendEvery)
	}
}
