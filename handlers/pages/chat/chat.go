// Package chat has the pages of conversations: the list of them, one
// conversation with its messages and settings, and the links to it.
package chat

import (
	"log/slog"

	"github.com/go-chi/chi/v5"

	"agentsite/handlers/address"
	"agentsite/handlers/edits"
	"agentsite/handlers/markup"
	"agentsite/handlers/pages"
	"agentsite/handlers/pages/agents"
	"agentsite/handlers/pages/message"
	"agentsite/handlers/request"
	"agentsite/internal/account"
	"agentsite/internal/chat"
	"agentsite/internal/grant"
	"agentsite/internal/hub"
	"agentsite/internal/library"
	"agentsite/internal/task"
)

// Config holds the parts of a portal that the pages of conversations need.
type Config struct {
	Portal   address.Portal
	Accounts *account.Service
	Hub      *hub.Service
	Chat     *chat.Service
	Tasks    *task.Service
	Sessions *request.Sessions
	Site     *pages.Site
	Messages *message.Renderer
	Markup   *markup.Renderer
	Profile  *agents.Profile
	Grants   *grant.Service   // nil for none
	Library  *library.Service // nil for none
	Log      *slog.Logger
}

// Pages are the pages of conversations. Create them with New.
type Pages struct {
	lists *Lists
	room  *Room
}

// Lists has the list of conversations, the form that begins one, and the pages behind links to
// conversations.
type Lists struct {
	accounts *account.Service
	hub      *hub.Service
	chat     *chat.Service
	sessions *request.Sessions
	site     *pages.Site
	messages *message.Renderer
	markup   *markup.Renderer
	profile  *agents.Profile
	log      *slog.Logger
}

// Room has the pages of one conversation.
type Room struct {
	portal   address.Portal
	hub      *hub.Service
	chat     *chat.Service
	tasks    *task.Service
	edits    *edits.Editor
	site     *pages.Site
	messages *message.Renderer
	grants   *grant.Service
	shelf    *shelf
	log      *slog.Logger
}

// New returns the pages of conversations. Their routes are declared by Routes.
func New(cfg Config) *Pages {
	return &Pages{
		lists: &Lists{accounts: cfg.Accounts, hub: cfg.Hub, chat: cfg.Chat, sessions: cfg.Sessions, site: cfg.Site,
			messages: cfg.Messages,
			markup:   cfg.Markup, profile: cfg.Profile, log: cfg.Log},
		room: &Room{portal: cfg.Portal, hub: cfg.Hub, chat: cfg.Chat, tasks: cfg.Tasks,
			edits: &edits.Editor{Chat: cfg.Chat, Tasks: cfg.Tasks}, site: cfg.Site,
			messages: cfg.Messages, grants: cfg.Grants, shelf: &shelf{cfg.Library, cfg.Log}, log: cfg.Log},
	}
}

// Routes declares the routes of the pages of conversations.
func (p *Pages) Routes(r chi.Router) {
	p.lists.declareRoutes(r)
	p.room.declareRoutes(r)
}
