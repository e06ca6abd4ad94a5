// Package scheduler decides which waiting task starts next. It is a data structure without goroutines,
// clock or storage: times are arguments, and equal calls give equal decisions. It knows no tasks, only
// their names: the agentruntime package loads and runs them. A Scheduler is not safe for concurrent use.
//
// Places are shared by deficit round-robin on two levels: first between classes, then between the
// accounts of a class. The unit is a second of a running place, charged while a task runs. Its rounds are
// not walked one by one: the deficits of all are compared as virtual time, the seconds used so far, and
// the account with the least is next. An account that begins to wait starts at the least of those that
// wait; its earlier excess stays its debt.
package scheduler

import (
	"cmp"
	"slices"
	"time"
)

// Class is the first level of sharing.
type Class int

// The classes of accounts. Background work of all accounts is a class of its own, whose seconds cost
// backgroundWeight times as much.
const (
	Accounts Class = iota
	Guests         // an account is all guests of an address group
	Portals        // an account is all people of another portal
	classes  int   = iota
)

// String returns the name of the class as metrics and operators see it.
func (c Class) String() string { return [...]string{"accounts", "guests", "portals"}[c] }

// Classes returns all classes.
func Classes() []Class { return []Class{Accounts, Guests, Portals} }

const (
	shares = classes + 1 // the classes and background work
	// backgroundWeight lets people wait for background work at most a sixteenth of the time, and never
	// stops background work for good.
	backgroundWeight = 16
	// maxRefreshes bounds the steps of a decision. Beyond it the order of accounts may be older than now.
	maxRefreshes = 32
	// maxIdleChecks bounds how many flows a decision on the portal's kept place looks at.
	maxIdleChecks = 512
)

// Job is one task as the scheduler sees it.
type Job struct {
	ID           string
	Conversation string // one task of an agent runs in it at a time
	Agent        string
	Owner        string // the account that owns the agent, "" without one
	Provider     string // the host that runs the agent, "" if that is this portal
	Class        Class
	Account      string // the account, the address group of a guest, or the other portal
	// Background is true if no person waits for the task.
	Background bool
}

// Limits are the bounds on tasks that run and that wait. All must be above 0, and Running above 1. One
// account never runs more than half of Running, RunningPerAgent and RunningPerProvider.
type Limits struct {
	Running, RunningPerAccount, RunningPerRoom, RunningPerAgent, RunningPerOwner, RunningPerProvider int
	Waiting, WaitingPerAccount, WaitingPerRoom, WaitingPerAgent, WaitingPerOwner, WaitingPerProvider int
}

// Scheduler holds the tasks that wait and that run. Create it with New.
type Scheduler struct {
	limits     Limits
	perAccount int
	epoch      time.Time
	now        int64 // microseconds since epoch
	turn       int64 // as class.turn, of the classes
	next       uint64
	running    int // that take a place of the portal
	waiting    int
	took       average
	classes    [shares]class
	entries    map[string]*entry
	accounts   map[accountKey]*account
	retired    []*account // without tasks, oldest first
	agents     map[string]*place
	owners     map[string]*place
	providers  map[string]*place
	rooms      map[string]*place
	lanes      map[laneKey]*lane
	mailboxes  map[mailboxKey]*mailbox
	flows      map[flowKey]*flow
	lines      map[flowKey]*line
	held       map[hold]int
	reserved   reservations
}

type entry struct {
	id         string
	order      uint64
	share      *share
	lane       *lane
	mailbox    *mailbox
	prev, next *entry // in the mailbox, while it waits
	line       *line  // while it waits, with its neighbours there
	ahead      *entry
	behind     *entry
	state      entryState
	began      int64
}

type entryState int8

const (
	waiting entryState = iota
	running
	abandoned
	paused
)

// mailbox is the tasks of one agent in one conversation: first come, first served, one at a time.
type mailbox struct {
	key         mailboxKey
	room        *place
	running     *entry
	first, last *entry
	flow        *flow // in whose heap ready it is, nil if no task of it can start
	at          int
	atRoom      int // index in room.mailboxes
}

