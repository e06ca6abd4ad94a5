package chat

import (
	"context"
	"crypto/rand"
	"log/slog"

	"agentsite/internal/ident"
	"agentsite/internal/limit"
	"agentsite/internal/picture"
	"agentsite/internal/task"
)

// AgentRef is the part of an agent's entry in the directory that conversations need.
type AgentRef struct {
	ID     string
	Handle string
	Title  string
	// Remote is the host that receives the agent's text, "" if the text stays on this portal.
	Remote string
	// Public means that guests may talk to the agent.
	Public bool
	// Instant means that Config.Instant may answer for the agent.
	Instant bool
}

// Directory finds people and agents by handle, with the actor's rights. Agent and Person return a
// NotFound fault for those that the actor may not see.
type Directory interface {
	Agent(ctx context.Context, actor ident.Actor, handle string) (AgentRef, error)
	Person(ctx context.Context, actor ident.Actor, name string) (Member, error)
	// Admit checks whether an agent's owner allows a call of size bytes by the actor now, and counts the
	// call; the fault says why not.
	Admit(ctx context.Context, actor ident.Actor, handle string, size int) error
	// Hosts returns, by agent id, the host that receives the text; agents that keep text on this portal are absent.
	Hosts(ctx context.Context, agentIDs []string) (map[string]string, error)
}

// Config is the configuration of a Service; New completes it with defaults.
type Config struct {
	// Portal is the host part of this portal's handles.
	Portal string
	// URL is the portal's address, without a trailing slash. Agents on other hosts fetch large files from it.
	URL string
	// FileKey is the HMAC key for file addresses given to agents. If it is empty, New makes a random
	// one, and addresses end with the process.
	FileKey []byte
	// Instant runs instant agents in the request; if nil, the runtime runs all agents.
	Instant Instant
	// Admission refuses tasks when the runtime has no room; if nil, all tasks are admitted.
	Admission Admission
	// Hops names agents in call chains; if nil, the name is the portal and the agent's id.
	Hops HopNames
	// Rooms bound the conversations and invitations of accounts.
	Rooms RoomLimits
	Log   *slog.Logger
}

// HopNames gives agents their names in call chains, which detect loops between portals.
type HopNames interface{ Hop(agentID string) task.Hop }

// plainHops is the default HopNames: the portal and the agent's id.
type plainHops struct{ portal string }

func (h plainHops) Hop(agentID string) task.Hop { return task.Hop(h.portal + "/" + agentID) }

// Service implements conversations. It is safe for concurrent use; create it with New.
type Service struct {
	Files       *Attachments
	Preferences *Preferences
	Contacts    *Contacts
	Asides      *Asides

	store     Store
	directory Directory
	runner    task.Runner
	cfg       Config
	live      *live
	limits    *rateLimits
	rooms     *roomQuota
	// searching and reading let an account search, and read a page of a transcript, one at a time.
	searching, reading limit.Turns

	admissions admissions
}

// New returns a service that uses store, directory and runner as its ports; cfg is completed with defaults.
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
	s := &Service{
		Files: &Attachments{store: store, limits: limits, url: cfg.URL, key: cfg.FileKey,
			previews: picture.NewCache(maxPreviews), drawing: make(chan struct{}, 1)},
		Preferences: &Preferences{store: store, limits: limits},
		store:       store, directory: directory, runner: runner, cfg: cfg, live: newLive(), limits: limits,
		admissions: admissions{cfg.Admission, store, directory},
	}
	s.Contacts, s.Asides = &Contacts{s}, &Asides{s}
	s.rooms = &roomQuota{store: store, limits: limits, most: cfg.Rooms.PerAccount}
	return s
}
