package hub

import (
	"context"
	"time"

	"agentsite/internal/ident"
)

// Agents stores agents with their versions. A missing agent is a NotFound fault, a taken name a Conflict
// fault. Deleted agents count as missing, but their names stay taken.
type Agents interface {
	// CreateAgent stores the agent as version 1 with its sealed secret.
	CreateAgent(ctx context.Context, a Agent, sealed []byte) error
	// CreateAgents stores many agents without secrets in one transaction.
	CreateAgents(ctx context.Context, list []Agent) error
	// UpdateAgent stores a as the version after base; a Conflict fault if base is no longer the latest. sealed nil
	// keeps the secret, empty removes it. A change of address makes the agent due for a probe and ends its proof.
	UpdateAgent(ctx context.Context, a Agent, base int, sealed []byte, author ident.Actor) error
	// DeleteAgent removes the agent; the name stays taken for ever.
	DeleteAgent(ctx context.Context, id string) error
	AgentByName(ctx context.Context, name string) (Agent, error)
	AgentByID(ctx context.Context, id string) (Agent, error)
	// NameTaken reports whether an agent has or ever had the name.
	NameTaken(ctx context.Context, name string) (bool, error)
}

// Lists reads many agents at once; list rows may omit Config.
type Lists interface {
	// AllAgents calls yield for every agent of the portal until yield returns false, without secrets and
	// without agents of disabled accounts. Like all lists it may omit Config.
	AllAgents(ctx context.Context, yield func(Agent) bool) error
	// AgentsOf returns an account's agents ordered by name, co-owned ones last. It may omit Config: read
	// an agent by its id before storing it again.
	AgentsOf(ctx context.Context, ownerID string) ([]Agent, error)
	// AgentsAfter returns the agents that an account owns or co-owns, by name after a name. The list ends
	// with the agent that exceeds PageBytes; more reports further ones.
	AgentsAfter(ctx context.Context, accountID, after string) (list []Agent, more bool, err error)
	// CountAgents counts the agents an account owns, without co-owned ones, for MaxAgentsPerOwner.
	CountAgents(ctx context.Context, ownerID string) (int, error)
	// Versions returns at most limit (and 200) versions of an agent, newest first, with numbers below
	// before; 0 starts at the latest. The list ends with the version that exceeds PageBytes.
	Versions(ctx context.Context, agentID string, before, limit int) ([]Agent, error)
}

// Secrets reads sealed credentials. It is separate because only a call may read them.
type Secrets interface {
	SealedSecret(ctx context.Context, agentID string) ([]byte, error)
}

// Health reads the probe history of agents.
type Health interface {
	// History returns the last exchanges with an agent, oldest first, at most MaxHistory.
	History(ctx context.Context, agentID string) ([]Contact, error)
}

// Checkup is an agent that is due for a probe.
type Checkup struct {
	Agent    Agent
	Failures int
	History  []Contact // oldest first
}

// Contact is one past exchange with an agent.
type Contact struct {
	At      time.Time
	State   Live
	Latency time.Duration // rounded down by at most 0.1 %
}

// MaxHistory is how many exchanges are stored for each agent.
const MaxHistory = 200

// Owners stores owners, co-owners and offers of agents.
type Owners interface {
	// CoOwners returns the accounts that may change the agent besides its owner.
	CoOwners(ctx context.Context, agentID string) ([]Owner, error)
	AddCoOwner(ctx context.Context, agentID, accountID string) error
	RemoveCoOwner(ctx context.Context, agentID, accountID string) error
	// SetOffer stores that the agent is offered to an account; "" deletes the offer.
	SetOffer(ctx context.Context, agentID, accountID string) error
	// OfferOf returns the account that an agent is offered to; ok is false without an offer.
	OfferOf(ctx context.Context, agentID string) (to Owner, ok bool, err error)
	// Offers returns the agents that are offered to an account and not yet accepted or declined.
	Offers(ctx context.Context, accountID string) ([]Offer, error)
	// Transfer makes the account the owner of an agent that was offered to it. The credential and a
	// proof by the former owner's token are removed; keep makes the former owner a co-owner. A Conflict
	// fault if the offer is gone or the account has max agents.
	Transfer(ctx context.Context, agentID, accountID string, keep bool, max int) error
	// Account returns the enabled account with a name; a NotFound fault if there is none.
	Account(ctx context.Context, name string) (Owner, error)
	// Operators returns the ids of the portal's operators, the receivers of reports.
	Operators(ctx context.Context) ([]string, error)
}

