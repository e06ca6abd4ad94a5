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
	// A changed shard is signed again signEvery after the last time, an unchanged one after renewEvery. A
	// signed report is valid for reportLife.
	signEvery  = 10 * time.Minute
	renewEvery = 12 * time.Hour
	reportLife = 48 * time.Hour
	// maxHurried is how often within signEvery a shard may be signed at once, when an agent of this portal
	// became reachable or unreachable.
	maxHurried = 3
	// roomy is the average number of agents in a shard when this portal's reports are split, well below
	// record.MaxWords because shards differ in size.
	roomy = 300
	// maxElsewhere bounds the agents of other portals in this portal's reports, maxSubjects their portals.
	// Other portals accept no more from one portal.
	maxElsewhere = 20_000
	maxSubjects  = 500
)

// own holds the results of this portal's own exchanges. The zero value is empty; it is safe for concurrent
// use.
type own struct {
	mu       sync.Mutex // guards the fields below
	subjects map[record.PortalID]*subject
	count    int // number of results for agents of other portals
	changed  map[record.PortalID]map[record.AgentTag]bool
}

// subject holds the results for the agents of one portal, divided into shards by the first digits of the
// agents' tags.
type subject struct {
	reports map[record.AgentTag]report
	digits  int // number of digits of the tag that name a shard
	shards  map[string]*shard
}

type report struct {
	reach  record.Reach
	at     time.Time
	called bool
	took   time.Duration
}

// shard is the state of one shard: the report as last signed, and whether it must be signed again.
type shard struct {
	said          record.Words
	issued        time.Time
	hurried       []time.Time // times of early signatures within signEvery
	dirty, urgent bool
}

// Observe records the result of an exchange of this portal with an agent; a zero At means now. It is cheap
// and never blocks on I/O.
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
			return // no room until older results expire
		}
		o.count++
	}
	sub.reports[tag] = report{seen.Reach, seen.At, seen.Called, seen.Took}
	sh := sub.shardOf(tag)
	if said, ok := sh.said.Of(tag); !ok || said.Reach != seen.Reach {
		sh.dirty = true
		// This portal's report about its own agents is displayed at other portals, so it is urgent.
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

// subjectOf returns the results for a portal, created if needed. The caller holds mu.
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

// dropEmpty removes the entry of a portal without results. The caller holds mu.
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

// reportOf returns the last result for an agent; ok is false if there is none.
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

// takeChanged returns the agents of other portals with new results since the last call, by portal.
func (o *own) takeChanged() map[record.PortalID]map[record.AgentTag]bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	out := o.changed
	o.changed = nil
	return out
}

// restoreReports adds the results in a report that this portal signed, before a restart or just now. Newer
// results are kept.
func (o *own) restoreReports(l *record.Live) {
	issued := time.UnixMilli(l.Issued)
	o.mu.Lock()
	defer o.mu.Unlock()
	sub := o.subjectOf(l.Subject)
	if len(sub.reports) == 0 { // adopt the shard size used before the restart
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
		return // results for own agents come from the directory, see listAgents
	}
	for i := range l.Words.Len() {
		w := l.Words.At(i)
		if _, ok := sub.reports[w.Agent]; !ok && o.count < maxElsewhere {
			sub.reports[w.Agent] = report{w.Reach, issued.Add(-w.Ago), w.Called, w.Within}
			o.count++
		}
	}
}

// listAgents replaces the results for this portal's own agents by those in the directory.
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

// replaceAgents sets the results for this portal's own agents. Agents that are not in all were deleted or
// are no longer published.
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

// resizeShards divides the reports by the first digits of the tags anew. All shards have to be signed
// again.
func (s *subject) resizeShards(digits int) {
	if digits == s.digits {
		return
	}
	s.digits, s.shards = digits, make(map[string]*shard)
	for tag := range s.reports {
		s.shardOf(tag).dirty = true
	}
}

// draft is a report to sign for one shard; urgent ones are sent to other portals at once.
type draft struct {
	subject record.PortalID
	shard   string
	words   record.Words
	urgent  bool
}

// dueShards returns the reports to sign now. It also removes results that are too old.
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
			if len(list) == 0 { // nothing to sign: the last report expires by itself
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

// isDue reports whether a shard must be signed now, see signEvery and maxHurried.
func (sh *shard) isDue(now time.Time) bool {
	sh.hurried = slices.DeleteFunc(sh.hurried, func(t time.Time) bool { return now.Sub(t) >= signEvery })
	age := now.Sub(sh.issued)
	return age >= renewEvery || sh.dirty && (age >= signEvery || sh.urgent && len(sh.hurried) < maxHurried)
}

// expireReports removes the results that are older than record.MaxAgo. It calls gone for each.
func (s *subject) expireReports(now time.Time, gone func()) {
	for tag, w := range s.reports {
		if now.Sub(w.at) > record.MaxAgo {
			delete(s.reports, tag)
			gone()
		}
	}
}

// fitShards divides the reports into smaller shards until each fits into a record.
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

// noteSigned records that a draft was signed and stored at the time now.
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
	for tag, w := range sub.reports { // results that arrived meanwhile make it dirty again
		if tag.Shard(sub.digits) == d.shard {
			if was, ok := d.words.Of(tag); !ok || was.Reach != w.reach {
				sh.dirty = true
			}
		}
	}
}
