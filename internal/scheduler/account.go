package scheduler

import "math"

// accountKey identifies an account within its class.
type accountKey struct {
	class Class
	name  string
}

// account counts the tasks of one account, group of guests or portal.
type account struct {
	key              accountKey
	running, waiting int
	paused           int // tasks that wait for another one, see Scheduler.Pause
	refused          int
	shares           [2]*share // the second one is for background work
	retired          bool      // in Scheduler.retired
}

// meter sums seconds of running places: its virtual time. While running is above 0 it grows.
type meter struct {
	spent, at int64 // both in microseconds; at is when spent was true
	running   int
}

func (m *meter) chargeTime(now, weight int64) {
	m.spent += (now - m.at) * int64(m.running) * weight
	m.at = now
}

// spentAt charges and returns the virtual time.
func (m *meter) spentAt(now, weight int64) int64 {
	m.chargeTime(now, weight)
	return m.spent
}

// share is an account's part of one class: of its own, or of background work.
type share struct {
	meter
	account *account
	class   *class
	waiting int
	key     int64 // spent as the heap class.backlog orders it, a lower bound
	at      int
	flows   []*flow
	idle    idleItem
}

// idleItem is the element of a share in the heap class.retired.
type idleItem struct {
	share *share
	at    int
}

func (i *idleItem) before(o *idleItem) bool { return i.share.spent < o.share.spent }
func (i *idleItem) slot() *int              { return &i.at }

// placeIdle puts a share into the heap of its class, or takes it out: those with tasks that may start and
// of whose account nothing runs. Their virtual time stands still.
func (h *share) placeIdle() {
	c := h.class
	switch is := h.account.running == 0 && len(h.flows) > 0; {
	case is && h.idle.at == 0:
		c.idle = pushHeap(c.idle, &h.idle)
	case !is && h.idle.at != 0:
		c.idle = removeHeap(c.idle, &h.idle)
	}
}

func (h *share) before(o *share) bool { return h.key < o.key }
func (h *share) slot() *int           { return &h.at }

// class is one of the units between which the portal's places are shared first.
type class struct {
	meter
	index   int
	weight  int64 // how much a second of its tasks costs
	root    *node
	turn    int64 // the greatest virtual time of a share at the start of one of its tasks
	waiting int
	backlog []*share // that have waiting tasks
	idle    []*idleItem
	refused int // tasks since the start
	lately  refusals
	used    int64 // microseconds that ended tasks ran
}

// weightOf returns how much a second of the tasks of a class costs.
func weightOf(class int) int64 {
	if class == shares-1 {
		return backgroundWeight
	}
	return 1
}

// least returns the least virtual time of the shares with waiting tasks, and turn without any. A share
// that begins to wait starts from there: neither ahead of the others nor behind them.
func (c *class) least(now int64) int64 {
	for range maxRefreshes {
		if len(c.backlog) == 0 {
			return c.turn
		}
		first := c.backlog[0]
		first.chargeTime(now, 1)
		if first.key == first.spent {
			break
		}
		first.key = first.spent
		fixHeap(c.backlog, first)
	}
	return c.backlog[0].key
}

// getAccount returns the account of a job, a new one if nothing of it runs or waits.
func (s *Scheduler) getAccount(k accountKey) *account {
	a := s.accounts[k]
	if a == nil {
		a = &account{key: k}
		s.accounts[k] = a
	}
	return a
}

func (s *Scheduler) getShare(a *account, background bool) *share {
	kind, class := 0, int(a.key.class)
	if background {
		kind, class = 1, shares-1
	}
	if a.shares[kind] == nil {
		h := &share{account: a, class: &s.classes[class], meter: meter{at: s.now}}
		h.idle.share = h
		a.shares[kind] = h
	}
	return a.shares[kind]
}

// addWaiting counts a waiting task of a share. Virtual time that it has used too much stays; time that
// it left unused while it had no task is not saved.
func (s *Scheduler) addWaiting(h *share) {
	c := h.class
	if h.waiting == 0 {
		h.chargeTime(s.now, 1)
		h.spent = max(h.spent, c.least(s.now))
		h.key = h.spent
		c.backlog = pushHeap(c.backlog, h)
	}
	if c.waiting == 0 {
		least := int64(math.MaxInt64)
		for i := range s.classes {
			o := &s.classes[i]
			o.chargeTime(s.now, o.weight)
			if o.waiting > 0 {
				least = min(least, o.spent)
			}
		}
		if least == math.MaxInt64 {
			least = s.turn
		}
		c.spent = max(c.spent, least)
	}
	h.waiting++
	h.account.waiting++
	c.waiting++
	s.waiting++
}

func (s *Scheduler) removeWaiting(h *share) {
	h.waiting--
	h.account.waiting--
	h.class.waiting--
	s.waiting--
	if h.waiting == 0 {
		h.class.backlog = removeHeap(h.class.backlog, h)
	}
}

// startCharge is added to the use of a share whenever a task of it starts, so that accounts with
// tasks of no measurable length take turns.
const startCharge = 1000

