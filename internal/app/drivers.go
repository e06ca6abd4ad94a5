package app

import (
	"context"
	"errors"
	"net/netip"

	"agentsite/agentruntime"
	"agentsite/agentruntime/acting"
	"agentsite/agentruntime/assistant"
	"agentsite/agentruntime/builtin"
	"agentsite/agentruntime/bundle"
	"agentsite/agentruntime/conformance"
	"agentsite/agentruntime/lead"
	"agentsite/agentruntime/link"
	"agentsite/agentruntime/mcp"
	"agentsite/agentruntime/prompt"
	"agentsite/agentruntime/remote"
	"agentsite/agentruntime/wasm"
	handed "agentsite/handlers/tools"
	"agentsite/internal/clock"
	"agentsite/internal/egress"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/task"
)

// drivers holds one driver for each kind of agent. A driver runs the tasks of its agents.
type drivers struct {
	a2a    *remote.A2A
	peer   *remote.Peer
	openai *remote.OpenAI
	mcp    *mcp.Driver
	prompt *prompt.Driver
	lead   *lead.Lead
	link   *link.Driver
	hosted *wasm.Driver
	build  task.Agent
	// instant answers for the built-in agents that need no task.
	instant task.Agent
	// tools are those of agents that run elsewhere.
	tools *acting.Sessions
}

// byKind returns the drivers by kind, for the worker and for trying agents.
func (d *drivers) byKind() map[hub.Kind]task.Agent {
	return map[hub.Kind]task.Agent{hub.A2A: d.a2a, hub.Peer: d.peer, hub.OpenAI: d.openai, hub.MCP: d.mcp,
		hub.Prompt: d.prompt, hub.Link: d.link, hub.Builtin: d.build,
		hub.Wasm: d.hosted}
}

// close closes all connections of the drivers. A nil receiver is allowed, because Close may run after a
// failed start.
func (d *drivers) close() {
	if d != nil {
		d.link.Close()
		d.mcp.Close()
		d.a2a.Close()
		d.peer.Close()
	}
}

// anywhere allows the client of the portal's own model to call every address, because the operator
// configured the address.
var anywhere = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}

// newDrivers builds the drivers. They use p.hub and p.monitor only while tasks run, because both are
// built later.
func (p *Portal) newDrivers(host string, out egress.Config) *drivers {
	// An agent may take minutes before its answer begins.
	plain := out
	patient := agentruntime.Wiretap{Next: p.calls.Patient(modelFirstByte)}
	out.AllowCIDR = anywhere
	p.model = egress.New(out)
	servers := mcp.New(patient, mcp.Config{Log: p.log})
	tools := p.newTools(servers)
	sessions := acting.NewSessions(tools, p.url.String()+handed.Path, p.Mark)
	d := &drivers{
		tools: sessions,
		a2a:   remote.NewA2A(patient, remote.Config{Log: p.log, Portal: host, Tools: sessions}),
		peer: remote.NewPeer(remote.PeerConfig{Config: remote.Config{Log: p.log, Portal: host},
			Portals: callerPortals{p}}),
		openai: remote.NewOpenAI(patient, remote.Config{Log: p.log, Meter: workMeter{p}, Guard: p.ceilings}),
		mcp:    servers,
		link:   link.New(link.Config{Portal: host, Log: p.log, Observer: linkObserver{p}, Tools: sessions}),
	}
	rules := builtin.New(builtin.Config{Search: publicAgents{p}, Encode: p.index.EncodeText,
		HasModel: namedModels{p.models}.hasDefault,
		Manual:   manualSections(p.url.String()), PortalURL: p.url.String(), Now: clock.Now})
	d.build = rules
	if p.set.Conformance {
		d.build = conformance.New(d.build)
	}
	budget := prompt.NewBudget(p.set.Budget, p.prices, clock.Now, p.db)
	portalRT := agentruntime.Wiretap{Next: p.model.Patient(modelFirstByte)}
	d.lead = lead.New(lead.Config{RT: patient, PortalRT: portalRT, Models: p.models, Budget: budget, Meter: p.usage,
		Prices: p.prices})
	d.prompt = prompt.New(prompt.Config{RT: patient, PortalRT: portalRT, Models: p.models,
		Tools: tools, Grants: tools, Meter: workMeter{p}, Guard: p.ceilings, Summaries: p.db.Talks,
		Budget: budget, Log: p.log})
	known := assistant.New(rules, d.build, d.prompt, namedModels{p.models}.hasDefault)
	d.hosted = newHostedDriver(p, plain, d.prompt, sessions)
	d.build, d.instant = bundle.New(known, d.hosted), bundle.AnswerAtOnce(known.AnswerAtOnce())
	return d
}

// linkObserver implements link.Observer. It refers to the portal, because the monitor is built after the
// drivers.
type linkObserver struct{ portal *Portal }

// Observe forwards the liveness of a connected agent to the monitor.
func (o linkObserver) Observe(ctx context.Context, agentID string, l hub.Liveness) {
	o.portal.monitor.Observe(ctx, agentID, l)
}

// publicAgents lets built-in agents search with the rights of a guest. It refers to the portal, because
// the hub is built after the drivers.
type publicAgents struct{ portal *Portal }

// Search implements builtin.Searcher. The zero actor sees only public agents.
func (a publicAgents) Search(ctx context.Context, q hub.Query) (hub.Page, error) {
	q.Private = true
	return a.portal.hub.Search(ctx, ident.Actor{}, q)
}

// probing marks requests as probes. They are then signed, because an endpoint may refuse unsigned
// requests.
var probing = task.Behalf{Kind: "probe"}

// probers implements liveness.Prober: it probes an agent with the method of its kind.
type probers struct {
	remote *remote.Prober
	mcp    *mcp.Prober
	prompt *prompt.Driver
	hosted *wasm.Driver
}

// Probe implements liveness.Prober. Kinds other than MCP, prompt and wasm are probed over A2A or the OpenAI
// API.
func (p probers) Probe(ctx context.Context, t hub.Target) hub.Liveness {
	ctx = task.WithBehalf(ctx, probing)
	switch t.Kind {
	case hub.MCP:
		return p.mcp.Probe(ctx, t)
	case hub.Prompt:
		return p.prompt.Probe(ctx, t)
	case hub.Wasm:
		return p.hosted.Probe(ctx, t)
	}
	return p.remote.Probe(ctx, t)
}

// addressPolicy implements hub.AddressPolicy: it allows the addresses that the portal's HTTP client may
// call.
type addressPolicy struct{ client *egress.Client }

// CheckURL returns the reason why an address may not be called, worded for a form, or nil. It does not
// look the host up.
func (p addressPolicy) CheckURL(address string) error {
	_, err := p.client.CheckURL(address)
	switch {
	case err == nil:
		return nil
	case egress.CodeOf(err) == egress.Private:
		return errors.New(egress.Reason(err) + "; the portal's operator can allow it with --allow-cidr")
	}
	return errors.New(egress.Reason(err))
}
