// Package agents has the pages about agents: finding them, one agent, its form,
// and its pages for owners.
package agents

import (
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/go-chi/chi/v5"

	"agentsite/handlers/address"
	"agentsite/handlers/markup"
	"agentsite/handlers/pages"
	"agentsite/handlers/request"
	"agentsite/handlers/search"
	"agentsite/internal/account"
	"agentsite/internal/federation"
	"agentsite/internal/halt"
	"agentsite/internal/hosting"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/limit"
	"agentsite/internal/memory"
	"agentsite/internal/models"
	"agentsite/internal/packages"
	"agentsite/internal/registry"
)

// Config holds the parts of a portal that the pages about agents need.
type Config struct {
	Portal   address.Portal
	Accounts *account.Service
	Hub      *hub.Service
	Peers    *federation.Peers
	Servers  *registry.Service // maps agents to names of the MCP registry
	Sessions *request.Sessions
	Searches *search.Searches
	Site     *pages.Site
	Markup   *markup.Renderer
	Halts    *halt.Service   // nil for none
	Models   *models.Service // nil offers none to choose from
	Hosting  *hosting.Service
	Memories *memory.Service
	Packages *packages.Service
	Commands Commands
	Log      *slog.Logger
}

// Commands makes commands that connect programs. program.Pages implements it.
type Commands interface {
	// MakeCommand makes the command for the program of a linked agent, and answers with the way to its page.
	MakeCommand(w http.ResponseWriter, r *http.Request, actor ident.Actor, a hub.Agent) error
}

// Pages are the pages about agents. Create them with New.
type Pages struct {
	directory *Directory
	form      *Form
	owner     *Owner
	// Profile is the page of one agent; the chat pages show it again if a first message is refused.
	Profile *Profile
}

// Directory has the home page, the list of agents, feeds and saved searches.
type Directory struct {
	portal   address.Portal
	hub      *hub.Service
	peers    *federation.Peers
	searches *search.Searches
	site     *pages.Site
	markup   *markup.Renderer
	kept     atomic.Pointer[keptHome]
}

// Profile has the pages of one agent that are open to every actor with access to the agent.
type Profile struct {
	portal   address.Portal
	accounts *account.Service
	hub      *hub.Service
	peers    *federation.Peers
	servers  *registry.Service
	sessions *request.Sessions
	site     *pages.Site
	markup   *markup.Renderer
	halts    *halt.Service
	memories *memory.Service
	packages *packages.Service // nil for none
	codes    *limit.Keyed      // limits QR codes by caller, because drawing one takes 10 ms or more of CPU time
	log      *slog.Logger
}

// Form has the pages that register and edit agents.
type Form struct {
	portal   address.Portal
	accounts *account.Service
	hub      *hub.Service
	site     *pages.Site
	markup   *markup.Renderer
	models   *models.Service
	hosting  *hosting.Service
	commands Commands
}

// Owner has the pages of an agent that only its owners see.
type Owner struct {
	portal       address.Portal
	accounts     *account.Service
	hub          *hub.Service
	publications Publications
	profile      *Profile
	site         *pages.Site
}

// New returns the pages about agents. publications returns the publication state of this portal's agents
// in the network; nil without federation.
func New(cfg Config, publications Publications) *Pages {
	profile := &Profile{portal: cfg.Portal, accounts: cfg.Accounts, hub: cfg.Hub, peers: cfg.Peers,
		servers: cfg.Servers, sessions: cfg.Sessions, site: cfg.Site,
		halts: cfg.Halts, memories: cfg.Memories, packages: cfg.Packages, markup: cfg.Markup,
		codes: limit.New(500*time.Millisecond, 60, 10_000), log: cfg.Log}
	return &Pages{
		directory: &Directory{portal: cfg.Portal, hub: cfg.Hub, peers: cfg.Peers, searches: cfg.Searches,
			site: cfg.Site, markup: cfg.Markup},
		form: &Form{hosting: cfg.Hosting, portal: cfg.Portal, accounts: cfg.Accounts, hub: cfg.Hub, site: cfg.Site,
			markup: cfg.Markup,
			models: cfg.Models, commands: cfg.Commands},
		owner: &Owner{portal: cfg.Portal, accounts: cfg.Accounts, hub: cfg.Hub, publications: publications,
			profile: profile, site: cfg.Site},
		Profile: profile,
	}
}

// Routes declares the routes of the pages about agents.
func (p *Pages) Routes(r chi.Router) {
	p.directory.declareRoutes(r)
	p.Profile.declareRoutes(r)
	p.form.declareRoutes(r)
	p.owner.declareRoutes(r)
}
