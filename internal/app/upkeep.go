package app

import (
	"context"
	"time"

	"agentsite/internal/chat"
	"agentsite/internal/clock"
)

const (
	// wordsEvery is how soon a new message is in the search index. Until then a search has to read the message
	// itself.
	wordsEvery = 2 * time.Second
	// wordsRest is the pause after a batch, as a multiple of the time that the batch took.
	wordsRest = 3
	// sweepEvery is how often files without use and the words of deleted
	// messages are removed.
	sweepEvery = time.Hour
	sweepBatch = 200
)

// indexMessages adds new messages to the search index, a few at a time, until ctx ends.
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
			// Callers that wait for an answer come first. A search reads the missing messages itself.
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

// sweepData removes, until ctx ends, the files without a message or a recent upload, and the words of deleted
// messages from the search index.
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
