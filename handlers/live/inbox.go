package live

import (
	"context"
	"encoding/json"
	"net/http"

	"agentsite/handlers/respond"
	"agentsite/internal/chat"
	"agentsite/internal/ident"
)

// liveInbox streams events of all conversations of the actor, over a WebSocket or as server-sent events,
// until the actor's right ends. Frames from the client are refused.
func (d *Streams) liveInbox(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	sse, err := wantsEvents(r)
	if err != nil {
		return err
	}
	base, guard := r.Context(), d.guardStream
	if !sse {
		base, guard = serverContext(r), d.guardSocket
	}
	ctx, stop, err := guard(base, r, actor)
	if err != nil {
		return err
	}
	inbox, err := d.chat.Inbox(ctx, actor)
	if err != nil {
		stop()
		return err
	}
	end := func() { inbox.Close(); stop() }
	if sse {
		defer end()
		e, err := respond.OpenEvents(w)
		if err != nil {
			return nil
		}
		e.Run(ctx, func(ctx context.Context) ([]byte, error) {
			b, err := nextNews(ctx, inbox)
			if err != nil {
				return nil, err
			}
			return append(append([]byte("event: news\ndata: "), b...), "\n\n"...), nil
		})
		return nil
	}
	s, err := d.openSocket(w, r)
	if err != nil {
		end()
		return nil // the WebSocket library has answered the request
	}
	go s.serveSocket(ctx, base, func(ctx context.Context) error {
		for {
			b, err := nextNews(ctx, inbox)
			if err != nil {
				return err
			}
			if err := s.writeFrames(textFrame(b)); err != nil {
				return err
			}
		}
	}, end)
	return nil
}

func nextNews(ctx context.Context, inbox *chat.Inbox) ([]byte, error) {
	n, err := inbox.Next(ctx)
	if err != nil {
		return nil, err
	}
	return json.Marshal(struct {
		Type           string `json:"type"`
		ConversationID string `json:"conversation_id"`
		Title          string `json:"title"`
		Seq            int64  `json:"seq"`
		From           string `json:"from"`
		Snippet        string `json:"snippet"`
		Mention        bool   `json:"mention"`
		Quiet          bool   `json:"quiet"`
	}{"news", n.ConversationID, n.Title, n.Seq, n.From, n.Snippet, n.Mention, n.Quiet})
}
