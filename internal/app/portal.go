// Package app builds a portal from a Config and runs it. It is the only package that knows every part and wires
// them. The command line, the demo and tests use it; it holds no logic of its own.
package app

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"time"

	"agentsite/agentruntime"
	"agentsite/agentruntime/builtin"
	"agentsite/agentruntime/bundle"
	"agentsite/agentruntime/conformance"
	"agentsite/agentruntime/pdf"
	"agentsite/agentruntime/recollect"
	"agentsite/agentruntime/wasm/sandbox"
	"agentsite/docs"
	"agentsite/handlers"
	"agentsite/handlers/a2a"
	"agentsite/handlers/mcp"
	"agentsite/handlers/mcp/endpoint"
	"agentsite/handlers/mcp/fixtures"
	"agentsite/handlers/peer"
	"agentsite/handlers/request"
	wire "agentsite/internal/a2a"
	"agentsite/internal/account"
	"agentsite/internal/adjust"
	"agentsite/internal/chat"
	"agentsite/internal/clock"
	"agentsite/internal/control"
	"agentsite/internal/egress"
	"agentsite/internal/embedding"
	"agentsite/internal/federation"
	"agentsite/internal/figures"
	"agentsite/internal/grant"
	"agentsite/internal/halt"
	"agentsite/internal/hosting"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/index"
	"agentsite/internal/library"
	"agentsite/internal/limit"
	"agentsite/internal/liveness"
	"agentsite/internal/meaning"
	"agentsite/internal/memory"
	"agentsite/internal/models"
	"agentsite/internal/notify"
	"agentsite/internal/packages"
	"agentsite/internal/profile"
	"agentsite/internal/scheduler"
	"agentsite/internal/settings"
	"agentsite/internal/task"
	"agentsite/internal/team"
	"agentsite/internal/usage"
	"agentsite/internal/weborigin"
	"agentsite/internal/webpush"
	"agentsite/peering"
	"agentsite/store"
	"agentsite/store/replica"
	"agentsite/web"
)

// Portal is a built portal that listens but does not serve yet. Run serves it. The caller of Open must
// call Run or Close.
type Portal struct {
	identity
	clients
	services
	endpoints
	set  settings.Settings
	live *adjust.Snapshot
	// given holds the values of adjustable settings without those that operators stored.
	given    adjust.Values
	settings *adjust.Service
	figures  *figures.Service
	log      *slog.Logger
	db       *store.DB
	replica  *replica.Replica // nil without a network
	scrub    *store.Scrub
	node     *peering.Node // nil without a network
	shun     *limit.PenaltyBox
	listener net.Listener
	scraped  net.Listener // separate address for metrics; nil if none is configured
	control  *control.Server
	index    *index.Index
	senses   *meaning.Model
	meanings *embedding.Service // nil without a server of embeddings
	loaded   chan struct{}
	lock     *control.DataLock
	// descriptors is how many file descriptors the process may have open.
	descriptors int
	limits      connectionLimits
	clock       *clock.Watch
}

// identity holds the address, name and keys of a portal.
type identity struct {
	url *url.URL
	// publicKey is the portal's identity, base64url without padding.
	publicKey string
	keys      *ident.Keys
	// operational holds the keys that sign requests and records.
	operational *ident.Operational
	signer      *wire.Signer // signs agent cards and catalogs
	started     time.Time
}

// clients holds the HTTP clients of a portal. They are separate so that a flood of one kind of request
// does not delay the others.
type clients struct {
	egress *egress.Client // reads cards and sends probes
	calls  *egress.Client // sends tasks to agents
	told   *egress.Client // sends webhooks
	model  *egress.Client // calls the portal's own model
}

// services holds the services of a portal, see package comments.
type services struct {
	accounts *account.Service
	hub      *hub.Service
	monitor  *liveness.Service
	peers    *federation.Peers
	tasks    *task.Service
	chats    *chat.Service
	open     web.ConnectionCount
	hooks    *notify.Service
	pushes   *webpush.Service
	queue    *agentruntime.Queue
	worker   *agentruntime.Worker
	drivers  *drivers
	notifier *notifier
	grants   *grant.Service
	memories *memory.Service
	library  *library.Service
	keeper   *recollect.Keeper
	usage    *usage.Service
	ceilings *usage.Ceilings
	prices   *usage.Prices
	models   *models.Service
	halts    *halt.Service
	teams    *team.Service
	hosting  *hosting.Service
	packages *packages.Service
	programs *sandbox.Pool
	// documents reads PDF files of the library.
	documents *pdf.Reader
}

