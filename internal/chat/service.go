package chat

import (
	"context"
	"crypto/rand"
	"log/slog"

	"agentsite/internal/ident"
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
	// Hops may be nil; then an agent's name in chains is the portal and its id.
	Hops HopNames
	Log  *slog.Logger
}

// HopNames are the names of agents in chains of calls.
type HopNames interface{ Hop(agentID string) task.Hop }

// plainHops names an agent by the portal and its id.
type plainHops struct{ portal string }

func (h plainHops) Hop(agentID string) task.Hop { return task.Hop(h.portal + "/" + agentID) }

// Service is the logic of conversations. Create it with New.
type Service struct {
	Files       *Attachments
	Preferences *Preferences

	store     Store
	directory Directory
	runner    task.Runner
	cfg       Config
	live      *live
	limits    *rateLimits
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
	if cfg.Hops == nil {
		cfg.Hops = plainHops{cfg.Portal}
	}
	limits := newRateLimits()
	return &Service{
		Files: &Attachments{store: store, limits: limits, url: cfg.URL, key: cfg.FileKey,
			previews: picture.NewCache(maxPreviews), drawing: make(chan struct{}, 1)},
		Preferences: &Preferences{store: store, limits: limits},
		store:       store, directory: directory, runner: runner, cfg: cfg, live: newLive(), limits: limits,
	}
}
