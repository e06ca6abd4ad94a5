package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"

	"agentsite/handlers/request"
	"agentsite/handlers/respond"
	"agentsite/internal/account"
	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/federation"
	"agentsite/internal/federation/guard"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/ident/httpsig"
	"agentsite/internal/record"
	"agentsite/internal/task"
)

// verifier verifies what other portals ask: guard.Guard.
type verifier interface {
	Arrive(addr string) error
	Strike(addr string, why federation.Reason)
	Verify(r *http.Request, addr string, read guard.ReadBody) (asker guard.Asker, body []byte, done func(), err error)
}

// standing is how portals are doing: federation.Peers.
type standing interface {
	Decide(ctx context.Context, portal record.PortalID, origin string) federation.Decision
	Portal(ctx context.Context, name string) (federation.Peer, bool)
	Portals(ctx context.Context) []federation.Peer
	Changed() <-chan struct{}
}

// crossing is the calls between this portal and others, in and out.
type crossing struct {
	guard    verifier
	peers    standing
	send     func(portal record.PortalID, origin string) http.RoundTripper
	accounts *account.Service
	tasks    *task.Service
	store    task.Portals
	warn     func(msg string, args ...any)
	came     cameIn
}

var (
	_ request.Portals = (*crossing)(nil)
	_ hub.Ways        = ways{}
)

// ways leads the directory to other portals, once they are there.
type ways struct{ p *Portal }

// Way implements hub.Ways.
func (w ways) Way(ctx context.Context, portalID string) (string, error) {
	if w.p.crossing == nil {
		return "", fault.New(fault.Unavailable, "This portal is in no network.")
	}
	return w.p.crossing.way(ctx, portalID)
}

func (c *crossing) way(ctx context.Context, portalID string) (string, error) {
	peer, ok := c.peers.Portal(ctx, portalID)
	if !ok || peer.URL == "" || string(peer.ID) != portalID {
		return "", fault.New(fault.Unavailable, "Nobody knows where the portal of this agent is.")
	}
	d := c.peers.Decide(ctx, peer.ID, peer.URL)
	if !d.Out {
		why := d.Reason
		if why == "" {
			why = "This portal does not let people use agents there."
		}
		return "", fault.New(fault.Forbidden, "Agents of %s cannot be asked from here. %s", peer.Host(), why)
	}
	return peer.URL, nil
}

// Asks implements request.Portals.
func (c *crossing) Asks(r *http.Request) bool {
	_, err := httpsig.Read(r.Header, guard.SignatureTag)
	return !errors.Is(err, httpsig.ErrNone)
}

const (
	// The largest message of a portal, and of one that was not seen at its origin.
	maxPeerBody     = 4 << 20
	maxStrangerBody = 256 << 10
)

