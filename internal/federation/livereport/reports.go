package livereport

import (
	"sync"
	"time"

	"agentsite/internal/record"
)

// Reports holds the liveness reports of all portals in their packed signed form, 12 bytes each, until
// they expire. The zero value is empty and ready to use; its methods are safe for concurrent use.
type Reports struct {
	mu sync.RWMutex // guards the fields below
	// said is keyed by subject (the portal of the agents), then author, then shard.
	said map[record.PortalID]map[record.PortalID]map[string]spoken
	// records counts the records of each author: about its own agents, and about those of other portals.
	records map[record.PortalID][2]int
	bytes   int
}

type spoken struct {
	version         record.Version
	issued, expires int64 // milliseconds since 1970
	words           record.Words
}

// Quotas of Reports. Portals whose domain is not proved have a tenth.
const (
	// maxOwnShards is the number of records of a portal about its own agents: enough for 256,000 agents.
	maxOwnShards = 1024
	// maxOtherShards is the number of records of a portal about agents of other portals.
	maxOtherShards = 512
	// maxVoiceBytes limits the reports of all portals together, to about 5,000,000. Above half of it,
	// records of unproved portals are refused.
	maxVoiceBytes = 64 << 20
	// maxAsked is how many reports about one agent are returned.
	maxAsked = 64
)

// Room reports whether a record fits: it replaces one, or the quota of its portal is not used up. It
// uses only slot and size of the record, so it can be called before the signature is verified.
func (v *Reports) Room(r *record.Record, proved bool) bool {
	l, ok := r.Body.(*record.Live)
	if !ok {
		return false
	}
	v.mu.RLock()
	defer v.mu.RUnlock()
	if old, ok := v.said[l.Subject][r.Portal][l.Shard]; ok {
		return len(l.Words) <= len(old.words) || v.bytes+len(l.Words)-len(old.words) <= maxVoiceBytes
	}
	about := aboutOthers(l)
	quota, whole := [2]int{maxOwnShards, maxOtherShards}[about], maxVoiceBytes
	if !proved {
		quota, whole = quota/10, whole/2
	}
	return v.records[r.Portal][about] < quota && v.bytes+len(l.Words) <= whole
}

func aboutOthers(l *record.Live) int {
	if l.Subject == l.Portal {
		return 0
	}
	return 1
}

// Put stores a record that a Gate has admitted, unless a newer one is stored. It returns the agents
// whose state differs from the earlier record of the slot.
func (v *Reports) Put(l *record.Live) (changed []record.AgentTag) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.said == nil {
		v.said = make(map[record.PortalID]map[record.PortalID]map[string]spoken)
		v.records = make(map[record.PortalID][2]int)
	}
	by := v.said[l.Subject]
	if by == nil {
		by = make(map[record.PortalID]map[string]spoken)
		v.said[l.Subject] = by
	}
	shards := by[l.Portal]
	if shards == nil {
		shards = make(map[string]spoken)
		by[l.Portal] = shards
	}
	old, had := shards[l.Shard]
	if had && old.version.Compare(l.Version()) >= 0 {
		return nil
	}
	if !had {
		v.addCount(l.Portal, aboutOthers(l), 1)
	}
	v.bytes += len(l.Words) - len(old.words)
	shards[l.Shard] = spoken{l.Version(), l.Issued, l.Expires, l.Words}
	return changedAgents(old.words, l.Words)
}

// addCount adds by to the number of records of a portal about its own (about 0) or other (1) agents; the
// caller holds mu.
func (v *Reports) addCount(portal record.PortalID, about, by int) {
	n := v.records[portal]
	if n[about] += by; n == [2]int{} {
		delete(v.records, portal)
		return
	}
	v.records[portal] = n
}

