// Package registry keeps the servers of the MCP registry: their versions, the states of these, and
// the right to publish under a name. The latest version of a server that has an address is an agent
// of the directory.
package registry

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"agentsite/internal/hub"
	"agentsite/internal/ident"
)

// Release is one version of a server in the MCP registry: a published one, or the present state of
// a registered agent of kind mcp.
type Release struct {
	Name    string // namespace, a slash, and the name of the server
	Version string
	// Title, Description and Endpoint are the agent's texts while this is the latest version.
	// Endpoint is empty when this portal cannot call it, and for a registered agent, because its
	// owner did not publish the address.
	Title, Description, Endpoint string
	// Remotes are the fixed addresses in the document. Only PublishRelease reads them.
	Remotes []string
	// Document is server.json as it was published; nil for a registered agent.
	Document []byte
	Status   string // ReleaseActive, ReleaseDeprecated or ReleaseDeleted
	Message  string // reason of the status, at most maxReleaseMessage characters
	// Latest marks the highest version that is not deleted, or the highest of all if all are
	// deleted.
	Latest                           bool
	PublishedAt, StatusAt, UpdatedAt time.Time

	// Agent is the name of the agent for this server, empty for none. Live is the last liveness of
	// that agent.
	Agent string
	Live  hub.Live
	// Removed is true when the agent was removed: the published document is then reduced to that
	// fact.
	Removed bool
	Size    int // length of Document in bytes, also when Document is left out
}

// The states of a Release. The status of an agent follows its server's: it is deprecated while the
// latest release is, and withdrawn while all releases are deleted.
const (
	ReleaseActive     = "active"
	ReleaseDeprecated = "deprecated"
	ReleaseDeleted    = "deleted"
)

// Bounds of published servers and their texts.
const (
	maxReleaseName    = 200
	maxReleaseVersion = 255
	maxReleaseMessage = 500
	// MaxDocument bounds server.json in bytes.
	MaxDocument = 32 << 10
	// maxReleases bounds the versions of a server and maxServerBytes the bytes of their documents,
	// because one answer of the API lists all of them.
	maxReleases    = 1000
	maxServerBytes = 8 << 20
	// maxServers bounds the servers of one publisher: a registrable domain, or an account.
	maxServers = hub.MaxAgentsPerOwner
	// maxReleasePage bounds the releases on one page of the list.
	maxReleasePage = 100
)

// Server is a name under which releases were published, with the state that they share.
type Server struct {
	Name    string
	AgentID string // empty while no release had an address that this portal can call
	Site    string // site or account that the quota counts against
	// Held is true while the operator has deleted the whole server. Then only the operator may
	// change it.
	Held bool
	// Revision grows by one with each change, to detect concurrent changes; 0 for a server that is
	// not stored yet.
	Revision int
}

// Filter narrows a list of releases. The zero value selects all that are not deleted.
type Filter struct {
	Name, Version string // exact values
	Latest        bool
	Search        string // part of the name, ignoring case
	Agent         string // name of the agent for the server
	UpdatedSince  time.Time
	Deleted       bool // include deleted releases
	// AfterName and AfterVersion are those of the last release on the previous page.
	AfterName, AfterVersion string
	// Limit is the maximum number of releases.
	Limit int
	// Brief leaves out documents, and reports the stored status of a release without its agent's.
	Brief bool
	// Namespace is the namespace for the names of registered agents. The service sets it; callers
	// leave it empty.
	Namespace string
}

// Change is a set of changes to one server, saved in one transaction.
type Change struct {
	Server Server   // new state of the server; Revision is the one that was read
	Add    *Release // new version, nil for none
	// Set are the versions that get Status and Message as their new values.
	Set             []string
	Status, Message string
	Latest          string // version that is the latest one after the change
	At              time.Time
	// Agent is the new state of the server's agent, nil to leave it unchanged. Base is the version
	// of the agent that was read, 0 to create it. Sealed is the encrypted credential, as in
	// UpdateAgent.
	Agent  *hub.Agent
	Base   int
	Sealed []byte
	Author ident.Actor
}

// ErrStale is returned by SaveRelease when the server or its agent changed since they were read, or
// the name of a new agent was taken. The caller reads again and retries.
var ErrStale = errors.New("changed meanwhile")

// Releases stores the published servers and releases.
type Releases interface {
	// Server returns a published server; a NotFound fault when there is none of that name.
	Server(ctx context.Context, name string) (Server, error)
	// CountServers counts the servers of a site or account, for its quota.
	CountServers(ctx context.Context, site string) (int, error)
	// SaveRelease saves a change completely or not at all. It returns ErrStale, or an Invalid fault
	// for an address that another server uses.
	SaveRelease(ctx context.Context, c Change) error
	// Releases lists releases, ordered by name and version as bytes, without those of agents that
	// are not public.
	Releases(ctx context.Context, f Filter) ([]Release, error)
}

// Store is the part of the database that the registry uses.
type Store interface {
	Releases
	AgentByName(ctx context.Context, name string) (hub.Agent, error)
	AgentByID(ctx context.Context, id string) (hub.Agent, error)
	NameTaken(ctx context.Context, name string) (bool, error)
	CountAgents(ctx context.Context, ownerID string) (int, error)
	Domains(ctx context.Context, accountID string) ([]hub.Domain, error)
}

// Directory is the part of the directory of agents that the registry uses, because each server with
// an address is an agent. hub.Service implements it.
type Directory interface {
	// ApplyDraft writes the fields of a draft to an agent and checks the result. Its fault names
	// the invalid fields.
	ApplyDraft(ctx context.Context, d hub.Draft, a *hub.Agent) error
	// AllowStore charges a publisher for bytes that are never deleted. If the limit is reached, ok
	// is false and wait the time until the next attempt may succeed.
	AllowStore(key string, bytes int) (wait time.Duration, ok bool)
	// AfterChange updates the search index and requests a probe of an agent that was created or
	// changed.
	AfterChange(ctx context.Context, a hub.Agent)
}

// Config describes the portal. Log must be set.
type Config struct {
	// Portal is the host of the portal's URL, with the port if it is not the default one.
	Portal string
	// Loopback is true if the portal's URL has a loopback address, so that only this machine
	// reaches it.
	Loopback bool
	Log      *slog.Logger
}

// Service publishes servers under the names of the MCP registry. Create it with New. It is safe for
// concurrent use.
type Service struct {
	store  Store
	agents Directory
	cfg    Config
}

// New returns the registry of a portal.
func New(store Store, agents Directory, cfg Config) *Service {
	return &Service{store: store, agents: agents, cfg: cfg}
}
