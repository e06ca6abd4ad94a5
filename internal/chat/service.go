package chat

import (
	"context"
	"crypto/rand"
	"log/slog"
	"time"

	"agentsite/internal/ident"
	"agentsite/internal/limit"
	"agentsite/internal/picture"
	"agentsite/internal/task"
)

// AgentRef is an agent as conversations know it.
type AgentRef struct {
	ID     string
	Handle string
	Title  string
	// Remote is the host its text goes to, "" when it stays on this portal.
	Remote string
	// Public agents may be talked to by guests.
	Public bool
	// Instant agents are those that Config.Instant may answer for.
	Instant bool
}

// Directory finds people and agents by name, with the actor's rights. Agent and Person answer
// NotFound for those that the actor may not see.
type Directory interface {
	Agent(ctx context.Context, actor ident.Actor, handle string) (AgentRef, error)
	Person(ctx context.Context, actor ident.Actor, name string) (Member, error)
	// Admit checks whether an agent's owner allows a call of size bytes by the actor now, and
	// counts it.
	Admit(ctx context.Context, actor ident.Actor, handle string, size int) error
	// Hosts returns, by id, the host that receives text for agents outside this portal.
	Hosts(ctx context.Context, agentIDs []string) (map[string]string, error)
}

// Config holds the portal's choices for conversations.
type Config struct {
	// Portal is the portal's part of handles.
	Portal string
	// URL is the portal's address, without a trailing slash: agents elsewhere
	// fetch large files there.
	URL string
	// FileKey signs the addresses of those files; New makes one when it is
	// empty.
	FileKey []byte
	// Instant answers for agents that need no more than the question; nil
	// where all are asked by the runtime.
	Instant Instant
	// Hop is an agent's name in chains; by default the portal and its id.
	Hop func(agentID string) task.Hop
	Log *slog.Logger
}

// Service is the logic of conversations. Create it with New.
type Service struct {
	store     Store
	directory Directory
	runner    task.Runner
	cfg       Config
	live      *live
	previews  *picture.Cache
	drawing   chan struct{} // capacity 1: the goroutine that draws a preview holds it
	sent      limit.Uploads

	// The rate limit of guests is low; that of people suits a busy program, but stays below the
	// capacity of the store, so that one person leaves room for others.
	guests, people, creations *limit.Keyed
	// portals bounds all actions of one portal, whichever of its people act.
	portals *limit.Keyed
}

// New returns a service over its ports.
func New(store Store, directory Directory, runner task.Runner, cfg Config) *Service {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if len(cfg.FileKey) == 0 {
		cfg.FileKey = make([]byte, 32)
		rand.Read(cfg.FileKey)
	}
	if cfg.Hop == nil {
		cfg.Hop = func(agentID string) task.Hop { return task.Hop(cfg.Portal + "/" + agentID) }
	}
	return &Service{
		store: store, directory: directory, runner: runner, cfg: cfg, live: newLive(), previews: picture.NewCache(maxPreviews),
		drawing:   make(chan struct{}, 1),
		guests:    limit.New(30*time.Second, 20, 50_000),
		people:    limit.New(500*time.Microsecond, 20_000, 50_000),
		portals:   limit.New(time.Second, 300, 50_000),
		creations: limit.New(20*time.Second, 30, 50_000),
	}
}
