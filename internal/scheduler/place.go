package scheduler

import "math"

// bound limits the tasks that run and that wait in one place.
type bound struct{ running, waiting int }

// halfOf is the most that one account runs in a place of n.
func halfOf(n int) int { return max(n/2, 1) }

// keptOf returns how many of the portal's n places are kept for accounts of which nothing runs. One would
// do against one account; a person with a dozen of accounts would hold all others with tasks that never end.
func keptOf(n int) int { return max(n/16, 1) }

// placeFlow counts the tasks of an agent, an owner, a provider or a room.
type place struct {
	bound            bound
	running, waiting int
	paused           int // tasks that wait for another one, see Scheduler.Pause
	took             average
	lanes            []*lane // of an agent or an owner
	nodes            [shares]*node
	mailboxes        []*mailbox // of a room, those that hold tasks
}

func (p *place) freePlaces() int { return p.bound.running - p.running }

// openGroups returns the number of groups to which a provider is open.
func (p *place) openGroups() int { return openFor(p.freePlaces(), idleProvider+1) }

// openFor returns the number of groups to which a place with free places is open: the last one is kept
// for the groups below kept.
func openFor(free, kept int) int {
	switch {
	case free <= 0:
		return 0
	case free == 1:
		return kept
	}
	return groups
}

// getPlace returns the place of a key, a new one if nothing runs or waits there.
func getPlace(in map[string]*place, key string, b bound) *place {
	p := in[key]
	if p == nil {
		p = &place{bound: b}
		if key == "" { // Agents without an owner or a provider share no such place.
			p.bound = bound{1 << 30, 1 << 30}
		}
		in[key] = p
	}
	return p
}

func dropPlace(in map[string]*place, key string) {
	if p := in[key]; p != nil && p.running+p.waiting+p.paused == 0 {
		delete(in, key)
	}
}

// lane is an agent with its owner and its provider. A second lane of the agent exists only while tasks
// from before a change of its owner or provider are left.
type lane struct {
	key                    laneKey
	agent, owner, provider *place
	tasks                  int // that wait or run
	lines                  int // accounts of which tasks wait
	nodes                  [shares]*node
	turns                  [shares]laneTurn
	turn                   int64 // as class.turn, of turns
	atAgent, atOwner       int   // indexes in the lanes of the places
}

// laneTurn is the use of a lane by a class. While the portal has free places a class waits only because
// agents are full, and its tasks elsewhere must not cost its accounts their turn there.
type laneTurn struct {
	meter
	waiting int
}

// addWaiting counts a waiting task of a class, as Scheduler.addWaiting does for the portal.
func (l *lane) addWaiting(c *class, now int64) {
	t := &l.turns[c.index]
	if t.waiting == 0 {
		t.chargeTime(now, c.weight)
		least := int64(math.MaxInt64)
		for i := range l.turns {
			if o := &l.turns[i]; o.waiting > 0 {
				o.chargeTime(now, weightOf(i))
				least = min(least, o.spent)
			}
		}
		if least == math.MaxInt64 {
			least = l.turn
		}
		t.spent = max(t.spent, least)
	}
	t.waiting++
}

func (l *lane) addRunning(c *class, now int64) {
	t := &l.turns[c.index]
	t.chargeTime(now, c.weight)
	t.spent = max(t.spent, l.turn-maxClassLag*int64(l.agent.bound.running))
	l.turn = max(l.turn, t.spent)
	t.spent += startCharge * c.weight
	t.running++
}

func (l *lane) removeRunning(c *class, now int64) {
	t := &l.turns[c.index]
	t.chargeTime(now, c.weight)
	t.running--
}

type laneKey struct{ agent, owner, provider string }

// openGroups returns the number of groups to which the lane is open.
func (l *lane) openGroups() int {
	if l.owner.freePlaces() <= 0 {
		return 0
	}
	return openFor(l.agent.freePlaces(), idleAgent+1)
}

func (s *Scheduler) getLane(k laneKey) *lane {
	l := s.lanes[k]
	if l != nil {
		return l
	}
	b := s.limits
	l = &lane{key: k,
		agent:    getPlace(s.agents, k.agent, bound{b.RunningPerAgent, b.WaitingPerAgent}),
		owner:    getPlace(s.owners, k.owner, bound{b.RunningPerOwner, b.WaitingPerOwner}),
		provider: getPlace(s.providers, k.provider, bound{b.RunningPerProvider, b.WaitingPerProvider})}
	l.atAgent, l.atOwner = len(l.agent.lanes), len(l.owner.lanes)
	l.agent.lanes = append(l.agent.lanes, l)
	l.owner.lanes = append(l.owner.lanes, l)
	s.lanes[k] = l
	return l
}

func (s *Scheduler) dropLane(l *lane) {
	if l.tasks > 0 {
		return
	}
	delete(s.lanes, l.key)
	last := l.agent.lanes[len(l.agent.lanes)-1]
	l.agent.lanes[l.atAgent], last.atAgent = last, l.atAgent
	l.agent.lanes = l.agent.lanes[:len(l.agent.lanes)-1]
	last = l.owner.lanes[len(l.owner.lanes)-1]
	l.owner.lanes[l.atOwner], last.atOwner = last, l.atOwner
	l.owner.lanes = l.owner.lanes[:len(l.owner.lanes)-1]
	dropPlace(s.agents, l.key.agent)
	dropPlace(s.owners, l.key.owner)
	dropPlace(s.providers, l.key.provider)
}

// laneNode returns the node of the lane in a class.
func (s *Scheduler) laneNode(l *lane, class int) *node {
	if l.nodes[class] == nil {
		p := l.provider
		if p.nodes[class] == nil {
			p.nodes[class] = newNode(s.classes[class].root)
			p.nodes[class].open = p.openGroups()
		}
		l.nodes[class] = newNode(p.nodes[class])
		l.nodes[class].open = l.openGroups()
	}
	return l.nodes[class]
}

// updateOpen applies the counts of the places of a lane to the tree. owners says that the owner's bound was
// reached or left, which concerns all its lanes.
func (s *Scheduler) updateOpen(l *lane, owners bool) {
	for _, n := range l.provider.nodes {
		if n != nil {
			n.setOpen(l.provider.openGroups())
		}
	}
	lanes := l.agent.lanes
	if owners {
		lanes = l.owner.lanes
	}
	for _, one := range lanes {
		for _, n := range one.nodes {
			if n != nil {
				n.setOpen(one.openGroups())
			}
		}
	}
	if owners {
		s.updateOpen(l, false)
	}
}

// average is a moving average of how long tasks run, in microseconds; 0 before the first one.
type average int64

func (a *average) noteTook(took int64) {
	if *a == 0 {
		*a = average(took)
		return
	}
	*a += (average(took) - *a) / 8
}
