package scheduler

import "time"

// maxReserved is how long a task may be reserved, in microseconds. It is far longer than storing and
// loading a task takes; a task that was deleted in between is not counted for ever.
const maxReserved = 60 * 1_000_000

// reservations counts admitted tasks that are not queued yet, by the bounds that they concern.
type reservations struct {
	jobs  map[string]reserved
	count map[boundKey]int
	order []reservedAt // oldest first; may name reservations that have ended
}

type reserved struct {
	job Job
	at  int64
}

type reservedAt struct {
	id string
	at int64
}

// boundKey names a bound on waiting tasks: of the portal, an account, an agent, an owner, a provider or a
// room.
type boundKey struct {
	of    boundOf
	class Class // of an account
	name  string
}

type boundOf int8

const (
	ofPortal boundOf = iota
	ofAccount
	ofAgent
	ofOwner
	ofProvider
	ofRoom
)

func boundsOf(j Job) [6]boundKey {
	return [...]boundKey{{of: ofPortal}, {ofAccount, j.Class, j.Account}, {of: ofAgent, name: j.Agent},
		{of: ofOwner, name: j.Owner}, {of: ofProvider, name: j.Provider}, {of: ofRoom, name: j.Conversation}}
}

// Reserve counts an admitted task as waiting until Add, Remove or Release is called with its id, so that
// tasks that are admitted at the same time keep within the bounds together.
func (s *Scheduler) Reserve(j Job, now time.Time) {
	s.setTime(now)
	r := &s.reserved
	for len(r.order) > 0 {
		old := r.order[0]
		have, ok := r.jobs[old.id]
		if ok && have.at == old.at && s.now-old.at <= maxReserved {
			break
		}
		if ok && have.at == old.at {
			s.Release(old.id)
		}
		r.order = r.order[1:]
	}
	if _, ok := r.jobs[j.ID]; ok || s.entries[j.ID] != nil {
		return
	}
	if r.jobs == nil {
		r.jobs, r.count = make(map[string]reserved), make(map[boundKey]int)
	}
	r.jobs[j.ID] = reserved{j, s.now}
	r.order = append(r.order, reservedAt{j.ID, s.now})
	for _, k := range boundsOf(j) {
		r.count[k]++
	}
}

// Release ends the reservation of a task; an unknown id changes nothing.
func (s *Scheduler) Release(id string) {
	r := &s.reserved
	have, ok := r.jobs[id]
	if !ok {
		return
	}
	delete(r.jobs, id)
	for _, k := range boundsOf(have.job) {
		if r.count[k]--; r.count[k] == 0 {
			delete(r.count, k)
		}
	}
}
