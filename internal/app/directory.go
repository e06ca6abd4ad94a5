package app

import (
	"context"
	"net/http"

	"agentsite/agentruntime"
	"agentsite/agentruntime/detect"
	toolserver "agentsite/agentruntime/mcp"
	"agentsite/agentruntime/remote"
	"agentsite/internal/agentkind"
	"agentsite/internal/chat"
	"agentsite/internal/fault"
	"agentsite/internal/halt"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/liveness"
	"agentsite/internal/task"
	"agentsite/internal/weborigin"
	"agentsite/store"
)

// directory implements chat.Directory with the agents of the hub and the accounts of this portal.
type directory struct {
	hub     *hub.Service
	db      *store.DB
	instant *agentruntime.Instant
}

// Agent implements chat.Directory: it returns an agent that the actor may call, and stores a row for an
// agent of another portal at first use.
func (d directory) Agent(ctx context.Context, actor ident.Actor, handle string) (chat.AgentRef, error) {
	a, err := d.hub.Callable(ctx, actor, handle)
	if err != nil {
		return chat.AgentRef{}, err
	}
	if err := d.hub.Met(ctx, a); err != nil {
		return chat.AgentRef{}, err
	}
	return chat.AgentRef{ID: a.ID, Handle: a.Handle(), Title: a.Title, Public: a.Visibility == hub.Public,
		Remote:  d.hub.TextGoesTo(a),
		Instant: d.instant.Kind(a.Kind)}, nil
}

// Person implements chat.Directory. Only enabled accounts of this portal are found, for every actor; all
// others are NotFound.
func (d directory) Person(ctx context.Context, _ ident.Actor, name string) (chat.Member, error) {
	h, _ := ident.ParseHandle(name, d.hub.Portal())
	a, err := d.db.Accounts.AccountByName(ctx, h.Name)
	if err != nil || a.Disabled() || h.Portal != "" {
		if err == nil || fault.Is(err, fault.NotFound) {
			err = fault.New(fault.NotFound, "There is no account %.80q here.", name)
		}
		return chat.Member{}, err
	}
	return chat.Member{Kind: "person", ID: a.ID, Handle: a.Name, Role: "member"}, nil
}

// Hosts implements chat.Directory. Agents that run on this portal are left out.
func (d directory) Hosts(ctx context.Context, agentIDs []string) (map[string]string, error) {
	out := make(map[string]string)
	for _, id := range agentIDs {
		a, err := d.db.Hub.AgentByID(ctx, id)
		if fault.Is(err, fault.NotFound) {
			continue // removed agents receive no text
		}
		if err != nil {
			return nil, err
		}
		if host := d.hub.TextGoesTo(a); host != "" {
			out[id] = host
		}
	}
	return out, nil
}

// Admit implements chat.Directory: the hub checks the owner's limits and counts the call.
func (d directory) Admit(ctx context.Context, actor ident.Actor, handle string, size int) error {
	return d.hub.Admit(ctx, actor, handle, size)
}

// openDirectory builds the service of agents (p.hub) and the monitor of their liveness (p.monitor). It
// needs the network and the drivers, which are built before.
func (p *Portal) openDirectory(ctx context.Context, keys *ident.Keys, rt http.RoundTripper,
	byKind map[hub.Kind]task.Agent,
	words hub.Index, queue *agentruntime.Queue) error {
	probes := liveness.NewQueue(p.db.Hub, p.log)
	ports := hub.Ports{Store: p.db.Hub, Index: words, Probes: probes, Reader: detect.New(rt),
		Witness: remote.NewWitness(rt), Trier: trier{agentruntime.NewTrier(queue, byKind), p},
		Sealer: keys, Models: namedModels{p.models}, Modules: hostedModules{p},
		Addresses: addressPolicy{p.egress}, Connections: p.drivers.link, NoticeQueue: p.notifier}
	cfg := hub.Config{Portal: p.url.Host, URL: p.url.String(), Log: p.log,
		Kinds:    agentkind.Registered(),
		Loopback: weborigin.IsLoopback(p.url.Hostname())}
	p.hub = hub.New(p.connectHub(ports), cfg)
	monitor := liveness.Ports{Queue: probes, Directory: p.hub, Notices: p.hub.Notices, Proofs: p.hub.Proofs,
		Prober: probers{remote.NewProber(rt), toolserver.NewProber(rt), p.drivers.prompt, p.drivers.hosted}}
	if p.node != nil {
		monitor.Observer = p.node
	}
	p.monitor = liveness.New(monitor)
	p.halts = halt.New(p.db.Halts, p.hub, owners{p.db}, queue)
	return p.halts.Load(ctx)
}

// owners implements halt.People.
type owners struct{ db *store.DB }

func (o owners) OwnerByName(ctx context.Context, name string) (string, error) {
	a, err := o.db.Accounts.AccountByName(ctx, name)
	if fault.Is(err, fault.NotFound) {
		err = fault.New(fault.NotFound, "There is no account %.80q on this portal.", name)
	}
	return a.ID, err
}
