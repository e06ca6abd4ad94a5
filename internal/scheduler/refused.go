package scheduler

import "time"

// refusals counts the refused tasks of the last hour, by minute.
type refusals struct {
	minutes [60]int
	last    int64 // the minute since the epoch up to which old counts are cleared
}

// clearOld forgets the minutes that are more than an hour ago.
func (r *refusals) clearOld(now int64) {
	minute := now / time.Minute.Microseconds()
	for range min(minute-r.last, int64(len(r.minutes))) {
		r.last++
		r.minutes[r.last%int64(len(r.minutes))] = 0
	}
	r.last = max(r.last, minute)
}

func (r *refusals) add(now int64) {
	r.clearOld(now)
	r.minutes[r.last%int64(len(r.minutes))]++
}

func (r *refusals) count(now int64) (n int) {
	r.clearOld(now)
	for _, m := range r.minutes {
		n += m
	}
	return n
}

// Refuse counts a task that was not queued, for Snapshot.
func (s *Scheduler) Refuse(j Job, now time.Time) {
	s.setTime(now)
	s.classes[j.Class].refused++
	s.classes[j.Class].lately.add(s.now)
	if a := s.accounts[accountKey{j.Class, j.Account}]; a != nil {
		a.refused++
	}
}