// Owner is an account in its role as owner of agents.
type Owner struct{ ID, Name string }

// Offer is an offer to transfer an agent to another account.
type Offer struct {
	Agent   Agent
	To      Owner
	Created time.Time
}

// Proofs stores the proofs of addresses and of publishing domains.
type Proofs interface {
	// SetProof stores an agent's proof, unless the agent changed its owner meanwhile; the zero Proof deletes it.
	SetProof(ctx context.Context, agentID, ownerID string, p Proof) error
	// Domains returns the domains that an account has proved, with those whose last checks failed.
	Domains(ctx context.Context, accountID string) ([]Domain, error)
	// SetDomain stores the result of a check of a domain. proved false counts a failure; the fifth in a
	// row deletes the domain.
	SetDomain(ctx context.Context, accountID, domain string, proved bool) error
	RemoveDomain(ctx context.Context, accountID, domain string) error
	// StaleDomains returns at most limit domains whose last check was before then.
	StaleDomains(ctx context.Context, then time.Time, limit int) ([]Domain, error)
}

// Domain is a domain whose control an account has proved.
type Domain struct {
	AccountID string
	Domain    string // host, with the port if it is not the default
	ProvedAt  time.Time
	CheckedAt time.Time
	Failures  int
}

// Icons stores pictures by the hash of their bytes, so equal ones are stored once.
type Icons interface {
	PutIcon(ctx context.Context, hash string, png []byte) error
	Icon(ctx context.Context, hash string) ([]byte, error)
}

// Uses reads usage counts and call records of agents. The rows are written where tasks end.
type Uses interface {
	// Days returns the usage of an agent since a day, oldest first; days without calls are absent.
	Days(ctx context.Context, agentID string, since time.Time) ([]Day, error)
	// Calls returns the last calls of an agent, newest first. Fields that only the caller may see are
	// empty unless viewerID made the call.
	Calls(ctx context.Context, agentID, viewerID string, limit int) ([]CallRecord, error)
	// CallsSince returns the number of calls of an agent since then.
	CallsSince(ctx context.Context, agentID string, then time.Time) (int, error)
	// Traces returns the wire traffic of one call in order, if viewerID made the call.
	Traces(ctx context.Context, agentID, taskID, viewerID string) ([]Trace, error)
	// AddTraces stores the traces of a call and deletes those of all but the last 20 calls of the agent.
	AddTraces(ctx context.Context, agentID, taskID string, list []Trace) error
}

// Reports stores complaints about agents and their outcome.
type Reports interface {
	AddReport(ctx context.Context, r Report) error
	// Reports returns open reports, oldest first, or closed ones, newest first; of one agent if agentID is set.
	Reports(ctx context.Context, open bool, agentID string, limit int) ([]Report, error)
	CloseReport(ctx context.Context, id, by, outcome string) (Report, error)
}

// Notices stores the newest notices of each account.
type Notices interface {
	// AddNotice stores a notice and deletes all but the newest 200 of the account.
	AddNotice(ctx context.Context, n Notice) error
	Notices(ctx context.Context, accountID string, limit int) ([]Notice, error)
	Unread(ctx context.Context, accountID string) (int, error)
	// MarkNotices marks all notices up to and including an id as read.
	MarkNotices(ctx context.Context, accountID, upTo string) error
}

// Searches stores saved searches; methods with an accountID change only that account's.
type Searches interface {
	SaveSearch(ctx context.Context, s Saved) error
	SavedSearches(ctx context.Context, accountID string) ([]Saved, error)
	SeenSearch(ctx context.Context, accountID, id string, at time.Time) error
	DeleteSearch(ctx context.Context, accountID, id string) error
}

// Store is everything that Service and its parts read and write.
type Store interface {
	Agents
	Asked
	Lists
	Secrets
	Health
	Owners
	Proofs
	Icons
	Uses
	Reports
	Notices
	Searches
}

// Sealer encrypts credentials for storage. bound is the id of the owning row: a sealed value opens only
// with the bound it was sealed with, so rows cannot be swapped.
type Sealer interface {
	Seal(plain, bound string) []byte
	Open(sealed []byte, bound string) (string, error)
	// Mark returns a keyed hash of purpose and subject that only this portal can compute; the owner
	// token is made of it.
	Mark(purpose, subject string) string
}
