package liveness

import (
	"agentsite/internal/hub"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"
)

// The order of visits. An agent waits in the queue of its host, and hosts take turns, so that a
// host with many agents, or a slow one, delays no other.
const (
	// probesAtOnce bounds the running exchanges, urgentAtOnce the same including those with a
	// waiting requester.
	probesAtOnce = 16
	urgentAtOnce = 24
	// slowAtOnce is how many of them may be with hosts that last took longer
	// than slowAnswer.
	slowAtOnce = probesAtOnce / 2
	slowAnswer = 2 * time.Second
	// hostAtOnce and hostUrgent are the same for one host, hostGap is how far
	// apart its exchanges begin.
	hostAtOnce = 2
	hostUrgent = 4
	hostGap    = 100 * time.Millisecond
	// hostMisses is after how many agents in a row no connection to a host
	// came about that it is taken to be down: one agent is asked for all.
	hostMisses = 5
	// restFirst is how long a host that is down rests, doubled up to restMost.
	restFirst = 30 * time.Second
	restMost  = 10 * time.Minute
	// maxWaiting bounds the queues together, maxHosts the remembered hosts, maxPutOff the agents
	// that are called back when a host returns.
	maxWaiting = 8192
	maxHosts   = 4096
	maxPutOff  = 20_000
)

// visit is one agent's turn.
type visit struct {
	agent   string
	version int
	host    string
	waiters []chan hub.Liveness // requesters of the verdict; buffered

	running bool
	met     bool // it showed something, but is not over
}

func (v *visit) answerWaiters(l hub.Liveness) {
	for _, w := range v.waiters {
		w <- l
	}
	v.waiters = nil
}

// rounds holds the queues. It belongs to the goroutine of Run.
type rounds struct {
	hosts  map[string]*hostQueue
	turn   []*hostQueue // hosts with waiting visits
	visits map[string]*visit
	// waiting, busy and slowBusy count the visits that have not begun, those
	// under way, and of these the ones to slow hosts.
	waiting, busy, slowBusy int
	putOff                  int
}

// hostQueue is the state of one host.
type hostQueue struct {
	name    string
	urgent  []*visit
	list    []*visit
	running int
	gap     time.Time // before which nothing new begins
	slow    bool
	misses  int
	rest    time.Time       // before which a host that is down is left alone
	putOff  map[string]bool // agents that were not asked because it was down
}

func newRounds() *rounds {
	return &rounds{hosts: make(map[string]*hostQueue), visits: make(map[string]*visit)}
}

func (h *hostQueue) isDown() bool { return h.misses >= hostMisses }
func (h *hostQueue) isIdle() bool { return h.running == 0 && len(h.list)+len(h.urgent) == 0 }

// queueOf returns the queue of a host.
func (r *rounds) queueOf(name string) *hostQueue {
	h := r.hosts[name]
	if h == nil {
		if len(r.hosts) >= maxHosts {
			r.forgetHosts()
		}
		h = &hostQueue{name: name}
		r.hosts[name] = h
	}
	return h
}

// forgetHosts drops the state of hosts without waiting visits.
func (r *rounds) forgetHosts() {
	for name, h := range r.hosts {
		if h.isIdle() {
			r.putOff -= len(h.putOff)
			delete(r.hosts, name)
		}
	}
}

// addVisit queues a visit. One to the same agent that waits already is joined, and
// one that is under way to the same version and has shown nothing yet; it
// reports false when there is no room.
func (r *rounds) addVisit(v *visit) bool {
	switch have := r.visits[v.agent]; {
	case have == nil:
	case !have.running && len(v.waiters) > 0:
		r.removeVisit(have)
		delete(r.visits, v.agent)
		v.waiters = append(have.waiters, v.waiters...)
	case !have.running, len(v.waiters) == 0:
		return true
	case have.version == v.version && !have.met:
		have.waiters = append(have.waiters, v.waiters...)
		return true
	}
	if r.waiting >= maxWaiting {
		return false
	}
	h := r.queueOf(v.host)
	if len(h.list)+len(h.urgent) == 0 {
		r.turn = append(r.turn, h)
	}
	if len(v.waiters) > 0 {
		h.urgent = append(h.urgent, v)
	} else {
		h.list = append(h.list, v)
	}
	r.visits[v.agent] = v
	r.waiting++
	return true
}

