// Package handlers builds the handlers of pages and of the API and mounts their
// routes. Each handler decodes a request, makes one service call as the actor
// that its credentials prove, and renders the outcome. Rules live in the
// services, never here. Each outside protocol has a package of its own below.
package handlers

import (
	"log/slog"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"

	"agentsite/handlers/address"
	"agentsite/handlers/api"
	"agentsite/handlers/api/goals"
	"agentsite/handlers/api/operator"
	"agentsite/handlers/api/profiles"
	"agentsite/handlers/api/spending"
	"agentsite/handlers/files"
	hostingapi "agentsite/handlers/hosting"
	librarypages "agentsite/handlers/library"
	"agentsite/handlers/live"
	"agentsite/handlers/markup"
	memorypages "agentsite/handlers/memories"
	packageapi "agentsite/handlers/packages"
	"agentsite/handlers/pages"
	accountpages "agentsite/handlers/pages/account"
	"agentsite/handlers/pages/admin"
	"agentsite/handlers/pages/agents"
	chatpages "agentsite/handlers/pages/chat"
	"agentsite/handlers/pages/embed"
	goalpages "agentsite/handlers/pages/goals"
	"agentsite/handlers/pages/manual"
	"agentsite/handlers/pages/members"
	"agentsite/handlers/pages/message"
	"agentsite/handlers/pages/people"
	"agentsite/handlers/pages/pictures"
	"agentsite/handlers/pages/work"
	personalpages "agentsite/handlers/personal"
	"agentsite/handlers/program"
	"agentsite/handlers/request"
	"agentsite/handlers/search"
	"agentsite/internal/account"
	"agentsite/internal/adjust"
	"agentsite/internal/attention"
	"agentsite/internal/chat"
	"agentsite/internal/federation"
	"agentsite/internal/figures"
	"agentsite/internal/grant"
	"agentsite/internal/halt"
	"agentsite/internal/hosting"
	"agentsite/internal/hub"
	"agentsite/internal/library"
	"agentsite/internal/memory"
	"agentsite/internal/models"
	"agentsite/internal/notify"
	"agentsite/internal/packages"
	"agentsite/internal/personal"
	"agentsite/internal/profile"
	"agentsite/internal/registry"
	"agentsite/internal/task"
	"agentsite/internal/team"
	"agentsite/internal/usage"
	"agentsite/internal/webpush"
	"agentsite/templates"
)

// Config describes the portal, and holds the services of its handlers besides those that New takes.
type Config struct {
	URL     string // public address, without a trailing slash
	Host    string // the part of handles after the @
	Version string
	// CookieName is the name of the session cookie. It contains the portal's id, because cookies do not
	// distinguish ports. Secure is set if the portal is reached by https.
	CookieName string
	Secure     bool
	PublicKey  string
	Started    time.Time
	Goals      []string // examples of goals; those of every portal if empty
	Hooks      *notify.Service
	Pushes     *webpush.Service
	Grants     *grant.Service
	Usage      *usage.Service
	Ceilings   *usage.Ceilings
	Models     *models.Service
	// ModelServers asks servers of models for an operator.
	ModelServers admin.ModelServers
	Halts        *halt.Service
	Personal     *personal.Service
	Teams        *team.Service
	Hosting      *hosting.Service
	Memories     *memory.Service
	Library      *library.Service
	Packages     *packages.Service
	// HostingPolicies knows the hosting policies of other portals; nil knows none.
	HostingPolicies packageapi.Policies
	// BundledHash is the hash of the module of the programs that come with the portal.
	BundledHash string
	Profiles    *profile.Service
	// Publications returns the publication state of the portal's agents in the network; nil without
	// federation.
	Publications api.Publications
	Peers        *federation.Peers
	// Meanings is the operator's server of embeddings.
	Meanings address.Meanings
	// Pictures fetches pictures that messages name, from addresses of strangers.
	Pictures http.RoundTripper
	// Servers returns the names that the portal's agents have in the MCP registry.
	Servers *registry.Service
	// Connections counts the sockets and streams that callers hold open.
	Connections *request.Connections
	// Queue returns the state of the queue of tasks: all of it to the operator, that of an agent to its owners.
	Queue Queue
	// Examiner answers the operator's questions about this portal from its state.
	Examiner admin.Examiner
	// Settings changes the settings of the portal in the browser, Live has those in effect.
	Settings *adjust.Service
	Live     *adjust.Snapshot
	// Attention lists the matters that wait for the operator, Figures has the numbers of each day.
	Attention *attention.Service
	Figures   *figures.Service
	Log       *slog.Logger
}