type mailboxKey struct{ conversation, agent string }

func (m *mailbox) before(o *mailbox) bool { return m.first.order < o.first.order }
func (m *mailbox) slot() *int             { return &m.at }

// New returns a scheduler without tasks.
func New(l Limits) *Scheduler {
	s := &Scheduler{limits: l, perAccount: min(l.RunningPerAccount, halfOf(l.Running)),
		entries: make(map[string]*entry), accounts: make(map[accountKey]*account),
		agents: make(map[string]*place), owners: make(map[string]*place), providers: make(map[string]*place),
		rooms: make(map[string]*place), lanes: make(map[laneKey]*lane), mailboxes: make(map[mailboxKey]*mailbox),
		flows: make(map[flowKey]*flow), lines: make(map[flowKey]*line), held: make(map[hold]int)}
	for i := range s.classes {
		s.classes[i] = class{index: i, weight: weightOf(i), root: newNode(nil)}
	}
	return s
}

// setTime moves the clock, never back.
func (s *Scheduler) setTime(now time.Time) {
	if s.epoch.IsZero() {
		s.epoch = now
	}
	s.now = max(s.now, now.Sub(s.epoch).Microseconds())
}

// Add queues a task. It refuses none, because admitted tasks are never dropped: ask Admit before. A
// task that waits or runs already is ignored, and false returned.
func (s *Scheduler) Add(j Job) bool {
	s.Release(j.ID)
	if s.entries[j.ID] != nil {
		return false
	}
	e := s.newEntry(j)
	m := e.mailbox
	if m.last == nil {
		m.first = e
	} else {
		m.last.next, e.prev = e, m.last
	}
	m.last = e
	s.joinLine(e)
	s.addWaiting(e.share)
	e.lane.addWaiting(e.share.class, s.now)
	e.lane.agent.waiting++
	e.lane.owner.waiting++
	e.lane.provider.waiting++
	m.room.waiting++
	if m.first == e {
		s.offerMailbox(m)
	}
	return true
}

func (s *Scheduler) newEntry(j Job) *entry {
	a := s.getAccount(accountKey{j.Class, j.Account})
	e := &entry{id: j.ID, order: s.next, share: s.getShare(a, j.Background),
		lane: s.getLane(laneKey{j.Agent, j.Owner, j.Provider}), mailbox: s.getMailbox(mailboxKey{j.Conversation, j.Agent})}
	s.next++
	e.lane.tasks++
	s.entries[j.ID] = e
	return e
}

func (s *Scheduler) getMailbox(k mailboxKey) *mailbox {
	m := s.mailboxes[k]
	if m == nil {
		room := getPlace(s.rooms, k.conversation, bound{s.limits.RunningPerRoom, s.limits.WaitingPerRoom})
		m = &mailbox{key: k, room: room, atRoom: len(room.mailboxes)}
		room.mailboxes = append(room.mailboxes, m)
		s.mailboxes[k] = m
	}
	return m
}

// Next starts the task whose turn it is; false if none may start. Call it until then after every Add and
// Free. The caller must run the task and call Free at its end.
func (s *Scheduler) Next(now time.Time) (Job, bool) {
	s.setTime(now)
	f := s.chooseFlow()
	if f == nil {
		return Job{}, false
	}
	e := f.ready[0].first
	s.unlinkEntry(e)
	s.startEntry(e)
	return e.job(), true
}

