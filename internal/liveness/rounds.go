package liveness

import (
	"agentsite/internal/hub"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Limits for probes. A probe waits in the queue of its agent's host, and hosts take turns, so that
// neither a host with many agents nor a slow one delays the others.
const (
	// probesAtOnce bounds the probes that run at a time. Probes that a requester waits for may run
	// beyond it, up to urgentAtOnce.
	probesAtOnce = 16
	urgentAtOnce = 24
	// slowAtOnce bounds the running probes at slow hosts: the last answer of a slow host took
	// longer than slowAnswer.
	slowAtOnce = probesAtOnce / 2
	slowAnswer = 2 * time.Second
	// hostAtOnce and hostUrgent bound the running probes at one host, without and with those that a
	// requester waits for. hostGap is the minimum time between the starts of two probes there.
	hostAtOnce = 2
	hostUrgent = 4
	hostGap    = 100 * time.Millisecond
	// A host counts as down after hostMisses probes in a row without a connection. Then one agent
	// is probed for all of the host.
	hostMisses = 5
	// restFirst is the pause between two probes of a host that is down. It doubles with each
	// failure up to restMost.
	restFirst = 30 * time.Second
	restMost  = 10 * time.Minute
	// maxWaiting bounds the waiting visits of all hosts together, maxHosts the hosts with a state
	// in memory, maxPutOff the agents that are probed at once when their host answers again.
	maxWaiting = 8192
	maxHosts   = 4096
	maxPutOff  = 20_000
)

// visit is the planned or running probe of one agent.
type visit struct {
	agent   string
	version int
	host    string
	waiters []chan hub.Liveness // channels of requesters that wait for the result; each has room for it

	running bool
	met     bool // the result of the probe is known; follow-up work is still running
}

func (v *visit) answerWaiters(l hub.Liveness) {
	for _, w := range v.waiters {
		w <- l
	}
	v.waiters = nil
}

// rounds holds the queues of all hosts. Only the goroutine of Service.Run uses it, so it has no
// lock.
type rounds struct {
	hosts  map[string]*hostQueue
	turn   []*hostQueue // hosts with waiting visits, the next one first
	visits map[string]*visit
	// waiting counts visits that have not begun, busy those that are running, slowBusy the running
	// ones at slow hosts.
	waiting, busy, slowBusy int
	putOff                  int
}

// hostQueue is the state of one host: its waiting visits, and the results of its last probes.
type hostQueue struct {
	name    string
	urgent  []*visit
	list    []*visit
	running int
	gap     time.Time // no visit begins before this time
	slow    bool
	misses  int
	rest    time.Time       // while the host is down, only urgent visits begin before this time
	putOff  map[string]bool // ids of agents that were not probed because the host was down
}

func newRounds() *rounds {
	return &rounds{hosts: make(map[string]*hostQueue), visits: make(map[string]*visit)}
}

func (h *hostQueue) isDown() bool { return h.misses >= hostMisses }
func (h *hostQueue) isIdle() bool { return h.running == 0 && len(h.list)+len(h.urgent) == 0 }

// queueOf returns the queue of a host and creates it if needed.
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

// forgetHosts drops the state of all hosts without waiting or running visits, to make room for
// others.
func (r *rounds) forgetHosts() {
	for name, h := range r.hosts {
		if h.isIdle() {
			r.putOff -= len(h.putOff)
			delete(r.hosts, name)
		}
	}
}

// addVisit queues a visit. There is at most one waiting visit per agent: another one for the same
// agent is merged with it. A requester may also join a running visit to the same version of the
// agent that has no result yet. It reports false, and queues nothing, when maxWaiting visits wait.
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

// removeVisit takes a visit that has not begun out of its queue, because a newer one replaces it.
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

// settleHost takes a host without waiting visits out of the turn, and drops its state unless the
// host is slow or failing.
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

// nextVisit marks the next visit as running and returns it. Without one, v is nil and wait is the
// time until a visit may begin; wait is 0 if that depends on the end of a running visit.
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
		// The host goes to the end of the turn, so that each other host comes first.
		copy(r.turn[i:], r.turn[i+1:])
		r.turn[len(r.turn)-1] = h
		r.settleHost(h)
		return v, 0
	}
	return nil, wait
}

// reach is the part of a probe's result that is about the host and not about the agent.
type reach int

const (
	nothing reach = iota
	connected
	missed // no connection to the host came about
)

// noteResult takes the result of a visit and answers the requesters that wait for it. When the host
// turns out to be down, same has its other waiting visits, taken out of the queue: they get the
// same result. When the host answers again, back has the ids of the agents that were not probed
// while it was down.
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

// endVisit takes a visit that nextVisit returned out of the counts of running visits.
func (r *rounds) endVisit(v *visit) {
	r.forgetVisit(v)
	r.busy--
	h := r.hosts[v.host] // never nil: a host is kept while one of its visits runs
	h.running--
	if h.slow {
		r.slowBusy--
	}
	r.settleHost(h)
}

// forgetVisit drops the entry of a visit, unless a newer visit of the agent took its place.
func (r *rounds) forgetVisit(v *visit) {
	if r.visits[v.agent] == v {
		delete(r.visits, v.agent)
	}
}

// hostOf returns the host and port of an agent's address, the key of its queue; "" for agents
// without an address, which run on the portal's own model.
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
