package goals

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"agentsite/handlers/request"
	"agentsite/handlers/respond"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
)

// readEvents answers with a page of the log of a goal or, with Accept: text/event-stream, with all events after one as
// they come. A stream ends when the goal has ended.
func (a *API) readEvents(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	after, err := request.QueryInt(r, "after", 0)
	if err != nil {
		return err
	}
	if request.WantsEvents(r) {
		return a.streamEvents(w, r, actor, after)
	}
	limit, err := request.QueryInt(r, "limit", 0)
	if err != nil {
		return err
	}
	if err := respond.Reserve(r.Context(), w, actor); err != nil {
		return err
	}
	list, err := a.teams.Events(r.Context(), actor, request.PathParam(r, "id"), after, int(limit))
	if err != nil {
		return err
	}
	out := make([]Event, len(list))
	for i, e := range list {
		out[i] = NewEvent(e)
	}
	respond.JSON(w, http.StatusOK, map[string]any{"events": out})
	return nil
}

func (a *API) streamEvents(w http.ResponseWriter, r *http.Request, actor ident.Actor, after int64) error {
	if id := r.Header.Get("Last-Event-ID"); id != "" {
		n, err := strconv.ParseInt(id, 10, 64)
		if err != nil || n < 0 {
			return fault.New(fault.Invalid, "Last-Event-ID is the number of an event.")
		}
		after = n
	}
	ctx, stop, err := a.guard.GuardedBy(r.Context(), actor, func() (ident.Actor, error) { return a.sessions.Caller(r) })
	if err != nil {
		return err
	}
	defer stop()
	watch, err := a.teams.Watch(ctx, actor, request.PathParam(r, "id"), after)
	if err != nil {
		return err
	}
	defer watch.Close()
	out, err := respond.OpenEvents(w)
	if err != nil {
		return nil
	}
	out.Run(ctx, func(ctx context.Context) ([]byte, error) {
		list, err := watch.Next(ctx)
		if err != nil {
			return nil, err
		}
		if len(list) == 0 {
			return fmt.Appendf(nil, "event: below\ndata: {\"seq\":%d,\"kind\":\"below\"}\n\n", watch.After()), nil
		}
		var buf bytes.Buffer
		for _, e := range list {
			b, err := json.Marshal(NewEvent(e))
			if err != nil {
				return nil, err
			}
			fmt.Fprintf(&buf, "id: %d\nevent: %s\ndata: %s\n\n", e.Seq, e.Kind, b)
		}
		return buf.Bytes(), nil
	})
	return nil
}