// Asking implements request.Portals. The body is read after the caller is authorized.
func (c *crossing) Asking(w http.ResponseWriter, r *http.Request) (actor ident.Actor, err error) {
	defer func() { c.came.note(err) }()
	addr := request.ClientIP(r)
	if err := c.guard.Arrive(addr); err != nil {
		return ident.Actor{}, err
	}
	var who guard.OnBehalfOf
	asker, body, done, err := c.guard.Verify(r, addr, func(a guard.Asker) (body []byte, err error) {
		if !a.Decision.Call {
			return nil, refusedCall(a.Decision)
		}
		if r.Header.Get("Authorization") != "" {
			return nil, federation.Refuse(federation.ReasonMalformed, "A portal asks for its own people: leave Authorization out.")
		}
		if who, err = guard.ParseOnBehalfOf(a.For); err != nil {
			return nil, err
		}
		return readMessage(w, r, a.Decision.Unproved)
	})
	if err != nil {
		return ident.Actor{}, err
	}
	done() // agents take their time; those who wait for them are counted apart
	// Owners let people in by the host of a handle, so only a proved portal is named by its host.
	host := string(asker.Portal)
	if peer, ok := c.peers.Portal(r.Context(), host); ok && peer.Proven(clock.Now()) && peer.URL == asker.Card.Origin {
		host = peer.Host()
	}
	if who.Kind == "guest" {
		who.Handle = "guest"
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return ident.PortalActor(string(asker.Portal), host, who.ID, who.Handle), nil
}

// readMessage reads the body of a call.
func readMessage(w http.ResponseWriter, r *http.Request, unproved bool) ([]byte, error) {
	limit, what := int64(maxPeerBody), "Let large files be fetched."
	if unproved {
		limit, what = maxStrangerBody, "More is taken of portals that answer at their origin: let it be reached."
	}
	tooLong := federation.Refuse(federation.ReasonSize, "A message has at most %d bytes. %s", limit, what)
	if r.ContentLength > limit {
		return nil, tooLong
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	if _, big := errors.AsType[*http.MaxBytesError](err); big {
		return nil, tooLong
	}
	if err != nil {
		return nil, federation.Refuse(federation.ReasonMalformed, "The body ended early.")
	}
	return body, nil
}

func refusedCall(d federation.Decision) error {
	why, reason := federation.ReasonDenied, d.Reason
	switch d.State {
	case federation.Pending, federation.Quarantined:
		why = federation.Reason(d.State)
	}
	if reason == "" {
		reason = "This portal does not let people of yours use its agents."
	}
	return federation.Refuse(why, "%s", reason)
}

// May implements request.Portals.
func (c *crossing) May(ctx context.Context, portal string) error {
	if d := c.peers.Decide(ctx, record.PortalID(portal), ""); !d.Call {
		return refusedCall(d)
	}
	return nil
}

// Refuse implements request.Portals; see docs/design/peering.md, "Errors".
func (c *crossing) Refuse(w http.ResponseWriter, r *http.Request, err error) {
	why := federation.RefusalOf(err)
	c.guard.Strike(request.ClientIP(r), why.Reason)
	f := fault.As(why)
	b, merr := json.Marshal(map[string]any{"error": map[string]any{"kind": string(f.Kind), "reason": string(why.Reason), "message": f.Safe}})
	if merr != nil { // texts can be written
		panic(merr)
	}
	if f.Kind == fault.Internal {
		c.warn("a request of another portal failed", "path", r.URL.Path, "error", err)
	}
	h := w.Header()
	respond.RetryAfter(h, f.RetryAfter)
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(why.Status())
	w.Write(b)
}

// watchPause is how long changes are gathered before all work between portals
// is looked at again.
const watchPause = 200 * time.Millisecond

// run ends what goes on between this portal and others that have been shut out
// since, within a second, until ctx ends.
func (c *crossing) run(ctx context.Context) {
	var gone map[string]bool // whose streams were ended already
	for {
		changed := c.peers.Changed() // before it is looked at
		gone = c.endStreams(ctx, gone)
		calls := func(id string) bool { return c.peers.Decide(ctx, record.PortalID(id), "").Call }
		out := func(id string) bool { _, err := c.way(ctx, id); return !fault.Is(err, fault.Forbidden) }
		n, err := c.tasks.StopPortals(ctx, c.store, calls, out)
		if err != nil && ctx.Err() == nil {
			c.warn("end the work of portals that are shut out", "stopped", n, "error", err)
		}
		if n < task.MaxStopped {
			select {
			case <-changed:
			case <-ctx.Done():
				return
			}
		}
		select {
		case <-time.After(watchPause):
		case <-ctx.Done():
			return
		}
	}
}

// endStreams ends the streams of portals that may not ask.
func (c *crossing) endStreams(ctx context.Context, before map[string]bool) map[string]bool {
	now := make(map[string]bool)
	for _, p := range c.peers.Portals(ctx) {
		id := string(p.ID)
		if id == "" || c.peers.Decide(ctx, p.ID, "").Call {
			continue
		}
		if now[id] = true; !before[id] {
			c.accounts.EndStreams(ident.PortalCredential(id))
		}
	}
	return now
}

// calling makes the calls between this portal and others. It comes when the
// services are there.
func (p *Portal) calling() {
	f := p.federated
	if f == nil {
		return
	}
	p.crossing = &crossing{guard: f.guard, peers: f.peers, send: f.client.Transport, accounts: p.accounts, tasks: p.tasks, store: p.db, warn: p.log.Warn}
	p.callers.LetIn(p.crossing)
	f.run = append(f.run, func(ctx context.Context) error { p.crossing.run(ctx); return nil })
}

// toPortal is what sends requests to a portal, signed.
func (p *Portal) toPortal(portal, origin string) http.RoundTripper {
	return p.crossing.send(record.PortalID(portal), origin)
}
