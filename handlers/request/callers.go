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

// Authenticator returns the actor for the credentials of a request: a bearer token, otherwise a guest. An invalid token
// is an error. *Callers implements it.
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
	accounts *account.Service
	portals  Portals // nil if no other portal may send requests

	mu    sync.Mutex // guards the rest
	kept  map[string]*list.Element
	order *list.List // of *guest, the most recently used first
	// attending counts the waiting requests by caller.
	attending map[string]int
}

type guest struct {
	key, secret string
	used        time.Time
}

const (
	maxKept = 20_000
	keepFor = 24 * time.Hour
)

// NewCallers returns Callers over the accounts of a portal, and over other portals that make requests on behalf of
// their people; nil for none.
func NewCallers(accounts *account.Service, portals Portals) *Callers {
	return &Callers{accounts: accounts, portals: portals, kept: make(map[string]*list.Element), order: list.New(),
		attending: make(map[string]int)}
}

// Caller is the actor of a request.
type Caller struct {
	ident.Actor
	secret string // of a guest
}

// Authenticate returns the actor of an API token, else a visitor without an id. A bad token is an error, because a
// silent change to a visitor would be worse.
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

// AuthenticateToken returns the actor of an API token at any place in the request.
func (c *Callers) AuthenticateToken(r *http.Request, token string) (ident.Actor, error) {
	if !strings.HasPrefix(token, ident.TokenPrefix) {
		token = "" // the secret of a session is valid only in a cookie
	}
	return c.accounts.Authenticate(r.Context(), token, ClientAddr(r))
}

// Identify returns the caller for the actor of Authenticate. A visitor becomes the guest of the first id, of a
// conversation or a task, that is not empty. A visitor without any id becomes a new guest, within the limits of the
// address. An id of another caller is a NotFound fault.
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

// Remember stores that a conversation or task belongs to a guest. It does nothing for other callers.
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

// secret returns the secret of the guest of an id, or "" if there is none.
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
