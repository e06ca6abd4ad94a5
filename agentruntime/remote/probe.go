package remote

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"agentsite/agentruntime/model"
	"agentsite/internal/a2a"
	"agentsite/internal/clock"
	"agentsite/internal/egress"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/models"
)

// probeTime bounds all requests of one probe.
const probeTime = 15 * time.Second

// Prober implements liveness.Prober for the kinds a2a and openai.
type Prober struct{ rt http.RoundTripper }

// NewProber returns a Prober over rt, which must bound time and restrict addresses.
func NewProber(rt http.RoundTripper) *Prober { return &Prober{rt: rt} }

// Probe implements liveness.Prober. No probe makes an agent work: it asks A2A agents for a task that does
// not exist, and OpenAI servers for their models.
func (p *Prober) Probe(ctx context.Context, t hub.Target) hub.Liveness {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	start := time.Now()
	live := hub.Liveness{CheckedAt: clock.Now()}
	switch t.Kind {
	case hub.A2A:
		live.State, live.Reason = p.probeA2A(ctx, t)
	case hub.OpenAI:
		live.State, live.Reason = p.probeOpenAI(ctx, t)
	default:
		live.State, live.Reason = hub.Unknown, "Agents of this kind are not probed."
	}
	live.Reason = redactSecret(live.Reason, t.Secret)
	live.Latency = time.Since(start)
	return live
}

func (p *Prober) probeA2A(ctx context.Context, t hub.Target) (hub.Live, string) {
	first := &question{rt: p.rt}
	client, _, err := a2aClient(first, t.Endpoint, t.Config, t.Secret, false)
	if err == nil {
		err = client.ProbeUnknownTask(ctx)
	} else if _, ok := errors.AsType[*a2a.Error](err); !ok {
		return hub.Unknown, "The agent's settings cannot be read."
	}
	e, ok := errors.AsType[*a2a.Error](err)
	switch {
	case err == nil && first.serverFailed() && p.failsAlways(ctx, t):
		return hub.Unreachable, "It answers every request with an internal error."
	case err == nil:
		return hub.Alive, ""
	case !ok:
		return classifyFailure(err)
	case e.Fault == a2a.FaultAuth:
		return hub.NeedsAuth, toSentence(e.Text)
	case e.Fault == a2a.FaultStatus:
		return hub.Unreachable, toSentence(e.Text)
	}
	return hub.WrongProtocol, "This is not an A2A agent: " + e.Text + "."
}

func (p *Prober) probeOpenAI(ctx context.Context, t hub.Target) (hub.Live, string) {
	cfg, err := openaiConfig(t.Config)
	if err != nil {
		return hub.Unknown, "The agent's settings cannot be read."
	}
	client, err := model.New(p.rt, models.Server{URL: t.Endpoint, Key: t.Secret})
	if err != nil {
		return hub.WrongProtocol, fault.As(err).Safe
	}
	ids, err := client.Models(ctx)
	switch {
	case err == nil && cfg.Model != "" && !slices.Contains(ids, cfg.Model):
		if p.lacksModel(ctx, t, cfg.Model) {
			return hub.Unreachable, fmt.Sprintf("The endpoint has no model %q.", a2a.Line(cfg.Model, 100))
		}
		return hub.Alive, fmt.Sprintf("The endpoint does not list the model %q.", a2a.Line(cfg.Model, 100))
	case err == nil:
		return hub.Alive, ""
	case errors.Is(err, model.ErrKey):
		return hub.NeedsAuth, fault.As(err).Safe
	case errors.Is(err, model.ErrProtocol):
		if fault.As(err).Kind == fault.NotFound && p.hasChat(ctx, t) {
			return hub.Alive, "The endpoint does not list its models."
		}
		return hub.WrongProtocol, fault.As(err).Safe
	case egress.CodeOf(err) != "" || ctx.Err() != nil:
		return classifyFailure(err)
	}
	return hub.Unreachable, fault.As(err).Safe
}

// classifyFailure returns the liveness and the reason for a request without a usable answer:
// unreachable, wrong protocol for an answer that is not valid HTTP, or unknown if this portal sent
// nothing.
func classifyFailure(err error) (hub.Live, string) {
	switch egress.CodeOf(err) {
	case egress.Resting:
		// Leave out how long the address is not tried, because the stored reason is read later.
		cause, _, _ := strings.Cut(egress.Reason(err), ";")
		return hub.Unreachable, toSentence(cause)
	case egress.Busy:
		return hub.Unknown, "It was not checked, because this portal is calling too many others."
	case egress.Protocol:
		// The standard library has no error type for a broken connection. Errors about an invalid answer
		// have a more specific reason than this one.
		if egress.Reason(err) == "the request failed" {
			return hub.Unreachable, "The connection broke before an answer came."
		}
		return hub.WrongProtocol, toSentence(egress.Reason(err))
	case egress.Redirect, egress.Encoded, egress.TooLarge:
		return hub.WrongProtocol, toSentence(egress.Reason(err))
	}
	return hub.Unreachable, toSentence(egress.Reason(err))
}

// toSentence makes a sentence of a reason of package egress, which begins in lower case and has no full
// stop.
func toSentence(s string) string {
	if s == "" {
		return ""
	}
	return strings.ToUpper(s[:1]) + s[1:] + "."
}