// chooseFlow returns the flow whose turn it is: of the class with the least virtual time that has one, and
// in the class of the account with the least.
func (s *Scheduler) chooseFlow() *flow {
	var order [shares]*class
	for i := range s.classes {
		s.classes[i].chargeTime(s.now, s.classes[i].weight)
		order[i] = &s.classes[i]
	}
	slices.SortStableFunc(order[:], func(a, b *class) int { return cmp.Compare(a.spent, b.spent) })
	free, checks := s.limits.Running-s.running, maxIdleChecks
	for _, c := range order {
		var f *flow
		switch {
		case free > keptOf(s.limits.Running):
			f = s.firstOf(c, c.root, groups)
			if f != nil && free > s.limits.Running/8 { // The portal is not what tasks wait for.
				return s.firstAt(f)
			}
		case free > 0:
			f = s.firstIdleOf(c, &checks)
		}
		if f != nil {
			return f
		}
	}
	return nil
}

// firstAt returns the flow whose turn it is at the agent of a flow. As long as the portal has many free
// places all agents with free places get their turn, and classes share each agent.
func (s *Scheduler) firstAt(first *flow) *flow {
	l := first.lane
	best, least := first, l.turns[first.share.class.index].spentAt(s.now, first.share.class.weight)
	for i := range s.classes {
		c := &s.classes[i]
		if c == first.share.class || l.turns[i].waiting == 0 || l.nodes[i] == nil {
			continue
		}
		spent := l.turns[i].spentAt(s.now, c.weight)
		if spent > least || spent == least && i > best.share.class.index {
			continue
		}
		if f := s.firstOf(c, l.nodes[i], l.provider.openGroups()); f != nil {
			best, least = f, spent
		}
	}
	return best
}

// firstOf returns the flow of the class whose turn it is below a node, among those of groups below open;
// nil without one.
func (s *Scheduler) firstOf(c *class, n *node, open int) *flow {
	for refreshes := 0; ; {
		f := n.firstFlow(open)
		if f == nil {
			return nil
		}
		if f.share.account.running >= s.perAccount { // It is placed again when a task of the account ends.
			f.lane.nodes[c.index].dropItem(&f.item, f.group)
			continue
		}
		f.share.chargeTime(s.now, 1)
		if refreshes++; f.share.spent == f.item.key.spent || refreshes > maxRefreshes {
			return f
		}
		f.lane.nodes[c.index].putItem(&f.item, f.group, f.key())
	}
}

// firstIdleOf is firstOf for the kept places of the portal: only accounts count of which nothing runs.
func (s *Scheduler) firstIdleOf(c *class, checks *int) (found *flow) {
	var seen []*share
	for found == nil && len(c.idle) > 0 && *checks > 0 {
		h := c.idle[0].share
		seen = append(seen, h)
		c.idle = removeHeap(c.idle, &h.idle)
		for _, f := range h.flows {
			if found != nil && found.order < f.order {
				continue
			}
			*checks--
			group, ok := s.rankFlow(h.account, f.lane)
			if ok && group < min(f.lane.openGroups(), f.lane.provider.openGroups()) {
				found = f
			}
		}
	}
	for _, h := range seen {
		c.idle = pushHeap(c.idle, &h.idle)
	}
	return found
}

// Start starts a task that was not added, without waiting; false if it would have to wait.
func (s *Scheduler) Start(j Job, now time.Time) bool {
	s.setTime(now)
	if s.entries[j.ID] != nil {
		return false
	}
	e := s.newEntry(j)
	m, l := e.mailbox, e.lane
	group, ok := s.rankFlow(e.share.account, l)
	free, mine := s.limits.Running-s.running, e.share.account.running
	if free <= 0 || free <= keptOf(s.limits.Running) && mine > 0 || mine >= s.perAccount {
		ok = false
	}
	open := min(l.openGroups(), l.provider.openGroups())
	if !ok || group >= open || m.running != nil || m.first != nil || m.room.freePlaces() <= 0 {
		s.forgetEntry(e)
		return false
	}
	h := e.share
	h.chargeTime(s.now, 1)
	if h.waiting == 0 {
		h.spent = max(h.spent, h.class.least(s.now))
	}
	s.startEntry(e)
	return true
}

