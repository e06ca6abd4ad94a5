package scheduler

import (
	"cmp"
	"slices"
	"time"
)

// Snapshot is the state of a scheduler as operators see it.
type Snapshot struct {
	Running int // tasks that take a place of the portal
	Waiting int
	Classes []ClassState
	// Limits are the bounds in force.
	Limits Limits
	// Accounts are those with the most tasks, at most MaxAccounts.
	Accounts []AccountState
	// Agents and Providers are those with the most tasks, at most MaxPlaces of each.
	Agents, Providers []PlaceState
}

// ClassState is the state of a class.
type ClassState struct {
	Class            Class
	Running, Waiting int
	Refused          int     // since the start
	Lately           int     // refused in the last hour
	Share            float64 // of the tasks that run, 0 to 1
	Seconds          float64 // that ended tasks of the class ran, since the start
}

// AccountState is the state of an account. Running includes tasks that were canceled and whose drivers
// still run.
type AccountState struct {
	Class            Class
	Account          string
	Name             string // for people, of an account that has one; the scheduler does not set it
	Running, Waiting int
	Refused          int     // since the account had no task
	Share            float64 // of the tasks that run, 0 to 1
}

// PlaceState is the state of an agent or a provider.
type PlaceState struct {
	Key, Name        string // Name is for people; the scheduler does not set it
	Running, Waiting int
}

// MaxAccounts bounds the accounts of a Snapshot, MaxPlaces its agents and its providers.
const (
	MaxAccounts = 100
	MaxPlaces   = 20
)

// Snapshot returns the present state.
func (s *Scheduler) Snapshot(now time.Time) Snapshot {
	s.setTime(now)
	out := Snapshot{Running: s.running, Waiting: s.waiting, Limits: s.limits}
	for _, c := range Classes() {
		at := &s.classes[c]
		out.Classes = append(out.Classes, ClassState{Class: c, Refused: at.refused, Lately: at.lately.count(s.now),
			Seconds: (time.Duration(at.used) * time.Microsecond).Seconds()})
	}
	all, running := make([]*account, 0, len(s.accounts)), 0
	for _, a := range s.accounts {
		if a.running+a.waiting+a.refused == 0 {
			continue
		}
		all = append(all, a)
		running += a.running
		c := &out.Classes[a.key.class]
		c.Running += a.running
		c.Waiting += a.waiting
	}
	for i := range out.Classes {
		out.Classes[i].Share = float64(out.Classes[i].Running) / float64(max(running, 1))
	}
	out.Agents, out.Providers = busiest(s.agents), busiest(s.providers)
	slices.SortFunc(all, func(a, b *account) int {
		return cmp.Or(b.running-a.running, b.waiting-a.waiting, b.refused-a.refused, int(a.key.class-b.key.class),
			cmp.Compare(a.key.name, b.key.name))
	})
	for _, a := range all[:min(len(all), MaxAccounts)] {
		out.Accounts = append(out.Accounts, AccountState{Class: a.key.class, Account: a.key.name, Running: a.running,
			Waiting: a.waiting, Refused: a.refused, Share: float64(a.running) / float64(max(running, 1))})
	}
	return out
}

// AgentState returns the number of tasks of an agent that run and wait.
func (s *Scheduler) AgentState(agentID string) PlaceState {
	out := PlaceState{Key: agentID}
	if p, ok := s.agents[agentID]; ok {
		out.Running, out.Waiting = p.running, p.waiting
	}
	return out
}

// busiest returns the places with the most tasks.
func busiest(places map[string]*place) []PlaceState {
	out := []PlaceState{}
	for key, p := range places {
		if key != "" && p.running+p.waiting > 0 {
			out = append(out, PlaceState{Key: key, Running: p.running, Waiting: p.waiting})
		}
	}
	slices.SortFunc(out, func(a, b PlaceState) int {
		return cmp.Or(b.Running-a.Running, b.Waiting-a.Waiting, cmp.Compare(a.Key, b.Key))
	})
	return out[:min(len(out), MaxPlaces)]
}
