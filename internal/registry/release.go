// Package registry keeps the servers of the MCP registry: versions, their
// states, the right to publish under a name. The latest version of a server
// that has an address is an agent of the directory.
package registry

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"agentsite/internal/hub"
	"agentsite/internal/ident"
)

// Release is one version of a server in the MCP registry: one that was
// published, or a registered agent of kind mcp as it is now.
type Release struct {
	Name    string // namespace and name, with a slash between
	Version string
	// Title, Description and Endpoint are the agent's texts while this is the latest version.
	// Endpoint is empty when this portal cannot call it, and for a registered agent, because its
	// owner did not publish the address.
	Title, Description, Endpoint string
	// Remotes are all fixed addresses it names; read by PublishRelease only.
	Remotes []string
	// Document is server.json as it was published; nil for a registered agent.
	Document []byte
	Status   string // ReleaseActive, ReleaseDeprecated or ReleaseDeleted
	Message  string // why, at most maxReleaseMessage characters
	// Latest is true for the highest version that is not deleted, and for the
	// highest when all are.
	Latest                           bool
	PublishedAt, StatusAt, UpdatedAt time.Time

	// Agent is the name of the agent that calls it, empty for none; Live is its last liveness.
	Agent string
	Live  hub.Live
	// Removed is true when the agent was removed: the published document is then reduced to that
	// fact.
	Removed bool
	Size    int // of Document in bytes
}

// The states of a Release. An agent is deprecated while its latest release
// is, and withdrawn while all of its releases are deleted, and the other way
// round.
const (
	ReleaseActive     = "active"
	ReleaseDeprecated = "deprecated"
	ReleaseDeleted    = "deleted"
)

// Bounds of published documents.
const (
	maxReleaseName    = 200
	maxReleaseVersion = 255
	maxReleaseMessage = 500
	// MaxDocument bounds server.json in bytes.
	MaxDocument = 32 << 10
	// maxReleases bounds the versions of a server, maxServerBytes their documents together,
	// because the versions of a server are one answer.
	maxReleases    = 1000
	maxServerBytes = 8 << 20
	// maxServers bounds the servers of one site: a registrable domain, or an
	// account.
	maxServers = hub.MaxAgentsPerOwner
	// maxReleasePage bounds one page of the list.
	maxReleasePage = 100
)

// Server is the owner of releases: a name that was published under.
type Server struct {
	Name    string
	AgentID string // empty while no release had an address to call
	Site    string // site that its quota counts against
	// Held is true while the operator has deleted all of it: then only the operator changes it.
	Held bool
	// Revision grows with each change; 0 for a server that is not there yet.
	Revision int
}

// Filter narrows a list of releases. The zero value lists all that are not deleted.
type Filter struct {
	Name, Version string // exactly
	Latest        bool
	Search        string // part of the name, in any case
	Agent         string // the name of the agent that calls it
	UpdatedSince  time.Time
	Deleted       bool // those too
	// AfterName and AfterVersion are the last of the page before.
	AfterName, AfterVersion string
	// Limit is the most that are returned.
	Limit int
	// Brief leaves out documents, and the agent's state out of the status.
	Brief bool
	// Namespace is that of registered agents; the service sets it.
	Namespace string
}

// Change is a set of changes of a server in one transaction.
type Change struct {
	Server Server   // as it becomes; Revision is the one it was read at
	Add    *Release // a new version, nil for none
	// Set are the versions that get Status and Message.
	Set             []string
	Status, Message string
	Latest          string // the version that is the latest then
	At              time.Time
	// Agent is the new form of its agent, nil to leave it; Base the version that it was read at, 0
	// to create it. Sealed is as in UpdateAgent.
	Agent  *hub.Agent
	Base   int
	Sealed []byte
	Author ident.Actor
}

// ErrStale is returned by SaveRelease when the server or its agent was changed since it was read,
// or a name was taken in between.
var ErrStale = errors.New("changed meanwhile")

// Releases stores the published releases of the MCP registry.
type Releases interface {
	// Server returns a published server; NotFound when there is none.
	Server(ctx context.Context, name string) (Server, error)
	// CountServers counts the servers of a site.
	CountServers(ctx context.Context, site string) (int, error)
	// SaveRelease makes a change, whole or not at all. An address that another
	// server names is an Invalid fault.
	SaveRelease(ctx context.Context, c Change) error
	// Releases lists releases by name and version, each compared as bytes.
	// Those of agents that are not public are left out.
	Releases(ctx context.Context, f Filter) ([]Release, error)
}

// RegistryStore is the part of the database that the MCP registry needs.
type Store interface {
	Releases
	AgentByName(ctx context.Context, name string) (hub.Agent, error)
	AgentByID(ctx context.Context, id string) (hub.Agent, error)
	NameTaken(ctx context.Context, name string) (bool, error)
	CountAgents(ctx context.Context, ownerID string) (int, error)
	Domains(ctx context.Context, accountID string) ([]hub.Domain, error)
}

// Directory is the part of the directory of agents that the registry needs,
// because each server that has an address is an agent. Service implements it.
type Directory interface {
	// ApplyDraft puts a draft over an agent and checks the outcome.
	ApplyDraft(ctx context.Context, d hub.Draft, a *hub.Agent) error
	// AllowStore charges a key for bytes that are stored for ever.
	AllowStore(key string, bytes int) (wait time.Duration, ok bool)
	// AfterChange updates the index and the liveness of an agent that changed.
	AfterChange(ctx context.Context, a hub.Agent)
}

// RegistryConfig describes the portal of a Registry.
type Config struct {
	// Portal is the host (and port, if not the default) of the portal's URL.
	Portal string
	// Loopback is true when the portal itself is on this machine only.
	Loopback bool
	Log      *slog.Logger
}

// Registry publishes servers under the names of the MCP registry. Create it
// with NewRegistry. It is safe for concurrent use.
type Service struct {
	store  Store
	agents Directory
	cfg    Config
}

// NewRegistry returns the registry of a portal.
func New(store Store, agents Directory, cfg Config) *Service {
	return &Service{store: store, agents: agents, cfg: cfg}
}
