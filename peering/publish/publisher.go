// Package publish signs this portal's agents as records, keeps them in the
// Replica with a head that covers them, and a summary for searches.
package publish

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/federation"
	"agentsite/internal/hub"
	"agentsite/internal/record"
)

// Source is the directory of this portal's agents and the outbox of their
// changes. Its methods are called by one goroutine.
type Source interface {
	// Unpublished returns up to limit agents of which something changed that
	// may be published, by numbers of changes, those longest waiting first.
	Unpublished(ctx context.Context, limit int) (numbers []int64, agentIDs []string, err error)
	// Published forgets changes by their numbers.
	Published(ctx context.Context, numbers []int64) error
	// Publishing signals that Unpublished may have entries.
	Publishing() <-chan struct{}
	// AgentsByIDs returns the existing agents of enabled owners, without their co-owners.
	AgentsByIDs(ctx context.Context, ids []string) ([]hub.Agent, error)
	// AllAgents calls yield for all such agents until it returns false.
	AllAgents(ctx context.Context, yield func(hub.Agent) bool) error
}

// Config is the configuration of a Publisher.
type Config struct {
	Source  Source
	Signer  Signer
	Gate    *record.Gate // over Replica
	Replica federation.Replica
	// Policy leaves out public agents; nil publishes all.
	Policy Policy
	// Network connects the publisher to other portals; nil for none.
	Network Network
	Log     *slog.Logger
}

// Signer is the identity of this portal: federation.Self.
type Signer interface {
	federation.Signer
	// Changed returns a channel that is closed with the next card of the portal. If it is nil, a new card
	// is seen within a minute.
	Changed() <-chan struct{}
}

// Policy is the operator's policy for own agents: federation.Peers.
type Policy interface {
	// Exports reports whether a public agent is published too. After its result changes, call Recheck.
	Exports(tags, languages []string) bool
}

// Network is what other portals know of this one, and learn.
type Network interface {
	// NewestHead asks other portals at a start which head of this portal is the newest they hold; zero when
	// it is none that the portal does not know of. The first head of a start waits for it.
	NewestHead(ctx context.Context) record.Version
	// HeadPublished is called with each new head after it is stored. It must not block.
	HeadPublished(head []byte)
}

// When heads are made.
const (
	// A round begins gather after the last change, so that an import does not
	// share the processor with its own publication, and at most maxGather after
	// the first.
	gather    = 200 * time.Millisecond
	maxGather = 2 * time.Second
	// A head follows another after minSpacing at the earliest; the longer the
	// changes go on the rarer heads get: of the time they have taken so far one
	// part in calmFactor, at most maxSpacing.
	minSpacing = 2 * time.Second
	maxSpacing = time.Minute
	calmFactor = 30
	// lease is the age at which a head is renewed.
	lease = time.Hour
	// lookEvery is how often clock, card and key are looked at.
	lookEvery = time.Minute

	minRetry = time.Second
	maxRetry = time.Minute
)

// Publisher signs records of this portal's agents and keeps them in the Replica like those of any
// portal: the log, the head that covers it, and the summary. Records are on disk before any portal
// sees them, and no version is ever used twice, even after a restored backup or lost data. Create it
// with New and keep Run running; its other methods are safe for concurrent use.
type Publisher struct {
	cfg     Config
	recheck chan struct{}

	// Owned by Run.
	loaded   bool
	asked    bool  // others were asked for their newest head
	unsure   bool  // the directory has to be compared with the log
	dirty    bool  // the log has records that no head covers
	seq      int64 // of the last version that was given out
	floor    int64 // no epoch may be lower
	logStart int64
	todo     []string // agents to look at
	ring     *record.Ring
	card     []byte    // that ring is of
	summary  summaryOf // the newest
	renewAt  time.Time // when to search for records to renew
	wanted   time.Time // when the first change came that no head has; zero for none
	changed  time.Time // when the last change came
	busy     time.Time // since when changes go on
	headAt   time.Time
	retryAt  time.Time // after a failure; zero
	retry    time.Duration
	said     string // the last failure in the log

	mu      sync.Mutex // guards the rest, which Run alone changes but for overtaken
	epoch   int64
	entries map[string]*entry // by the agent's id in records
	tree    record.Tree
	head    *record.Record
	refused map[string]string // why, by the agent's id in records
	// overtaken is a version of a head that others hold and this portal does not know; zero for none. Any
	// goroutine sets it.
	overtaken record.Version
	newCount  time.Time // when it was last acted on; zero for never
}

