package live

import (
	"context"
	"net/http"

	"agentsite/handlers/respond"
	"agentsite/internal/chat"
)

func (d *Streams) liveSSE(ctx context.Context, w http.ResponseWriter, sub *chat.Subscription, html bool) error {
	form := plainEvent
	if html {
		form = htmlEvent
	}
	e, err := respond.OpenEvents(w)
	if err != nil {
		return nil
	}
	e.Run(ctx, func(ctx context.Context) ([]byte, error) {
		u, err := sub.Next(ctx)
		if err != nil {
			return nil, err
		}
		return d.encodeAll(form, []chat.Update{u}), nil
	})
	return nil
}
