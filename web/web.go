// Package web is the portal's HTTP server: the router and the order of its middleware, checks of
// host and origin, limits of time and size, and a stop that lets requests finish. It mounts the
// handlers of other packages and does not depend on their function.
package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"

	"agentsite/handlers"
	"agentsite/handlers/request"
	"agentsite/handlers/respond"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/weborigin"
	"agentsite/static"
)

// Config holds the settings of the server and the handlers that other packages provide.
type Config struct {
	// Host is the host, with the port if it is not the default one, of the portal's URL.
	Host string
	// Loopback is true if the portal's URL has a loopback address. Requests to all loopback names
	// are then answered.
	Loopback bool
	// Secure is true if the portal's URL begins with https. It turns on HSTS.
	Secure bool
	// TrustedProxies are the proxies with trusted X-Forwarded-For fields, which give the client's
	// address. Without any, the address of the connection is used.
	TrustedProxies []netip.Prefix
	// Link serves /link, the WebSocket of agents that connect to this portal.
	Link http.Handler
	// Faces add the routes of the protocol endpoints to the router.
	Faces []func(chi.Router)
	// OpenAI serves the routes of the OpenAI API below /v1.
	OpenAI http.Handler
	// Metrics serves /metrics. It checks the access itself.
	Metrics http.HandlerFunc
	// Readers bounds the memory, time and downloads of readers of answers.
	Readers *respond.Readers
	// Database decides the answer of /readyz, because the portal cannot work without its database.
	Database Pinger
	Log      *slog.Logger
}

// maxReady bounds the time of an answer of /readyz.
const maxReady = 3 * time.Second

// Pinger is a database that can be asked whether it works.
type Pinger interface {
	Ping(ctx context.Context) error
}

// Timeouts and limits of net/http.
const (
	readHeaderTimeout = 5 * time.Second
	readTimeout       = 60 * time.Second
	// writeTimeout bounds the time until an answer begins. From then on each part of it renews the
	// deadline; see respond.Readers.
	writeTimeout   = 60 * time.Second
	idleTimeout    = 120 * time.Second
	maxHeaderBytes = 32 << 10
	// drain is the time that running requests may take after a stop.
	drain = 10 * time.Second
)

// Router returns the portal's handler. All settings of cfg except TrustedProxies must be set.
func Router(routes *handlers.Routes, cfg Config) http.Handler {
	r := chi.NewRouter()
	r.Use(requestID, cleanSlashes, middleware.GetHead)
	if len(cfg.TrustedProxies) > 0 {
		prefixes := make([]string, len(cfg.TrustedProxies))
		for i, p := range cfg.TrustedProxies {
			prefixes[i] = p.String()
		}
		r.Use(middleware.ClientIPFromXFF(prefixes...))
	} else {
		r.Use(middleware.ClientIPFromRemoteAddr)
	}
	r.Use(cfg.boundReaders, recoverPanics(cfg.Log), cfg.setHeaders, cfg.onlyOurHost)
	r.Get("/healthz", func(w http.ResponseWriter, r *http.Request) { writePlain(w, http.StatusOK, "ok") })
	r.Get("/readyz", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), maxReady)
		defer cancel()
		err := cfg.Database.Ping(ctx)
		if errors.Is(err, context.DeadlineExceeded) {
			err = fault.Wrap(fault.Unavailable, err, "The database does not answer within %s.", maxReady)
		}
		if err != nil {
			// The cause, which may name addresses, is for the log.
			cfg.Log.Debug("not ready", "error", err)
			writePlain(w, http.StatusServiceUnavailable, fault.As(err).Safe)
			return
		}
		writePlain(w, http.StatusOK, "ready")
	})
	r.Mount("/static/", static.Handler())
	// These routes may change state, so unsafe requests that a browser sends from other sites are
	// refused.
	r.Group(func(r chi.Router) {
		foreign := http.NewCrossOriginProtection()
		foreign.SetDenyHandler(http.HandlerFunc(routes.Foreign))
		r.Use(foreign.Handler)
		r.Route("/api/v1", routes.API)
		r.Mount("/v1", cfg.OpenAI)
		r.Method(http.MethodGet, "/link", cfg.Link)
		r.Get("/metrics", cfg.Metrics)
		for _, face := range cfg.Faces {
			face(r)
		}
		routes.Pages(r)
	})
	return r
}

func (cfg Config) boundReaders(next http.Handler) http.Handler {
	return cfg.Readers.Handler(request.ClientAddr, next)
}

// cleanSlashes takes doubled slashes and one at the end out of the path, because clients join addresses
// that end in one with paths that begin with one. The files below /static keep theirs, and so do the signed
// requests of other portals.
func cleanSlashes(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path := joinSlashes(r.URL.Path)
		if path == r.URL.Path || strings.HasPrefix(path+"/", "/static/") || strings.HasPrefix(path, "/peering/") {
			next.ServeHTTP(w, r)
			return
		}
		u := *r.URL
		u.Path, u.RawPath = path, joinSlashes(u.RawPath)
		clean := r.WithContext(r.Context())
		clean.URL = &u
		next.ServeHTTP(w, clean)
	})
}