// changedAgents returns the agents with different states in a and b.
func changedAgents(a, b record.Words) (out []record.AgentTag) {
	for i := range b.Len() {
		w := b.At(i)
		if old, ok := a.Of(w.Agent); !ok || old.Reach != w.Reach {
			out = append(out, w.Agent)
		}
	}
	for i := range a.Len() {
		w := a.At(i)
		if _, ok := b.Of(w.Agent); !ok {
			out = append(out, w.Agent)
		}
	}
	return out
}

// Of returns the reports at now about an agent of the portal subject, at most one of each portal and 64
// in all. weigh sets the sources of weight of a report and returns false to leave it out. The report of
// the agent's own portal comes first.
func (v *Reports) Of(subject record.PortalID, agent record.AgentTag, now time.Time, weigh func(*Report) bool) []Report {
	v.mu.RLock()
	defer v.mu.RUnlock()
	var out []Report
	said := v.said[subject]
	hear := func(portal record.PortalID) {
		if voice, ok := newestReport(said[portal], portal, agent, now.UnixMilli()); ok && weigh(&voice) {
			out = append(out, voice)
		}
	}
	hear(subject)
	counted := 0
	for portal := range said {
		if portal == subject {
			continue
		}
		n := len(out)
		hear(portal)
		if len(out) == n {
			continue
		}
		// Reports without weight get at most a quarter of the places, so that new portals cannot crowd
		// out those that count.
		if w := out[n]; w.Own || w.Pinned || w.Proved {
			counted++
		} else if n-counted >= maxAsked/4 {
			out = out[:n]
		}
		if counted >= maxAsked*3/4 {
			break
		}
	}
	return out
}

// newestReport returns a portal's newest unexpired report about an agent; the shard can have any number
// of digits.
func newestReport(shards map[string]spoken, portal record.PortalID, agent record.AgentTag,
	now int64) (out Report, ok bool) {
	for digits := range record.MaxShard + 1 {
		s, held := shards[agent.Shard(digits)]
		if !held || s.expires <= now {
			continue
		}
		w, said := s.words.Of(agent)
		at := time.UnixMilli(s.issued).Add(-w.Ago)
		if said && (!ok || at.After(out.At)) {
			out, ok = Report{Portal: portal, Reach: w.Reach, At: at, Called: w.Called}, true
		}
	}
	return out, ok
}

// Subject returns the portal that most recently reported the agent as its own, "" if none did. It serves
// agents with a key of their own, whose id does not name a portal.
func (v *Reports) Subject(agent record.AgentTag, now time.Time) (subject record.PortalID) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	var newest time.Time
	for portal, by := range v.said {
		if w, ok := newestReport(by[portal], portal, agent, now.UnixMilli()); ok &&
			(w.At.After(newest) || w.At.Equal(newest) && portal < subject) {
			subject, newest = portal, w.At
		}
	}
	return subject
}

// Drop removes all reports by a portal and returns the portals of the agents concerned.
func (v *Reports) Drop(portal record.PortalID) (subjects []record.PortalID) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for subject, by := range v.said {
		if _, ok := by[portal]; ok {
			subjects = append(subjects, subject)
			v.dropRecords(subject, portal, func(spoken) bool { return true })
		}
	}
	return subjects
}

// Sweep removes the records that have expired at now.
func (v *Reports) Sweep(now time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for subject, by := range v.said {
		for portal := range by {
			v.dropRecords(subject, portal, func(s spoken) bool { return s.expires <= now.UnixMilli() })
		}
	}
}

// dropRecords removes the records by a portal about a subject that which selects; the caller holds mu.
func (v *Reports) dropRecords(subject, portal record.PortalID, which func(spoken) bool) {
	by := v.said[subject]
	about := 0
	if subject != portal {
		about = 1
	}
	for shard, s := range by[portal] {
		if which(s) {
			delete(by[portal], shard)
			v.bytes -= len(s.words)
			v.addCount(portal, about, -1)
		}
	}
	if len(by[portal]) == 0 {
		delete(by, portal)
	}
	if len(by) == 0 {
		delete(v.said, subject)
	}
}
