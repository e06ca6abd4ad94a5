package live

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/record"
)

const (
	// signEvery is the interval at which a changed shard is signed again, renewEvery the interval
	// for an unchanged one. A report lives for 48 hours.
	signEvery  = 10 * time.Minute
	renewEvery = 12 * time.Hour
	reportLife = 48 * time.Hour
	// maxHurried bounds how often within signEvery a shard is signed at once, because an agent of
	// this portal became reachable or unreachable.
	maxHurried = 3
	// roomy is the average number of agents of a shard when shards are made: some grow.
	roomy = 300
	// maxElsewhere bounds the agents of other portals in the reports, and maxSubjects their
	// portals: the limits that other portals accept from one.
	maxElsewhere = 20_000
	maxSubjects  = 500
)

// own holds the results of this portal's own exchanges. The zero value is empty.
type own struct {
	mu       sync.Mutex // guards the rest
	subjects map[record.PortalID]*subject
	count    int // number of reports about agents of others
	changed  map[record.PortalID]map[record.AgentTag]bool
}

// subject holds the results for the agents of one portal.
type subject struct {
	reports map[record.AgentTag]report
	digits  int // length of the names of its shards
	shards  map[string]*shard
}

type report struct {
	reach  record.Reach
	at     time.Time
	called bool
	took   time.Duration
}

// shard is a part of a subject as it was last signed.
type shard struct {
	said          record.Words
	issued        time.Time
	hurried       []time.Time // within signEvery
	dirty, urgent bool
}

// Observe records the result of an exchange of this portal. It is cheap and never blocks.
func (s *Service) Observe(seen Seen) {
	if seen.Reach < record.Alive || seen.Reach > record.Unreachable {
		return
	}
	if seen.At.IsZero() {
		seen.At = clock.Now()
	}
	s.own.putReport(seen, s.cfg.Signer.ID())
}

func (o *own) putReport(seen Seen, self record.PortalID) {
	tag := record.TagOf(seen.Agent)
	o.mu.Lock()
	defer o.mu.Unlock()
	sub := o.subjectOf(seen.Subject)
	old, had := sub.reports[tag]
	if had && old.at.After(seen.At) {
		return
	}
	if !had && seen.Subject != self {
		if o.count >= maxElsewhere || len(o.subjects) > maxSubjects && len(sub.reports) == 0 {
			o.dropEmpty(seen.Subject)
			return // until older reports are dropped
		}
		o.count++
	}
	sub.reports[tag] = report{seen.Reach, seen.At, seen.Called, seen.Took}
	sh := sub.shardOf(tag)
	if said, ok := sh.said.Of(tag); !ok || said.Reach != seen.Reach {
		sh.dirty = true
		// Other portals show this portal's reports about its own agents.
		sh.urgent = sh.urgent || seen.Subject == self &&
			(!ok || (said.Reach == record.Alive) != (seen.Reach == record.Alive))
	}
	if seen.Subject != self {
		if o.changed == nil {
			o.changed = make(map[record.PortalID]map[record.AgentTag]bool)
		}
		if o.changed[seen.Subject] == nil {
			o.changed[seen.Subject] = make(map[record.AgentTag]bool)
		}
		o.changed[seen.Subject][tag] = true
	}
}

// subjectOf returns the reports about a portal. The caller holds mu.
func (o *own) subjectOf(id record.PortalID) *subject {
	if o.subjects == nil {
		o.subjects = make(map[record.PortalID]*subject)
	}
	sub := o.subjects[id]
	if sub == nil {
		sub = &subject{reports: make(map[record.AgentTag]report), shards: make(map[string]*shard)}
		o.subjects[id] = sub
	}
	return sub
}

// dropEmpty removes a subject without reports. The caller holds mu.
func (o *own) dropEmpty(id record.PortalID) {
	if sub := o.subjects[id]; sub != nil && len(sub.reports) == 0 {
		delete(o.subjects, id)
	}
}

func (s *subject) shardOf(tag record.AgentTag) *shard {
	name := tag.Shard(s.digits)
	sh := s.shards[name]
	if sh == nil {
		sh = new(shard)
		s.shards[name] = sh
	}
	return sh
}

// reportOf returns the last result for an agent.
func (o *own) reportOf(portal record.PortalID, tag record.AgentTag) (report, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	sub := o.subjects[portal]
	if sub == nil {
		return report{}, false
	}
	w, ok := sub.reports[tag]
	return w, ok
}

// takeChanged returns the agents of other portals with new results since the last call.
func (o *own) takeChanged() map[record.PortalID]map[record.AgentTag]bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	out := o.changed
	o.changed = nil
	return out
}

// restoreReports adds the reports that this portal has signed: before a restart, or just now.
func (o *own) restoreReports(l *record.Live) {
	issued := time.UnixMilli(l.Issued)
	o.mu.Lock()
	defer o.mu.Unlock()
	sub := o.subjectOf(l.Subject)
	if len(sub.reports) == 0 { // the shards may have had another size before
		sub.digits = max(sub.digits, len(l.Shard))
	}
	if len(l.Shard) == sub.digits {
		sh := sub.shards[l.Shard]
		if sh == nil {
			sh = new(shard)
			sub.shards[l.Shard] = sh
		}
		sh.said, sh.issued = l.Words, issued
	}
	if l.Subject == l.Portal {
		return // the directory has the results for this portal's own agents
	}
	for i := range l.Words.Len() {
		w := l.Words.At(i)
		if _, ok := sub.reports[w.Agent]; !ok && o.count < maxElsewhere {
			sub.reports[w.Agent] = report{w.Reach, issued.Add(-w.Ago), w.Called, w.Within}
			o.count++
		}
	}
}

