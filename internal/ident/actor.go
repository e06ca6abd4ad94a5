package ident

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// ActorKind is the kind of an actor; services decide by it about rights.
type ActorKind string

// The kinds of actors. An Operator is a Person who also runs the portal.
const (
	Guest    ActorKind = "guest"
	Person   ActorKind = "person"
	AgentBot ActorKind = "agent"
	Portal   ActorKind = "portal"
	Operator ActorKind = "operator"
	System   ActorKind = "system"
	// Publisher is a client that proved a domain to the MCP registry; it has no account.
	Publisher ActorKind = "publisher"
)

// Scope is a right that an API token may be narrowed to.
type Scope string

// The scopes of API tokens. A token without any scope may do all that its
// account may do.
const (
	AgentsRead  Scope = "agents:read"
	AgentsWrite Scope = "agents:write"
	ChatRead    Scope = "chat:read"
	ChatWrite   Scope = "chat:write"
	Tasks       Scope = "tasks"
	AccountAll  Scope = "account"
	Admin       Scope = "admin"
)

// scopeLabels are the labels of the boxes in the form for a new token.
var scopeLabels = map[Scope]string{AgentsRead: "Find agents", AgentsWrite: "Change agents",
	ChatRead: "Read conversations", ChatWrite: "Talk", Tasks: "Tasks", AccountAll: "Account", Admin: "Operate"}

// Label returns the label of the scope in the form for a new token.
func (s Scope) Label() string { return scopeLabels[s] }

// DescribeMissing returns the message about a token that lacks the scope: it names the box that gives it.
func (s Scope) DescribeMissing() string {
	return fmt.Sprintf("This token lacks the scope %q. On your account page, make a token with “%s” ticked.",
		string(s), s.Label())
}

// Scopes returns all scopes in the order in which forms list them. The caller may change the slice.
func Scopes() []Scope {
	return []Scope{AgentsRead, AgentsWrite, ChatRead, ChatWrite, Tasks, AccountAll, Admin}
}

// Actor is the identity that makes a service call. Endpoints build it from credentials that were
// checked for this very request; services never keep one. The zero Actor may do nothing.
type Actor struct {
	Kind ActorKind
	// ID is the id of the account, agent or guest session; for a person of another portal see
	// PortalActor.
	ID string
	// Name is the account's or agent's name, a publisher's domain, or the handle of a person of another
	// portal. It is empty for guests.
	Name string
	// Below is true for a publisher that also proved the domains below its own.
	Below bool
	// Credential is the id of the session or token with which the actor authenticated. Streams end when
	// it is revoked.
	Credential string
	// Until is the time at which the actor's token expires, and streams with it; zero for sessions, which
	// every use prolongs.
	Until time.Time
	// Narrowed is true if the actor used a token with scopes. Then only Scopes are allowed.
	Narrowed bool
	Scopes   []Scope
	// Through is true for the person behind an agent that acts for them, by a permission that they gave.
	Through bool
	// OwnWords is true for a person of another portal, if that portal states that the request has their own words and
	// agents only passed them on.
	OwnWords bool
	// Addr is the client's address without port, under which requests are counted and limited. It is not
	// an identity. An IPv6 address is cut to its /64.
	Addr string
}

// May reports whether the actor's credential covers scope. It says nothing about the rights of the
// account itself.
func (a Actor) May(scope Scope) bool {
	return !a.Narrowed || slices.Contains(a.Scopes, scope)
}

// programPrefix begins the one scope of a token that only connects the program of an agent; the agent's id follows.
const programPrefix = "program:"

// ProgramScope returns the scope of a token that may connect the program of one agent, and nothing else.
func ProgramScope(agentID string) Scope { return Scope(programPrefix + agentID) }

// Program returns the id of the agent whose program the actor's token connects; ok is false for other credentials.
func (a Actor) Program() (agentID string, ok bool) {
	for _, s := range a.Scopes {
		if agentID, ok = strings.CutPrefix(string(s), programPrefix); ok {
			return agentID, true
		}
	}
	return "", false
}

// IsPerson reports whether the actor has an account here.
func (a Actor) IsPerson() bool { return a.Kind == Person || a.Kind == Operator }

// IsVisitor reports whether the actor has no account here: a guest, or a person for whom another portal
// calls.
func (a Actor) IsVisitor() bool { return a.Kind == Guest || a.Kind == Portal }

// IsOperator reports whether the actor is an operator of the portal. The right to act as one also needs
// May(Admin).
func (a Actor) IsOperator() bool { return a.Kind == Operator }

// AddrGroup returns the network of a guest's address, a /24 of IPv4 or a /64 of IPv6, because one person
// easily has all addresses of it. It is "" for other actors and without an address.
func (a Actor) AddrGroup() string {
	// An IPv6 client is known by its /64 already, see request.ClientAddr.
	addr, err := netip.ParseAddr(strings.TrimSuffix(a.Addr, "/64"))
	if a.Kind != Guest || err != nil {
		return ""
	}
	addr, bits := addr.Unmap().WithZone(""), 64
	if addr.Is4() {
		bits = 24
	}
	return netip.PrefixFrom(addr, bits).Masked().String()
}