// endpoints holds the HTTP handlers that several parts of the portal use.
type endpoints struct {
	connections *request.Connections
	callers     *request.Callers
	portalCalls *peer.Calls // accepts people of other portals; nil without a network
	routes      *handlers.Routes
	a2a         *a2a.Handler
	mcp         *mcp.Handler
}

// URL returns the portal's address, without a trailing slash.
func (p *Portal) URL() string { return p.url.String() }

// Open builds a portal: it locks the data folder, opens and upgrades the database, wires the services
// and listens. It logs to stderr. After an error everything is closed again.
func Open(ctx context.Context, cfg Config, stderr io.Writer) (p *Portal, err error) {
	set, err := cfg.Parse()
	if err != nil {
		return nil, err
	}
	p = &Portal{shun: limit.NewPenaltyBox(), set: set, log: set.NewLogger(stderr), loaded: make(chan struct{}), clock: clock.NewWatch(clock.Now), identity: identity{started: clock.Now()}}
	defer func() {
		if err != nil {
			p.Close()
			p = nil
		}
	}()
	if p.descriptors, err = readDescriptorLimit(); err != nil {
		p.log.Warn("read the limit of file descriptors", "error", err)
	}
	if p.lock, err = control.LockData(cfg.Data); err != nil {
		return p, err
	}
	p.warnOfFolder()
	keys, err := control.OpenKeys(cfg)
	if err != nil {
		return p, err
	}
	if p.db, err = store.OpenWith(ctx, cfg.Data, storeConfig(cfg, set.Bounds.Disk), p.log); err != nil {
		return p, err
	}
	if err := applyStored(ctx, p, cfg); err != nil {
		return p, err
	}
	if p.listener, err = net.Listen("tcp", cfg.Listen); err != nil {
		return p, fmt.Errorf("listen on %s: %w; choose another address with --listen (port 0 picks a free one)", cfg.Listen, err)
	}
	if err := p.listenMetrics(); err != nil {
		return p, err
	}
	public := keys.Public()
	if err := p.settleAddress(ctx, public); err != nil {
		return p, err
	}
	if err := p.wire(ctx, keys, public); err != nil {
		return p, err
	}
	p.scrub = store.NewScrub(p.db, p.replica, scrubSlice, p.logDamage)
	return p, nil
}

// settleAddress sets p.url: the configured address, else the one stored by an earlier run, else the
// listening address. A configured address is stored.
func (p *Portal) settleAddress(ctx context.Context, public ed25519.PublicKey) error {
	given := ""
	if p.set.Address != nil {
		given = p.set.Address.String()
	}
	remembered, err := p.db.ClaimPortal(ctx, public, given)
	if err != nil {
		return err
	}
	p.url = p.set.Address
	if p.url == nil && remembered != "" {
		if p.url, err = settings.ParseURL(remembered); err != nil {
			return fmt.Errorf("the remembered address %q: %w", remembered, err)
		}
	}
	if p.url == nil {
		host, _, _ := net.SplitHostPort(p.set.Listen)
		_, port, _ := net.SplitHostPort(p.listener.Addr().String())
		p.url, err = settings.ParseURL("http://" + net.JoinHostPort(host, port))
	}
	return err
}

