package app

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"agentsite/internal/chat"
	"agentsite/internal/clock"
	"agentsite/internal/doctor"
)

const (
	// wordsEvery is the delay until new messages are added to the search index. Searches read newer
	// messages directly.
	wordsEvery = 2 * time.Second
	// wordsRest is the pause after a batch, as a multiple of the batch's duration, so that indexing uses
	// at most a quarter of the database's write time.
	wordsRest = 3
	// sweepEvery is the interval at which unused files, and words of deleted messages, are removed.
	sweepEvery = time.Hour
	sweepBatch = 200
	// scrubSlice bounds one slice of the check for damage, which keeps a connection of the database busy
	// for so long. scrubRest is the pause after a slice, so that the check takes at most
	// 1/30 of the time of one processor; a database of usual size is read whole within hours.
	scrubSlice = time.Second
	scrubRest  = 30 * time.Second
	// scrubEvery is the interval at which a check of the whole database begins.
	scrubEvery = 24 * time.Hour
	// placesEvery is the interval at which the portal checks that its files are still where they were.
	placesEvery = 10 * time.Second
)

// clockEvery is the interval at which the clock is compared with the time that has passed.
const clockEvery = 10 * time.Second

// watchClock logs when the clock was set back, until ctx ends. Times of messages then repeat, and other
// portals may refuse requests until their clocks agree.
func watchClock(ctx context.Context, watch *clock.Watch, log *slog.Logger) {
	for clock.Sleep(ctx, clockEvery) {
		if back := watch.Check(); back.By > 0 {
			log.Warn("the clock was set back", "by", back.By, "now", back.At)
		}
	}
}

// indexMessages adds new messages to the search index in batches, with pauses for other writers, until
// ctx ends.
func (p *Portal) indexMessages(ctx context.Context) error {
	wait := time.NewTimer(wordsEvery)
	defer wait.Stop()
	for {
		select {
		case <-wait.C:
		case <-ctx.Done():
			return nil
		}
		pause := wordsEvery
		for ctx.Err() == nil {
			began := time.Now()
			more, err := p.db.Words.IndexWords(ctx)
			if err != nil && ctx.Err() == nil {
				p.log.Error("index the words of messages", "error", err)
				pause = time.Minute
				break
			}
			if !more {
				break
			}
			// Requests that wait for the database go first; searches read messages that are not indexed
			// yet directly.
			wait.Reset(wordsRest * time.Since(began))
			select {
			case <-wait.C:
			case <-ctx.Done():
				return nil
			}
		}
		wait.Reset(pause)
	}
}

// sweepData removes unused data every hour until ctx ends: files that no message refers to and that are
// older than chat.FileGrace, and words of deleted messages in the search index.
func (p *Portal) sweepData(ctx context.Context) error {
	wait := time.NewTimer(time.Minute)
	defer wait.Stop()
	for {
		select {
		case <-wait.C:
		case <-ctx.Done():
			return nil
		}
		if n, err := p.sweepOnce(ctx); err != nil && ctx.Err() == nil {
			p.log.Error("remove unused files", "error", err)
		} else if n > 0 {
			p.log.Info("removed unused files", "files", n)
		}
		if err := p.db.Words.PurgeWords(ctx); err != nil && ctx.Err() == nil {
			p.log.Error("remove the words of deleted messages", "error", err)
		}
		if err := p.db.Quotas.SweepGuests(ctx); err != nil && ctx.Err() == nil {
			p.log.Error("remove the counters of past guests", "error", err)
		}
		if err := p.hosting.Load(ctx); err != nil && ctx.Err() == nil {
			p.log.Error("remove the code of deleted programs", "error", err)
		}
		if err := p.packages.Load(ctx); err != nil && ctx.Err() == nil {
			p.log.Error("read the packages", "error", err)
		}
		wait.Reset(sweepEvery)
	}
}

func (p *Portal) sweepOnce(ctx context.Context) (removed int, err error) {
	before := clock.Now().Add(-chat.FileGrace)
	for {
		n, err := p.db.Chat.DropFiles(ctx, before, sweepBatch)
		removed += n
		if err != nil {
			return removed, err
		}
		if n < sweepBatch {
			break
		}
	}
	n, err := p.db.Chat.SweepBlobs(ctx, before)
	return removed + n, err
}

// warnOfFolder logs the faults of the data folder, such as keys that other users of the machine can read.
func (p *Portal) warnOfFolder() {
	for _, f := range doctor.FolderOf(p.set.Data).Findings {
		if f.Level == doctor.Fault {
			p.log.Warn("data folder", "fault", f.Text, "do", f.Do)
		}
	}
}

// watchPlaces returns an error when the data folder or the database was moved, replaced or deleted: later
// writes would be missing at the next start, so the portal must not confirm them.
func (p *Portal) watchPlaces(ctx context.Context) error {
	tick := time.NewTicker(placesEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
		if err := p.lock.CheckPlace(); err != nil {
			return fmt.Errorf("%w; put it back and start the portal again", err)
		}
		if err := p.db.CheckPlace(); err != nil {
			return err
		}
		if err := p.control.Restore(); err != nil {
			p.log.Error("restore the control socket", "error", err)
		}
	}
}

func (p *Portal) logDamage(fault string) {
	p.log.Error("the data is damaged", "fault", fault,
		"do", "run `agentsite verify`, and restore a backup with `agentsite restore FILE`")
}

// scrubData checks the databases for damage, a slice at a time, until ctx ends.
func (p *Portal) scrubData(ctx context.Context) error {
	wait := time.NewTimer(scrubRest)
	defer wait.Stop()
	began := time.Now()
	for {
		select {
		case <-wait.C:
		case <-ctx.Done():
			return nil
		}
		done, err := p.scrub.Next(ctx)
		if err != nil && ctx.Err() == nil {
			p.log.Warn("check the data for damage", "error", err)
		}
		if !done {
			wait.Reset(scrubRest)
			continue
		}
		if faults := len(p.scrub.State().Faults); faults == 0 {
			p.log.Info("checked the data: no damage", "took", time.Since(began).Round(time.Second))
		}
		pause := max(scrubRest, scrubEvery-time.Since(began))
		wait.Reset(pause)
		began = time.Now().Add(pause)
	}
}
