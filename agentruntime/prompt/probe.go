package prompt

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"agentsite/agentruntime/model"
	"agentsite/internal/a2a"
	"agentsite/internal/clock"
	"agentsite/internal/egress"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/models"
)

const (
	// probeTime is the deadline of a probe.
	probeTime = 15 * time.Second
	// listLife is how long the model list of the portal's own server is cached, because many agents
	// depend on it.
	listLife = 30 * time.Second
)

// Probe implements liveness.Prober for the kind prompt. It lists the models of the model's server, which
// makes none of them work.
func (d *Driver) Probe(ctx context.Context, t hub.Target) hub.Liveness {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	start := time.Now()
	live := hub.Liveness{CheckedAt: clock.Now()}
	live.State, live.Reason = d.probeModel(ctx, t)
	live.Latency = time.Since(start)
	return live
}

func (d *Driver) probeModel(ctx context.Context, t hub.Target) (hub.Live, string) {
	cfg, err := readSettings(t.Config)
	if err != nil {
		return hub.Unknown, "The agent's settings cannot be read."
	}
	chain, err := d.findModels(t.OwnerID, t.Endpoint, t.Secret, cfg)
	if err != nil {
		if t.Endpoint != "" && cfg.Model != "" {
			return hub.WrongProtocol, fault.As(err).Safe
		}
		return hub.Unreachable, fault.As(err).Safe
	}
	a := chain[0]
	ids, err := d.listModels(ctx, a)
	state, reason := modelLiveness(ctx, err)
	switch {
	case err == nil && a.Name != "" && !slices.Contains(ids, a.Name):
		who := "The endpoint"
		if a.Portal {
			who = "The portal's model server"
		}
		return hub.Alive, fmt.Sprintf("%s does not list the model %q.", who, a2a.Line(a.Name, 100))
	case errors.Is(err, model.ErrKey) && a.Portal:
		// The owner of the agent cannot renew the portal's key, so NeedsAuth would be a wrong request.
		return hub.Unreachable, a.failureReason(err)
	}
	return state, redactSecret(reason, a.server.Key)
}

// modelLiveness returns the liveness and the reason as a sentence, for the result of listing models: a
// refused key is NeedsAuth, an answer of another API WrongProtocol, no answer Unreachable.
func modelLiveness(ctx context.Context, err error) (hub.Live, string) {
	switch code := egress.CodeOf(err); {
	case err == nil:
		return hub.Alive, ""
	case errors.Is(err, model.ErrKey):
		return hub.NeedsAuth, fault.As(err).Safe
	case errors.Is(err, model.ErrProtocol):
		return hub.WrongProtocol, fault.As(err).Safe
	case code == egress.Redirect, code == egress.Encoded, code == egress.TooLarge, code == egress.Protocol:
		return hub.WrongProtocol, toSentence(egress.Reason(err))
	case code != "", ctx.Err() != nil:
		return hub.Unreachable, toSentence(egress.Reason(err))
	}
	return hub.Unreachable, fault.As(err).Safe
}

// toSentence makes a sentence of a reason of package egress, which begins in lower case and has no full
// stop.
func toSentence(s string) string {
	if s == "" {
		return ""
	}
	return strings.ToUpper(s[:1]) + s[1:] + "."
}

// listModels lists the models of a's server. The lists of the portal's servers are cached for listLife,
// because the probes of all their agents need them.
func (d *Driver) listModels(ctx context.Context, a chosenModel) ([]string, error) {
	if !a.Portal {
		return a.client.Models(ctx)
	}
	d.mu.Lock()
	l := d.lists[a.server]
	if l == nil {
		if len(d.lists) >= models.MaxModels {
			clear(d.lists) // of servers that the operator changed
		}
		l = &listing{}
		d.lists[a.server] = l
	}
	d.mu.Unlock()
	return l.getList(ctx, a.client.Models)
}

// listing caches one list, or its error, for listLife. Concurrent callers wait for one request.
type listing struct {
	mu   sync.Mutex    // guards all below
	busy chan struct{} // closed when the running request ends; nil while there is none
	at   time.Time
	ids  []string
	err  error
}

func (l *listing) getList(ctx context.Context, ask func(context.Context) ([]string, error)) ([]string, error) {
	for {
		l.mu.Lock()
		if !l.at.IsZero() && time.Since(l.at) < listLife {
			defer l.mu.Unlock()
			return l.ids, l.err
		}
		busy := l.busy
		if busy == nil {
			busy = make(chan struct{})
			l.busy = busy
			l.mu.Unlock()
			return l.fillList(ctx, busy, ask)
		}
		l.mu.Unlock()
		select {
		case <-busy:
		case <-ctx.Done():
			return nil, fault.Wrap(fault.Unavailable, ctx.Err(), "The model could not be reached: %s.",
				egress.Reason(ctx.Err()))
		}
	}
}

func (l *listing) fillList(ctx context.Context, busy chan struct{},
	ask func(context.Context) ([]string, error)) (ids []string, err error) {
	keep := false
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if keep {
			l.at, l.ids, l.err = time.Now(), ids, err
		}
		l.busy = nil
		close(busy)
	}()
	ids, err = ask(ctx)
	keep = err == nil || ctx.Err() == nil // A request that its own caller canceled says nothing about the server.
	return ids, err
}
