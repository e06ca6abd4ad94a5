package hub

import (
	"context"
	"time"

	"agentsite/internal/ident"
)

// Agents stores agents with their versions. Absent rows are NotFound faults,
// taken names Conflict faults; deleted agents are absent, their names taken.
type Agents interface {
	// CreateAgent stores the agent as version 1 with its sealed secret.
	CreateAgent(ctx context.Context, a Agent, sealed []byte) error
	// CreateAgents stores many at once, all or none, without secrets.
	CreateAgents(ctx context.Context, list []Agent) error
	// UpdateAgent stores a as the version after base; a Conflict fault when
	// base is not the latest any more. sealed nil leaves the secret. A change
	// of address makes the agent due for a check and ends its proof.
	UpdateAgent(ctx context.Context, a Agent, base int, sealed []byte, author ident.Actor) error
	// DeleteAgent removes the agent; the name stays taken for ever.
	DeleteAgent(ctx context.Context, id string) error
	AgentByName(ctx context.Context, name string) (Agent, error)
	AgentByID(ctx context.Context, id string) (Agent, error)
	// NameTaken reports whether a name is or ever was somebody's.
	NameTaken(ctx context.Context, name string) (bool, error)
}

// Lists reads many agents.
type Lists interface {
	// AllAgents calls yield for every agent of the portal, without secrets,
	// leaving out those of disabled accounts, until yield returns false. As
	// all lists it may leave out Config.
	AllAgents(ctx context.Context, yield func(Agent) bool) error
	// AgentsOf returns an account's agents by name, those it co-owns last. It may leave out
	// Config: read an agent by its id before it is stored again.
	AgentsOf(ctx context.Context, ownerID string) ([]Agent, error)
	// CountAgents counts the agents an account owns.
	CountAgents(ctx context.Context, ownerID string) (int, error)
	// Versions returns the versions of an agent, newest first: those before a
	// number, 0 for all, at most limit and 200.
	Versions(ctx context.Context, agentID string, before, limit int) ([]Agent, error)
}

// Secrets reads the values that only a call may see.
type Secrets interface {
	SealedSecret(ctx context.Context, agentID string) ([]byte, error)
}

// Health reads liveness.
type Health interface {
	// History returns the last verdicts, oldest first.
	History(ctx context.Context, agentID string) ([]Contact, error)
}

// Checkup is an agent that is to be contacted.
type Checkup struct {
	Agent    Agent
	Failures int
	History  []Contact // oldest first
}

// Contact is one exchange of an agent's history.
type Contact struct {
	At      time.Time
	State   Live
	Latency time.Duration // up to a tenth below the worst
}

// MaxHistory is how many contacts are remembered of an agent.
const MaxHistory = 200

// Owners stores the owners of agents.
type Owners interface {
	// CoOwners returns the accounts that may change it beside its owner.
	CoOwners(ctx context.Context, agentID string) ([]Owner, error)
	AddCoOwner(ctx context.Context, agentID, accountID string) error
	RemoveCoOwner(ctx context.Context, agentID, accountID string) error
	// SetOffer offers the agent to an account, or takes the offer back with "".
	SetOffer(ctx context.Context, agentID, accountID string) error
	// OfferOf returns the account that an agent is offered to.
	OfferOf(ctx context.Context, agentID string) (to Owner, ok bool, err error)
	// Offers returns the agents offered to an account.
	Offers(ctx context.Context, accountID string) ([]Offer, error)
	// Transfer gives the agent to the account it was offered to, without its
	// credential and the proof that rested on the former owner's token, with the
	// former owner as co-owner if keep is set; a Conflict fault when there is
	// no such offer any more, or the account has max agents.
	Transfer(ctx context.Context, agentID, accountID string, keep bool, max int) error
	// Account finds an account that is not disabled by its name.
	Account(ctx context.Context, name string) (Owner, error)
	// Operators returns the ids of the portal's operators.
	Operators(ctx context.Context) ([]string, error)
}

