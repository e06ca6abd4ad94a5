package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"time"

	"agentsite/handlers/mcp/endpoint"
	"agentsite/internal/a2a"
	"agentsite/internal/chat"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/task"
)

// URIs of the resources.
const (
	agentPrefix          = "agentsite://agents/"
	conversationPrefix   = "agentsite://conversations/"
	agentTemplate        = agentPrefix + "{name}"
	conversationTemplate = conversationPrefix + "{id}"

	cardType       = "application/a2a-agent-card+json"
	transcriptType = "text/markdown"
)

func agentURI(name string) string { return agentPrefix + url.PathEscape(name) }

// Bounds of lists and of the content of resources.
const (
	maxListed     = 50
	maxRooms      = 20
	maxTranscript = 256 << 10 // bytes
	transcriptMax = 200       // number of messages
)

// resources implements endpoint.Resources: the cards of agents, and the caller's conversations.
type resources struct {
	d *Handler
	// agent is the name of the agent that this server belongs to, "" for the portal's server.
	agent string
}

// List implements endpoint.Resources. The first page begins with the caller's latest conversations, then
// agents follow by name.
func (s resources) List(ctx context.Context, c *endpoint.Call, cursor string) (list []endpoint.Resource, next string,
	err error) {
	if s.agent != "" {
		if cursor != "" {
			return nil, "", endpoint.Wrong("cursor: is not one of this list, which has one page.")
		}
		a, err := s.d.cfg.Hub.Get(ctx, c.Actor, s.agent)
		if err != nil {
			return nil, "", err
		}
		return []endpoint.Resource{cardOf(&a)}, "", nil
	}
	if cursor == "" && c.Actor.IsPerson() {
		rooms, err := s.d.cfg.Chat.List(ctx, c.Actor, chat.RoomFilter{Limit: maxRooms})
		// a token without the chat scope lists no conversations
		if err != nil && !fault.Is(err, fault.Forbidden) {
			return nil, "", err
		}
		for _, r := range rooms {
			list = append(list, endpoint.Resource{URI: conversationPrefix + r.ID, Name: "conversation " + r.ID,
				Title: r.Title, Description: r.Snippet, MIMEType: transcriptType})
		}
	}
	page, err := s.d.cfg.Hub.Search(ctx, c.Actor,
		hub.Query{Scope: hub.ScopePortal, Sort: hub.SortName, Limit: maxListed, Cursor: cursor})
	if err != nil && !(fault.Is(err, fault.Forbidden) && list != nil) {
		return nil, "", err
	}
	for i := range page.Results {
		if a := &page.Results[i].Agent; a.Portal == "" {
			list = append(list, cardOf(a))
		}
	}
	return list, page.NextCursor, nil
}

func cardOf(a *hub.Agent) endpoint.Resource {
	return endpoint.Resource{URI: agentURI(a.Handle()), Name: a.Handle(), Title: a.Title,
		Description: a2a.Line(a.Description, maxFoundText), MIMEType: cardType}
}

// Templates implements endpoint.Resources with the URI templates of cards and conversations.
func (s resources) Templates(context.Context, *endpoint.Call) ([]endpoint.Template, error) {
	if s.agent != "" {
		return []endpoint.Template{}, nil
	}
	return []endpoint.Template{
		{URITemplate: agentTemplate, Name: "agent", Title: "Agent card", Description: "The A2A card of an agent.",
			MIMEType: cardType},
		{URITemplate: conversationTemplate, Name: "conversation", Title: "Conversation",
			Description: "The transcript of a conversation of yours.", MIMEType: transcriptType},
	}, nil
}

// Read implements endpoint.Resources. Conversations of other callers are unknown resources.
func (s resources) Read(ctx context.Context, c *endpoint.Call, uri string) (endpoint.ReadResult, error) {
	var out endpoint.ReadResult
	var err error = fault.New(fault.NotFound, "There is no such resource.")
	if name, ok := strings.CutPrefix(uri, agentPrefix); ok {
		if name, uerr := url.PathUnescape(name); uerr == nil && (s.agent == "" || s.agent == name) {
			out, err = s.d.readCard(ctx, c, uri, name)
		}
	} else if id, ok := strings.CutPrefix(uri, conversationPrefix); ok && s.agent == "" {
		out, err = s.d.readTranscript(ctx, c, uri, id)
	}
	if fault.Is(err, fault.NotFound) {
		return out, endpoint.NoResource(c, uri)
	}
	return out, err
}

// readCard returns an agent's A2A card without a signature. The signed card is at the agent's own
// address.
func (d *Handler) readCard(ctx context.Context, c *endpoint.Call, uri, name string) (endpoint.ReadResult, error) {
	a, err := d.cfg.Hub.Get(ctx, c.Actor, name)
	if err != nil {
		return endpoint.ReadResult{}, err
	}
	a = a2a.DescribeRelay(a, d.portalHost())
	page := d.cfg.URL + "/agents/" + url.PathEscape(a.Handle())
	f := a2a.Face{Base: page + "/a2a", Provider: d.cfg.Live.NameOr(d.cfg.Name), Home: d.cfg.URL,
		Page: page, Open: d.isOpen(a)}
	if a.Icon != "" {
		f.Icon = page + "/icon"
	}
	b, err := json.MarshalIndent(a2a.MakeCard(a, f), "", "  ")
	if err != nil {
		return endpoint.ReadResult{}, err
	}
	return endpoint.ReadResult{Contents: []endpoint.ResourceContents{{URI: uri, MIMEType: cardType, Text: string(b)}},
		TTL: keepLists, Private: !a.Listable()}, nil
}

// isOpen reports whether the agent answers callers without a credential.
func (d *Handler) isOpen(a hub.Agent) bool {
	return d.cfg.Live.AllowsGuests() && a.Visibility == hub.Public && a.Limits.Callers == ""
}

// readTranscript returns the latest messages of one of the caller's conversations as text.
func (d *Handler) readTranscript(ctx context.Context, c *endpoint.Call, uri, id string) (endpoint.ReadResult, error) {
	asker, err := d.cfg.Callers.Identify(c.HTTP, c.Actor, id)
	if err != nil {
		return endpoint.ReadResult{}, err
	}
	room, err := d.cfg.Chat.Get(ctx, asker.Actor, id)
	if err != nil {
		return endpoint.ReadResult{}, err
	}
	list, _, err := d.cfg.Chat.Messages(ctx, asker.Actor, id, chat.Span{Limit: transcriptMax, Newest: true})
	if err != nil {
		return endpoint.ReadResult{}, err
	}
	var said []string
	left := maxTranscript
	for i := len(list) - 1; i >= 0; i-- {
		m := &list[i]
		if m.Kind != chat.Text || len(m.Parts) == 0 {
			continue
		}
		s := fmt.Sprintf("**%s** (%s):\n\n%s\n", m.Sender.Handle, m.CreatedAt.UTC().Format(time.RFC3339),
			task.PlainText(m.Parts))
		if left -= len(s); left < 0 {
			break
		}
		said = append(said, s)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n", a2a.Line(room.Title, 200))
	for i := len(said) - 1; i >= 0; i-- {
		b.WriteString("\n" + said[i])
	}
	return endpoint.ReadResult{Contents: []endpoint.ResourceContents{{URI: uri, MIMEType: transcriptType,
		Text: b.String()}}, Private: true}, nil
}