// Bounds on how far a share may lag behind the others of its class, in microseconds of running places, and
// a class behind the others, in microseconds of the whole portal. They lag while all their agents are
// full, and catch up later at the cost of the others.
const (
	maxShareLag = 1800 * 1_000_000 // twice the longest run of a task
	maxClassLag = 100 * 1_000_000
)

func (s *Scheduler) addRunning(h *share) {
	c := h.class
	h.chargeTime(s.now, 1)
	h.spent = max(h.spent, c.turn-maxShareLag)
	c.turn = max(c.turn, h.spent)
	h.spent += startCharge
	h.running++
	c.chargeTime(s.now, c.weight)
	c.spent = max(c.spent, s.turn-maxClassLag*int64(s.limits.Running))
	s.turn = max(s.turn, c.spent)
	c.spent += startCharge * c.weight
	c.running++
	if h.account.running++; h.account.running == 1 {
		h.account.placeIdle()
	}
}

func (a *account) placeIdle() {
	for _, h := range a.shares {
		if h != nil {
			h.placeIdle()
		}
	}
}

func (s *Scheduler) removeRunning(h *share) {
	h.chargeTime(s.now, 1)
	h.running--
	h.class.chargeTime(s.now, h.class.weight)
	h.class.running--
	a := h.account
	a.running--
	if a.running == 0 {
		a.placeIdle()
	}
	if a.running == s.perAccount-1 {
		for _, h := range a.shares {
			if h == nil {
				continue
			}
			for _, f := range h.flows {
				if f.item.at == 0 { // chooseFlow took it out while the account was at its bound
					s.placeFlow(f)
				}
			}
		}
	}
}

// retireAccount forgets an account without tasks, unless it has used more than the others of its class: then it
// is kept until they have caught up, so that it does not begin anew by a pause.
func (s *Scheduler) retireAccount(a *account) {
	if a.running+a.waiting+a.paused > 0 {
		return
	}
	if !a.isIndebted() {
		delete(s.accounts, a.key)
	} else if !a.retired {
		a.retired = true
		s.retired = append(s.retired, a)
	}
	for len(s.retired) > 0 {
		old := s.retired[0]
		if old.running+old.waiting+old.paused == 0 && old.isIndebted() && len(s.retired) <= maxIdle {
			break
		}
		s.retired[0] = nil
		s.retired = s.retired[1:]
		old.retired = false
		if old.running+old.waiting+old.paused == 0 && s.accounts[old.key] == old {
			delete(s.accounts, old.key)
		}
	}
}

func (a *account) isIndebted() bool {
	for _, h := range a.shares {
		if h != nil && h.spent > h.class.turn {
			return true
		}
	}
	return false
}

// maxIdle bounds the accounts that are remembered without tasks. Each takes about 300 bytes.
const maxIdle = 10_000

// flow is the tasks of a share in a lane that could start as far as their conversations are concerned.
type flow struct {
	item  item
	share *share
	lane  *lane
	group int        // in which item is, if it is in a heap
	ready []*mailbox // a heap by the age of their first tasks
	order uint64     // of the first task in ready
	at    int        // index in share.flows
}

func (f *flow) key() key { return key{f.share.spent, f.order} }

type flowKey struct {
	share *share
	lane  *lane
}

// hold is the number of tasks that an account runs at an agent or a provider.
type hold struct {
	account *account
	place   *place
}

// standing is the state that an account's tasks at a provider give to all its flows there.
type standing struct{ idle, full bool }

func (s *Scheduler) standingOf(a *account, provider *place) standing {
	held := s.held[hold{a, provider}]
	return standing{held == 0, held >= halfOf(provider.bound.running)}
}

// rankFlow returns the group of a flow of the account in the lane, and whether the account may start a task
// there as far as its halves of the agent and the provider are concerned.
func (s *Scheduler) rankFlow(a *account, l *lane) (group int, ok bool) {
	at := s.standingOf(a, l.provider)
	held := s.held[hold{a, l.agent}]
	if at.full || held >= halfOf(l.agent.bound.running) {
		return 0, false
	}
	switch {
	case at.idle:
		return idleProvider, true
	case held == 0:
		return idleAgent, true
	}
	return busyAgent, true
}

// placeFlow puts a flow where it belongs in the tree, or takes it out.
func (s *Scheduler) placeFlow(f *flow) {
	n := s.laneNode(f.lane, f.share.class.index)
	f.order = f.ready[0].first.order
	group, ok := s.rankFlow(f.share.account, f.lane)
	if f.item.at != 0 && (!ok || group != f.group) {
		n.dropItem(&f.item, f.group)
	}
	if ok {
		f.share.chargeTime(s.now, 1)
		f.group = group
		n.putItem(&f.item, group, f.key())
	}
}

// placeFlows places the flows of an account anew after the counts of its tasks in the lane have changed.
func (s *Scheduler) placeFlows(a *account, l *lane, before standing) {
	all := s.standingOf(a, l.provider) != before
	for _, h := range a.shares {
		if h == nil {
			continue
		}
		if !all {
			if f := s.flows[flowKey{h, l}]; f != nil {
				s.placeFlow(f)
			}
			continue
		}
		for _, f := range h.flows {
			if f.lane.provider == l.provider {
				s.placeFlow(f)
			}
		}
	}
}