// wire builds the services in the order of their dependencies: queue, prober and index before the
// services, the worker and the protocol endpoints after them. Nothing runs before Run.
func (p *Portal) wire(ctx context.Context, keys *ident.Keys, public ed25519.PublicKey) error {
	loopback := weborigin.IsLoopback(p.url.Hostname())
	allow, policy := p.set.AllowedNets, p.set.AccountPolicy
	if loopback {
		allow = append(allow, settings.LoopbackRanges...)
	}
	if policy == "" {
		policy = defaultPolicy(loopback)
	}
	var err error
	if p.operational, err = ident.OpenOperational(p.set.Data, public, clock.Now()); err != nil {
		return err
	}
	introducer := agentruntime.NewIntroducer(p.url.String(), p)
	out := egress.Config{AllowCIDR: allow, UserAgent: "agentsite/" + Release(), Signer: introducer}
	p.egress = egress.New(out)
	rt := p.egress.RoundTripper()
	// Tasks have a client of their own, so that slow answers of agents do not delay probes.
	out.PerHost = callsPerHost(p.set.Bounds.Work)
	p.calls = egress.New(out)
	host := p.url.Host
	p.keys, p.started = keys, clock.Now()
	p.publicKey = base64.RawURLEncoding.EncodeToString(public)
	if err := p.openAccounts(policy, loopback); err != nil {
		return err
	}
	if err := p.openIndex(); err != nil {
		return err
	}
	if err := p.openNetwork(ctx, keys, allow, hub.NewRemoteAgents(p.index, host)); err != nil {
		return err
	}
	queue := agentruntime.NewQueue(workLimits(p.set.Bounds.Work))
	if err := p.openModels(ctx, keys); err != nil {
		return err
	}
	p.drivers = p.newDrivers(host, out)
	byKind := p.workDrivers()
	if err := p.openDirectory(ctx, keys, rt, byKind, p.searchIndex(), queue); err != nil {
		return err
	}
	instant := agentruntime.NewInstant(queue, p.hub, p.halts,
		map[hub.Kind]task.Agent{hub.Builtin: p.drivers.instant}, p.log)
	chats := chat.New(p.db.Chat, directory{p.hub, p.db, instant}, queue, chat.Config{
		Portal: host, Instant: instant, Admission: admission{queue, p.hub}, Hops: p, URL: p.url.String(), Log: p.log,
		FileKey: []byte(keys.Mark("files", "agentsite/file/1")), Rooms: roomLimits(p.set.Bounds.Rooms)})
	p.chats, p.tasks = chats, task.NewService(p.db.Tasks, queue, chats)
	p.teams = p.newTeams()
	p.queue, p.callers = queue, p.newCallers()
	p.told = egress.New(egress.Config{AllowCIDR: allow, UserAgent: "agentsite/" + Release()})
	p.hooks = notify.New(notify.Ports{Store: p.db.Hooks, Chat: chats, Accounts: p.db.Accounts, Sealer: keys,
		Transport: p.told.RoundTripper(), Wake: p.db.Hooks.Hooked(),
		Push: func(ctx context.Context, actor ident.Actor, t task.Task, version string) ([]any, error) {
			return p.a2a.Pushed(ctx, actor, t, version)
		}}, notify.Config{URL: p.url.String(), Addresses: hookPolicy{p.egress, loopback, allow}, NoticeQueue: p.notifier, Log: p.log})
	if p.pushes, err = webpush.New(webpush.Config{Store: p.db.Browsers, Keys: keys, URL: p.url.String(),
		Name:      func() string { return p.live.NameOr(host) },
		Addresses: hookPolicy{p.egress, false, allow}, Transport: p.told.RoundTripper(), Wake: p.db.Browsers.Pushed(),
		Log: p.log}); err != nil {
		return err
	}
	p.worker = agentruntime.New(queue, p.db.Tasks, chats, p.hub, p.halts, p.monitor, byKind, p.log)
	if err := p.registerBuiltins(ctx); err != nil {
		return err
	}
	secure, cookie := p.url.Scheme == "https", "agentsite-"+keys.ID()
	if secure {
		cookie = "__Host-" + cookie
	}
	p.figures = figures.New(p.db.Figures, p.db, p.log)
	p.routes = handlers.New(p.accounts, p.hub, chats, p.tasks, p.db, handlers.Config{
		URL: p.url.String(), Host: host, Version: Version(), CookieName: cookie, Secure: secure,
		PublicKey: p.publicKey, Started: clock.Now(), Goals: p.set.Goals, Hooks: p.hooks, Pushes: p.pushes,
		Grants: p.grants, Usage: p.usage, Ceilings: p.ceilings, Models: p.models, ModelServers: modelServers{p}, Halts: p.halts, Teams: p.teams,
		Meanings: p.shownMeanings(), Personal: p.newPersonal(host), Publications: p.publications(), Connections: p.connections,
		Hosting: p.hosting, Memories: p.memories, Library: p.library, Packages: p.packages,
		HostingPolicies: newHostingPolicies(p), BundledHash: bundle.Hash, Peers: p.peers, Servers: p.newServers(),
		Profiles: profile.New(p.db.Profiles, &p.hub.Names),
		Pictures: pictureClient(allow), Queue: p, Examiner: p, Settings: p.settings, Live: p.live, Attention: newAttention(p),
		Figures: p.figures, Log: p.log})
	p.signer, err = wire.NewSigner([]byte(keys.Mark("agentsite/card/1", "a")+keys.Mark("agentsite/card/1", "b")), p.url.String()+a2a.KeySetPath)
	if err != nil {
		return err
	}
	p.a2a = a2a.New(a2a.Config{Signer: p.signer, Operational: p.operational, Callers: p.callers,
		Hub: p.hub, Chat: chats, Tasks: p.tasks, Hooks: p.hooks, Name: host, URL: p.url.String(), Host: host,
		CostOf: func(id string) *task.Claim { return statedCost(p.usage, id) },
		Live:   p.live, Only10: conformance.Name, Started: p.started, Log: p.log})
	var servers map[string]*endpoint.Server
	if p.set.Conformance {
		s, err := fixtures.New(Release())
		if err != nil {
			return err
		}
		servers = map[string]*endpoint.Server{conformance.Name: s}
	}
	p.mcp, err = mcp.New(mcp.Config{Servers: servers, Callers: p.callers, Hub: p.hub, Chat: chats, Name: host, URL: p.url.String(), Version: Release(),
		Live: p.live, Key: []byte(keys.Mark("agentsite/mcp/1", "states")), Log: p.log})
	return err
}

