package app

import (
	"cmp"
	"context"
	"time"

	"agentsite/agentruntime"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/scheduler"
	"agentsite/internal/task"
)

// admission implements chat.Admission with the queue of the runtime.
type admission struct {
	queue *agentruntime.Queue
	hub   *hub.Service
}

// Admit implements chat.Admission. The bounds of an agent that cannot be read are left out: its task fails
// when it starts.
func (a admission) Admit(ctx context.Context, t task.Task) (wait time.Duration, ok bool) {
	j := agentruntime.TaskJob(t)
	if agent, _, err := a.hub.Open(ctx, t.AgentID); err == nil {
		j = agentruntime.AgentJob(j, agent, a.hub)
	}
	return a.queue.Admit(j)
}

// Withdraw implements chat.Admission.
func (a admission) Withdraw(taskIDs ...string) { a.queue.Withdraw(taskIDs...) }

// Queue returns the state of the queue with the names of its accounts and agents. Only the operator may
// read it.
func (p *Portal) Queue(ctx context.Context, actor ident.Actor) (scheduler.Snapshot, error) {
	if !actor.IsPerson() {
		return scheduler.Snapshot{}, fault.New(fault.Unauthenticated, "Log in as the operator.")
	}
	if err := hub.RequireOperator(actor); err != nil {
		return scheduler.Snapshot{}, err
	}
	s := p.queue.Snapshot()
	for i := range s.Accounts {
		a := &s.Accounts[i]
		a.Name = p.accountName(ctx, a.Class, a.Account)
	}
	for i := range s.Agents {
		at := &s.Agents[i]
		at.Name = at.Key
		if a, err := p.db.Hub.AgentByID(ctx, at.Key); err == nil {
			at.Name = a.Handle()
		}
	}
	for i := range s.Providers {
		s.Providers[i].Name = s.Providers[i].Key
	}
	return s, nil
}

// AgentQueue returns the number of tasks of an agent that run and wait. Only those who may edit it may read it.
func (p *Portal) AgentQueue(ctx context.Context, actor ident.Actor, name string) (running, waiting int, err error) {
	a, err := p.hub.Get(ctx, actor, name)
	if err != nil {
		return 0, 0, err
	}
	if !a.MayEdit(actor) {
		return 0, 0, fault.New(fault.Forbidden, "Only an owner of %s may do that.", a.Name)
	}
	s := p.queue.AgentState(a.ID)
	return s.Running, s.Waiting, nil
}

// accountName returns the name of an account, or the host of a portal; the key itself where there is none.
func (p *Portal) accountName(ctx context.Context, class scheduler.Class, key string) string {
	name := ""
	switch class {
	case scheduler.Accounts:
		if a, err := p.db.Accounts.AccountByID(ctx, key); err == nil {
			name = a.Name
		}
	case scheduler.Portals:
		if peer, ok := p.peers.Portal(ctx, key); ok {
			name = peer.Host()
		}
	}
	return cmp.Or(name, key)
}
