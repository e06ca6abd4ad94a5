package livereport

import (
	"sync"
	"time"

	"agentsite/internal/record"
)

// Voices holds the words of all portals about agents' liveness, packed as they
// were signed: 12 bytes each. It forgets them when they expire. The zero value
// is empty and ready; its methods are safe for concurrent use.
type Reports struct {
	mu sync.RWMutex // guards the rest
	// said is by subject, then by author, then by shard.
	said map[record.PortalID]map[record.PortalID]map[string]spoken
	// records counts those of each portal: about itself, and about others.
	records map[record.PortalID][2]int
	bytes   int
}

type spoken struct {
	version         record.Version
	issued, expires int64 // milliseconds
	words           record.Words
}

// Quotas of Voices. Portals that are not proved have a tenth.
const (
	// maxOwnShards is how many records a portal may have about its own agents:
	// enough for 256,000 of them.
	maxOwnShards = 1024
	// maxOtherShards is how many it may have about those of others.
	maxOtherShards = 512
	// maxVoiceBytes bounds the words of all portals: 5,000,000 of them. Past
	// half of it those of portals that are not proved are refused.
	maxVoiceBytes = 64 << 20
	// maxAsked bounds the voices about one agent.
	maxAsked = 64
)

// Room reports whether there is room for a record: it replaces one, or its portal's quota is not
// used up. Only the record's slot and size are read, so Room can be called before the signature is
// verified.
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

// Put takes in a record that a Gate admitted. It returns the agents with a state that differs from
// the earlier record's, and never replaces a newer record.
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

// addCount changes how many records a portal has; the caller holds mu.
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

// Of returns the reports about an agent of subject at now, one of each portal and at most 64. The
// callback adds the weight of a report, and returns false for portals that are ignored. The report
// of the agent's own portal is always among them.
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
		// Newcomers must not crowd out those that count.
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

// newestReport returns the newest report in a portal's shards about an agent.
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

// Subject returns the portal that reported last that it has an agent; empty when none did. It is
// for agents with their own key, because their id names no portal.
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

// Drop removes the reports of a portal; it returns the portals of the agents concerned.
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

// Sweep removes reports that have expired by now.
func (v *Reports) Sweep(now time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for subject, by := range v.said {
		for portal := range by {
			v.dropRecords(subject, portal, func(s spoken) bool { return s.expires <= now.UnixMilli() })
		}
	}
}

// dropRecords drops records of a portal about a subject; the caller holds mu.
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
