package notify

import (
	"log/slog"
	"net/http"
	"time"

	"agentsite/internal/hub"
	"agentsite/internal/limit"
)

// Ports is what the service needs of others.
type Ports struct {
	Store    Store
	Chat     Conversations
	Accounts Accounts
	Sealer   Sealer
	// Transport sends; it must refuse addresses that may not be dialled, and
	// redirects.
	Transport http.RoundTripper
	Push      Pusher
	// Wake tells that there is something to send. A signal may be lost.
	Wake <-chan struct{}
}

// Config is what a portal decides about hooks.
type Config struct {
	// URL is the portal's, without a slash at its end.
	URL string
	// CheckURL says, in words for a form, why an address may not be told
	// anything, without looking it up.
	CheckURL func(string) error
	// Told, when set, is called after an account was left a notice. It must not
	// block.
	Told func(n hub.Notice, accounts []string)
	Log  *slog.Logger
}

// Service is who may be told what, and who tells them. Create it with New and
// keep Run running.
type Service struct {
	Ports
	cfg Config
	// tests and pushes bound how often somebody has an address called, or
	// names one.
	tests, pushes *limit.Keyed
}

// New returns a service over its ports.
func New(ports Ports, cfg Config) *Service {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Service{Ports: ports, cfg: cfg,
		tests:  limit.New(6*time.Second, 10, 10_000),
		pushes: limit.New(200*time.Millisecond, 200, 50_000),
	}
}