// Routes are the routes of the portal's pages and of its API. Create them with
// New.
type Routes struct {
	site     *pages.Site
	api      *api.API
	goals    *goals.API
	operator *operator.API
	profiles *profiles.API
	teams    *goalpages.Pages
	streams  *live.Streams
	files    *files.Files
	agents   *agents.Pages
	chats    *chatpages.Pages
	embed    *embed.Embed
	admin    *admin.Pages
	account  *accountpages.Pages
	work     *work.Pages
	members  *members.Pages
	pictures *pictures.Pages
	program  *program.Pages
	manual   *manual.Pages
	people   *people.Pages
	personal *personalpages.Handlers
	hosting  *hostingapi.API
	memories *memorypages.Handlers
	library  *librarypages.Handlers
	packages *packageapi.API
	programs *packageapi.Pages
	sessions *request.Sessions
	log      *slog.Logger
}

// Queue is the queue of tasks.
type Queue interface {
	api.Queue
	work.Queue
}

// Database counts the stored rows and bytes.
type Database interface {
	admin.Stats
	api.Storage
}

// New builds the handlers of all pages and of the API over the services. Call API and Pages once each to
// declare their routes.
func New(accounts *account.Service, directory *hub.Service, chats *chat.Service, tasks *task.Service, db Database,
	cfg Config) *Routes {
	portal := address.Portal{Settings: cfg.Live, URL: cfg.URL, Host: cfg.Host, Version: cfg.Version,
		PublicKey: cfg.PublicKey, Started: cfg.Started, Goals: cfg.Goals, Meanings: cfg.Meanings}
	if len(portal.Goals) == 0 {
		portal.Goals = templates.GoalExamples
	}
	renderer := markup.New()
	sessions := request.NewSessions(accounts, cfg.CookieName, cfg.Secure, cfg.Log)
	site := pages.NewSite(portal, accounts, directory, sessions, cfg.Profiles, renderer, cfg.Log)
	searches := search.New(portal, directory, cfg.Connections)
	attachments := files.New(chats, site)
	messages := message.New(directory, cfg.Library, site, renderer, cfg.Log)
	streams := live.New(chats, accounts, sessions, messages, cfg.Connections, cfg.Log)
	programs := program.New(portal, accounts, directory, site, cfg.Log)
	agentPages := agents.New(agents.Config{Portal: portal, Accounts: accounts, Hub: directory, Peers: cfg.Peers,
		Servers: cfg.Servers, Sessions: sessions, Searches: searches, Site: site, Markup: renderer,
		Models: cfg.Models, Halts: cfg.Halts, Hosting: cfg.Hosting, Memories: cfg.Memories, Packages: cfg.Packages,
		Commands: programs, Log: cfg.Log}, cfg.Publications)
	return &Routes{
		goals:    goals.New(cfg.Teams, sessions, streams, cfg.URL),
		operator: operator.New(cfg.Settings, cfg.Attention, cfg.Figures, sessions),
		profiles: profiles.New(cfg.Profiles, sessions),
		teams:    goalpages.New(cfg.Teams, site, renderer, portal.Goals, cfg.URL),
		site:     site, sessions: sessions, streams: streams, files: attachments, agents: agentPages, log: cfg.Log,
		api: api.New(api.Config{Portal: portal, CookieName: cfg.CookieName, Accounts: accounts, Hub: directory,
			Chat: chats, Tasks: tasks, Hooks: cfg.Hooks, Peers: cfg.Peers, Queue: cfg.Queue, Sessions: sessions,
			Searches: searches, Files: attachments, Storage: db, Grants: cfg.Grants,
			Spending: spending.New(cfg.Models, cfg.Usage, cfg.Ceilings), Halts: cfg.Halts,
			Packages: cfg.Packages, Log: cfg.Log}, cfg.Publications),
		chats: chatpages.New(chatpages.Config{Portal: portal, Accounts: accounts, Hub: directory, Chat: chats,
			Tasks: tasks, Sessions: sessions, Site: site, Messages: messages, Markup: renderer,
			Profile: agentPages.Profile, Grants: cfg.Grants, Library: cfg.Library, Log: cfg.Log}),
		embed: embed.New(portal, accounts, directory, chats, streams, messages, site, cfg.Log),
		admin: admin.New(admin.Config{Portal: portal, Accounts: accounts, Hub: directory, Peers: cfg.Peers,
			Stats: db, Queue: cfg.Queue, Halts: cfg.Halts, Settings: cfg.Settings, Models: cfg.Models, ModelServers: cfg.ModelServers,
			Attention: cfg.Attention, Figures: cfg.Figures, Teams: adminTeams(cfg.Teams), Site: site}, cfg.Examiner),
		account: accountpages.New(accounts, directory, chats, cfg.Hooks, cfg.Pushes, sessions, searches, db,
			cfg.Grants, cfg.Usage, cfg.Ceilings, cfg.Models, tasks, cfg.Profiles, site),
		people:   people.New(cfg.Profiles, directory, site),
		hosting:  hostingapi.New(cfg.Hosting, sessions),
		memories: memorypages.New(cfg.Memories, cfg.Grants, directory, sessions, site),
		library:  librarypages.New(cfg.Library, sessions, site, cfg.URL),
		packages: packageapi.New(cfg.Packages, directory, sessions, cfg.Host),
		programs: packageapi.NewPages(packageapi.PagesConfig{Packages: cfg.Packages, Hosting: cfg.Hosting,
			Hub: directory, Peers: cfg.Peers, Site: site, Markup: renderer, Host: cfg.Host, Policies: cfg.HostingPolicies,
			Bundled: cfg.BundledHash}),
		personal: personalpages.New(cfg.Personal, sessions, site, cfg.Log),
		members:  members.New(directory, chats, site),
		pictures: pictures.New(chats, site, messages, cfg.Pictures, cfg.Log),
		program:  programs,
		work:     work.New(directory, cfg.Halts, cfg.Usage, cfg.Ceilings, cfg.Queue, tasks, site),
		manual:   manual.New(portal, accounts, directory, site, renderer, cfg.Live),
	}
}

