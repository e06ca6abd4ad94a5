package chat

import (
	"context"
	"net/http"
	"net/url"

	"agentsite/internal/ident"
	"agentsite/templates"
)

// grantsHere returns the grants of the actor for one conversation only.
func (d *Room) grantsHere(ctx context.Context, actor ident.Actor, conversationID string) ([]templates.GrantRow, error) {
	if d.grants == nil {
		return []templates.GrantRow{}, nil
	}
	list, err := d.grants.Here(ctx, actor, conversationID)
	rows := make([]templates.GrantRow, len(list))
	for i, g := range list {
		rows[i] = templates.GrantRow{Agent: g.Agent, Act: g.Act(), Allow: g.Allow}
	}
	return rows, err
}

// askAgain revokes the grants of the actor for one conversation only.
func (d *Room) askAgain(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	return d.roomAction(w, r, actor, func(id string, _ url.Values) (string, error) {
		if _, err := d.chat.Get(r.Context(), actor, id); err != nil {
			return "", err
		}
		return "", d.grants.AskAgain(r.Context(), actor, id)
	})
}