// Owner is an account as far as agents are concerned.
type Owner struct{ ID, Name string }

// Offer is an agent that its owner wants to give away.
type Offer struct {
	Agent   Agent
	To      Owner
	Created time.Time
}

// Proofs stores the proofs of addresses and domains.
type Proofs interface {
	// SetProof stores an agent's proof if it still belongs to the owner; the
	// zero Proof ends it.
	SetProof(ctx context.Context, agentID, ownerID string, p Proof) error
	// Domains returns the domains of an account.
	Domains(ctx context.Context, accountID string) ([]Domain, error)
	// SetDomain stores that a domain was checked; proved false counts a
	// failure, and the fifth in a row removes it.
	SetDomain(ctx context.Context, accountID, domain string, proved bool) error
	RemoveDomain(ctx context.Context, accountID, domain string) error
	// StaleDomains returns the domains last checked before then.
	StaleDomains(ctx context.Context, then time.Time, limit int) ([]Domain, error)
}

// Domain is a domain that an account was shown to control.
type Domain struct {
	AccountID string
	Domain    string // host, with the port if it is not the default
	ProvedAt  time.Time
	CheckedAt time.Time
	Failures  int
}

// Icons stores pictures by the hash of their bytes.
type Icons interface {
	PutIcon(ctx context.Context, hash string, png []byte) error
	Icon(ctx context.Context, hash string) ([]byte, error)
}

// Uses counts and shows how agents are used. The rows are written where tasks
// end.
type Uses interface {
	// Days returns the use of an agent since a day, oldest first.
	Days(ctx context.Context, agentID string, since time.Time) ([]Day, error)
	// Calls returns the last calls, newest first, as one of the owners sees
	// them.
	Calls(ctx context.Context, agentID, viewerID string, limit int) ([]CallRecord, error)
	// CallsSince counts the calls of an agent since then.
	CallsSince(ctx context.Context, agentID string, then time.Time) (int, error)
	// Traces returns the wire traffic of one call of the viewer's own, in order.
	Traces(ctx context.Context, agentID, taskID, viewerID string) ([]Trace, error)
	// AddTraces stores the traces of a call and forgets those of all but the
	// last 20 calls of the agent.
	AddTraces(ctx context.Context, agentID, taskID string, list []Trace) error
}

// Reports stores complaints about agents.
type Reports interface {
	AddReport(ctx context.Context, r Report) error
	// Reports returns open reports, oldest first, or closed ones, newest
	// first; of one agent if agentID is set.
	Reports(ctx context.Context, open bool, agentID string, limit int) ([]Report, error)
	CloseReport(ctx context.Context, id, by, outcome string) (Report, error)
}

// Notices stores the notifications of accounts.
type Notices interface {
	// AddNotice keeps the newest 200 of an account.
	AddNotice(ctx context.Context, n Notice) error
	Notices(ctx context.Context, accountID string, limit int) ([]Notice, error)
	Unread(ctx context.Context, accountID string) (int, error)
	// MarkRead marks every notice up to an id as read.
	MarkNotices(ctx context.Context, accountID, upTo string) error
}

// Searches stores saved searches.
type Searches interface {
	SaveSearch(ctx context.Context, s Saved) error
	SavedSearches(ctx context.Context, accountID string) ([]Saved, error)
	SeenSearch(ctx context.Context, accountID, id string, at time.Time) error
	DeleteSearch(ctx context.Context, accountID, id string) error
}

// Store is all that the service keeps.
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

// Sealer keeps credentials unreadable at rest. bound ties a sealed value to
// its owner: it opens only with the same bound.
type Sealer interface {
	Seal(plain, bound string) []byte
	Open(sealed []byte, bound string) (string, error)
	// Mark is a text that only this portal can make, the same for the same
	// subject: the token that proves an owner to an address.
	Mark(purpose, subject string) string
}