func joinSlashes(path string) string {
	for strings.Contains(path, "//") {
		path = strings.ReplaceAll(path, "//", "/")
	}
	if len(path) > 1 {
		path = strings.TrimSuffix(path, "/")
	}
	return path
}

// requestID gives each request a random id of this portal. An id from the client would let it forge
// log lines, and the ids of chi contain the name of this machine.
func requestID(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), middleware.RequestIDKey, ident.NewID())))
	})
}

func writePlain(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	fmt.Fprintln(w, text)
}

// betweenPortals is the path prefix of the routes that only other portals call.
const betweenPortals = "/peering/v1/"

// setHeaders sets the security headers and the request id of every answer.
func (cfg Config) setHeaders(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		if strings.HasPrefix(r.URL.Path, betweenPortals) { // these are many, and no browser reads the answers
			next.ServeHTTP(w, r)
			return
		}
		h.Set("Referrer-Policy", "same-origin")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		h.Set("X-Request-Id", middleware.GetReqID(r.Context()))
		if cfg.Secure {
			h.Set("Strict-Transport-Security", "max-age=31536000")
		}
		next.ServeHTTP(w, r)
	})
}

// onlyOurHost refuses requests to host names other than the portal's. Without this check, a web
// page could reach a portal on a private network through a name of its own that resolves to the
// portal's address (DNS rebinding).
func (cfg Config) onlyOurHost(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !cfg.isOurHost(r.Host) {
			writePlain(w, http.StatusMisdirectedRequest, "This portal is "+cfg.Host+
				"; it answers for no other name. Operators set it with --url.")
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (cfg Config) isOurHost(host string) bool {
	host = strings.ToLower(host)
	if host == strings.ToLower(cfg.Host) {
		return true
	}
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	if cfg.Loopback {
		return weborigin.IsLoopback(name)
	}
	// The default port may be given although the portal's URL leaves it out.
	own, ownPort, err := net.SplitHostPort(cfg.Host)
	if err != nil {
		own, ownPort = cfg.Host, ""
	}
	_, port, err := net.SplitHostPort(host)
	def := "80"
	if cfg.Secure {
		def = "443"
	}
	return err == nil && ownPort == "" && port == def && name == strings.ToLower(strings.Trim(own, "[]"))
}

// recoverPanics logs a panic of a handler and answers with status 500, so that the server keeps
// running. http.ErrAbortHandler is passed on.
func recoverPanics(log *slog.Logger) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer func() {
				p := recover()
				if p == nil {
					return
				}
				if p == http.ErrAbortHandler {
					panic(p)
				}
				log.Error("handler panicked", "method", r.Method, "path", r.URL.Path, "request_id",
					middleware.GetReqID(r.Context()), "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
				if r.Header.Get("Upgrade") == "" {
					writePlain(w, http.StatusInternalServerError, "Something went wrong. Request "+
						middleware.GetReqID(r.Context()))
				}
			}()
			next.ServeHTTP(w, r)
		})
	}
}

// ServerConfig holds the settings of Serve. All except Operators and Count are required.
type ServerConfig struct {
	Penalized   PenaltyBox
	Connections ConnectionLimits
	Operators   Operators        // nil: nobody has reserved connections
	Count       *ConnectionCount // nil: the number is not needed
	Log         *slog.Logger
}

// Serve answers requests on the listener until ctx ends. Then it ends long-lived streams, because
// their readers resume on their own, lets other requests finish within the drain time and returns.
// Connections of addresses in the penalty box, and those beyond the limits, are refused. It closes the
// listener.
func Serve(ctx context.Context, l net.Listener, h http.Handler, cfg ServerConfig) error {
	base, endStreams := context.WithCancel(context.Background())
	defer endStreams()
	count := cmp.Or(cfg.Count, new(ConnectionCount))
	table, logger := newConnections(cfg.Connections, count, cfg.Log), cfg.Log
	srv := &http.Server{
		Handler:           cutPenalized(cfg.Penalized, table.refuseReserved(cfg.Operators, h)),
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		BaseContext:       func(net.Listener) context.Context { return base },
		ConnState:         table.noteState,
		ConnContext:       addConnection,
		ErrorLog:          log.New(logWriter{logger}, "", 0),
	}
	done := make(chan error, 1)
	var wg sync.WaitGroup
	wg.Go(func() { done <- srv.Serve(spareListener{newLimitListener(l, cfg.Penalized, table)}) })
	defer wg.Wait()
	select {
	case err := <-done:
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
	}
	stop, cancel := context.WithTimeout(context.Background(), drain)
	defer cancel()
	// Short answers can end within this time; a stream gets its end when its context is canceled.
	time.AfterFunc(200*time.Millisecond, endStreams)
	if err := srv.Shutdown(stop); err != nil {
		srv.Close()
		if !errors.Is(err, context.DeadlineExceeded) {
			return fmt.Errorf("stop: %w", err)
		}
		logger.Warn("requests cut off at stop, because they took longer than the drain time", "drain", drain)
	}
	return nil
}

// logWriter writes net/http's messages about failed connections to the debug log.
type logWriter struct{ log *slog.Logger }

func (w logWriter) Write(b []byte) (int, error) {
	w.log.Debug("http server", "message", strings.TrimSpace(string(b)))
	return len(b), nil
}
