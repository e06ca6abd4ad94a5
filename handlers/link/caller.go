package link

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/linkwire"
	"agentsite/internal/task"
)

// caller is one connection while it is open.
type caller struct {
	door  *door
	r     *http.Request
	addr  string // set while it counts as a stranger
	token string
	actor ident.Actor
}

// prove finds out who the token is of, and counts the connection as theirs.
func (c *caller) prove(token string) error {
	if !strings.HasPrefix(token, ident.TokenPrefix) {
		token = "" // a session's secret is for cookies only
	}
	var actor ident.Actor
	var err error
	c.door.apart(func() { actor, err = c.door.cfg.Authenticate(c.r, token) })
	if err != nil {
		return err
	}
	if !actor.IsPerson() {
		return fault.New(fault.Unauthenticated, "Agents connect with an API token of an account.")
	}
	if !c.door.enter(c.door.accounts, actor.ID, c.door.cfg.PerAccount) {
		return fault.Limited(30*time.Second, "This account has %d agents connected; that is the most.", c.door.cfg.PerAccount)
	}
	c.token, c.actor = token, actor
	return nil
}

// leave takes the connection off all counts.
func (c *caller) leave() {
	c.known()
	if c.actor.ID != "" {
		c.door.leave(c.door.accounts, c.actor.ID)
	}
}

// known takes the connection off the strangers.
func (c *caller) known() {
	if c.addr != "" {
		c.door.leave(c.door.strange, c.addr)
		c.addr = ""
	}
}

// serve reads hello, settles who speaks for which agent, and hands the
// connection over until it ends.
func (c *caller) serve(ctx context.Context, s *linkwire.Socket) {
	late := time.AfterFunc(linkwire.HelloWait, func() { s.Close("protocol: hello did not come in time") })
	first, err := s.Receive(ctx)
	if !late.Stop() || err != nil {
		return
	}
	m, err := linkwire.DecodeMessage(first)
	var h linkwire.Hello
	if err != nil || m.Method != linkwire.MethodHello || m.ID == nil || json.Unmarshal(m.Params, &h) != nil {
		c.deny(ctx, s, m.ID, fault.New(fault.Invalid, "The first message must be a hello request. The protocol is described at /docs/link."))
		return
	}
	if h.Protocol != linkwire.Version {
		c.deny(ctx, s, m.ID, fault.New(fault.Invalid, "This portal speaks version %d of the protocol, and hello asks for %d.", linkwire.Version, h.Protocol))
		return
	}
	if c.actor.ID == "" {
		if err := c.prove(h.Token); err != nil {
			c.deny(ctx, s, m.ID, err)
			return
		}
		c.known()
	}
	guarded, release := c.door.cfg.Guard(ctx, c.actor)
	defer release()
	revoked := context.AfterFunc(guarded, func() {
		if ctx.Err() == nil {
			s.Close(linkwire.ReasonRevoked)
		}
	})
	defer revoked()
	// Proved again now that the guard watches: a right that ended in between
	// is noticed.
	var who task.Attached
	c.door.apart(func() {
		var actor ident.Actor
		if actor, err = c.again(); err == nil {
			who, err = c.door.cfg.Claim(guarded, actor, h)
		}
	})
	if err != nil {
		c.deny(ctx, s, m.ID, err)
		return
	}
	s.LiftLimit()
	h.Token = "" // whoever takes the connection has no use for it
	check := c.recheck(guarded, s, who)
	defer check()
	if m.Params, err = json.Marshal(h); err == nil {
		first, err = json.Marshal(m)
	}
	if err != nil {
		c.deny(ctx, s, m.ID, err)
		return
	}
	c.door.cfg.Attach.Attach(guarded, who, &stream{Socket: s, first: first})
}

// again proves the token once more, and returns what it proves now.
func (c *caller) again() (ident.Actor, error) {
	now, err := c.door.cfg.Authenticate(c.r, c.token)
	if err == nil && (now.ID != c.actor.ID || now.Credential != c.actor.Credential) {
		err = fault.New(fault.Unauthenticated, "Your token has ended. Make a new one.")
	}
	return now, err
}

// recheck closes the connection once the caller may not speak for the agent
// any more. A timer does it, so that an idle connection needs no goroutine.
func (c *caller) recheck(ctx context.Context, s *linkwire.Socket, who task.Attached) (stop func()) {
	var mu sync.Mutex // guards timer
	var timer *time.Timer
	check := func() {
		mu.Lock()
		defer mu.Unlock()
		if ctx.Err() != nil {
			return
		}
		var err error
		c.door.apart(func() {
			var actor ident.Actor
			if actor, err = c.again(); err == nil {
				err = c.door.cfg.Holds(ctx, actor, who)
			}
		})
		if k := fault.As(err); err != nil && k.Kind != fault.Internal && k.Kind != fault.Unavailable {
			s.Close(linkwire.ReasonRevoked)
			return
		}
		timer.Reset(c.door.cfg.RecheckEvery)
	}
	mu.Lock()
	defer mu.Unlock()
	timer = time.AfterFunc(c.door.cfg.RecheckEvery, check)
	return func() { timer.Stop() }
}

// deny answers hello with an error and closes.
func (c *caller) deny(ctx context.Context, s *linkwire.Socket, id json.RawMessage, err error) {
	f := c.door.tell(c.r, err)
	s.Send(ctx, linkwire.EncodeFailure(id, &linkwire.Error{Code: linkwire.ErrRefused, Message: f.Safe, Data: &linkwire.ErrorData{Kind: string(f.Kind), Fields: f.Fields}}))
	word := "refused: "
	if f.Kind == fault.RateLimited || f.Kind == fault.Unavailable || f.Kind == fault.Internal {
		word = "busy: " // another time, perhaps
	}
	s.Close(word + f.Safe)
}

// stream is the connection as whoever runs agents sees it: hello comes first.
type stream struct {
	*linkwire.Socket
	first []byte
}

// Send implements task.Stream.
func (s *stream) Send(ctx context.Context, b []byte) error { return detached(s.Socket.Send(ctx, b)) }

// Receive implements task.Stream.
func (s *stream) Receive(ctx context.Context) ([]byte, error) {
	if s.first != nil {
		b := s.first
		s.first = nil
		return b, nil
	}
	b, err := s.Socket.Receive(ctx)
	return b, detached(err)
}

func detached(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", task.ErrDetached, err)
}
