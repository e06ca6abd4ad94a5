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
	// speakEvery is how often a shard is said anew when something in it
	// changed, renewEvery when nothing did: it lives for 48 hours.
	speakEvery = 10 * time.Minute
	renewEvery = 12 * time.Hour
	wordLife   = 48 * time.Hour
	// maxHurried is how often within speakEvery a shard is said at once,
	// because an agent of this portal turned up or away.
	maxHurried = 3
	// roomy is how many agents a shard has at most, on average, when shards are
	// made: some grow.
	roomy = 300
	// maxElsewhere bounds the agents of others that something is said of, and
	// maxSubjects their portals: what others take of one.
	maxElsewhere = 20_000
	maxSubjects  = 500
)

// own is what this portal's own exchanges showed. The zero value is empty.
type own struct {
	mu       sync.Mutex // guards the rest
	subjects map[record.PortalID]*subject
	count    int // of words about others' agents
	changed  map[record.PortalID]map[record.AgentTag]bool
}

// subject is what was seen of the agents of one portal.
type subject struct {
	words  map[record.AgentTag]word
	digits int // of its shards
	shards map[string]*shard
}

type word struct {
	reach  record.Reach
	at     time.Time
	called bool
	took   time.Duration
}

// shard is a part of them as it was last said.
type shard struct {
	said          record.Words
	issued        time.Time
	hurried       []time.Time // within speakEvery
	dirty, urgent bool
}

// Observe takes note of an exchange of this portal. It costs little and never
// blocks.
func (s *Service) Observe(seen Seen) {
	if seen.Reach < record.Alive || seen.Reach > record.Unreachable {
		return
	}
	if seen.At.IsZero() {
		seen.At = clock.Now()
	}
	s.own.put(seen, s.cfg.Signer.ID())
}

