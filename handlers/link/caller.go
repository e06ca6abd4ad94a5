package link

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"agentsite/handlers/request"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/limit"
	"agentsite/internal/linkwire"
	"agentsite/internal/task"
)

// caller is one open connection of a connected program.
type caller struct {
	server *server
	r      *http.Request
	token  string
	actor  ident.Actor
	// stranger counts a connection without a proved token, owned one with a token; nil if it is not
	// counted as such.
	stranger, owned *limit.Hold
}

// allLinks is the key of all connections, allStrangers of those without a proved token. These may be half
// of all at most, so that a holder of many addresses does not keep out programs that send a token at once.
const (
	allLinks     = "all"
	allStrangers = "strangers"
)

// countStranger counts the connection for its address until a token is proved.
func (c *caller) countStranger() error {
	hold, full := c.server.held.Take(
		limit.Share{Key: "address " + request.ClientAddr(c.r), Most: c.server.cfg.PerAddress},
		limit.Share{Key: allStrangers, Most: max(c.server.cfg.All/2, 1)},
		limit.Share{Key: allLinks, Most: c.server.cfg.All})
	switch full {
	case "":
		c.stranger = hold
		return nil
	case allLinks, allStrangers:
		return c.allTaken()
	}
	return fault.Limited(5*time.Second,
		"Too many connections from your address have not sent a token. Wait a moment.")
}

func (c *caller) allTaken() error {
	return &fault.Error{Kind: fault.Unavailable, RetryAfter: 30 * time.Second,
		Safe: "This portal has as many programs connected as it can. Try again later."}
}

// proveToken authenticates the token and counts the connection for its account. It fails if the account
// has its maximum of connections.
func (c *caller) proveToken(token string) error {
	if !strings.HasPrefix(token, ident.TokenPrefix) {
		token = "" // refused, because session secrets are valid in cookies only
	}
	var actor ident.Actor
	var err error
	c.server.runApart(func() { actor, err = c.server.cfg.Callers.AuthenticateProgram(c.r, token) })
	if err != nil {
		return err
	}
	if !actor.IsPerson() {
		return fault.New(fault.Unauthenticated, "Agents connect with an API token of an account.")
	}
	hold, full := c.server.held.Take(limit.Share{Key: "account " + actor.ID, Most: c.server.cfg.PerAccount},
		limit.Share{Key: allLinks, Most: c.server.cfg.All})
	switch full {
	case "":
		c.token, c.actor, c.owned = token, actor, hold
		return nil
	case allLinks:
		return c.allTaken()
	}
	return fault.Limited(30*time.Second,
		"This account has %d agents connected; that is the most. Disconnect one, then try again.",
		c.server.cfg.PerAccount)
}

// leaveCounts removes the connection from the counts per address and per account, when the connection
// ends.
func (c *caller) leaveCounts() {
	c.stranger.Release()
	c.owned.Release()
}

// serveConnection reads hello, finds the agent that it speaks for, and passes the connection to the agent
// runner until the connection ends.
func (c *caller) serveConnection(ctx context.Context, s *linkwire.Socket) {
	late := time.AfterFunc(linkwire.HelloWait, func() { s.Close("protocol: hello did not come in time") })
	first, err := s.Receive(ctx)
	if !late.Stop() || err != nil {
		return
	}
	m, err := linkwire.DecodeMessage(first)
	var h linkwire.Hello
	if err != nil || m.Method != linkwire.MethodHello || m.ID == nil || json.Unmarshal(m.Params, &h) != nil {
		c.deny(ctx, s, m.ID, fault.New(fault.Invalid,
			"The first message must be a hello request. The protocol is described at /docs/link."))
		return
	}
	if h.Protocol != linkwire.Version {
		c.deny(ctx, s, m.ID, fault.New(fault.Invalid,
			"This portal speaks version %d of the protocol, and hello asks for %d.", linkwire.Version, h.Protocol))
		return
	}
	if c.actor.ID == "" {
		if err := c.proveToken(h.Token); err != nil {
			c.deny(ctx, s, m.ID, err)
			return
		}
		c.stranger.Release()
	}
	guarded, release := c.server.cfg.Accounts.Guard(ctx, c.actor)
	defer release()
	revoked := context.AfterFunc(guarded, func() {
		if ctx.Err() == nil {
			s.Close(linkwire.ReasonRevoked)
		}
	})
	defer revoked()
	// Proved again after the guard has started, so that a token that was revoked in between is noticed.
	var who task.Attached
	c.server.runApart(func() {
		var actor ident.Actor
		if actor, err = c.proveAgain(); err == nil {
			who, err = c.server.cfg.Agents.Claim(guarded, actor, h)
		}
	})
	if err != nil {
		c.deny(ctx, s, m.ID, err)
		return
	}
	s.LiftLimit()
	h.Token = "" // removed, because the agent runner must not see the token
	check := c.watchRight(guarded, s, who)
	defer check()
	if m.Params, err = json.Marshal(h); err == nil {
		first, err = json.Marshal(m)
	}
	if err != nil {
		c.deny(ctx, s, m.ID, err)
		return
	}
	_ = c.server.cfg.Attach.Attach(guarded, who, &stream{Socket: s, first: first})
}