// workLimits returns the bounds of the scheduler.
func workLimits(w settings.WorkLimits) scheduler.Limits {
	return scheduler.Limits{
		Running: int(w.Running), RunningPerAccount: int(w.RunningPerAccount), RunningPerRoom: int(w.RunningPerRoom),
		RunningPerAgent: int(w.RunningPerAgent), RunningPerOwner: int(w.RunningPerOwner),
		RunningPerProvider: int(w.RunningPerProvider),
		Waiting:            int(w.Waiting), WaitingPerAccount: int(w.WaitingPerAccount), WaitingPerRoom: int(w.WaitingPerRoom),
		WaitingPerAgent: int(w.WaitingPerAgent), WaitingPerOwner: int(w.WaitingPerOwner),
		WaitingPerProvider: int(w.WaitingPerProvider),
	}
}

// callsPerHost returns the number of concurrent requests to one host for the work of agents: two for each
// task that may run there, because a task may be asked to stop while its answer is read. With fewer, tasks
// that run would wait for each other here in the order of their arrival, and one account could take all.
func callsPerHost(w settings.WorkLimits) int { return 2 * int(w.RunningPerProvider) }

// modelFirstByte is the maximum time until an agent or model begins its answer.
const modelFirstByte = 5 * time.Minute

// manualSections returns the manual for the built-in guide, with the portal's address filled in.
func manualSections(url string) []builtin.Section {
	var out []builtin.Section
	for _, s := range docs.Sections() {
		out = append(out, builtin.Section{Page: s.Page, PageTitle: s.PageTitle, Title: s.Title, Anchor: s.Anchor,
			Text: docs.WithAddress(s.Page, s.Text, url), Asked: docs.Asked(s)})
	}
	return out
}

// loadWait is how long Run waits for the search index before it accepts requests. After that, requests
// see the part of the directory that is loaded so far.
const loadWait = 300 * time.Millisecond

// Close releases everything that Open opened. It may be called after Run and more than once.
func (p *Portal) Close() {
	if p.listener != nil {
		p.listener.Close()
	}
	if p.scraped != nil {
		p.scraped.Close()
	}
	if p.control != nil {
		p.control.Close()
	}
	p.drivers.close()
	if p.programs != nil {
		p.programs.Close()
	}
	if p.documents != nil {
		p.documents.Close()
	}
	if p.node != nil {
		p.node.CloseIdle()
	}
	for _, c := range []*egress.Client{p.egress, p.calls, p.told, p.model} {
		if c != nil {
			c.CloseIdle()
		}
	}
	if p.replica != nil {
		if err := p.replica.Close(); err != nil {
			p.log.Error("close the replica", "error", err)
		}
	}
	if p.db != nil {
		if err := p.db.Close(); err != nil {
			p.log.Error("close database", "error", err)
		}
	}
	if p.lock != nil {
		p.lock.Release()
		p.lock = nil
	}
}

func roomLimits(l settings.RoomLimits) chat.RoomLimits {
	return chat.RoomLimits{PerAccount: int(l.RoomsPerAccount), Pending: int(l.PendingInvitations),
		PerDay: int(l.InvitationsPerDay)}
}
