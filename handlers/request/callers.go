package request

import (
	"container/list"
	"net/http"
	"strings"
	"sync"
	"time"

	"agentsite/internal/account"
	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
)

// Authenticator returns the actor for the bearer token of a request, or a guest without one. An invalid
// token is an error. *Callers implements it.
type Authenticator interface {
	Authenticate(r *http.Request) (ident.Actor, error)
}

// Callers identifies the caller of a protocol endpoint: the account of an API token, or a guest. Cookies are
// ignored, so that no page of another site can act as the person whose browser shows it.
//
// A guest without a token exists for one conversation: a request that names the conversation, from the address that
// opened it, is from that guest. The portal keeps this in memory, for keepFor after the last use and for at most
// maxKept conversations. After that, and after a restart, the guest has no access to the conversation. Create it
// with NewCallers.
type Callers struct {
	accounts    *account.Service
	portals     Portals // nil if other portals may send no requests
	connections *Connections

	mu    sync.Mutex // guards the fields below
	kept  map[string]*list.Element
	order *list.List // elements are *guest, the most recently used in front
}

type guest struct {
	key, secret string
	used        time.Time
}

const (
	maxKept = 20_000
	keepFor = 24 * time.Hour
)

// NewCallers returns Callers that check tokens with accounts. portals verifies requests that other
// portals make on behalf of people; nil refuses all of those. connections counts the requests that wait
// for agents.
func NewCallers(accounts *account.Service, portals Portals, connections *Connections) *Callers {
	return &Callers{accounts: accounts, portals: portals, connections: connections,
		kept: make(map[string]*list.Element), order: list.New()}
}

// Caller is the actor of a request, and for a guest the secret that links the actor to a conversation.
type Caller struct {
	ident.Actor
	secret string // set for a guest only
}

// Authenticate returns the actor of the request's API token, or a guest with an empty id without one. A
// bad token is an error, because a caller that silently became a guest would not notice.
func (c *Callers) Authenticate(r *http.Request) (ident.Actor, error) {
	if actor, ok := r.Context().Value(portalKey{}).(ident.Actor); ok {
		return actor, c.portals.May(r.Context(), ident.PortalOf(actor.ID))
	}
	h := r.Header.Get("Authorization")
	if h == "" {
		return ident.Actor{Kind: ident.Guest, Addr: ClientAddr(r)}, nil
	}
	return c.AuthenticateToken(r, ident.BearerToken(h))
}

// AuthenticateToken returns the actor of an API token that came in another place than the Authorization
// header.
func (c *Callers) AuthenticateToken(r *http.Request, token string) (ident.Actor, error) {
	if !strings.HasPrefix(token, ident.TokenPrefix) {
		token = "" // refused, because session secrets are valid in cookies only
	}
	return c.accounts.Authenticate(r.Context(), token, ClientAddr(r))
}

// AuthenticateProgram is AuthenticateToken for the endpoint at which programs connect, see
// account.Service.AuthenticateProgram.
func (c *Callers) AuthenticateProgram(r *http.Request, token string) (ident.Actor, error) {
	if !strings.HasPrefix(token, ident.TokenPrefix) {
		token = "" // refused, because session secrets are valid in cookies only
	}
	return c.accounts.AuthenticateProgram(r.Context(), token, ClientAddr(r))
}

// Identify returns the caller for an actor from Authenticate. A guest becomes the guest that owns the
// first non-empty id, of a conversation or a task. Without any id it becomes a new guest, within the
// limits of its address. An id of another caller is a NotFound error.
func (c *Callers) Identify(r *http.Request, actor ident.Actor, ids ...string) (Caller, error) {
	if actor.ID != "" {
		return Caller{Actor: actor}, nil
	}
	for _, id := range ids {
		if id == "" {
			continue
		}
		if secret := c.secret(actor.Addr, id); secret != "" {
			if known, err := c.accounts.Authenticate(r.Context(), secret, actor.Addr); err == nil {
				return Caller{known, secret}, nil
			} else if !fault.Is(err, fault.Unauthenticated) {
				return Caller{}, err
			}
		}
		return Caller{}, fault.New(fault.NotFound,
			"There is no such conversation or task, or it is not yours. Visitors keep theirs for a day; sign up to keep them for good.")
	}
	secret, actor, err := c.accounts.StartGuest(r.Context(), actor)
	return Caller{actor, secret}, err
}

// Remember records that a conversation or task belongs to a guest. For other actors it does nothing.
func (c *Callers) Remember(a Caller, id string) {
	if a.secret == "" {
		return
	}
	key, now := a.Addr+"|"+id, clock.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.kept[key]; e != nil {
		e.Value.(*guest).used = now
		c.order.MoveToFront(e)
		return
	}
	c.kept[key] = c.order.PushFront(&guest{key, a.secret, now})
	for e := c.order.Back(); e != nil && (c.order.Len() > maxKept ||
		now.Sub(e.Value.(*guest).used) > keepFor); e = c.order.Back() {
		c.order.Remove(e)
		delete(c.kept, e.Value.(*guest).key)
	}
}

// secret returns the secret of the guest that owns an id, "" without one. The address must be the one that
// the guest used.
func (c *Callers) secret(addr, id string) string {
	now := clock.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.kept[addr+"|"+id]
	if e == nil || now.Sub(e.Value.(*guest).used) > keepFor {
		return ""
	}
	e.Value.(*guest).used = now
	c.order.MoveToFront(e)
	return e.Value.(*guest).secret
}