// adminTeams returns the teams for the map of the network, nil for none.
func adminTeams(teams *team.Service) admin.Teams {
	if teams == nil {
		return nil
	}
	return teams
}

// IsOperator reports whether a request has the session or the token of an operator.
func (h *Routes) IsOperator(r *http.Request) bool {
	actor, err := h.sessions.Caller(r)
	return err == nil && actor.IsOperator()
}

// API declares the routes below /api/v1, including live delivery.
func (h *Routes) API(r chi.Router) {
	h.api.Routes(r)
	h.goals.Routes(r)
	h.operator.Routes(r)
	h.profiles.Routes(r)
	h.streams.Routes(r)
	h.personal.API(r)
	h.hosting.Routes(r)
	h.memories.API(r)
	h.library.API(r)
	h.packages.Routes(r)
}

// Pages declares the routes of the portal's pages. Every route that changes something is a POST and every
// other route a GET, so a link never changes anything.
func (h *Routes) Pages(r chi.Router) {
	h.manual.Routes(r)
	h.agents.Routes(r)
	h.work.Routes(r)
	h.members.Routes(r)
	h.people.Routes(r)
	h.pictures.Routes(r)
	h.program.Routes(r)
	h.embed.Routes(r)
	h.chats.Routes(r)
	h.teams.Routes(r)
	h.files.Routes(r)
	h.account.Routes(r)
	h.personal.Pages(r)
	h.memories.Pages(r)
	h.library.Pages(r)
	h.admin.Routes(r)
	h.programs.Routes(r)
	h.site.Routes(r)
}
