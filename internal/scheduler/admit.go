package scheduler

import "time"

// The bounds of the wait that Admit estimates.
const (
	minWait     = time.Second
	maxWait     = 10 * time.Minute
	defaultTook = 5_000_000 // microseconds of a task before the first one has ended
)

// Admit reports whether a task may be queued, and if not, about how long to wait before the next attempt.
// It changes nothing. The last quarter of the bounds that accounts share is kept for accounts of which no
// task waits, so that an account that fills them refuses only itself. Guests and other portals are
// refused when half of the places of the portal, an agent, an owner or a provider are taken, because one
// person can come from very many networks.
func (s *Scheduler) Admit(j Job) (wait time.Duration, ok bool) {
	l := s.limits
	keys := boundsOf(j)
	mine := s.reserved.count[keys[ofAccount]]
	ok = true
	check := func(waiting, most, running int, took average) {
		if waiting >= most {
			ok = false
			wait = max(wait, estimateWait(waiting, running, took, s.took))
		}
	}
	if a := s.accounts[accountKey{j.Class, j.Account}]; a != nil {
		mine += a.waiting
	}
	check(mine, l.WaitingPerAccount, s.perAccount, 0)
	shared := func(most int) int {
		if mine == 0 {
			return most
		}
		return max(most-most/4, 1)
	}
	open := func(most int) int {
		if j.Class == Accounts {
			return most
		}
		return max(most/2, 1)
	}
	check(s.waiting+s.reserved.count[keys[ofPortal]], shared(open(l.Waiting)), l.Running, 0)
	for _, one := range []struct {
		in      map[string]*place
		key     boundKey
		waiting int // the bounds of a place where nothing waits or runs
		running int
	}{
		{s.agents, keys[ofAgent], open(l.WaitingPerAgent), l.RunningPerAgent},
		{s.owners, keys[ofOwner], open(l.WaitingPerOwner), l.RunningPerOwner},
		{s.providers, keys[ofProvider], open(l.WaitingPerProvider), l.RunningPerProvider},
		{s.rooms, keys[ofRoom], l.WaitingPerRoom, l.RunningPerRoom},
	} {
		if one.key.name == "" { // Agents without an owner or a provider share no such place.
			continue
		}
		waiting, took := s.reserved.count[one.key], average(0)
		if p := one.in[one.key.name]; p != nil {
			waiting, took = waiting+p.waiting, p.took
		}
		check(waiting, shared(one.waiting), one.running, took)
	}
	return wait, ok
}

// estimateWait returns about how long it takes until the waiting tasks of a place have started.
func estimateWait(waiting, running int, took, all average) time.Duration {
	if took == 0 {
		took = all
	}
	if took == 0 {
		took = defaultTook
	}
	d := time.Duration(took) * time.Microsecond * time.Duration(waiting) / time.Duration(max(running, 1))
	return min(max(d.Round(time.Second), minWait), maxWait)
}
