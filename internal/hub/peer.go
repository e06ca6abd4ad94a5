package hub

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"net/url"
	"strings"

	"github.com/oklog/ulid/v2"

	"agentsite/internal/fault"
	"agentsite/internal/ident"
)

// Peer is the kind of rows for agents of other portals that are called from here. Their real kind does
// not matter, because the call goes to their portal.
const Peer Kind = "peer"

// Asked stores rows for agents of other portals that were called from here, so that conversations and
// tasks can refer to them. No list or count includes these rows.
type Asked interface {
	// KeepElsewhere inserts or updates the row of an agent as Callable returned it. AgentByID finds the
	// row afterwards.
	KeepElsewhere(ctx context.Context, a Agent) error
	// ElsewhereBy returns the most recently called agent with this name and host; a NotFound fault if there is none.
	ElsewhereBy(ctx context.Context, name, host string) (Agent, error)
}

// Ways finds the addresses of other portals and applies the operator's policy about calling them.
type Ways interface {
	// Way returns the current origin of a portal, by its network id. A Forbidden fault means that the
	// policy does not allow calls to the portal, an Unavailable fault that its origin is unknown.
	Way(ctx context.Context, portalID string) (origin string, err error)
}

// elsewhereID derives the local id of an agent of another portal from the network ids of the portal and
// the agent. The result is stable and has the form of other local ids (a ULID).
func elsewhereID(portalID, networkID string) string {
	sum := sha256.Sum256([]byte("agentsite/elsewhere/1\n" + portalID + "\n" + networkID))
	return ulid.ULID(sum[:16]).String()
}

// portalOf returns the network id of the agent's portal. Agent ids begin with it, unless the agent has a
// key of its own.
func (s *Service) portalOf(a Agent) string {
	if id, _, ok := strings.Cut(a.ID, "/"); ok {
		return id
	}
	return s.network.Source(a).ID
}

// callableElsewhere returns an agent of another portal that the actor may call, with ID set to the local
// id and NetworkID to the network id. People of other portals get a NotFound fault, because they must
// call from their own portal; an agent here that acts for one may call.
func (s *Service) callableElsewhere(ctx context.Context, actor ident.Actor, h ident.Handle) (Agent, error) {
	if !actor.May(ident.AgentsRead) && !actor.May(ident.AgentsWrite) && !actor.May(ident.ChatWrite) {
		return Agent{}, fault.New(fault.Forbidden, "%s", ident.AgentsRead.DescribeMissing())
	}
	if s.network == nil || s.ways == nil || actor.Kind == ident.Portal && !actor.Through || ident.CheckForm(h.Name) != nil {
		return Agent{}, errNoAgent(h.String())
	}
	a, err := s.network.Find(ctx, h.Name, h.Portal)
	if fault.Is(err, fault.NotFound) {
		a, err = s.findMoved(ctx, h, err)
	}
	if fault.Is(err, fault.NotFound) {
		a, err = s.resolveRemote(ctx, actor, h.String(), err)
	}
	if err != nil {
		return Agent{}, err
	}
	portal := s.portalOf(a)
	if portal == "" || a.Portal == "" {
		return Agent{}, errNoAgent(h.String())
	}
	// A built-in agent has no record of its own any more. If it was called before, its earlier network
	// id is kept, so that conversations stay with the same local row.
	if a.Kind == Builtin {
		was, err := s.store.ElsewhereBy(ctx, h.Name, a.Portal)
		if err == nil && was.PortalID == portal {
			a.ID = was.NetworkID
		} else if err != nil && !fault.Is(err, fault.NotFound) {
			return Agent{}, err
		}
	}
	if a.Status.State == Withdrawn {
		return Agent{}, fault.New(fault.Conflict, "%s was withdrawn by its owner and takes no work. %s", a.Handle(),
			a.Status.Message)
	}
	if _, err := s.ways.Way(ctx, portal); err != nil {
		return Agent{}, err
	}
	a.PortalID, a.NetworkID = portal, a.ID
	a.ID = elsewhereID(portal, a.NetworkID)
	// Local owners and limits do not apply: the other portal authorizes the call.
	a.Kind, a.OwnerID, a.CoOwnerIDs, a.Limits, a.Config, a.HasSecret, a.EmbedOrigins = Peer, "", nil, Limits{}, nil,
		false, nil
	return a, nil
}

// findMoved finds an agent whose portal has moved to another host, by the old handle under which it was
// called before. absent is the error to return in all other cases.
func (s *Service) findMoved(ctx context.Context, h ident.Handle, absent error) (Agent, error) {
	was, err := s.store.ElsewhereBy(ctx, h.Name, h.Portal)
	if fault.Is(err, fault.NotFound) {
		return Agent{}, absent
	}
	if err != nil {
		return Agent{}, err
	}
	origin, err := s.ways.Way(ctx, was.PortalID)
	if err != nil {
		return Agent{}, err
	}
	u, err := url.Parse(origin)
	if err != nil || u.Host == h.Portal {
		return Agent{}, absent
	}
	a, err := s.network.Find(ctx, h.Name, u.Host)
	if err == nil && a.Kind == Builtin && s.portalOf(a) == was.PortalID {
		a.ID = was.NetworkID // A built-in agent has no record, so its earlier network id is kept.
	}
	if err == nil && (a.ID != was.NetworkID || s.portalOf(a) != was.PortalID) {
		return Agent{}, absent
	}
	return a, err
}

// Met stores the row of an agent of another portal that Callable returned, so that tasks can refer to
// it. It must be called before the task is stored; for local agents it does nothing.
func (s *Service) Met(ctx context.Context, a Agent) error {
	if a.Kind != Peer {
		return nil
	}
	have, err := s.store.AgentByID(ctx, a.ID)
	if err == nil && have.Name == a.Name && have.Portal == a.Portal && have.Title == a.Title {
		return nil
	}
	if err != nil && !fault.Is(err, fault.NotFound) {
		return err
	}
	return s.store.KeepElsewhere(ctx, a)
}

// openElsewhere sets the endpoint and settings of an agent of another portal to its portal's current A2A address.
func (s *Service) openElsewhere(ctx context.Context, a Agent) (Agent, error) {
	if s.ways == nil {
		return a, fault.New(fault.Unavailable, "This portal does not ask other portals.")
	}
	origin, err := s.ways.Way(ctx, a.PortalID)
	if err != nil {
		return a, err
	}
	a.Endpoint = origin + "/agents/" + url.PathEscape(a.Name) + "/a2a"
	a.Config, err = json.Marshal(A2AConfig{Binding: "JSONRPC", Version: "1.0", Streaming: true})
	return a, err
}