func (s *Scheduler) startEntry(e *entry) {
	a, l, m := e.share.account, e.lane, e.mailbox
	before := s.standingOf(a, l.provider)
	e.state, e.began = running, s.now
	m.running = e
	s.running++
	s.addRunning(e.share)
	l.addRunning(e.share.class, s.now)
	l.agent.running++
	l.owner.running++
	l.provider.running++
	s.held[hold{a, l.agent}]++
	s.held[hold{a, l.provider}]++
	s.changeRoom(m.room, 1)
	s.updateOpen(l, l.owner.freePlaces() == 0)
	s.placeFlows(a, l, before)
}

// Free ends a task that was started. One that is not known is ignored.
func (s *Scheduler) Free(id string, now time.Time) {
	s.setTime(now)
	e := s.entries[id]
	if e == nil || e.state == waiting {
		return
	}
	if e.state == paused {
		s.resumeEntry(e)
	}
	s.leavePortal(e)
	s.leavePlaces(e)
	s.forgetEntry(e)
}

// leavePlaces frees the places of a task that runs or is abandoned at its account, agent, owner and provider.
func (s *Scheduler) leavePlaces(e *entry) {
	a, l := e.share.account, e.lane
	before := s.standingOf(a, l.provider)
	s.removeRunning(e.share)
	l.removeRunning(e.share.class, s.now)
	l.agent.running--
	l.owner.running--
	l.provider.running--
	s.releaseHold(hold{a, l.agent})
	s.releaseHold(hold{a, l.provider})
	s.classes[a.key.class].used += s.now - e.began
	s.took.noteTook(s.now - e.began)
	l.agent.took.noteTook(s.now - e.began)
	s.updateOpen(l, l.owner.freePlaces() == 1)
	s.placeFlows(a, l, before)
}

// Pause frees all places of a running task while it waits for another task, which may need them. Only its mailbox stays
// closed, so that the next task of the agent in the conversation comes after it.
func (s *Scheduler) Pause(id string, now time.Time) {
	s.setTime(now)
	e := s.entries[id]
	if e == nil || e.state != running {
		return
	}
	e.state = paused
	e.countPaused(1)
	s.running--
	s.changeRoom(e.mailbox.room, -1)
	s.leavePlaces(e)
}

// Resume takes the places of a paused task again, even if that exceeds a bound for as long as the task runs: it was
// started before, and a task that waits for it must not wait for ever.
func (s *Scheduler) Resume(id string, now time.Time) {
	s.setTime(now)
	if e := s.entries[id]; e != nil && e.state == paused {
		s.resumeEntry(e)
	}
}

func (s *Scheduler) resumeEntry(e *entry) {
	e.countPaused(-1)
	s.startEntry(e)
}

// countPaused keeps the account and the places of a paused task from being forgotten.
func (e *entry) countPaused(by int) {
	e.share.account.paused += by
	for _, p := range []*place{e.lane.agent, e.lane.owner, e.lane.provider, e.mailbox.room} {
		p.paused += by
	}
}

// Abandon gives the portal's place of a running task to others, and lets the next task of its mailbox
// start. Until Free the task still counts for its account, agent, owner and provider, because its driver
// runs.
func (s *Scheduler) Abandon(id string, now time.Time) {
	s.setTime(now)
	e := s.entries[id]
	if e != nil && e.state == paused {
		s.resumeEntry(e)
	}
	if e != nil && e.state == running {
		s.leavePortal(e)
		s.updateOpen(e.lane, false)
		s.dropMailbox(e.mailbox)
	}
}

// leavePortal frees the task's place in the portal, its room and its mailbox.
func (s *Scheduler) leavePortal(e *entry) {
	if e.state != running {
		return
	}
	e.state = abandoned
	s.running--
	m := e.mailbox
	m.running = nil
	s.changeRoom(m.room, -1)
	s.offerMailbox(m)
}

func (s *Scheduler) releaseHold(h hold) {
	if s.held[h]--; s.held[h] == 0 {
		delete(s.held, h)
	}
}

