// Package remote reaches agents that run elsewhere: the drivers of the kinds
// a2a and openai, the Prober that finds out whether such an agent lives, and
// the Reader that describes one from its address. They take a RoundTripper
// that bounds time and guards addresses, keep the credentials to the agent's
// registered endpoint, and believe nothing the far side says about its size,
// its state or whose task it is. They know nothing of storage or scheduling.
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
	"agentsite/internal/hub"
	"agentsite/internal/task"
)

// maxText is the most text taken of one answer; more ends the task as failed
// with what came before.
const maxText = 256 << 10

var (
	_ task.Agent   = (*A2A)(nil)
	_ task.Stopper = (*A2A)(nil)
	_ task.Agent   = (*OpenAI)(nil)
	_ hub.Prober   = (*Prober)(nil)
	_ hub.Reader   = (*Reader)(nil)
)

// Config is what the drivers need beside a RoundTripper.
type Config struct {
	// Log defaults to a logger that discards.
	Log *slog.Logger
	// PollMin is the first pause between questions to an agent that does not
	// stream; it grows to 5 s. Default 250 ms.
	PollMin time.Duration
	// Lost is how many questions in a row may fail before a task that the far
	// side is working on is given up, by default 5.
	Lost int
	// Portal is the host of this portal, which agents of rooms are told.
	Portal string
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
	// cancelTime bounds telling an agent to stop.
	cancelTime = 5 * time.Second
)

// A2A runs tasks at A2A agents. Its checkpoint holds the far side's task and
// context: a task that was handed over is never handed over twice.
type A2A struct {
	rt  http.RoundTripper
	cfg Config

	mu     sync.Mutex // guards closed against wg.Wait
	closed bool
	wg     sync.WaitGroup
}

// NewA2A returns the driver of kind a2a. The caller closes it.
func NewA2A(rt http.RoundTripper, cfg Config) *A2A {
	return &A2A{rt: rt, cfg: cfg.withDefaults()}
}

// Close waits until agents that were told to stop have heard it, at most 5 s.
// Tasks still running are their callers' to end.
func (d *A2A) Close() {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	d.wg.Wait()
}

// stopRemote tells the far side in the background to stop a task: the caller
// has no time to wait for it.
func (d *A2A) stopRemote(ctx context.Context, c *a2a.Client, id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed || id == "" {
		return
	}
	d.wg.Go(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cancelTime)
		defer cancel()
		if _, err := c.Cancel(ctx, id); err != nil && !a2a.IsCode(err, a2a.CodeTaskNotCancelable) {
			d.cfg.Log.Info("cancel remote task", "error", err)
		}
	})
}

// checkpoint is what the A2A driver stores.
type checkpoint struct {
	Task    string `json:"task,omitempty"`
	Context string `json:"context,omitempty"`
	// Lost is set when contact was lost while the far side worked on it.
	Lost bool `json:"lost,omitempty"`
}

func readCheckpoint(b json.RawMessage) checkpoint {
	var c checkpoint
	if json.Unmarshal(b, &c) != nil {
		return checkpoint{}
	}
	return c
}

// a2aClient opens a client of the agent as it was registered.
func a2aClient(rt http.RoundTripper, endpoint string, config json.RawMessage, secret string) (*a2a.Client, hub.A2AConfig, error) {
	var cfg hub.A2AConfig
	if len(config) > 0 {
		if err := json.Unmarshal(config, &cfg); err != nil {
			return nil, cfg, err
		}
	}
	c, err := a2a.New(rt, a2a.Endpoint{
		URL: endpoint, Binding: cfg.Binding, Version: cfg.Version, Tenant: cfg.Tenant,
		AuthHeader: cfg.AuthHeader, Secret: secret,
	})
	return c, cfg, err
}

// redacted takes the stored credential out of what the far side said went
// wrong: those who read it are not its owner.
func redacted(text, secret string) string {
	if secret == "" {
		return text
	}
	return strings.ReplaceAll(text, secret, "[key]")
}

// failed is a task that ended without an answer, or with part of one.
func failed(parts []task.Part, reason string) task.Result {
	return task.Result{State: task.Failed, Parts: parts, Reason: reason}
}