// listAgents reads all agents of this portal.
func (s *Service) listAgents(ctx context.Context) {
	self := s.cfg.Signer.ID()
	var all []Seen
	err := s.cfg.Directory.OwnLiveness(ctx, func(seen Seen) bool {
		seen.Subject = self
		all = append(all, seen)
		return ctx.Err() == nil
	})
	if err != nil {
		if ctx.Err() == nil {
			s.cfg.Log.Warn("list the results of exchanges with agents", "error", err)
		}
		return
	}
	s.own.replaceAgents(self, all)
}

// replaceAgents sets the results for this portal's own agents. Agents that are not in the list are
// gone, or no longer published.
func (o *own) replaceAgents(self record.PortalID, all []Seen) {
	here := make(map[record.AgentTag]bool, len(all))
	for _, seen := range all {
		here[record.TagOf(seen.Agent)] = true
	}
	o.mu.Lock()
	sub := o.subjectOf(self)
	digits := sub.digits
	for n := len(all); digits < record.MaxShard && n>>(4*digits) > roomy; {
		digits++
	}
	sub.resizeShards(digits)
	for tag := range sub.reports {
		if !here[tag] {
			delete(sub.reports, tag)
		}
	}
	for _, sh := range sub.shards {
		for i := range sh.said.Len() {
			sh.dirty = sh.dirty || !here[sh.said.At(i).Agent]
		}
	}
	o.mu.Unlock()
	for _, seen := range all {
		if seen.Reach >= record.Alive && seen.Reach <= record.Unreachable {
			o.putReport(seen, self)
		}
	}
}

// resizeShards splits the reports into shards with names of that length.
func (s *subject) resizeShards(digits int) {
	if digits == s.digits {
		return
	}
	s.digits, s.shards = digits, make(map[string]*shard)
	for tag := range s.reports {
		s.shardOf(tag).dirty = true
	}
}

// draft is a shard to sign.
type draft struct {
	subject record.PortalID
	shard   string
	words   record.Words
	urgent  bool
}

// dueShards returns the shards to sign now.
func (o *own) dueShards(self record.PortalID, now time.Time) []draft {
	o.mu.Lock()
	defer o.mu.Unlock()
	var out []draft
	for id, sub := range o.subjects {
		if !sub.isDue(now) {
			continue
		}
		sub.expireReports(now, func() {
			if id != self {
				o.count--
			}
		})
		sub.fitShards()
		by := make(map[string][]record.Word)
		for name, sh := range sub.shards {
			if sh.isDue(now) {
				by[name] = []record.Word{}
			}
		}
		if len(by) > 0 {
			for tag, w := range sub.reports {
				if list, ok := by[tag.Shard(sub.digits)]; ok {
					by[tag.Shard(sub.digits)] = append(list,
						record.Word{Agent: tag, Reach: w.reach, Ago: now.Sub(w.at), Called: w.called, Within: w.took})
				}
			}
		}
		for name, list := range by {
			if len(list) == 0 { // the signed reports expire
				delete(sub.shards, name)
				continue
			}
			if len(list) > record.MaxWords {
				slices.SortStableFunc(list, func(a, b record.Word) int { return cmp.Compare(a.Ago, b.Ago) })
				list = list[:record.MaxWords]
			}
			out = append(out, draft{id, name, record.PackWords(list), sub.shards[name].urgent})
		}
		if id != self && len(sub.reports) == 0 {
			delete(o.subjects, id)
		}
	}
	return out
}

func (s *subject) isDue(now time.Time) bool {
	for _, sh := range s.shards {
		if sh.isDue(now) {
			return true
		}
	}
	return false
}

// isDue reports whether a shard must be signed now.
func (sh *shard) isDue(now time.Time) bool {
	sh.hurried = slices.DeleteFunc(sh.hurried, func(t time.Time) bool { return now.Sub(t) >= signEvery })
	age := now.Sub(sh.issued)
	return age >= renewEvery || sh.dirty && (age >= signEvery || sh.urgent && len(sh.hurried) < maxHurried)
}

// expireReports drops results that are too old to be signed.
func (s *subject) expireReports(now time.Time, gone func()) {
	for tag, w := range s.reports {
		if now.Sub(w.at) > record.MaxAgo {
			delete(s.reports, tag)
			gone()
		}
	}
}

// fitShards makes the shards smaller as long as one has more reports than a record can hold.
func (s *subject) fitShards() {
	for s.digits < record.MaxShard {
		most := 0
		n := make(map[string]int)
		for tag := range s.reports {
			name := tag.Shard(s.digits)
			n[name]++
			most = max(most, n[name])
		}
		if most <= record.MaxWords {
			return
		}
		s.resizeShards(s.digits + 1)
	}
}

// noteSigned records that a draft was signed and stored.
func (o *own) noteSigned(d draft, now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	sub := o.subjects[d.subject]
	if sub == nil || sub.shards[d.shard] == nil || len(d.shard) != sub.digits {
		return
	}
	sh := sub.shards[d.shard]
	if d.urgent {
		sh.hurried = append(sh.hurried, now)
	}
	sh.said, sh.issued, sh.dirty, sh.urgent = d.words, now, false, false
	for tag, w := range sub.reports { // results that arrived while it was signed
		if tag.Shard(sub.digits) == d.shard {
			if was, ok := d.words.Of(tag); !ok || was.Reach != w.reach {
				sh.dirty = true
			}
		}
	}
}
