// Package members completes the names of people and agents in the forms that choose members of a conversation.
package members

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/go-chi/chi/v5"

	"agentsite/handlers/pages"
	"agentsite/internal/chat"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/templates"
)

// Pages answers with completions. Create it with New.
type Pages struct {
	hub  *hub.Service
	chat *chat.Service
	site *pages.Site
}

// New returns Pages over the directory and the conversations of the actor.
func New(agents *hub.Service, chats *chat.Service, site *pages.Site) *Pages {
	return &Pages{hub: agents, chat: chats, site: site}
}

// Routes declares the route of the completions.
func (p *Pages) Routes(r chi.Router) { r.Get("/chat/members", p.site.Page(p.completeMembers)) }

const (
	most        = 8  // completions in an answer
	recentChats = 50 // the conversations from which members are completed
	maxQuery    = 100
)

// completeMembers answers with the members that begin with ?q=: people and agents of the actor's recent conversations,
// then agents of the directory. People whom the actor does not know from a conversation are not completed, because a
// list of all accounts is no one's business.
func (p *Pages) completeMembers(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	q := strings.ToLower(strings.TrimPrefix(strings.TrimSpace(r.URL.Query().Get("q")), "@"))
	if len(q) > maxQuery {
		return fault.Field("q", "use at most 100 characters")
	}
	list, err := p.listKnown(r.Context(), actor, q)
	if err != nil {
		return err
	}
	if q != "" {
		found, err := p.hub.Suggest(r.Context(), actor, q)
		if err != nil {
			return err
		}
		for _, s := range found {
			if s.Kind == "agent" {
				list = appendOption(list, templates.MemberOption{Ref: s.Handle, Title: s.Text})
			}
		}
	}
	return p.site.Render(w, r, http.StatusOK, templates.MemberOptions(list))
}

// listKnown returns members of the actor's recent conversations whose handle begins with q.
func (p *Pages) listKnown(ctx context.Context, actor ident.Actor, q string) (list []templates.MemberOption, err error) {
	if actor.ID == "" {
		return list, nil
	}
	chats, err := p.chat.List(ctx, actor, chat.RoomFilter{Limit: recentChats})
	if err != nil {
		return nil, err
	}
	for _, c := range chats {
		for _, m := range c.Members {
			person := m.Kind == "person"
			if m.Kind == "guest" || person && (m.ID == actor.ID || actor.IsVisitor()) ||
				!strings.HasPrefix(strings.ToLower(m.Handle), q) {
				continue
			}
			list = appendOption(list, templates.MemberOption{Ref: m.Handle, Title: m.Handle, Person: person})
		}
	}
	return list, nil
}

// appendOption appends a completion unless there is one with its handle, or enough.
func appendOption(list []templates.MemberOption, o templates.MemberOption) []templates.MemberOption {
	if len(list) >= most || slices.ContainsFunc(list, func(x templates.MemberOption) bool { return x.Ref == o.Ref }) {
		return list
	}
	return append(list, o)
}
