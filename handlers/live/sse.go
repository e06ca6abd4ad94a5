package live

import (
	"context"
	"net/http"

	"agentsite/handlers/respond"
	"agentsite/internal/chat"
	"agentsite/internal/ident"
)

// readyEvent is the first event of a page's stream. Its arrival proves that no proxy holds events back.
var readyEvent = []byte("event: ready\ndata: {\"type\":\"ready\"}\n\n")

// liveSSE writes the updates of a subscription. With once it ends after those that wait already, for
// pages behind proxies that deliver only answers which end.
func (d *Streams) liveSSE(ctx context.Context, w http.ResponseWriter, actor ident.Actor, sub *chat.Subscription,
	html, once bool) error {
	form := plainEvent
	if html {
		form = htmlEvent
	}
	e, err := respond.OpenEvents(w)
	if err != nil {
		return nil
	}
	if html && e.Write(readyEvent) != nil {
		return nil
	}
	if once {
		for {
			list, err := sub.Take(ctx)
			if err != nil || len(list) == 0 || e.Write(d.encodeFor(form, actor, list)) != nil {
				return nil
			}
		}
	}
	e.Run(ctx, func(ctx context.Context) ([]byte, error) {
		u, err := sub.Next(ctx)
		if err != nil {
			return nil, err
		}
		return d.encodeFor(form, actor, []chat.Update{u}), nil
	})
	return nil
}
