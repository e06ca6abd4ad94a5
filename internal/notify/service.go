package notify

import (
	"log/slog"
	"net/http"
	"time"

	"agentsite/internal/hub"
	"agentsite/internal/limit"
)

// Ports are the parts of the portal that the service uses. All but Wake must be set.
type Ports struct {
	Store    Store
	Chat     Conversations
	Accounts Accounts
	Sealer   Sealer
	// Transport sends the requests. It must return an error for redirects and for addresses that
	// this portal may not connect to.
	Transport http.RoundTripper
	Push      Pusher
	// Wake receives a value when new events are waiting. A lost value only delays them.
	Wake <-chan struct{}
}

// Config holds the portal's settings for hooks. URL must be set; a nil Log discards the log.
type Config struct {
	// URL is the portal's address, without a slash at its end.
	URL string
	// Addresses decides to which addresses events may be sent. It does not resolve host names.
	Addresses hub.AddressPolicy
	// NoticeQueue gets a notification for the owner of a hook that was stopped; nil for none.
	NoticeQueue hub.NoticeQueue
	Log         *slog.Logger
}

// Service manages hooks and sends events with the rights of their owners. Create it with New and
// call Run. It is safe for concurrent use.
type Service struct {
	Ports
	cfg Config
	// tests limits test requests per account, pushes limits new push hooks per caller.
	tests, pushes *limit.Keyed
}

// New returns a service over its ports. Nothing is sent until Run is called.
func New(ports Ports, cfg Config) *Service {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Service{Ports: ports, cfg: cfg,
		tests:  limit.New(6*time.Second, 10, 10_000),
		pushes: limit.New(200*time.Millisecond, 200, 50_000),
	}
}
