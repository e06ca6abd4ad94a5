// Package remote calls agents on other machines: the drivers of the kinds a2a, openai and peer, the
// Prober that finds out the liveness of such an agent, and the Reader that describes an agent from its
// address. They use a RoundTripper that bounds time and restricts addresses, send credentials only to
// the agent's registered endpoint, and treat the size, state and task ids of answers as untrusted. They
// do not depend on storage or scheduling.
package remote

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"agentsite/internal/a2a"
	"agentsite/internal/clock"
	"agentsite/internal/hub"
	"agentsite/internal/liveness"
	"agentsite/internal/task"
	"agentsite/internal/usage"
)

// maxText is the maximum text of one answer in bytes. A longer answer fails the task with the text
// received so far.
const maxText = 256 << 10

var (
	_ task.Agent      = (*A2A)(nil)
	_ task.Stopper    = (*A2A)(nil)
	_ task.Agent      = (*OpenAI)(nil)
	_ liveness.Prober = (*Prober)(nil)
	_ hub.Reader      = (*Reader)(nil)
)

// Config holds the drivers' settings besides a RoundTripper.
type Config struct {
	// Log defaults to a logger that discards.
	Log *slog.Logger
	// PollMin is the first pause between polls of an agent that does not stream; it grows to 5 s.
	// Default 250 ms.
	PollMin time.Duration
	// Lost is how many polls in a row may fail before a running task of the remote side is given up, by
	// default 5.
	Lost int
	// Meter counts each answer of a model; nil means that none is counted.
	Meter usage.Meter
	// Guard is asked before each question to a model; nil means no bound.
	Guard usage.Guard
	// Portal is the host of this portal, for agents in conversations with several members.
	Portal string
	// Tools gives A2A agents the portal's tools; nil when there are none.
	Tools task.ToolServer
}

func (c Config) withDefaults() Config {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Lost <= 0 {
		c.Lost = 5
	}
	if c.PollMin <= 0 {
		c.PollMin = 250 * time.Millisecond
	}
	return c
}

const (
	pollMax = 5 * time.Second
	// cancelTime bounds one request that cancels a task at an agent, because Close waits for it.
	cancelTime = 5 * time.Second
	// A cancellation that did not reach the agent is tried again after firstCancelPause, then after twice
	// the pause each time. After lastCancelPause it is given up.
	firstCancelPause = time.Second
	lastCancelPause  = 16 * time.Second
)

// A2A runs tasks at A2A agents. Its checkpoint holds the remote side's task and context, so that a task
// is never sent twice.
type A2A struct {
	rt  http.RoundTripper
	cfg Config

	closing context.Context // ended by Close
	end     context.CancelFunc
	mu      sync.Mutex // guards closing against wg.Wait, and naming
	naming  int        // requests of canceled tasks that wait for a name
	wg      sync.WaitGroup
}

// NewA2A returns the driver of kind a2a. The caller closes it.
func NewA2A(rt http.RoundTripper, cfg Config) *A2A {
	d := &A2A{rt: rt, cfg: cfg.withDefaults()}
	d.closing, d.end = context.WithCancel(context.Background())
	return d
}

// Close waits for the requests that cancel tasks at their agents, at most cancelTime; they are not tried
// again. It does not end running tasks; their callers do.
func (d *A2A) Close() {
	d.mu.Lock()
	d.end()
	d.mu.Unlock()
	d.wg.Wait()
}

// stopRemote cancels a task at the remote side in the background, because the caller has no time to wait
// for it. It tries again while the agent does not answer, because the agent may just be restarted and
// would otherwise continue the task. It does nothing for an empty id or after Close.
func (d *A2A) stopRemote(ctx context.Context, c *a2a.Client, id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closing.Err() != nil || id == "" {
		return
	}
	ctx = context.WithoutCancel(ctx)
	d.wg.Go(func() {
		for pause := firstCancelPause; ; pause *= 2 {
			err := cancelOnce(ctx, c, id)
			if err == nil || a2a.IsCode(err, a2a.CodeTaskNotCancelable) {
				return
			}
			d.cfg.Log.Info("cancel remote task", "error", err)
			if refusedByAgent(err) || terminalTrouble(err) || pause > lastCancelPause || !clock.Sleep(d.closing, pause) {
				return
			}
		}
	})
}

func cancelOnce(ctx context.Context, c *a2a.Client, id string) error {
	ctx, cancel := context.WithTimeout(ctx, cancelTime)
	defer cancel()
	_, err := c.Cancel(ctx, id)
	return err
}

// checkpoint is the stored state of the A2A driver, by which a later attempt or message finds the remote
// task.
type checkpoint struct {
	Task    string `json:"task,omitempty"`
	Context string `json:"context,omitempty"`
	// Lost is set when contact was lost while the remote side worked, so that the next message cancels
	// that task first.
	Lost bool `json:"lost,omitempty"`
}

func readCheckpoint(b json.RawMessage) checkpoint {
	var c checkpoint
	if json.Unmarshal(b, &c) != nil {
		return checkpoint{}
	}
	return c
}

// a2aClient opens a client of the agent from its registration. It makes no request. The error means that
// the stored configuration cannot be used. Answers of a peer, another portal, are read strictly.
func a2aClient(rt http.RoundTripper, endpoint string, config json.RawMessage, secret string, peer bool) (*a2a.Client,
	hub.A2AConfig, error) {
	var cfg hub.A2AConfig
	if len(config) > 0 {
		if err := json.Unmarshal(config, &cfg); err != nil {
			return nil, cfg, err
		}
	}
	c, err := a2a.New(rt, a2a.Endpoint{
		URL: endpoint, Binding: cfg.Binding, Version: cfg.Version, Tenant: cfg.Tenant,
		AuthHeader: cfg.AuthHeader, Secret: secret, Strict: peer,
	})
	return c, cfg, err
}

// redactSecret removes the stored credential from an error of the remote side, because its readers are
// not the owner of the credential.
func redactSecret(text, secret string) string {
	if secret == "" {
		return text
	}
	return strings.ReplaceAll(text, secret, "[key]")
}

// failedResult is the result of a task that ended without an answer, or with part of one.
func failedResult(parts []task.Part, reason string) task.Result {
	return task.Result{State: task.Failed, Parts: parts, Reason: reason}
}