// entry is the newest record of an agent.
type entry struct {
	content record.Hash // of the content without the header; zero when it must be signed anew
	hash    record.Hash
	version record.Version
	issued  int64
	expires int64
	key     record.KeyID
	deleted bool
	until   int64 // of a tombstone: until when it must live
}

// New returns a publisher that has not begun.
func New(cfg Config) *Publisher {
	return &Publisher{cfg: cfg, recheck: make(chan struct{}, 1)}
}

// Recheck makes the publisher compare all agents with the published ones soon.
func (p *Publisher) Recheck() {
	select {
	case p.recheck <- struct{}{}:
	default:
	}
}

// newCountEvery keeps new epochs apart that others' heads are the reason for:
// when the portal runs twice, each would begin one because of the other.
const newCountEvery = time.Hour

// Overtaken reports to the publisher that others hold a head signed by this portal that it does not
// know: its database is older than its published log. It then starts a new epoch, and others forget
// the records that are not in it. The result is true if it does; it does not if it did within the last
// hour.
func (p *Publisher) Overtaken(by record.Version) bool {
	p.mu.Lock()
	if now := time.Now(); p.newCount.IsZero() || now.Sub(p.newCount) >= newCountEvery {
		p.newCount = now
	} else if p.overtaken == (record.Version{}) {
		p.mu.Unlock()
		return false
	}
	if by.Compare(p.overtaken) > 0 {
		p.overtaken = by
	}
	p.mu.Unlock()
	p.Recheck()
	return true
}

// Run publishes until ctx ends. Agents that are not published by then wait in the outbox.
func (p *Publisher) Run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	var card <-chan struct{}
	for {
		if card == nil {
			card = p.cfg.Signer.Changed()
		}
		select {
		case <-ctx.Done():
			return nil
		case <-p.cfg.Source.Publishing():
			p.noteChange(time.Now())
		case <-p.recheck:
			p.unsure = true
			p.noteChange(time.Now())
		case <-card:
			card = nil
		case <-timer.C:
		}
		if now := time.Now(); !now.Before(p.due(now)) {
			p.attemptRound(ctx)
		}
		timer.Reset(max(min(time.Until(p.due(time.Now())), lookEvery), 0))
	}
}

// attemptRound runs one round and schedules the next, later after a failure.
func (p *Publisher) attemptRound(ctx context.Context) {
	err := p.runRound(ctx)
	if err == nil {
		p.retryAt, p.retry, p.said = time.Time{}, 0, ""
		return
	}
	if ctx.Err() != nil {
		return
	}
	if p.said != err.Error() {
		p.said = err.Error()
		p.cfg.Log.Error("publish agents to the network; it is tried again", "error", err)
	}
	p.retry = min(max(2*p.retry, minRetry), maxRetry)
	p.retryAt = time.Now().Add(p.retry)
}

func (p *Publisher) noteChange(now time.Time) {
	if now.Sub(p.changed) > p.spacing()+gather {
		p.busy = now
	}
	p.changed = now
	if p.wanted.IsZero() {
		p.wanted = now
	}
}

// spacing is how long after a head the next may follow.
func (p *Publisher) spacing() time.Duration {
	return min(max(p.headAt.Sub(p.busy)/calmFactor, minSpacing), maxSpacing)
}

// due is when the next round is.
func (p *Publisher) due(now time.Time) time.Time {
	if !p.retryAt.IsZero() {
		return p.retryAt
	}
	if p.head == nil || p.cardNews() {
		return now
	}
	at := p.headAt.Add(min(lease, time.Duration(p.head.Expires-p.head.Issued)*time.Millisecond/2))
	if p.renewAt.Before(at) {
		at = p.renewAt
	}
	if !p.wanted.IsZero() {
		at = earliest(at, p.changed.Add(gather), p.wanted.Add(maxGather))
	}
	return latest(at, p.headAt.Add(p.spacing()))
}

// cardNews reports whether the portal has another card, or signs with another
// key, than when the last head was made.
func (p *Publisher) cardNews() bool {
	id, _, _, err := p.cfg.Signer.Key(clock.Now())
	return err == nil && id != p.head.Key || !bytes.Equal(p.card, p.cfg.Signer.Card())
}

func earliest(list ...time.Time) time.Time { return slices.MinFunc(list, time.Time.Compare) }

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