func (o *own) put(seen Seen, self record.PortalID) {
	tag := record.TagOf(seen.Agent)
	o.mu.Lock()
	defer o.mu.Unlock()
	sub := o.subject(seen.Subject)
	old, had := sub.words[tag]
	if had && old.at.After(seen.At) {
		return
	}
	if !had && seen.Subject != self {
		if o.count >= maxElsewhere || len(o.subjects) > maxSubjects && len(sub.words) == 0 {
			o.drop(seen.Subject)
			return // until older ones are forgotten
		}
		o.count++
	}
	sub.words[tag] = word{seen.Reach, seen.At, seen.Called, seen.Took}
	sh := sub.shard(tag)
	if said, ok := sh.said.Of(tag); !ok || said.Reach != seen.Reach {
		sh.dirty = true
		// Others show this portal's word about its own agents.
		sh.urgent = sh.urgent || seen.Subject == self && (!ok || (said.Reach == record.Alive) != (seen.Reach == record.Alive))
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

// subject returns the words about a portal; the caller holds mu.
func (o *own) subject(id record.PortalID) *subject {
	if o.subjects == nil {
		o.subjects = make(map[record.PortalID]*subject)
	}
	sub := o.subjects[id]
	if sub == nil {
		sub = &subject{words: make(map[record.AgentTag]word), shards: make(map[string]*shard)}
		o.subjects[id] = sub
	}
	return sub
}

// drop forgets a subject that nothing is known of; the caller holds mu.
func (o *own) drop(id record.PortalID) {
	if sub := o.subjects[id]; sub != nil && len(sub.words) == 0 {
		delete(o.subjects, id)
	}
}

func (s *subject) shard(tag record.AgentTag) *shard {
	name := tag.Shard(s.digits)
	sh := s.shards[name]
	if sh == nil {
		sh = new(shard)
		s.shards[name] = sh
	}
	return sh
}

// of returns what was seen of an agent.
func (o *own) of(portal record.PortalID, tag record.AgentTag) (word, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	sub := o.subjects[portal]
	if sub == nil {
		return word{}, false
	}
	w, ok := sub.words[tag]
	return w, ok
}

// takeChanged returns the agents elsewhere that were seen since the last time.
func (o *own) takeChanged() map[record.PortalID]map[record.AgentTag]bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	out := o.changed
	o.changed = nil
	return out
}

// restore takes note of what this portal said: before a restart, or just now.
func (o *own) restore(l *record.Live) {
	issued := time.UnixMilli(l.Issued)
	o.mu.Lock()
	defer o.mu.Unlock()
	sub := o.subject(l.Subject)
	if len(sub.words) == 0 { // the shards were larger or smaller before
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
		return // the directory knows its own
	}
	for i := range l.Words.Len() {
		w := l.Words.At(i)
		if _, ok := sub.words[w.Agent]; !ok && o.count < maxElsewhere {
			sub.words[w.Agent] = word{w.Reach, issued.Add(-w.Ago), w.Called, w.Within}
			o.count++
		}
	}
}

// list reads all agents of this portal.
func (s *Service) list(ctx context.Context) {
	self := s.cfg.Signer.ID()
	var all []Seen
	err := s.cfg.Own(ctx, func(seen Seen) bool {
		seen.Subject = self
		all = append(all, seen)
		return ctx.Err() == nil
	})
	if err != nil {
		if ctx.Err() == nil {
			s.cfg.Log.Warn("list what was seen of agents", "error", err)
		}
		return
	}
	s.own.replace(self, all)
}

// replace sets what is known of this portal's own agents: those that are not
// in the list are gone, or nobody is told of them any more.
func (o *own) replace(self record.PortalID, all []Seen) {
	here := make(map[record.AgentTag]bool, len(all))
	for _, seen := range all {
		here[record.TagOf(seen.Agent)] = true
	}
	o.mu.Lock()
	sub := o.subject(self)
	digits := sub.digits
	for n := len(all); digits < record.MaxShard && n>>(4*digits) > roomy; {
		digits++
	}
	sub.resize(digits)
	for tag := range sub.words {
		if !here[tag] {
			delete(sub.words, tag)
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
			o.put(seen, self)
		}
	}
}

// resize parts the words into shards of so many digits.
func (s *subject) resize(digits int) {
	if digits == s.digits {
		return
	}
	s.digits, s.shards = digits, make(map[string]*shard)
	for tag := range s.words {
		s.shard(tag).dirty = true
	}
}

// draft is a shard that is to be said.
type draft struct {
	subject record.PortalID
	shard   string
	words   record.Words
	urgent  bool
}

// due returns the shards that are to be said at now.
func (o *own) due(self record.PortalID, now time.Time) []draft {
	o.mu.Lock()
	defer o.mu.Unlock()
	var out []draft
	for id, sub := range o.subjects {
		if !sub.isDue(now) {
			continue
		}
		sub.expire(now, func() {
			if id != self {
				o.count--
			}
		})
		sub.fit()
		by := make(map[string][]record.Word)
		for name, sh := range sub.shards {
			if sh.isDue(now) {
				by[name] = []record.Word{}
			}
		}
		if len(by) > 0 {
			for tag, w := range sub.words {
				if list, ok := by[tag.Shard(sub.digits)]; ok {
					by[tag.Shard(sub.digits)] = append(list, record.Word{Agent: tag, Reach: w.reach, Ago: now.Sub(w.at), Called: w.called, Within: w.took})
				}
			}
		}
		for name, list := range by {
			if len(list) == 0 { // what was said expires
				delete(sub.shards, name)
				continue
			}
			if len(list) > record.MaxWords {
				slices.SortStableFunc(list, func(a, b record.Word) int { return cmp.Compare(a.Ago, b.Ago) })
				list = list[:record.MaxWords]
			}
			out = append(out, draft{id, name, record.PackWords(list), sub.shards[name].urgent})
		}
		if id != self && len(sub.words) == 0 {
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

// isDue reports whether a shard is to be said now.
func (sh *shard) isDue(now time.Time) bool {
	sh.hurried = slices.DeleteFunc(sh.hurried, func(t time.Time) bool { return now.Sub(t) >= speakEvery })
	age := now.Sub(sh.issued)
	return age >= renewEvery || sh.dirty && (age >= speakEvery || sh.urgent && len(sh.hurried) < maxHurried)
}

// expire forgets what was seen too long ago to be told.
func (s *subject) expire(now time.Time, gone func()) {
	for tag, w := range s.words {
		if now.Sub(w.at) > record.MaxAgo {
			delete(s.words, tag)
			gone()
		}
	}
}

// fit makes the shards smaller while one has more than a record holds.
func (s *subject) fit() {
	for s.digits < record.MaxShard {
		most := 0
		n := make(map[string]int)
		for tag := range s.words {
			name := tag.Shard(s.digits)
			n[name]++
			most = max(most, n[name])
		}
		if most <= record.MaxWords {
			return
		}
		s.resize(s.digits + 1)
	}
}

// said takes note that a draft was signed and kept.
func (o *own) said(d draft, now time.Time) {
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
	for tag, w := range sub.words { // what was seen while it was signed
		if tag.Shard(sub.digits) == d.shard {
			if was, ok := d.words.Of(tag); !ok || was.Reach != w.reach {
				sh.dirty = true
			}
		}
	}
}