// proveAgain authenticates the token once more and returns its actor with the present rights.
func (c *caller) proveAgain() (ident.Actor, error) {
	now, err := c.server.cfg.Callers.AuthenticateProgram(c.r, c.token)
	if err == nil && (now.ID != c.actor.ID || now.Credential != c.actor.Credential) {
		err = fault.New(fault.Unauthenticated, "Your token has ended. Make a new one.")
	}
	return now, err
}

// watchRight closes the connection once the actor may no longer speak for the agent. It checks by a
// timer, so that an idle connection needs no goroutine. Call the returned function when the connection
// ends.
func (c *caller) watchRight(ctx context.Context, s *linkwire.Socket, who task.Attached) (stop func()) {
	var mu sync.Mutex // guards timer
	var timer *time.Timer
	check := func() {
		mu.Lock()
		defer mu.Unlock()
		if ctx.Err() != nil {
			return
		}
		var err error
		c.server.runApart(func() {
			var actor ident.Actor
			if actor, err = c.proveAgain(); err == nil {
				err = c.server.cfg.Agents.Holds(ctx, actor, who)
			}
		})
		if k := fault.As(err); err != nil && k.Kind != fault.Internal && k.Kind != fault.Unavailable {
			s.Close(linkwire.ReasonRevoked)
			return
		}
		timer.Reset(c.server.cfg.RecheckEvery)
	}
	mu.Lock()
	defer mu.Unlock()
	timer = time.AfterFunc(c.server.cfg.RecheckEvery, check)
	return func() { timer.Stop() }
}

// deny answers hello with an error and closes the connection.
func (c *caller) deny(ctx context.Context, s *linkwire.Socket, id json.RawMessage, err error) {
	f := c.server.logFault(c.r, err)
	_ = s.Send(ctx, linkwire.EncodeFailure(id,
		&linkwire.Error{Code: linkwire.ErrRefused, Message: f.Safe,
			Data: &linkwire.ErrorData{Kind: string(f.Kind), Fields: f.Fields}}))
	word := "refused: "
	if f.Kind == fault.RateLimited || f.Kind == fault.Unavailable || f.Kind == fault.Internal {
		word = "busy: " // prefix of the close reason after which programs retry later
	}
	s.Close(word + f.Safe)
}

// stream is the connection as the agent runner reads it: the hello that was read already comes first.
type stream struct {
	*linkwire.Socket
	first []byte
}

// Send implements task.Stream.
func (s *stream) Send(ctx context.Context, b []byte) error {
	return detachedError(s.Socket.Send(ctx, b))
}

// Receive implements task.Stream.
func (s *stream) Receive(ctx context.Context) ([]byte, error) {
	if s.first != nil {
		b := s.first
		s.first = nil
		return b, nil
	}
	b, err := s.Socket.Receive(ctx)
	return b, detachedError(err)
}

func detachedError(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", task.ErrDetached, err)
}
