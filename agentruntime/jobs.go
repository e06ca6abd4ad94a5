package agentruntime

import (
	"context"
	"strings"
	"sync/atomic"
	"time"

	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/scheduler"
	"agentsite/internal/task"
)

// CallerJob returns the part of a job that depends on its caller. group is ident.Actor.AddrGroup of a
// guest.
func CallerJob(kind, id, group string) scheduler.Job {
	j := scheduler.Job{Class: scheduler.Accounts, Account: id}
	switch ident.ActorKind(kind) {
	case ident.Guest:
		j.Class = scheduler.Guests
		if group != "" {
			j.Account = group
		}
	case ident.Portal:
		j.Class, j.Account = scheduler.Portals, ident.PortalOf(id)
	}
	return j
}

// TaskJob returns the job of a task, without the part that depends on its agent.
func TaskJob(t task.Task) scheduler.Job {
	j := CallerJob(t.CallerKind, t.CallerID, t.CallerGroup)
	j.ID, j.Conversation, j.Agent = t.ID, t.ConversationID, t.AgentID
	return j
}

// AgentJob adds the part of a job that depends on its agent.
func AgentJob(j scheduler.Job, a hub.Agent, agents *hub.Service) scheduler.Job {
	j.Agent, j.Owner, j.Provider = a.ID, a.OwnerID, agents.TextGoesTo(a)
	return j
}

// hosts caches the owners and providers of agents, because each queued task needs them. Only the loop of
// Worker.Run uses it.
type hosts struct {
	agents *hub.Service
	known  map[string]scheduler.Job
	until  time.Time
}

const (
	maxHosts  = 10_000
	keepHosts = time.Minute
)

// addAgent adds the agent with the id to a job. An agent that cannot be read has neither owner nor
// provider: its tasks fail when they start.
func (h *hosts) addAgent(ctx context.Context, j scheduler.Job, agentID string) scheduler.Job {
	if now := time.Now(); h.known == nil || len(h.known) >= maxHosts || now.After(h.until) {
		h.known, h.until = make(map[string]scheduler.Job), now.Add(keepHosts)
	}
	of, ok := h.known[agentID]
	if !ok {
		of.Agent = agentID
		if a, _, err := h.agents.Open(ctx, agentID); err == nil {
			of = AgentJob(of, a, h.agents)
			of.Agent = agentID
		}
		h.known[agentID] = of
	}
	j.Agent, j.Owner, j.Provider = of.Agent, of.Owner, of.Provider
	return j
}

// maxQueuedRead bounds the rows of one read of the queue.
const maxQueuedRead = 1000

// loadQueue adds the tasks to the plan that were queued since the last call, and returns their number. With
// left they may be tasks that the last run of the portal left, which readers then see waiting.
func (w *Worker) loadQueue(ctx context.Context, left bool) (int, error) {
	total := 0
	for {
		list, err := w.store.Queued(ctx, w.position, maxQueuedRead)
		if err != nil {
			return total, err
		}
		for _, one := range list {
			w.position = one.Position
			j := w.hosts.addAgent(ctx, CallerJob(one.CallerKind, one.CallerID, one.CallerGroup), one.AgentID)
			j.ID, j.Conversation, j.Background = one.ID, one.ConversationID, one.Pushed
			if j.Conversation == "" { // The task was deleted.
				j.Conversation = one.ID
			} else if left {
				w.chat.ShowQueued(one)
			}
			if !w.queue.addJob(j) {
				// An earlier run of the task has not returned yet, for example the question that this is the
				// answer to.
				j.ID += runMark + one.ID
				w.queue.addJob(j)
			}
		}
		if total += len(list); len(list) < maxQueuedRead {
			return total, nil
		}
	}
}

// waitInterval is the time between two updates of when waiting tasks are about to start.
const waitInterval = 2 * time.Second

// updateWaits keeps live readers informed about waiting tasks until ctx ends.
func (w *Worker) updateWaits(ctx context.Context) {
	tick := time.NewTicker(waitInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			w.chat.UpdateWaits()
		case <-ctx.Done():
			return
		}
	}
}

// runMark begins the part of the id of a job that is not the id of its task.
const runMark = " "

// taskOf returns the id of the task of a job.
func taskOf(j scheduler.Job) string {
	id, _, _ := strings.Cut(j.ID, runMark)
	return id
}

// run is the place of a running task in the plan. It is freed when both the task and its driver have
// ended.
type run struct {
	queue *Queue
	jobID string
	ends  atomic.Int32
	// begun is set when the driver is called.
	begun bool
}

// endTask is called when the outcome of the task is stored or left to the next start of the portal.
func (r *run) endTask() {
	if !r.begun || r.ends.Add(1) == 2 {
		r.queue.freeJob(r.jobID)
		return
	}
	r.queue.abandonJob(r.jobID)
}

// endDriver is called when the driver has returned.
func (r *run) endDriver() {
	if r.ends.Add(1) == 2 {
		r.queue.freeJob(r.jobID)
	}
}

var _ task.Queue = Store(nil)