// removeVisit takes a visit that has not begun out of its queue.
func (r *rounds) removeVisit(v *visit) {
	h := r.hosts[v.host]
	cut := func(list []*visit) []*visit {
		for i := range list {
			if list[i] == v {
				r.waiting--
				return append(list[:i], list[i+1:]...)
			}
		}
		return list
	}
	h.urgent, h.list = cut(h.urgent), cut(h.list)
	r.settleHost(h)
}

// settleHost removes a host without waiting visits from the turn, and drops it when it has no
// state worth keeping.
func (r *rounds) settleHost(h *hostQueue) {
	if len(h.list)+len(h.urgent) == 0 {
		for i := range r.turn {
			if r.turn[i] == h {
				r.turn = append(r.turn[:i], r.turn[i+1:]...)
				break
			}
		}
	}
	if h.isIdle() && !h.slow && h.misses == 0 {
		delete(r.hosts, h.name)
	}
}

// nextVisit begins the next visit in turn. When there is none, wait is how long until there may be
// one, 0 when that depends on running visits.
func (r *rounds) nextVisit(now time.Time) (v *visit, wait time.Duration) {
	for i, h := range r.turn {
		urgent := len(h.urgent) > 0 && r.busy < urgentAtOnce && h.running < hostUrgent
		if !urgent {
			most := hostAtOnce
			if h.isDown() {
				most = 1
			}
			if len(h.list) == 0 || r.busy >= probesAtOnce || h.running >= most || h.slow && r.slowBusy >= slowAtOnce {
				continue
			}
			from := h.gap
			if h.isDown() && h.rest.After(from) {
				from = h.rest
			}
			if left := from.Sub(now); left > 0 {
				if wait == 0 || left < wait {
					wait = left
				}
				continue
			}
		}
		list := &h.list
		if urgent {
			list = &h.urgent
		}
		v, *list = (*list)[0], (*list)[1:]
		v.running = true
		h.gap = now.Add(hostGap)
		h.running++
		r.busy++
		if h.slow {
			r.slowBusy++
		}
		r.waiting--
		// The others have their turn first.
		copy(r.turn[i:], r.turn[i+1:])
		r.turn[len(r.turn)-1] = h
		r.settleHost(h)
		return v, 0
	}
	return nil, wait
}

// reach is the result of an exchange for the host, whatever the result for the agent.
type reach int

const (
	nothing reach = iota
	connected
	missed // no connection came about
)

// noteResult takes the result of a visit. When its host turns out to be down, the other visits
// waiting for it are returned in same: they get the same result. When the host has come back, back
// has the agents that were put off.
func (r *rounds) noteResult(v *visit, l hub.Liveness, showed reach, took time.Duration,
	now time.Time) (same []*visit, back []string) {
	v.met = true
	v.answerWaiters(l)
	h := r.hosts[v.host]
	if slow := took > slowAnswer; showed != nothing && slow != h.slow {
		h.slow = slow
		if slow {
			r.slowBusy += h.running
		} else {
			r.slowBusy -= h.running
		}
	}
	switch showed {
	case connected:
		back = slices.Collect(maps.Keys(h.putOff))
		r.putOff -= len(back)
		h.misses, h.putOff = 0, nil
	case missed:
		h.misses++
		if !h.isDown() {
			break
		}
		h.rest = now.Add(min(restFirst<<min(h.misses-hostMisses, 10), restMost))
		same, h.list = h.list, nil
		if h.putOff == nil {
			h.putOff = make(map[string]bool)
		}
		for _, o := range same {
			o.running, o.met = true, true
			if !h.putOff[o.agent] && r.putOff < maxPutOff {
				h.putOff[o.agent] = true
				r.putOff++
			}
		}
		r.waiting -= len(same)
		r.settleHost(h)
	}
	return same, back
}

// endVisit ends a visit that next began.
func (r *rounds) endVisit(v *visit) {
	r.forgetVisit(v)
	r.busy--
	h := r.hosts[v.host] // is there while one of its visits is under way
	h.running--
	if h.slow {
		r.slowBusy--
	}
	r.settleHost(h)
}

// forgetVisit forgets a visit.
func (r *rounds) forgetVisit(v *visit) {
	if r.visits[v.agent] == v {
		delete(r.visits, v.agent)
	}
}

// hostOf returns the key that counts an agent's turns: host and port of its address, "" for agents
// on the portal's own model.
func hostOf(a hub.Agent) string {
	u, err := url.Parse(a.Endpoint)
	if err != nil {
		return a.Endpoint
	}
	host := strings.ToLower(u.Host)
	switch u.Scheme {
	case "https":
		host = strings.TrimSuffix(host, ":443")
	case "http":
		host = strings.TrimSuffix(host, ":80")
	}
	return host
}
