package chat

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"agentsite/handlers/request"
	"agentsite/internal/chat"
	"agentsite/internal/ident"
)

// switchAgent returns the handler that makes an agent answer the messages of this conversation that name no other: the
// agent joins if it is no member, and becomes the speaker. With in=new the page of a new chat with the agent is next,
// and this one stays as it is.
func switchAgent(d *Room) request.Handler {
	return func(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
		return d.roomAction(w, r, actor, func(id string, in url.Values) (string, error) {
			name := strings.TrimPrefix(strings.TrimSpace(in.Get("agent")), "@")
			if in.Get("in") == "new" {
				return "/chat/new?" + url.Values{"agent": {name}}.Encode(), nil
			}
			c, err := d.chat.Get(r.Context(), actor, id)
			if err != nil {
				return "", err
			}
			if !slices.ContainsFunc(c.Agents(), func(m chat.Member) bool { return m.Handle == name }) {
				a, err := d.hub.Callable(r.Context(), actor, name) // a person is no agent
				if err != nil {
					return "", err
				}
				name = a.Handle()
				if _, err = d.chat.Invite(r.Context(), actor, id, name); err != nil {
					return "", err
				}
			}
			_, err = d.chat.Set(r.Context(), actor, id, chat.Change{Speaks: new(chat.SpeaksAgent), Speaker: &name})
			return "", err
		})
	}
}
