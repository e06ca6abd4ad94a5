// Package live delivers the events of conversations as they happen, by WebSocket and by server-sent events.
package live

import (
	"context"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"agentsite/handlers/pages/message"
	"agentsite/handlers/request"
	"agentsite/internal/account"
	"agentsite/internal/chat"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
)

// Streams delivers the events of conversations as they happen, by WebSocket and by server-sent events. Create it
// with New.
type Streams struct {
	chat     *chat.Service
	accounts *account.Service
	sessions *request.Sessions
	messages *message.Renderer
	drafts   *message.Drafts
	open     *request.Connections
	log      *slog.Logger
}

// New returns the live streams of conversations. messages renders the HTML in updates, open counts the
// sockets and streams.
func New(chats *chat.Service, accounts *account.Service, sessions *request.Sessions, messages *message.Renderer,
	open *request.Connections, log *slog.Logger) *Streams {
	return &Streams{chat: chats, accounts: accounts, sessions: sessions, messages: messages,
		drafts: messages.NewDrafts(), open: open, log: log}
}

const (
	// liveWriteTimeout is how long a client may take to receive one write before it is disconnected. It
	// can reconnect with the last seq and misses nothing.
	liveWriteTimeout = 10 * time.Second
	// livePing is the interval of pings. A client from which nothing arrives between two pings is
	// disconnected.
	livePing = 30 * time.Second
	// liveCloseTime bounds the closing handshake: a hostile reader may have
	// announced a frame that never ends.
	liveCloseTime = time.Second
)

// Routes declares the routes of live delivery.
func (d *Streams) Routes(r chi.Router) {
	r.Get("/conversations/{id}/live", d.sessions.API(d.serveLive))
	r.Get("/live", d.sessions.API(d.liveInbox))
}

// serveLive streams a conversation from ?after=SEQ on, as server-sent events if the request accepts them,
// otherwise over a WebSocket. The stream ends when the actor may no longer read; server-sent events with
// ?once=1 end after the updates that exist already.
func (d *Streams) serveLive(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	after, err := request.QueryInt(r, "after", -1)
	if err != nil {
		return err
	}
	sse, err := wantsEvents(r)
	if err != nil {
		return err
	}
	if after < 0 {
		after = 0
		if id := r.Header.Get("Last-Event-ID"); sse && id != "" {
			if after, err = strconv.ParseInt(id, 10, 64); err != nil || after < 0 {
				return fault.Field("Last-Event-ID", "is not an id of this stream")
			}
		}
	}
	id, html := chi.URLParam(r, "id"), r.URL.Query().Get("html") == "1"
	if sse {
		ctx, stop, err := d.guardStream(r.Context(), r, actor)
		if err != nil {
			return err
		}
		defer stop()
		sub, err := d.chat.Subscribe(ctx, actor, id, after)
		if err != nil {
			return err
		}
		defer sub.Close()
		return d.liveSSE(ctx, w, actor, sub, html, r.URL.Query().Get("once") == "1")
	}
	base := serverContext(r)
	ctx, stop, err := d.guardSocket(base, r, actor)
	if err != nil {
		return err
	}
	sub, err := d.chat.Subscribe(ctx, actor, id, after)
	if err != nil {
		stop()
		return err
	}
	end := func() { sub.Close(); stop() }
	s, err := d.openSocket(w, r)
	if err != nil {
		end()
		return nil // the WebSocket library has answered the request
	}
	s.form = plainFrame
	if html {
		s.form = htmlFrame
	}
	s.sub = sub
	s.reader = &frameReader{d, actor, id}
	go s.serveSocket(ctx, base, s.followRoom, end)
	return nil
}

// serverContext returns a context that ends with the HTTP server. A socket uses it instead of the
// request's context, so that an idle socket does not keep the request in memory.
func serverContext(r *http.Request) context.Context {
	if srv, ok := r.Context().Value(http.ServerContextKey).(*http.Server); ok && srv.BaseContext != nil {
		return srv.BaseContext(nil)
	}
	return context.Background()
}

// wantsEvents reports whether a request asks for server-sent events and not for a WebSocket; a request
// for neither is an error.
func wantsEvents(r *http.Request) (sse bool, err error) {
	sse = strings.Contains(r.Header.Get("Accept"), "text/event-stream")
	if !sse && !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		return false, fault.New(fault.Invalid,
			"Open a WebSocket here, or ask for server-sent events with Accept: text/event-stream.")
	}
	return sse, nil
}

// guardSocket counts and authenticates the request for a socket, and returns a context that ends with base
// or with the actor's right. Call stop when the socket ends.
func (d *Streams) guardSocket(base context.Context, r *http.Request, actor ident.Actor) (ctx context.Context,
	stop func(), err error) {
	release, err := d.open.OpenSocket(actor)
	if err != nil {
		return nil, nil, err
	}
	return d.guardHeld(base, actor, release, func() (ident.Actor, error) { return d.sessions.Caller(r) })
}

// guardStream is guardSocket for server-sent events.
func (d *Streams) guardStream(base context.Context, r *http.Request, actor ident.Actor) (ctx context.Context,
	stop func(), err error) {
	return d.GuardedBy(base, actor, func() (ident.Actor, error) { return d.sessions.Caller(r) })
}

// GuardedBy is guardStream with another way to authenticate: prove returns the current actor of the
// credential.
func (d *Streams) GuardedBy(base context.Context, actor ident.Actor,
	prove func() (ident.Actor, error)) (ctx context.Context, stop func(), err error) {
	release, err := d.open.OpenStream(actor)
	if err != nil {
		return nil, nil, err
	}
	return d.guardHeld(base, actor, release, prove)
}

// guardHeld is guardSocket for a connection that was counted; stop, or an error, calls release.
func (d *Streams) guardHeld(base context.Context, actor ident.Actor, release func(),
	prove func() (ident.Actor, error)) (ctx context.Context, stop func(), err error) {
	ctx, end := d.accounts.Guard(base, actor)
	stop = func() { end(); release() }
	// Proved again after the guard has started, so that a right that ended in between is noticed.
	if again, err := prove(); err != nil || again.ID != actor.ID || again.Credential != actor.Credential {
		stop()
		return nil, nil, fault.New(fault.Unauthenticated, "Your session has ended. Sign in again.")
	}
	return ctx, stop, nil
}