// Remove takes a waiting task out of the queue; false if it does not wait.
func (s *Scheduler) Remove(id string) bool {
	s.Release(id)
	e := s.entries[id]
	if e == nil || e.state != waiting {
		return false
	}
	s.unlinkEntry(e)
	s.offerMailbox(e.mailbox)
	s.forgetEntry(e)
	return true
}

// unlinkEntry takes a waiting task out of its mailbox and the counts.
func (s *Scheduler) unlinkEntry(e *entry) {
	m := e.mailbox
	if m.first == e {
		s.withdrawMailbox(m)
		m.first = e.next
	} else {
		e.prev.next = e.next
	}
	if m.last == e {
		m.last = e.prev
	} else {
		e.next.prev = e.prev
	}
	e.prev, e.next = nil, nil
	s.leaveLine(e)
	s.removeWaiting(e.share)
	e.lane.turns[e.share.class.index].waiting--
	e.lane.agent.waiting--
	e.lane.owner.waiting--
	e.lane.provider.waiting--
	m.room.waiting--
}

// forgetEntry drops a task that neither waits nor runs, and all that exists for it alone.
func (s *Scheduler) forgetEntry(e *entry) {
	delete(s.entries, e.id)
	e.lane.tasks--
	s.dropMailbox(e.mailbox)
	s.dropLane(e.lane)
	s.retireAccount(e.share.account)
}

func (s *Scheduler) dropMailbox(m *mailbox) {
	if m.running != nil || m.first != nil || s.mailboxes[m.key] != m {
		return
	}
	delete(s.mailboxes, m.key)
	list := m.room.mailboxes
	last := list[len(list)-1]
	list[m.atRoom], last.atRoom = last, m.atRoom
	list[len(list)-1] = nil
	m.room.mailboxes = list[:len(list)-1]
	dropPlace(s.rooms, m.key.conversation)
}

// offerMailbox makes the first task of a mailbox a candidate of Next, if the conversation allows it to start.
func (s *Scheduler) offerMailbox(m *mailbox) {
	if m.flow != nil || m.first == nil || m.running != nil || m.room.freePlaces() <= 0 {
		return
	}
	e := m.first
	k := flowKey{e.share, e.lane}
	f := s.flows[k]
	if f == nil {
		f = &flow{share: e.share, lane: e.lane, at: len(e.share.flows)}
		f.item.flow = f
		s.flows[k] = f
		e.share.flows = append(e.share.flows, f)
	}
	m.flow = f
	f.ready = pushHeap(f.ready, m)
	s.placeFlow(f)
	f.share.placeIdle()
}

// withdrawMailbox makes a mailbox no candidate any more.
func (s *Scheduler) withdrawMailbox(m *mailbox) {
	f := m.flow
	if f == nil {
		return
	}
	m.flow = nil
	f.ready = removeHeap(f.ready, m)
	if len(f.ready) > 0 {
		s.placeFlow(f)
		return
	}
	f.lane.nodes[f.share.class.index].dropItem(&f.item, f.group)
	delete(s.flows, flowKey{f.share, f.lane})
	list := f.share.flows
	last := list[len(list)-1]
	list[f.at], last.at = last, f.at
	list[len(list)-1] = nil
	f.share.flows = list[:len(list)-1]
	f.share.placeIdle()
}

// changeRoom counts a task of a room that starts or ends.
func (s *Scheduler) changeRoom(room *place, by int) {
	was := room.freePlaces() > 0
	room.running += by
	if is := room.freePlaces() > 0; is != was {
		for _, m := range room.mailboxes {
			if is {
				s.offerMailbox(m)
			} else {
				s.withdrawMailbox(m)
			}
		}
	}
}

func (e *entry) job() Job {
	return Job{ID: e.id, Conversation: e.mailbox.key.conversation, Agent: e.lane.key.agent, Owner: e.lane.key.owner,
		Provider: e.lane.key.provider, Class: e.share.account.key.class, Account: e.share.account.key.name,
		Background: e.share.class.index == shares-1}
}
