// Package publish signs this portal's agents as records and stores them in the Replica (the database of
// signed records), with a head that covers them and a summary for remote search.
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

// Source is the directory of this portal's agents and the outbox of their changes. Only the goroutine of
// Publisher.Run calls its methods.
type Source interface {
	// Unpublished returns at most limit changes that may have to be published, the oldest first: the number
	// of each change and the agent's id at the same index.
	Unpublished(ctx context.Context, limit int) (numbers []int64, agentIDs []string, err error)
	// Published removes changes from the outbox by their numbers.
	Published(ctx context.Context, numbers []int64) error
	// Publishing returns a channel that receives a value when Unpublished may have new entries.
	Publishing() <-chan struct{}
	// AgentsByIDs returns those of the agents that exist and have an owner that is not disabled. Co-owners
	// are left out.
	AgentsByIDs(ctx context.Context, ids []string) ([]hub.Agent, error)
	// AllAgents calls yield for each agent of an owner that is not disabled, until it returns false.
	AllAgents(ctx context.Context, yield func(hub.Agent) bool) error
}

// Packages are the packages of this portal. packages.Service implements it. After a change Publisher.Recheck must be
// called.
type Packages interface {
	// Record returns the record of a package by its id in records, without the header; nil if there is none.
	Record(local string) *record.Agent
	// Records returns the records of all packages.
	Records() []*record.Agent
	// RunOf returns the package that an agent runs; nil for none.
	RunOf(ctx context.Context, agentID string) *record.PackageRun
}

// Config is the configuration of a Publisher. Every field is required except Policy, Packages and Network.
type Config struct {
	Source  Source
	Signer  Signer
	Gate    *record.Gate // must store into Replica
	Replica federation.Replica
	// Policy excludes public agents from publication; nil publishes all.
	Policy Policy
	// Packages are published with the agents; nil for none.
	Packages Packages
	// Network connects the publisher to other portals; nil for none.
	Network Network
	Log     *slog.Logger
}

// Signer is the identity of this portal. federation.Self implements it.
type Signer interface {
	federation.Signer
	// Changed returns a channel that is closed at the portal's next card. With a nil channel a new card is
	// found within lookEvery.
	Changed() <-chan struct{}
}

// Policy is the operator's policy for this portal's agents. federation.Peers implements it.
type Policy interface {
	// Exports reports whether a public agent with these tags and languages is published. After the policy
	// changes, Publisher.Recheck must be called.
	Exports(tags, languages []string) bool
}

// Network connects a Publisher to other portals. peering.Node implements it.
type Network interface {
	// NewestHead asks other portals for the newest head of this portal that they hold. It returns its
	// version only if this portal does not know it, otherwise zero. It is called once, before the first
	// head after a start.
	NewestHead(ctx context.Context) record.Version
	// HeadPublished is called with each new head after it is stored. It must not block.
	HeadPublished(head []byte)
}

// Times that decide when the log is updated and a head signed.
const (
	// A round begins gather after the last change, so that an import is published after it has ended, and
	// at most maxGather after the first change.
	gather    = 200 * time.Millisecond
	maxGather = 2 * time.Second
	// The minimum time between heads is minSpacing. While changes go on it grows to 1/calmFactor of the
	// time that they have taken so far, at most maxSpacing, because each head costs a pull at every portal.
	minSpacing = 2 * time.Second
	maxSpacing = time.Minute
	calmFactor = 30
	// lease is the age at which an unchanged head is renewed.
	lease = time.Hour
	// lookEvery is the longest time between two checks of clock, card and key.
	lookEvery = time.Minute

	minRetry = time.Second
	maxRetry = time.Minute
)

// Publisher signs records of this portal's agents and stores them in the Replica: the log, the head that
// covers it, and the summary. Records are on disk before another portal can see them, and no version is
// used twice, even after a restored backup or lost data. Create it with New and keep Run running; its other
// methods are safe for concurrent use.
type Publisher struct {
	cfg     Config
	recheck chan struct{}

	// Only the goroutine of Run uses the fields up to mu. loaded is false when the state has to be read
	// again.
	loaded   bool
	asked    bool  // Network.NewestHead was called since the start
	unsure   bool  // compareAgents has to run
	dirty    bool  // the log has records that no head covers
	seq      int64 // last seq number that was used
	floor    int64 // smallest epoch that a new epoch may have
	logStart int64
	todo     []string // directory ids of agents to check
	ring     *record.Ring
	card     []byte    // card from which ring was read
	summary  summaryOf // newest summary
	renewAt  time.Time // time of the next listDying
	wanted   time.Time // time of the first change that no head covers yet; zero for none
	changed  time.Time // time of the last change
	busy     time.Time // time at which the current series of changes began
	headAt   time.Time
	retryAt  time.Time // time of the next attempt after a failure; zero for none
	retry    time.Duration
	said     string // message of the last logged failure, to log each failure once

	mu      sync.Mutex // guards the fields below, which only Run changes, except overtaken
	epoch   int64
	entries map[string]*entry // newest records by translate.LocalID of the agent
	tree    record.Tree
	head    *record.Record
	refused map[string]string // reason, for the owner, by translate.LocalID
	// overtaken is the newest version of a head of this portal that others hold and this portal does not
	// know; zero for none.
	overtaken record.Version
	newCount  time.Time // last time that Overtaken asked for a new epoch
}

// entry is the newest published record of an agent. Times are in Unix ms.
type entry struct {
	content record.Hash // see contentOf; zero if the record has to be signed again
	hash    record.Hash
	version record.Version
	issued  int64
	expires int64
	key     record.KeyID
	deleted bool
	until   int64 // tombstones only: time until which the tombstone must be kept
}

// New returns a Publisher. It does nothing until Run is called.
func New(cfg Config) *Publisher {
	return &Publisher{cfg: cfg, recheck: make(chan struct{}, 1)}
}

// Recheck makes the publisher compare all agents with the published records soon. It does not block.
func (p *Publisher) Recheck() {
	select {
	case p.recheck <- struct{}{}:
	default:
	}
}

// newCountEvery is the minimum time between two epochs that begin because of Overtaken. If a portal runs
// twice, each copy would otherwise begin new epochs because of the other all the time.
const newCountEvery = time.Hour

// Overtaken reports that other portals hold a head signed by this portal that it does not know, because its
// database is older than its published log. The publisher then begins a new epoch, and other portals delete
// records of older ones. It returns false if it did so within newCountEvery and does not now.
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

// Run publishes until ctx ends. Changes that are not published by then stay in the outbox.
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

// attemptRound runs one round. After a failure it schedules the next with a growing pause.
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

// spacing returns the minimum time from the last head to the next, see minSpacing.
func (p *Publisher) spacing() time.Duration {
	return min(max(p.headAt.Sub(p.busy)/calmFactor, minSpacing), maxSpacing)
}

// due returns the time of the next round: at once for a new card or key, otherwise by the changes, the
// lease and the last failure.
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

// cardNews reports whether the portal's card or signing key changed since the last head.
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
