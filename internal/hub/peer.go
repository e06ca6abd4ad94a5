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

// Peer is the kind of agents of other portals that are called from here. Their kind at home does
// not matter to callers, because the request goes to their portal.
const Peer Kind = "peer"

// Asked stores which agents of other portals were asked from here, so that
// conversations and tasks can refer to them. They are in no list and no count.
type Asked interface {
	// KeepElsewhere stores an agent as Callable returns it, or updates its stored form. AgentByID
	// finds it from then on.
	KeepElsewhere(ctx context.Context, a Agent) error
	// ElsewhereBy returns the agent that was last asked by a handle; a NotFound
	// fault when none was.
	ElsewhereBy(ctx context.Context, name, host string) (Agent, error)
}

// Ways knows where other portals are and whether people here may use them.
type Ways interface {
	// Way returns the present origin of a portal, by its id in the network. A Forbidden fault
	// means that people here may not use agents there, an Unavailable one that its origin is
	// unknown.
	Way(ctx context.Context, portalID string) (origin string, err error)
}

// elsewhereID is the id here of an agent of another portal: always the same for
// the same two ids in the network. It has the form of all other ids.
func elsewhereID(portalID, networkID string) string {
	sum := sha256.Sum256([]byte("agentsite/elsewhere/1\n" + portalID + "\n" + networkID))
	return ulid.ULID(sum[:16]).String()
}

// portalOf is the id of an agent's portal in the network, which the ids of
// agents without a key of their own begin with.
func (s *Service) portalOf(a Agent) string {
	if id, _, ok := strings.Cut(a.ID, "/"); ok {
		return id
	}
	return s.network.Source(a).ID
}

// callableElsewhere returns an agent of another portal that the actor may call. Its ID is the
// local one, NetworkID the one in the network. Actors of another portal are refused: they ask from
// their own portal.
func (s *Service) callableElsewhere(ctx context.Context, actor ident.Actor, h ident.Handle) (Agent, error) {
	if !actor.May(ident.AgentsRead) && !actor.May(ident.AgentsWrite) && !actor.May(ident.ChatWrite) {
		return Agent{}, fault.New(fault.Forbidden, "This token lacks the scope %q.", ident.AgentsRead)
	}
	if s.network == nil || s.ways == nil || actor.Kind == ident.Portal || ident.CheckForm(h.Name) != nil {
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
	if a.Kind == Builtin { // conversations go on with the agent that they began with: it had a record once
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
	// Limits and owners do not apply here: the other portal authorizes the call.
	a.Kind, a.OwnerID, a.CoOwnerIDs, a.Limits, a.Config, a.HasSecret, a.EmbedOrigins = Peer, "", nil, Limits{}, nil,
		false, nil
	return a, nil
}

// findMoved finds an agent by the handle it was asked by before its portal moved
// to another address; absent is the answer for all others.
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
		a.ID = was.NetworkID // it has no record, so the id that is known stays
	}
	if err == nil && (a.ID != was.NetworkID || s.portalOf(a) != was.PortalID) {
		return Agent{}, absent
	}
	return a, err
}

// Met stores the row of an agent that Callable returned before it is called, so that tasks can
// refer to it.
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

// openElsewhere fills in where an agent of another portal is asked now.
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
